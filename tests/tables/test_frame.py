import numpy as np
import pandas as pd
import pytest

from nongauss.core.errors import InputError
from nongauss.tables.column import as_pandas, label_of, sorted_labels
from nongauss.tables.frame import read_input


def column(values):
    return read_input(pd.DataFrame({"c": values})).column(0)


def test_numbers_of_every_dtype_become_float64_with_nan():
    for values in (
        pd.array([1, None, 3], dtype="Int64"),
        pd.array([1.0, None, 3.0], dtype="Float32"),
        np.array([1.0, np.nan, 3.0], dtype=np.float16),
        np.array([1, None, np.int8(3)], dtype=object),
        pd.arrays.SparseArray([1.0, np.nan, 3.0]),
    ):
        got = column(values)
        np.testing.assert_array_equal(got.values, [1, np.nan, 3])
        assert got.values.dtype == np.float64
        assert got.missing.tolist() == [False, True, False]


def test_labels_of_every_dtype_are_sorted_text():
    for values in (
        ["b", None, "a"],
        pd.Categorical(["b", None, "a"]),
        pd.array(["b", None, "a"], dtype="string"),
        np.array([b"b", None, b"a"], dtype=object),
    ):
        got = column(values)
        assert got.levels == ("a", "b")
        assert got.codes.tolist() == [1, -1, 0]
    assert column(pd.array([True, None, False], dtype="boolean")).levels == ("False", "True")
    assert sorted_labels(["b", "10", "9", "nan", "9"]) == ("9", "10", "b", "nan")
    assert [label_of(v) for v in (1.0, 1, np.float32(2.5), True, float("inf"))] == [
        "1",
        "1",
        "2.5",
        "True",
        "inf",
    ]


def test_arrays_and_lists():
    mixed = read_input([[1, "a"], [2.5, "b"], [None, "a"]])
    assert mixed.names is None
    assert mixed.labels == ("x0", "x1")
    np.testing.assert_array_equal(mixed.column(0).values, [1, 2.5, np.nan])
    assert mixed.column(1).levels == ("a", "b")
    masked = np.ma.MaskedArray([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]])
    np.testing.assert_array_equal(read_input(masked).column(1).values, [np.nan, 4])
    np.testing.assert_array_equal(read_input(np.array([[True], [False]])).column(0).values, [1, 0])


def test_polars_and_arrow_frames_look_like_pandas():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    data = {"i": [1, None, 3], "s": ["x", None, "y"], "b": [True, False, None]}
    for frame in (pl.DataFrame(data), pa.table(data)):
        table = read_input(frame)
        assert table.names == ("i", "s", "b")
        np.testing.assert_array_equal(table.column(0).values, [1, np.nan, 3])
        assert table.column(1).levels == ("x", "y")
        assert table.column(2).codes.tolist() == [1, 0, -1]
    enum = pl.DataFrame({"e": pl.Series(["r", "g"], dtype=pl.Enum(["r", "g", "b"]))})
    assert read_input(enum).column(0).as_labels().codes.tolist() == [2, 1]
    with pytest.raises(InputError, match="collect"):
        as_pandas(pl.LazyFrame(data))


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([1.0, 2.0], ValueError, "Reshape your data"),
        (np.zeros((0, 3)), ValueError, r"0 sample\(s\)"),
        (
            pd.DataFrame({"a": []}),
            ValueError,
            r"0 sample\(s\) \(shape=\(0, 1\)\) while a minimum of 1 is required by E",
        ),
        (np.zeros((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        (pd.DataFrame(index=[0, 1]), ValueError, r"0 feature\(s\) \(shape=\(2, 0\)\) while a minimum of 1"),
        (np.array([[1 + 2j]]), ValueError, "Complex data not supported"),
        (np.array([[1 + 2j]], dtype=object), ValueError, "Complex data not supported"),
        (pd.DataFrame({"a": [1j]}), ValueError, "Complex data not supported"),
        (
            np.array([[1.0], [{"foo": "bar"}]], dtype=object),
            TypeError,
            "row 1.*argument must be a string or a number",
        ),
        ([[1, 2], [3]], InputError, "row 0 has 2 values, row 1 has 1"),
        (
            pd.DataFrame({"a": [1, "b"]}),
            InputError,
            "Column 'a' of X mixes numbers and text, first 'b' in row 1",
        ),
        (pd.DataFrame({"a": pd.interval_range(0, 2)}), InputError, "holds interval values"),
        (np.array([[1.0], [np.inf]]), InputError, r"infinity \(inf\) in column 'x0', row 1"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), InputError, "more than one column named 'a'"),
        (pd.DataFrame([[1, 2]], columns=["a", 1]), InputError, "column names of X are text and some are not"),
    ],
)
def test_unusable_tables(X, error, message):
    with pytest.raises(error, match=message):
        read_input(X, "E").column(0)


def test_sparse_is_refused_as_in_scikit_learn():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        read_input(sparse.eye_array(3))

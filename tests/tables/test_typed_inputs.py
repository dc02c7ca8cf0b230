"""Tables, labels, targets and weights of every type that people have: the same numbers, or one sentence."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.tables.files import read_table
from nongauss.tables.frame import read_input
from nongauss.tables.kinds import decode
from nongauss.tables.labels import LabelCoder
from nongauss.tables.rows import validate_weight
from nongauss.tables.target import validate_target

nan = np.nan
ONE_TWO = [
    pa.table({"a": [1, None, 2]}),
    pa.record_batch({"a": pa.array([np.float16(1), None, np.float16(2)], pa.float16())}),
    pa.table({"a": pa.array([Decimal(1), None, Decimal(2)], pa.decimal128(10, 2))}),
    pd.DataFrame({"a": pd.array([1, None, 2], dtype="Int8")}),
    pd.DataFrame({"a": pd.array([1, None, 2], dtype=pd.ArrowDtype(pa.int64()))}),
    pd.DataFrame({"a": [Decimal(1), None, Decimal(2)]}),
    pd.DataFrame({"a": pd.arrays.SparseArray([1.0, nan, 2.0])}),
    pd.DataFrame({"a": ["1", None, "2"]}),
    np.array([[1], [nan], [2]], dtype=">f8"),
    np.array([[1], [nan], [2]], dtype="f2"),
    np.array([[1], [nan], [2]], dtype="g"),
    np.ma.array([[1], [99], [2]], mask=[[0], [1], [0]]),
    np.ma.array([[1.0], [99.0], [2.0]], mask=[[0], [1], [0]]),
    pd.DataFrame({"a": np.array([1, 2, 2], dtype=">i4")}).where([[True], [False], [True]]),
]


@pytest.mark.parametrize("X", ONE_TWO, ids=lambda X: type(X).__name__)
def test_numbers_of_every_type(X):
    assert_array_equal(read_input(X).column(0).values, [1, nan, 2])


def test_polars_of_every_type():
    pl = pytest.importorskip("polars")
    for dtype in (pl.Int128, pl.UInt128, pl.Int8, pl.Float32, pl.Decimal(10, 2)):
        X = pl.DataFrame({"a": pl.Series([1, None, 2]).cast(dtype)})
        assert_array_equal(read_input(X).column(0).values, [1, nan, 2])
        assert_array_equal(validate_target(X["a"].drop_nulls())[0][:, 0], [1, 2])
    huge = pl.DataFrame({"a": pl.Series([2**100, 1], dtype=pl.Int128)})
    assert_array_equal(read_input(huge).column(0).values, [2.0**100, 1])
    labels = pl.Series([1, 2, 1], dtype=pl.Int128)
    assert LabelCoder.fit(labels, np.ones(3)).classes.tolist() == [1, 2]
    spans = pl.DataFrame({"a": [dt.timedelta(hours=36), None]})
    assert_array_equal(read_input(spans).column(0).values, [1.5, nan])
    times = pl.DataFrame({"a": [dt.time(14, 30), None]})
    assert_array_equal(read_input(times).column(0).values, [14.5, nan])
    zoned = pl.DataFrame({"a": pl.Series([dt.datetime(2024, 1, 1)]).dt.replace_time_zone("Europe/Berlin")})
    assert read_input(zoned).column(0).unit == ":Europe/Berlin"
    enum = pl.DataFrame({"a": pl.Series(["x", "y", None], dtype=pl.Enum(["y", "x"]))})
    assert read_input(enum).column(0).levels == ("x", "y")
    with pytest.raises(InputError, match=r"lazy.*collect\(\)"):
        read_input(pl.LazyFrame({"a": [1]}))
    for nested in ([[1, 2], [3]], [{"x": 1}, {"x": 2}]):
        with pytest.raises(
            InputError, match=r"'a' of X holds (lists|records), the first in row 0 .*one value"
        ):
            read_input(pl.DataFrame({"a": nested})).column(0)


def test_arrays_of_dates_and_spans():
    assert_array_equal(
        read_input(np.array([["2024-01-01"], ["NaT"]], "M8[s]")).column(0).values, [19723, nan]
    )
    assert_array_equal(read_input(np.array([[36], [12]], "m8[h]")).column(0).values, [1.5, 0.5])
    masked = np.ma.array(np.array([["2024-01-01"], ["2024-01-02"]], "M8[D]"), mask=[[1], [0]])
    assert_array_equal(read_input(masked).column(0).values, [nan, 19724])


def test_records_are_refused_with_the_remedy():
    records = np.array([(1, 2.0), (3, 4.0)], dtype=[("a", int), ("b", float)])
    for given in (records, records[:, None], records.view(np.recarray)):
        with pytest.raises(InputError, match=r"X is a structured array with the fields 'a', 'b'; .*Frame"):
            read_input(given)
    for given in ({"a": [1, 3], "b": [2.0, 4.0]}, [{"a": 1, "b": 2.0}, {"a": 3, "b": 4.0}]):
        with pytest.raises(InputError, match=r"X is a (list of )?dicts? with the fields 'a', 'b'; .*Frame"):
            read_input(given)
    with pytest.raises(InputError, match="y is a structured array"):
        validate_target(records)
    with pytest.raises(InputError, match="y is a structured array"):
        LabelCoder.fit(records, np.ones(2))


def test_labels_of_either_byte_order():
    for labels in (np.array([1, 2, 1], ">i4"), np.array([1, 2, 1], ">f8"), np.array(["a", "b", "a"], ">U2")):
        coder = LabelCoder.fit(labels, np.ones(3))
        assert_array_equal(coder.encode(labels, 3), [0, 1, 0])


def test_what_is_masked_is_missing():
    mask = [0, 0, 1]
    for labels in (np.ma.array([1, 2, -9], mask=mask), np.ma.array(["a", "b", "z"], mask=mask)):
        with pytest.raises(InputError, match=r"NaN \(a missing label\) in row 2"):
            LabelCoder.fit(labels, np.ones(3))
    numbers = np.ma.array([1.0, 2.0, 1e9], mask=mask)
    with pytest.raises(InputError, match="row 2"):
        validate_target(numbers)
    with pytest.raises(InputError, match="row 2"):
        validate_weight(numbers, 3)


def test_targets_as_people_write_them():
    assert_array_equal(validate_target(["$1,234", "$5.50"])[0][:, 0], [1234, 5.5])
    assert_array_equal(validate_target(np.array([["1", "2%"], ["3", "4%"]]))[0], [[1, 2], [3, 4]])
    assert_array_equal(validate_target([Decimal("1.5"), 2])[0][:, 0], [1.5, 2])
    with pytest.warns(NongaussWarning, match="The target holds numbers such as '1,234', read as 1234"):
        validate_target(["1,234", "5,678"])
    with pytest.raises(InputError, match=r"y holds 'unknown' in row 30 .* not a number"):
        validate_target(["$5"] * 30 + ["unknown"])
    with pytest.raises(InputError, match=r"y holds 'red' in row 1 .* not a number"):
        validate_target([1.0, "red"])


def test_parquet_of_every_type(tmp_path):
    table = pa.table(
        {
            "decimal": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
            "span": pa.array([86_400, None], pa.duration("s")),
            "label": pa.array(["x", None]).dictionary_encode(),
            "day": pa.array([19723, None], pa.date32()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    found = read_input(read_table(tmp_path / "t.parquet"))
    assert_array_equal(found.column(0).values, [1.25, nan])
    assert_array_equal(found.column(1).values, [1, nan])
    assert found.column(2).levels == ("x",)
    assert_array_equal(found.column(3).values, [19723, nan])
    choices = [["red"], ["red", "blue"], None, [], ["blue"]] * 3
    pq.write_table(pa.table({"a": choices}), tmp_path / "n.parquet")
    found = read_table(tmp_path / "n.parquet")["a"]
    assert found[:2].tolist() == ["red", "red; blue"]
    assert found.isna()[:3].tolist() == [False, False, True]
    for cells in (found, pd.read_parquet(tmp_path / "n.parquet")["a"], pd.Series(choices)):
        assert decode("a", cells).kind == "choices"
        assert {"red", "red; blue", "blue"} <= set(decode("a", cells).levels)
    pq.write_table(pa.table({"a": [[1], [2]]}), tmp_path / "n.parquet")
    with pytest.raises(InputError, match="column 'a' holds lists or records"):
        read_table(tmp_path / "n.parquet")

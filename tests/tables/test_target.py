import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from nongauss.core.errors import InputError
from nongauss.tables.target import TargetScaler, TargetSummary, validate_target


def test_every_spelling_of_one_column_is_the_same():
    for y in (
        [1, 2, 3],
        np.array([1, 2, 3], dtype=np.int8),
        np.array([1.0, 2.0, 3.0], dtype=object),
        ["1", "2", "3"],
        pd.Series([1, 2, 3], dtype="Int64", index=[5, 6, 7]),
        np.ma.MaskedArray([1, 2, 3]),
    ):
        Y, was_1d = validate_target(y, 3)
        assert was_1d
        assert Y.dtype == np.float64
        assert Y.tolist() == [[1], [2], [3]]
    for column in (np.array([[1], [2], [3]]), pd.DataFrame({"y": [1, 2, 3]})):
        with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
            Y, was_1d = validate_target(column, 3)
        assert was_1d
        assert Y.tolist() == [[1], [2], [3]]


def test_several_outputs():
    frame = pd.DataFrame({"a": [1, 2], "b": pd.array([0.5, 1.5], dtype="Float64")})
    Y, was_1d = validate_target(frame, 2)
    assert not was_1d
    assert Y.tolist() == [[1, 0.5], [2, 1.5]]
    pl = pytest.importorskip("polars")
    np.testing.assert_array_equal(validate_target(pl.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}), 2)[0], Y)
    assert validate_target(pl.Series([1, 2]), 2)[0].tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "Model requires y to be passed, but the target y is None"),
        ([1, np.nan, np.nan], "Input y contains NaN .* in row 1"),
        (pd.Series([1, 2, None], dtype="Int64"), "NaN .* in row 2"),
        ([1, None, 3], "NaN .* in row 1"),
        ([1, 2, np.inf], "infinity in row 2"),
        (pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, np.nan]}), "NaN .* in row 2, output 'b'"),
        ([[1, 2], [3, -np.inf], [5, 6]], "infinity in row 1, output 1"),
        (["1", "low", "3"], "y holds 'low' in row 1"),
        ([1j, 2, 3], "Complex data not supported"),
        (np.array([1, 2j, 3], dtype=object), "Complex data not supported"),
        ([1, 2], "inconsistent numbers of samples: X has 3 rows, y has 2"),
        (np.zeros((3, 2, 1)), r"got \(3, 2, 1\)"),
        (np.zeros((3, 0)), r"got \(3, 0\)"),
        (5.0, r"got \(\)"),
        ([[1], [1, 2], [3]], "y is not a table of numbers"),
        (pd.Series(pd.date_range("2020", periods=3)), "datetime64"),
    ],
)
def test_unusable_targets(y, message):
    with pytest.raises(InputError, match=message):
        validate_target(y, 3, "Model")


def test_scaler_undoes_itself_and_mirrors_negative_skew():
    Y = np.random.RandomState(0).gamma(1.0, size=(40, 2)) * [3.0, -1e6] + [1.0, 5e6]
    scaler = TargetScaler.fit(Y)
    Z = scaler.transform(Y)
    assert scaler.constant == (False, False)
    assert scaler.scale[0] > 0 > scaler.scale[1]
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(Z.std(axis=0), 1, rtol=1e-13)
    np.testing.assert_allclose(scaler.inverse_mean(Z), Y, rtol=1e-13)
    moved = Y * [-1e6, 2.0] + [7.0, 0.0]
    np.testing.assert_allclose(TargetScaler.fit(moved).transform(moved), Z, atol=1e-12)


def test_weights_count_as_repetition():
    Y = np.random.RandomState(0).randn(6, 1)
    weight = np.array([0.0, 1, 2, 3, 0, 1])
    a, b = TargetScaler.fit(Y, weight), TargetScaler.fit(np.repeat(Y, weight.astype(int), axis=0))
    np.testing.assert_allclose([*a.centre, *a.scale], [*b.centre, *b.scale], rtol=1e-13)


@pytest.mark.parametrize(("value", "scale"), [(3.0, 3.0), (-2e6, 2e6), (0.0, 1.0)])
def test_constant_target(value, scale):
    scaler = TargetScaler.fit(np.full((10, 1), value))
    assert scaler.constant == (True,)
    assert (scaler.centre[0], scaler.scale[0]) == (value, scale)
    assert (scaler.transform(np.full((2, 1), value)) == 0).all()


def test_targets_of_parts_add_up_to_the_scaler_of_all_rows():
    rng = np.random.default_rng(0)
    Y, weight = np.stack([rng.gamma(2.0, size=50), np.full(50, 3.0)], axis=1), rng.uniform(0.5, 2.0, 50)
    parts = [TargetSummary.of(Y[a:b], weight[a:b], "test") for a, b in ((0, 1), (1, 30), (30, 50))]
    total, whole = parts[0] + parts[1] + parts[2], TargetScaler.fit(Y, weight)
    np.testing.assert_allclose(total.scaler().centre, whole.centre, rtol=1e-13)
    np.testing.assert_allclose(total.scaler().scale, whole.scale, rtol=1e-13)
    assert total.scaler().constant == whole.constant == (False, True)
    assert total.dims == 2

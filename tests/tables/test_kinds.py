import numpy as np
import pandas as pd
import pytest

from nongauss.core.errors import InputError
from nongauss.tables.kinds import ColumnKind, column_kind, target_kind

rng = np.random.RandomState(0)
CASES = [
    (rng.randn(100), ColumnKind.REAL),
    (np.exp(rng.randn(200)), ColumnKind.POSITIVE),
    (10 + rng.rand(100), ColumnKind.REAL),
    (rng.poisson(30, 100), ColumnKind.COUNT),
    (rng.poisson(30, 100).astype(float), ColumnKind.COUNT),
    ([0, 0, 0, 5, 0, 1], ColumnKind.COUNT),
    (rng.randint(1, 6, 100), ColumnKind.ORDINAL),
    (rng.randint(-500, 500, 100), ColumnKind.REAL),
    (100_000 + rng.randint(0, 50_000, 100), ColumnKind.REAL),
    ([0, 1, 1, 0], ColumnKind.BINARY),
    ([-1.0, 1.0, np.nan, -1.0], ColumnKind.BINARY),
    ([True, False, True], ColumnKind.BINARY),
    (["yes", "no", None, "yes"], ColumnKind.BINARY),
    (["a", "b", "c", "a"], ColumnKind.CATEGORICAL),
    ([f"id {i}" for i in range(50)], ColumnKind.TEXT),
    (pd.Categorical(["lo", "hi", "mid"], categories=["lo", "mid", "hi"], ordered=True), ColumnKind.ORDINAL),
    (pd.Categorical(["r", "g", "b"]), ColumnKind.CATEGORICAL),
    (pd.array([1, None, 2, 3, 1, 2, 3], dtype="Int64"), ColumnKind.ORDINAL),
    ([3, 3, 3], ColumnKind.CONSTANT),
    (["a", "a"], ColumnKind.CONSTANT),
    ([None, None], ColumnKind.CONSTANT),
    (np.array([1.5, "x"], dtype=object), ColumnKind.BINARY),
    (np.array([1, 2.5, None, 9], dtype=object), ColumnKind.REAL),
]


@pytest.mark.parametrize(("values", "kind"), CASES)
def test_kind_and_reason(values, kind):
    got, reason = target_kind(pd.Series(values))
    assert got is kind, reason
    assert reason.startswith("It ")
    assert reason.endswith(".")
    assert column_kind(values) is kind


def test_polars_frames_and_dates():
    pl = pytest.importorskip("polars")
    assert column_kind(pl.Series([1, 2, None, 2])) is ColumnKind.BINARY
    assert column_kind(pl.DataFrame({"y": ["a", "b", "c", "c"]})) is ColumnKind.CATEGORICAL
    with pytest.raises(InputError, match="One column"):
        column_kind(pd.DataFrame({"a": [1], "b": [2]}))
    assert column_kind(pd.Series(pd.date_range("2020-01-01", periods=5))) is ColumnKind.DATE
    with pytest.raises(InputError, match="turn them into numbers"):
        column_kind(pd.Series(pd.period_range("2020-01-01", periods=5)))

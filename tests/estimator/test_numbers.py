"""Numbers at the ends of their types: finite answers or a sentence, at the fit and at the prediction."""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars
import pytest

from catalogue import CATALOGUE, REGRESSORS, SUPERVISED
from fuzz.targets import is_of_scikit_learn
from nongauss.core.errors import InputError, NongaussWarning

every = pytest.mark.parametrize("entry", CATALOGUE, ids=lambda e: e.name)
N = 24
RNG = np.random.default_rng(0)
BASE = RNG.normal(size=(N, 3)).round(2)
SPAN = RNG.integers(1, 10_000, N)


def column(values, of=BASE):
    """The base table with other values in its second column."""
    return of[:, :1], values, of[:, 2:]


def stacked(values):
    return np.column_stack(column(values))


def framed(values):
    """The same as a frame, whose columns keep their types."""
    first, second, third = column(values)
    return pd.DataFrame({"a": first[:, 0], "b": second, "c": third[:, 0]})


FAR = np.where(np.arange(N) == 3, 1e200, BASE[:, 1])
TABLES = {
    "one cell of 1e200": stacked(FAR),
    "a row of 1e200": np.where((np.arange(N) == 3)[:, None], [1e200, -1e200, 1e200], BASE),
    "largest": stacked(np.where(np.arange(N) % 2, 1.7e308, -1.7e308)),
    "subnormal": stacked(BASE[:, 1] * 5e-320),
    "integers beyond 2**53": stacked(0 * SPAN).astype(np.int64)
    + 2**53
    + 1
    + np.c_[SPAN, SPAN[::-1], SPAN % 7],
    "smallest and largest integers": np.where(BASE > 0, np.iinfo(np.int64).max, np.iinfo(np.int64).min),
    "unsigned": np.where(BASE > 0, np.iinfo(np.uint64).max, np.uint64(SPAN[:, None])).astype(np.uint64),
    "decimal": framed([Decimal(str(x)) for x in BASE[:, 1]]),
    "decimal beyond doubles": framed([Decimal(f"{x}e400") for x in BASE[:, 1]]),
    "duration": framed(pd.to_timedelta(SPAN, unit="min")),
    "duration objects": framed([dt.timedelta(minutes=int(x)) for x in SPAN]),
    "Python integers of 400 digits": framed(pd.Series([10**400 + int(x) for x in SPAN], dtype=object)),
    "integers of 128 bits": polars.DataFrame(
        {"a": BASE[:, 0], "b": polars.Series([2**100 + int(x) for x in SPAN], dtype=polars.Int128), "c": SPAN}
    ),
}
WEIGHTS = {
    "tiny and huge": np.exp(RNG.uniform(-690.0, 690.0, N)),
    "tiny": np.full(N, 1e-300) * (1.0 + np.arange(N)),
    "huge": np.full(N, 1e300) * (1.0 + np.arange(N)),
    "subnormal": np.full(N, 5e-324),
}


def target(entry):
    return 1.5 * BASE[:, 0] + BASE[:, 2] if entry in REGRESSORS else (BASE[:, 0] > 0).astype(int)


def is_answered(work):
    """Does it give numbers, all finite? If not it is refused. Numeric warnings are errors as in all tests."""
    refused = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NongaussWarning)
            found = work()
    except ValueError as error:
        refused = error
    if refused is not None:
        assert isinstance(refused, InputError) or is_of_scikit_learn(refused), repr(refused)
        return False
    cells = found.to_numpy() if hasattr(found, "to_numpy") else np.asarray(found)
    if cells.dtype.kind == "f":
        assert np.isfinite(cells).all()
    elif cells.dtype == object:  # an imputer gives the cells in the types that they came in
        numbers = [cell for cell in cells.ravel() if isinstance(cell, float)]
        assert np.isfinite(numbers).all()
    return True


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.gate
@pytest.mark.parametrize("number", range(2 * len(TABLES)))
def test_a_table_of_such_numbers(number):
    """Each kind of table with two estimators, which differ from kind to kind."""
    entry = CATALOGUE[(5 * number + number // len(TABLES)) % len(CATALOGUE)]
    table = list(TABLES.values())[number % len(TABLES)]
    is_answered(lambda: entry.said(entry.make().fit(table, target(entry)), table))


@pytest.mark.gate
@every
def test_a_table_of_all_such_numbers(entry):
    """A column that is refused is refused by its name, and the others are then answered."""
    table, y = pd.DataFrame(BASE, columns=["a", "b", "c"]), target(entry)
    for name, numbers in TABLES.items():
        of = numbers["b"].to_list() if isinstance(numbers, polars.DataFrame) else numbers
        table[name] = of["b"] if isinstance(of, pd.DataFrame) else of[:, 1] if hasattr(of, "shape") else of
    while True:
        refused = []

        def work(refused=refused, table=table):
            try:
                return entry.said(entry.make().fit(table, y), table)
            except InputError as error:
                refused.append(str(error))
                raise

        if is_answered(work):
            break
        (named,) = [name for name in table if repr(name) in refused[0]]
        table = table.drop(columns=named)
    assert len(table.columns) >= 12


@pytest.mark.gate
@every
def test_rows_of_such_numbers_to_a_model_of_ordinary_ones(entry):
    model, y = entry.make(), target(entry)
    assert is_answered(lambda: entry.said(model.fit(BASE, y), BASE))
    for name, table in TABLES.items():
        if isinstance(table, np.ndarray):
            assert is_answered(lambda rows=table: entry.said(model, rows)), name
    with pytest.raises(ValueError, match=r"0 feature|features|columns"):
        entry.said(model, BASE[:, :0])
    is_answered(lambda: entry.said(model, BASE[:0]))


@pytest.mark.gate
@every
def test_weights_of_all_sizes(entry):
    if entry.name == "AutoImputer":
        return  # it takes none
    y, number = target(entry), CATALOGUE.index(entry)
    for name in ("tiny and huge", list(WEIGHTS)[1 + number % 3]):
        fit = partial(entry.make().fit, BASE, y, sample_weight=WEIGHTS[name])
        is_answered(lambda fit=fit: entry.said(fit(), BASE))


@every
@pytest.mark.parametrize("shape", [(0, 3), (N, 0), (0, 0)], ids=str)
def test_a_table_without_rows_or_columns_is_refused_in_a_sentence(entry, shape):
    y = target(entry)[: shape[0]]
    for table in (BASE[: shape[0], : shape[1]], pd.DataFrame(BASE[: shape[0], : shape[1]])):
        with pytest.raises(ValueError, match=r"(?i)row|sample|column|feature"):
            entry.make().fit(table, y) if entry in SUPERVISED else entry.make().fit(table)

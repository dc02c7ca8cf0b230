"""What a target is refused for, and what it is to a task."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nongauss.cli.judge import rows_like
from nongauss.cli.read import Declared, prepare
from nongauss.core.errors import InputError

N = 90
rng = np.random.default_rng(0)
X = rng.random(N)
REAL, PRICES, YEARS = rng.normal(size=N), rng.permutation(10_000)[:N], rng.integers(1990, 2020, N)
HALVES, TWO = np.round(2 * (1 + 2 * X)) / 2, np.where(X > 0.5, 0.5, 1.5)


def ready(y, model="auto", task="auto", kind=None):
    return prepare(pd.DataFrame({"x": X, "y": y}), "y", model, task, declared=Declared(kind=kind))


@pytest.mark.parametrize(
    ("y", "asked"),
    [
        (REAL, {"model": "rank_factor"}),
        (REAL, {"task": "classification"}),
        (REAL, {"task": "ordinal"}),
        (REAL, {"kind": "label"}),
        (REAL, {"kind": "grade"}),
        (PRICES, {"model": "rank_factor"}),
        (PRICES, {"task": "classification"}),
    ],
)
def test_numbers_that_are_too_many_are_no_labels(y, asked):
    with pytest.raises(InputError, match="'y' holds 90 different numbers in 90 rows, too many for labels"):
        ready(y, **asked)


@pytest.mark.parametrize(
    ("y", "asked", "labels"),
    [
        (HALVES, {}, [1, 1.5, 2, 2.5, 3]),
        (HALVES, {"kind": "label"}, ["1", "1.5", "2", "2.5", "3"]),
        (HALVES, {"model": "rank_factor"}, ["1", "1.5", "2", "2.5", "3"]),
        (TWO, {}, ["0.5", "1.5"]),
        (YEARS, {"model": "rank_factor"}, np.unique(YEARS).tolist()),
        (PRICES, {"kind": "label"}, np.unique(PRICES).tolist()),
    ],
)
def test_numbers_as_labels(y, asked, labels):
    assert np.unique(ready(y, **asked).y).tolist() == labels


def test_few_rows_of_a_file_have_the_levels_of_the_table():
    table = ready(HALVES)
    rows = pd.DataFrame({"x": [0.1, 0.5, 0.9], "y": [1.5, 2.0, 3.0]})
    held, _ = rows_like(table, rows, Declared(), "new.csv")
    np.testing.assert_array_equal(held.y, [1.5, 2.0, 3.0])


@pytest.mark.parametrize(
    ("step", "asked"),
    [
        (1.0, {"task": "classification"}),
        (1.0, {"task": "ordinal"}),
        (1.0, {"kind": "label"}),
        (0.5, {"task": "classification"}),
        (0.5, {"kind": "label"}),
    ],
)
def test_numbers_that_all_recur_are_classes_however_many(step, asked):
    y = step * np.tile(np.arange(60.0), 4)
    frame = pd.DataFrame({"x": np.arange(len(y)), "y": y})
    found = prepare(frame, "y", "auto", asked.get("task", "auto"), declared=Declared(kind=asked.get("kind")))
    assert len(np.unique(found.y)) == 60


def test_whole_numbers_that_are_too_many_may_be_declared_labels():
    with pytest.raises(InputError, match="or add --kind label if they are names"):
        ready(PRICES, task="classification")
    with pytest.raises(InputError, match="or round them"):
        ready(REAL, task="classification")

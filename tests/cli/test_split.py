"""Which rows are held out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nongauss.cli.read import Declared, prepare
from nongauss.cli.split import HeldOut, declared_split, split_rows, time_order
from nongauss.core.errors import InputError


def ready(n, **columns):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)}).assign(**columns)
    if "y" not in frame:
        frame["y"] = rng.normal(size=n)
    return frame


@pytest.mark.parametrize(("n", "folds"), [(20, 5), (200, 5), (400, 3), (600, 2), (1000, 1), (5000, 1)])
def test_parts_are_held_out_until_200_rows_are(n, folds):
    split = split_rows(prepare(ready(n), "y"), HeldOut(), seed=0)
    assert len(split.folds) == folds
    tests = [test for _, test in split.folds]
    assert all(abs(len(test) - n / 5) < 1 for test in tests)
    assert len(np.unique(np.concatenate(tests))) == sum(map(len, tests)) >= min(n, 200)
    for train, test in split.folds:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(n))
    assert split.dependence.several == (folds > 1)
    assert len(split_rows(prepare(ready(n), "y"), HeldOut(), 0, several=False).folds) == 1


def test_labels_are_held_out_in_proportion_and_never_all_of_one():
    table = prepare(ready(100, y=["a"] * 80 + ["b"] * 19 + ["c"]), "y")
    ((train, test),) = split_rows(table, HeldOut(), 1, several=False).folds
    assert pd.Series(table.y[test]).value_counts().to_dict() == {"a": 16, "b": 4}
    ((_, again),) = split_rows(table, HeldOut(), 2, several=False).folds
    assert not np.array_equal(test, again)
    for train, test in split_rows(table, HeldOut(), 1).folds:
        assert set(table.y[train]) == {"a", "b", "c"}
        assert pd.Series(table.y[test]).value_counts()["b"] in (3, 4)


@pytest.mark.parametrize("n", [60, 3000])
def test_groups_stay_together_and_are_the_units_of_chance(n):
    group = np.random.RandomState(1).randint(0, 15, n)
    table = prepare(ready(n, who=group), "y", declared=Declared(group="who"))
    split = split_rows(table, HeldOut(), seed=0)
    assert "who" not in table.X
    for train, test in split.folds:
        assert not set(group[train]) & set(group[test])
        assert 0.05 < len(test) / n < 0.35
    tests = np.concatenate([test for _, test in split.folds])
    np.testing.assert_array_equal(split.dependence.groups, group[tests])
    one = prepare(ready(n, who=1), "y", declared=Declared(group="who"))
    with pytest.raises(InputError, match="one group"):
        split_rows(one, HeldOut(), 0)


def test_the_last_rows_are_those_of_the_latest_dates():
    days = pd.date_range("2026-01-01", periods=50).to_numpy()
    order = np.random.RandomState(0).permutation(50)
    table = prepare(ready(50, day=days[order]), "y")
    split = split_rows(table, HeldOut("last"), seed=0)
    ((train, test),) = split.folds
    assert days[order][train].max() < days[order][test].min()
    assert len(test) == 10
    assert "'day'" in split.text
    assert len(np.unique(split.dependence.groups)) == 10  # blocks of neighbours
    assert time_order(table) is None
    assert time_order(prepare(ready(50, day=days), "y")) == "day"
    assert time_order(prepare(ready(50, day=days[::-1]), "y")) == "day"
    ((_, test),) = split_rows(prepare(ready(50), "y"), HeldOut("last"), seed=0).folds
    np.testing.assert_array_equal(test, np.arange(40, 50))


def test_what_is_asked_for_is_read():
    nothing = Declared()
    assert declared_split("random", None, 0.3, nothing) == (HeldOut("random", 0.3), nothing)
    assert declared_split("last", None, 0.2, nothing)[0].how == "last"
    for text in ("by who", "by:who", "by=who"):
        asked, declared = declared_split(text, None, 0.2, nothing)
        assert (asked.how, declared.group) == ("random", "who")
        assert asked.declared is declared
    for text in ("first", "by", "bywho"):
        with pytest.raises(InputError, match="--split is random, last"):
            declared_split(text, None, 0.2, nothing)
    with pytest.raises(InputError, match="give only one of them"):
        declared_split("last", Path("test.csv"), 0.2, nothing)
    for share in (-0.1, 1, 1.5, float("nan")):
        with pytest.raises(InputError, match="held-out share"):
            declared_split("random", None, share, nothing)


def test_a_group_of_nearly_all_rows_is_not_held_out():
    table = prepare(ready(60, who=["one"] + ["rest"] * 59), "y", declared=Declared(group="who"))
    ((train, test),) = split_rows(table, HeldOut(), 0).folds
    assert (len(train), test.tolist()) == (59, [0])
    pair = prepare(ready(14, who=["one"] * 7 + ["rest"] * 7), "y", declared=Declared(group="who"))
    assert len(split_rows(pair, HeldOut(), 0).folds) == 2

"""Which rows are held out: at random, of groups that stay together, the last in time, or fold after fold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.cli.choose import REGRESSION
from nongauss.cli.read import NOTHING, Declared, Table
from nongauss.core.errors import InputError
from nongauss.report.evidence import Dependence, blocks

Rows = npt.NDArray[np.intp]

RANDOM, LAST, BY = "random", "last", "by"
ENOUGH_ROWS = 200
"""Held-out rows that can tell a model of some worth from none; parts are held out in turn until there are."""

_FEWEST_ROWS = 10
_FEWEST_DATES = 10


@dataclass(frozen=True)
class Split:
    """Folds, pairs (rows to fit, rows to hold out) in ascending order, and how held-out rows hang together.

    `text` says how rows were held out. Without folds nothing is held out, and `text` says why.
    """

    text: str
    folds: Sequence[tuple[Rows, Rows]] = ()
    dependence: Dependence = field(default_factory=Dependence)


@dataclass(frozen=True)
class HeldOut:
    """What a person asks to be judged by: a `share` of the rows, "random" or "last", or the file `test`.

    `declared` is what was said of the table, which holds of that file too.
    """

    how: str = RANDOM
    share: float = 0.2
    test: Path | None = None
    declared: Declared = NOTHING


def declared_split(
    split: str, test: Path | None, share: float, declared: Declared
) -> tuple[HeldOut, Declared]:
    """What `--split` and `--test` ask for; "by COLUMN" declares groups. Raises InputError for nonsense."""
    check_share(share)
    word = split.strip()
    if test is not None and word != RANDOM:
        raise InputError(
            "--test gives the rows for evaluation, so --split has nothing to choose; give only one of them."
        )
    if word.startswith(BY) and word[len(BY) :].strip(" :=") and word[len(BY)] in " :=":
        declared = replace(declared, group=word[len(BY) :].strip(" :="))
        word = RANDOM
    if word not in (RANDOM, LAST):
        raise InputError(f'--split is random, last or "by COLUMN", got {split!r}.')
    told = "test" if test is not None else LAST if word == LAST else ""
    declared = replace(declared, split=told)
    return HeldOut(word, share, test, declared), declared


def check_share(test_size: float) -> None:
    """Raises InputError for a held-out share that is none."""
    if not 0 <= test_size < 1:
        raise InputError(f"The held-out share must be at least 0 and below 1, got {test_size}.")


def split_rows(table: Table, held_out: HeldOut, seed: int, *, several: bool = True) -> Split:
    """Which rows of a table are held out.

    At random, labels are held out in proportion, but never all rows of one; rows of a group stay together.
    With fewer than 300 rows and `several`, each row is held out once. Of fewer than 10 rows, or with share 0,
    none is.
    """
    share, n = held_out.share, len(table.y)
    check_share(share)
    if share == 0:
        return Split("No rows were held out.")
    if n < _FEWEST_ROWS:
        return Split(
            f"{n} row{'s are' if n > 1 else ' is'} too few to hold any out ({_FEWEST_ROWS} are needed)."
        )
    if held_out.how == LAST:
        return _last(table, share)
    n_parts = max(2, round(1.0 / share))
    n_tests = min(n_parts, math.ceil(ENOUGH_ROWS / (share * n))) if several and share <= 0.5 else 1
    part = _dealt(table, share, seed, n_parts if n_tests > 1 else 1)
    tests = [test for k in range(n_tests) if len(test := np.flatnonzero(part == k))]
    if not tests:
        return Split(f"{n} rows with no label occurring twice leave none to hold out.")
    tests = [test for test in tests if n - len(test) >= min(_FEWEST_ROWS, n // 2)]
    if not tests:
        return Split("Each group, held out, would leave too few rows to fit.")
    folds = [(np.setdiff1d(np.arange(n), test), test) for test in tests]
    groups = None if table.groups is None else np.concatenate([table.groups[test] for test in tests])
    text = "at random" if groups is None else "at random, by whole groups"
    return Split(text, folds, Dependence(groups, len(folds) > 1))


def _dealt(table: Table, share: float, seed: int, n_parts: int) -> Rows:
    """The part in which each row is held out, -1 for none (N,)."""
    n, rng = len(table.y), np.random.default_rng(seed)
    if table.groups is not None:
        return _groups_dealt(table.groups, share, rng, n_parts)
    order = rng.permutation(n)
    fold = np.full(n, -1, dtype=np.intp)
    spare = order
    if table.choice.task != REGRESSION:
        # In order of class, the first row of each class left out.
        label = pd.factorize(np.asarray(table.y))[0][order]
        by_class = np.argsort(label, kind="stable")
        spare = order[by_class[1:][np.diff(label[by_class]) == 0]]
    if n_parts > 1:
        fold[spare] = np.arange(len(spare)) % n_parts
        return fold
    n_test = min(max(1, round(share * n)), n - 2, len(spare))
    # Equal steps through the rows, which hold out classes in proportion.
    fold[spare[((np.arange(n_test) + 0.5) * len(spare) / max(n_test, 1)).astype(np.intp)]] = 0
    return fold


def _groups_dealt(groups: npt.NDArray[Any], share: float, rng: np.random.Generator, n_parts: int) -> Rows:
    """As `_dealt`, whole groups at a time: each, in random order, to the part with the fewest rows so far."""
    which = pd.factorize(groups, use_na_sentinel=False)[0]
    sizes = np.bincount(which)
    if len(sizes) < 2:
        raise InputError("All rows belong to one group, so none can be held out; give another column.")
    fold_of = np.full(len(sizes), -1, dtype=np.intp)
    taken = np.zeros(min(n_parts, len(sizes)))
    for group in rng.permutation(len(sizes)):
        if n_parts == 1:
            if taken[0] > 0 and taken[0] + sizes[group] > share * len(which):
                continue
            if taken[0] + sizes[group] >= len(which):
                continue
        k = int(np.argmin(taken))
        fold_of[group] = k
        taken[k] += sizes[group]
    return fold_of[which]


def _last(table: Table, share: float) -> Split:
    """The last rows by the only date column there is, else in the order of the file."""
    n, dates = len(table.y), date_columns(table)
    order, by = np.arange(n), "in the order of the file"
    if len(dates) == 1:
        ((name, days),) = dates.items()
        order, by = np.argsort(days, kind="stable"), f"by {name!r}"
        order = np.concatenate([order[np.isnan(days[order])], order[~np.isnan(days[order])]])
    n_test = min(max(1, round(share * n)), n - 2)
    test = order[n - n_test :]
    train = np.sort(order[: n - n_test])
    return Split(f"the last {by}", [(train, test)], Dependence(blocks(n_test)))


def date_columns(table: Table) -> dict[str, npt.NDArray[np.float64]]:
    """The days of each column of dates, (N,) with NaN for gaps, by the name of the column."""
    out = {}
    for number, name in enumerate(table.X.columns):
        column = table.rows.column(number)
        if column.kind == "date" and column.values is not None:
            out[str(name)] = column.values
    return out


def time_order(table: Table) -> str | None:
    """The name of a column of dates in whose order the rows stand, None if there is none."""
    for name, days in date_columns(table).items():
        known = days[~np.isnan(days)]
        steps = np.diff(known)
        if len(np.unique(known)) >= _FEWEST_DATES and ((steps >= 0).all() or (steps <= 0).all()):
            return name
    return None

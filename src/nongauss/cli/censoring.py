"""Which rows have a target that is only a limit: a column that says so, read alike at the fit and later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.column import Column
from nongauss.tables.frame import InputTable
from nongauss.tables.roles import EVENT_WORDS, TIME_WORDS
from nongauss.tables.words import is_named, typed

CENSORED_WORDS = ("censored", "cens", "censoring", "censor")
SEEN_WORDS = (
    *("event", "status", "died", "dead", "death", "observed", "failure", "failed", "churn", "churned"),
    *("relapse", "relapsed", "complete", "completed", "fstat", "arrest", "delta"),
)
_SIDES = {
    0: "none, no, exact, observed, event, uncensored, seen, done, closed, complete, completed, finished,"
    " ended, died, dead, deceased, failed, failure, relapse, relapsed, churned, resolved, discharged",
    1: "right, censored, right censored, waiting, ongoing, active, alive, pending, withdrawn, open, lost,"
    " running, lost to follow up, in progress, unobserved, not observed, not seen, unfinished, incomplete",
    -1: "left, left censored",
}
_CODES = {word: side for side, words in _SIDES.items() for word in words.split(", ")}
_BEGINNINGS = ("still ", "not yet ", "yet to ", "awaiting ")
"""With what a word begins that says of a row that its end is not seen."""


@dataclass(frozen=True)
class Censoring:
    """Cells (N,) that `fit` takes by `name` for rows whose target is a limit, and how labels were read.

    "censoring" is 1 where the true target is above the one given, -1 where it is below; "y_upper" is an upper
    end of it. `sides`: by label, what a cell of it says.
    """

    name: str
    cells: NDArray[Any]
    sides: Mapping[str, int] = field(default_factory=dict)


def read_censoring(column: Column, value: str, y: Any) -> Censoring:
    """Which targets y (N,) are only limits, by a column; those labelled `value` have a true target above.

    Raises InputError where the column does not say which rows are censored.
    """
    labels = column.as_labels()
    used = _used(labels)
    shown = ", ".join(used[:8])
    if value:
        if value not in used:
            raise InputError(f"Column {column.name!r} has no value {value!r}; it has {shown}.")
        return _by_labels(labels, {level: int(level == value) for level in used})
    if column.values is not None and len(used) > 3:
        upper = _upper_ends(column)
        if np.asarray(y).dtype.kind in "fiu" and bool((upper >= np.asarray(y)).all()):
            return Censoring("y_upper", upper)
    elif not labels.missing.any():
        sides = _meaning(column, used)
        if sides is not None:
            return _by_labels(labels, sides)
    raise InputError(
        f"Column {column.name!r} does not say which rows are censored (it holds {shown}); give "
        f"--censored {typed(column.name, 'VALUE')} with the value of those whose true target is above the "
        "one given, or a column of upper ends."
    )


def censoring_as_fitted(column: Column, sides: Mapping[str, int]) -> Censoring:
    """Which targets of new rows are only limits: by the `sides` that labels had at the fit, else upper ends.

    Raises InputError for a label that is new.
    """
    if not sides:
        if column.values is None:
            raise InputError(f"Column {column.name!r} held upper ends in training; here it holds text.")
        return Censoring("y_upper", _upper_ends(column))
    labels = column.as_labels()
    used = _used(labels)
    by_word = {_plain(level): side for level, side in sides.items()} | dict(sides)
    found = {level: by_word.get(level, by_word.get(_plain(level), _side(level))) for level in used}
    unknown = [level for level, side in found.items() if side is None]
    if unknown:
        raise InputError(
            f"Column {column.name!r} holds {unknown[0]!r}, which it did not in training, so it is unknown if "
            "such rows are censored; give "
            f"--censored {typed(column.name, 'VALUE')} with the value that marks them."
        )
    return _by_labels(labels, {level: int(side or 0) for level, side in found.items()})


def _used(labels: Column) -> list[str]:
    """The labels that some cell holds, in their order."""
    assert labels.codes is not None
    return [labels.levels[code] for code in np.unique(labels.codes[labels.codes >= 0])]


def _upper_ends(column: Column) -> NDArray[np.float64]:
    """Upper ends (N,), infinite where there are none."""
    assert column.values is not None
    out: NDArray[np.float64] = np.where(np.isnan(column.values), np.inf, column.values)
    return out


def _by_labels(labels: Column, sides: Mapping[str, int]) -> Censoring:
    """By the side of each label; a cell without one says that its row is exact."""
    of_code = np.array([*(sides.get(level, 0) for level in labels.levels), 0], dtype=np.int64)
    return Censoring("censoring", of_code[labels.codes], dict(sides))


def _plain(level: str) -> str:
    """A word without its case, its parts separated by one blank."""
    return " ".join(level.casefold().replace("_", " ").split())


def _side(level: str) -> int | None:
    """1 where a word says that the true target is above, -1 below, 0 exact; None of a word not known."""
    word = _plain(level)
    if word.startswith(_BEGINNINGS):
        return 1
    return _CODES.get(word, _CODES.get(word.replace("-", " ")))


def _meaning(column: Column, used: Sequence[str]) -> dict[str, int] | None:
    """The side of each label, as of `_side`: by its word, by -1, 0, 1, or by the column's name; or None."""
    sides = {level: _side(level) for level in used}
    if None not in sides.values():
        return {level: int(side or 0) for level, side in sides.items()}
    if column.values is not None and {"-1"} <= set(used) <= {"-1", "0", "1"}:
        return {level: int(level) for level in used}
    if len(used) > 2:
        return None
    yes = [level for level in used if level.strip().casefold() in ("true", "yes", "y")]
    if column.values is None and not yes:
        return None
    top = yes[0] if yes else used[-1]
    if is_named(column.name, CENSORED_WORDS):
        return {level: int(level == top) for level in used}
    if is_named(column.name, SEEN_WORDS):
        return {level: int(level != top) for level in used}
    return None


LENGTHS = (*TIME_WORDS, "stay", "stayed", "los", "wait", "waiting", "length", "hour", "hours", "lasted")
"""Words in the names of targets that are times until an end."""


def hints_of_limits(rows: InputTable, y: Any, target: str) -> list[str]:
    """A sentence on each column of labels that says of some rows that their end has not been seen.

    `y` (N,): a target that is a length of time, by its name and its values; none of others.
    """
    values = np.asarray(y)
    if values.dtype.kind not in "fiu" or values.min() < 0 or not is_named(target, LENGTHS):
        return []
    found = []
    for place, name in enumerate(rows.labels):
        column = rows.column(place)
        if column.values is not None or column.codes is None or is_named(name, EVENT_WORDS):
            continue  # those named so are told of by their names
        sides = {level: _side(level) for level in _used(column)}
        open_ = [level for level, side in sides.items() if side == 1]
        if open_ and None not in sides.values() and len(sides) > len(open_):
            n = int(np.isin(column.codes, [column.levels.index(level) for level in open_]).sum())
            shown = " or ".join(map(repr, open_))
            found.append(
                f"Column {name!r} says {shown} in {n:,} rows: if {target!r} is only a lower limit there, "
                f"give --censored {typed(name)}, so that these rows are taken as longer."
            )
    return found


def said_of(found: Censoring, column: str, y: Any) -> str:
    """A note that counts the rows with a limit among those with targets y (N,)."""
    if found.name == "y_upper":
        n = int((found.cells > np.asarray(y)).sum())
        return (
            f"In {n:,} of {len(found.cells):,} rows the target lies between its value and that of {column!r}."
        )
    sides = [(int((found.cells == side).sum()), where) for side, where in ((1, "above"), (-1, "below"))]
    told = [f"{n:,} rows have a true target {where} the given one" for n, where in sides if n]
    return f"By {column!r}, {' and '.join(told) or 'no row is censored'} (of {len(found.cells):,})."

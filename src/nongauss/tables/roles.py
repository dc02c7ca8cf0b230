"""What each input column is for, or why it is left out, and what in it a person should know before a fit.

`understand_columns(table, ...)` gives a `ColumnRole` for each column, in words; nothing is changed. Row
numbers, ids, codes without meaning, texts, empty, constant and repeated columns are not used; copies of the
target, values that seem to stand for a gap, and dates in the order of the rows are warned of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.column import Column, label_of
from nongauss.tables.frame import InputTable
from nongauss.tables.gap_values import gap_warnings
from nongauss.tables.kinds import kind_of
from nongauss.tables.kinds.code import CODE_WORDS
from nongauss.tables.kinds.label import FEW_ROWS, MOST_LEVELS, order_of_features
from nongauss.tables.words import is_head, is_named, typed

FloatArray = NDArray[np.float64]

ID_WORDS = (
    "id",
    "identifier",
    "uuid",
    "guid",
    "index",
    "rowid",
    "key",
    "unnamed",
    "row",
    "no",
    "nr",
    "number",
)
ALONG_WORDS = (
    *("time", "day", "week", "month", "year", "hour", "minute", "second", "t", "x", "date", "step", "period"),
    *(
        "epoch",
        "position",
        "distance",
        "rank",
        "order",
        "temperature",
        "dose",
        "age",
        "cycle",
        "round",
        "depth",
    ),
)
EVENT_WORDS = (
    *("event", "status", "died", "dead", "death", "censored", "cens", "observed", "failure", "failed"),
    *("churn", "churned", "relapse", "relapsed", "survived", "fstat", "arrest"),
)
TIME_WORDS = (
    *("time", "duration", "survival", "tenure", "lifetime", "followup", "futime", "days", "day", "weeks"),
    *("week", "months", "month", "years", "stop", "tte", "pfs", "os", "lenfol"),
)
MANY_LABELS, FEWEST_ROWS_A_LABEL = 20, 3
"""More labels than this, of fewer rows each on average, are left out: they cost more than they tell."""

_LOOK = 200
_WORDS_OF_TEXT = 4.0
_DISTINCT_OF_TEXT = 0.5
_FEW_LEVELS = 10
_LARGEST_WHOLE = 2.0**53  # beyond, different whole numbers may be one float64


@dataclass(frozen=True)
class ColumnRole:
    """What a column is for. `role`: "number", "date", "label" or "grade" (of an ordered category) where it is
    `used`; else "id", "code", "text", "empty", "constant", "copy" or "ignored".

    `as_label`: its numbers are names, and a model must see them as labels. `reason`: a few words. `warnings`:
    pairs of what was seen ("gap", "leak", "time", "censoring") and a sentence.
    """

    name: str
    role: str
    used: bool
    reason: str = ""
    as_label: bool = False
    warnings: tuple[tuple[str, str], ...] = ()


def understand_columns(
    table: InputTable, *, target: Any = None, target_name: str = "", use: Collection[str] = ()
) -> tuple[ColumnRole, ...]:
    """The role of each column of a table of N rows.

    `target` (N,): its numbers, or labels of any type, by which copies of it are found; None: not looked for.
    `use`: columns that are used whatever they look like. Raises InputError for cells of no kind.
    """
    is_along = target is not None and bool(is_named(target_name, TIME_WORDS))
    look = None if target is None else _TargetLook.of(target)
    first: dict[bytes, str] = {}
    alone = table.shape[1] == 1
    roles = []
    for place, name in enumerate(table.labels):
        column = table.column(place)
        role = _role(column, name, alone=alone, use=name in use)
        same = first.setdefault(_digest(column), name)
        if same != name and role.used and name not in use:
            role = ColumnRole(name, "copy", False, f"the same cells as {same!r}")
        if role.used:
            role = replace(role, warnings=(*role.warnings, *_seen_of_target(column, look, target_name)))
        if role.used and is_along and is_named(name, EVENT_WORDS) and _n_levels(column) == 2:
            role = replace(role, warnings=(*role.warnings, ("censoring", _on_censoring(name, target_name))))
        roles.append(role)
    return tuple(roles)


def _role(column: Column, name: str, *, alone: bool, use: bool) -> ColumnRole:
    """The role of a column by itself. `alone`: there is no other; `use`: it is used if it says anything."""
    missing = column.missing
    if column.n_rows == 1 and not missing.all():
        return ColumnRole(name, "label" if column.values is None else "number", True, "one row")
    if missing.all():
        return ColumnRole(name, "empty", False, "no value at all")
    if column.kind == "date":
        return _date_role(column, name)
    if column.values is not None:
        return _number_role(column, column.values[~missing], name, use=use or alone)
    if column.kind == "pair" and _n_levels(column) > 1:
        return ColumnRole(name, "number", True, "pairs, as two numbers")
    if column.kind == "choices":
        return ColumnRole(name, "label", True, "lists of choices, each as yes or no")
    return _label_role(column, name, use=use)


def _constant(column: Column, name: str) -> ColumnRole:
    """A column of one value, with which rows where it is missing have none."""
    n = int(column.missing.sum())
    where = f"one value, and {n:,} empty cells" if n else "the same value in every row"
    return ColumnRole(name, "constant", False, where)


def _date_role(column: Column, name: str) -> ColumnRole:
    """A date; a warning where the rows are in its order."""
    assert column.values is not None
    days = column.values[~column.missing]
    if days.min() == days.max():
        return _constant(column, name)
    shown = [kind_of("date").shown(day, "", 0.0) for day in (days.min(), days.max())]
    steps = np.diff(days)
    in_order = len(days) > FEW_ROWS and bool((steps >= 0).all() or (steps <= 0).all())
    warning = (
        f"The rows are in the order of {name!r}: rows held out at random are easier than later ones will be; "
        f"hold out the last ones with --split last."
    )
    role = ColumnRole(name, "date", True, f"{shown[0]} to {shown[1]}")
    return replace(role, warnings=(("time", warning),)) if in_order else role


def _number_role(column: Column, values: FloatArray, name: str, *, use: bool) -> ColumnRole:
    """A number, a code that a model must see as a label, or an id."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        return _constant(column, name)
    role = ColumnRole(name, "number", True, f"{low:g} to {high:g}", warnings=gap_warnings(values, name))
    if use or column.kind not in ("number", "code") or not _are_whole(values):
        return role
    if len(values) > FEW_ROWS and low in (0.0, 1.0) and high == low + len(values) - 1:
        in_order = bool((np.diff(values) == 1).all())
        is_id = is_named(name, ID_WORDS)
        if (in_order and not is_named(name, ALONG_WORDS)) or (is_id and pd.Series(values).is_unique):
            return ColumnRole(name, "id", False, f"the row numbers {low:g} to {high:g}")
    word = is_head(name, CODE_WORDS)
    if not word or low < 0 or len(values) <= FEW_ROWS:
        return role
    n_levels = len(np.unique(values))
    if n_levels == len(values) or low > _LARGEST_WHOLE:
        why = f"a different number in every row, an id as its name ({word}) says"
        return ColumnRole(name, "id", False, why)
    if n_levels <= min(MOST_LEVELS, len(values) / 2):
        why = f"{n_levels} codes, as its name ({word}) says"
        return ColumnRole(name, "label", True, why, as_label=True)
    return ColumnRole(
        name, "code", False, f"{n_levels:,} codes, as its name ({word}) says, too many for labels"
    )


def _label_role(column: Column, name: str, *, use: bool) -> ColumnRole:
    """A label or a grade; an id, or a text, where most of its labels occur once."""
    assert column.codes is not None
    codes = column.codes[column.codes >= 0]
    used = np.flatnonzero(np.bincount(codes, minlength=len(column.levels)))
    if len(used) == 1:
        return _constant(column, name)
    n = len(codes)
    some = [column.levels[place] for place in used[:_LOOK]]
    n_words = float(np.mean([len(level.split()) for level in some]))
    if n > FEW_ROWS and len(used) > _DISTINCT_OF_TEXT * n and n_words >= _WORDS_OF_TEXT:
        return ColumnRole(name, "text", False, f"{len(used):,} different texts, which no model here can read")
    if len(used) == n and len(column.missing) == n and n > FEW_ROWS and not use:
        return ColumnRole(name, "id", False, "a different text in every row")
    if len(used) > MOST_LEVELS:
        return ColumnRole(
            name, "code", False, f"{len(used):,} different labels, more than the {MOST_LEVELS} that are used"
        )
    if len(used) > MANY_LABELS and n < FEWEST_ROWS_A_LABEL * len(used) and not use:
        why = f"{len(used)} labels in {n} rows, too few rows each to learn from; "
        why += f"--use {typed(name, listed=True)} takes it in"
        why += f"; it {column.note}" if column.note else ""
        return ColumnRole(name, "code", False, why)
    if column.ranks:
        return ColumnRole(name, "grade", True, f"{len(used)} ordered levels")
    if order := order_of_features([column.levels[place] for place in used]):
        return ColumnRole(
            name, "grade", True, f"{len(used)} levels, {order[0]} < {order[1]} < … < {order[-1]}"
        )
    zeros = all(level.isdigit() for level in some) and any(level[0] == "0" < level for level in some)
    reason = f"{len(used)} labels" + " of digits, some with a leading 0" * zeros
    role = ColumnRole(name, "label", True, reason)
    if len(used) <= max(_FEW_LEVELS, n / 5):
        return role
    warning = (
        f"Column {name!r} has {len(used)} labels in {n} rows, too few rows each to learn much from; leave it "
        f"out with --ignore {typed(name, listed=True)} if they are names."
    )
    return replace(role, warnings=(("many labels", warning),))


@dataclass(frozen=True)
class _TargetLook:
    """A target (N,) as numbers, or as codes of its labels; one of both is None."""

    values: FloatArray | None
    codes: NDArray[np.intp] | None

    @classmethod
    def of(cls, target: Any) -> _TargetLook:
        array = np.asarray(target)
        if array.dtype.kind in "iuf" and len(np.unique(array)) > _FEW_LEVELS:
            return cls(array.astype(np.float64), None)
        return cls(None, pd.factorize(pd.Series(target))[0].astype(np.intp))


def _seen_of_target(
    column: Column, look: _TargetLook | None, target_name: str
) -> tuple[tuple[str, str], ...]:
    """A warning where a column gives the target away: the same, or in the same or the opposite order."""
    if look is None or column.n_rows <= FEW_ROWS:
        return ()
    how = ""
    if look.values is not None and column.values is not None and column.kind != "date":
        known = ~column.missing
        if known.sum() > FEW_ROWS and _same_order(column.values[known], look.values[known]):
            how = "has its rows in exactly the order of"
    elif look.codes is not None:
        codes = column.codes
        if column.values is not None and _n_levels(column) <= MOST_LEVELS:
            codes = pd.factorize(column.values)[0].astype(np.intp)
        if codes is not None and _same_labels(codes, look.codes):
            how = "says the same in every row as"
    if not how:
        return ()
    return (
        (
            "leak",
            f"Column {column.name!r} {how} the target {target_name!r}: if it is not known before the target "
            f"is, leave it out with --ignore {typed(column.name, listed=True)}.",
        ),
    )


def _same_order(x: FloatArray, y: FloatArray) -> bool:
    """Do rows in the order of x have y in its order, or in the opposite one?"""
    if len(x) > 2 * _LOOK and not _same_order(x[:_LOOK], y[:_LOOK]):
        return False
    for sign in (1.0, -1.0):
        if bool((np.diff(y[np.lexsort((y, sign * x))]) >= 0).all()):
            return bool(x.max() > x.min() and y.max() > y.min())
    return False


def _same_labels(a: NDArray[np.intp], b: NDArray[np.intp]) -> bool:
    """Is there one label of b for each of a, and the other way round, over the rows where a is there?"""
    known = a >= 0
    a, b = a[known], b[known]
    if len(a) <= FEW_ROWS:
        return False
    pairs = len(np.unique(a * (int(b.max()) + 1) + b))
    return pairs == len(np.unique(a)) == len(np.unique(b)) > 1


def _on_censoring(name: str, target_name: str) -> str:
    how = f"--censored {typed(name)} (or {typed(name, 'VALUE')} of rows that were not)"
    seen = f"Column {name!r} looks like it says whether {target_name!r} was seen to its end"
    return f"{seen}: if so, give {how}, so that these are taken as longer."


def _n_levels(column: Column) -> int:
    if column.values is not None:
        return len(np.unique(column.values[~column.missing]))
    assert column.codes is not None
    return len(np.unique(column.codes[column.codes >= 0]))


def _are_whole(values: FloatArray) -> bool:
    head = values[:_LOOK]
    return bool((head == np.round(head)).all()) and bool((values == np.round(values)).all())


def _digest(column: Column) -> bytes:
    """Equal for columns with the same cells."""
    held = column.values if column.values is not None else column.codes
    assert held is not None
    text = "\0".join(column.levels) if column.values is None else ""
    return hashlib.blake2b(held.tobytes() + text.encode("utf-8", errors="replace"), digest_size=16).digest()


def with_gaps(frame: pd.DataFrame, missing: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """A table whose cells of certain values are gaps: by column, or "" for all columns.

    Values are compared as numbers where both are, else as text. Raises InputError for a column that is not
    there.
    """
    out = frame.copy(deep=False)
    for name, values in missing.items():
        if name and name not in out.columns:
            raise InputError(f"There is no column {name!r} in which {values[0]} could stand for a gap.")
        for column in [name] if name else list(out.columns):
            is_gap = _are_cells(out[column], values)
            if is_gap.any():
                out[column] = out[column].mask(is_gap)
    return out


def _are_cells(column: pd.Series[Any], values: Sequence[Any]) -> NDArray[np.bool_]:
    """Which cells (N,) are one of some values."""
    texts = {label_of(value) for value in values}
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
        numbers = pd.to_numeric(pd.Series(sorted(texts)), errors="coerce").dropna().to_numpy(dtype=np.float64)
        return np.isin(column.to_numpy(dtype=np.float64, na_value=np.nan), numbers)
    codes, levels = pd.factorize(column)
    found = [label_of(level).strip() in texts for level in levels]
    return np.asarray([*found, False], dtype=np.bool_)[codes]

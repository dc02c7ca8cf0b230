"""What a target is: its kind with the reason, the kinds that are near, and the target as its models take it.

`understand_target(column, name)` looks at the cells and at the name; what a person declares goes before both.
Where two kinds are near the safer one is taken and the other is named: numbers before counts unless small
counts are seen, labels before grades unless an order is declared or evident.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.column import Column, ColumnKind, TargetKind, as_pandas, label_of, sorted_labels, tidy
from nongauss.tables.frame import InputTable
from nongauss.tables.kinds import decode, decode_target, flat, kind_of
from nongauss.tables.number_text import is_currency, read_numbers, unit_key
from nongauss.tables.target_numbers import CLASS_WORDS, GRADE_WORDS, MOST_LABELS, PERCENT_NOTE, numbers_kind
from nongauss.tables.words import is_named, known_order, typed

FloatArray = NDArray[np.float64]

FEW_TEXTS = 10  # up to so many labels a target may have in any number of rows

SYNONYMS = {
    "ordinal": "grade",
    "categorical": "label",
    "class": "label",
    "zeros": "positive with zeros",
    "time": "censored time",
    "percent": "share",
    "number": "real",
}
NUMBERS = (
    *(ColumnKind.REAL, ColumnKind.POSITIVE, ColumnKind.ZEROS, ColumnKind.COUNT, ColumnKind.SHARE),
    ColumnKind.TIME,
)
"""Kinds of targets whose values are numbers."""

RULES = {
    ColumnKind.POSITIVE: "positive numbers are above 0",
    ColumnKind.TIME: "times are above 0",
    ColumnKind.ZEROS: "none may be below 0",
    ColumnKind.COUNT: "counts are whole and not below 0",
    ColumnKind.SHARE: "shares are from 0 to 1, or percent from 0 to 100",
}
DECLARED, GUESSED = "It was declared.", "a guess: alphabetical order"
_LARGEST_WHOLE = 2.0**53  # beyond, a float64 does not tell whole numbers apart

DECLARABLE = (*NUMBERS, ColumnKind.GRADE, ColumnKind.LABEL, ColumnKind.BINARY)


def column_kind(series: Any) -> ColumnKind:
    """The kind of one column (series, array or list); see `understand_target` for the rules."""
    return understand_target(series).kind


def understand_target(
    column: Any,
    name: str = "",
    *,
    kind: str | ColumnKind | None = None,
    levels: Sequence[Any] = (),
    counted: bool = False,
    censored: bool = False,
    inputs: InputTable | None = None,
) -> TargetKind:
    """What a target is: see `TargetKind`. Missing cells are left out.

    Parameters
    ----------
    column : series, array or list (N,) of the cells as they came.
    name : its name, which tells counts from grades and labels.
    kind, levels : declared by a person; `levels` of grades from lowest to highest.
    counted, censored : an exposure was declared, so it is a count; or rows with a bound, so it is a time.
    inputs : the other columns; whether whole numbers are steps is seen from how they go with these.

    Raises: InputError for a table with several columns, cells of no kind, and cells that the declared kind
    cannot have, naming the first.
    """
    raw = one_column(column).reset_index(drop=True)
    found = decode_target(name or "target", raw)
    asked = _asked(kind, levels, counted, censored)
    if found.missing.all():
        return TargetKind(ColumnKind.CONSTANT, "It holds no value at all.")
    seen = _seen(raw, found, name, inputs)
    if asked is None:
        return seen
    told = _declared(asked, seen, found, [label_of(level) for level in levels])
    by = "an exposure was given" if counted else "censored rows were declared" if censored else ""
    return (
        replace(told, reason=f"This kind was chosen because {by}.")
        if by and kind is None and not levels
        else told
    )


def one_column(given: Any) -> pd.Series[Any]:
    """One column as a series. Raises InputError for a table of several."""
    column = as_pandas(given)
    if isinstance(column, pd.DataFrame):
        if column.shape[1] != 1:
            raise InputError(
                f"One column is needed to tell its kind, got {column.shape[1]}; pass one of them."
            )
        column = column.iloc[:, 0]
    if column is None:
        if not isinstance(given, pd.api.extensions.ExtensionArray):
            values = np.asarray(given)
            given = values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values
        column = pd.Series(given)
    return column


def kind_named(word: str) -> ColumnKind:
    """The kind that a person may declare by a word. Raises InputError for another word."""
    plain = str(word).strip().casefold().replace("_", " ").replace("-", " ")
    plain = SYNONYMS.get(plain, plain)
    for kind in DECLARABLE:
        if kind.value == plain:
            return kind
    words = ", ".join(sorted(kind.value for kind in DECLARABLE))
    near = difflib.get_close_matches(plain, words.split(", "), n=1, cutoff=0.5)
    meant = f"did you mean {near[0]!r}? There are" if near else "there are"
    raise InputError(f"There is no kind of target {word!r}; {meant}: {words}.")


def _asked(
    kind: str | ColumnKind | None, levels: Sequence[Any], counted: bool, censored: bool
) -> ColumnKind | None:
    """The kind that follows from what was declared; None where nothing was."""
    if kind is not None:
        return kind if isinstance(kind, ColumnKind) else kind_named(kind)
    if levels:
        return ColumnKind.GRADE
    if censored:
        return ColumnKind.TIME
    return ColumnKind.COUNT if counted else None


def _seen(raw: pd.Series[Any], column: Column, name: str, inputs: InputTable | None) -> TargetKind:
    """What a column (N,) with a value at least is by its look and its name."""
    said = (column.note, _lost(column))
    notes = tuple(f"Column {name!r} {one}." for one in said if one)
    if column.kind == "date":
        return replace(_of_dates(column), notes=notes)
    if column.values is None:
        return replace(_of_labels(raw, column, name), notes=notes)
    values = column.values[~column.missing]
    if (values == values[0]).all():
        only = kind_of("number").shown(values[0], "", 0.0)
        return TargetKind(ColumnKind.CONSTANT, f"It holds only the value {only}.", notes=notes)
    unit = unit_key(column.unit[1:])
    if column.kind == "clock":
        notes, unit = (*notes, f"Column {name!r} is read as hours: 1:30 is 1.5."), "h"
    elif unit == "s" and any(":" in level for level in column.levels):
        notes = (*notes, f"Column {name!r} is read as seconds: 1:30.0 is 90.")
    rows = None if inputs is None else inputs.take(~column.missing)
    seen = numbers_kind(values, name, unit=unit, inputs=rows)
    return replace(seen, notes=(*notes, *seen.notes))


def _lost(column: Column) -> str:
    return f"has cells without a value, which count as missing: {column.lost}" if column.lost else ""


def _of_dates(column: Column) -> TargetKind:
    """A date, with the first and the last day."""
    assert column.values is not None
    shown = [
        kind_of("date").shown(day, "", 0.0) for day in (np.nanmin(column.values), np.nanmax(column.values))
    ]
    return TargetKind(ColumnKind.DATE, f"It holds dates from {shown[0]} to {shown[1]}.")


def _of_labels(raw: pd.Series[Any], column: Column, name: str) -> TargetKind:
    """Binary, a grade, labels, or text that is no target."""
    assert column.codes is not None
    used = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels)) > 0
    labels = [level for level, is_used in zip(column.levels, used, strict=True) if is_used]
    if len(labels) == 1:
        return TargetKind(ColumnKind.CONSTANT, f"It holds only the value {labels[0]}.")
    if column.ranks:
        order = tuple(column.levels[i] for i in np.argsort(column.ranks))
        reason = f"It is an ordered category with {len(labels)} levels in use."
        near = ((ColumnKind.LABEL, "It holds labels if their order does not matter."),)
        return TargetKind(ColumnKind.GRADE, reason, near, levels=order)
    if len(labels) == 2:
        return TargetKind(ColumnKind.BINARY, f"It holds two different labels ({labels[0]} and {labels[1]}).")
    is_category = isinstance(raw.dtype, pd.CategoricalDtype)
    cause = _why_text(column, labels, is_category)
    if cause:
        return TargetKind(ColumnKind.TEXT, cause)
    by_name = is_named(name, GRADE_WORDS)
    order_known = known_order(labels, letters=bool(by_name))
    reason = f"It holds {len(labels)} different labels without a known order."
    if order_known is None:
        near = ((ColumnKind.GRADE, "It holds grades if its labels have an order."),)
        return TargetKind(ColumnKind.LABEL, reason, near)
    order, what = order_known
    near_label = ((ColumnKind.LABEL, "It holds labels if their order does not matter."),)
    near_grade = ((ColumnKind.GRADE, f"It holds grades if {' < '.join(order[:6])} is an order."),)
    if what.startswith("numbers") and not by_name:
        return TargetKind(ColumnKind.LABEL, f"It holds {len(labels)} labels that are numbers.", near_grade)
    if what.startswith("numbered") and is_named(name, CLASS_WORDS) and not by_name:
        return TargetKind(ColumnKind.LABEL, reason, near_grade)
    said = f"It holds {len(labels)} labels that have an order ({what})."
    return TargetKind(ColumnKind.GRADE, said, near_label, levels=order, order=what)


def _why_text(column: Column, labels: list[str], is_category: bool) -> str:
    """Why labels are too many to be the classes of a target, with the likely cause; "" where they are not."""
    assert column.codes is not None
    n, k = int((column.codes >= 0).sum()), len(labels)
    is_odd = ~np.array([*_are_numbers(column.levels), True])[column.codes]
    if not is_category and 0 < 2 * int(is_odd.sum()) < n:
        row = int(np.argmax(is_odd))
        cell = column.levels[column.codes[row]]
        return (
            f"It holds numbers, but {cell!r} in row {row + 1} below the names ({int(is_odd.sum())} of {n} "
            f"cells are not numbers); if {cell!r} says that there is none, give "
            f"--missing {typed(column.name, cell)}."
        )
    if k <= FEW_TEXTS or (k <= MOST_LABELS and 5 * k <= n):
        return ""
    if is_category and k <= MOST_LABELS:
        return ""
    digits = float(np.mean([any(sign.isdigit() for sign in label) for label in labels]))
    words = float(np.mean([len(label.split()) for label in labels]))
    if words >= 4:
        cause = "it is free text, which no model here can predict"
    elif digits > 0.5:
        cause = "these are amounts, units or dates in a form that was not read, or names of rows"
    elif k == n:
        cause = "these are the names of rows"
    else:
        cause = "these are names, most of which occur too rarely to be predicted"
    if column.note.startswith("mixes"):
        note = column.note.replace(" and is treated as labels", "")
        cause = f"they are amounts of several units: it {note}"
    shown = ", ".join(repr(label) for label in labels[:3])
    return f"It holds {k} different texts in {n} rows ({shown}, …), too many for classes: likely {cause}."


def _are_numbers(texts: Sequence[str]) -> NDArray[np.bool_]:
    """Which texts (L,) are bare numbers, or money or percent where they are many."""
    if len(texts) <= FEW_TEXTS:
        return pd.to_numeric(pd.Series(texts), errors="coerce").notna().to_numpy()
    found = read_numbers(texts)
    keys = [unit_key(str(pattern)) for pattern in found.patterns]
    plain = np.array([key in ("", "%") or is_currency(key) for key in keys], dtype=np.bool_)
    return plain & ~(np.isnan(found.point) & np.isnan(found.comma))


def _declared(asked: ColumnKind, seen: TargetKind, column: Column, levels: list[str]) -> TargetKind:
    """The kind that a person declared, checked against the cells (N,), which may have gaps."""
    if asked in NUMBERS:
        percent = _check_numbers(asked, column)
        notes = (*(note for note in seen.notes if note != PERCENT_NOTE), *(PERCENT_NOTE,) * percent)
        scale = 100.0 if percent else 1.0
        return TargetKind(asked, DECLARED, notes=notes, scale=scale, declared=True)
    if asked is not ColumnKind.GRADE:
        return TargetKind(asked, DECLARED, notes=seen.notes, declared=True)
    labels = column.as_labels()
    if levels:
        _check_levels(labels, levels)
        return TargetKind(asked, DECLARED, notes=seen.notes, levels=tuple(levels), declared=True)
    if seen.kind is ColumnKind.GRADE:
        return replace(seen, declared=True)
    assert labels.codes is not None
    present = [labels.levels[code] for code in np.unique(labels.codes[labels.codes >= 0])]
    order, what = known_order(present, letters=bool(is_named(column.name, GRADE_WORDS))) or (
        tuple(present),
        GUESSED,
    )
    return TargetKind(asked, DECLARED, notes=seen.notes, levels=order, order=what, declared=True)


def _check_numbers(asked: ColumnKind, column: Column) -> bool:
    """Are these percent? Raises InputError naming the first cell that the declared kind cannot have."""
    if column.values is None:
        assert column.codes is not None
        row = int(np.argmax(column.codes >= 0))
        raise InputError(
            f"Column {column.name!r} was declared {asked.value}, which are numbers, but holds "
            f"{column.levels[column.codes[row]]!r} in row {row + 1} below the names; correct it, or declare "
            "it to be a label or a grade."
        )
    v = np.where(np.isnan(column.values), 1.0, column.values)
    percent = asked is ColumnKind.SHARE and bool((v > 1).any())
    outside = {
        ColumnKind.POSITIVE: v <= 0,
        ColumnKind.TIME: v <= 0,
        ColumnKind.ZEROS: v < 0,
        ColumnKind.COUNT: (v < 0) | (v != np.round(v)),
        ColumnKind.SHARE: (v < 0) | (v > (100.0 if percent else 1.0)),
    }.get(asked)
    if outside is not None and outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"Column {column.name!r} was declared {asked.value}, but holds {v[row]:g} in row {row + 1} below "
            f"the names, and {RULES[asked]}; correct it, or declare it to be real."
        )
    return percent


def _check_levels(labels: Column, levels: list[str]) -> None:
    """Raises InputError for levels named twice, and for the first cell that is none of them."""
    assert labels.codes is not None
    if len(set(levels)) < max(len(levels), 2):
        raise InputError(f"The levels must be two or more different ones in order, got {', '.join(levels)}.")
    known = np.array([*(level in levels for level in labels.levels), True])
    odd = ~known[labels.codes]
    if odd.any():
        row = int(np.argmax(odd))
        raise InputError(
            f"Column {labels.name!r} holds {labels.levels[labels.codes[row]]!r} in row {row + 1} below the "
            f"names, which is none of the levels {', '.join(levels)}; add it to them, or correct the cell."
        )


def target_values(column: Any, found: TargetKind, name: str = "") -> Any:
    """The target (N,) as models of its kind take it, from cells without gaps.

    Numbers as float64, percent as shares; grades as an ordered category unless they are numbers by size;
    labels as they are, whole numbers as such, other numbers as text. Raises InputError for text where the
    kind needs numbers.
    """
    raw = one_column(column).reset_index(drop=True)
    if found.kind in NUMBERS or found.kind is ColumnKind.CONSTANT:
        cells = decode(name or "target", raw)
        numbers = flat(cells, "clock" if cells.kind == "clock" else "number", "", 0.0)
        assert numbers.values is not None
        return numbers.values / found.scale
    numeric = pd.api.types.is_numeric_dtype(raw.dtype) and not pd.api.types.is_bool_dtype(raw.dtype)
    if found.kind is ColumnKind.GRADE:
        if isinstance(raw.dtype, pd.CategoricalDtype) and raw.cat.ordered and not found.declared:
            return raw
        if not (numeric and list(found.levels) == list(sorted_labels(found.levels))):
            texts = np.array([label_of(cell) for cell in raw.to_numpy(dtype=object)], dtype=object)
            return pd.Series(pd.Categorical(texts, categories=list(found.levels), ordered=True))
    if pd.api.types.is_bool_dtype(raw.dtype):
        return raw.to_numpy(dtype=np.bool_)
    if numeric:
        values = raw.to_numpy(dtype=np.float64)
        whole = (np.abs(values) < _LARGEST_WHOLE) & (values == np.round(values))
        if whole.all() or found.kind is ColumnKind.GRADE:
            return values.astype(np.int64) if whole.all() else values
    labels = raw.to_numpy(dtype=object)
    text = label_of if numeric else tidy
    return np.array([text(x) if numeric or isinstance(x, str) else x for x in labels], dtype=object)


def target_numbers(column: Any, found: TargetKind, name: str = "") -> FloatArray:
    """The target (N,) as float64, percent as shares; True and False are 1 and 0.

    Raises InputError naming a cell that is no number.
    """
    cells = decode(name or "target", one_column(column))
    values = cells.values
    if values is None:
        assert cells.codes is not None
        numbers = pd.to_numeric(
            pd.Series([{"True": "1", "False": "0"}.get(level, level) for level in cells.levels]),
            errors="coerce",
        ).to_numpy(dtype=np.float64)
        values = numbers[cells.codes]
        if np.isnan(values).any():
            odd = cells.levels[cells.codes[int(np.argmax(np.isnan(values)))]]
            raise InputError(
                f"The target {cells.name!r} is of kind {found.kind.value} but has values that are not "
                f"numbers, the first {odd!r}; choose a numeric column, or predict its labels."
            )
    scaled: FloatArray = values / found.scale
    return scaled

"""Columns that look like something else than inputs: names of groups, sizes of counts, numbers of rows.

Nothing is changed; a person is told before the fit by which option they are to be declared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nongauss.tables.column import Column, ColumnKind, TargetKind
from nongauss.tables.frame import InputTable
from nongauss.tables.kinds.label import FEW_ROWS
from nongauss.tables.roles import ALONG_WORDS, ColumnRole
from nongauss.tables.words import is_head, is_named, typed, words_of

_GROUPS = re.compile(
    "(patient(en)?|proband(en)?|subject|participant|respondent|person|household|haushalt|famil(y|ie|ies|ien)|customer|client|kunden?|"
    "user|member|student|pupil|schüler|school|schule|class(room)?|teacher|hospital|clinic|klinik|cent(er|re)|site|"
    "cluster|group|gruppe|batch|plot|farm|herd|litter|animal|mouse|rat|cow|donor|sample|specimen|session|device|"
    "sensor|machine|vehicle|driver|store|shop|firm|company|subj|ward|village|panel|player|team)s?(nr|id)?"
)
_NAMES_OF = ("id", "ids", "identifier", "nr", "no", "number", "key", "num", "nummer")
_FEWEST, _FEWEST_WITHOUT_ID, _ROWS_EACH = 5, 12, 2.0
_EXPOSURES = re.compile(
    r"exposures?|(person|patient|policy|vehicle|bed|insured)_?(years?|days?|months?|time|hours?)|population|pop|"
    r"duration|follow_?up(_?(time|days|years))?|observ(ed|ation)_?(time|days|years)|(years|days|time)_?at_?risk|"
    r"at_?risk|hours_worked|offset"
)


def with_hints(
    table: InputTable, roles: Sequence[ColumnRole], found: TargetKind, declared: Sequence[str]
) -> tuple[ColumnRole, ...]:
    """The roles of a table's columns, in its order, with warnings of those that look like something else.

    `found`: what the target is. `declared`: what among "group", "exposure" and "split" a person has said,
    which is not hinted at.
    """
    counts = ColumnKind.COUNT in (found.kind, *(kind for kind, _ in found.near))
    out = []
    for place, role in enumerate(roles):
        column = table.column(place)
        if "group" not in declared and _looks_like_groups(column, role.name):
            others = tuple(warning for warning in role.warnings if warning[0] != "many labels")
            role = replace(role, warnings=(*others, ("group", _on_groups(column, role.name))))
        if "split" in declared:
            role = replace(role, warnings=tuple(each for each in role.warnings if each[0] != "time"))
        if counts and "exposure" not in declared and role.used and _looks_like_exposure(column, role.name):
            said = (
                f"Column {role.name!r} looks like the exposure of each count (time or size): --exposure "
                f"{typed(role.name)} models the rate for one unit of it."
            )
            role = replace(role, warnings=(*role.warnings, ("exposure", said)))
        if role.used and counts_rows(column, role.name):
            role = replace(role, warnings=(*role.warnings, ("row numbers", _on_row_numbers(role.name))))
        if role.used and _are_merged(column):
            role = replace(role, warnings=(*role.warnings, ("merged cells", _on_merged(column, role.name))))
        out.append(role)
    return tuple(out)


def _looks_like_groups(column: Column, name: str) -> bool:
    """Does a column name persons, places or things that several rows are of?

    Its name must end with these or names of them: "driver", "driver id", "school name"; not "driver age".
    """
    words = words_of(name)
    head = [word for word in words if not word.isdigit() and word not in (*_NAMES_OF, "name", "code")]
    if not head or not _GROUPS.fullmatch(head[-1]) or column.missing.all():
        return False
    is_id = bool(is_head(name, _NAMES_OF)) or words[-1].endswith("nr")
    n, levels = _n_and_levels(column)
    return levels >= (_FEWEST if is_id else _FEWEST_WITHOUT_ID) and n >= _ROWS_EACH * levels


def _n_and_levels(column: Column) -> tuple[int, int]:
    """Cells that are there, and how many different ones; numbers with fractions all count as different."""
    there = ~column.missing
    if column.values is None:
        assert column.codes is not None
        return int(there.sum()), len(np.unique(column.codes[there]))
    values = column.values[there]
    if column.kind not in ("number", "code") or not (values == np.round(values)).all():
        return len(values), len(values)
    return len(values), len(np.unique(values))


def _on_groups(column: Column, name: str) -> str:
    n, levels = _n_and_levels(column)
    return (
        f"Column {name!r} seems to identify groups of rows ({levels} in {n} rows): held-out rows are too "
        f"easy to predict if rows of the same group are in the training rows. "
        f"--group {typed(name)} holds out whole groups and removes the column from the inputs."
    )


def counts_rows(column: Column, name: str) -> bool:
    """Does a column rise by one from row to row, as numbers do that are given out in order?"""
    if column.values is None or column.kind == "date" or column.n_rows <= FEW_ROWS or column.missing.any():
        return False
    return bool((np.diff(column.values) == 1).all()) and not is_named(name, ALONG_WORDS)


def _on_row_numbers(name: str) -> str:
    return (
        f"Column {name!r} rises by one from row to row: if it only numbers the rows, leave it out with "
        f"--ignore {typed(name, listed=True)}."
    )


def _are_merged(column: Column) -> bool:
    """Does each label stand once, the first in the first row, with empty cells below, as merged cells do?"""
    if column.codes is None:
        return False
    filled = np.flatnonzero(column.codes >= 0)
    once = len(np.unique(column.codes[filled])) == len(filled)
    few = once and 1 < len(filled) <= column.n_rows / 3 and filled[0] == 0
    return bool(few and (np.diff(filled) > 1).all())


def _on_merged(column: Column, name: str) -> str:
    n_labels = int((~column.missing).sum())
    return (
        f"Column {name!r} has {n_labels} different labels, each in one of {column.n_rows} rows with empty "
        "cells below: if cells were merged there, copy each label down; otherwise the rows below it have "
        "no label."
    )


def _looks_like_exposure(column: Column, name: str) -> bool:
    """Is a column of numbers above 0 called as times and sizes of counts are?"""
    if column.values is None or not _EXPOSURES.fullmatch("_".join(words_of(name))):
        return False
    values = column.values[~column.missing]
    return len(values) == len(column.values) and bool((values > 0).all())

"""The target of a table: what it is taken for, what is refused, and its values as a task takes them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.cli.choose import ORDINAL, REGRESSION, likelihoods
from nongauss.cli.declared import Declared
from nongauss.core.errors import InputError
from nongauss.tables.column import ColumnKind, TargetKind
from nongauss.tables.frame import read_input
from nongauss.tables.kinds import decode, decode_target, flat
from nongauss.tables.labels import LabelCoder, are_few
from nongauss.tables.number_text import unit_key
from nongauss.tables.target_kinds import NUMBERS, target_numbers, target_values, understand_target


def understood(
    column: pd.Series, target: str, declared: Declared, inputs: pd.DataFrame, task: str
) -> TargetKind:
    """What the target is, as it looks or as it was declared. Raises InputError where no model predicts it."""
    found = understand_target(
        column,
        target,
        kind=declared.kind,
        levels=declared.levels,
        counted=declared.exposure is not None,
        censored=declared.censored is not None,
        inputs=read_input(inputs) if inputs.shape[1] else None,
    )
    _check_is_target(found, target, task)
    _check_varies(found, target)
    return found


def for_task(
    column: pd.Series, found: TargetKind, task: str, target: str, levels: tuple[str, ...] = ()
) -> tuple[Any, npt.NDArray[Any] | None, TargetKind]:
    """The target as a task takes it, its levels in order where it is ordinal, and what it was taken for.

    `levels`: those that are declared.
    """
    if task == REGRESSION:
        return target_numbers(column, found, target), None, found
    if not levels:
        _check_few(column, found, target)
    if task != ORDINAL:
        return target_values(column, replace(found, kind=ColumnKind.LABEL), target), None, found
    if found.kind is not ColumnKind.GRADE:
        found = understand_target(column, target, kind=ColumnKind.GRADE)
    y = target_values(column, found, target)
    if levels and isinstance(y, np.ndarray):
        return y, np.array(sorted(map(float, levels))).astype(y.dtype), found
    coder = LabelCoder.fit(y, np.ones(len(y)), f"The target {target!r}", ordered=True)
    return y, coder.classes, found


def check_likelihood(name: Any, y: Any, rows: npt.NDArray[np.intp], target: str) -> None:
    """Raises InputError where a likelihood that was asked for cannot have the target y (N,) of these rows."""
    if not isinstance(name, str):
        return
    try:
        likelihoods()[name]().check(np.asarray(y, dtype=np.float64))
    except InputError as error:

        def below(found: re.Match[str]) -> str:
            return f"row {rows[int(found[1])] + 1} below the names"

        said = re.sub(r"row (\d+) \(counted from 0\)", below, str(error))
        raise InputError(f"The target {target!r}: {said[0].lower()}{said[1:]}") from error


def _check_varies(found: TargetKind, target: str) -> None:
    """Raises InputError for a target that has one value in every row."""
    if found.kind is ColumnKind.CONSTANT:
        raise InputError(
            f"There is nothing to predict in the target {target!r}. {found.reason} Choose another column, or "
            "add rows in which it has other values."
        )


def _check_is_target(found: TargetKind, target: str, task: str) -> None:
    """Raises InputError for a target that no model predicts, unless it was asked to be labels."""
    if task not in ("auto", REGRESSION) or found.kind not in (ColumnKind.TEXT, ColumnKind.DATE):
        return
    what = f"The target {target!r} cannot be predicted as it is. {found.reason}"
    if found.kind is ColumnKind.DATE:
        raise InputError(f"{what} Give the days since a start, or the length of time, as a number instead.")
    raise InputError(
        f"{what} Correct or empty the cells, choose another column, or give --kind label if it holds classes."
    )


def _check_few(column: pd.Series, found: TargetKind, target: str) -> None:
    """Raises InputError for numbers that hardly occur twice; whole ones may be declared labels."""
    values = decode(target, column).values
    if values is None or are_few(values) or 2 * len(np.unique(values)) <= len(values):
        return
    is_whole = not np.mod(values, 1.0).any()
    if found.kind in NUMBERS or not is_whole:
        others = "add --kind label if they are names" if is_whole else "round them"
        raise InputError(
            f"The target {target!r} holds {len(np.unique(values))} different numbers in {len(column)} "
            "rows, too many for labels or grades; take a model of numbers (--model tggm or sparse_gp; no "
            f"--task or --kind), or {others}."
        )


def in_unit(column: pd.Series, target: str, form: str) -> pd.Series:
    """A target of other rows (N,) as numbers in the unit of the fit, of the `form` ".# ms"; "" for none.

    It stays as it is where it has that unit, or none. Raises InputError for a unit of another quantity.
    """
    cells = decode_target(target, column)
    units = {unit_key(form[1:]), unit_key(cells.unit[1:]) if cells.kind == "quantity" else ""}
    if len(units) < 2 or "" in units:
        return column
    return pd.Series(flat(cells, "quantity", form, 0.0).values, index=column.index, name=column.name)

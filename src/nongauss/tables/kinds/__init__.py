"""The kinds of columns, one file each. This list is all that knows them; data and reports share it.

A column is decoded by the first kind in `KINDS` that takes its cells. Its kind owns what is kept of it, the
flat columns of numbers or labels that models see, and how its values are printed. To add one, write a file
with a subclass of `Kind` and put an instance into `KINDS`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.tables.column import Cells, Column, ColumnKind, Kind, as_pandas, label_of, not_usable
from nongauss.tables.kinds.date import Date
from nongauss.tables.kinds.label import FEW_ROWS, Label
from nongauss.tables.kinds.number import Number

__all__ = [
    "KINDS",
    "ColumnKind",
    "Kind",
    "column_kind",
    "decode",
    "flat",
    "kind_of",
    "names_rows",
    "target_kind",
]

KINDS: tuple[Kind, ...] = (Number(), Date(), Label())
"""In the order in which they are asked."""

_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_of(name: str) -> Kind:
    """The kind with this name. Raises KeyError."""
    return _BY_NAME[name]


def decode(name: str, raw: Any) -> Column:
    """The cells of a column, a pandas series or an array (N,), by the kind that takes them.

    Raises: InputError for cells of no kind, naming the column and the first bad row; TypeError for objects.
    """
    cells = Cells(name, raw)
    for kind in KINDS if cells.may_be_values else (_BY_NAME["label"],):
        column = kind.decode(cells)
        if column is not None:
            return column
    raise _refusal(cells)


def flat(column: Column, kind: str, part: str, origin: float) -> Column:
    """A flat column of new rows, as the kind of fit lays it out, whatever kind the rows are taken for now."""
    if column.kind and column.kind != kind:
        column = _BY_NAME[column.kind].plain(column)
    return _BY_NAME[kind].flat(column, part, origin)


def column_kind(series: Any) -> ColumnKind:
    """The kind of one column (series, array or list); see `target_kind` for the rules."""
    return target_kind(series)[0]


def target_kind(series: Any) -> tuple[ColumnKind, str]:
    """The kind of one column and a sentence that says why. Missing cells are left out.

    The first rule that applies: at most one value: constant. An ordered categorical: ordinal. Text, unordered
    categories, True/False: binary with two values, text if no value repeats (more than 10 of them), else
    categorical. Numbers: two whole numbers: binary; 3 to 10 consecutive whole numbers, each twice on average:
    ordinal; whole numbers from 0 to 10,000: count; positive with skewness above 1: positive; else real.
    Dates, and texts that all are: date.

    Raises: InputError for a table with several columns, cells of no kind, or mixed cells.
    """
    column = _series(series).dropna()
    distinct = column.nunique()
    if distinct <= 1:
        only = f"only the value {label_of(column.iloc[0])}" if distinct else "no value at all"
        return ColumnKind.CONSTANT, f"It holds {only}."
    for kind in KINDS:
        described = kind.describe_target(column)
        if described is not None:
            return described
    content = pd.api.types.infer_dtype(column, skipna=True)
    raise InputError(f"The column holds {content} values, which have no kind here; turn them into numbers.")


def names_rows(series: Any) -> bool:
    """Are the cells of a column texts that all differ, of more than `FEW_ROWS` rows without a gap: an id?

    A kind that takes such texts for values, as dates are, has the word.
    """
    column = _series(series)
    if len(column) <= FEW_ROWS or pd.api.types.is_numeric_dtype(column) or column.dtype.kind in "mMb":
        return False
    present = column.dropna()
    texts = len(present) == len(column) and present.is_unique and all(isinstance(v, str) for v in present)
    return texts and target_kind(present)[0] is ColumnKind.TEXT


def _series(given: Any) -> pd.Series[Any]:
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


def _refusal(cells: Cells) -> Exception:
    """The error for cells of no kind: complex numbers, numbers beside text, dates, whatever else."""
    raw, name = cells.raw, cells.name
    is_typed = not isinstance(raw, pd.Series) and raw.dtype.kind not in "OUS"
    if is_typed or pd.api.types.is_datetime64_any_dtype(raw) or pd.api.types.is_timedelta64_dtype(raw):
        return not_usable(name, str(raw.dtype))
    content = cells.content
    if content == "complex":
        return InputError(f"Complex data not supported: column {name!r} of X; split it into two real ones.")
    number = (bool, int, float, np.number, np.bool_)
    row = next(row for row in np.flatnonzero(~cells.missing) if not isinstance(cells.objects[row], number))
    cell = cells.objects[row]
    if not content.startswith("mixed"):
        return not_usable(name, content)
    if isinstance(cell, str | bytes):
        return InputError(
            f"Column {name!r} of X mixes numbers and text, first {cell!r} in row {row} "
            "(counted from 0); make all of its cells numbers, or all of them text."
        )
    return TypeError(
        f"Column {name!r} of X, row {row} (counted from 0): argument must be a string or a number, "
        f"not {type(cell).__name__!r}."
    )

"""The kinds of columns, one file each. This list is all that knows them; data and reports share it.

A column is decoded by the first kind in `KINDS` that takes its cells. Its kind owns what is kept of it, the
flat columns of numbers or labels that models see, and how its values are printed. To add one, write a file
with a subclass of `Kind` and put an instance into `KINDS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.tables.column import Cells, Column, Kind
from nongauss.tables.kinds.choices import ChoiceList, as_text
from nongauss.tables.kinds.clock import Clock
from nongauss.tables.kinds.code import Code
from nongauss.tables.kinds.date import Date
from nongauss.tables.kinds.label import Label
from nongauss.tables.kinds.number import Number
from nongauss.tables.kinds.pair import Pair
from nongauss.tables.kinds.quantity import Quantity

__all__ = ["KINDS", "Kind", "decode", "decode_target", "flat", "kind_of"]

KINDS: tuple[Kind, ...] = (Code(), Number(), Quantity(), Date(), Clock(), Pair(), ChoiceList(), Label())
"""In the order in which they are asked."""

_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_of(name: str) -> Kind:
    """The kind with this name. Raises KeyError."""
    return _BY_NAME[name]


def decode(name: str, raw: Any) -> Column:
    """The cells of a column, a pandas series or an array (N,), by the kind that takes them.

    Raises: InputError for cells of no kind, naming the column and the first bad row; TypeError for objects.
    """
    cells = Cells(name, as_text(raw))
    for kind in _asked(cells):
        column = kind.decode(cells)
        if column is not None:
            return replace(column, note="; ".join(filter(None, [*cells.notes, column.note])))
    raise _refusal(cells)


def decode_target(name: str, raw: Any) -> Column:
    """The cells of a target: as `decode`, but that pairs of numbers, which are two columns, are labels."""
    column = decode(name, raw)
    labels = _BY_NAME["label"].decode(Cells(name, as_text(raw))) if column.kind == "pair" else None
    return column if labels is None else labels


def _asked(cells: Cells) -> Sequence[Kind]:
    """The kinds that may take these cells, in order."""
    if not cells.may_be_values:
        return tuple(kind for kind in KINDS if not kind.needs_digits)
    return (_BY_NAME["date"], *KINDS) if cells.may_be_dates else KINDS


def flat(column: Column, kind: str, part: str, origin: float) -> Column:
    """A flat column of new rows, as the kind of fit lays it out, whatever kind the rows are taken for now."""
    numbers = ("number", "quantity")
    if column.kind and column.kind != kind and not (kind in numbers and column.kind in numbers):
        column = _BY_NAME[column.kind].plain(column)
    if kind == "number" and column.kind != kind:  # texts may be numbers
        kind = "quantity"
    return _BY_NAME[kind].flat(column, part, origin)


def _refusal(cells: Cells) -> Exception:
    """The error for cells of no kind: complex numbers, numbers beside text, dates, whatever else."""
    raw, name = cells.raw, cells.name
    is_typed = not isinstance(raw, pd.Series) and raw.dtype.kind not in "OUS"
    if is_typed or pd.api.types.is_datetime64_any_dtype(raw) or pd.api.types.is_timedelta64_dtype(raw):
        return _not_usable(name, str(raw.dtype))
    content = cells.content
    if content == "complex":
        return InputError(f"Complex data not supported: column {name!r} of X; split it into two real ones.")
    number = (bool, int, float, np.number, np.bool_)
    row = next(row for row in np.flatnonzero(~cells.missing) if not isinstance(cells.objects[row], number))
    cell = cells.objects[row]
    if isinstance(raw, pd.Series) and isinstance(cell, list | tuple | set | dict | np.ndarray):
        what, part = ("records", "field") if isinstance(cell, dict) else ("lists", "entry")
        return InputError(
            f"Column {name!r} of X holds {what}, the first in row {row} (counted from 0); give one value a "
            f"cell, such as a column for each {part}."
        )
    if not content.startswith("mixed"):
        return _not_usable(name, content)
    if isinstance(cell, str | bytes):
        return InputError(
            f"Column {name!r} of X mixes numbers and text, first {cell!r} in row {row} "
            "(counted from 0); make all of its cells numbers, or all of them text."
        )
    return TypeError(
        f"Column {name!r} of X, row {row} (counted from 0): argument must be a string or a number, "
        f"not {type(cell).__name__!r}; give one value a cell."
    )


def _not_usable(name: str, what: str) -> InputError:
    """The error for cells that no kind can decode."""
    return InputError(
        f"Column {name!r} of X holds {what} values, which have no meaning here; "
        "turn them into numbers (such as days since a start) or text, or drop the column."
    )

"""Values along one column of a table at which a model is asked, and how they stand on an axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.report.metrics import FloatArray
from nongauss.tables.frame import InputTable
from nongauss.tables.kinds import kind_of

_MOST_LEVELS = 12
_NUMBER_KINDS = ("floating", "integer", "mixed-integer-float", "decimal")


def grid_of(rows: InputTable, place: int, size: int) -> tuple[pd.Series[Any], dict[str, Any]]:
    """The cells of a grid in one column, and what a display holds of its axis."""
    cells = pd.Series(rows.raw(place)).infer_objects()
    dates = _dates(rows, place)
    if dates is not None:
        places = _own_steps(dates.observed, size)
        own = cells.iloc[dates.first_rows(places)]
        return own, {"observed": dates.observed, "places": places, "shown": dates.shown}
    numbers = _numbers(cells)
    if numbers is not None:
        return _steps(numbers, size), {"observed": numbers}
    return _levels(cells), {"n_levels": int(cells.nunique())}


def _numbers(cells: pd.Series[Any]) -> FloatArray | None:
    """The cells that are not missing, if they are numbers; two numbers, such as 0 and 1, are labels."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return None
    if pd.api.types.infer_dtype(cells, skipna=True) not in _NUMBER_KINDS:
        return None
    numbers = cells.dropna().to_numpy(dtype=np.float64)
    return None if 1 <= len(np.unique(numbers)) <= 2 else numbers


@dataclass(frozen=True)
class _DateAxis:
    """Dates, or numbers as text, as numbers: those of all cells (N,), NaN where missing; the text of one."""

    values: FloatArray
    shown: Callable[[float], str]

    @property
    def observed(self) -> FloatArray:
        """The numbers of the cells that are not missing."""
        return self.values[np.isfinite(self.values)]

    def first_rows(self, places: FloatArray) -> list[int]:
        """For each of these numbers, the first row that has it."""
        return [int(np.argmax(self.values == place)) for place in places]


def _dates(rows: InputTable, place: int) -> _DateAxis | None:
    """The axis of dates, in days since 1970, or of numbers as text; None of others and of no kind."""
    try:
        column = rows.column(place)
    except (InputError, TypeError):  # a model of another library may know what the cells are
        return None
    if column.kind not in ("date", "quantity") or column.values is None or column.missing.all():
        return None
    kind, present = kind_of(column.kind), ~column.missing
    facts = kind.summarise(column.take(present), np.ones(int(present.sum())))
    (days, *_) = kind.columns(column.name, facts, gaps=False)
    return _DateAxis(column.values, lambda day: kind.shown(day - days.origin, days.part, days.origin))


def _own_steps(numbers: FloatArray, size: int) -> FloatArray:
    """The numbers that are nearest to the even places of `_steps`, in order, each once."""
    own = np.unique(numbers)
    wanted = _steps(numbers, size).to_numpy(dtype=np.float64)
    return np.unique(own[np.abs(own[:, None] - wanted).argmin(axis=0)])


def _steps(numbers: FloatArray, size: int) -> pd.Series[Any]:
    """`size` even places from the 5 % to the 95 % quantile, or the numbers themselves if they are fewer."""
    own = np.unique(numbers)
    if len(own) <= size:
        return pd.Series(own)
    low, high = np.quantile(numbers, [0.05, 0.95])
    return pd.Series(np.linspace(low, high, size) if high > low else np.linspace(own[0], own[-1], size))


def _levels(cells: pd.Series[Any]) -> pd.Series[Any]:
    """The most frequent labels first; those of an ordered category, and numbers, in their order."""
    counts = cells.value_counts()
    grid = pd.Series(counts.index[counts.to_numpy() > 0][:_MOST_LEVELS])
    ordered = isinstance(cells.dtype, pd.CategoricalDtype) and cells.dtype.ordered
    if ordered or pd.api.types.is_numeric_dtype(grid.dtype):
        return grid.sort_values(ignore_index=True)
    return grid

"""Columns of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.column import TEXT, Cells, Column, ColumnSummary, Kind
from nongauss.tables.scaling import Moments

CONTENTS = ("floating", "integer", "mixed-integer-float", "decimal", "empty")
"""What pandas calls objects that are numbers, or none at all."""


class Number(Kind):
    """Numbers of any type; True and False beside numbers, or in an array, count as 1 and 0."""

    name = "number"
    plural = "numbers"

    def decode(self, cells: Cells) -> Column | None:
        """Numbers as float64, NaN where missing; those that are float64 already are not copied."""
        if isinstance(cells.dtype, pd.CategoricalDtype):
            return None
        values = _typed(cells)
        if values is None:
            content = cells.content
            if content in TEXT:
                return None
            if content not in CONTENTS:
                present = cells.objects[~cells.missing]
                if not all(isinstance(cell, bool | int | float | np.number | np.bool_) for cell in present):
                    return None
            values = np.full(len(cells.objects), np.nan)
            values[~cells.missing] = cells.objects[~cells.missing].astype(np.float64)
        return Column(cells.name, values, kind=self.name)

    def summarise(self, column: Column, weight: NDArray[np.float64]) -> Moments:
        """Moments and extremes."""
        assert column.values is not None
        return Moments.of(column.values, weight)

    def columns(self, name: str, facts: Moments, gaps: bool) -> tuple[ColumnSummary, ...]:
        """The column itself."""
        return (ColumnSummary(name, gaps, facts, kind=self.name),)

    def flat(self, column: Column, part: str, origin: float) -> Column:
        """The numbers; True and False become 1 and 0. Raises InputError for text."""
        return column.as_numbers()

    def shown(self, value: Any, part: str, origin: float) -> str:
        """A number without more digits than it has."""
        x = float(value)
        return np.format_float_positional(x, trim="-") if 1e-4 <= abs(x) < 1e15 or x == 0 else f"{x:.12g}"


def _typed(cells: Cells) -> NDArray[np.float64] | None:
    """The values of a typed column of numbers, None of objects."""
    raw, dtype = cells.raw, cells.dtype
    if not isinstance(raw, pd.Series):
        return raw.astype(np.float64, copy=False) if dtype.kind in "biuf" else None
    if pd.api.types.is_complex_dtype(dtype):
        raise InputError(
            f"Complex data not supported: column {cells.name!r} of X; split it into two real ones."
        )
    if not pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        return None
    if dtype == np.float64 and isinstance(dtype, np.dtype):
        return np.asarray(raw.to_numpy())
    return np.array(raw.to_numpy(dtype=np.float64, na_value=np.nan))

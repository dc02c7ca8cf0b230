"""Columns of times of the day, without a date: hours since midnight."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.column import Cells, Column, ColumnSummary, Kind, label_of
from nongauss.tables.date_text import clock_hours
from nongauss.tables.kinds.date import HOURS
from nongauss.tables.kinds.number import Moments
from nongauss.tables.lost_cells import are_values, named_cells

ROWS_AN_HOUR = 10  # rows for each hour in use from which the hours are labels as well


@dataclass(frozen=True)
class ClockFacts:
    """What some rows tell of times: moments of hours since midnight, rows and weights of each hour, (24,)."""

    numbers: Moments
    rows: int
    hours: NDArray[np.float64]

    def __add__(self, other: ClockFacts) -> ClockFacts:
        return ClockFacts(self.numbers + other.numbers, self.rows + other.rows, self.hours + other.hours)


class Clock(Kind):
    """Objects `datetime.time`, typed times, and texts such as 14:05 or 2:05 PM.

    Models see the hours since midnight, and with `ROWS_AN_HOUR` rows for each the hour as an ordered label.
    """

    name = "clock"
    plural = "times of day"

    def decode(self, cells: Cells) -> Column | None:
        """Hours since midnight; texts are kept as labels beside."""
        if isinstance(cells.dtype, pd.CategoricalDtype):
            return None
        if cells.content == "time":
            hours = [
                np.nan if gap else _hours(t) for t, gap in zip(cells.objects, cells.missing, strict=True)
            ]
            return Column(cells.name, np.array(hours), kind=self.name)
        if cells.content != "string":
            return None
        codes, distinct = cells.texts
        hours_of = clock_hours(distinct)
        count = np.bincount(codes[codes >= 0], minlength=len(distinct))
        odd = np.isnan(hours_of)
        if not len(distinct) or not are_values(distinct.to_pylist(), count, odd):
            return None
        values = np.append(hours_of, np.nan)[codes]
        lost = named_cells(distinct.to_pylist(), count, odd) if odd.any() else ""
        beside = cells.labels
        return Column(cells.name, values, beside.codes, beside.levels, (), self.name, lost=lost)

    def summarise(self, column: Column, weight: NDArray[np.float64]) -> ClockFacts:
        """Moments of the hours, and their weights."""
        assert column.values is not None
        which = np.floor(column.values % 24.0).astype(np.intp)
        mass = np.bincount(which, weights=weight, minlength=24).astype(np.float64)
        return ClockFacts(Moments.of(column.values, weight), len(weight), mass)

    def columns(self, name: str, facts: ClockFacts, gaps: bool) -> tuple[ColumnSummary, ...]:
        """The hours since midnight, then the hour as an ordered label."""
        out = [ColumnSummary(name, gaps, facts.numbers, kind=self.name)]
        used = int((facts.hours > 0).sum())
        if used > 1 and facts.numbers.high < 24.0 and facts.rows >= ROWS_AN_HOUR * used:
            levels = {level: float(m) for level, m in zip(HOURS, facts.hours, strict=True) if m > 0}
            out.append(
                ColumnSummary(f"{name} (hour)", gaps, None, levels, HOURS, kind=self.name, part="hour")
            )
        return tuple(out)

    def flat(self, column: Column, part: str, origin: float) -> Column:
        """The hours since midnight, or the hour as a label. Raises InputError for texts that are no times."""
        values, lost = (column.values, column.lost) if column.values is not None else _of_labels(column)
        if part != "hour":
            return Column(column.name, values, kind="number", lost=lost)
        missing = np.isnan(values)
        codes = np.where(missing, -1, np.floor(np.where(missing, 0.0, values) % 24.0)).astype(np.intp)
        return Column(column.name, None, codes, HOURS, tuple(range(24)), "label")

    def plain(self, column: Column) -> Column:
        """The texts as labels where they are kept, else the hours as numbers."""
        if column.codes is not None:
            return Column(column.name, None, column.codes, column.levels, (), "label")
        return Column(column.name, column.values, kind="number")

    def shown(self, value: Any, part: str, origin: float) -> str:
        """A time such as 14:05, with seconds where it has some."""
        if part == "hour":
            return label_of(value)
        if not np.isfinite(float(value)):
            return str(float(value))
        seconds = round(float(value) * 3600.0)
        sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
        text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
        return f"{text}:{seconds % 60:02d}" if seconds % 60 else text


def _hours(time: dt.time) -> float:
    """Hours since midnight."""
    return time.hour + time.minute / 60.0 + (time.second + time.microsecond / 1e6) / 3600.0


def _of_labels(column: Column) -> tuple[NDArray[np.float64], str]:
    """Hours of labels of new rows, and those that are none. Raises InputError where none is a time."""
    assert column.codes is not None
    count = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
    hours = clock_hours(pa.array(column.levels, pa.large_string()))
    values: NDArray[np.float64] = np.append(hours, np.nan)[column.codes]
    if np.isnan(values).all() and not column.missing.all():
        row = int(np.argmax(~column.missing))
        shown = column.levels[column.codes[row]]
        raise InputError(
            f"Column {column.name!r} held times of day when the model was fitted, but holds {shown!r} in row "
            f"{row} (counted from 0); give times, such as 14:05."
        )
    return values, named_cells(column.levels, count, np.isnan(hours))

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
from nongauss.tables.words import are_dilutions

HALF_A_DAY = 12.0  # hours beyond which times go round, so that 23:59 is next to 00:00
ANGLES = ("sine", "cosine")
"""Where on the dial of 24 hours a time is: sin and cos of 2 pi h / 24."""


@dataclass(frozen=True)
class ClockFacts:
    """What some rows tell of times: moments of hours since midnight, and of their sine and cosine."""

    numbers: Moments
    sine: Moments
    cosine: Moments

    def __add__(self, other: ClockFacts) -> ClockFacts:
        return ClockFacts(self.numbers + other.numbers, self.sine + other.sine, self.cosine + other.cosine)


class Clock(Kind):
    """Objects `datetime.time`, typed times, and texts such as 14:05 or 2:05 PM.

    Models see the hours since midnight, and where on the dial they are, if they go over half of it. Models
    of former versions see the hour as an ordered label, the part "hour".
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
        texts = distinct.to_pylist()
        if not texts or not are_values(texts, count, odd) or are_dilutions(texts):
            return None
        values = np.append(hours_of, np.nan)[codes]
        lost = named_cells(texts, count, odd) if odd.any() else ""
        beside = cells.labels
        return Column(cells.name, values, beside.codes, beside.levels, (), self.name, lost=lost)

    def summarise(self, column: Column, weight: NDArray[np.float64]) -> ClockFacts:
        """Moments of the hours, and of their sine and cosine."""
        assert column.values is not None
        sine, cosine = (Moments.of(_on_dial(column.values, part), weight) for part in ANGLES)
        return ClockFacts(Moments.of(column.values, weight), sine, cosine)

    def columns(self, name: str, facts: ClockFacts, gaps: bool) -> tuple[ColumnSummary, ...]:
        """The hours since midnight, then where on the dial they are."""
        hours = ColumnSummary(name, gaps, facts.numbers, kind=self.name)
        if not facts.numbers.low + HALF_A_DAY < facts.numbers.high < 24.0:
            return (hours,)
        parts = zip(ANGLES, (facts.sine, facts.cosine), strict=True)
        dial = (
            ColumnSummary(f"{name} ({part} of the day)", gaps, found, kind=self.name, part=part)
            for part, found in parts
        )
        return (hours, *dial)

    def flat(self, column: Column, part: str, origin: float) -> Column:
        """The hours since midnight, where on the dial they are, or the hour as a label.

        Raises InputError for texts that are no times.
        """
        values, lost = (column.values, column.lost) if column.values is not None else _of_labels(column)
        if part in ANGLES:
            return Column(column.name, _on_dial(values, part), kind="number")
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
        if part in ANGLES or not np.isfinite(float(value)):
            return f"{float(value):.3g}"
        seconds = round(float(value) * 3600.0)
        sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
        text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
        return f"{text}:{seconds % 60:02d}" if seconds % 60 else text


def _on_dial(hours: NDArray[np.float64], part: str) -> NDArray[np.float64]:
    """The sine or cosine of 2 pi h / 24, to 15 places, so that 12:00 has no sine of rounding."""
    angle = hours * (2.0 * np.pi / 24.0)
    out: NDArray[np.float64] = np.sin(angle) if part == "sine" else np.cos(angle)
    return out.round(15)


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

"""Columns of dates and times: how far along, and where in the week, the year and the day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.column import Cells, Column, ColumnSummary, Kind, label_of, labelled
from nongauss.tables.kinds.number import Moments

ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
"""A date as ISO 8601 writes it, perhaps with a time and its distance from UTC."""

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
HOURS = tuple(f"{hour:02d}:00" for hour in range(24))
PARTS = {"weekday": WEEKDAYS, "month": MONTHS, "hour": HOURS}
"""The calendar parts, each with its levels in order."""

YEAR, FORTNIGHT, TWO_DAYS = 366.0, 14.0, 2.0
"""Days beyond which a month, a weekday, an hour may come again."""

_DAY = np.timedelta64(86_400_000_000, "us")
_SLACK = 1e-9  # days: what rounding may take from a time of day


@dataclass(frozen=True)
class DateFacts:
    """What some rows tell of dates: moments of the days since 1970, weights of weekdays, months and hours.

    `months` are weights by year and month, counted from January 1970.
    """

    days: Moments
    weekdays: NDArray[np.float64]
    hours: NDArray[np.float64]
    months: dict[int, float]

    def __add__(self, other: DateFacts) -> DateFacts:
        months = dict(self.months)
        for month, weight in other.months.items():
            months[month] = months.get(month, 0.0) + weight
        return DateFacts(
            self.days + other.days, self.weekdays + other.weekdays, self.hours + other.hours, months
        )

    def repeated(self) -> dict[str, NDArray[np.float64]]:
        """The weights of the levels of those calendar parts that come again, by the name of the part."""
        by_month = np.zeros(12)
        for month, weight in self.months.items():
            by_month[month % 12] += weight
        span = self.days.high - self.days.low
        recurs = len({month % 12 for month in self.months}) < len(self.months)
        out = {}
        if span > YEAR and recurs and (by_month > 0).sum() > 1:
            out["month"] = by_month
        if span > FORTNIGHT and (self.weekdays > 0).sum() > 1:
            out["weekday"] = self.weekdays
        if span > TWO_DAYS and (self.hours > 0).sum() > 1:
            out["hour"] = self.hours
        return out


class Date(Kind):
    """Typed dates and times, objects of the module datetime, or texts that are all dates of ISO 8601.

    As values they are days since 1970, in UTC where they have a time zone. Models see the days since the
    first date, and weekday, month and hour as ordered labels where these come again.
    """

    name = "date"
    plural = "dates"

    def decode(self, cells: Cells) -> Column | None:
        """Days since 1970; a column of texts keeps them as labels beside."""
        dtype = cells.dtype
        if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_numeric_dtype(dtype):
            return None
        if pd.api.types.is_datetime64_any_dtype(dtype):
            return _typed(cells.name, pd.Series(cells.raw))
        if cells.content in ("datetime", "datetime64", "date"):
            return _typed(cells.name, _of_objects(cells.objects))
        if cells.content != "string":
            return None
        labels = cells.labels
        days, note = _days_of_texts(labels.levels)
        if np.isnan(days).any():
            return None
        assert labels.codes is not None
        values = np.array([*days, np.nan])[labels.codes]
        return Column(cells.name, values, labels.codes, labels.levels, (), self.name, note)

    def summarise(self, column: Column, weight: NDArray[np.float64]) -> DateFacts:
        """Moments of the days, and weights of calendar parts."""
        days = column.values
        assert days is not None
        months, which = np.unique(_months(days), return_inverse=True)
        mass = np.bincount(which, weights=weight)
        return DateFacts(
            Moments.of(days, weight),
            np.bincount(_weekdays(days), weights=weight, minlength=7).astype(np.float64),
            np.bincount(_hours(days), weights=weight, minlength=24).astype(np.float64),
            dict(zip(months.tolist(), mass.tolist(), strict=True)),
        )

    def columns(self, name: str, facts: DateFacts, gaps: bool) -> tuple[ColumnSummary, ...]:
        """The days since the first date, then the calendar parts that come again, as ordered labels."""
        first = facts.days.low
        side = "day" if facts.days.whole else "time"
        numbers = facts.days.shifted(first)
        out = [ColumnSummary(name, gaps, numbers, kind=self.name, part=side, origin=first)]
        for part, mass in facts.repeated().items():
            levels = {level: float(m) for level, m in zip(PARTS[part], mass, strict=True) if m > 0}
            out.append(
                ColumnSummary(f"{name} ({part})", gaps, None, levels, PARTS[part], kind=self.name, part=part)
            )
        return tuple(out)

    def flat(self, column: Column, part: str, origin: float) -> Column:
        """Days since `origin`, or the labels of a calendar part.

        Texts among dates that are none are missing cells, the first of which is noted with the days. Raises
        InputError for numbers, and for texts of which none is a date.
        """
        days, note = _days(column)
        if part not in PARTS:
            return Column(column.name, days - origin, kind="number", lost=note)
        missing = np.isnan(days)
        of = {"weekday": _weekdays, "month": lambda d: _months(d) % 12, "hour": _hours}[part]
        codes = np.full(len(days), -1, dtype=np.intp)
        codes[~missing] = of(days[~missing])
        levels = PARTS[part]
        return Column(column.name, None, codes, levels, tuple(range(len(levels))), "label")

    def plain(self, column: Column) -> Column:
        """The dates as text."""
        if column.codes is not None:
            return Column(column.name, None, column.codes, column.levels, (), "label")
        assert column.values is not None
        missing = column.missing
        texts = np.full(len(missing), None, dtype=object)
        texts[~missing] = [_text(day) for day in column.values[~missing]]
        return labelled(column.name, texts, missing)

    def shown(self, value: Any, part: str, origin: float) -> str:
        """The date of a number of days, with the time of day where the column has some; the label itself."""
        if part in PARTS:
            return label_of(value)
        day = float(value) + origin
        if not np.isfinite(day):
            return str(day)
        return _text(np.floor(day + 0.5) if part == "day" else day)


def _typed(name: str, stamps: pd.Series[Any]) -> Column:
    """A column of typed dates, in UTC where they have a zone."""
    zone = getattr(stamps.dt, "tz", None)
    if zone is not None:
        stamps = stamps.dt.tz_convert("UTC").dt.tz_localize(None)
    note = "" if zone is None or str(zone) == "UTC" else _zone_note(str(zone))
    values = stamps.to_numpy(dtype="datetime64[us]", na_value=np.datetime64("NaT"))
    return Column(name, _since_1970(values), kind=Date.name, note=note)


def _of_objects(objects: NDArray[np.object_]) -> pd.Series[Any]:
    """Objects of the module datetime as typed dates; those with zones in UTC."""
    missing = np.asarray(pd.isna(objects), dtype=np.bool_)
    zones = {str(cell.tzinfo) for cell in objects[~missing] if getattr(cell, "tzinfo", None) is not None}
    if zones:
        stamps = pd.Series(pd.to_datetime(list(objects), utc=True))
        return stamps.dt.tz_convert(objects[~missing][0].tzinfo) if len(zones) == 1 else stamps
    return pd.Series(np.where(missing, np.datetime64("NaT"), objects).astype("datetime64[us]"))


def _days_of_texts(texts: tuple[str, ...]) -> tuple[NDArray[np.float64], str]:
    """Days since 1970 of texts, NaN for those that are no dates, and a note of their distance from UTC."""
    nothing = np.full(max(len(texts), 1), np.nan)
    if not texts or not all(ISO.fullmatch(text.strip()) for text in texts):
        return nothing, ""
    plain = [text.strip() for text in texts]
    stamps = pd.to_datetime(pd.Series(plain), format="ISO8601", utc=True, errors="coerce")
    offsets = {found.group(4) for found in map(ISO.fullmatch, plain) if found} - {None, "Z"}
    note = _zone_note(", ".join(sorted(offsets)[:3])) if offsets else ""
    return _since_1970(stamps.dt.tz_localize(None).to_numpy(dtype="datetime64[us]")), note


def _zone_note(zone: str) -> str:
    """What a warning says of dates of another zone than UTC."""
    return f"has dates of the time zone {zone}, which are taken in UTC"


def _since_1970(stamps: NDArray[np.datetime64]) -> NDArray[np.float64]:
    """Days since 1970, (N,) float64, NaN where missing."""
    days: NDArray[np.float64] = (stamps - np.datetime64("1970-01-01", "us")) / _DAY
    return days


def _days(column: Column) -> tuple[NDArray[np.float64], str]:
    """The days since 1970 of any column, and where the first text among them is no date (NaN), "" for none.

    Raises InputError naming the first row that is no date, of numbers and of texts without any date.
    """
    if column.kind == Date.name:
        assert column.values is not None
        return column.values, ""
    if column.values is not None:
        odd, shown = ~np.isnan(column.values), column.values.astype(object)
    else:
        assert column.codes is not None
        known = np.array([*(_days_of_texts((level,))[0][0] for level in column.levels), np.nan])
        days: NDArray[np.float64] = known[column.codes]
        odd, shown = (
            np.isnan(days) & (column.codes >= 0),
            np.array([*column.levels, ""], object)[column.codes],
        )
    if odd.any():
        row = int(np.argmax(odd))
        if column.values is None and not np.isnan(days).all():
            return days, f"{shown[row]!r} (first in row {row})"
        raise InputError(
            f"Column {column.name!r} held dates when the model was fitted, but holds {shown[row]!r} in row "
            f"{row} (counted from 0); give dates there, such as 2024-03-31."
        )
    return (column.values if column.values is not None else days), ""


def _weekdays(days: NDArray[np.float64]) -> NDArray[np.intp]:
    """0 for Monday to 6: the first of 1970 was a Thursday."""
    return ((np.floor(days + _SLACK) + 3) % 7).astype(np.intp)


def _hours(days: NDArray[np.float64]) -> NDArray[np.intp]:
    """The hour of the day, 0 to 23."""
    return (np.floor((days + _SLACK) * 24.0) % 24).astype(np.intp)


def _months(days: NDArray[np.float64]) -> NDArray[np.intp]:
    """Months since January 1970."""
    return np.floor(days + _SLACK).astype("datetime64[D]").astype("datetime64[M]").astype(np.intp)


def _text(day: float) -> str:
    """A date in ISO 8601, to the second where it has a time of day."""
    seconds = round(float(day) * 86_400.0)
    text = str(np.datetime64(seconds, "s")).replace("T", " ")
    return text.removesuffix(":00").removesuffix(" 00:00")

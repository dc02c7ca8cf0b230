"""Columns of dates and times: how far along, and where in the week, the year and the day."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.column import Cells, Column, ColumnSummary, Kind, label_of, labelled
from nongauss.tables.date_numbers import as_numbers_of, dates_by_numbers, days_of_form
from nongauss.tables.date_text import LOCAL, UTC, read_dates
from nongauss.tables.kinds.number import Moments
from nongauss.tables.lost_cells import are_values, mostly, named_cells

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

    `months` are weights by year and month, counted from January 1970. `form`: see `Date`.
    """

    days: Moments
    weekdays: NDArray[np.float64]
    hours: NDArray[np.float64]
    months: dict[int, float]
    form: str = ""

    def __add__(self, other: DateFacts) -> DateFacts:
        months = dict(self.months)
        for month, weight in other.months.items():
            months[month] = months.get(month, 0.0) + weight
        return DateFacts(
            self.days + other.days,
            self.weekdays + other.weekdays,
            self.hours + other.hours,
            months,
            _joint_form(self.form, other.form),
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
    """Typed dates, times and periods, objects of the module datetime, texts that are dates, and some numbers.

    Values are days since 1970: instants in UTC where there is a zone. Models see the days since the first
    date, and weekday, month and hour as ordered labels where these come again, on the clock of that zone.

    A column's `unit` is its form: how cells are read ("d/m/y", "s" since 1970, ...), and after a colon the
    zone. The parts of its flat columns are the side, a bar, and that form.
    """

    name = "date"
    plural = "dates"

    def decode(self, cells: Cells) -> Column | None:
        """Days since 1970; a column of texts keeps them as labels beside."""
        dtype = cells.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            return None
        if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
            found = dates_by_numbers(cells)
            return None if found is None else replace(found, kind=self.name)
        if isinstance(dtype, pd.PeriodDtype):
            return _typed(cells.name, pd.Series(pd.PeriodIndex(cells.raw).to_timestamp()))
        if getattr(dtype, "kind", "") == "M" and not str(dtype).startswith(("date32", "date64")):
            return _typed(cells.name, pd.Series(cells.raw))
        content = cells.content
        if content == "period":
            return _typed(cells.name, pd.Series(pd.PeriodIndex(cells.objects).to_timestamp()))
        if content in ("datetime", "datetime64", "date"):
            return _typed(cells.name, _of_objects(cells.objects))
        return self._of_texts(cells) if content == "string" else None

    def _of_texts(self, cells: Cells) -> Column | None:
        """Texts, nearly all of which are dates."""
        codes, distinct = cells.texts
        if not len(distinct):
            return None
        count = np.bincount(codes[codes >= 0], minlength=len(distinct))
        found = read_dates(distinct, count)
        odd = np.isnan(found.days)
        if not are_values(distinct.to_pylist(), count, odd):
            cells.notes.extend(mostly(distinct.to_pylist(), count, odd, "dates"))
            return None
        notes = list(found.notes)
        if found.zone not in ("", UTC):
            notes.append(_zone_note(found.zone))
        lost = named_cells(distinct.to_pylist(), count, odd) if odd.any() else ""
        values = np.append(found.days, np.nan)[codes]
        beside = cells.labels
        form = f"{found.order}:{found.zone}"
        note = "; ".join(notes)
        return Column(cells.name, values, beside.codes, beside.levels, (), self.name, note, lost, form)

    def summarise(self, column: Column, weight: NDArray[np.float64]) -> DateFacts:
        """Moments of the days, and weights of calendar parts."""
        assert column.values is not None
        days = _on_the_clock(column.values, column.unit.partition(":")[2])
        months, which = np.unique(_months(days), return_inverse=True)
        mass = np.bincount(which, weights=weight)
        return DateFacts(
            Moments.of(days, weight),
            np.bincount(_weekdays(days), weights=weight, minlength=7).astype(np.float64),
            np.bincount(_hours(days), weights=weight, minlength=24).astype(np.float64),
            dict(zip(months.tolist(), mass.tolist(), strict=True)),
            column.unit.removesuffix(UTC),
        )

    def columns(self, name: str, facts: DateFacts, gaps: bool) -> tuple[ColumnSummary, ...]:
        """The days since the first date, then the calendar parts that come again, as ordered labels."""
        first = facts.days.low
        side = "day" if facts.days.whole else "time"
        form = f"|{facts.form}" if facts.form.strip(":") else ""
        numbers = facts.days.shifted(first)
        out = [ColumnSummary(name, gaps, numbers, kind=self.name, part=side + form, origin=first)]
        for part, mass in facts.repeated().items():
            levels = {level: float(m) for level, m in zip(PARTS[part], mass, strict=True) if m > 0}
            own = f"{name} ({part})"
            out.append(ColumnSummary(own, gaps, None, levels, PARTS[part], kind=self.name, part=part + form))
        return tuple(out)

    def flat(self, column: Column, part: str, origin: float) -> Column:
        """Days since `origin`, or the labels of a calendar part.

        Texts among dates that are none are missing cells, named with the days. Raises InputError for numbers
        that are no dates, and for texts of which none is a date.
        """
        side, _, form = part.partition("|")
        days, lost = _days(column, form)
        if side not in PARTS:
            return Column(column.name, days - origin, kind="number", lost=lost)
        missing = np.isnan(days)
        of = {"weekday": _weekdays, "month": lambda d: _months(d) % 12, "hour": _hours}[side]
        codes = np.full(len(days), -1, dtype=np.intp)
        codes[~missing] = of(days[~missing])
        levels = PARTS[side]
        return Column(column.name, None, codes, levels, tuple(range(len(levels))), "label")

    def cycle(self, part: str) -> int:
        """Seven weekdays, twelve months, 24 hours."""
        return len(PARTS.get(part.partition("|")[0], ()))

    def plain(self, column: Column) -> Column:
        """The dates as text; those that were numbers as numbers."""
        if column.codes is not None:
            return Column(column.name, None, column.codes, column.levels, (), "label")
        assert column.values is not None
        numbers = as_numbers_of(column.values, column.unit.partition(":")[0])
        if numbers is not None:
            return Column(column.name, numbers, kind="number")
        missing = column.missing
        texts = np.full(len(missing), None, dtype=object)
        texts[~missing] = [_text(day) for day in column.values[~missing]]
        return labelled(column.name, texts, missing)

    def shown(self, value: Any, part: str, origin: float) -> str:
        """The date of a number of days, with the time of day where the column has some; the label itself."""
        side = part.partition("|")[0]
        if side in PARTS:
            return label_of(value)
        day = float(value) + origin
        if not np.isfinite(day):
            return str(day)
        return _text(np.floor(day + 0.5) if side == "day" else day)


def _typed(name: str, stamps: pd.Series[Any]) -> Column:
    """A column of typed dates, in UTC where they have a zone."""
    zone = getattr(stamps.dt, "tz", None)
    named = "" if zone is None else _zone_name(zone)
    if zone is not None:
        stamps = (
            stamps.dt.tz_localize(None)
            if named == LOCAL
            else stamps.dt.tz_convert("UTC").dt.tz_localize(None)
        )
    values = stamps.to_numpy(dtype="datetime64[us]", na_value=np.datetime64("NaT", "us"))
    note = _zone_note(named) if named not in ("", UTC) else ""
    return Column(name, _since_1970(values), kind=Date.name, note=note, unit=f":{named}")


def _zone_name(zone: Any) -> str:
    """The name by which a zone can be found again, `LOCAL` for one that has none."""
    text = str(zone).removeprefix("UTC") if re.match(r"UTC[+-]", str(zone)) else str(zone)
    if text in ("UTC", "Etc/UTC", "GMT", "Z", "tzutc()", "+00:00"):
        return UTC
    try:
        _on_the_clock(np.zeros(1), text)
    except (KeyError, ValueError, OSError):
        return LOCAL
    return text


def _zone_note(zone: str) -> str:
    """What a warning says of dates of another zone than UTC."""
    if zone == LOCAL:
        return "has dates with a time zone, which are read as local times"
    return f"has dates of the time zone {zone}, which are read as local times"


def _on_the_clock(days: NDArray[np.float64], zone: str) -> NDArray[np.float64]:
    """Instants, in days since 1970 in UTC, as days on the clock of a zone. Raises KeyError, ValueError."""
    if zone in ("", UTC, LOCAL):
        return days
    if zone[0] in "+-":
        hours, _, minutes = zone[1:].partition(":")
        ahead = dt.timedelta(hours=int(hours), minutes=int(minutes or 0)) / dt.timedelta(days=1)
        return days + ahead if zone[0] == "+" else days - ahead
    missing = np.isnan(days)
    stamps = np.round(np.where(missing, 0.0, days) * 86_400e6).astype("datetime64[us]")
    local = pd.DatetimeIndex(stamps, tz="UTC").tz_convert(zone).tz_localize(None)
    return np.where(missing, np.nan, _since_1970(local.to_numpy(dtype="datetime64[us]")))


def _of_objects(objects: NDArray[np.object_]) -> pd.Series[Any]:
    """Objects of the module datetime as typed dates; those with zones in UTC."""
    missing = np.asarray(pd.isna(objects), dtype=np.bool_)
    zones = {str(cell.tzinfo) for cell in objects[~missing] if getattr(cell, "tzinfo", None) is not None}
    if zones:
        stamps = pd.Series(pd.to_datetime(list(objects), utc=True))
        return stamps.dt.tz_convert(objects[~missing][0].tzinfo) if len(zones) == 1 else stamps
    return pd.Series(np.where(missing, np.datetime64("NaT", "us"), objects).astype("datetime64[us]"))


def _since_1970(stamps: NDArray[np.datetime64]) -> NDArray[np.float64]:
    """Days since 1970, (N,) float64, NaN where missing."""
    days: NDArray[np.float64] = (stamps - np.datetime64("1970-01-01", "us")) / _DAY
    return days


def _joint_form(first: str, second: str) -> str:
    """The form of two parts of one column. Raises InputError for two orders of the day or two zones."""
    out = []
    for mine, its in zip(first.split(":", 1), second.split(":", 1), strict=False):
        if mine and its and mine != its:
            raise InputError(
                f"A column of dates is read as {mine} in one part of the table and as {its} in another; "
                "write it in one form."
            )
        out.append(mine or its)
    return ":".join(out)


def _days(column: Column, form: str) -> tuple[NDArray[np.float64], str]:
    """The days since 1970 of any column, and the texts among them that are no dates (NaN).

    They are read in the form of the fit, and stand on its clock. Raises InputError naming the first row that
    is no date, of numbers and of texts without any date.
    """
    how, _, zone = form.partition(":")
    own_how, _, own_zone = column.unit.partition(":")
    lost, values = column.lost, column.values
    if column.codes is not None and (values is None or (how and own_how and how != own_how)):
        count = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
        found = read_dates(pa.array(column.levels, pa.large_string()), count, how, are_dates=True)
        values, own_zone = np.append(found.days, np.nan)[column.codes], found.zone
        lost = named_cells(column.levels, count, np.isnan(found.days))
        if not (np.isnan(values) | (column.codes < 0)).all():
            return _on_its_clock(values, own_zone, zone), lost
    elif column.kind == Date.name:
        assert values is not None
        return _on_its_clock(values, own_zone, zone), lost
    else:
        assert values is not None
        days = days_of_form(values, how)
        if not (np.isnan(days) & ~np.isnan(values)).any():
            return days, lost
    return _no_dates(column, values, lost)


def _on_its_clock(days: NDArray[np.float64], own: str, zone: str) -> NDArray[np.float64]:
    """Days of a zone of their own ("" for none) on the clock of the zone of the fit."""
    if zone == LOCAL:
        return _on_the_clock(days, own)
    return _on_the_clock(days, zone) if own not in ("", LOCAL) else days


def _no_dates(column: Column, values: NDArray[np.float64], lost: str) -> tuple[NDArray[np.float64], str]:
    """The values, all missing, of a column without cells. Raises InputError naming the first cell."""
    if column.missing.all():
        return values, lost
    row = int(np.argmax(~column.missing))
    if column.codes is not None:
        shown: Any = column.levels[column.codes[row]]
    else:
        known = ~np.isnan(values)
        row = int(np.argmax(known & np.isnan(days_of_form(values, ""))))
        shown = float(values[row])
    raise InputError(
        f"Column {column.name!r} held dates when the model was fitted, but holds {shown!r} in row "
        f"{row} (counted from 0); give dates there, such as 2024-03-31."
    )


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

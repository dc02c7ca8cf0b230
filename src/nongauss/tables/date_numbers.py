"""Numbers that are dates: 20241231, seconds since 1970, and the days of a spreadsheet."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.tables.column import Cells, Column
from nongauss.tables.date_text import COMPACT, compact_dates
from nongauss.tables.words import words_of

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Forms of numbers that count from 1970, with the length of their unit in seconds."""

_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_FIRST, _LAST = 5e8, 5e9  # seconds that numbers may stand for: the years 1985 to 2128

_SHEET = "sheet"
"""The form of the days of a spreadsheet, which count from 30 December 1899."""

_SHEET_1970 = 25_569.0  # the first of January 1970 in such days
_SHEET_FIRST, _SHEET_LAST = 29_221.0, 55_153.0  # the years 1980 to 2050
_SHEET_NAMES = re.compile("date|datum|fecha|created|updated|modified|when|.*datetime|.*timestamp")

_LOOK = 1000
_LEAST_DAYS = 3  # different whole numbers that must be days to be taken for dates


def dates_by_numbers(cells: Cells) -> Column | None:
    """Days since 1970 of numbers that are dates, with their form as the unit; None of others.

    Whole numbers that all are days (20241231); seconds since 1970, and days of a spreadsheet, in a column
    named for them.
    """
    array = cells.raw.to_numpy(np.float64, na_value=np.nan) if isinstance(cells.raw, pd.Series) else cells.raw
    values = np.asarray(array, dtype=np.float64)
    present = values[~np.isnan(values)]
    if not len(present):
        return None
    named, several = cells.is_time_by_name, len(np.unique(present[:_LOOK])) >= _LEAST_DAYS
    forms = COMPACT if named or several else ()
    for form in forms:
        days = compact_dates(values, form)
        if not np.isnan(days[~np.isnan(values)]).any():
            note = f"holds whole numbers such as {present[0]:.0f}, read as dates"
            return Column(cells.name, days, note=note, unit=f"{form}:")
    for unit, length in _SECONDS.items():
        if named and present.min() * length >= _FIRST and present.max() * length <= _LAST:
            note = f"holds {_UNITS[unit]} since 1970 according to its name, read as dates in UTC"
            return Column(cells.name, days_of_form(values, unit), note=note, unit=f"{unit}:")
    in_sheet = present.min() >= _SHEET_FIRST and present.max() <= _SHEET_LAST
    if several and in_sheet and _SHEET_NAMES.fullmatch((words_of(cells.name) or ("",))[-1]):
        note = f"holds spreadsheet dates, such as {present[0]:.12g}, read as dates"
        return Column(cells.name, days_of_form(values, _SHEET), note=note, unit=f"{_SHEET}:")
    return None


def days_of_form(values: NDArray[np.float64], form: str) -> NDArray[np.float64]:
    """Days since 1970 of numbers of a form, of "yyyymmdd" where none is given."""
    if form in _SECONDS:
        return values * _SECONDS[form] / 86_400.0
    if form == _SHEET:
        return values - _SHEET_1970
    return compact_dates(values, form if form in COMPACT else "yyyymmdd")


def as_numbers_of(days: NDArray[np.float64], form: str) -> NDArray[np.float64] | None:
    """Days since 1970 as the numbers of a form; None where the form is no numbers."""
    if form in _SECONDS:
        return days * (86_400.0 / _SECONDS[form])
    if form == _SHEET:
        return days + _SHEET_1970
    if form not in COMPACT:
        return None
    out = np.full(len(days), np.nan)
    known = ~np.isnan(days)
    out[known] = [_compact_number(day, form) for day in days[known]]
    return out


def _compact_number(day: float, form: str) -> float:
    """Days since 1970 as a whole number of a compact form."""
    stamp = str(np.datetime64(round(float(day) * 86_400.0), "s"))
    digits = re.sub("[^0-9]", "", stamp)
    return float(digits[: len(form)])

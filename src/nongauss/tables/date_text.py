"""Texts that are dates, as people write them: 2024-12-31, 31.12.2024, 12/31/2024 2:05 PM, Dec 31, 2024.

Each form is one regular expression for all texts at once; which of two numbers is the day is decided by all
cells of a column. Calendar arithmetic is NumPy's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nongauss.tables.column import FIRST_DAY, LAST_DAY
from nongauss.tables.date_words import in_english, weekdays_of

DAY_FIRST, MONTH_FIRST, YEAR_FIRST = "d/m/y", "m/d/y", "y/m/d"
"""The orders of a date of three numbers."""

UTC, LOCAL = "UTC", "local"
"""Zones: the usual one, and that of times that are taken as they are written."""

_FIRST_YEAR, _LAST_YEAR, _PIVOT = 1000, 2999, 69  # years of two digits are of 1969 to 2068
_SAMPLE, _FEW = 200, 2000

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAME = (
    r"(?P<name>(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))\.?"
)
_WEEKDAY = r"(?:(?i:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?[.,]* +)?"
_Y, _Y2, _D = "(?P<y>[0-9]{4})", "(?P<short>[0-9]{2})", "(?P<d>[0-9]{1,2})(?:st|nd|rd|th)?"
_M, _A, _B = "(?P<m>[0-9]{1,2})", "(?P<a>[0-9]{1,2})", "(?P<b>[0-9]{1,2})"
_ZONES = {
    "EST": -300,
    "EDT": -240,
    "CST": -360,
    "CDT": -300,
    "MST": -420,
    "MDT": -360,
    "PST": -480,
    "PDT": -420,
    "CET": 60,
    "CEST": 120,
}
"""Minutes ahead of UTC of zones by name: those of RFC 2822, and central Europe's."""

_ZONE = rf"(?P<z>Z|UTC|GMT|{'|'.join(_ZONES)}|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)?"
_TIME = (
    r"(?:(?P<t>T|:| *, *| +(?:at +)?)(?P<H>[0-9]{1,2})(?:[:h](?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})"
    r"(?:[.,](?P<f>[0-9]{1,9}))?)?)?(?: *(?P<p>[AaPp])\.?[Mm]\.?)?"
    rf"(?: *(?i:Uhr))? *{_ZONE})?"
)
_FORMS = tuple(
    f"^{form}$"
    for form in (
        *(f"{_Y}{mark}{_M}{mark}{_D}{_TIME}" for mark in ("-", "/", r"\.")),
        *(f"{_A}{mark}{_B}{mark}{_Y}{_TIME}" for mark in (r"\.", "/", "-")),
        f"{_Y}(?P<m>[0-9]{{2}})(?P<d>[0-9]{{2}}){_TIME}",
        f"{_Y}(?P<m>[0-9]{{2}})(?P<d>[0-9]{{2}})[T ]?(?P<H>[0-9]{{2}})(?P<M>[0-9]{{2}})(?P<S>[0-9]{{2}})?"
        f"(?P<f>)(?P<p>){_ZONE}",
        f"{_WEEKDAY}{_D}[-/., ]*{_NAME}[-/., ]*{_Y}{_TIME}",
        f"{_WEEKDAY}{_NAME} *{_D},? +{_Y}{_TIME}",
        f"{_WEEKDAY}{_NAME} +{_D} +(?P<H>[0-9]{{1,2}}):(?P<M>[0-9]{{2}}):(?P<S>[0-9]{{2}})(?P<f>)(?P<p>) +"
        f"(?:{_ZONE} +)?{_Y}",
        f"{_Y}[-/., ]*{_NAME}[-/., ]*{_D}{_TIME}",
        f"{_Y} *[年년] *{_M} *[月월] *{_D} *[日일]{_TIME}",
        f"{_Y} *[年년] *{_M} *[月월]",
        f"{_D}[-/ ]{_NAME}[-/ ]'?{_Y2}{_TIME}",
        *(f"{_A}{mark}{_B}{mark}{_Y2}{_TIME}" for mark in (r"\.", "/", "-")),
        f"{_Y}[-/]{_M}",
        f"{_M}[-/.]{_Y}",
        f"{_NAME}[-/., ]*{_Y}",
        f"{_Y}[-/., ]*{_NAME}",
        f"{_NAME}[-/ ]'?{_Y2}",
        f"{_Y}[-/ ]?[Qq](?P<q>[1-4])",
        f"[Qq](?P<q>[1-4])[-/ ]?{_Y}",
        f"{_Y}-?W(?P<w>[0-9]{{2}})(?:-?(?P<k>[1-7]))?",
    )
)


@dataclass(frozen=True)
class DateTexts:
    """Texts (L,) as days since 1970, NaN where they are no dates: instants in UTC where `zone` is one.

    `order`: the order of three numbers, "" where none is needed. `zone`: the distance from UTC that all
    have, `LOCAL` where the texts count as they are written, "" for none. `notes`: what to say.
    """

    days: NDArray[np.float64]
    order: str = ""
    zone: str = ""
    notes: tuple[str, ...] = ()


def read_dates(texts: Any, count: NDArray[np.intp], order: str = "", are_dates: bool = False) -> DateTexts:
    """Texts (L,), an array of Arrow, with the number of cells of each, as dates; see `DateTexts`.

    `order`: that of three numbers, if it is known. `are_dates`: the column is known to hold dates.
    """
    written = pc.utf8_trim(texts, " []")
    cells = in_english(written, are_dates)
    n = len(cells)
    fields = {name: np.full(n, np.nan) for name in ("y", "m", "d", "a", "b", "seconds", "offset")}
    left = np.arange(n)
    short, marks = np.zeros(n, dtype=np.bool_), np.full(n, "", dtype="U1")
    for form in _FORMS:
        if not len(left):
            break
        rest = cells.take(pa.array(left))
        if len(left) > _FEW and not _any_matches(rest, form):
            continue
        parts = pc.extract_regex(rest, pattern=form)
        found = np.asarray(parts.is_valid())
        if found.any():
            at = left[found]
            _read_form(parts.filter(pa.array(found)), fields, at)
            short[at] = "(?P<short>" in form
            marks[at] = next((mark for mark in "/-." if f"{_A}{re.escape(mark)}{_B}" in form), "")
            left = left[~found]
    return _assembled(written, fields, count, order, short, marks)


COMPACT = {"yyyymmdd": 1, "yyyymmddhhmm": 10**4, "yyyymmddhhmmss": 10**6}
"""Forms of whole numbers that are dates, by how much they count behind the day: 20241231235959."""


def compact_dates(values: NDArray[np.float64], form: str) -> NDArray[np.float64]:
    """Days since 1970 of numbers of a compact form, NaN for those that are no dates."""
    days = compact_days(np.floor(values / COMPACT[form]))
    if COMPACT[form] == 1:
        return np.where(values == np.floor(values), days, np.nan)
    seconds = np.where(np.isnan(values), 0.0, values) % COMPACT[form]
    if COMPACT[form] == 10**4:
        seconds = seconds * 100
    hour, minute, second = seconds // 10_000, seconds // 100 % 100, seconds % 100
    good = (hour < 24) & (minute < 60) & (second < 60) & (second == np.floor(second))
    return np.where(good, days + (3600 * hour + 60 * minute + second) / 86_400.0, np.nan)


def compact_days(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Days since 1970 of numbers such as 20241231, NaN for those that are no days."""
    good = (values >= FIRST_DAY) & (values <= LAST_DAY) & (values == np.round(values))
    whole = np.where(good, values, FIRST_DAY).astype(np.int64)
    year, month, day = whole // 10_000, whole // 100 % 100, whole % 100
    months = 12 * (year - 1970) + np.clip(month, 1, 12) - 1
    first, after = (
        (months + more).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) for more in (0, 1)
    )
    good &= (month >= 1) & (month <= 12) & (day >= 1) & (day <= after - first)
    days: NDArray[np.float64] = np.where(good, (first + day - 1).astype(np.float64), np.nan)
    return days


def clock_hours(texts: Any) -> NDArray[np.float64]:
    """Texts (L,), an array of Arrow, as hours since midnight (14:05, 2:05 PM), NaN where they are none."""
    cells = pc.utf8_trim_whitespace(texts)
    pattern = (
        r"^(?P<H>[0-9]{1,3})(?:[:h](?P<M>[0-5][0-9])(?::(?P<S>[0-5][0-9])(?:[.,](?P<f>[0-9]{1,9}))?)?)?"
        r"(?: *(?P<p>[AaPp])\.?[Mm]\.?)?(?: *(?:Uhr|uhr|h|hrs))?$"
    )
    parts = pc.extract_regex(cells, pattern=pattern)
    found = np.asarray(parts.is_valid())
    out = np.full(len(found), np.nan)
    if found.any():
        some = parts.filter(pa.array(found))
        bare = ~(_given(some, "M") | _given(some, "p"))
        out[found] = np.where(bare, np.nan, _seconds(some) / 3600.0)
    return out


def _any_matches(cells: Any, form: str) -> bool:
    """Does one of some of the cells have this form?"""
    some = cells.take(pa.array(np.arange(0, len(cells), max(len(cells) // _SAMPLE, 1))))
    return bool(pc.any(pc.match_substring_regex(some, pattern=form)).as_py())


def _read_form(parts: Any, fields: dict[str, NDArray[np.float64]], at: NDArray[np.intp]) -> None:
    """Put the numbers of texts of one form into `fields`, at their places."""
    names = {field.name for field in parts.type}
    for name in ("y", "m", "d", "a", "b"):
        if name in names:
            fields[name][at] = _numbers(parts, name)
    if "short" in names:
        short = _numbers(parts, "short")
        fields["y"][at] = short + np.where(short < _PIVOT, 2000, 1900)
    if "name" in names:
        months = pc.utf8_slice_codeunits(pc.utf8_lower(pc.struct_field(parts, "name")), 0, 3)
        index = pc.index_in(months, value_set=pa.array(_MONTHS, months.type))
        fields["m"][at] = np.asarray(index, dtype=np.float64) + 1
    if "q" in names:
        fields["m"][at] = 3 * _numbers(parts, "q") - 2
    if "w" in names:
        _weeks(parts, fields, at)
    elif not names & {"d", "a"}:
        fields["d"][at] = 1.0
    fields["seconds"][at] = 0.0
    if "H" in names:
        fields["seconds"][at] = np.where(_given(parts, "H"), _seconds(parts), 0.0)
        fields["offset"][at] = _offsets(parts)
    if "t" in names:  # 2024-01-02:5 is a date with a number
        colon = np.asarray(pc.equal(pc.struct_field(parts, "t"), ":"))
        fields["seconds"][at[colon & ~_given(parts, "M")]] = np.nan


def _weeks(parts: Any, fields: dict[str, NDArray[np.float64]], at: NDArray[np.intp]) -> None:
    """The Monday, or another day, of weeks of ISO 8601: that with January 4 is the first."""
    year, week = _numbers(parts, "y"), _numbers(parts, "w")
    day = np.where(_given(parts, "k"), _numbers(parts, "k"), 1.0)
    first = (year - 1970).astype(np.int64).astype("datetime64[Y]").astype("datetime64[D]")
    fourth = first.astype(np.int64) + 3
    days = fourth - (fourth + 3) % 7 + 7 * (week - 1) + day - 1
    month = days.astype(np.int64).astype("datetime64[D]").astype("datetime64[M]")
    good = (week >= 1) & (week <= 53)
    fields["y"][at] = np.where(good, month.astype("datetime64[Y]").astype(np.int64) + 1970, np.nan)
    fields["m"][at] = month.astype(np.int64) % 12 + 1
    fields["d"][at] = days - month.astype("datetime64[D]").astype(np.int64) + 1


def _numbers(parts: Any, name: str) -> NDArray[np.float64]:
    """A field of digits as numbers, NaN where it is empty."""
    cells = pc.struct_field(parts, name)
    cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, cells.type), cells)
    return np.asarray(pc.fill_null(pc.cast(cells, pa.float64()), np.nan))


def _given(parts: Any, name: str) -> NDArray[np.bool_]:
    """Where a field is not empty."""
    return np.asarray(pc.not_equal(pc.struct_field(parts, name), ""))


def _seconds(parts: Any) -> NDArray[np.float64]:
    """Seconds since midnight; NaN for what is no time."""
    hour, minute, second = _numbers(parts, "H"), _numbers(parts, "M"), _numbers(parts, "S")
    half = np.asarray(pc.utf8_lower(pc.struct_field(parts, "p")).to_pylist(), dtype=object)
    is_half = half != ""
    wrong = is_half & ((hour < 1) | (hour > 12))
    hour = np.where(is_half, hour % 12 + 12 * (half == "p"), hour)
    fraction = pc.struct_field(parts, "f")
    zero, nothing = (pa.scalar(text, fraction.type) for text in ("0.", ""))
    share = np.asarray(pc.cast(pc.binary_join_element_wise(zero, fraction, nothing), pa.float64()))
    total = 3600 * hour + 60 * np.nan_to_num(minute) + np.nan_to_num(second) + share
    late = (np.nan_to_num(minute) > 59) | (np.nan_to_num(second) > 59)
    seconds: NDArray[np.float64] = np.where(wrong | late, np.nan, total)
    return seconds


def _offsets(parts: Any) -> NDArray[np.float64]:
    """Minutes ahead of UTC, NaN where no zone is given."""
    zones = pc.struct_field(parts, "z")
    coded = pc.dictionary_encode(zones)
    minutes = [_minutes(zone) for zone in coded.dictionary.to_pylist()]
    offsets: NDArray[np.float64] = np.array(minutes, dtype=np.float64)[np.asarray(coded.indices)]
    return offsets


def _minutes(zone: str) -> float:
    """Minutes ahead of UTC of a zone as it is written."""
    if not zone:
        return np.nan
    if zone[0] not in "+-":
        return float(_ZONES.get(zone, 0))
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return float(f"{zone[0]}1") * (60 * int(digits[:2]) + int(digits[2:]))


def _assembled(
    written: Any,
    fields: dict[str, NDArray[np.float64]],
    count: NDArray[np.intp],
    order: str,
    short: NDArray[np.bool_],
    marks: NDArray[np.str_],
) -> DateTexts:
    """Days of the numbers that were read, in the order of all of them."""
    notes = []
    three = ~np.isnan(fields["a"]) & (count > 0)
    if three.any():
        if not order:
            order, is_open = _order_of(written, fields, count, three, short, marks)
            unsettled = three & (marks != ".")
            if is_open and unsettled.any():
                at = int(np.flatnonzero(unsettled)[0])
                day = "day" if order == DAY_FIRST else "month"
                notes.append(
                    f"has dates such as {written[at].as_py()!r}, read with the {day} first, which no cell "
                    "settles; write them as 2024-12-31 if that is wrong"
                )
        _put_in_order(fields, order)
    if (short & (count > 0) & ~np.isnan(fields["y"])).any():
        notes.append("has years of two digits, read as 1969 to 2068")
    days = _days(fields)
    days[_is_season(fields, days)] = np.nan
    offset = fields["offset"]
    known = np.unique(offset[~np.isnan(offset) & ~np.isnan(days) & (count > 0)])
    zone = ""
    if len(known) == 1:
        zone = _zone_text(float(known[0])) if known[0] else UTC
    elif len(known) > 1 and known[-1] - known[0] <= 60:
        zone = LOCAL
    elif len(known) > 1:
        shown = ", ".join(map(_zone_text, known[:3]))
        notes.append(f"has dates of several time zones ({shown}), converted to UTC")
    if zone != LOCAL:
        days = days - np.nan_to_num(offset) / 1440.0
    return DateTexts(days, order if three.any() else "", zone, tuple(notes))


def _zone_text(minutes: float) -> str:
    """A distance from UTC, such as +05:30."""
    ahead = int(abs(minutes))
    return f"{'-' if minutes < 0 else '+'}{ahead // 60:02d}:{ahead % 60:02d}"


def _order_of(
    written: Any,
    fields: dict[str, NDArray[np.float64]],
    count: NDArray[np.intp],
    three: NDArray[np.bool_],
    short: NDArray[np.bool_],
    marks: NDArray[np.str_],
) -> tuple[str, bool]:
    """The order of three numbers that most cells can only have; and whether none settles it.

    Days of the week in front settle what numbers do not. Then the month comes first between slashes, as in
    America; with points and dashes the day does.
    """
    a, b = fields["a"], fields["b"]
    if short[three].any() and (a[three] > 31).any():
        return YEAR_FIRST, False
    day_first = int(count[three & (a > 12) & (b <= 12)].sum())
    month_first = int(count[three & (b > 12) & (a <= 12)].sum())
    if day_first == month_first:
        weekdays = weekdays_of(written)
        day_first, month_first = (
            _on_weekdays(fields, count, weekdays, order) for order in (DAY_FIRST, MONTH_FIRST)
        )
    if day_first != month_first:
        return (DAY_FIRST if day_first > month_first else MONTH_FIRST), False
    return (MONTH_FIRST if (marks[three] == "/").any() else DAY_FIRST), bool((a[three] != b[three]).any())


def _on_weekdays(
    fields: dict[str, NDArray[np.float64]], count: NDArray[np.intp], weekdays: NDArray[np.intp], order: str
) -> int:
    """The number of cells that are on one of their days of the week (see `weekdays_of`) in this order."""
    ordered = {name: values.copy() for name, values in fields.items()}
    _put_in_order(ordered, order)
    days = _days(ordered)
    on = (weekdays > 0) & ~np.isnan(days)
    own = (np.floor(days[on]).astype(np.intp) + 3) % 7
    return int(count[on][(weekdays[on] >> own) % 2 == 1].sum())


def _put_in_order(fields: dict[str, NDArray[np.float64]], order: str) -> None:
    """Days and months of dates of three numbers."""
    three = ~np.isnan(fields["a"])
    a, b = fields["a"][three], fields["b"][three]
    if order == YEAR_FIRST:
        last = fields["y"][three] % 100
        fields["y"][three] = a + np.where(a < _PIVOT, 2000, 1900)
        fields["m"][three], fields["d"][three] = b, last
    else:
        fields["d"][three], fields["m"][three] = (a, b) if order == DAY_FIRST else (b, a)


def _days(fields: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Days since 1970 of years, months, days and seconds; NaN for dates that there are not."""
    year, month, day = fields["y"], fields["m"], fields["d"]
    good = (year >= _FIRST_YEAR) & (year <= _LAST_YEAR) & (month >= 1) & (month <= 12) & (day >= 1)
    months = (np.where(good, 12 * (year - 1970) + month - 1, 0)).astype(np.int64)
    first, after = (
        (months + more).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) for more in (0, 1)
    )
    good &= (day <= after - first) & (fields["seconds"] < 86_400)
    days: NDArray[np.float64] = np.where(good, first + day - 1 + fields["seconds"] / 86_400.0, np.nan)
    return days


def _is_season(fields: dict[str, NDArray[np.float64]], days: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where "2009-10" stands for a season and not a month: everywhere, if all months are the next year."""
    alone = ~np.isnan(days) & (fields["d"] == 1) & (fields["m"] == (fields["y"] + 1) % 100)
    return alone if (alone == ~np.isnan(days)).all() and alone.sum() > 1 else np.zeros(len(days), np.bool_)

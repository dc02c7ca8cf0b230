"""Texts of several numbers that are one: "1h 30m", "2 days 03:00:00", "52°30'N", "5 ft 11 in"."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

HOURS, DEGREES, FEET, POUNDS, PACE, PACE_OF_MILES = "# h", "#°", "# ft", "# lb", "# min/km", "# min/mi"
YEARS, SECONDS = "# years", "# s"
"""The units that such texts are read in, as patterns of units."""

PATTERNS = frozenset((HOURS, DEGREES, FEET, POUNDS, PACE, PACE_OF_MILES, YEARS, SECONDS))

_N = r"[0-9]+(?:\.[0-9]+)?"
_TIME_UNIT = r"(?:weeks?|wks?|w|days?|d|hours?|hrs?|hr|h|minutes?|mins?|min|m|seconds?|secs?|sec|s)"
_SPAN = re.compile(
    rf"[-+]?(?:{_N}\s*{_TIME_UNIT}[\s,]*(?:and\s+)?){{2,}}|[-+]?[0-9]+\s*days?,?\s+[0-9]{{1,2}}:[0-9]{{2}}(?::{_N})?"
    rf"|P(?=[0-9T])(?:[0-9]+D)?(?:T(?:{_N}[HMS])+)?",
    re.IGNORECASE,
)
_MINUTES = re.compile(
    r"([0-9]{1,3})(?:['′]\s*([0-9]{1,2}(?:\.[0-9]+)?)\s*(?:\"|″|'')?|:([0-5][0-9][.,][0-9]+))"
)
_BARE = re.compile(r"[0-9]+(?:[.,][0-9]+)?")
_PACE = re.compile(r"([0-9]{1,3}):([0-5][0-9])\s*(?:min)?\s*(?:/|per)\s*(km|mi|mile)", re.IGNORECASE)
_YEARS = re.compile(
    rf"(?:({_N})\s*(?:years?|yrs?|y|Jahre?|J|ans?|años?|anos?)\.?)?[\s,]*(?:(?:and|und|et|y|e)\s+)?"
    rf"(?:({_N})\s*(?:months?|mths?|mos?|m|Monate?|M|mois|mes(?:es)?)\.?)?",
    re.IGNORECASE,
)
_ONE_SPAN = re.compile(rf"[-+]?{_N}\s*{_TIME_UNIT}", re.IGNORECASE)
_UNIT_OF_TIME = re.compile(r"[A-Za-z]+")
_PLAIN_UNITS = {"w": "W", "d": "D", "h": "h", "m": "min", "s": "s"}
_ANGLE = re.compile(
    rf"(?P<first>[NSEW]?)\s*(?P<sign>[-+]?)\s*(?P<a>{_N})\s*(?:°|º|deg)\s*"
    rf"(?:(?P<b>{_N})\s*['′’]\s*)?(?:(?P<c>{_N})\s*(?:\"|″|”|''|′′)\s*)?(?P<last>[NSEW]?)",
    re.IGNORECASE,
)
_SIDE = re.compile(r"(?P<sign>[-+]?)(?P<a>[0-9]+\.[0-9]+)\s*(?P<last>[NSEW])", re.IGNORECASE)
_ANY_SIDE = re.compile(rf"(?P<sign>[-+]?)(?P<a>{_N})\s*(?P<last>[NSEW])", re.IGNORECASE)
_TWO = {
    FEET: (re.compile(rf"({_N})\s*(?:ft|feet|foot|')\s*({_N})\s*(?:in|inch|inches|\"|'')?\.?", re.I), 12.0),
    POUNDS: (re.compile(rf"({_N})\s*(?:lbs?|pounds?)\.?\s*({_N})\s*(?:oz|ounces?)\.?", re.I), 16.0),
}
_ONE = {
    FEET: re.compile(rf"({_N})\s*(?:ft|feet|foot|')\.?", re.I),
    POUNDS: re.compile(rf"({_N})\s*(?:lbs?|pounds?)\.?", re.I),
}
_SIDES = (frozenset("NS"), frozenset("EW"))


def read_compound(
    texts: Sequence[str], pattern: str = ""
) -> tuple[NDArray[np.float64], NDArray[np.object_]] | None:
    """Texts (L,) of several numbers as one: values (L,), NaN where they are none, and the patterns of units.

    Texts with one part alone ("45m" beside "1h 30m") are read so where others have several, or where
    `pattern` says that the column has them. None where there are no such texts.
    """
    for read in (_ages, _spans, _angles, _in_two_units, _paces, _minutes):
        found = read(texts, pattern)
        if found is not None:
            return found
    return None


def _spans(texts: Sequence[str], pattern: str) -> tuple[NDArray[np.float64], NDArray[np.object_]] | None:
    """Spans of time in hours."""
    several = [_SPAN.fullmatch(text) is not None for text in texts]
    if pattern != HOURS and not any(several):
        return None
    own = [
        _with_plain_units(text) if many or _ONE_SPAN.fullmatch(text) else None
        for text, many in zip(texts, several, strict=True)
    ]
    spans = pd.to_timedelta(pd.Series(own, dtype=object), errors="coerce")
    seconds = np.asarray(spans.dt.total_seconds(), dtype=np.float64)
    return _placed(seconds / 3600.0, HOURS)


def _with_plain_units(text: str) -> str:
    """A span of time with the units that pandas knows; spans of ISO 8601 (PT90M) as they are."""
    if text[:1] in "Pp":
        return text.upper()
    plain = re.sub(r"(?i)\band\b|,", " ", text)
    return _UNIT_OF_TIME.sub(lambda found: _PLAIN_UNITS[found[0][0].lower()], plain)


def _ages(texts: Sequence[str], pattern: str) -> tuple[NDArray[np.float64], NDArray[np.object_]] | None:
    """Years and months ("2y 3m", "5 yrs 2 mos") in years; beside these "8 months" and "3y" too."""
    found = [_YEARS.fullmatch(text) if text else None for text in texts]
    if pattern != YEARS and not any(one and one[1] and one[2] for one in found):
        return None
    parts = [(one[1], one[2]) if one else (None, None) for one in found]
    years = [float(y or 0) + float(m or 0) / 12.0 if y or m else np.nan for y, m in parts]
    return _placed(np.array(years), YEARS)


def _minutes(texts: Sequence[str], pattern: str) -> tuple[NDArray[np.float64], NDArray[np.object_]] | None:
    """Minutes and seconds (5'07") in hours; in seconds beside 1:02.34, where 58.07 is a number of them."""
    found = [_MINUTES.fullmatch(text) for text in texts]
    seconds = [float((one[2] or one[3]).replace(",", ".")) if one else np.nan for one in found]
    minutes = [float(one[1]) if one else np.nan for one in found]
    total = 60.0 * np.array(minutes) + np.array(seconds)
    if pattern != SECONDS and not any(one and one[3] for one in found):
        return _placed(total / 3600.0, HOURS)
    bare = [float(text.replace(",", ".")) if _BARE.fullmatch(text) else np.nan for text in texts]
    return _placed(np.where(np.isnan(total), np.array(bare), total), SECONDS)


def _paces(texts: Sequence[str], pattern: str) -> tuple[NDArray[np.float64], NDArray[np.object_]] | None:
    """Minutes and seconds for a kilometre or a mile (5:30 /km) in minutes."""
    found = [_PACE.fullmatch(text) for text in texts]
    values = np.array([float(one[1]) + float(one[2]) / 60.0 if one else np.nan for one in found])
    if np.isnan(values).all():
        return None
    units = [PACE if one and one[3].lower() == "km" else PACE_OF_MILES if one else "" for one in found]
    return values, np.array(units, dtype=object)


def _angles(texts: Sequence[str], pattern: str) -> tuple[NDArray[np.float64], NDArray[np.object_]] | None:
    """Degrees, minutes and seconds, and sides of the earth, in degrees: south and west are below 0.

    Without a sign of degrees "5.2W" is a power; sides are seen where both of a pair occur.
    """
    found = [_ANGLE.fullmatch(text) for text in texts]
    sides = {one["last"].upper() for text in texts if (one := _SIDE.fullmatch(text))}
    if sides in _SIDES or pattern == DEGREES:
        found = [one or _ANY_SIDE.fullmatch(text) for one, text in zip(found, texts, strict=True)]
    elif not any(one and (one["b"] or one["first"] or one["last"]) for one in found):
        return None
    return _placed(np.array([np.nan if one is None else _degrees(one) for one in found]), DEGREES)


def _degrees(one: re.Match[str]) -> float:
    """The degrees of a text; a / 1 + b / 60 + c / 3600, below 0 in the south and west."""
    parts = one.groupdict()
    size = float(parts["a"]) + float(parts.get("b") or 0) / 60.0 + float(parts.get("c") or 0) / 3600.0
    is_below = (parts.get("first") or parts.get("last") or "").upper() in ("S", "W")
    return -size if is_below != (parts["sign"] == "-") else size


def _in_two_units(
    texts: Sequence[str], pattern: str
) -> tuple[NDArray[np.float64], NDArray[np.object_]] | None:
    """Feet and inches, pounds and ounces, in the larger unit."""
    for unit, (two, ratio) in _TWO.items():
        found = [two.fullmatch(text) for text in texts]
        if pattern != unit and not any(found):
            continue
        if any(one and float(one[2]) >= ratio for one in found):  # 5'30" are minutes and seconds
            continue
        values = [float(one[1]) + float(one[2]) / ratio if one else np.nan for one in found]
        single = [_ONE[unit].fullmatch(text) for text in texts]
        both = [v if one is None else float(one[1]) for v, one in zip(values, single, strict=True)]
        return _placed(np.array(both), unit)
    return None


def _placed(
    values: NDArray[np.float64], pattern: str
) -> tuple[NDArray[np.float64], NDArray[np.object_]] | None:
    """Values (L,) with the pattern of their unit; None where there are none."""
    if np.isnan(values).all():
        return None
    return values, np.where(np.isnan(values), "", pattern).astype(object)


_FRACTION = re.compile(
    r"([-+]?)(?:([0-9]+)(?:\s+|-)?(?=[0-9]+/))??(?:([0-9]+)/([0-9]+))(\s*(?:[^\W\d].*|[\"″”%])?)"
)
_INCHES = re.compile(r"([0-9.]+)\s*[\"″”]")
_HALVES = frozenset((2, 4, 8, 16, 32, 64))
_LARGEST_PART = 100


def with_decimals(texts: Sequence[str], known: bool = False) -> list[str]:
    """Texts (L,) with fractions ("1 1/2", "3/4 in", "2½") as decimals of 15 places; others as they are.

    Fractions alone ("3/4") are such beside mixed ones, or if their parts are halves, quarters, eighths, ...
    of which there are several; `known`: the column holds numbers. Else they may be results or dates.
    """
    plain = [_without_signs(text) for text in texts]
    found = [_FRACTION.fullmatch(text) for text in plain]
    parts = [(int(one[3]), int(one[4])) for one in found if one]
    mixed = any(one[2] for one in found if one) or any(a != b for a, b in zip(plain, texts, strict=True))
    proper = all(a < b <= _LARGEST_PART for a, b in parts)
    kinds = {b for _, b in parts}
    if not parts or not (known or mixed or (proper and kinds <= _HALVES and len(kinds) > 1)):
        return list(texts)
    both = [text if one is None else _decimal(one) or text for text, one in zip(texts, found, strict=True)]
    return [f"{one[1]} in" if (one := _INCHES.fullmatch(text)) else text for text in both]


def _decimal(one: re.Match[str]) -> str:
    """The decimal a + b / c of a fraction, "" where it is none."""
    part, whole = int(one[3]), int(one[4])
    if not 0 < whole <= _LARGEST_PART or part >= whole:
        return ""
    return f"{one[1]}{int(one[2] or 0) + part / whole:.15f}{one[5]}"


def _without_signs(text: str) -> str:
    """A text with a sign such as ½ as 1/2, apart from the number before it."""
    if text.isascii():
        return text
    signs = ((sign, unicodedata.normalize("NFKC", sign)) for sign in text)
    out = (f" {parts}" if parts != sign and "⁄" in parts else sign for sign, parts in signs)
    return "".join(out).replace("⁄", "/").strip()

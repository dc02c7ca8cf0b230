"""Texts that are numbers, as people write them: "$1,234.50", "(3.2%)", "1.2k", "1.234,5 kg", "12 345-", "~5".

A text is a head (signs, a bracket, a currency), digits, and a tail (a multiplier, a unit, a bracket, a sign).
Digits are read in two styles, with a decimal point and with a decimal comma; which of them holds is decided
by all cells of a column, or of a file (`Votes`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nongauss.tables.compound_text import PATTERNS, read_compound, with_decimals
from nongauss.tables.number_marks import CURRENCY, SYMBOLS, usual_marks, without_marks
from nongauss.tables.scales import NO_ANSWER

POINT, COMMA = ".", ","
"""The two styles of numbers, by their decimal mark."""

MARK = "#"
"""Where the digits stand in a unit's pattern, such as "$#" or "# kg"."""

_WORDS = {
    "thousand": 3,
    "lakh": 5,
    "lac": 5,
    "crore": 7,
    "tsd": 3,
    "million": 6,
    "mln": 6,
    "mio": 6,
    "mn": 6,
    "billion": 9,
    "bn": 9,
    "mrd": 9,
    "trillion": 12,
}
_LETTERS = {"k": 3, "K": 3, "M": 6, "m": 6, "B": 9}
_LETTER = r"[^\W\d_]"

_CELL = (
    r"^(?P<head>[^0-9]*?)(?P<digits>[.,]?[0-9](?:[ .,']?[0-9])*[.,]?(?:[eE][-+]?[0-9]+)?)"
    r"(?P<tail>(?:[^0-9].*)?)$"
)
_DIGITS = re.compile(r"[.,]?[0-9](?:[ \u00a0\u2007\u2009\u202f.,'\u2018\u2019\u00b4\u02bc]?[0-9])*")
_HEAD = re.compile(
    rf"(?P<a>[-+]?)\s*(?P<open>\(?)\s*(?P<b>[-+]?)\s*(?:(?P<unit>{CURRENCY})(?P<gap>\s*))?"
    r"(?P<c>[-+]?)(?P<late>\(?)\s*"
)
_UNIT = (
    rf"(?:[{SYMBOLS}%‰°µμ]|{_LETTER})(?:{_LETTER}|[°µμ²³%/·.^*])*(?:-?[1-9])?"
    rf"(?:/\({_LETTER}(?:{_LETTER}|[²³·*./])*\))?"
    rf"(?:\s(?:°|{_LETTER})(?:{_LETTER}|[²³/.])*[23]?){{0,2}}"
    rf"|(?:/|(?:out )?of|per)\s?[0-9][0-9,.]*[kKM]?(?:\s{_LETTER}+)?|[★⭐]"
)
_TAIL = re.compile(
    rf"(?P<gap>\s*)(?:(?P<word>{'|'.join(_WORDS)})s?\.?(?!{_LETTER})|(?P<letter>[kKMBm])(?!{_LETTER}|[/²³^1-9]))?"
    rf"(?P<space>\s*)(?P<unit>{_UNIT})?\s*(?P<close>\)?)(?P<minus>-?)",
    re.IGNORECASE,
)
_NO_UNIT = re.compile(r" *(?:Q[1-4]|[ap]\.?m\.?)|st|nd|rd|th", re.IGNORECASE)
"""Tails that are no units: quarters, halves of a day, ordinals (but "12 ST" are pieces)."""

_LONGEST_UNIT, _GROUP = 20, 3

_FROM = 10.0
"""Amounts of money from which there are no tenths of a cent."""

_SAME_UNIT = {
    "usd": "$",
    "us$": "$",
    "eur": "€",
    "euro": "€",
    "gbp": "£",
    "percent": "%",
    "pct": "%",
    "inr": "₹",
}

_UNITS = (
    "kg g mg µg t lb oz st km m cm mm µm mi mile ft in inch yd s sec ms min h hr d day week wk month mo "
    "year yr l ml cl dl gal % ‰ °c °f kwh mwh wh kw mw hz khz mhz ghz kb mb gb tb mph km/h m/s "
    "m2 m² sqft sqm ha acre kcal cal kj pa kpa bar psi"
)
KNOWN_UNITS = frozenset(_UNITS.split())
"""Units, in lower case, of which two in a column are worth a warning; others are rather parts of labels."""

_MISSING = (
    "|-|--|---|–|—|.|..|?|??|n/a|na|n.a.|n.a|#n/a|#na|nan|nil|null|none|no|unknown|unkn|unk|missing|miss|"
    "not available|not applicable|not known|no data|no value|tbd|tba|k.a.|undefined|#value!|#div/0!|#ref!|"
    "err|error|overflow|overload|out of range|undetermined|indeterminate|invalid|pending|not done|not taken|"
    "not tested|not measured|not recorded|absent|abs|dnf|dns|dsq"
)
MISSING_WORDS = frozenset(_MISSING.split("|")) | NO_ANSWER
"""What people write where there is no number, in lower case."""


def _digits_pattern(point: str, comma: str) -> str:
    """Digits with a decimal `point`, perhaps with groups of three (or as in India) between `comma`s."""
    point, comma = re.escape(point), re.escape(comma)
    groups = "|".join(f"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+" for mark in (comma, "'", " "))
    whole = f"[0-9]+|{groups}|[1-9][0-9]?(?:{comma}[0-9]{{2}})+{comma}[0-9]{{3}}"
    return f"^(?:{whole})?(?:{point}[0-9]*)?(?:[eE][-+]?[0-9]+)?$"


_STYLES = {POINT: _digits_pattern(POINT, COMMA), COMMA: _digits_pattern(COMMA, POINT)}


@dataclass(frozen=True)
class NumberTexts:
    """Texts (L,) as numbers in both styles, NaN where a style has none; `patterns` (L,) are those of units.

    `whole` (L,): digits alone; `padded` (L,): three of them or more that begin with a zero, as codes do.
    `marked` (L,): with a mark that says something of the number ("<0.1", "3+", "12*").
    """

    point: NDArray[np.float64]
    comma: NDArray[np.float64]
    patterns: NDArray[np.object_]
    whole: NDArray[np.bool_]
    padded: NDArray[np.bool_]
    marked: NDArray[np.bool_]

    def of_style(self, style: str) -> NDArray[np.float64]:
        """The numbers (L,) in one style."""
        return self.comma if style == COMMA else self.point


@dataclass(frozen=True)
class Votes:
    """For how many cells only one style has a number, and for how many both have, but different ones."""

    point: int = 0
    comma: int = 0
    either: int = 0

    @classmethod
    def of(cls, found: NumberTexts, count: NDArray[Any]) -> Votes:
        """The votes of texts (L,) that occur so often, (L,)."""
        point, comma = ~np.isnan(found.point), ~np.isnan(found.comma)
        either = point & comma & (found.point != found.comma)
        return cls(*(int(count[mask].sum()) for mask in (point & ~comma, comma & ~point, either)))

    def __add__(self, other: Votes) -> Votes:
        return Votes(self.point + other.point, self.comma + other.comma, self.either + other.either)

    def style(self, default: str = POINT) -> str:
        """The style with more cells of its own, else the default."""
        if self.point == self.comma:
            return default
        return COMMA if self.comma > self.point else POINT

    @property
    def open(self) -> bool:
        """Are there numbers of two readings, and none that settles them?"""
        return bool(self.either) and self.point == self.comma == 0


def read_numbers(texts: Any, pattern: str = "", are_numbers: bool = False) -> NumberTexts:
    """Texts (a sequence, or an array of Arrow) as numbers; see `NumberTexts`.

    `pattern`: the unit of their column, if it is known; see `read_compound`. `are_numbers`: the column is
    known to hold numbers; see `with_decimals`.
    """
    cells = pa.array(texts, pa.large_string()) if not isinstance(texts, pa.Array) else texts
    cells = usual_marks(cells, pattern)
    fractions = np.zeros(len(cells), dtype=np.bool_)
    is_share = re.search("/ ?[0-9]", pattern) is not None  # "12.5/20": points out of 20
    if not is_share and pc.any(pc.match_substring_regex(cells, pattern="[0-9]/[0-9]|[½⅓⅔¼¾⅕-⅞]")).as_py():
        decimals = pa.array(with_decimals(cells.to_pylist(), are_numbers), cells.type)
        cells, fractions = decimals, np.asarray(pc.fill_null(pc.not_equal(decimals, cells), False))
    cells, marked = without_marks(cells)
    parts = pc.extract_regex(cells, pattern=_CELL)
    digits, head, tail = (pc.struct_field(parts, name) for name in ("digits", "head", "tail"))
    around = pc.dictionary_encode(_joined(head, tail, MARK))
    known = [_affix(*text.split(MARK, 1)) for text in around.dictionary.to_pylist()]
    known.append(None)
    if not is_share and not _matches(cells, "^[0-9]+[.,][0-9]+ ?/ ?[0-9]+$").any():
        known = [None if one and re.search("/ ?[0-9]", one[3]) else one for one in known]
    legal, sign, power, patterns = (
        np.array([default if found is None else found[i] for found in known], dtype=kind)
        for i, (default, kind) in enumerate(((False, bool), (1.0, float), ("", object), (MARK, object)))
    )
    which = np.asarray(pc.fill_null(around.indices, len(known) - 1))
    numbers = {style: sign[which] * _values(digits, power[which], legal[which], style) for style in _STYLES}
    numbers[COMMA] = np.where(fractions, numbers[POINT], numbers[COMMA])
    _settle_money(numbers, patterns[which], power[which] == "")
    alone = np.array([found == _ALONE for found in known])[which]
    whole = alone & _matches(digits, r"^[0-9]+$")
    padded = whole & _matches(digits, r"^0[0-9]{2,}$")
    found = NumberTexts(numbers[POINT], numbers[COMMA], patterns[which], whole, padded, marked)
    return _with_compounds(found, cells, pattern)


def _with_compounds(found: NumberTexts, cells: Any, pattern: str) -> NumberTexts:
    """The numbers, and those of texts of several parts ("1h 30m") in the place of what else was read."""
    may_be = pattern in PATTERNS or pc.any(pc.match_substring_regex(cells, pattern=_COMPOUND)).as_py()
    if not may_be:
        return found
    compound = read_compound(cells.to_pylist(), pattern)
    if compound is None:
        return found
    values, patterns = compound
    good = ~np.isnan(values)
    point, comma = (np.where(good, values, side) for side in (found.point, found.comma))
    return replace(found, point=point, comma=comma, patterns=np.where(good, patterns, found.patterns))


_SIDES = r"^[NSEW] ?[0-9]|[0-9] ?[NSEW]$"
_COMPOUND = (
    r"^P[0-9T]|[0-9] ?[A-Za-z]+\.?,? ?(?:(?:and|und|et|y|e) )?[0-9]|[0-9] ?['°º′]"
    rf"|:[0-9]{{2}}(?:[.,]| ?/| ?min| per)|{_SIDES}"
)
"""What texts of several parts have in them."""


def _settle_money(
    numbers: dict[str, NDArray[np.float64]], patterns: NDArray[np.object_], is_whole: NDArray[np.bool_]
) -> None:
    """Take away the reading of amounts of money (L,) in which three digits are decimals, as no money has.

    Left are small amounts, as prices of fuel do have three ("1,659 €"), but for dollars with a comma, and
    numbers of thousands or millions, which `is_whole` (L,) excludes.
    """
    point, comma = numbers[POINT], numbers[COMMA]
    keys = {pattern: unit_key(str(pattern)) for pattern in set(patterns)}
    money = np.array([is_currency(keys[pattern]) for pattern in patterns], dtype=np.bool_)
    dollars = np.array([keys[pattern] == "$" for pattern in patterns], dtype=np.bool_)
    large = np.minimum(np.abs(point), np.abs(comma)) >= _FROM
    either = money & is_whole & ~np.isnan(point) & ~np.isnan(comma)
    point[either & large & (np.abs(point) < np.abs(comma))] = np.nan
    comma[either & (large | dollars) & (np.abs(comma) < np.abs(point))] = np.nan


def is_currency(key: str) -> bool:
    """Is this the key of a currency?"""
    return re.fullmatch(CURRENCY, key, re.IGNORECASE) is not None


def unit_key(pattern: str) -> str:
    """What two patterns have in common if they are of one unit: "5 Years" and "1 year", "3%" and "3 %"."""
    key = "".join(pattern.replace(MARK, "").split()).casefold().rstrip(".")
    key = key[:-1] if len(key) > 2 and key.endswith("s") else key
    return _SAME_UNIT.get(key, key)


def is_known_unit(key: str) -> bool:
    """Is this key of a unit a currency, or one of the units that people know?"""
    return key in KNOWN_UNITS or is_currency(key)


def plain_number(text: str, style: str) -> str:
    """A text that is a number of this style with a decimal point, and without marks between thousands.

    Three decimals get a fourth, so that nothing else can be read in them.
    """
    return _DIGITS.sub(lambda found: _without_groups(found[0], style), text, count=1)


def _without_groups(digits: str, style: str) -> str:
    """Digits of a style as those of the point style without groups."""
    whole, _, rest = digits.partition(style)
    rest += "0" * (len(rest) == _GROUP)
    return re.sub(r"[^0-9]", "", whole) + (f".{rest}" if rest else "")


def percent_style(found: NumberTexts) -> str:
    """The style in which percentages of two readings ("12.345 %") have decimals; "" of other numbers."""
    either = ~np.isnan(found.point) & ~np.isnan(found.comma) & (found.point != found.comma)
    keys = {unit_key(str(pattern)) for pattern in found.patterns[either]}
    if not keys or not keys <= {"%", "‰"}:
        return ""
    points = (np.abs(found.point[either]) < np.abs(found.comma[either])).mean()
    return POINT if points >= 0.5 else COMMA


def two_readings(texts: Any, found: NumberTexts, style: str) -> str:
    """What is to be said of numbers that are thousands in one style and decimals in the other."""
    point, comma = found.point, found.comma
    at = int(np.flatnonzero(~np.isnan(point) & ~np.isnan(comma) & (point != comma))[0])
    number, other = (values[at] for values in ((comma, point) if style == COMMA else (point, comma)))
    return (
        f"holds numbers such as {texts[at]!r}, read as {number:g} and not as {other:g}, which no cell "
        "settles; write them without marks between thousands if that is wrong"
    )


def is_missing_word(text: str) -> bool:
    """Is this what people write where there is no number?"""
    return text.strip().lower() in MISSING_WORDS


_ALONE = (True, 1.0, "", MARK)


def _joined(first: Any, second: Any, between: str) -> Any:
    """Texts of Arrow, two at a time, missing where one of them is."""
    return pc.binary_join_element_wise(
        first, second, pa.scalar(between, first.type), null_handling="emit_null"
    )


def _matches(cells: Any, pattern: str) -> NDArray[np.bool_]:
    """Which cells match a pattern; missing ones do not."""
    return np.asarray(pc.fill_null(pc.match_substring_regex(cells, pattern=pattern), False))


def _values(
    digits: Any, power: NDArray[np.object_], legal: NDArray[np.bool_], style: str
) -> NDArray[np.float64]:
    """Digits (L,) of one style as numbers, times the power of ten ("e3"); NaN where they are none."""
    good = legal & _matches(digits, _STYLES[style])
    scaled = power != ""
    if scaled.any():
        good &= ~scaled | ~_matches(digits, "[eE]")
    out = np.full(len(legal), np.nan)
    if not good.any():
        return out
    cells = digits.filter(pa.array(good))
    other = re.escape(COMMA if style == POINT else POINT)
    cells = pc.replace_substring_regex(cells, pattern=f"[ '{other}]", replacement="")
    if style == COMMA:
        cells = pc.replace_substring(cells, pattern=COMMA, replacement=POINT)
    if scaled.any():
        cells = _joined(cells, pa.array(power[good], cells.type), "")
    out[good] = np.asarray(pc.cast(cells, pa.float64()))
    return out


@cache
def _affix(head: str, tail: str) -> tuple[bool, float, str, str] | None:
    """What stands around digits: (True, sign, power of ten as "e3", the unit's pattern); None: nonsense."""
    before, behind = _HEAD.fullmatch(head), _TAIL.fullmatch(tail)
    if before is None or behind is None:
        return None
    currency, unit = before["unit"] or "", behind["unit"] or ""
    signs = before["a"] + before["b"] + before["c"] + behind["minus"]
    if unit.upper() in ("CR", "DR"):  # what an account has, and what it owes
        signs, unit = signs + "-" * (unit.upper() == "DR"), ""
    bracket = bool(before["open"] or before["late"])
    if len(signs) + bracket > 1 or bracket != bool(behind["close"]) or len(unit) > _LONGEST_UNIT:
        return None
    power, letter = "", behind["letter"] or ""
    money = bool(currency) or re.fullmatch(CURRENCY, unit) is not None
    if behind["word"]:
        power = f"e{_WORDS[behind['word'].lower()]}"
    elif letter in _LETTERS and (money or (letter != "m" and not behind["gap"])):
        power = f"e{_LETTERS[letter]}"
    elif letter:
        unit = letter + behind["space"] + unit if unit else letter
    if (currency and unit) or _NO_UNIT.fullmatch(behind["gap"] + unit):
        return None
    gap = behind["gap"] if not power else behind["space"]
    pattern = f"{currency}{before['gap'] or ''}{MARK}{gap if unit else ''}{unit}"
    return True, -1.0 if bracket or "-" in signs else 1.0, power, pattern

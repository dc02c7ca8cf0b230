"""Marks around numbers in texts: usual ones for unusual ones, and those that say something of a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

SYMBOLS = "$€£¥₹₽₩₺₪₫₴₦฿"
_CODES = (
    "USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|RUB|UAH|TRY|ILS|BRL|MXN|ARS|CLP|"
    "COP|ZAR|NGN|EGP|KRW|SGD|HKD|TWD|THB|IDR|MYR|PHP|VND|SAR|AED"
)
CURRENCY = rf"(?:US|AU|CA|HK|NZ|[CARS])?\$|[{SYMBOLS}]|(?:{_CODES})|Rs|Fr|[Kk]r|Kč|zł|Ft"
"""A currency by its symbol or its code, as a regular expression."""

_MARKS = (
    ("[\u00a0\u2007\u2009\u202f]", " "),
    ("[\u2212\u2013\uff0d]", "-"),
    ("[’‘´`ʼ]", "'"),
    ("^ *[▲↑] ?", ""),
    ("^ *[▼↓] ?-?", "-"),
    ("￥", "¥"),
    ("＄", "$"),
    (r"([0-9]) ?[×·] ?10\^?([-+]?[0-9]+)$", r"\1e\2"),
)
"""Unusual blanks, minus signs and apostrophes, and the usual ones."""

_BEFORE = (
    r"(?:[<>≤≥]=?|~|≈|(?i:ca?|approx|circa|about|etwa|env)\.? "
    r"|(?i:less than|more than|under|over|above|below|up to|at least|at most) )? *"
)
_BEHIND = r"[+*†‡]*|(?i:and|or) (?i:more|less|fewer|over|above|up|under|below|older|younger)"
_MARKED = rf"^({_BEFORE})([-+(]*[^-+0-9]{{0,4}}[0-9.,].*?) *({_BEHIND})$"
"""A number with a mark in front or behind that says something of it; the number is the second group."""

_ERROR = r"^([-+]?[0-9][0-9.,' ]*?) *(?:±|\+/?-) *[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?( *[^-+±0-9]*)$"
"""A number with its error ("3.1 ± 0.2 kg"); the number and the unit are the groups."""

SIDES = "# S/H"
"""The unit of amounts of which each says on which side of an account it is, S (debit) or H (credit)."""

_AMOUNT = r"^[0-9.,' ]*[0-9][.,][0-9]{2} "
_DEBIT, _CREDIT = r"^([0-9.,' ]*[0-9]) S$", r"^([0-9.,' ]*[0-9]) H$"


def usual_marks(cells: Any, unit: str = "") -> Any:
    """Cells with plain blanks, signs and apostrophes, trimmed, without the points of "Rs.5" and "100.-".

    Without the quotation marks of spreadsheets, as in ="5" and '5, too. Where others are in KB, or the column
    is known to be in such a `unit`, "900B" are bytes. Where all are amounts of German accounts, "12.50 S" is
    owed, below 0 (see `SIDES`).
    """
    if not pc.all(pc.string_is_ascii(cells)).as_py():
        for marks, plain in _MARKS:
            cells = pc.replace_substring_regex(cells, pattern=marks, replacement=plain)
    cells = pc.utf8_trim_whitespace(cells)
    if _any(cells, "^[=\"']"):
        cells = pc.replace_substring_regex(cells, pattern="^=?[\"'](.*?)[\"']?$", replacement=r"\1")
    cells = pc.replace_substring_regex(cells, pattern=r"^(-?(?:Rs|Fr|[Kk]r))\.", replacement=r"\1")
    cells = pc.replace_substring_regex(
        cells, pattern=r"([0-9]) ?[xX*] ?10\^([-+]?[0-9]+)$", replacement=r"\1e\2"
    )
    if pc.any(pc.ends_with(cells, "-")).as_py():
        cells = pc.replace_substring_regex(cells, pattern=rf"^({CURRENCY}) *-+$", replacement=r"\10")
        cells = pc.replace_substring_regex(cells, pattern=r"([0-9])[.,]-+$", replacement=r"\1")
    if _any(cells, "[.,][0-9]{2} ?-$"):
        cells = pc.replace_substring_regex(cells, pattern=r"([.,][0-9]{2}) ?\+$", replacement=r"\1")
    if _any(cells, r"^\(.*\) ?%$"):
        cells = pc.replace_substring_regex(cells, pattern=r"^\((.*)\) ?%$", replacement=r"(\1%)")
    if unit.endswith("B") or _any(cells, "[0-9] ?[KMGT]i?B$"):
        cells = pc.replace_substring_regex(cells, pattern="([0-9])B$", replacement=r"\1 B")
    if unit == SIDES or _are_of_sides(cells):
        cells = pc.replace_substring_regex(cells, pattern=_DEBIT, replacement=r"-\1 S/H")
        cells = pc.replace_substring_regex(cells, pattern=_CREDIT, replacement=r"\1 S/H")
    return cells


def without_marks(cells: Any) -> tuple[Any, NDArray[np.bool_]]:
    """The cells (L,) without marks that say something of their numbers ("<0.1", "3+", "12*", "5 ± 1"); which
    of them had some."""
    bare = cells
    if _any(cells, r"^[<>≤≥~≈A-Za-z]|[+*†‡]$|[a-z] [a-z]+$"):
        bare = pc.replace_substring_regex(bare, pattern=_MARKED, replacement=r"\2")
    if _any(bare, r"[0-9] *(?:±|\+/?-) *[0-9]"):
        bare = pc.replace_substring_regex(bare, pattern=_ERROR, replacement=r"\1\2")
    return bare, np.asarray(pc.fill_null(pc.not_equal(bare, cells), False))


def _are_of_sides(cells: Any) -> bool:
    """Are all cells with a digit amounts with S or H behind them, and do both occur?"""
    if not (_any(cells, f"{_AMOUNT}S$") and _any(cells, f"{_AMOUNT}H$")):
        return False
    others = pc.and_not(
        pc.match_substring_regex(cells, pattern="[0-9]"),
        pc.match_substring_regex(cells, pattern=f"{_AMOUNT}[SH]$"),
    )
    return not pc.any(others).as_py()


def _any(cells: Any, pattern: str) -> bool:
    """Does one of the cells match a pattern?"""
    return bool(pc.any(pc.match_substring_regex(cells, pattern=pattern)).as_py())

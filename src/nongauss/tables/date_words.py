"""Dates with months in words of other languages, with English ones: "3. März 2024", "15 de enero de 2024".

A day of the week in front of a date of numbers is left out: "Do, 29.12.2022". A month with a year alone, "Mai
2024", may as well be a label ("Pro 2019"): it is a date only if a whole column speaks for that.

The names are those of Unicode's locale data, which Babel brings; it is loaded where a column may need it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

LANGUAGES = ("de", "fr", "es", "it", "pt", "nl", "sv", "da", "nb", "fi", "pl", "cs", "ru", "uk", "tr")
"""Languages whose months are known. No word stands for two months in them."""

_ENGLISH = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BETWEEN = frozenset(("de", "del", "den", "der", "dem", "le", "il", "feira", "г", "р"))
"""Words that stand between the parts of a date and say nothing."""

_L = r"[^\W\d_]"
_MONTH = rf"{_L}{{3,12}}\.?[ ,/-]*(?:del? )?"
_DAY = rf"(?:{_L}+\.?-?{_L}*,? +)?(?:{_L}{{1,3}} )?[0-9]{{1,2}}(?:\.|er|º|ª|°)?[ /-]*(?:del? )?"
_LIKE_A_DATE = re.compile(rf"{_DAY}{_MONTH}[0-9]{{2,4}}(?![0-9A-Za-z_])|{_MONTH}[0-9]{{4}}\Z")
"""Python's, not Arrow's, which would be compiled anew for every column, in 20 ms."""
_DAY_OF_NUMBERS = re.compile(rf"({_L}+)\.?(?:-{_L}+)?,? +(?=[0-9]{{1,4}}([-/.])[0-9]{{1,2}}\2[0-9]{{2,4}})")
_WORD = re.compile(r"[^\W\d_]+\.?")
_ORDINAL = re.compile(r"^(\D*[0-9]{1,2})(?:er|º|ª|°)(?=\W)")
_MONTH_ALONE = re.compile(rf"({_L}{{3,12}})\.?[ ,/-]*(?:del? )?([0-9]{{4}})")
_SAMPLE, _MOSTLY, _NEARLY_ALL = 200, 0.5, 0.9
_FIRST_YEAR, _LAST_YEAR = 1900, 2100  # of months without days


def in_english(texts: Any, are_dates: bool = False) -> Any:
    """Texts, an array of Arrow, those of them that are dates in another language with months in English.

    `are_dates`: the column is known to hold dates, whatever these texts look like by themselves.
    """
    some = texts.take(pa.array(np.arange(0, len(texts), max(len(texts) // _SAMPLE, 1))))
    like = sum(
        bool(_LIKE_A_DATE.match(text or "") or _DAY_OF_NUMBERS.match(text or "")) for text in some.to_pylist()
    )
    if not len(texts) or like < _MOSTLY * len(some):
        return texts
    cells = texts.to_pylist()
    alone = are_dates or _are_months_alone(cells)
    return pa.array(
        [text if not alone and _MONTH_ALONE.fullmatch(text) else _translated(text) for text in cells],
        texts.type,
    )


def weekdays_of(texts: Any) -> NDArray[np.intp]:
    """The days of the week in front of dates of numbers (L,), an array of Arrow: a bit for each, Monday's 1.

    A word of several languages may be several days; 0 where there is none.
    """
    found = [_DAY_OF_NUMBERS.match(text) for text in texts.to_pylist()]
    days = _known_words()[1] if any(found) else {}
    return np.array([days.get(_bare(word[1]), 0) if word else 0 for word in found], dtype=np.intp)


def _are_months_alone(texts: list[str]) -> bool:
    """Are nearly all texts of a word and four digits months of one language, and years of our time?

    It has to have two different ones of these months; English ones may be among them.
    """
    pairs = [found.groups() for text in texts if (found := _MONTH_ALONE.fullmatch(text))]
    words = Counter(_bare(word) for word, year in pairs if _FIRST_YEAR <= int(year) <= _LAST_YEAR)
    english = _months_by_language()["en"]
    return any(
        len({month for word, month in months.items() if word in words}) > 1
        and sum(words[word] for word in months | english) >= _NEARLY_ALL * len(pairs)
        for months in _months_by_language().values()
    )


def _translated(text: str) -> str:
    """A text with the word for its month in English and without other words; as it is if one is unknown."""
    months, days = _known_words()
    weekday = _DAY_OF_NUMBERS.match(text)
    if weekday:
        return text[weekday.end() :] if _bare(weekday[1]) in days else text
    if _MONTH_ALONE.fullmatch(text):
        months = _all_months()
    words = [_bare(word) for word in _WORD.findall(_ORDINAL.sub(r"\1", text))]
    if not any(word in months for word in words):
        return text
    if any(word not in months and word not in days and word not in _BETWEEN for word in words):
        return text

    def english(found: re.Match[str]) -> str:
        month = months.get(_bare(found[0]))
        return _ENGLISH[month - 1] if month else ""

    spoken = _WORD.sub(english, _ORDINAL.sub(r"\1", text))
    return re.sub(r"[\s,]+", " ", spoken).strip(" -,.")


@cache
def _months_by_language() -> dict[str, dict[str, int]]:
    """Words for months with their numbers, in lower case without accents, of each language."""
    from babel.dates import get_month_names

    return {
        language: {
            form: month
            for width in ("wide", "abbreviated")
            for context in ("format", "stand-alone")
            for month, name in get_month_names(width, context=context, locale=language).items()
            for form in _forms(name)
        }
        for language in (*LANGUAGES, "en")
    }


@cache
def _known_words() -> tuple[dict[str, int], dict[str, int]]:
    """Words for months with their numbers, and for days of the week with their bits (`weekdays_of`)."""
    from babel.dates import get_day_names

    days: dict[str, int] = {}
    for language in (*LANGUAGES, "en"):
        for width in ("wide", "abbreviated"):
            for day, name in get_day_names(width, locale=language).items():
                for part in _bare(name).split("-"):
                    days[part] = days.get(part, 0) | 1 << day
    return _with_beginnings(_all_months()), days


@cache
def _all_months() -> dict[str, int]:
    """The words for months of all languages."""
    known = _months_by_language()
    return {word: month for language in LANGUAGES for word, month in known[language].items()}


def _with_beginnings(months: dict[str, int]) -> dict[str, int]:
    """Words for months, with their first three letters where these are of one month only."""
    short: dict[str, set[int]] = {}
    for word, month in months.items():
        short.setdefault(word[:3], set()).add(month)
    return {word: min(known) for word, known in short.items() if len(known) == 1} | months


def _forms(name: str) -> tuple[str, str]:
    """A name without accents, and with those of German as it is written without them."""
    return _bare(name), _bare(name.replace("ä", "ae"))


def _bare(word: str) -> str:
    """A word in lower case, without accents and the point behind it."""
    signs = unicodedata.normalize("NFKD", word.casefold())
    return "".join(sign for sign in signs if not unicodedata.combining(sign)).rstrip(".")

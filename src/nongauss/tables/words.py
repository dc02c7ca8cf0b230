"""What words say: those in a column's name, and labels that are a scale known to everyone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|%")
_RANGE = re.compile(
    r"(?P<below><|≤|<=|under|below|less than|up to)?[\s(\[]*(?P<low>-?\d+(\.\d+)?)"
    r"\s*((-|–|to|,|\.\.)\s*-?\d+(\.\d+)?[\s)\]]*|\+|and over|and above|or more)?",
    re.IGNORECASE,
)
_ROMAN = {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "x": 10}
_STEPS = ("stage", "grade", "level", "tier", "rating", "star", "stars", "rank", "step", "phase", "degree")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")

SCALES: dict[str, str] = {
    "agreement": "strongly disagree, disagree strongly, completely disagree, totally disagree, fully disagree"
    " < disagree, mostly disagree < somewhat disagree, slightly disagree, mildly disagree, rather disagree"
    " < neutral, neither agree nor disagree, neither, undecided, unsure"
    " < somewhat agree, slightly agree, mildly agree, rather agree < agree, mostly agree"
    " < strongly agree, agree strongly, completely agree, totally agree, fully agree",
    "quality": "terrible, awful, unacceptable, unacc < very poor, very bad < poor, bad, insufficient"
    " < below average < fair, average, ok, okay, acceptable, acc, mediocre, satisfactory, sufficient, neutral"
    " < above average < good < very good, vgood < great < excellent < outstanding, perfect",
    "quality of gems": "fair < good < very good < premium < ideal",
    "quality in codes": "po < fa < ta < gd < ex",
    "size": "xxs < xs, extra small, tiny < s, small < m, medium, mid, mid size < l, large, big"
    " < xl, extra large, very large, huge < xxl < xxxl, giant",
    "amount": "none, no, zero, nothing, absent < minimal, lowest, very low < low, little"
    " < medium, moderate, mid, middle, average, normal < high, much, elevated < very high, highest"
    " < extreme, critical",
    "number": "none < few, a few < some, several < many, a lot < most < all",
    "frequency": "never < almost never, hardly ever, very rarely < rarely, seldom"
    " < occasionally, once in a while < sometimes < often, frequently, regularly"
    " < usually, very often, most of the time < almost always, nearly always < always",
    "intervals of time": "never < yearly, annually < quarterly < monthly < weekly < daily < hourly",
    "likelihood": "impossible < extremely unlikely, very unlikely, highly unlikely < unlikely, improbable"
    " < somewhat unlikely < neutral, possible, maybe, even < somewhat likely < likely, probable"
    " < extremely likely, very likely, highly likely < certain",
    "severity": "none, absent, healthy, no, normal < minimal, trace, very mild < mild, minor, slight, low"
    " < moderate, medium < moderately severe < severe, serious, major, high"
    " < very severe, critical, extreme, life threatening < fatal, death, dead",
    "education": "none, no schooling, uneducated < preschool < primary, primary school, elementary,"
    " elementary school < middle school, lower secondary, junior high"
    " < high school, secondary, secondary school, hs grad, upper secondary, high school graduate"
    " < some college < associate, associates, associate degree < bachelor, bachelors, undergraduate, college,"
    " university, bachelor degree < master, masters, graduate, postgraduate, master degree"
    " < professional, prof school < doctorate, doctoral, phd",
    "satisfaction": "very dissatisfied, very unsatisfied, extremely dissatisfied, completely dissatisfied"
    " < dissatisfied, unsatisfied < somewhat dissatisfied, slightly dissatisfied"
    " < neutral, neither, neither satisfied nor dissatisfied < somewhat satisfied, slightly satisfied"
    " < satisfied < very satisfied, extremely satisfied, completely satisfied",
    "importance": "unimportant, not important, not at all important < slightly important"
    " < moderately important, somewhat important < important < very important < extremely important",
    "happiness": "very unhappy < unhappy < neutral < happy < very happy",
    "sentiment": "very negative < negative < neutral < positive < very positive",
    "difficulty": "very easy < easy < medium, moderate, normal < hard, difficult < very hard, very difficult",
    "speed": "very slow < slow < medium, moderate, normal < fast < very fast",
    "warmth": "freezing < cold < cool < mild < warm < hot",
    "age": "child, infant < teenager, teen, adolescent < young, young adult < middle aged, middle, adult"
    " < old, senior, elderly",
    "confirmation": "definitely not < no, probably not < maybe, perhaps, unsure, undecided"
    " < yes, probably < definitely",
    "rank": "lower, bottom < middle, mid < upper, top",
    "medals": "bronze < silver < gold < platinum < diamond",
}
"""Words from lowest to highest; those between commas share a place."""

_PLACES: dict[str, dict[str, int]] = {
    name: {word.strip(): at for at, place in enumerate(text.split("<")) for word in place.split(",")}
    for name, text in SCALES.items()
}
_LETTERS = {letter: -place for place, letter in enumerate("abcdefg")}


def words_of(name: str) -> tuple[str, ...]:
    """The words of a column's name, in lower case: "PassengerId" and "passenger_id" are passenger, id."""
    return tuple(word.lower() for word in _WORD.findall(str(name)))


def is_named(name: str, words: Iterable[str]) -> str:
    """The first of some words that a column's name holds, perhaps in the plural; "" where it holds none."""
    own = words_of(name)
    forms = {*own, *(word.removesuffix("s") for word in own if len(word) > 3), "".join(own)}
    return next((word for word in words if word in forms), "")


def is_head(name: str, words: Iterable[str]) -> str:
    """The word, of some, that a column's name is of: the last but for numbers; "" where it is none of them.

    "area code 2" is a code, "code length" is none.
    """
    own = [word for word in words_of(name) if not word.isdigit()]
    while len(own) > 1 and own[-1] in ("number", "no", "nr", "num"):
        own.pop()
    return own[-1] if own and (own[-1] in (known := set(words)) or "".join(own) in known) else ""


_YES_OR_NO = frozenset(("yes", "no", "true", "false"))


def is_plain_word(label: str) -> bool:
    """Is it a word for yes or no, or of a known scale, whose case says nothing?"""
    word = label.strip().casefold()
    return word in _YES_OR_NO or any(word in places for places in _PLACES.values())


def known_order(labels: Sequence[str], *, letters: bool = False) -> tuple[tuple[str, ...], str] | None:
    """Labels from lowest to highest, and what scale they are of; None where no order is known.

    Scales of words (see `SCALES`), numbers and ranges of numbers by size, steps such as "stage 2", "II" or
    "second". `letters`: A to G are marks, A the best.
    """
    for places, what in _candidates(labels, letters):
        if len(set(places)) == len(labels):
            order = sorted(range(len(labels)), key=places.__getitem__)
            return tuple(labels[i] for i in order), what
    return None


def _candidates(labels: Sequence[str], letters: bool) -> Iterable[tuple[list[float], str]]:
    """Places of all labels on the scales that have a place for each."""
    plain = [
        re.sub(r"[\s_\-/]+", " ", re.sub(r"[’']s\b|[’'.]", "", label.casefold())).strip() for label in labels
    ]
    numbers = [_as_number(label) for label in labels]
    if all(number is not None for number in numbers):
        yield [number for number in numbers if number is not None], "numbers by size"
    for name, places in _PLACES.items():
        if all(label in places for label in plain):
            yield [places[label] for label in plain], f"a scale of {name}"
    steps = [_step(label) for label in plain]
    if all(step is not None for step in steps):
        yield [step for step in steps if step is not None], "numbered steps"
    ranges = [_range_start(label) for label in labels]
    if all(start is not None for start in ranges):
        yield [start for start in ranges if start is not None], "ranges of numbers"
    if letters:
        marks = [_mark(label) for label in labels]
        if all(mark is not None for mark in marks):
            yield [mark for mark in marks if mark is not None], "marks, A the best"


def _as_number(label: str) -> float | None:
    try:
        return float(label)
    except ValueError:
        return None


def _step(label: str) -> float | None:
    """The number of a step: "stage 2", "2nd grade", "iii", "second"; None for others."""
    words = [word for word in label.split() if word not in _STEPS]
    if len(words) != 1:
        return None
    word = words[0]
    if word in _ORDINALS:
        return float(_ORDINALS.index(word))
    if word in _ROMAN:
        return float(_ROMAN[word])
    return _as_number(re.sub(r"^(\d+)(st|nd|rd|th)$", r"\1", word))


def _range_start(label: str) -> float | None:
    """Where a range of numbers begins: 18 of "18-25" and of "18+", a little less of "<18"."""
    found = _RANGE.fullmatch(label.strip().lstrip(">≥= "))
    if found is None:
        return None
    return float(found["low"]) - (1e-9 * (1 + abs(float(found["low"]))) if found["below"] else 0.0)


def _mark(label: str) -> float | None:
    """The place of a mark A to G, perhaps with a sign."""
    found = re.fullmatch(r"([a-gA-G])([+-]?)", label.strip())
    if found is None:
        return None
    return _LETTERS[found[1].lower()] + {"+": 0.3, "": 0.0, "-": -0.3}[found[2]]

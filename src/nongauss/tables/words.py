"""What words say: those in a column's name, and labels that are a scale known to everyone."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise

from nongauss.tables.scales import SCALES

_UPPER, _LOWER = "A-ZÀ-ÖØ-Þ", "a-zß-öø-ÿ"
_WORD = re.compile(rf"[{_UPPER}]+(?![{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|\d+|%")
_UP = r"\+|(and|or) (over|above|up|older|more|higher|greater)|plus"
_RANGE = re.compile(
    r"(?P<below><=?|≤|under|below|less than|up to|younger than|at most)?"
    r"(?P<above>>=?|≥|over|above|more than|older than|at least|from)?[\s(\[]*(?P<low>-?\d+(\.\d+)?)"
    rf"(\s*({_UP})|\s*(-|–|to|,|\.\.|bis|until)\s*(<\s*)?(?P<high>-?\d+(\.\d+)?)[\s)\]]*"
    r"|\s+(and|or) (under|below|less|younger|fewer))?"
    r"\s*(?P<unit>[^\W\d]+|%)?",
    re.IGNORECASE,
)
_ROMAN = {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "x": 10}
_STEPS = ("stage", "grade", "level", "tier", "rating", "star", "stars", "rank", "step", "phase", "degree")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")

_BARE = str.maketrans("", "", "'’‘`.")


def plain_label(label: str) -> str:
    """A label in lower case, without accents, apostrophes and points, its words parted by one blank each."""
    text = re.sub(r"[’']s\b", "", label.casefold()).translate(_BARE)
    if not text.isascii():
        text = "".join(
            sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign)
        )
    return re.sub(r"[\s_\-/]+", " ", text).strip()


_PLACES: dict[str, dict[str, int]] = {
    name: {plain_label(word): at for at, place in enumerate(text.split("<")) for word in place.split(",")}
    for name, text in SCALES.items()
}
_LETTERS = {letter: -place for place, letter in enumerate("abcdefg")}


TIMES = (
    "date|time|when|.*timestamp|.*datetime|stamp|epoch|ts|unixtime|created|updated|modified|datum|zeit|"
    "zeitpunkt|zeitstempel|fecha|tijd|tijdstip"
)
"""Words in the names of columns that hold times or dates."""


def words_of(name: str) -> tuple[str, ...]:
    """The words of a column's name, in lower case: "PassengerId" and "passenger_id" are passenger, id."""
    return tuple(word.lower() for word in _WORD.findall(str(name)))


def typed(name: str, value: str = "", *, listed: bool = False) -> str:
    """A column's name, or name=value, as a person types it after an option: quoted where a shell needs that.

    `listed`: the option takes names separated by commas, so that a name with a comma has marks of its own.
    """
    marked = '"{}"'.format(name.replace('"', '""'))
    text = marked if listed and "," in name else name
    text += f"={value}" if value else ""
    if re.fullmatch(r"[\w.,:/@%+=-]+", text):
        return text
    return shlex.quote(text) if re.search(r"[\"$`\\!]", text) else f'"{text}"'


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


_YES_OR_NO = frozenset(
    ("yes", "no", "true", "false", "ja", "nein", "nee", "oui", "non", "si", "sim", "nao", "vero", "falso")
)
_WORDS_OF_SEX = frozenset(("male", "female", "man", "woman", "men", "women"))
_WORDS = (
    _YES_OR_NO | _WORDS_OF_SEX | {word for places in _PLACES.values() for word in places if len(word) > 2}
)
_LETTER_PAIRS = tuple(map(frozenset, ("yn", "tf", "jn", "sn", "on", "mf", "mw", "hf", "vf")))
"""Letters for yes and no, true and false, male and female."""


_TRUTHS = tuple(
    {word: at == 0 for at, words in enumerate(pair.split("<")) for word in words.split()}
    for pair in (
        "yes y true 1 < no n false 0",
        "true t 1 < false f 0",
        "on 1 < off 0",
        "enabled 1 < disabled 0",
        "ja j 1 < nein nee n 0",
        "oui o 1 < non n 0",
        "si s 1 < no n 0",
        "sim s 1 < nao n 0",
        "vero v 1 < falso f 0",
    )
)
"""Ways to say yes and no that go together, each with whether it says yes."""

_SHORT_TRUTHS = ("ja", "y")
"""Words of one or two letters that hardly mean anything else beside others for yes and no; "no" may."""


def truth_of(labels: Sequence[str]) -> dict[str, bool]:
    """By label, whether it says yes; {} unless both are said, all in ways that go together.

    Letters and 1 and 0 alone may stand for something else, as N, NO and O do: a word has to be among them.
    """
    plain = {label: plain_label(label) for label in labels}
    words = set(plain.values())
    known = next((one for one in _TRUTHS if words <= one.keys()), {})
    is_said = any(word in _SHORT_TRUTHS or len(word) > 2 for word in words)
    truth = {label: known[word] for label, word in plain.items()} if known and is_said else {}
    return truth if len(set(truth.values())) == 2 else {}


def said_alike(known: Sequence[str], new: Iterable[str]) -> dict[str, str]:
    """By new label, which of two known ones says so too, where the three would have been two labels."""
    words = set(map(plain_label, known))
    ways = {word for one in _TRUTHS if words <= one.keys() for word in one} if len(words) == 2 else set()
    out = {}
    for label in new:
        truth = truth_of([*known, label]) if plain_label(label) in ways - words else {}
        for level in known:
            if truth and truth[level] is truth[label] and len({truth[one] for one in known}) == 2:
                out[label] = level
    return out


def one_case(labels: Sequence[str]) -> dict[str, str]:
    """By label, what those labels have in common whose case says nothing: "Yes", " yes", "YES" are one.

    These are words for yes or no, of a sex, or of a known scale; and letters such as y and n, where a column
    has no others, or both of them beside words. More than two ways to say yes and no ("Y", "yes", "0") are
    two labels.
    """
    plain = {label: plain_label(label) for label in labels}
    words = frozenset(plain.values())
    if len(words) > 2 and (truth := truth_of(labels)):
        return {label: "yes" if is_yes else "no" for label, is_yes in truth.items()}
    letters = frozenset(word for word in words if len(word) == 1)
    is_pair = any(words <= pair or letters == pair for pair in _LETTER_PAIRS)
    return {label: word for label, word in plain.items() if word in _WORDS or (is_pair and len(word) == 1)}


_MARKS_OF_YES = frozenset((*_YES_OR_NO, "x", "y", "t", "j", "1", "+", "*", "✓", "✔", "☑", "✗", "●", "•"))


def is_mark(label: str) -> bool:
    """Does a label say yes where other rows are empty: "x", "yes", "✓"?"""
    return plain_label(label) in _MARKS_OF_YES or label.strip() in _MARKS_OF_YES


def is_of_a_scale(label: str) -> bool:
    """Does a label have a place on one of the scales of words?"""
    return any(plain_label(label) in places for places in _PLACES.values())


def known_order(labels: Sequence[str], *, letters: bool = False) -> tuple[tuple[str, ...], str] | None:
    """Labels from lowest to highest, and what scale they are of; None where no order is known.

    Scales of words (see `SCALES`), numbers and ranges of numbers by size, steps such as "stage 2", "II" or
    "second", numbers with words ("1 - poor", "5 - excellent"), ratings of credit, "★★★", "3/5". `letters`:
    the column's name says that it holds grades; then A to G are marks, A the best, and P1 to P4 are steps.
    """
    for places, what in _candidates(labels, letters):
        if len(set(places)) == len(labels):
            order = sorted(range(len(labels)), key=places.__getitem__)
            return tuple(labels[i] for i in order), what
    return None


def _candidates(labels: Sequence[str], letters: bool) -> Iterable[tuple[list[float], str]]:
    """Places of all labels on the scales that have a place for each."""
    plain = [plain_label(label) for label in labels]
    yield from _all_placed(map(_as_number, labels), "numbers by size")
    for name, places in _PLACES.items():
        yield from _all_placed((places.get(label) for label in plain), f"a scale of {name}")
    yield from _all_placed(map(_step, plain), "numbered steps")
    yield from _all_placed(_range_starts(labels), "ranges of numbers")
    yield from _all_placed(_with_words(labels, letters), "answers with numbers")
    yield from _all_placed(_ratings(labels), "ratings of credit, AAA the best")
    yield from _all_placed(_repeated_signs(labels), "a sign once or more often")
    yield from _all_placed(_out_of(labels), "so many out of the same number")
    yield from _all_placed(map(_one_to, labels), "ratios of one to so many, by these")
    if letters:
        yield from _all_placed(map(_mark, labels), "marks, A the best")
        yield from _all_placed(_lettered_steps(plain), "numbered steps")


def _all_placed(places: Iterable[float | None], what: str) -> Iterable[tuple[list[float], str]]:
    """The places and what they are of, if each label has one."""
    found = list(places)
    known = [place for place in found if place is not None]
    if known and len(known) == len(found):
        yield known, what


_WITH_WORDS = re.compile(r"[(\[]?(\d+)[)\]]?(?:\s*[-–—=:.)]\s*|\s+)([^\W\d].*)|[(\[]?(\d+)[)\]]?")
_MOST_WITH_WORDS = 11


def _with_words(labels: Sequence[str], letters: bool) -> list[float | None]:
    """The numbers of "1 - poor", "2", "3 - good", if their words are of a scale that goes with them.

    Codes are written so too ("1 = married", "2 = single"); `letters` says that these are grades.
    """
    found = [_WITH_WORDS.fullmatch(label.strip()) for label in labels]
    if len(labels) > _MOST_WITH_WORDS or None in found:
        return []
    numbers = [float(one[1] or one[3]) for one in found if one]
    words = [
        (plain_label(one[2]), number) for one, number in zip(found, numbers, strict=True) if one and one[2]
    ]
    if letters or any(_goes_with(words, places) for places in _PLACES.values()):
        return list(numbers)
    return []


def _goes_with(words: Sequence[tuple[str, float]], places: dict[str, int]) -> bool:
    """Are these words, two at least, all of a scale, in the order of their numbers or in the opposite one?"""
    placed = [(number, places[word]) for word, number in words if word in places]
    steps = [b[1] - a[1] for a, b in zip(sorted(placed), sorted(placed)[1:], strict=False)]
    in_order = all(step > 0 for step in steps) or all(step < 0 for step in steps)
    return len(placed) == len(words) > 1 and in_order


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


def _range_starts(labels: Sequence[str]) -> list[float | None]:
    """Where ranges of numbers of one unit begin: 18 of "18-25", a little more of ">18", less of "<18".

    None of other labels.
    """
    found = [_RANGE.fullmatch(_without_money(label)) for label in labels]
    units = {one["unit"].casefold().removesuffix("s") for one in found if one and one["unit"]}
    if len(units) > 1:
        return []
    lists = ["," in label and label[:1] not in ("(", "[") for label in map(_without_money, labels)]
    return [
        None if one is None or _falls(one) or is_list else _start(one)
        for one, is_list in zip(found, lists, strict=True)
    ]


def _falls(found: re.Match[str]) -> bool:
    """Is the end of a range below its start, as in "94105-1234", and no negative number ("-5 to -10")?"""
    return found["high"] is not None and 0 <= float(found["high"]) < float(found["low"])


def _start(found: re.Match[str]) -> float:
    """Where a range begins; beyond an end by so little that nothing else lies between."""
    low = min(float(found["low"]), float(found["high"] or "inf"))
    below = found["below"] or re.search(r"(and|or) (under|below|less|younger|fewer)", found[0], re.IGNORECASE)
    above = found["above"] or re.search(rf"{_UP}", found[0], re.IGNORECASE)
    return low + 1e-9 * (1 + abs(low)) * (bool(above) - bool(below))


_POWERS = {"k": 1e3, "m": 1e6}
_POWER = re.compile(r"(\d+(?:\.\d+)?)\s?([kKmM])\b")
_SHARED_POWER = re.compile(r"^([^\dkKmM]*)(\d+(?:\.\d+)?)(\s*(?:-|–|to)\s*)(\d+(?:\.\d+)?)\s?([kKmM])\b")
"""A range whose thousands or millions stand behind its second number alone."""


def _with_both_powers(found: re.Match[str]) -> str:
    """30k-40k for 30-40k; 500-1k as it is, since 500k is no start of a range up to 1k."""
    before, low, between, high, power = found.groups()
    return f"{before}{low}{power}{between}{high}{power}" if float(low) < float(high) else found[0]


def _without_money(label: str) -> str:
    """A label without signs of money and marks between thousands; 25k as 25000, 30-40k as 30000-40000."""
    plain = re.sub(r"[$€£¥]|(?<=\d),(?=\d{3}\b)" if label[:1] not in "([" else r"[$€£¥]", "", label.strip())
    plain = _SHARED_POWER.sub(_with_both_powers, plain)
    return _POWER.sub(lambda one: f"{float(one[1]) * _POWERS[one[2].lower()]:.0f}", plain)


def _mark(label: str) -> float | None:
    """The place of a mark A to G, perhaps with a sign."""
    found = re.fullmatch(r"([a-gA-G])([+-]?)", label.strip())
    if found is None:
        return None
    return _LETTERS[found[1].lower()] + {"+": 0.3, "": 0.0, "-": -0.3}[found[2]]


def _lettered_steps(labels: Sequence[str]) -> list[float | None]:
    """The numbers of "p1", "p2", "p3", all of which begin with the same letter."""
    found = [re.fullmatch(r"([a-z])(\d{1,2})", label) for label in labels]
    if len({one[1] for one in found if one}) != 1:
        return []
    return [float(one[2]) if one else None for one in found]


_SIGNS = "★⭐*+$€£"


def _repeated_signs(labels: Sequence[str]) -> list[float | None]:
    """How often each label has the one sign that all consist of: "★★★", "★★☆", "$$"; none of other labels."""
    texts = [re.sub(r"[☆\s]", "", label) for label in labels]
    signs = {sign for text in texts for sign in text}
    return [float(len(text)) for text in texts] if len(signs) == 1 and signs <= set(_SIGNS) else []


_OF = re.compile(r"(\d+(?:\.\d+)?)\s*(?:/|(?:out )?of)\s*(\d+)(?:\s*[^\W\d]+)?", re.IGNORECASE)
_TITRE = re.compile(r"([<>≤≥]?)=?\s*1\s*:\s*(\d+)")
_FEWEST_DILUTIONS, _MOST_DILUTIONS = 3, 16


def _out_of(labels: Sequence[str]) -> list[float | None]:
    """The first number of "3/5", "3 out of 5" and "3.0 out of 5 stars", of labels that all have the same
    second one."""
    found = [match for match in map(_OF.fullmatch, map(str.strip, labels)) if match]
    if len(found) < len(labels) or len({match[2] for match in found}) != 1:
        return []
    return [float(match[1]) if float(match[1]) <= float(match[2]) else None for match in found]


def _one_to(label: str) -> float | None:
    """The second number of titres and ratios, 1:40 and <1:10."""
    found = _TITRE.fullmatch(label.strip())
    return float(found[2]) * {"<": 0.999, ">": 1.001}.get(found[1], 1.0) if found else None


def are_dilutions(labels: Sequence[str]) -> bool:
    """Are these three ratios of one to so many or more, each double the one before: 1:10, 1:20, 1:40?"""
    if not _FEWEST_DILUTIONS <= len(labels) <= _MOST_DILUTIONS:
        return False
    steps = sorted(place for place in map(_one_to, labels) if place is not None)
    return len(steps) == len(labels) and all(high == 2 * low for low, high in pairwise(steps))


_RATINGS = ("D", "SD", "C", "CC", "CCC", "B", "BB", "BBB", "A", "AA", "AAA")
_OF_MOODY = ("C", "Ca", "Caa", "B", "Ba", "Baa", "A", "Aa", "Aaa")


def _ratings(labels: Sequence[str]) -> list[float | None]:
    """The places of ratings of credit (AAA to D, Aaa to C), one of which has several letters."""
    for known, signs in ((_RATINGS, {"-": -0.3, "+": 0.3}), (_OF_MOODY, {"3": -0.3, "1": 0.3})):
        found = [re.fullmatch(r"([A-Za-z]+)([-+123]?)", label.strip()) for label in labels]
        bases = [one[1] if one else "" for one in found]
        if all(base in known for base in bases) and any(len(base) > 1 and base != "SD" for base in bases):
            return [known.index(one[1]) + signs.get(one[2], 0.0) for one in found if one]
    return []

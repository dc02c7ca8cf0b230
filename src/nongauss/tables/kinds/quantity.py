"""Columns of texts that are numbers: money, percent, measures with a unit, thousands, a few gaps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.column import Cells, Column, ColumnSummary, Kind, distinct_texts
from nongauss.tables.compound_text import PATTERNS
from nongauss.tables.kinds.number import Moments, as_doubles, shown_number
from nongauss.tables.lost_cells import ENOUGH, are_values, mostly, named_cells
from nongauss.tables.number_marks import SIDES
from nongauss.tables.number_text import (
    MARK,
    POINT,
    NumberTexts,
    Votes,
    is_known_unit,
    is_missing_word,
    percent_style,
    read_numbers,
    two_readings,
    unit_key,
)
from nongauss.tables.unit_families import in_unit, size_in
from nongauss.tables.words import known_order

_SAMPLE = 200  # different texts, of which none is a number: no column of numbers
_DAY = np.timedelta64(86_400_000_000, "us")
SPAN = f"{POINT}{MARK} days"
"""The unit of spans of time."""


@dataclass(frozen=True)
class QuantityFacts:
    """What some rows tell of quantities: moments, and their `form`, decimal mark and unit, such as ".$#"."""

    numbers: Moments
    form: str

    def __add__(self, other: QuantityFacts) -> QuantityFacts:
        form = _joint_form(self.form, other.form)
        mine, its = (part.numbers.times(size_in(part.form[1:], form[1:])) for part in (self, other))
        return QuantityFacts(mine + its, form)


class Quantity(Kind):
    """Texts that are numbers as people write them, and spans of time, which are in days.

    Models see the numbers alone. The unit is kept for what is printed.
    """

    name = "quantity"
    plural = "numbers as text"

    def decode(self, cells: Cells) -> Column | None:
        """Numbers, NaN in the few cells that are none; texts are kept as labels beside."""
        if _is_span(cells):
            return _spans(cells)
        if isinstance(cells.dtype, pd.CategoricalDtype) or cells.content not in _CONTENTS:
            return None
        codes, distinct, numbers = _texts_of(cells)
        n_numbers = int((~np.isnan(numbers)).sum())
        if not len(distinct) or not (n_numbers or _worth_reading(distinct)):
            return None
        texts = distinct.to_pylist()
        count = np.bincount(codes[codes >= 0], minlength=len(texts))
        reading = read_column(texts, count, n_numbers=n_numbers)
        cells.notes.extend(reading.notes)
        if reading.values is None:
            return None
        values = np.where(codes >= 0, np.append(reading.values, np.nan)[codes], numbers)
        lost = named_cells(texts, count, np.isnan(reading.values))
        found = Column(cells.name, values, kind=self.name, unit=reading.form, lost=lost)
        if cells.content != "string":
            return found
        return replace(found, codes=cells.labels.codes, levels=cells.labels.levels)

    def summarise(self, column: Column, weight: NDArray[np.float64]) -> QuantityFacts:
        """Moments, and the unit."""
        assert column.values is not None
        return QuantityFacts(Moments.of(column.values, weight), column.unit)

    def columns(self, name: str, facts: QuantityFacts, gaps: bool) -> tuple[ColumnSummary, ...]:
        """One column of numbers."""
        return (ColumnSummary(name, gaps, facts.numbers, kind=self.name, part=facts.form),)

    def flat(self, column: Column, part: str, origin: float) -> Column:
        """The numbers, in the style and the unit of the fit. Raises InputError for another unit, and text."""
        return as_numbers(column, part)

    def plain(self, column: Column) -> Column:
        """The texts as labels where they are kept, else the numbers."""
        if column.codes is not None:
            return Column(column.name, None, column.codes, column.levels, (), "label")
        return Column(column.name, column.values, kind="number", lost=column.lost)

    def shown(self, value: Any, part: str, origin: float) -> str:
        """The number with its unit: $1200, 45%, 3 kg."""
        pattern = part[1:] or MARK
        text = shown_number(float(value))
        sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
        return sign + pattern.replace(MARK, text)


_CONTENTS = ("string", "mixed", "mixed-integer")


@dataclass(frozen=True)
class TextReading:
    """Texts (L,) read as one column of numbers: `values` (L,), None where it is none; `form`; what to say."""

    values: NDArray[np.float64] | None
    form: str = POINT + MARK
    notes: tuple[str, ...] = ()


def read_column(
    texts: Sequence[str], count: NDArray[np.intp], style: str = "", n_numbers: int = 0
) -> TextReading:
    """Texts (L,), each with the number of its cells, as numbers of one style and one unit, if they are that.

    `style`: the decimal mark if it is known. `n_numbers`: cells of the column beside, which are numbers.
    """
    if _are_codes(texts):
        return TextReading(None)
    if any(map(_LAKHS.search, texts)) and any(map(_CR.search, texts)):
        note = "has 'Cr' beside lakhs, which may be crores or credits, and is treated as labels; write crore"
        return TextReading(None, notes=(note,))
    found = read_numbers(texts)
    votes = Votes.of(found, count)
    percent = percent_style(found) if votes.open else ""
    style = style or percent or votes.style()
    values = found.of_style(style)
    if (found.padded & (count > 0)).any() and (found.whole | np.isnan(values)).all():
        return TextReading(None)
    units = _one_unit(found, values, count, style)
    values = units.values
    notes: tuple[str, ...] = (units.note,) if units.note else ()
    if units.form[1:] == SIDES:
        notes += (_OF_SIDES,)
    values, said_of_marks = _marked(texts, found, values, count)
    if not are_values(texts, count, np.isnan(values), n_numbers):
        few = bool((found.marked & ~np.isnan(units.values) & np.isnan(values)).any())
        few = few or (len(texts) <= _FEW_STEPS and known_order(texts) is not None)
        said = notes if units.mixed or few else mostly(texts, count, np.isnan(values), "numbers")
        return TextReading(None, notes=said)
    if votes.open and not percent:
        notes += (two_readings(texts, found, style),)
    return TextReading(values, units.form, (*notes, *said_of_marks))


_LAKHS, _CR = re.compile(r"(?i)[0-9] ?(?:lac|lakh)s?$"), re.compile(r"(?i)[0-9] ?cr\.?$")
_CODE = re.compile(r"[0-9]{1,4}([A-Za-z])")


def _are_codes(texts: Sequence[str]) -> bool:
    """Are all texts (L,) digits and one letter, one of which is neither thousands nor a unit ("1A", "2K")?"""
    found = (_CODE.fullmatch(text) for text in texts)
    letters: set[str] = set()
    for one in found:
        if one is None:
            return False
        letters.add(one[1])
    known = {x for x in letters if x in "kKmMBy" or (x.islower() and is_known_unit(x))}
    return len(letters) > 1 and known != letters


_FEW_STEPS = 20  # different texts up to which an order of them is looked for
_FEWEST_MARKED = 13  # different texts from which a few marks do not make them labels ("0", "1", "2", "3+")


def _marked(
    texts: Sequence[str], found: NumberTexts, values: NDArray[np.float64], count: NDArray[np.intp]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """The numbers (L,), those with a mark ("<0.1", "3+") among them if they are many, and what to say."""
    marked = found.marked & ~np.isnan(values)
    n_marked = int(count[marked].sum())
    if not n_marked:
        return values, ()
    if len(texts) < _FEWEST_MARKED:
        return np.where(marked, np.nan, values), ()
    named = named_cells(texts, count, marked)
    return values, (f"has numbers with a mark, such as bounds, read as the numbers only: {named}",)


def as_numbers(column: Column, form: str = "") -> Column:
    """A column of new rows as numbers of a column that had this `form` in fitting, "" where it had none.

    True and False become 1 and 0, words such as "unknown" missing cells. Raises InputError naming the first
    row with other text, and for another unit.
    """
    if column.codes is None:
        values = column.values
        if values is not None and column.unit:
            values = values * _ratio(column, form)
        return Column(column.name, values, kind="number", lost=column.lost)
    as_read = Column(column.name, column.values, kind="number", lost=column.lost)
    in_style = column.values is not None and (not form or column.unit[:1] in ("", form[:1]))
    if in_style and not unit_key(form[1:]):
        return as_read
    texts = column.levels
    count = np.bincount(column.codes[column.codes >= 0], minlength=len(texts))
    found = read_numbers(texts, form[1:], are_numbers=True)
    ratios = _ratios(found, form)
    if in_style and (ratios == 1.0).all() and form[1:] not in (*PATTERNS, SIDES):
        return as_read
    numbers = found.of_style(form[:1] or POINT)
    known = numbers * ratios
    is_other = np.isnan(ratios) & ~np.isnan(numbers)
    if 2 * count[is_other].sum() > count.sum():
        raise _of_another(column.name, form, str(found.patterns[is_other][0]))
    truth = {"True": 1.0, "False": 0.0}
    table = np.array([truth.get(text, number) for text, number in zip(texts, known, strict=True)])
    lost = np.isnan(table)
    strange = np.array([*(lost & ~np.array([is_missing_word(text) for text in texts], bool)), False])
    bad = strange[column.codes]
    if bad.any() and column.values is None:
        row = int(np.argmax(bad))
        raise InputError(
            f"Column {column.name!r} held numbers when the model was fitted, but holds the label "
            f"{texts[column.codes[row]]!r} in row {row} (counted from 0); give numbers there."
        )
    values = np.append(table, np.nan)[column.codes]
    return Column(column.name, values, kind="number", lost=named_cells(texts, count, lost))


def _ratio(column: Column, form: str) -> float:
    """What one of the unit of new cells is in that of the fit. Raises InputError for another quantity."""
    ratio = size_in(column.unit[1:], form[1:])
    if np.isnan(ratio):
        raise _of_another(column.name, form, column.unit[1:])
    return ratio


def _of_another(name: str, form: str, pattern: str) -> InputError:
    return InputError(
        f"Column {name!r} had the form {form[1:]!r} when the model was fitted, but has {pattern!r} now "
        "(# is the number); give it in the same unit."
    )


def _ratios(found: NumberTexts, form: str) -> NDArray[np.float64]:
    """What one of the unit of each text (L,) is in that of the fit; NaN for another quantity."""
    table = {pattern: size_in(str(pattern), form[1:]) for pattern in set(found.patterns)}
    return np.array([table[pattern] for pattern in found.patterns])


def _joint_form(first: str, second: str) -> str:
    """The form of two parts of a column: that with a unit. Raises InputError for two quantities or styles."""
    units = [unit_key(form[1:]) for form in (first, second)]
    if np.isnan(size_in(second[1:], first[1:])):
        raise InputError(
            f"A column has the form {first[1:]!r} in one part of the table and {second[1:]!r} in another "
            "(# is the number); write it in units of one quantity."
        )
    if first[0] != second[0]:
        raise InputError(
            "A column has decimal points in one part of the table and decimal commas in another; "
            "write it in one style."
        )
    return first if units[0] or not units[1] else second


def _is_span(cells: Cells) -> bool:
    """Are the cells spans of time?"""
    kind = getattr(cells.dtype, "kind", "")
    return kind == "m" or (kind == "O" and cells.content in ("timedelta", "timedelta64"))


def _spans(cells: Cells) -> Column:
    """Spans of time in days."""
    spans = pd.to_timedelta(pd.Series(cells.raw)).to_numpy(dtype="timedelta64[us]")
    return Column(cells.name, spans / _DAY, kind=Quantity.name, unit=SPAN)


def _texts_of(cells: Cells) -> tuple[NDArray[np.intp], Any, NDArray[np.float64]]:
    """The codes (N,) of the cells that are texts into different texts; the others as numbers (N,).

    No texts where a cell is neither.
    """
    if cells.content == "string":
        codes, texts = cells.texts
        return codes, texts, np.full(len(codes), np.nan)
    objects = cells.objects
    numbers = np.full(len(objects), np.nan)
    text, number = (_are(objects, types) for types in (str, (int, float, np.number, Decimal)))
    number &= ~_are(objects, bool) & ~cells.missing
    if not (text | number | cells.missing).all():
        return np.full(len(objects), -1), pa.array([], pa.large_string()), numbers
    numbers[number] = as_doubles(objects[number])
    codes, texts = distinct_texts(np.where(text, objects, np.array(None, dtype=object)))
    return codes, texts, numbers


def _are(objects: NDArray[np.object_], types: Any) -> NDArray[np.bool_]:
    """Which objects (N,) are of some types."""
    return np.fromiter((isinstance(cell, types) for cell in objects), np.bool_, len(objects))


def _worth_reading(texts: Any) -> bool:
    """Is one of some of the texts a number?"""
    found = read_numbers(texts.take(np.arange(0, len(texts), max(len(texts) // _SAMPLE, 1))))
    return bool((~np.isnan(found.point) | ~np.isnan(found.comma)).any())


class _Units(NamedTuple):
    """The form of a column's texts, their numbers without those of other units, a note; are units mixed?"""

    form: str
    values: NDArray[np.float64]
    note: str = ""
    mixed: bool = False


_OF_SIDES = "has amounts with S or H behind them, read as debit, below 0, and credit"
_FLAGS = {"h", "l"}
"""Flags behind values of a laboratory, high and low."""


def _converted(
    patterns: pd.Series[int], keys: Mapping[str, str], by_key: pd.Series[int], style: str
) -> tuple[str, str]:
    """The form of numbers in several units of one quantity, the most frequent first in `by_key`; the note."""
    often = {key: str(patterns[[p for p in keys if keys[p] == key]].idxmax()) for key in by_key.index}
    main, *others = (often[key].replace(MARK, "").strip() for key in by_key.index)
    shown = ", ".join(f"{unit!r} ({n})" for unit, n in zip(others, by_key.iloc[1:], strict=True))
    return style + often[by_key.index[0]], f"has cells in {shown}, converted to {main!r}"


def _one_unit(found: NumberTexts, values: NDArray[np.float64], count: NDArray[np.intp], style: str) -> _Units:
    """The unit of most texts (L,) that have one; bare numbers count as of that unit."""
    counted = ~np.isnan(values) & (count > 0)
    patterns = pd.Series(count[counted]).groupby(found.patterns[counted], sort=True).sum()
    keys = {pattern: unit_key(str(pattern)) for pattern in patterns.index}
    by_key = patterns.groupby(keys).sum()
    total, bare = int(patterns.sum()), int(by_key.get("", 0))
    with_unit = by_key.drop("", errors="ignore").sort_values(ascending=False, kind="stable")
    if not len(with_unit):
        return _Units(style + MARK, values)
    if set(map(str, with_unit.index)) == _FLAGS:
        flags = [str(key).upper() for key in with_unit.index]
        shown = named_cells(flags, with_unit.to_numpy(), np.ones(len(flags), np.bool_))
        note = f"has numbers with flags behind them, read as the numbers only: {shown}"
        return _Units(style + MARK, values, note)
    main = str(with_unit.index[0])
    if with_unit.sum() < (1 - ENOUGH) * total and not is_known_unit(main):
        main = ""
    ratios = in_unit(map(str, patterns.index), main) if main and len(with_unit) > 1 else {}
    if ratios:
        form, note = _converted(patterns, keys, with_unit, style)
        ratio = np.array([ratios.get(str(pattern), 1.0) for pattern in found.patterns])
        return _Units(form, values * ratio, note)
    own = {pattern for pattern, key in keys.items() if key in ("", main)}
    values = np.where([pattern in own for pattern in found.patterns], values, np.nan)
    named = patterns[[pattern for pattern, key in keys.items() if key == main]]
    form = style + str(named.idxmax()) if main else style + MARK
    if with_unit.iloc[1:].sum() > (1 - ENOUGH) * total:
        units = [str(unit) for unit in with_unit.index[:3]]
        mixed = f"mixes the units {', '.join(map(repr, units))} and is treated as labels; convert it to one"
        return _Units(form, values, mixed if all(map(is_known_unit, units)) else "", mixed=True)
    zeros = int(count[counted & (values == 0) & (found.patterns == MARK)].sum())
    if main and bare > zeros:
        note = f"has {bare - zeros} cells without the unit {main!r}, which are treated as in that unit"
        return _Units(form, values, note)
    return _Units(form, values)

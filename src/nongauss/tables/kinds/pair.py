"""Columns of two numbers a cell: blood pressure 120/80, results 2-1 and 2:1, sizes 20x30, places on a map."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.column import Cells, Column, ColumnSummary, Kind
from nongauss.tables.kinds.code import CODE_WORDS
from nongauss.tables.kinds.number import Moments, shown_number
from nongauss.tables.lost_cells import are_values, named_cells
from nongauss.tables.words import is_head

_N = r"([0-9]{1,3}(?:\.[0-9]+)?)"
_D = r"(-?[0-9]{1,3}\.[0-9]+)"
_PLACE = rf"{_D}(?:[,;] ?| ){_D}"
_PAIR = re.compile(
    rf"{_N} ?[/:xX×] ?{_N}(?: ?(?:mm|cm|m|in|px|mmHg))?|([0-9]{{1,2}}) ?[-–] ?([0-9]{{1,2}})"
    rf"|(?:POINT ?)?\( ?{_PLACE} ?\)|\[ ?{_PLACE} ?\]|{_PLACE}"
)
_FEW_RANGES = 20  # different ranges up to which they are labels in an order


@dataclass(frozen=True)
class PairFacts:
    """What some rows tell of pairs: moments of the first and of the second numbers."""

    first: Moments
    second: Moments

    def __add__(self, other: PairFacts) -> PairFacts:
        return PairFacts(self.first + other.first, self.second + other.second)


class Pair(Kind):
    """Texts of two numbers of up to three digits. Models see two columns of numbers.

    A few ranges (18-25, 26-35, [0.5, 2.0]) stay labels, which have an order; "(0.5, 2.0]" is always one.
    """

    name = "pair"
    plural = "pairs of numbers"

    def decode(self, cells: Cells) -> Column | None:
        """The texts as labels, those that are no pairs missing."""
        if isinstance(cells.dtype, pd.CategoricalDtype) or cells.content != "string":
            return None
        codes, distinct = cells.texts
        texts = distinct.to_pylist()
        if not texts or is_head(cells.name, CODE_WORDS):
            return None
        numbers = _numbers(texts)
        count, odd = np.bincount(codes[codes >= 0], minlength=len(texts)), np.isnan(numbers[:, 0])
        if not are_values(texts, count, odd) or _are_few_ranges(
            [text for text, bad in zip(texts, odd, strict=True) if not bad], numbers[~odd]
        ):
            return None
        labels = cells.labels
        assert labels.codes is not None
        known = ~np.isnan(_numbers(labels.levels)[:, 0])
        levels = tuple(level for level, good in zip(labels.levels, known, strict=True) if good)
        lookup = np.append(np.where(known, np.cumsum(known) - 1, -1), -1)
        lost = f"; has other cells, which count as missing: {named_cells(texts, count, odd)}"
        note = f"holds pairs of numbers such as {levels[0]!r}, read as two columns" + lost * bool(odd.any())
        return Column(cells.name, None, lookup[labels.codes], levels, (), self.name, note)

    def summarise(self, column: Column, weight: NDArray[np.float64]) -> PairFacts:
        """Moments of both numbers."""
        values = _values(column)
        return PairFacts(Moments.of(values[:, 0], weight), Moments.of(values[:, 1], weight))

    def columns(self, name: str, facts: PairFacts, gaps: bool) -> tuple[ColumnSummary, ...]:
        """The first numbers, then the second ones."""
        return tuple(
            ColumnSummary(f"{name} ({part})", gaps, numbers, kind=self.name, part=part)
            for part, numbers in (("first", facts.first), ("second", facts.second))
        )

    def flat(self, column: Column, part: str, origin: float) -> Column:
        """One of the two numbers. Raises InputError for cells of which none is a pair."""
        values = column.values if column.codes is None else _values(column)[:, int(part == "second")]
        assert values is not None
        if not column.missing.all() and (column.codes is None or np.isnan(values).all()):
            raise InputError(
                f"Column {column.name!r} held pairs of numbers, such as 120/80, when the model was fitted, "
                "but holds none now; give such pairs."
            )
        return Column(column.name, values, kind="number")

    def plain(self, column: Column) -> Column:
        """The texts as labels."""
        return Column(column.name, None, column.codes, column.levels, (), "label")

    def shown(self, value: Any, part: str, origin: float) -> str:
        """A number without more digits than it has."""
        return shown_number(float(value))


def _numbers(texts: Sequence[str]) -> NDArray[np.float64]:
    """Both numbers of texts, (L, 2), NaN where they are no pairs."""
    out = np.full((len(texts), 2), np.nan)
    for at, text in enumerate(texts):
        found = _PAIR.fullmatch(text.strip())
        if found:
            out[at] = [float(number) for number in found.groups() if number is not None]
    return out


def _values(column: Column) -> NDArray[np.float64]:
    """Both numbers of the cells of a column with texts, (N, 2)."""
    assert column.codes is not None
    return np.vstack([_numbers(column.levels), np.full((1, 2), np.nan)])[column.codes]


def _are_few_ranges(texts: Sequence[str], numbers: NDArray[np.float64]) -> bool:
    """Are these texts (L,) a few ranges from low to high, as "18-25" and "[0.5, 2.0]" are?"""
    is_range = all("-" in text or "–" in text or text.strip()[:1] in ("(", "[") for text in texts)
    return len(texts) <= _FEW_RANGES and is_range and bool((numbers[:, 0] < numbers[:, 1]).all())

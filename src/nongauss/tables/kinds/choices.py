"""Columns of several choices a cell, as surveys export them: "red; blue", "a|b", "['new', 'sale']"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.tables.column import Cells, Column, ColumnSummary, Kind, tidy
from nongauss.tables.kinds.number import Moments

_SEPARATORS = (";", "|", ",")
_MOST, _WORDS = 50, 4.0  # different choices of a column, words of a choice on average
_SEVERAL, _ROWS_EACH = 0.1, 3.0  # the share of cells with several choices, rows with a choice on average
_LISTS = (list, tuple, set, frozenset, np.ndarray)
_BRACKETS = re.compile(r"[\[({](.*)[\])}]")


@dataclass(frozen=True)
class ChoiceFacts:
    """What some rows tell of choices: moments of 0 or 1 for each, and of 0 for one that no row has."""

    separator: str
    chosen: dict[str, Moments]
    never: Moments

    def __add__(self, other: ChoiceFacts) -> ChoiceFacts:
        names = {**self.chosen, **other.chosen}
        chosen = {
            name: self.chosen.get(name, self.never) + other.chosen.get(name, other.never) for name in names
        }
        return ChoiceFacts(self.separator, chosen, self.never + other.never)


class ChoiceList(Kind):
    """Texts of several choices, of which there are few. Models see a column of 0 and 1 for each choice.

    A column's `unit` is what stands between choices. The parts of its flat columns are that and the choice.
    """

    name = "choices"
    plural = "lists of choices"
    needs_digits = False

    def decode(self, cells: Cells) -> Column | None:
        """The texts as labels."""
        if isinstance(cells.dtype, pd.CategoricalDtype) or cells.content != "string":
            return None
        codes, distinct = cells.texts
        texts = distinct.to_pylist()
        count = np.bincount(codes[codes >= 0], minlength=len(texts))
        separator = next((mark for mark in _SEPARATORS if _are_choices(texts, count, mark)), "")
        if not separator:
            return None
        labels = cells.labels
        names = sorted({name for level in labels.levels for name in _split(level, separator)})
        note = f"holds lists of choices such as {_longest(labels.levels)!r}"
        note += f", read as a yes or no for each of {len(names)}"
        return Column(cells.name, None, labels.codes, labels.levels, (), self.name, note, unit=separator)

    def summarise(self, column: Column, weight: NDArray[np.float64]) -> ChoiceFacts:
        """How often each choice was made."""
        names = sorted({name for level in column.levels for name in _split(level, column.unit)})
        chosen = {name: Moments.of(_has(column, column.unit, name), weight) for name in names}
        return ChoiceFacts(column.unit, chosen, Moments.of(np.zeros(len(weight)), weight))

    def columns(self, name: str, facts: ChoiceFacts, gaps: bool) -> tuple[ColumnSummary, ...]:
        """A column of 0 and 1 for each choice, by the alphabet."""
        return tuple(
            ColumnSummary(f"{name} ({choice})", gaps, moments, kind=self.name, part=facts.separator + choice)
            for choice, moments in sorted(facts.chosen.items())
        )

    def flat(self, column: Column, part: str, origin: float) -> Column:
        """1 where the choice was made, 0 where it was not; numbers are their own text."""
        labels = column.as_labels()
        return Column(column.name, _has(labels, part[:1], part[1:]), kind="number")

    def plain(self, column: Column) -> Column:
        """The texts as labels."""
        return Column(column.name, None, column.codes, column.levels, (), "label")

    def unknown(self, column: Column, parts: Sequence[str]) -> str:
        """The first choice of new rows that is none of those of the fit."""
        labels = column.as_labels()
        assert labels.codes is not None
        known, separator = {part[1:] for part in parts}, parts[0][:1]
        for code in np.unique(labels.codes[labels.codes >= 0]):
            for name in _split(labels.levels[code], separator):
                if name not in known:
                    return name
        return ""

    def shown(self, value: Any, part: str, origin: float) -> str:
        """Yes or no, a share where it is neither."""
        return {0.0: "no", 1.0: "yes"}.get(float(value), f"{float(value):.3g}")


def _split(text: str, separator: str) -> list[str]:
    """The choices of a text."""
    inner = _BRACKETS.fullmatch(text.strip())
    parts = (inner[1] if inner else text).split(separator)
    return [name for part in parts if (name := tidy(part.strip(" '\"")))]


def _has(column: Column, separator: str, name: str) -> NDArray[np.float64]:
    """1 in the cells (N,) of a column of labels that have a choice, 0 in others, NaN where missing."""
    assert column.codes is not None
    has = [float(name in _split(level, separator)) for level in column.levels]
    out: NDArray[np.float64] = np.array([*has, np.nan])[column.codes]
    return out


def _are_choices(texts: Sequence[str], count: NDArray[np.intp], separator: str) -> bool:
    """Are texts (L,), that occur so often, lists of a few choices, which recur in many combinations?

    A place ("Paris, France") or a name has more parts than there are texts; a sentence has long ones.
    """
    several = sum(n for text, n in zip(texts, count.tolist(), strict=True) if separator in text)
    if several < _SEVERAL * count.sum():
        return False
    lists = [_split(text, separator) for text in texts]
    rows: Counter[str] = Counter()
    for names, n in zip(lists, count.tolist(), strict=True):
        if len(set(names)) < len(names):
            return False
        rows.update(dict.fromkeys(names, n))
        if len(rows) > _MOST:
            return False
    words = float(np.mean([len(name.split()) for name in rows])) if rows else np.inf
    numbers = separator == "," and any(name[:1].isdigit() for name in rows)
    n_lists = len({frozenset(names) for names in lists if names})
    often = sum(rows.values()) >= _ROWS_EACH * len(rows)
    return 1 < len(rows) < n_lists and words <= _WORDS and often and not numbers


def _longest(texts: Sequence[str]) -> str:
    """The first of the longest texts."""
    return max(texts, key=len)


def as_text(raw: Any) -> Any:
    """A column of lists, tuples or sets of texts (answers to a multiple choice) as text, "red; blue".

    A semicolon in a choice becomes a comma. Any other column is left as it is.
    """
    if not isinstance(raw, pd.Series) or raw.dtype != object:
        return raw
    present = raw.dropna()
    if not len(present) or not isinstance(present.iloc[0], _LISTS):
        return raw
    lists = all(isinstance(cell, _LISTS) for cell in present)
    if not lists or not all(isinstance(item, str) for cell in present for item in cell):
        return raw
    return raw.map(_joined, na_action="ignore")


def _joined(choices: Iterable[str]) -> str:
    """Choices as one text, those of a set by the alphabet."""
    ordered = sorted(choices) if isinstance(choices, (set, frozenset)) else choices
    return "; ".join(choice.replace(";", ",") for choice in ordered)

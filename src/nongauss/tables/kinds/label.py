"""Columns of labels: text, categories, True and False."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.tables.column import (
    TEXT,
    Cells,
    Column,
    ColumnSummary,
    Kind,
    label_of,
    one_order,
    recoded,
    sorted_labels,
    tidy,
)
from nongauss.tables.lost_cells import marks_of_gaps, named_cells
from nongauss.tables.words import known_order, one_case, truth_of

MOST_LEVELS = 255  # a label column with more levels is ignored
FEW_ROWS = 20  # up to so many rows, labels that all differ may still be levels


@dataclass(frozen=True)
class LabelFacts:
    """The weight of each label of some rows, one more than `MOST_LEVELS` of them at most.

    `order`: all levels of an ordered category, lowest first; None without an order, or with several.
    """

    levels: dict[str, float]
    order: tuple[str, ...] | None

    def __add__(self, other: LabelFacts) -> LabelFacts:
        mine, its = self.levels, other.levels
        levels = {name: mine.get(name, 0.0) + its.get(name, 0.0) for name in {**mine, **its}}
        order = one_order(self.order, other.order) if self.order and other.order else None
        return LabelFacts(_fewer(levels), None if order is None else tuple(order))


class Label(Kind):
    """Labels, with an order where they are an ordered category."""

    name = "label"
    plural = "text"
    needs_digits = False

    def decode(self, cells: Cells) -> Column | None:
        """Codes into levels, which are tidy and sorted; what that changed is noted."""
        if isinstance(cells.dtype, pd.CategoricalDtype):
            codes = np.asarray(cells.raw.cat.codes, dtype=np.intp)
            texts = [label_of(value) for value in cells.raw.cat.categories]
            column = recoded(cells.name, codes, texts, bool(cells.dtype.ordered))
        elif cells.content == "string":
            codes, texts, column = cells.texts[0], cells.texts[1].to_pylist(), cells.labels
        else:
            is_text = cells.content in TEXT and getattr(cells.dtype, "kind", "") != "V"
            return cells.labels if is_text else None
        untidy = _on_blanks(codes, texts)
        column = column if column.ranks else _without_marks(column)
        column, alike = column if column.ranks else _in_one_case(column), column.levels
        return replace(column, note="; ".join(filter(None, (untidy, _on_case(alike, column.levels)))))

    def summarise(self, column: Column, weight: NDArray[np.float64]) -> LabelFacts:
        """The weight of each label."""
        assert column.codes is not None
        mass = np.bincount(column.codes, weights=weight, minlength=len(column.levels))
        levels = {level: float(m) for level, m in zip(column.levels, mass, strict=True) if m > 0}
        order = tuple(column.levels[i] for i in np.argsort(column.ranks)) if column.ranks else None
        return LabelFacts(_fewer(levels), order)

    def columns(self, name: str, facts: LabelFacts, gaps: bool) -> tuple[ColumnSummary, ...]:
        """The column itself, its levels sorted."""
        found = facts.levels if facts.order else _merged(facts.levels)
        names = sorted_labels(found)
        gone = marks_of_gaps(names) if not facts.order else np.zeros(len(names), dtype=np.bool_)
        levels = {level: found[level] for level, is_gone in zip(names, gone, strict=True) if not is_gone}
        gaps = gaps or bool(gone.any())
        order = facts.order or order_of_features(tuple(levels))
        return (ColumnSummary(name, gaps, None, levels, order, kind=self.name),)

    def flat(self, column: Column, part: str, origin: float) -> Column:
        """The labels; numbers become their text."""
        return column.as_labels()

    def shown(self, value: Any, part: str, origin: float) -> str:
        """The label itself."""
        return label_of(value)


FEWEST_ORDERED = 3


def order_of_features(levels: Sequence[str]) -> tuple[str, ...] | None:
    """The levels of a feature from lowest to highest where they are ranges of numbers or a known scale.

    None where they are not, and for numbers, which are codes where they are labels.
    """
    if not FEWEST_ORDERED <= len(levels) <= MOST_LEVELS:
        return None
    order, what = known_order(levels) or ((), "number")
    return None if what.startswith("number") else order


def _on_blanks(codes: NDArray[np.intp], texts: list[str]) -> str:
    """What is to be said of the blanks and accents of texts (L,), into which `codes` (N,) are."""
    untidy = np.array([tidy(text) != text for text in texts], dtype=np.bool_)
    if not untidy.any():
        return ""
    count = np.bincount(codes[codes >= 0], minlength=len(texts))
    found = named_cells(texts, count, untidy)
    return (
        f"has labels with blanks around them, or combining accents, which were normalised: {found}"
        if found
        else ""
    )


def _on_case(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """What is to be said of labels that differ by case alone, of which some are now one."""
    if len(before) > MOST_LEVELS:
        return ""
    notes = []
    groups: dict[str, list[str]] = {}
    for level in before:
        groups.setdefault(level.casefold(), []).append(level)
    if len(after) < len(groups) and (truth := truth_of(before)):
        yes, no = (", ".join(level for level in before if truth[level] is said) for said in (True, False))
        return f"has several words for yes ({yes}) and no ({no}), treated as two labels"
    several = [(key, levels) for key, levels in groups.items() if len(levels) > 1]
    kept = {level.casefold(): level for level in after}
    apart = [" and ".join(map(repr, levels)) for _, levels in several if set(levels) <= set(after)]
    one = ["/".join(levels) for key, levels in several if not set(levels) <= set(after) and key in kept]
    if one:
        notes.append(f"has words in several cases ({', '.join(one[:3])}), treated as the same label")
    if apart:
        notes.append(
            f"has labels that differ only in upper and lower case and are kept apart: {', '.join(apart[:3])}"
        )
    return "; ".join(notes)


def _without_marks(column: Column) -> Column:
    """A column of labels in which bare signs for a gap, such as "-" and "?", are missing cells."""
    assert column.codes is not None
    gone = marks_of_gaps(column.levels)
    if not gone.any():
        return column
    count = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
    kept = np.cumsum(~gone) - 1
    lookup = np.array([*np.where(gone, -1, kept), -1], dtype=np.intp)
    levels = tuple(level for level, is_gone in zip(column.levels, gone, strict=True) if not is_gone)
    lost = named_cells(column.levels, count, gone)
    return replace(column, codes=lookup[column.codes], levels=levels, lost=lost)


def _in_one_case(column: Column) -> Column:
    """A column of labels in which words whose case says nothing are spelled in one way, the most frequent."""
    assert column.codes is not None
    if len(column.levels) > MOST_LEVELS:
        return column
    mass = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
    kept = _spelling({level: float(m) for level, m in zip(column.levels, mass, strict=True)})
    if not kept:
        return column
    levels = tuple(level for level in column.levels if kept.get(level, level) == level)
    place = {level: number for number, level in enumerate(levels)}
    lookup = np.array([*(place[kept.get(level, level)] for level in column.levels), -1], dtype=np.intp)
    return replace(column, codes=lookup[column.codes], levels=levels)


def _spelling(mass: dict[str, float]) -> dict[str, str]:
    """For words in several cases, the spelling with the most mass; {} where there are none."""
    keys = one_case(list(mass))
    if len(set(keys.values())) == len(keys):
        return {}
    most: dict[str, str] = {}
    for level in sorted(keys, key=lambda level: (-mass[level], level)):
        most.setdefault(keys[level], level)
    return {level: most[key] for level, key in keys.items()}


def _merged(levels: dict[str, float]) -> dict[str, float]:
    """The mass of labels, words in several cases as one."""
    kept = _spelling(levels) if len(levels) <= MOST_LEVELS else {}
    out: dict[str, float] = {}
    for level, mass in levels.items():
        own = kept.get(level, level)
        out[own] = out.get(own, 0.0) + mass
    return out


def _fewer(levels: dict[str, float]) -> dict[str, float]:
    """At most one level more than are used, which is enough to see that there are too many."""
    if len(levels) <= MOST_LEVELS + 1:
        return levels
    return {name: levels[name] for name in sorted(levels)[: MOST_LEVELS + 1]}

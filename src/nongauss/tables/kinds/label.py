"""Columns of labels: text, categories, True and False."""

from __future__ import annotations

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
from nongauss.tables.lost_cells import named_cells

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
        return replace(column, note="; ".join(_notes(codes, texts, column.levels)))

    def summarise(self, column: Column, weight: NDArray[np.float64]) -> LabelFacts:
        """The weight of each label."""
        assert column.codes is not None
        mass = np.bincount(column.codes, weights=weight, minlength=len(column.levels))
        levels = {level: float(m) for level, m in zip(column.levels, mass, strict=True) if m > 0}
        order = tuple(column.levels[i] for i in np.argsort(column.ranks)) if column.ranks else None
        return LabelFacts(_fewer(levels), order)

    def columns(self, name: str, facts: LabelFacts, gaps: bool) -> tuple[ColumnSummary, ...]:
        """The column itself, its levels sorted."""
        levels = {level: facts.levels[level] for level in sorted_labels(facts.levels)}
        return (ColumnSummary(name, gaps, None, levels, facts.order, kind=self.name),)

    def flat(self, column: Column, part: str, origin: float) -> Column:
        """The labels; numbers become their text."""
        return column.as_labels()

    def shown(self, value: Any, part: str, origin: float) -> str:
        """The label itself."""
        return label_of(value)


def _notes(codes: NDArray[np.intp], texts: list[str], levels: tuple[str, ...]) -> list[str]:
    """What is to be said of texts (L,), into which `codes` (N,) are, that became these levels."""
    notes = []
    untidy = np.array([tidy(text) != text for text in texts], dtype=np.bool_)
    if untidy.any():
        count = np.bincount(codes[codes >= 0], minlength=len(texts))
        found = named_cells(texts, count, untidy)
        if found:
            notes.append(f"has labels with blanks around them, or accents in two signs, made plain: {found}")
    if len(levels) <= MOST_LEVELS:
        first: dict[str, str] = {}
        pairs = [(first.setdefault(level.casefold(), level), level) for level in levels]
        alike = [f"{one!r} and {other!r}" for one, other in pairs if one != other]
        if alike:
            notes.append(f"has labels that differ by case alone and stay apart: {', '.join(alike[:3])}")
    return notes


def _fewer(levels: dict[str, float]) -> dict[str, float]:
    """As many levels as tell that there are too many."""
    if len(levels) <= MOST_LEVELS + 1:
        return levels
    return {name: levels[name] for name in sorted(levels)[: MOST_LEVELS + 1]}

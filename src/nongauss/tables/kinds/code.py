"""Columns of whole numbers that are names, as the column's own name says: zip codes, accounts, ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.tables.column import Cells, Column, ColumnSummary, Kind, label_of, sorted_labels
from nongauss.tables.kinds.label import FEW_ROWS, MOST_LEVELS, Label, LabelFacts
from nongauss.tables.kinds.number import Moments, Number
from nongauss.tables.words import is_head

CODE_WORDS = (
    *("code", "zip", "zipcode", "postcode", "postal", "plz", "phone", "telephone", "mobile", "fax", "sku"),
    *("account", "customer", "client", "user", "member", "invoice", "policy", "serial", "reference", "isbn"),
    *("ean", "upc", "barcode", "iban", "ssn", "fips", "naics", "sic", "icd", "id", "identifier", "uuid"),
)
"""Words for what is named by numbers."""


@dataclass(frozen=True)
class CodeFacts:
    """What some rows tell of codes: their labels, and what they are as numbers, with the number of rows."""

    labels: LabelFacts
    numbers: Moments
    rows: int

    def __add__(self, other: CodeFacts) -> CodeFacts:
        return CodeFacts(self.labels + other.labels, self.numbers + other.numbers, self.rows + other.rows)


class Code(Kind):
    """Whole numbers from 0 in a column called as codes are. Models see labels; of a few rows, the numbers."""

    name = "code"
    plural = "codes"

    def decode(self, cells: Cells) -> Column | None:
        """The numbers, which are labels to a model."""
        word = is_head(cells.name, CODE_WORDS)
        if not word or isinstance(cells.dtype, pd.BooleanDtype | np.dtypes.BoolDType):
            return None
        column = Number().decode(cells)
        if column is None or column.values is None:
            return None
        there = column.values[~column.missing]
        if not len(there) or (there < 0).any() or (there != np.floor(there)).any():
            return None
        note = f"holds whole numbers that are codes according to its name ({word}), treated as labels"
        return Column(cells.name, column.values, kind=self.name, note=note if len(there) > FEW_ROWS else "")

    def summarise(self, column: Column, weight: NDArray[np.float64]) -> CodeFacts:
        """The weight of each code, one more than models take at most, and moments."""
        assert column.values is not None
        codes, which = np.unique(column.values, return_inverse=True)
        mass = np.bincount(which, weights=weight)[: MOST_LEVELS + 1]
        levels = {label_of(code): float(m) for code, m in zip(codes, mass, strict=False)}
        return CodeFacts(LabelFacts(levels, None), Moments.of(column.values, weight), len(weight))

    def columns(self, name: str, facts: CodeFacts, gaps: bool) -> tuple[ColumnSummary, ...]:
        """The labels, sorted; of up to `FEW_ROWS` rows the numbers."""
        if facts.rows <= FEW_ROWS:
            return (ColumnSummary(name, gaps, facts.numbers, kind=Number.name),)
        levels = {level: facts.labels.levels[level] for level in sorted_labels(facts.labels.levels)}
        return (ColumnSummary(name, gaps, None, levels, kind=self.name),)

    def facts_as(self, facts: CodeFacts, kind: str) -> Any:
        """Codes are numbers where other parts of the column have some, and labels where these have text."""
        return {Number.name: facts.numbers, Label.name: facts.labels}.get(kind)

    def flat(self, column: Column, part: str, origin: float) -> Column:
        """The labels; numbers become their text."""
        return column.as_labels() if column.values is not None else column

    def plain(self, column: Column) -> Column:
        """The numbers."""
        return Column(column.name, column.values, kind=Number.name)

    def shown(self, value: Any, part: str, origin: float) -> str:
        """The label itself."""
        return label_of(value)

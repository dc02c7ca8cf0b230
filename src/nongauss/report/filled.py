"""What was put into the gaps of a table, column by column: what was known, what came in, how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nongauss.predictive.cells import CellDistribution, LabelDistribution, MissingCells
from nongauss.predictive.distribution import FloatArray
from nongauss.tables.column_code import ColumnCode
from nongauss.tables.filling import find_gaps
from nongauss.tables.margins import Margin

_COVERAGE = 0.9


@dataclass(frozen=True, eq=False)
class FilledColumn:
    """A column with gaps: its `known` cells (K,) and the `law` of the missing ones, in `rows` (M,) from 0.

    Cells are numbers in the column's units, dates in days since 1970, labels and grades by their number.
    """

    margin: Margin
    code: ColumnCode
    known: FloatArray
    rows: NDArray[np.intp]
    law: CellDistribution | LabelDistribution

    @property
    def name(self) -> str:
        """The column's name."""
        return self.margin.name

    @property
    def is_label(self) -> bool:
        """Are its cells labels without an order?"""
        return isinstance(self.law, LabelDistribution)

    @property
    def is_single(self) -> bool:
        """Is one cell known, which gives all others their value and does not tell how sure that is?"""
        return len(self.known) == 1

    @cached_property
    def point(self) -> FloatArray:
        """The values put in, (M,): medians, or the most probable labels."""
        if isinstance(self.law, LabelDistribution):
            return self.law.mode.astype(np.float64)
        return self.law.quantile(0.5)

    @cached_property
    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Ends (M,) of the central 90 % intervals of the cells; not of labels."""
        assert isinstance(self.law, CellDistribution)
        low, high = self.law.interval(_COVERAGE).T
        return low, high

    @cached_property
    def alone(self) -> CellDistribution:
        """The distribution of the known cells, a prediction without other columns; not for labels."""
        return CellDistribution(self.margin, self.margin.below[None])

    def middle(self, cells: FloatArray) -> float:
        """The mean of cells, of labels and grades the most frequent one; NaN of none."""
        if not len(cells):
            return float("nan")
        if self.margin.labels:
            return float(np.bincount(cells.astype(np.intp)).argmax())
        unit = max(np.abs(cells).max(), 1.0)
        return float(unit * (cells / unit).mean())

    @cached_property
    def before(self) -> float:
        """`middle` of the known cells."""
        return self.middle(self.known)

    @cached_property
    def after(self) -> float:
        """`middle` of all cells, the gaps filled."""
        return self.middle(np.concatenate([self.known, self.point]))

    @cached_property
    def sureness(self) -> FloatArray:
        """How sure each cell is (M,): of labels the probability of the one put in; else how much narrower.

        1 - sd / sd of the column alone, which is negative where a cell is less sure than the column; 1 for a
        column that has no spread.
        """
        if isinstance(self.law, LabelDistribution):
            likeliest: FloatArray = self.law.probabilities().max(axis=1)
            return likeliest
        alone = float(self.alone.std[0])
        narrower: FloatArray = 1.0 - self.law.std / alone if alone > 0 else np.ones(len(self.rows))
        return narrower

    @cached_property
    def how_sure(self) -> float:
        """The mean of `sureness`, 0 where it is negative."""
        return float(np.clip(self.sureness.mean(), 0.0, 1.0))

    @cached_property
    def most_frequent(self) -> float:
        """The share of the most frequent of the known cells: how sure one is by itself."""
        counts = np.bincount(self.known.astype(np.intp)) if len(self.known) else np.zeros(1)
        return float(counts.max() / max(counts.sum(), 1))

    def shown(self, value: float) -> str:
        """A cell as a person reads it."""
        if np.isnan(value):
            return ""
        if self.margin.labels:
            return self.margin.labels[int(value)]
        if self.code.kind == "date":
            return str(self.code.shown(round(value) - self.code.origin))
        if self.code.kind == "clock":
            return str(self.code.shown(round(60.0 * value) / 60.0))
        return figure_of(value)


def filled_columns(imputer: Any, laws: MissingCells, table: Any) -> list[FilledColumn]:
    """The columns of a table whose gaps were filled, from what `impute_distribution` said of it."""
    margins, encoder = imputer._cell_margins, imputer._cell_encoder
    cells = find_gaps(encoder, margins, table, "impute").cells
    return [
        FilledColumn(
            margin,
            encoder.columns[margin.flat],
            cells[~np.isnan(cells[:, j]), j],
            laws.rows(margin.name),
            laws[margin.name],
        )
        for j, margin in enumerate(margins)
        if margin.name in laws.columns
    ]


def figure_of(value: float) -> str:
    """A number to four digits, without powers of ten where it has up to fifteen digits before the point."""
    return f"{value:,.0f}" if 1000.0 <= abs(value) < 1e15 else f"{value:.4g}"


def least_sure(columns: Sequence[FilledColumn], most: int, of_one: int = 3) -> list[tuple[FilledColumn, int]]:
    """The cells that are least sure, as (column, place among its gaps), at most `of_one` of a column.

    A label counts by how far its probability is above the share of the most frequent one.
    """
    pairs = []
    for number, column in enumerate(columns):
        if column.is_single:
            continue
        gain = column.sureness
        if column.is_label:
            gain = (gain - column.most_frequent) / max(1.0 - column.most_frequent, 1e-12)
        order = np.argsort(gain, kind="stable")[:of_one]
        pairs += [(float(gain[k]), number, int(k)) for k in order]
    return [(columns[number], k) for _, number, k in sorted(pairs)[:most]]

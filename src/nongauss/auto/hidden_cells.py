"""How well candidates predict cells of a table that are known and were hidden from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nongauss.auto.columns_alone import ColumnsAlone
from nongauss.predictive.cells import CellDistribution, LabelDistribution, law_of, mixed_law
from nongauss.predictive.distribution import FloatArray
from nongauss.tables.filling import Gaps, find_gaps
from nongauss.tables.frame import InputTable, read_input
from nongauss.tables.margins import BULK, Margin, RowNoise, row_hashes
from nongauss.tables.rows import validate_weight

MOST_ROWS = 2000
"""Rows of which cells are hidden to choose by."""
ENOUGH_CELLS, MOST_ROUNDS = 200, 3
"""Cells are hidden anew, each time from all the candidates, until so many were, in so many rounds at most."""
LEAST_CHANCE = 1e-4
"""A label to which less than this was given counts as this."""
FENCE = 3.0
"""Widths of the bulk by which a number counts as beyond it at most: 9 standard deviations of normal ones."""
LEAST_SCORE = 1e-12
"""Least mean score of a column alone, by which others are divided: of numbers as a share of their range, of
labels in nats."""


class CellFigures(NamedTuple):
    """How well hidden cells were predicted, relative to columns alone (lower is better), with its parts.

    `crps` (for numbers and grades) and `log_loss` (for labels) are means over columns of the score divided
    by that of the column alone; `coverage` is the share of numbers in their central 90 % intervals.
    """

    score: float
    crps: float
    log_loss: float
    coverage: float


class ToldColumn(NamedTuple):
    """A model's laws of the R hidden cells of one column, their true values (R,) and their weights (R,)."""

    margin: Margin
    law: CellDistribution | LabelDistribution
    true: FloatArray
    weight: FloatArray

    @property
    def is_label(self) -> bool:
        """Are the cells labels without an order?"""
        return isinstance(self.law, LabelDistribution)

    @property
    def scores(self) -> FloatArray:
        """The CRPS of each cell, of labels the log-loss: (R,)."""
        if isinstance(self.law, CellDistribution):
            return self.law.crps(self.true)
        found: FloatArray = -np.maximum(self.law.log_prob(self.true), np.log(LEAST_CHANCE))
        return found

    @property
    def score(self) -> float:
        """The mean of the scores."""
        return float(np.average(self.scores, weights=self.weight))


Told = Mapping[tuple[int, str], ToldColumn]
"""A model's laws of hidden cells, by round and column: in small tables cells are hidden in several rounds."""


class HiddenCells(NamedTuple):
    """Rows of a table, how often each counts (N,), and the same table with cells hidden, once a round."""

    table: InputTable
    weight: FloatArray
    masked: list[InputTable]


def hide(X: Any, weight: ArrayLike | None, share: float, seed: int) -> HiddenCells:
    """Hide a share of the cells, more than once where they are few.

    Which ones depends on the rows' content, not on the columns' units. Raises InputError for tables in parts.
    """
    alone = ColumnsAlone(random_state=seed).fit(X, None, weight)
    whole = find_gaps(alone._cell_encoder, alone._cell_margins, X, "AutoImputer")
    noise = RowNoise(row_hashes(_places(alone._cell_margins, whole.cells), whole.missing), seed)
    rows = np.sort(np.argsort(noise.uniform(1)[:, 0], kind="stable")[:MOST_ROWS])
    known = ~np.isnan(whole.cells)[rows]
    expected = max(share * float(known.sum()), 1.0)
    frame = whole.table.take(rows).as_frame().reset_index(drop=True)
    masked = [
        read_input(with_hidden(frame, whole.places, known & (noise.uniform(known.shape[1])[rows] < share)))
        for _ in range(min(MOST_ROUNDS, math.ceil(ENOUGH_CELLS / expected)))
    ]
    return HiddenCells(read_input(frame), validate_weight(weight, len(whole.cells))[rows], masked)


def _places(margins: Sequence[Margin], cells: FloatArray) -> FloatArray:
    """The share of its column below each cell (N, J), to seven digits."""
    middle = [np.mean(margin.span(own), axis=0) for margin, own in zip(margins, cells.T, strict=True)]
    out = np.stack(middle, axis=1) if middle else np.zeros(cells.shape)
    found: FloatArray = np.where(np.isnan(cells), np.nan, out).astype(np.float32).astype(np.float64)
    return found


def with_hidden(table: pd.DataFrame, places: Sequence[int], hidden: NDArray[np.bool_]) -> pd.DataFrame:
    """The table with cells of some columns, by their `places`, missing where `hidden` (N, J)."""
    out = table.copy()
    for j, place in enumerate(places):
        column = out.iloc[:, place]
        if pd.api.types.is_bool_dtype(column.dtype):
            column = column.astype(object)
        out.isetitem(place, column.mask(hidden[:, j]).array)
    return out


def told_by(make: Callable[[], Any], hidden: HiddenCells) -> dict[tuple[int, str], ToldColumn]:
    """What a new model, fitted to each masked table, says of the cells that are hidden there."""
    out = {}
    for number, masked in enumerate(hidden.masked):
        model = make().fit(masked, None, hidden.weight)
        margins, encoder = model._cell_margins, model._cell_encoder
        true = find_gaps(encoder, margins, hidden.table, "AutoImputer").cells
        gaps = find_gaps(encoder, margins, masked, "AutoImputer")
        asked = gaps.missing & ~np.isnan(true)
        laws = model._complete(Gaps(gaps.source, gaps.table, gaps.places, gaps.cells, asked), 0, None)
        for j, (own_margin, cells) in enumerate(zip(margins, laws, strict=True)):
            margin, within = fenced(own_margin)
            if len(rows := cells.rows):
                own = ToldColumn(margin, law_of(margin, cells), within(true[rows, j]), hidden.weight[rows])
                out[number, margin.name] = own
    return out


def fenced(margin: Margin) -> tuple[Margin, Callable[[FloatArray], FloatArray]]:
    """A margin of numbers that count as at most `FENCE` widths of their bulk beyond it, and what clips cells.

    The score is then the integral of (F(x) - 1[x >= y])^2 between the fences, which is as proper
    (Gneiting and Ranjan 2011). With one cell of a billion it would else tell of nothing but that cell.
    """
    low, high = margin.value(np.array(BULK))
    with np.errstate(over="ignore"):
        room = FENCE * (high - low)
        ends = low - room, high + room
    if margin.labels or not room > 0.0 or not np.isfinite(ends).all():
        return margin, lambda cells: cells
    return replace(margin, edge=np.clip(margin.edge, *ends)), lambda cells: np.clip(cells, *ends)


def column_scores(told: Told) -> dict[str, float]:
    """The mean score of each column over all cells that were hidden in it, once or more."""
    columns: dict[str, list[ToldColumn]] = {}
    for (_, name), own in told.items():
        columns.setdefault(name, []).append(own)
    return {
        name: float(np.average([own.score for own in each], weights=[own.weight.sum() for own in each]))
        for name, each in columns.items()
    }


def yardsticks(usual: Told) -> dict[str, float]:
    """What scores of columns are divided by: those of the column alone, if it has more than one value."""
    spread = {
        name: 1.0 if own.is_label else float(own.margin.edge[-1] - own.margin.edge[0])
        for (_, name), own in usual.items()
    }
    scores = column_scores(usual)
    return {name: max(score, LEAST_SCORE * spread[name]) for name, score in scores.items() if score > 0}


def figures_of(own: Told, usual: Told) -> CellFigures:
    """Mean ratios of scores to those of columns alone, over columns."""
    alone = yardsticks(usual)
    ratio = {name: score / alone[name] for name, score in column_scores(own).items() if name in alone}
    labels = {name for (_, name), column in own.items() if column.is_label}
    numbers = [column for column in own.values() if not column.is_label]

    def mean(values: Any) -> float:
        """The mean, NaN of nothing."""
        return float(np.mean(values)) if len(values) else float("nan")

    return CellFigures(
        mean([*ratio.values()]) if ratio else 1.0,
        mean([value for name, value in ratio.items() if name not in labels]),
        mean([value for name, value in ratio.items() if name in labels]),
        _coverage(numbers) if numbers else float("nan"),
    )


def _coverage(columns: Sequence[ToldColumn]) -> float:
    """The share of cells in their central 90 % intervals."""
    held = []
    for column in columns:
        assert isinstance(column.law, CellDistribution)
        low, high = column.law.interval(0.9).T
        held.append((low <= column.true) & (column.true <= high))
    weight = np.concatenate([column.weight for column in columns])
    return float(np.average(np.concatenate(held), weights=weight))


def told_by_mixture(
    told: Sequence[Told], share: Mapping[bool, FloatArray]
) -> dict[tuple[int, str], ToldColumn]:
    """What the mixture says of the columns of which all C models say something.

    share: by whether the column holds labels, (C,).
    """
    out = {}
    for name, first in told[0].items():
        if all(name in own for own in told):
            law = mixed_law(first.margin, [own[name].law for own in told], share[first.is_label])
            out[name] = first._replace(law=law)
    return out

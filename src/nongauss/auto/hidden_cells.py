"""How well candidates predict cells of a table that are known and were hidden from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.auto.columns_alone import ColumnsAlone
from nongauss.predictive.cells import CellDistribution, LabelDistribution, law_of, mixed_law
from nongauss.predictive.distribution import FloatArray
from nongauss.tables.filling import Gaps, find_gaps
from nongauss.tables.frame import InputTable, read_input
from nongauss.tables.margins import Margin, RowNoise, row_hashes

MOST_JUDGED = 2000
"""Rows of which cells are hidden to choose by."""
LEAST_CHANCE = 1e-4
"""A label to which less than this was given counts as this."""
LEAST_SCORE = 1e-12


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
    """What a model says of the hidden cells of one column, and what they are, (R,)."""

    margin: Margin
    law: CellDistribution | LabelDistribution
    true: FloatArray

    @property
    def scores(self) -> FloatArray:
        """The CRPS of each cell, of labels the log-loss: (R,)."""
        if isinstance(self.law, CellDistribution):
            return self.law.crps(self.true)
        found: FloatArray = -np.maximum(self.law.log_prob(self.true), np.log(LEAST_CHANCE))
        return found


Told = Mapping[str, ToldColumn]
"""What a model says of hidden cells, by the name of the column."""


def hide(X: Any, share: float, seed: int) -> tuple[InputTable, InputTable]:
    """Rows of a table, and the same rows with a share of their known cells hidden."""
    alone = ColumnsAlone(random_state=seed).fit(X)
    whole = find_gaps(alone._cell_encoder, alone._cell_margins, X, "AutoImputer")
    noise = RowNoise(row_hashes(whole.cells, whole.missing), seed)
    judged = np.argsort(noise.uniform(1)[:, 0], kind="stable")[:MOST_JUDGED]
    hidden = (noise.uniform(whole.cells.shape[1]) < share) & ~np.isnan(whole.cells)
    rows = np.sort(judged)
    frame = whole.table.take(rows).as_frame().reset_index(drop=True)
    return read_input(frame), read_input(with_hidden(frame, whole.places, hidden[rows]))


def with_hidden(table: pd.DataFrame, places: Sequence[int], hidden: NDArray[np.bool_]) -> pd.DataFrame:
    """The table with cells of some columns, by their `places`, missing where `hidden` (N, J)."""
    out = table.copy()
    for j, place in enumerate(places):
        column = out.iloc[:, place]
        if pd.api.types.is_bool_dtype(column.dtype):
            column = column.astype(object)
        out.isetitem(place, column.mask(hidden[:, j]).array)
    return out


def told_by(model: Any, table: InputTable, masked: InputTable) -> dict[str, ToldColumn]:
    """What a model says of the cells that are in the table and not in the masked one."""
    margins, encoder = model._cell_margins, model._cell_encoder
    true = find_gaps(encoder, margins, table, "AutoImputer")
    gaps = find_gaps(encoder, margins, masked, "AutoImputer")
    asked = gaps.missing & ~np.isnan(true.cells)
    laws = model._complete(Gaps(gaps.source, gaps.table, gaps.places, gaps.cells, asked), 0, None)
    return {
        margin.name: ToldColumn(margin, law_of(margin, cells), true.cells[cells.rows, j])
        for j, (margin, cells) in enumerate(zip(margins, laws, strict=True))
        if len(cells.rows)
    }


def figures_of(own: Told, usual: Told) -> CellFigures:
    """Mean ratios of scores to those of columns alone, over columns."""
    alone = {name: float(column.scores.mean()) for name, column in usual.items()}
    ratio = {
        name: float(column.scores.mean()) / max(alone[name], LEAST_SCORE)
        for name, column in own.items()
        if alone.get(name, 0.0) > 0
    }
    is_label = {name: isinstance(column.law, LabelDistribution) for name, column in own.items()}
    held = [_held(column) for column in own.values() if isinstance(column.law, CellDistribution)]

    def mean(values: Any) -> float:
        """The mean, NaN of nothing."""
        return float(np.mean(values)) if len(values) else float("nan")

    return CellFigures(
        mean([*ratio.values()]) if ratio else 1.0,
        mean([value for name, value in ratio.items() if not is_label[name]]),
        mean([value for name, value in ratio.items() if is_label[name]]),
        mean(np.concatenate(held)) if held else float("nan"),
    )


def _held(column: ToldColumn) -> FloatArray:
    """Whether cells are in their central 90 % intervals: (R,)."""
    assert isinstance(column.law, CellDistribution)
    low, high = column.law.interval(0.9).T
    held: FloatArray = ((low <= column.true) & (column.true <= high)).astype(np.float64)
    return held


def mixed(told: Sequence[Told], share: Mapping[bool, FloatArray]) -> dict[str, ToldColumn]:
    """What the mixture says of the columns of which all C models say something.

    share: by whether the column holds labels, (C,).
    """
    out = {}
    for name, first in told[0].items():
        if all(name in own for own in told):
            laws = [own[name].law for own in told]
            law = mixed_law(first.margin, laws, share[isinstance(first.law, LabelDistribution)])
            out[name] = ToldColumn(first.margin, law, first.true)
    return out

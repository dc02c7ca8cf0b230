"""How a cell is seen, by its level or in standard deviations, and which rows are kept apart."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.rank_factor.levels import NONE, Levels
from nongauss.rank_factor.params import FloatArray
from nongauss.rank_factor.rank_likelihood import Rows
from nongauss.tables.rows import Rows as MergedRows
from nongauss.tables.scaling import Scale, fit_scale

MOST_REPEATED = 1_000_000
"""Rows, counted by their weights, that may be held apart."""


@persistable("rank_factor.Coding", "nongauss.rank_factor.coding:Coding")
class Coding(NamedTuple):
    """How a cell is seen: levels (of ranks) or centre and spread (of values), (D,) each, by column."""

    levels: Levels | None
    scales: tuple[tuple[float, float, float], ...]

    def rows(self, X: FloatArray) -> Rows:
        """Rows of raw cells X (N, D)."""
        if self.levels is not None:
            return Rows(self.levels.place(X), None)
        return Rows(None, self.standardised(X))

    def standardised(self, X: FloatArray) -> FloatArray:
        """Values in standard deviations from the mean of their column."""
        return np.stack([Scale(*scale).apply(X[:, i]) for i, scale in enumerate(self.scales)], axis=1)

    def typical(self, scores: FloatArray, table: FloatArray) -> FloatArray:
        """Cells in original units with these scores (N, D), given the levels' mean scores (D, Q)."""
        if self.levels is None:
            return np.stack(
                [unit * (mean + sd * scores[:, i]) for i, (unit, mean, sd) in enumerate(self.scales)], axis=1
            )
        out = np.empty_like(scores)
        for i, n_levels in enumerate(self.levels.counts):
            middle = 0.5 * self.levels.low[i, :n_levels] + 0.5 * self.levels.high[i, :n_levels]
            out[:, i] = np.interp(scores[:, i], np.maximum.accumulate(table[i, :n_levels]), middle)
        return out


def scale_of(column: FloatArray, weight: FloatArray) -> Scale:
    """Without mirroring, so that the loading of a column that rises with a factor is positive."""
    used = (weight > 0) & ~np.isnan(column)
    scale = fit_scale(column[used], weight[used])
    return Scale(scale.unit, scale.mean, abs(scale.sd) or 1.0)


def has_lone_row(codes: NDArray[np.uint8]) -> bool:
    """Does a level of a column hold one row alone, by the levels of training cells (N, D)?

    Then the level's bounds are the row's cell, and its mean factors those of the row.
    """
    return any(bool((np.bincount(column[column != NONE]) == 1).any()) for column in codes.T)


def repeated(rows: MergedRows, why: str) -> MergedRows:
    """Rows as often as they count: draws of equal rows differ. InputError for weights that forbid it."""
    counts = np.rint(rows.weight)
    if not np.array_equal(counts, rows.weight) or counts.sum() > MOST_REPEATED:
        odd = rows.weight[counts != rows.weight] if (counts != rows.weight).any() else counts.max()
        raise InputError(
            f"{why} repeats each row as often as it counts, which needs whole sample weights of at most "
            f"{MOST_REPEATED:,} in all, got {np.ravel(odd)[0]:g}; scale them, or take "
            'neighbours="level" with inference="vb".'
        )
    X, Y = (np.repeat(part, counts.astype(np.intp), axis=0) for part in (rows.X, rows.Y))
    return replace(rows, X=X, Y=Y, weight=np.ones(len(X)))


def with_a_column(cells: FloatArray) -> FloatArray:
    """The same, with a column of zeros where there is none: a table that says nothing is legal."""
    return cells if cells.shape[1] else np.zeros((len(cells), 1))

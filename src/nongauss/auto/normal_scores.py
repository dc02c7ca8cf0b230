"""Missing cells by the correlations of normal scores: the page of code that any model of gaps has to beat.

Scores of ordered columns and 0/1 columns of labels are taken for one normal law, whose covariance EM learns
from the known cells (Little and Rubin 2002, section 11.2); a cell is told by its conditional law, mapped back
through its column's quantiles. Tables are drawn with covariances drawn from their posterior.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from nongauss.auto.columns_alone import MarginImputer
from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.estimator.imputation import MissingLaws, known_alone
from nongauss.prob.normal_gaps import NormalLaw, learn_law, told_by_law
from nongauss.tables.filling import Gaps
from nongauss.tables.margins import LabelCells, Margin, OrderedCells, RowNoise, row_hashes

FloatArray = NDArray[np.float64]

MOST_ROWS, MOST_SCORES, N_ROUNDS = 2000, 150, 40
"""Rows from which correlations are learned, scores that may be many, rounds of EM."""
LEAST_SHARE = 0.02
"""A label to which less is given counts as this."""


@persistable("auto.NormalScores")
class NormalScores(MarginImputer):
    """Each missing cell by the normal law of scores given the others: see the module."""

    def _learn(self, cells: FloatArray, weight: FloatArray) -> None:
        """Learn the correlations. Raises InputError for a table with too many scores."""
        hashes = row_hashes(cells, np.isnan(cells))
        order = np.argsort(np.where(weight > 0, hashes, np.uint64(2**64 - 1)), kind="stable")
        order = order[: min(MOST_ROWS, int((weight > 0).sum()))]
        w = scores_of(self._margins, cells[order])
        if w.shape[1] > MOST_SCORES:
            raise InputError(
                f"{type(self).__name__} takes {MOST_SCORES} numbers and labels at most, got {w.shape[1]}."
            )
        self._law = learn_law(w, weight[order], N_ROUNDS, self._seed)
        self._mass = np.maximum(weight[order] @ ~np.isnan(w), 1e-12)

    @property
    def _normal_law(self) -> NormalLaw:
        """The law of the scores; that of a model of an older version has one draw."""
        if hasattr(self, "_law"):
            return self._law
        level, C = self._level, self._covariance
        return NormalLaw(level, C, level[None], C[None])

    def _complete(self, gaps: Gaps, seed: int, n: int | None) -> MissingLaws:
        """Conditional laws of missing cells, and n joint draws of each row."""
        n, cells, law = n or 1, known_alone(gaps), self._normal_law
        w = scores_of(self._margins, cells)
        noise = RowNoise(row_hashes(cells, np.isnan(cells)), seed)
        normal = [noise.normal(w.shape[1]) for _ in range(n)]
        told = told_by_law(law, w, normal, self._mass)
        return _laws(self._margins, gaps.missing, *told)


def scores_of(margins: tuple[Margin, ...], cells: FloatArray) -> FloatArray:
    """Scores of cells (N, J), NaN where missing: one of an ordered column, 0 or 1 of each label: (N, P)."""
    out = []
    for j, margin in enumerate(margins):
        own = cells[:, j]
        if margin.is_label:
            dummies = (own[:, None] == np.arange(margin.n_values)).astype(np.float64)
            dummies[np.isnan(own)] = np.nan
            out.append(dummies)
        else:
            low, high = margin.span(own)
            middle = ndtri(np.clip(0.5 * (low + high), 1e-4, 1.0 - 1e-4))
            out.append(np.where(np.isnan(own), np.nan, middle)[:, None])
    return np.hstack(out) if out else np.zeros((len(cells), 0))


def _laws(
    margins: tuple[Margin, ...],
    missing: NDArray[np.bool_],
    mean: FloatArray,
    sd: FloatArray,
    drawn: FloatArray,
) -> MissingLaws:
    """Laws of the missing cells (N, J) from those of the scores (N, P), drawn (S, N, P)."""
    out: list[OrderedCells | LabelCells] = []
    at = 0
    for j, margin in enumerate(margins):
        rows = np.flatnonzero(missing[:, j])
        own = slice(at, at + (margin.n_values if margin.is_label else 1))
        at = own.stop
        if not margin.is_label:
            out.append(OrderedCells(rows, mean[rows, own].T, sd[rows, own].T, drawn[:, rows, own.start]))
            continue
        p = np.clip(mean[rows, own], LEAST_SHARE, 1.0)
        p /= p.sum(axis=1, keepdims=True)
        # a label has the place that the last label's score has in its law: draws hang together as scores do
        place = ndtr((drawn[:, rows, own.stop - 1] - mean[rows, own.stop - 1]) / sd[rows, own.stop - 1])
        chosen = (np.cumsum(p, axis=1)[None] < place[:, :, None]).sum(axis=2)
        out.append(LabelCells(rows, p, np.minimum(chosen, p.shape[1] - 1)))
    return out

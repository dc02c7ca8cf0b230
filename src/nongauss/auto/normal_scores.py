"""Missing cells by the correlations of normal scores: the page of code that any model of gaps has to beat.

Scores of ordered columns and 0/1 columns of labels are taken for one normal law, whose covariance EM learns
from the known cells (Little and Rubin 2002, section 11.2); a cell is told by its conditional law, mapped back
through its column's quantiles.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from nongauss.auto.columns_alone import MarginImputer
from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.estimator.imputation import MissingLaws, known_alone
from nongauss.rank_factor.score_model import covariance_of_gaps, given_known
from nongauss.tables.filling import Gaps
from nongauss.tables.margins import LabelCells, Margin, OrderedCells, RowNoise, row_hashes

FloatArray = NDArray[np.float64]

MOST_ROWS, MOST_SCORES, N_ROUNDS = 2000, 150, 40
"""Rows from which correlations are learned, scores that may be many, rounds of EM."""
N_DRAWS, ROWS = 20, 1000
"""Draws of a cell, and rows that are worked on at once."""
LEAST_SHARE, LEAST_VARIANCE = 0.02, 1e-3
"""A label to which less is given counts as this; what no score's variance is below."""


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
        known, weight = ~np.isnan(w), weight[order]
        mass = np.maximum(weight @ known, 1e-12)
        level = weight @ np.where(known, w, 0.0) / mass
        filled = np.where(known, w, 0.0)
        self._level, self._covariance = covariance_of_gaps(filled, known, weight, level, N_ROUNDS)
        self._mass = mass

    def _complete(self, gaps: Gaps, seed: int, n: int | None) -> MissingLaws:
        """Conditional laws of missing cells, and n joint draws of each row."""
        n, cells = n or N_DRAWS, known_alone(gaps)
        w = scores_of(self._margins, cells)
        mean, sd = np.empty_like(w), np.empty_like(w)
        drawn = np.empty((n, *w.shape))
        noise = RowNoise(row_hashes(cells, np.isnan(cells)), seed)
        normal = [noise.normal(w.shape[1]) for _ in range(n)]
        for first in range(0, len(w), ROWS):
            own = slice(first, first + ROWS)
            known = ~np.isnan(w[own])
            left, V = given_known(np.where(known, w[own], 0.0), known, self._level, self._covariance)
            mean[own], sd[own] = (
                self._level + left,
                np.sqrt(np.maximum(np.einsum("npp->np", V), LEAST_VARIANCE)),
            )
            wider = _widening(self._mass, known)
            sd[own] *= wider
            root = np.linalg.cholesky(V + LEAST_VARIANCE * np.eye(w.shape[1]))
            for s in range(n):
                drawn[s, own] = mean[own] + wider * np.einsum("npq,nq->np", root, normal[s][own])
        return _laws(self._margins, gaps.missing, mean, sd, drawn)


def _widening(mass: FloatArray, known: NDArray[np.bool_]) -> FloatArray:
    """By how much laws (N, P) are wider than with correlations that are known: ((n + p) / (n - p))^1/2.

    A regression on p scores that n cells told has left n / (n - p) too little, and p / n are its own errors.
    """
    p = np.minimum(known.sum(axis=1)[:, None], 0.5 * mass)
    found: FloatArray = np.sqrt((mass + p) / (mass - p))
    return found


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

"""Moves of the factors of all rows that do not know the latent variances of the hinges.

Given its latent variances a row hardly moves where one of its hinges is at its edge, as 1/lambda is large
there. Elliptical slice sampling (Murray, Adams and MacKay 2010) draws along an ellipse through the factors
and a draw of their prior, by the hinges themselves: exp(-2 [u]_+).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nongauss.rank_factor.config import RankConfig
from nongauss.rank_factor.data import FloatArray, RankRows
from nongauss.rank_factor.params import Experts, System, point
from nongauss.rank_factor.rank_likelihood import LoadingMoments, hinges
from nongauss.rank_factor.svm_mixture import margins

MOST_SHRINKS = 30
"""Rows that have found no place on their ellipse after so many steps stay where they are."""

LogLikelihood = Callable[[FloatArray], FloatArray]


def slice_move(
    rng: np.random.Generator, z: FloatArray, prior: System, log_likelihood: LogLikelihood
) -> FloatArray:
    """The next factors (B, K) of rows whose prior has precision (B,) and linear term (B, K).

    `log_likelihood` takes factors (B, K) and gives (B,). Each row leaves its own posterior as it is.
    """
    precision, linear = prior
    mean = linear / precision[:, None]
    across = rng.standard_normal(z.shape) / np.sqrt(precision)[:, None]
    height = log_likelihood(z) + np.log(rng.random(len(z)))
    angle = rng.uniform(0.0, 2.0 * np.pi, len(z))
    low, high = angle - 2.0 * np.pi, angle.copy()
    moved, searching = z.copy(), np.ones(len(z), dtype=bool)
    for _ in range(MOST_SHRINKS):
        at = mean + (z - mean) * np.cos(angle)[:, None] + across * np.sin(angle)[:, None]
        found = searching & (log_likelihood(at) > height)
        moved[found] = at[found]
        searching &= ~found
        if not searching.any():
            break
        low, high = np.where(angle < 0.0, angle, low), np.where(angle < 0.0, high, angle)
        angle = rng.uniform(low, high)
    return moved


def log_likelihood_of(
    loadings: LoadingMoments,
    rows: RankRows,
    experts: Experts,
    labels: tuple[FloatArray, FloatArray] | None,
    config: RankConfig,
) -> LogLikelihood:
    """-2 [u]_+ summed over the hinges of ranks and, given (y, shares), over those of the labels."""
    cells = rows.cells
    assert cells is not None

    def log_likelihood(z: FloatArray) -> FloatArray:
        """Of each row at factors (B, K): (B,)."""
        score = z.astype(loadings.mean.dtype) @ loadings.mean.T
        at = hinges(score, loadings.scale.lower, loadings.scale.upper, cells, config.eps)
        loss = sum(
            (np.where(has, np.maximum(u, 0.0), 0.0).sum(axis=1, dtype=np.float64) for u, has in at.sides),
            start=np.zeros(len(z)),
        )
        if labels is not None:
            y, shares = labels
            u, _ = margins(experts, point(z), y)
            loss = loss + (shares[:, :, None] * np.maximum(u, 0.0)).sum(axis=(1, 2))
        found: FloatArray = -2.0 * loss
        return found

    return log_likelihood

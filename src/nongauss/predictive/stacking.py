"""Shares of several laws in their mixture, by how well it predicts rows that none of them has seen.

Yao, Vehtari, Simpson and Gelman, *Using stacking to average Bayesian predictive distributions*, Bayesian
Analysis 13 (2018).
"""

from __future__ import annotations

import numpy as np

from nongauss.predictive.distribution import FloatArray

MOST_STEPS, ENOUGH = 500, 1e-5
"""Of expectation maximisation: most steps, and the change of the shares below which they stand."""


def best_weights(
    log_density: FloatArray, weight: FloatArray, most_steps: int = MOST_STEPS, enough: float = ENOUGH
) -> FloatArray:
    """The mixture of C densities (C, N) under which rows of weight (N,) are most probable: (C,), sums to 1.

    It maximises sum_n w_n log sum_c s_c p_c(y_n) by expectation maximisation, which cannot lower that sum; it
    has one maximum. A row that no law allows says nothing of their shares.
    """
    top = log_density.max(axis=0)
    density = np.exp(log_density - np.where(np.isfinite(top), top, 0.0))
    density[:, ~np.isfinite(top)] = 1.0
    share = np.full(len(density), 1.0 / len(density))
    for _ in range(most_steps):
        joint = share[:, None] * density
        new: FloatArray = (joint / joint.sum(axis=0)) @ weight / weight.sum()
        if np.abs(new - share).max() < enough:
            return new
        share = new
    return share

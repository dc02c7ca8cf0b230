"""Shares of several laws in their mixture, by how well it predicts rows that none of them has seen.

Yao, Vehtari, Simpson and Gelman, Bayesian Analysis 13 (2018). The log of the mixture's density, summed over
rows, is concave in the shares; a law that is not worth its price is left out, which keeps few.
"""

from __future__ import annotations

import numpy as np

from nongauss.predictive.distribution import FloatArray
from nongauss.predictive.stacking import best_weights

MOST_STEPS, ENOUGH = 2000, 1e-7
"""Of expectation maximisation: finer than for an average, since what a law is worth is told from it."""

N_SHARES = 400
"""Shares between 0 and 1 by which an integral over them is a sum."""

IMPOSSIBLE = -745.0
"""Log density of rows that no law allows, so that they cost the same under all."""


def stacked(log_density: FloatArray, weight: FloatArray) -> FloatArray:
    """The shares (C,) of C laws with log densities (C, N) at rows of weight (N,) left out of each.

    They maximise sum_n w_n log sum_c s_c p_c(y_n) by expectation maximisation, which cannot lower it. Then
    the law whose going costs least goes, as long as that is less than its price: half the log of the number
    of rows, in nats, for one more free share (Schwarz 1978). A law alone stays if it is ahead.
    """
    kept = np.flatnonzero(np.isfinite(log_density).any(axis=1))
    total = float(weight.sum())
    price = 0.5 * np.log(max(total, 2.0))
    share = np.zeros(len(log_density))
    share[kept], value = _best(log_density[kept], weight)
    while len(kept) > 1:
        trials = [(_best(log_density[kept[kept != out]], weight), out) for out in _candidates(share, kept)]
        (own, without), out = max(trials, key=lambda trial: trial[0][1])
        if (value - without) * total > price:
            break
        kept = kept[kept != out]
        share[:] = 0.0
        share[kept], value = own, without
    return share


def _candidates(share: FloatArray, kept: np.ndarray) -> np.ndarray:
    """The laws that may go: all that have no share at once the first, else each of the three least."""
    order = kept[np.argsort(share[kept], kind="stable")]
    return order[:1] if share[order[0]] < 1e-4 else order[:3]


def _best(log_density: FloatArray, weight: FloatArray) -> tuple[FloatArray, float]:
    """The best shares (C,), and the mean log density of the mixture, nats a row."""
    share = best_weights(log_density, weight, MOST_STEPS, ENOUGH)
    value = float(weight @ np.maximum(mixed(log_density, share), IMPOSSIBLE)) / float(weight.sum())
    return share, value


def mixed(log_density: FloatArray, share: FloatArray) -> FloatArray:
    """The log density of a mixture at each row, (N,), from those of its laws (C, N) and their shares (C,)."""
    with np.errstate(divide="ignore"):
        out: FloatArray = np.logaddexp.reduce(log_density + np.log(share)[:, None], axis=0)
    return out


def posterior_share(first: FloatArray, second: FloatArray, weight: FloatArray) -> float:
    """The share of the first of two laws of log densities (N,) that is expected after rows of weight (N,).

    E[s] under the posterior of s, before them uniform between 0 and 1, with the likelihood
    prod_n (s p_1(y_n) + (1 - s) p_2(y_n))^w_n: where the best share is what few rows happen to say, this is
    between it and a half.
    """
    s = (np.arange(N_SHARES) + 0.5) / N_SHARES
    rows = np.logaddexp(np.log(s)[:, None] + first, np.log1p(-s)[:, None] + second)
    log_posterior = np.maximum(rows, IMPOSSIBLE) @ weight
    posterior = np.exp(log_posterior - log_posterior.max())
    return float(posterior @ s / posterior.sum())

"""The stick-breaking Indian buffet process, truncated: v_k ~ Beta(alpha, 1), pi_k = v_1 ... v_k.

q(v_k) = Beta(gamma_k1, gamma_k2). Doshi-Velez, Miller, Van Gael and Teh (AISTATS 2009) bound
E log(1 - pi_k) by a multinomial q_k(y), y = 1..k; the
accurate evaluation here matches a gamma law to -log pi_k.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, digamma, gammaincinv, logsumexp, polygamma

from nongauss.harmonium.units import Array

POINTS = 48
"""Gauss-Legendre nodes on the quantiles of the gamma law."""

SWEEPS = 30
"""Most updates of gamma; they stop earlier when gamma no longer moves."""


def expected_log_pi(gamma: Array) -> Array:
    """tau2_k = E log pi_k, (K,)."""
    return np.cumsum(digamma(gamma[:, 0]) - digamma(gamma.sum(axis=1)))


def multinomial(gamma: Array) -> tuple[Array, Array]:
    """The bound of E log(1 - pi_k), (K,), and the q_k(y) that reaches it, (K, K), lower triangular."""
    by_stick, total = digamma(gamma), digamma(gamma.sum(axis=1))
    before = np.concatenate([[0.0], np.cumsum(by_stick[:-1, 0])])
    score = by_stick[:, 1] + before - np.cumsum(total)
    scores = np.where(np.tri(len(gamma), dtype=bool), score[None, :], -np.inf)
    bound = logsumexp(scores, axis=1)
    return bound, np.exp(scores - bound[:, None])


def expected_log_rest(gamma: Array) -> Array:
    """E log(1 - pi_k), (K,), within .001 of its value, by a gamma law for -log pi_k."""
    first, second = polygamma(1, gamma[:, 0]), polygamma(1, gamma.sum(axis=1))
    mean, variance = -expected_log_pi(gamma), np.cumsum(first - second)
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    level = 0.5 * (nodes + 1.0)
    y = gammaincinv((mean * mean / variance)[:, None], level) * (variance / mean)[:, None]
    return np.log(-np.expm1(-np.maximum(y, 1e-300))) @ (0.5 * weights)


def update(on: Array, n_rows: float, alpha: float) -> Array:
    """gamma (K, 2) that maximises the bound, given how many rows `on` (K,) have each feature.

    Coordinate ascent with the multinomial (NOTATION.md has the equations).
    """
    off = n_rows - on
    gamma = np.stack([alpha + on, 1.0 + off], axis=1)
    for _ in range(SWEEPS):
        _, q = multinomial(gamma)
        after = np.cumsum(q[:, ::-1], axis=1)[:, ::-1] - q
        first = alpha + np.cumsum(on[::-1])[::-1] + (np.tril(after, -1) * off[:, None]).sum(axis=0)
        new = np.stack([first, 1.0 + off @ q], axis=1)
        moved = float(np.abs(new / gamma - 1.0).max())
        gamma = new
        if moved < 1e-6:
            break
    return gamma


def bound(gamma: Array, on: Array, n_rows: float, alpha: float) -> float:
    """What `update` maximises: E log p(z, v) - E log q(v) with the multinomial bound, nats."""
    rest, _ = multinomial(gamma)
    log_v = digamma(gamma[:, 0]) - digamma(gamma.sum(axis=1))
    log_w = digamma(gamma[:, 1]) - digamma(gamma.sum(axis=1))
    prior = len(gamma) * np.log(alpha) + (alpha - 1.0) * log_v.sum()
    own = ((gamma[:, 0] - 1) * log_v + (gamma[:, 1] - 1) * log_w - betaln(*gamma.T)).sum()
    return float(on @ expected_log_pi(gamma) + (n_rows - on) @ rest + prior - own)


def log_odds(on: Array, n_rows: float, alpha: float, accurate: bool = True) -> tuple[Array, Array]:
    """(E log pi - E log(1 - pi) (K,), gamma (K, 2)). Features must be in order, the most used first."""
    gamma = update(on, n_rows, alpha)
    rest = expected_log_rest(gamma) if accurate else multinomial(gamma)[0]
    return expected_log_pi(gamma) - rest, gamma

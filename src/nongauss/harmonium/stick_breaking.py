"""The stick-breaking Indian buffet process, truncated: v_k ~ Beta(alpha, 1), pi_k = v_1 ... v_k.

q(v_k) = Beta(gamma_k1, gamma_k2). Doshi-Velez, Miller, Van Gael and Teh (AISTATS 2009) bound
E log(1 - pi_k) by a multinomial q_k(y), y = 1..k; the accurate evaluation here sums the series of the
logarithm.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, digamma

from nongauss.harmonium.exponential_families import Array

TERMS, POINTS, FARTHEST = 32, 64, 1e7
"""Terms of the series that are summed, Gauss-Legendre nodes for the rest, and where that ends."""

NODES = np.polynomial.legendre.leggauss(POINTS)

SWEEPS = 30
"""Most updates of gamma; they stop earlier when gamma no longer moves."""


def expected_log_pi(gamma: Array) -> Array:
    """tau2_k = E log pi_k = sum_{m<=k} [digamma(g_m1) - digamma(g_m1 + g_m2)], (K,)."""
    return np.cumsum(digamma(gamma[:, 0]) - digamma(gamma.sum(axis=1)))


def multinomial_bound(gamma: Array) -> tuple[Array, Array]:
    """The bound of E log(1 - pi_k), (K,), and the q_k(y) that reaches it, (K, K), lower triangular.

    q_k(y) is proportional to exp(digamma(g_y2) + sum_{m<y} digamma(g_m1) - sum_{m<=y} digamma(g_m1 + g_m2)),
    and the bound is the log of the sum of these.
    """
    by_stick, both = digamma(gamma), digamma(gamma.sum(axis=1))
    before = np.concatenate([[0.0], np.cumsum(by_stick[:-1, 0])])
    score = by_stick[:, 1] + before - np.cumsum(both)
    scores = np.where(np.tri(len(gamma), dtype=bool), score[None, :], -np.inf)
    most = scores.max(axis=1)
    q = np.exp(scores - most[:, None])
    total = q.sum(axis=1)
    return most + np.log(total), q / total[:, None]


def expected_log_rest(gamma: Array) -> Array:
    """E log(1 - pi_k) = -sum_m E[pi_k^m] / m, (K,), within 1e-4; E[pi_k^m] is a product of beta moments.

    The first terms are summed, the rest is an integral over log m, where the moments are smooth.
    """
    nodes, weights = NODES
    low, high = np.log(TERMS + 0.5), np.log(FARTHEST * (1.0 + gamma[:, 0].max()))
    half = 0.5 * (high - low)
    m = np.concatenate([np.arange(1.0, TERMS + 1), np.exp(low + half * (nodes + 1.0))])
    share = np.concatenate([1.0 / m[:TERMS], half * weights])
    a, b = gamma[:, :1], gamma[:, 1:]
    log_moment = np.cumsum(betaln(a + m, b) - betaln(a, b), axis=0)
    out: Array = -np.exp(log_moment) @ share
    return out


def update_sticks(on: Array, n_rows: float, alpha: float) -> Array:
    """gamma (K, 2) that maximises the bound, given how many rows `on` (K,) have each feature.

    Coordinate ascent with the multinomial (NOTATION.md has the equations).
    """
    off = n_rows - on
    gamma = np.stack([alpha + on, 1.0 + off], axis=1)
    for _ in range(SWEEPS):
        _, q = multinomial_bound(gamma)
        after = np.cumsum(q[:, ::-1], axis=1)[:, ::-1] - q
        first = alpha + np.cumsum(on[::-1])[::-1] + (np.tril(after, -1) * off[:, None]).sum(axis=0)
        new = np.stack([first, 1.0 + off @ q], axis=1)
        moved = float(np.abs(new / gamma - 1.0).max())
        gamma = new
        if moved < 1e-6:
            break
    return gamma


def stick_bound(gamma: Array, on: Array, n_rows: float, alpha: float) -> float:
    """What `update_sticks` maximises: E log p(z, v) - E log q(v) with the multinomial bound, nats.

    No fit computes it: it is the specification that tests compare `update_sticks` with.
    """
    rest, _ = multinomial_bound(gamma)
    log_v = digamma(gamma[:, 0]) - digamma(gamma.sum(axis=1))
    log_w = digamma(gamma[:, 1]) - digamma(gamma.sum(axis=1))
    prior = len(gamma) * np.log(alpha) + (alpha - 1.0) * log_v.sum()
    own = ((gamma[:, 0] - 1) * log_v + (gamma[:, 1] - 1) * log_w - betaln(*gamma.T)).sum()
    return float(on @ expected_log_pi(gamma) + (n_rows - on) @ rest + prior - own)


def stick_log_odds(on: Array, n_rows: float, alpha: float, accurate: bool = True) -> tuple[Array, Array]:
    """(E log pi - E log(1 - pi) (K,), gamma (K, 2)). Features must be in order, the most used first."""
    gamma = update_sticks(on, n_rows, alpha)
    rest = expected_log_rest(gamma) if accurate else multinomial_bound(gamma)[0]
    return expected_log_pi(gamma) - rest, gamma

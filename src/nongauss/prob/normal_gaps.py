"""The normal law of rows with gaps: its mean and covariance, and what gaps are given the known cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from nongauss.core.records import persistable

FloatArray = NDArray[np.float64]

LEAST_VARIANCE = 1e-3
"""A ridge: what is added to variances in each round."""
ROWS = 1000
"""Rows that are worked on at once."""
N_DRAWS, N_BURN = 20, 4
"""Draws of mean and covariance from their posterior, and those before that are dropped."""


@persistable("prob.NormalLaw")
class NormalLaw(NamedTuple):
    """The normal law of rows of P numbers: mean (P,), covariance (P, P), and S draws of both.

    The draws are from their posterior given rows with gaps.
    """

    mean: Float[np.ndarray, " P"]
    covariance: Float[np.ndarray, "P P"]
    means: Float[np.ndarray, "S P"]
    covariances: Float[np.ndarray, "S P P"]

    def drawn(self, number: int) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance by a draw; after the last comes the first."""
        s = number % len(self.means)
        return self.means[s].astype(np.float64), self.covariances[s].astype(np.float64)


def as_rows(weight: FloatArray) -> FloatArray:
    """Weights (N,) by which as many rows count as there are, at least: a sum below N is taken for N."""
    return weight * max(1.0, len(weight) / max(float(weight.sum()), 1e-300))


def learn_law(w: FloatArray, weight: FloatArray, n_rounds: int, seed: int) -> NormalLaw:
    """The normal law of rows w (N, P), NaN where missing, of weights (N,): by EM, and by draws from there.

    A draw fills the gaps given mean and covariance, and draws these given the full rows (Schafer 1997,
    section 5.4): the covariance from the inverse Wishart law. Weights are taken `as_rows`.
    """
    known = ~np.isnan(w)
    w, P = np.where(known, w, 0.0), w.shape[1]
    weight = as_rows(weight)
    level = (weight @ w) / np.maximum(weight @ known, 1e-12)
    mean, C = covariance_of_gaps(w, known, weight, level, n_rounds)
    rng, n = np.random.default_rng(seed), float(weight.sum())
    degrees = max(n - 1.0, 2.0 * P + 2.0)
    level, now, draws = mean, C, []
    for _ in range(N_BURN + N_DRAWS):
        full = level + drawn_given_known(rng.standard_normal(w.shape), w, known, level, now)
        middle = weight @ full / n
        square = (full - middle).T @ (weight[:, None] * (full - middle)) + n * LEAST_VARIANCE * np.eye(P)
        now = _inverse_wishart(rng, square, degrees)
        level = middle + np.linalg.cholesky(now) @ rng.standard_normal(P) / np.sqrt(n)
        draws.append((level.astype(np.float32), now.astype(np.float32)))
    means, covariances = (np.stack(part) for part in zip(*draws[N_BURN:], strict=True))
    return NormalLaw(mean, C, means, covariances)


class ToldByLaw(NamedTuple):
    """Conditional laws of rows (N, P) given their known cells: mean and sd, and S joint draws (S, N, P)."""

    mean: FloatArray
    sd: FloatArray
    drawn: FloatArray


def told_by_law(
    law: NormalLaw, w: FloatArray, normal: Sequence[FloatArray], mass: FloatArray | None = None
) -> ToldByLaw:
    """What a law says of rows w (N, P), NaN where missing; a draw for each of `normal`, each (N, P).

    Conditional laws are wider than with a covariance that is known where `mass` (P,), how many cells told it,
    is given: by ((n + p) / (n - p))^1/2, as a regression on p numbers by n cells leaves n / (n - p) too
    little, and has p / n as its own errors.
    """
    mean, sd, drawn = np.empty_like(w), np.empty_like(w), np.empty((len(normal), *w.shape))
    for first in range(0, len(w), ROWS):
        own = slice(first, first + ROWS)
        known = ~np.isnan(w[own])
        rows = np.where(known, w[own], 0.0)
        left, V = given_known(rows, known, law.mean, law.covariance)
        mean[own] = law.mean + left
        sd[own] = np.sqrt(np.maximum(np.einsum("npp->np", V), LEAST_VARIANCE))
        if mass is not None:
            p = np.minimum(known.sum(axis=1)[:, None], 0.5 * mass)
            sd[own] *= np.sqrt((mass + p) / (mass - p))
        for s, noise in enumerate(normal):
            level, C = law.drawn(s)
            drawn[s, own] = level + drawn_given_known(noise[own], rows, known, level, C)
    return ToldByLaw(mean, sd, drawn)


def drawn_given_known(
    normal: FloatArray, w: FloatArray, known: NDArray[np.bool_], level: FloatArray, C: FloatArray
) -> FloatArray:
    """Rows (N, P) less their level, gaps drawn given the known cells by standard normal numbers (N, P)."""
    left, V = given_known(w, known, level, C)
    root = np.linalg.cholesky(V + 1e-9 * np.eye(w.shape[1]))
    return left + np.where(known, 0.0, np.einsum("npq,nq->np", root, normal))


def _inverse_wishart(rng: np.random.Generator, square: FloatArray, degrees: float) -> FloatArray:
    """A draw of the inverse Wishart law, by Bartlett's triangle B: L (B B')^-1 L' with L L' = `square`."""
    P = len(square)
    B = np.tril(rng.standard_normal((P, P)), -1)
    B[np.arange(P), np.arange(P)] = np.sqrt(rng.chisquare(degrees - np.arange(P)))
    turned = np.linalg.solve(B, np.linalg.cholesky(square).T)
    found: FloatArray = turned.T @ turned
    return found


def covariance_of_gaps(
    w: FloatArray,
    known: NDArray[np.bool_],
    weight: FloatArray,
    level: FloatArray,
    n_rounds: int,
    C: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Mean (P,) and covariance (P, P) of rows w (N, P) with gaps, by EM for the normal law.

    From `level` and C (P, P), the identity by default; weights (N,) say how often a row counts.
    """
    P = w.shape[1]
    C, share = np.eye(P) if C is None else C, weight / weight.sum()
    for _ in range(n_rounds):
        left, V = given_known(w, known, level, C)
        moved = share @ left
        C = (left - moved).T @ (share[:, None] * (left - moved)) + np.tensordot(share, V, 1)
        C[np.arange(P), np.arange(P)] += LEAST_VARIANCE
        level = level + moved
    return level, C


def given_known(
    w: FloatArray, known: NDArray[np.bool_], level: FloatArray, C: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rows (N, P) less their level, the lost cells expected given the known; their covariance (N, P, P).

    The lost ones have the covariance Q_mm^-1 and the mean mu_m - Q_mm^-1 Q_mk (w_k - mu_k), Q = C^-1 (Little
    and Rubin 2002, section 11.2).
    """
    P, lost, Q = w.shape[1], ~known, np.linalg.inv(C)
    block = Q * lost[:, :, None] * lost[:, None, :]
    block[:, np.arange(P), np.arange(P)] += known
    V = np.linalg.inv(block) * lost[:, :, None] * lost[:, None, :]
    left = np.where(known, w - level, 0.0)
    left -= np.einsum("npq,nq->np", V, (left @ Q) * lost)
    return left, V

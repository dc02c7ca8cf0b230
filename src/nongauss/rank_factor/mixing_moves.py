r"""Moves along which chains of ranks are slow, by slice sampling of one number each (Neal 2003).

A column's loadings times e^t, and those of all columns, by the hinges themselves: given their latent
variances loadings hardly move. And moves that leave every score a'z as it is and change the priors alone,
factors keeping mean square 1:

    scale:  z_k / c, c A_k      shear:  z_k - t z_l, A_l + t A_k

each followed by z / f, f A that brings the square back; slopes of the classifier go as loadings do. The
variances of loadings go along with c and f as in `Gibbs.rescale`. On the sphere |z|^2 = d = N K a linear map
T of z has the volume det T / |T z / z|^d.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from nongauss.rank_factor.config import RankConfig
from nongauss.rank_factor.data import FloatArray, RankRows
from nongauss.rank_factor.params import Experts, NeighbourScores, Shrinkage, point
from nongauss.rank_factor.rank_likelihood import hinges

MOST_STEPS, MOST_SHRINKS = 8, 40
"""Steps by which an interval grows, and by which it shrinks; then a number stays where it is."""


class FactorMix(NamedTuple):
    """What the moves of factors change: A (D, K), z (N, K), shrinkage, slopes (M, K) and their precision."""

    A: FloatArray
    z: FloatArray
    shrink: Shrinkage
    slopes: FloatArray
    own: FloatArray


def scaled_columns(
    rng: np.random.Generator,
    A: FloatArray,
    z: FloatArray,
    rows: RankRows,
    scale: NeighbourScores,
    precision: FloatArray,
    eps: float,
) -> FloatArray:
    """Loadings (D, K) with each column's times e^t, given factors, prior precision (D, K), levels' scores.

    Scores of levels are those of their mean factors and go along. The density of t has the volume e^(K t).
    """
    loss_of = _loss_by_size(A, z, rows, scale, eps)
    square = 0.5 * (precision * A * A).sum(axis=1)
    K = A.shape[1]

    def log_density(t: FloatArray) -> FloatArray:
        """Of each column at its t: (D,)."""
        c = np.exp(t)
        found: FloatArray = K * t - 2.0 * loss_of(c) - square * c * c
        return found

    return A * np.exp(slice_draws(rng, log_density, len(A)))[:, None]


def _loss_by_size(
    A: FloatArray, z: FloatArray, rows: RankRows, scale: NeighbourScores, eps: float
) -> Callable[[FloatArray], FloatArray]:
    """The sum of each column's hinges (D,) as a function of what its loadings are multiplied by, (D,)."""
    assert rows.cells is not None
    at = hinges(z @ A.T, scale.lower, scale.upper, rows.cells, 0.0)
    apart = np.concatenate([-u for u, _ in at.sides])
    has = np.concatenate([has for _, has in at.sides])

    def loss_of(c: FloatArray) -> FloatArray:
        loss: FloatArray = np.where(has, np.maximum(eps - c * apart, 0.0), 0.0).sum(axis=0)
        return loss

    return loss_of


def scaled_hierarchy(
    rng: np.random.Generator,
    A: FloatArray,
    z: FloatArray,
    rows: RankRows,
    scale: NeighbourScores,
    shrink: Shrinkage,
    config: RankConfig,
) -> tuple[FloatArray, Shrinkage]:
    """Each column's loadings times e^t, their variances going along, by its hinges and the prior of these.

    Given its variances a column that is nearly a factor keeps its size. Without rates variances xi
    have densities xi^(r - 1) (1 + xi / phi)^-(r + s), and the volume is e^(3 K t), the normals' e^(-K t).
    """
    loss_of = _loss_by_size(A, z, rows, scale, config.eps)
    r, s = config.prior.r, config.prior.s
    square, ratio = 0.5 * config.prior.slab * (A**2).sum(axis=1), 1.0 / (shrink.precision * shrink.scale)

    def log_density(t: FloatArray) -> FloatArray:
        """Of each column at its t: (D,)."""
        c = np.exp(t)
        spread = (r + s) * np.log1p(ratio * (c * c)[:, None]).sum(axis=1)
        found: FloatArray = 2.0 * r * A.shape[1] * t - spread - square * c * c - 2.0 * loss_of(c)
        return found

    c = np.exp(slice_draws(rng, log_density, len(A)))[:, None]
    return A * c, shrink._replace(precision=shrink.precision / c**2, rate=shrink.rate / c**2)


def scaled_loadings(
    rng: np.random.Generator,
    A: FloatArray,
    z: FloatArray,
    rows: RankRows,
    scale: NeighbourScores,
    shrink: Shrinkage,
    config: RankConfig,
) -> tuple[FloatArray, Shrinkage]:
    """All loadings times e^t by the hinges, their variances going along; factors stand still.

    Of volume and priors e^t a factor is left, as of the slopes of a classifier (`machine_moves`). Given their
    variances, of which there are as many, the common scale of the loadings of many columns hardly moves.
    """
    assert rows.cells is not None
    sides = hinges(z @ A.T, scale.lower, scale.upper, rows.cells, 0.0).sides
    apart = np.concatenate([-u[has] for u, has in sides])
    held = float(0.5 * config.prior.slab * (A**2).sum() + shrink.hyper * shrink.scale.sum())

    def log_density(t: float) -> float:
        """At t."""
        loss = float(np.maximum(config.eps - math.exp(t) * apart, 0.0).sum())
        found: float = A.shape[1] * t - held * math.exp(2.0 * t) - 2.0 * loss
        return found

    t = _slice(rng, log_density, 2.0 / math.sqrt(A.size))
    c2 = math.exp(2.0 * t)
    moved = Shrinkage(shrink.precision / c2, shrink.rate / c2, shrink.scale * c2, shrink.hyper)
    return A * math.exp(t), moved


def slice_draws(
    rng: np.random.Generator, log_density: Callable[[FloatArray], FloatArray], n: int, width: float = 1.0
) -> FloatArray:
    """A slice draw from 0 of each of n numbers, stepping out by `width`: (n,)."""
    t = np.zeros(n)
    height = log_density(t) + np.log(rng.random(n))
    low = -width * rng.random(n)
    high = low + width
    for _ in range(MOST_STEPS):
        below, above = log_density(low) > height, log_density(high) > height
        low, high = np.where(below, low - width, low), np.where(above, high + width, high)
        if not (below.any() or above.any()):
            break
    searching = np.ones(n, dtype=bool)
    for _ in range(MOST_SHRINKS):
        x = rng.uniform(low, high)
        found = searching & (log_density(x) > height)
        t[found] = x[found]
        searching &= ~found
        if not searching.any():
            break
        low, high = np.where(x < 0.0, x, low), np.where(x < 0.0, high, x)
    return t


def mixed_factors(rng: np.random.Generator, now: FactorMix, slab: float) -> FactorMix:
    """The scale of every factor, then a shear of each by another at random."""
    n_rows, K = now.z.shape
    if K == 1:
        return now
    for k in range(K):
        t = _slice(rng, partial(scale_density, now, k, slab), 2.0 / math.sqrt(n_rows))
        now = scaled(now, k, t)
    for one in range(K):
        other = int(rng.integers(K - 1))
        other += other >= one
        held = n_rows + float(now.shrink.precision[:, one] @ now.A[:, other] ** 2)
        t = _slice(rng, shear_density(now, one, other, slab), 2.0 / math.sqrt(held))
        now = sheared(now, one, other, t)
    return now


def _slice(rng: np.random.Generator, log_density: Callable[[float], float], width: float) -> float:
    """A slice draw of one number from 0."""
    return float(slice_draws(rng, lambda t: np.array([log_density(float(t[0]))]), 1, width)[0])


def _held(now: FactorMix, slab: float) -> FloatArray:
    """What holds the scale of each factor's loadings and slopes: (K,)."""
    own: FloatArray = slab * (now.A**2).sum(axis=0) + 2.0 * now.shrink.hyper * now.shrink.scale
    own += (now.own * now.slopes**2).sum(axis=0)
    return own


def _volume(now: FactorMix) -> float:
    """Power of f^-2 in both densities: d / 2 less the half numbers that f A moves without their variances."""
    n_rows, K = now.z.shape
    return 0.5 * float(n_rows * K - K - len(now.slopes) * K)


def scale_density(now: FactorMix, k: int, slab: float, t: float) -> float:
    """Log density of the factor's scale c = e^t, up to a constant."""
    square = (now.z**2).sum(axis=0) / now.z.size
    held, c2 = _held(now, slab), math.exp(2.0 * t)
    f2 = float(square.sum() - square[k] + square[k] / c2)
    own = float(held.sum() - held[k]) + float(held[k]) * c2
    n = 1 + len(now.slopes) - len(now.z)
    found: float = n * t - _volume(now) * math.log(f2) - 0.5 * f2 * own
    return found


def scaled(now: FactorMix, k: int, t: float) -> FactorMix:
    """The move of a factor's scale by c = e^t."""
    c = np.ones(now.z.shape[1])
    c[k] = math.exp(t)
    return _of_square_one(_times(now._replace(z=now.z / c), c))


def shear_density(now: FactorMix, one: int, other: int, slab: float) -> Callable[[float], float]:
    """Log density of t in z_other - t z_one, A_one + t A_other, up to a constant."""
    A, z, own = now.A, now.z, now.own
    precision = now.shrink.precision[:, one]
    tilt, bend = float(precision @ (A[:, one] * A[:, other])), float(precision @ A[:, other] ** 2)
    f = [
        float((z**2).mean()),
        float(z[:, other] @ z[:, one]) / z.size,
        float((z[:, one] ** 2).sum()) / z.size,
    ]
    b, c, p = now.slopes[:, one], now.slopes[:, other], own[:, one]
    held = [
        float(_held(now, slab).sum()),
        float(slab * A[:, one] @ A[:, other] + (p * b) @ c),
        float(slab * (A[:, other] ** 2).sum() + p @ c**2),
    ]
    power = _volume(now)

    def log_density(t: float) -> float:
        """At t."""
        f2 = f[0] - 2.0 * t * f[1] + t * t * f[2]
        kept = held[0] + 2.0 * t * held[1] + t * t * held[2]
        return -power * math.log(f2) - t * tilt - 0.5 * t * t * bend - 0.5 * f2 * kept

    return log_density


def sheared(now: FactorMix, one: int, other: int, t: float) -> FactorMix:
    """The move of one factor's loadings by another's."""
    A, z, slopes = now.A.copy(), now.z.copy(), now.slopes.copy()
    z[:, other] -= t * z[:, one]
    A[:, one] += t * A[:, other]
    slopes[:, one] += t * slopes[:, other]
    return _of_square_one(now._replace(A=A, z=z, slopes=slopes))


def _of_square_one(now: FactorMix) -> FactorMix:
    """The same scores with factors of mean square 1."""
    f = np.sqrt((now.z**2).mean())
    return _times(now._replace(z=now.z / f), np.full(now.z.shape[1], f))


def _times(now: FactorMix, c: FloatArray) -> FactorMix:
    """Loadings, their variances and slopes on scales c (K,)."""
    old, c2 = now.shrink, c * c
    shrink = Shrinkage(old.precision / c2, old.rate / c2, old.scale * c2, old.hyper)
    return now._replace(A=now.A * c, shrink=shrink, slopes=now.slopes * c)


def mixed_state(
    rng: np.random.Generator,
    A: FloatArray,
    z: FloatArray,
    shrink: Shrinkage,
    experts: Experts,
    slab: float,
) -> tuple[FloatArray, FloatArray, Shrinkage, Experts]:
    """`mixed_factors` of loadings, factors and the classifier of one expert."""
    beta = experts.beta.mean
    K = z.shape[1]
    slopes = beta[..., :-1].reshape(-1, K)
    own = experts.shrink.precision.T.reshape(-1, K) if len(slopes) else np.zeros((0, K))
    moved = mixed_factors(rng, FactorMix(A, z, shrink, slopes, own), slab)
    moved_beta = np.concatenate([moved.slopes.reshape(*beta.shape[:2], K), beta[..., -1:]], axis=-1)
    return moved.A, moved.z, moved.shrink, experts._replace(beta=point(moved_beta))

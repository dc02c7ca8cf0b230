"""What is maximised: how well soft rectangles hold their own rows and no others, plus how alike these look.

The specification of the family; NOTATION.md has the equations and the axes (Q is 2 D + L, all parameters of
a rectangle). On which side of a bound a row lies is a logistic function of slope a. All starts and clusters
are computed at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from nongauss.rectangle.data import FloatArray, RectangleRows
from nongauss.rectangle.params import REACH, BoxPrior, RectangleParams, SoftBoxes
from nongauss.rectangle.structure import log_density, log_prior

LEAST = 1e-8
"""A row is inside with probability 1 - LEAST at most; one without any rule cell is so everywhere."""

_BLOCK = 2**17  # numbers handled at once: small enough for the cache


class SlopePowers(NamedTuple):
    """What evaluations at one slope a share: `exp_x` (D, N, 3) of each cell present, e^{-ax} and e^{ax}.

    `farthest` is the greatest |x|; `levels` (N, L) and `weight` (N,) are those of the rows.
    """

    slope: float
    farthest: float
    exp_x: FloatArray
    levels: FloatArray
    weight: FloatArray


class EMProblem(NamedTuple):
    """What does not change while EM runs: rows, their powers, the boxes' prior, the kind of structure."""

    rows: RectangleRows
    powers: SlopePowers
    prior: BoxPrior
    kind: str


def slope_powers(rows: RectangleRows, slope: float) -> SlopePowers:
    """The powers of some rows. A missing cell has only zeros: it costs nothing."""
    present = ~np.isnan(rows.X)
    held = np.clip(np.where(present, rows.X, 0.0), -REACH, REACH)
    exponent = slope * held
    exp_x = np.stack([present, present * np.exp(-exponent), present * np.exp(exponent)], axis=-1)
    exp_x = np.ascontiguousarray(exp_x.transpose(1, 0, 2))
    return SlopePowers(slope, float(np.abs(held).max(initial=0.0)), exp_x, rows.X_levels, rows.weight)


def log_inside(powers: SlopePowers, boxes: SoftBoxes) -> Float[np.ndarray, "S K N"]:
    """log G: log probability of being inside each rectangle, at most -LEAST."""
    shape = (*boxes.lower.shape[:2], powers.exp_x.shape[1])
    out = np.empty((shape[0] * shape[1], shape[2]))
    factors, sets = _factors(powers, boxes)
    for part in _parts(powers, len(out)):
        out[:, part] = -_sides_and_minus_log_G(powers, factors, sets, part)[1]
    return out.reshape(shape)


def expected(
    powers: SlopePowers, boxes: SoftBoxes, share: Float[np.ndarray, "S K N"], prior: BoxPrior
) -> tuple[Float[np.ndarray, "S K"], Float[np.ndarray, "S K Q"]]:
    """Expected log joint density of boxes and constraints, eq. 7, and its gradient, eqs. 8 and 9.

    Q_k = sum_n w_n [r_nk log G_nk + (1 - r_nk) log(1 - G_nk)] + log p(t_k), r being `share`, the
    probabilities of the clusters. The last axis of the gradient is that of `SoftBoxes.flat`.
    """
    S, K, D = boxes.lower.shape
    a, n_boxes, N = powers.slope, S * K, powers.exp_x.shape[1]
    shares = share.reshape(n_boxes, N)
    value, sums = np.zeros(n_boxes), np.zeros((D, n_boxes, 3))
    by_sets = np.zeros((n_boxes, boxes.sets.shape[-1]))
    factors, sets = _factors(powers, boxes)
    for part in _parts(powers, n_boxes):
        sides, minus_log_G = _sides_and_minus_log_G(powers, factors, sets, part)
        own, w = shares[:, part], powers.weight[part]
        one_minus_G = -np.expm1(-minus_log_G)
        value += (own * -minus_log_G + (1.0 - own) * np.log(one_minus_G)) @ w
        by_log_G = (own - np.exp(-minus_log_G)) / one_minus_G * w  # dQ/dlogG = w (r - G) / (1 - G)
        by_log_G[minus_log_G <= LEAST] = 0.0
        np.divide(by_log_G, sides, out=sides)
        sums += sides @ powers.exp_x[:, part]
        by_sets += by_log_G @ powers.levels[part]
    # dlogG/dt- = -a (e^{a(t- - t+)} + e^{a t- - ax}) / sides
    # dlogG/dt+ =  a (e^{a(t- - t+)} + e^{ax - a t+}) / sides
    # dlogG/ds  =  a (1 - g(s)) for the row's levels
    both, low, high = (
        factors[..., 0] * sums[..., 0],
        factors[..., 1] * sums[..., 1],
        factors[..., 2] * sums[..., 2],
    )
    by_bounds = [(-a * (both + low)).T, (a * (both + high)).T]
    gradient = np.concatenate([*by_bounds, a * by_sets * (-np.expm1(-sets))], axis=1).reshape(S, K, -1)
    more, by_prior = log_box_prior(boxes, prior)
    return value.reshape(S, K) + more, gradient + by_prior


def log_box_prior(
    boxes: SoftBoxes, prior: BoxPrior
) -> tuple[Float[np.ndarray, "S K"], Float[np.ndarray, "S K Q"]]:
    """Log prior of the boxes up to a constant, and its gradient.

    -1/2 sum alpha (t - mu)^2 - 1/2 sum beta (t+ - t-)^2, over all bounds and widths. The last axis of
    the gradient is that of `SoftBoxes.flat`.
    """
    D = boxes.lower.shape[-1]
    flat = boxes.flat()
    off = prior.precision * (flat - prior.centre)
    width = prior.width_precision * (boxes.upper - boxes.lower)
    value = -0.5 * (off * (flat - prior.centre)).sum(axis=-1)
    value -= 0.5 * (width * (boxes.upper - boxes.lower)).sum(axis=-1)
    gradient = -off
    gradient[..., :D] += width
    gradient[..., D : 2 * D] -= width
    return value, gradient


def posterior(
    log_G: Float[np.ndarray, "S K N"], log_p: Float[np.ndarray, "S K N"]
) -> Float[np.ndarray, "S K N"]:
    """E-step, eq. 4: p(z_n = k) = softmax over k of logit G_nk + log p(y_n | k)."""
    score = log_odds(log_G) + log_p
    score -= score.max(axis=1, keepdims=True)
    share: FloatArray = np.exp(score)
    share /= share.sum(axis=1, keepdims=True)
    return share


def log_odds(log_G: Float[np.ndarray, "S K N"]) -> Float[np.ndarray, "S K N"]:
    """log G - log(1 - G)."""
    odds: FloatArray = log_G - np.log(-np.expm1(log_G))
    return odds


def log_joint(
    log_G: Float[np.ndarray, "S K N"], log_p: Float[np.ndarray, "S K N"], weight: Float[np.ndarray, " N"]
) -> Float[np.ndarray, " S"]:
    """Log density of structure and constraints with the clusters summed out, eq. 1 without priors.

    sum_n w_n [ sum_k log(1 - G_nk) + log sum_k (1/K) p(y_n | k) G_nk / (1 - G_nk) ].
    """
    log_all_outside = np.log(-np.expm1(log_G)).sum(axis=1)
    K = log_G.shape[1]
    joint: FloatArray = (log_all_outside + logsumexp(log_odds(log_G) + log_p, axis=1) - np.log(K)) @ weight
    return joint


def objective(problem: EMProblem, params: RectangleParams) -> Float[np.ndarray, " S"]:
    """What the iterations raise, eq. 1 with the log priors of boxes and structure."""
    log_G = log_inside(problem.powers, params.boxes)
    log_p = log_density(problem.rows, params.structure, problem.kind)[0]
    return penalised(problem, params, log_G, log_p)


def penalised(
    problem: EMProblem,
    params: RectangleParams,
    log_G: Float[np.ndarray, "S K N"],
    log_p: Float[np.ndarray, "S K N"],
) -> Float[np.ndarray, " S"]:
    """The objective from its parts: log p(T, Y, Phi) = log p(Phi, Y | T, theta) + log p(T) + log p(theta)."""
    value = log_joint(log_G, log_p, problem.rows.weight)
    value += log_box_prior(params.boxes, problem.prior)[0].sum(axis=1)
    return value + log_prior(params.structure, problem.kind)


def _factors(powers: SlopePowers, boxes: SoftBoxes) -> tuple[FloatArray, FloatArray]:
    """e^{a(lower - upper)}, e^{a lower}, e^{-a upper} as (D, S K, 3), and minus log g of levels (S K, L)."""
    a, n_boxes = powers.slope, boxes.lower.shape[0] * boxes.lower.shape[1]
    lower, upper, sets = (part.reshape(n_boxes, part.shape[-1]) for part in boxes)
    factors = np.exp(a * np.stack([lower - upper, lower, -upper], axis=-1))
    return factors.transpose(1, 0, 2).copy(), np.logaddexp(0.0, -a * sets)


def _sides_and_minus_log_G(
    powers: SlopePowers, factors: FloatArray, sets: FloatArray, part: slice
) -> tuple[FloatArray, FloatArray]:
    """(1+e^-A)(1+e^-B) for each column (D, S K, n), and minus log G, at least LEAST (S K, n).

    A = a (x - t-) and B = a (t+ - x) are the depths inside the two bounds.
    Logarithms cost most of it, so as many columns as cannot overflow are multiplied first. The logarithm of
    one plus a little is exact to 1e-16, far below LEAST.
    """
    # sides = (1+e^-A)(1+e^-B) = 1 + e^{a(t- - t+)} + e^{a t-} e^{-ax} + e^{-a t+} e^{ax}
    # log G = -sum_d log sides - sum_l log(1+e^{-a s_l}), l over the row's levels
    sides = factors @ powers.exp_x[:, part].transpose(0, 2, 1)
    sides += 1.0
    total = sets @ powers.levels[part].T
    if len(sides):
        groups = np.arange(0, len(sides), _columns_at_once(powers, factors))
        total += np.log(np.multiply.reduceat(sides, groups, axis=0)).sum(axis=0)
    return sides, np.maximum(total, LEAST)


def _columns_at_once(powers: SlopePowers, factors: FloatArray) -> int:
    """How many columns' sides can be multiplied below e^700: each is at most 4 e^{2 a max(|x|, |t|)}."""
    bounds = float(np.abs(np.log(factors[..., 1:])).max())
    return max(1, int(700.0 / (2.0 * max(powers.slope * powers.farthest, bounds) + 2.0)))


def _parts(powers: SlopePowers, n_boxes: int) -> list[slice]:
    """Slices of the rows whose temporary arrays stay small."""
    D, N, _ = powers.exp_x.shape
    step = max(64, _BLOCK // (max(D, 1) * n_boxes))
    return [slice(start, start + step) for start in range(0, N, step)]

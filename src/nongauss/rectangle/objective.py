"""What is maximised: how well soft rectangles hold their own rows and no others, plus how alike these look.

The specification of the family; NOTATION.md has the equations and the axes (Q is 2 D + L, all parameters of
a rectangle). On which side of a bound a row lies is a logistic function of slope a. All starts and clusters
are computed at once. What clusters look like is Student's t or a Gaussian for the numbers, and one
distribution over levels for each label column; missing cells are integrated out. Priors are part of it, an
inverse Wishart for the scatter and a Dirichlet for the levels, so that no cluster collapses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg.lapack import dtrtri
from scipy.special import gammaln, logsumexp

from nongauss.rectangle.config import LIKELIHOOD
from nongauss.rectangle.data import FloatArray, RectangleRows
from nongauss.rectangle.gaps import AT_ONCE, dot_each, each_row, of_seen, row_blocks
from nongauss.rectangle.params import REACH, BoxPrior, ClusterStructure, RectangleParams, SoftBoxes

LEAST = 1e-8
"""A row is inside with probability 1 - LEAST at most; one without any rule cell is so everywhere."""

_BLOCK = 2**17  # numbers handled at once: small enough for the cache

FREEDOM = 4.0
"""Degrees of freedom of Student's t."""

LEAST_VARIANCE = 1e-5
"""Least variance, in variances of a column, of Gaussians of maximum likelihood: that is unbounded without."""

ALL_AT_ONCE = 64
"""Columns up to which the factors of all clusters are inverted in one call."""

LEVEL_COUNT = 0.5
"""Rows that the prior adds to each level of a label column."""


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
    total: Float[np.ndarray, " S"] = value + log_prior(problem.rows, params.structure, problem.kind)
    return total


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


def prior_variance(n_clusters: int, n_columns: int) -> float:
    """Variance that the prior expects within a cluster, as a share of the column's: K clusters of that size
    fill the volume of the rows (Fraley and Raftery, J. Classification 2007, section 4)."""
    return float(n_clusters ** (-2.0 / max(n_columns, 1)))


def prior_count(n_columns: int, kind: str) -> float:
    """Rows that the prior of the scatter is worth: twice the exponent of its determinant."""
    return 3.0 if kind == "diagonal" else n_columns + 2.0


def log_density(
    rows: RectangleRows, structure: ClusterStructure, kind: str
) -> tuple[Float[np.ndarray, "S K N"], Float[np.ndarray, "S K N"]]:
    """Log density of each row in each cluster, and its weight there in Student's t (else 1): (S, K, N)."""
    n_starts, K, _ = structure.mean.shape
    log_p = structure.log_levels @ rows.Y_levels.T
    log_p = log_p.reshape(n_starts, K, len(rows))
    t_weight = np.ones_like(log_p)
    if kind == "diagonal":
        return log_p + _log_independent(rows, structure), t_weight
    for seen, part, which in row_blocks(rows.gap_patterns, n_starts * K):
        root, log_det = _root(of_seen(structure.scatter, seen), kind)
        off = np.where(seen[which], rows.Y[part] - structure.mean[..., None, :], 0.0)
        z = each_row(root, off, which)
        distance = (z * z).sum(axis=-1)
        if kind != LIKELIHOOD:
            # E (y + u - m)' S^-1 (y + u - m), u within the steps of the columns
            distance += dot_each((root * root).sum(axis=-2), seen[which] * rows.grain[part], which)
        P, log_det = seen.sum(axis=-1)[which], log_det[..., which]
        if kind == "student_t":
            log_p[..., part] += _log_t(distance, log_det, P)
            t_weight[..., part] = (FREEDOM + P) / (FREEDOM + distance)  # u = (nu+P)/(nu+d^2)
        else:
            log_p[..., part] -= 0.5 * (distance + log_det + P * np.log(2 * np.pi))
    return log_p, t_weight


def _log_independent(rows: RectangleRows, structure: ClusterStructure) -> Float[np.ndarray, "S K N"]:
    """Log density of numbers that are independent and Gaussian, in each row of those that it has."""
    # -1/2 sum_j seen_j [((y_j - m_j)^2 + h_j) / v_j + log(2 pi v_j)],  h the row's grain
    variance = np.diagonal(structure.scatter, axis1=-2, axis2=-1)
    S, K, P = structure.mean.shape
    present = ~np.isnan(rows.Y)
    Y = np.where(present, rows.Y, 0.0)
    out: FloatArray = -0.5 * (np.log(2 * np.pi * variance) @ present.T)
    out -= 0.5 * ((1.0 / variance) @ (present * rows.grain).T)
    for part in np.array_split(np.arange(len(rows)), -(-len(rows) * S * K * max(P, 1) // AT_ONCE)):
        off = (Y[part] - structure.mean[..., None, :]) * present[part]
        out[..., part] -= 0.5 * ((off * off) @ (1.0 / variance)[..., None])[..., 0]
    return out


def log_prior(rows: RectangleRows, structure: ClusterStructure, kind: str) -> Float[np.ndarray, " S"]:
    """Log prior density of each start, up to a constant: (S,)."""
    # -(c log|Sigma| + v tr Sigma^-1 Lambda)/2 + LEVEL_COUNT sum log p
    K, P = structure.mean.shape[1:]
    value: FloatArray = LEVEL_COUNT * structure.log_levels.sum(axis=(1, 2))
    if P and kind != LIKELIHOOD:
        root, log_det = _root(structure.scatter, kind)
        fit = ((root @ rows.spread) * root).sum(axis=(-1, -2))  # tr Sigma^-1 Lambda
        each = -0.5 * (prior_count(P, kind) * log_det + prior_variance(K, P) * fit)
        value = value + (each.mean(axis=1) if kind == "shared" else each.sum(axis=1))
    return value


def _root(
    scatter: Float[np.ndarray, "S K P P"], kind: str
) -> tuple[Float[np.ndarray, "S K P P"], Float[np.ndarray, "S K"]]:
    """Inverse of the Cholesky factor, and the log determinant."""
    if kind == "diagonal":
        variance = np.diagonal(scatter, axis1=-2, axis2=-1)
        return np.eye(scatter.shape[-1]) / np.sqrt(variance)[..., None], np.log(variance).sum(axis=-1)
    factor = np.linalg.cholesky(scatter)
    log_det = 2.0 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    return _inverse_of_factor(factor), log_det


def _inverse_of_factor(factor: Float[np.ndarray, "S K P P"]) -> Float[np.ndarray, "S K P P"]:
    """Inverse of lower triangular matrices; of many columns one by one, in a sixth of the products."""
    if factor.shape[-1] <= ALL_AT_ONCE:
        inverse: FloatArray = np.linalg.inv(factor)
        return inverse
    one_by_one = [dtrtri(one, lower=1)[0] for one in factor.reshape(-1, *factor.shape[-2:])]
    return np.tril(np.array(one_by_one)).reshape(factor.shape)


def _log_t(
    distance: Float[np.ndarray, "S K N"], log_det: Float[np.ndarray, "S K N"], P: Int[np.ndarray, " N"]
) -> Float[np.ndarray, "S K N"]:
    """Log density of Student's t at squared distances, in as many dimensions as each row has cells."""
    half = 0.5 * (FREEDOM + P)
    constant = gammaln(half) - gammaln(0.5 * FREEDOM) - 0.5 * P * np.log(FREEDOM * np.pi)
    log_p: FloatArray = constant - 0.5 * log_det - half * np.log1p(distance / FREEDOM)
    return log_p

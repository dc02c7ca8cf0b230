"""What is maximised: how well soft rectangles hold their own rows and no others, plus how alike these look.

The specification of the family; NOTATION.md has the equations. A row's side of the bounds is a logistic
function of slope a. All starts and clusters are computed at once: shapes are (S, K, N).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from nongauss.rectangle.params import REACH, Boxes, BoxPrior, FloatArray, Rows, Structure
from nongauss.rectangle.structure import log_density, log_prior

LEAST = 1e-8
"""A row is inside with probability 1 - LEAST at most; one without any rule cell is so everywhere."""

_BLOCK = 2**17  # numbers handled at once: small enough for the cache


class Cells(NamedTuple):
    """What evaluations at one slope share: present, e^{-ax} and e^{ax} as (D, N, 3), levels (N, L)."""

    slope: float
    farthest: float
    powers: FloatArray
    levels: FloatArray
    weight: FloatArray


def cells(rows: Rows, slope: float) -> Cells:
    """Precompute for these rows. A missing cell has only zeros: it costs nothing."""
    present = ~np.isnan(rows.X)
    held = np.clip(np.where(present, rows.X, 0.0), -REACH, REACH)
    exponent = slope * held
    powers = np.stack([present, present * np.exp(-exponent), present * np.exp(exponent)], axis=-1)
    farthest = float(np.abs(held).max(initial=0.0))
    return Cells(slope, farthest, np.ascontiguousarray(powers.transpose(1, 0, 2)), rows.X_levels, rows.weight)


def log_inside(at: Cells, boxes: Boxes) -> FloatArray:
    """log G: log probability of being inside each rectangle, (S, K, N), at most -LEAST."""
    shape = (*boxes.lower.shape[:2], at.powers.shape[1])
    out = np.empty((shape[0] * shape[1], shape[2]))
    factors, sets = _factors(at, boxes)
    for part in _parts(at, len(out)):
        out[:, part] = -_outside(at, factors, sets, part)[1]
    return out.reshape(shape)


def expected(at: Cells, boxes: Boxes, share: FloatArray, prior: BoxPrior) -> tuple[FloatArray, FloatArray]:
    """Expected log joint density of boxes and constraints, eq. 7: values (S, K), gradient (S, K, 2 D + L).

    `share` (S, K, N) are the probabilities of the clusters.
    """
    S, K, D = boxes.lower.shape
    a, M, N = at.slope, S * K, at.powers.shape[1]
    shares = share.reshape(M, N)
    value, sums = np.zeros(M), np.zeros((D, M, 3))
    by_sets = np.zeros((M, boxes.sets.shape[-1]))
    factors, sets = _factors(at, boxes)
    for part in _parts(at, M):
        sides, outside = _outside(at, factors, sets, part)
        own, w = shares[:, part], at.weight[part]
        not_inside = -np.expm1(-outside)
        value += (own * -outside + (1.0 - own) * np.log(not_inside)) @ w
        pull = (own - np.exp(-outside)) / not_inside * w
        pull[outside <= LEAST] = 0.0
        np.divide(pull, sides, out=sides)
        sums += sides @ at.powers[:, part]
        by_sets += pull @ at.levels[part]
    both, low, high = (
        factors[..., 0] * sums[..., 0],
        factors[..., 1] * sums[..., 1],
        factors[..., 2] * sums[..., 2],
    )
    by_bounds = [(-a * (both + low)).T, (a * (both + high)).T]
    gradient = np.concatenate([*by_bounds, a * by_sets * (-np.expm1(-sets))], axis=1).reshape(S, K, -1)
    more, by_prior = log_box_prior(boxes, prior)
    return value.reshape(S, K) + more, gradient + by_prior


def log_box_prior(boxes: Boxes, prior: BoxPrior) -> tuple[FloatArray, FloatArray]:
    """Log prior of the boxes up to a constant: values (S, K), gradient (S, K, 2 D + L)."""
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


def posterior(log_G: FloatArray, log_p: FloatArray) -> FloatArray:
    """E-step, eq. 4: probability of each cluster for each row, (S, K, N)."""
    score = log_odds(log_G) + log_p
    score -= score.max(axis=1, keepdims=True)
    share = np.exp(score)
    share /= share.sum(axis=1, keepdims=True)
    return share


def log_odds(log_G: FloatArray) -> FloatArray:
    """log G - log(1 - G)."""
    return log_G - np.log(-np.expm1(log_G))


def log_joint(log_G: FloatArray, log_p: FloatArray, weight: FloatArray) -> FloatArray:
    """Log density of structure and constraints with the clusters summed out, eq. 1 without priors: (S,)."""
    outside = np.log(-np.expm1(log_G)).sum(axis=1)
    K = log_G.shape[1]
    return (outside + logsumexp(log_odds(log_G) + log_p, axis=1) - np.log(K)) @ weight


def objective(
    rows: Rows, at: Cells, boxes: Boxes, structure: Structure, prior: BoxPrior, kind: str
) -> FloatArray:
    """What the iterations raise, eq. 1: (S,)."""
    log_p = log_density(rows, structure, kind)[0]
    value = log_joint(log_inside(at, boxes), log_p, rows.weight)
    return value + log_box_prior(boxes, prior)[0].sum(axis=1) + log_prior(structure, rows.Y_labels, kind)


def _factors(at: Cells, boxes: Boxes) -> tuple[FloatArray, FloatArray]:
    """e^{a(lower - upper)}, e^{a lower}, e^{-a upper} as (D, M, 3), and minus log g of the levels (M, L)."""
    a, M = at.slope, boxes.lower.shape[0] * boxes.lower.shape[1]
    lower, upper, sets = (part.reshape(M, part.shape[-1]) for part in boxes)
    factors = np.exp(a * np.stack([lower - upper, lower, -upper], axis=-1))
    return factors.transpose(1, 0, 2).copy(), np.logaddexp(0.0, -a * sets)


def _outside(at: Cells, factors: FloatArray, sets: FloatArray, part: slice) -> tuple[FloatArray, FloatArray]:
    """(1+e^-A)(1+e^-B) for each column (D, M, n), and minus log G (M, n).

    Logarithms cost most of it, so as many columns as cannot overflow are multiplied first. The logarithm of
    one plus a little is exact to 1e-16, far below LEAST.
    """
    sides = factors @ at.powers[:, part].transpose(0, 2, 1)
    sides += 1.0
    total = sets @ at.levels[part].T
    if len(sides):
        groups = np.arange(0, len(sides), _columns_at_once(at, factors))
        total += np.log(np.multiply.reduceat(sides, groups, axis=0)).sum(axis=0)
    return sides, np.maximum(total, LEAST)


def _columns_at_once(at: Cells, factors: FloatArray) -> int:
    """How many columns' sides can be multiplied below e^700: each is at most 4 e^{2 a max(|x|, |t|)}."""
    bounds = float(np.abs(np.log(factors[..., 1:])).max())
    return max(1, int(700.0 / (2.0 * max(at.slope * at.farthest, bounds) + 2.0)))


def _parts(at: Cells, n_boxes: int) -> list[slice]:
    """Slices of the rows whose temporary arrays stay small."""
    D, N, _ = at.powers.shape
    step = max(64, _BLOCK // (max(D, 1) * n_boxes))
    return [slice(start, start + step) for start in range(0, N, step)]

"""Mixtures of C univariate Gaussians, one mixture a row: distribution function and quantiles."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

FloatArray = npt.NDArray[np.float64]

_MAX_STEPS = 250
_CHUNK = 100_000  # numbers worked on at a time: the working arrays stay in the processor's cache
_ROOT_2PI = math.sqrt(2.0 * math.pi)
_LOG_TOL = 1e-13  # |log(F/q)| that counts as solved; the sum over components is good to about 1e-15
_LAST_STEP = 1e-5  # Halley's error is cubic: a step this small (in local units) leaves about 1e-15
_EPS = 2.0**-52


def mixture_cdf(y: FloatArray, weights: FloatArray, means: FloatArray, sds: FloatArray) -> FloatArray:
    """P(Y <= y) of each row: y (R,), the rest (R, C), to (R,)."""
    total = np.einsum("rc,rc->r", weights, ndtr((y[:, None] - means) / sds))
    return np.minimum(total, 1.0)  # weights sum to 1 only up to rounding


def mixture_quantile(
    q: float, weights: FloatArray, means: FloatArray, sds: FloatArray, start: FloatArray
) -> FloatArray:
    """The point below which mass `q` (0 <= q <= 1) lies, for each row: (R,).

    weights, means, sds: (R, C), sds positive, weights summing to 1. start: (R,), a first guess, anywhere.
    Above the median the mirrored problem is solved, so that both tails keep their relative precision.
    """
    if q in (0.0, 1.0):
        return np.full(len(means), -np.inf if q == 0.0 else np.inf)
    sign, tail = (-1.0, 1.0 - q) if q > 0.5 else (1.0, q)
    out = np.empty(len(means))
    height = max(1, _CHUNK // max(1, means.shape[1]))
    for first in range(0, len(means), height):
        rows = slice(first, first + height)
        out[rows] = sign * _lower_quantile(
            tail, weights[rows], sign * means[rows], sds[rows], sign * start[rows]
        )
    return out


def _lower_quantile(
    q: float, weights: FloatArray, means: FloatArray, sds: FloatArray, start: FloatArray
) -> FloatArray:
    """Solve log F(x) = log q by Halley steps inside a bracket, halving it where a step is no good.

    The bracket: below every component's own quantile F is less than q, above all of them it is more.
    """
    own = means + sds * ndtri(q)
    used = weights > 0.0
    low = np.where(used, own, np.inf).min(axis=1)
    high = np.where(used, own, -np.inf).max(axis=1)
    x = np.clip(start, low, high)
    last = high - low
    rows = np.arange(len(x))  # those not yet solved; the arrays below hold these rows only
    out = x.copy()
    for _ in range(_MAX_STEPS):
        excess, step, solved = _halley(x, q, weights, means, sds)
        low, high = np.where(excess < 0.0, x, low), np.where(excess < 0.0, high, x)
        moved = x + step
        solved &= (moved >= low) & (moved <= high)
        halve = ~solved & ~((moved > low) & (moved < high) & (np.abs(step) < 0.5 * last))
        moved = np.where(halve, low + 0.5 * (high - low), moved)
        last = np.abs(moved - x)
        moved = np.where(np.abs(excess) <= _LOG_TOL, x, moved)
        out[rows] = moved
        on = ~(solved | (last <= _EPS * np.abs(x)) | (high - low <= 2.0 * _EPS * np.abs(x)))
        on &= np.abs(excess) > _LOG_TOL
        if not on.any():
            break
        if not on.all():
            rows, x, low, high, last = rows[on], moved[on], low[on], high[on], last[on]
            weights, means, sds = weights[on], means[on], sds[on]
        else:
            x = moved
    return out


def _halley(
    x: FloatArray, q: float, weights: FloatArray, means: FloatArray, sds: FloatArray
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """log F(x) - log q, Halley's step towards its root, and whether that step is surely the last."""
    z = (x[:, None] - means) / sds
    mass = np.einsum("rc,rc->r", weights, ndtr(z))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        bell = weights * np.exp(-0.5 * z * z) / (_ROOT_2PI * sds)
        density = bell.sum(axis=1)
        slope = -np.einsum("rc,rc->r", bell, z / sds)
        excess = np.log(mass / q)
        newton = -excess * mass / density
        bend = slope / density - density / mass  # (log F)'' / (log F)'
        step = newton / np.clip(1.0 + 0.5 * newton * bend, 0.5, 2.0)
        reach = np.abs(newton) * (np.abs(bend) + 1.0 / sds.min(axis=1))
        solved = reach < _LAST_STEP
    return excess, step, solved

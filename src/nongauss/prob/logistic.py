"""Expectations of log(1 + e^f) and of the logistic function under a normal, on the host in float64.

Up to a variance of 1.5 by Gauss-Hermite points. Beyond, where those grow coarse, log(1 + e^f) is split into
max(f, 0), whose expectation has a closed form, and log(1 + e^-|f|), which is smooth on each side of 0 and
gone by 40: fixed Gauss-Legendre points serve every mean and variance.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr

from nongauss.prob.quadrature import gauss_hermite, gauss_panels

Expected = tuple[Float64[np.ndarray, "*S"], Float64[np.ndarray, "*S"], Float64[np.ndarray, "*S"]]
"""A value and its derivatives by the mean and by the variance."""

_WIDE = 1.5
_N_HERMITE = 32
_EDGES, _N_PANEL = (0.0, 0.7, 1.5, 2.5, 4.0, 6.0, 9.0, 14.0, 22.0, 40.0), 7
_BLOCK = 16_384
_ROOT_2PI = float(np.sqrt(2.0 * np.pi))


def log1pexp(x: ArrayLike | float) -> Float64[np.ndarray, "*B"]:
    """log(1 + e^x) without overflow, elementwise."""
    return np.asarray(np.logaddexp(0.0, np.asarray(x, dtype=np.float64)))


def expected_log1pexp(mean: ArrayLike | float, variance: ArrayLike | float) -> Expected:
    """E log(1 + e^f) for f ~ N(mean, variance), and its derivatives by both: E s(f) and E s(f) s(-f) / 2.

    s is the logistic function: E g' and E g'' / 2 of g = log(1 + e^f) (theorems of Bonnet
    and Price). Any equal shapes; absolute error below 1e-9.
    """
    m, v = np.broadcast_arrays(np.asarray(mean, np.float64), np.asarray(variance, np.float64))
    shape, m, v = m.shape, m.ravel(), v.ravel()
    out = np.empty((3, m.size))
    for start in range(0, m.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        wide = v[part] > _WIDE
        for rows, rule in ((~wide, _narrow), (wide, _broad)):
            if rows.any():
                out[:, start + np.flatnonzero(rows)] = rule(m[part][rows], v[part][rows])
    value, by_mean, by_variance = (part.reshape(shape) for part in out)
    return value, by_mean, by_variance


def expected_sigmoid(mean: ArrayLike | float, variance: ArrayLike | float) -> Float64[np.ndarray, "*B"]:
    """E s(f) for f ~ N(mean, variance), to 1e-9 and never 0: P(y = 1) of a logistic model."""
    m = np.asarray(mean, np.float64)
    lower = np.maximum(expected_log1pexp(-np.abs(m), variance)[1], 1e-300)
    return np.where(m > 0, 1.0 - lower, lower)


def _narrow(m: Float64[np.ndarray, " N"], v: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, "3 N"]:
    """Value and derivatives where the variance is small: a sum over Gauss-Hermite points m + sqrt(v) x_q."""
    points, weights = gauss_hermite(_N_HERMITE)
    f = m[:, None] + np.sqrt(v)[:, None] * points
    decay = np.exp(-np.abs(f))
    upper = 1.0 / (1.0 + decay)
    lower = decay * upper
    value = (np.maximum(f, 0.0) + np.log1p(decay)) @ weights
    return np.stack([value, np.where(f >= 0, upper, lower) @ weights, 0.5 * ((upper * lower) @ weights)])


def _broad(m: Float64[np.ndarray, " N"], v: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, "3 N"]:
    """Value and derivatives where the variance is large, by log(1 + e^f) = max(f, 0) + log(1 + e^-|f|).

    E max(f, 0) = m Phi(m / sd) + sd phi(m / sd); the rest is integrated over t = |f| against both sides of 0.
    The derivative by the mean is 1 - E s(-f) for m > 0, so that the smaller part is what is summed.
    """
    points, weights = gauss_panels(_EDGES, _N_PANEL)
    sd = np.sqrt(v)[:, None]
    right = np.exp(-0.5 * ((points - m[:, None]) / sd) ** 2) / (sd * _ROOT_2PI)
    left = np.exp(-0.5 * ((points + m[:, None]) / sd) ** 2) / (sd * _ROOT_2PI)
    lower = expit(-points)
    z = m / sd[:, 0]
    density = np.exp(-0.5 * z * z) / _ROOT_2PI
    both = right + left
    value = m * ndtr(z) + sd[:, 0] * density + both @ (weights * np.log1p(np.exp(-points)))
    near, far = np.where(m > 0, left.T, right.T), np.where(m > 0, right.T, left.T)
    small = (weights * expit(points)) @ near + (weights * lower) @ far
    small += ndtr((-np.abs(m) - _EDGES[-1]) / sd[:, 0])
    by_mean = np.where(m > 0, 1.0 - small, small)
    return np.stack([value, by_mean, 0.5 * (both @ (weights * lower * expit(points)))])

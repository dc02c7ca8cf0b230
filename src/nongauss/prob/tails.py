"""Logs of small probabilities: tails of distribution functions, and intervals, to full precision."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike
from scipy.special import betainc, betaln, erf, gammainc, gammaincc, gammaln, log_ndtr

Array = Float64[np.ndarray, "*B"]

_TINY = 1e-280
"""Below this a distribution function is replaced by the leading terms of its logarithm."""


def log1mexp(x: ArrayLike | float) -> Array:
    """log(1 - e^x) for x <= 0, elementwise; -inf at 0 (Maechler 2012)."""
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        near, far = np.log(-np.expm1(x)), np.log1p(-np.exp(x))
    out: Array = np.where(x > -0.6931471805599453, near, far)
    return out


def log_between(
    below: tuple[ArrayLike | float, ArrayLike | float], above: tuple[ArrayLike | float, ArrayLike | float]
) -> Array:
    """log(F(b) - F(a)) from (log F(a), log F(b)) and (log(1 - F(a)), log(1 - F(b))).

    The difference is taken on the side where both numbers are small.
    """
    below_a, below_b, above_a, above_b = (np.asarray(part, dtype=np.float64) for part in (*below, *above))
    with np.errstate(invalid="ignore"):
        low = below_b + log1mexp(np.minimum(below_a - below_b, 0.0))
        high = above_a + log1mexp(np.minimum(above_b - above_a, 0.0))
    out: Array = np.where(below_b <= above_a, low, high)
    return out


def log_normal_interval(a: ArrayLike | float, b: ArrayLike | float) -> Array:
    """log(Phi(b) - Phi(a)) for a < b."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    flip = a > 0.0  # to the side where both are small
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    top, bottom = log_ndtr(high), log_ndtr(low)
    with np.errstate(invalid="ignore"):
        inner = top + log1mexp(np.minimum(bottom - top, 0.0))
    out: Array = np.where(np.isneginf(top), -np.inf, inner)  # so far out that neither end has a logarithm
    near = np.maximum(np.abs(low), np.abs(high)) < 0.5  # where erf, which is odd, keeps more digits
    lower, upper = (erf(np.where(near, end, 0.0) / np.sqrt(2.0)) for end in (low, high))
    with np.errstate(divide="ignore"):
        return np.where(near, np.log(0.5 * (upper - lower)), out)


def log_gamma_tails(a: float, x: ArrayLike | float) -> tuple[Array, Array]:
    """log P(a, x) and log Q(a, x), the regularised incomplete gamma functions, for a > 0 and x > 0.

    Far out by the leading terms of the series at 0 and of the continued fraction at infinity
    (Abramowitz and Stegun 6.5.29, 6.5.31).
    """
    x = np.asarray(x, dtype=np.float64)
    lower, upper = gammainc(a, x), gammaincc(a, x)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_x = np.log(x)
        series = a * log_x - x - gammaln(a + 1.0) - np.log1p(-np.minimum(x / (a + 1.0), 0.5))
        fraction = (a - 1.0) * log_x - x - gammaln(a) - np.log1p(np.minimum((1.0 - a) / x, 1.0))
        low = np.where(lower > _TINY, np.log(lower), series)
        high = np.where(upper > _TINY, np.log(upper), fraction)
    return low, high


def log_beta_tails(a: ArrayLike | float, b: ArrayLike | float, y: ArrayLike | float) -> tuple[Array, Array]:
    """log I_y(a, b) and log I_{1-y}(b, a), the regularised incomplete beta function, for 0 < y < 1.

    Far out by the leading term y^a (1 - y)^b / (a B(a, b)), and its mirror image.
    """
    a, b, y = (np.asarray(part, dtype=np.float64) for part in (a, b, y))
    lower, upper = betainc(a, b, y), betainc(b, a, 1.0 - y)
    with np.errstate(divide="ignore"):
        leading = a * np.log(y) + b * np.log1p(-y) - betaln(a, b)
        low = np.where(lower > _TINY, np.log(lower), leading - np.log(a))
        high = np.where(upper > _TINY, np.log(upper), leading - np.log(b))
    return low, high

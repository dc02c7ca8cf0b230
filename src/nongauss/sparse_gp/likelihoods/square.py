"""Counts by a square link: the rate is f^2, so it may be 0, and effects add up on the root of the rate."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import dawsn, digamma, gammaincc, gammaln

from nongauss.core.records import persistable
from nongauss.sparse_gp.likelihoods.base import Expectation, FloatArray, Likelihood, column, no_params

_FAR = 60.0
"""m^2 / 2v from which log f^2 is expanded about the mean."""

_TERMS = 12  # of the expansion
_TINY = 1e-300
_LARGEST_RATE = 1e18  # of which NumPy draws a Poisson number


@persistable("sparse_gp.likelihoods.SquarePoisson")
class SquarePoisson(Likelihood):
    """y ~ Poisson(f^2). Expectations are exact (Lloyd, Gunter, Osborne and Roberts, ICML 2015, section 3)."""

    name = "poisson_square"
    support = "count"
    own_rules = ("closed_form",)

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The root of the mean."""
        return np.array([math.sqrt(float(np.average(y, weights=weight)) + 0.25)]), np.zeros(0)

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The root of the count, whose variance is 1/4 (Bartlett 1936)."""
        return column(np.sqrt(y + 0.25)), np.full((len(y), 1), 0.25)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """y E log f^2 - (m^2 + v) - log y!."""
        m, v = mean[:, 0], variance[:, 0]
        log_square, by_m, by_v = expected_log_square(m, v)
        value = y * log_square - (m * m + v) - gammaln(y + 1.0)
        return Expectation(value, column(y * by_m - 2.0 * m), column(y * by_v - 1.0), no_params(y))

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Poisson log probability."""
        rate = f[..., 0] ** 2
        out: FloatArray = y * np.log(np.maximum(rate, _TINY)) - rate - gammaln(y + 1.0)
        return out

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """The regularised upper incomplete gamma function Q(floor(y) + 1, f^2)."""
        out: FloatArray = gammaincc(np.floor(y) + 1.0, f[..., 0] ** 2)
        return out

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Poisson draws, of rates up to 1e18."""
        return rng.poisson(np.minimum(f[..., 0] ** 2, _LARGEST_RATE)).astype(np.float64)

    def moments(
        self, mean: FloatArray, variance: FloatArray, psi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """M = m^2 + v and M + 2 v^2 + 4 m^2 v."""
        m, v = mean[..., 0], variance[..., 0]
        first = m * m + v
        return first, first + 2.0 * v * v + 4.0 * m * m * v

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """2, the root of the Fisher information, which does not depend on f."""
        return np.full_like(mean[..., 0], 2.0)


def expected_log_square(m: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """E log f^2 for f ~ N(m, v), v > 0, and its derivatives by m and v: (N,) each.

    With x^2 = m^2 / 2v it is log 2v + sum_j Poisson(j; x^2) digamma(j + 1/2); d/dm = sqrt(8 / v) D(x) and
    d/dv = (1 - 2 x D(x)) / v, D Dawson's integral. Far from 0 the series in r = v / m^2:
    log m^2 - sum_k (2k - 1)!! r^k / k, and 1 - 2 x D(x) = -sum_k (2k - 1)!! r^k.
    """
    x = np.abs(m) / np.sqrt(2.0 * v)
    square = x * x
    far = square > _FAR
    near = ~far
    value, curve = np.empty_like(m), np.empty_like(m)
    j = np.arange(math.ceil(_FAR + 14.0 * math.sqrt(_FAR) + 20.0))
    rate = np.maximum(square[near, None], _TINY)
    share = np.exp(j * np.log(rate) - rate - gammaln(j + 1.0))
    value[near] = np.log(2.0 * v[near]) + share @ digamma(j + 0.5)
    curve[near] = 1.0 - 2.0 * x[near] * dawsn(x[near])
    k = np.arange(1.0, _TERMS + 1.0)
    r = v[far] / np.maximum(m[far] ** 2, _TINY)
    terms = np.cumprod(2.0 * k - 1.0) * r[:, None] ** k
    value[far] = 2.0 * np.log(np.abs(m[far])) - terms @ (1.0 / k)
    curve[far] = -terms.sum(axis=1)
    return value, np.sign(m) * np.sqrt(8.0 / v) * dawsn(x), curve / v

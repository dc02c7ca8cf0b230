"""Likelihoods of counts, whose latent function is the log of the rate."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc, digamma, expit, gammaincc, gammaln

from nongauss.core.records import persistable
from nongauss.predictive.rowwise import bounded_exp
from nongauss.prob.logistic import log1pexp
from nongauss.sparse_gp.likelihoods.base import (
    Expectation,
    FloatArray,
    Likelihood,
    capped_exp,
    column,
    expected_softplus,
    log_mean,
    no_params,
)

HALF_A_COUNT = 0.5
"""What a count of 0 is taken for where its logarithm is needed."""

WIDEST_LOG = 90.0
"""Variance of a logarithm up to which a variance is right: times the square of the largest rate, a number."""

_LARGEST_RATE = 1e18  # of which NumPy draws a Poisson number


class _Count(Likelihood):
    """Whole numbers with mean e^f; an exposure multiplies the rate, so its log is added to f."""

    support = "count"
    takes_exposure = True


@persistable("sparse_gp.likelihoods.Poisson", "nongauss.sparse_gp.likelihoods.count:Poisson")
class Poisson(_Count):
    """y ~ Poisson(e^f). Expectations are exact."""

    name = "poisson"
    own_rules = ("closed_form",)
    point_rules = ("quadrature", "monte_carlo")

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The log of the mean."""
        return np.array([log_mean(y, weight, HALF_A_COUNT)]), np.zeros(0)

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log(y + 1/2), with the variance that a count has on this scale: large counts start right."""
        return column(np.log(y + HALF_A_COUNT)), column(1.0 / (y + HALF_A_COUNT))

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """y m - e^{m + v/2} - log y!."""
        rate, slope = capped_exp(mean + 0.5 * variance)
        value = y * mean[:, 0] - rate[:, 0] - gammaln(y + 1.0)
        return Expectation(value, column(y) - slope, -0.5 * slope, no_params(y))

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Poisson log probability."""
        out: FloatArray = y * f[..., 0] - capped_exp(f[..., 0])[0] - gammaln(y + 1.0)
        return out

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """The regularised upper incomplete gamma function Q(floor(y) + 1, e^f)."""
        out: FloatArray = gammaincc(np.floor(y) + 1.0, bounded_exp(f[..., 0]))
        return out

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Poisson draws, of rates up to 1e18."""
        return rng.poisson(np.minimum(bounded_exp(f[..., 0]), _LARGEST_RATE)).astype(np.float64)

    def moments(
        self, mean: FloatArray, variance: FloatArray, psi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """M = e^{m + v/2} and M + M^2 (e^v - 1)."""
        v = variance[..., 0]
        first = bounded_exp(mean[..., 0] + 0.5 * v)
        return first, first + first**2 * np.expm1(np.minimum(v, WIDEST_LOG))

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """The root of the rate, two deviations up."""
        out: FloatArray = np.exp(0.5 * np.clip(mean[..., 0] + 2.0 * sd[..., 0], -40.0, 40.0))
        return out


@persistable(
    "sparse_gp.likelihoods.NegativeBinomial", "nongauss.sparse_gp.likelihoods.count:NegativeBinomial"
)
class NegativeBinomial(_Count):
    """y negative binomial with mean e^f and variance e^f + e^{2f} / r: over-dispersed counts; psi = (log r).

    log p = y u - (y + r) log(1 + e^u) + const with u = f - log r: all it needs is the expected log(1 + e^u).
    """

    name = "negative_binomial"
    own_rules = ("quadrature",)
    point_rules = ("monte_carlo",)
    param_names = ("dispersion",)

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The log of the mean; twice the r that mean and variance have, between 0.1 and 1000."""
        mean = float(np.average(y, weights=weight))
        extra = float(np.average((y - mean) ** 2, weights=weight)) - mean
        r = 2.0 * mean**2 / extra if extra > 0.0 else math.inf
        return np.array([log_mean(y, weight, HALF_A_COUNT)]), np.log(np.clip([r], 0.1, 1e3))

    def bounds(self) -> list[tuple[float, float]]:
        """From a hundredth to 1e9, which is Poisson also of millions."""
        return [(math.log(0.01), math.log(1e9))]

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Half way between the row's own log rate and the common one."""
        return 0.5 * (column(np.log(y + HALF_A_COUNT)) + offset), np.full((len(y), 1), 0.5)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """y (m - log r) - (y + r) E log(1 + e^u) + const."""
        r = math.exp(psi[0])
        u, total = mean - psi[0], column(y) + r
        softplus, share, curve = expected_softplus(u, variance)
        value = (column(y) * u - total * softplus)[:, 0] + self._constant(y, r)
        by_psi = no_params(y)
        if with_params:
            by_psi = r * (column(digamma(y + r) - digamma(r)) - softplus) - column(y) + total * share
        return Expectation(value, column(y) - total * share, -total * curve, by_psi)

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Negative binomial log probability."""
        r = math.exp(psi[0])
        u = f[..., 0] - psi[0]
        out: FloatArray = y * u - (y + r) * log1pexp(u) + self._constant(y, r)
        return out

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """The regularised incomplete beta function I_p(r, floor(y) + 1), p = r / (r + e^f)."""
        out: FloatArray = betainc(math.exp(psi[0]), np.floor(y) + 1.0, expit(psi[0] - f[..., 0]))
        return out

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Poisson draws of gamma rates, up to 1e18."""
        r = math.exp(psi[0])
        rate = rng.gamma(r, bounded_exp(f[..., 0]) / r)
        return rng.poisson(np.minimum(rate, _LARGEST_RATE)).astype(np.float64)

    def moments(
        self, mean: FloatArray, variance: FloatArray, psi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """M = e^{m + v/2} and M + M^2 (e^v - 1 + e^v / r)."""
        v = variance[..., 0]
        first = bounded_exp(mean[..., 0] + 0.5 * v)
        v = np.minimum(v, WIDEST_LOG)
        return first, first + first**2 * (np.expm1(v) + np.exp(v) / math.exp(psi[0]))

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """The root of e^f r / (e^f + r), the Fisher information, two deviations up."""
        r = math.exp(psi[0])
        rate = np.exp(np.clip(mean[..., 0] + 2.0 * sd[..., 0], -40.0, 40.0))
        out: FloatArray = np.sqrt(rate * r / (rate + r))
        return out

    @staticmethod
    def _constant(y: FloatArray, r: float) -> FloatArray:
        out: FloatArray = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0)
        return out

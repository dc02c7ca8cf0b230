"""Likelihoods of counts, whose latent function is the log of the rate."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma, gammaln

from nongauss.core.records import persistable
from nongauss.predictive import latent
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.prob.logistic import log1pexp
from nongauss.sparse_gp.likelihoods.base import (
    Expectation,
    FloatArray,
    Likelihood,
    capped_exp,
    column,
    expected_softplus,
    first_bad,
    log_mean,
    no_params,
)

HALF_A_COUNT = 0.5
"""What a count of 0 is taken for where its logarithm is needed."""


class _Count(Likelihood):
    """Whole numbers with mean e^f; an exposure multiplies the rate, so its log is added to f."""

    takes_exposure = True

    def check(self, y: FloatArray) -> None:
        """Whole and at least 0."""
        bad = ~((y >= 0) & (y < np.inf) & (y == np.round(y)))
        first_bad(y, bad, self.name, "that is a whole number of at least 0", "round it, or take 'gamma'")


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
        return y * f[..., 0] - capped_exp(f[..., 0])[0] - gammaln(y + 1.0)

    def predictive(
        self,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> PredictiveDistribution:
        """Poisson given a log-normal rate."""
        return latent.poisson_predictive(mean[..., 0], variance[..., 0])


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
        """From a hundredth to a million, which is Poisson."""
        return [(math.log(0.01), math.log(1e6))]

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
        return y * u - (y + r) * log1pexp(u) + self._constant(y, r)

    @staticmethod
    def _constant(y: FloatArray, r: float) -> FloatArray:
        out: FloatArray = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0)
        return out

    def predictive(
        self,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> PredictiveDistribution:
        """Negative binomial given a log-normal rate."""
        return latent.negative_binomial_predictive(mean[..., 0], variance[..., 0], math.exp(psi[0]))

"""Likelihoods of positive targets, which come divided by a unit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import digamma, gammainc, gammaln

from nongauss.core.records import persistable
from nongauss.predictive.composed import LogNormalDistribution
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.rowwise import bounded_exp
from nongauss.prob.tails import log1mexp, log_gamma_tails
from nongauss.sparse_gp.likelihoods.base import (
    Expectation,
    FloatArray,
    Likelihood,
    capped_exp,
    column,
    log_mean,
    no_params,
)
from nongauss.sparse_gp.likelihoods.real import Gaussian, noise_prior

_TINY = 1e-6  # of a positive target, as a share of its unit
_NO_SPREAD = 1e-9  # of a logarithm, below which it is taken to be constant
_LARGEST = 1e300


def _log_moments(y: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Mean and variance of log y, the latter 1 where there is none."""
    log_y = np.log(y)
    centre = float(np.average(log_y, weights=weight))
    spread = float(np.average((log_y - centre) ** 2, weights=weight))
    return centre, spread if spread > _NO_SPREAD**2 else 1.0


@dataclass(frozen=True, kw_only=True)
class _OfLogSpread(Likelihood):
    """A law whose prior knows `spread`, the variance of log y, learned from the data when a fit starts."""

    spread: float = 1.0

    def adapted(self, y: FloatArray, weight: FloatArray, scale: float) -> Likelihood:
        """With the variance of log y."""
        return replace(self, spread=_log_moments(y, weight)[1])


class _LogMean(Likelihood):
    """Positive y, gamma with mean e^f and a shape a, which may be 1. Expectations are exact."""

    support = "positive"
    own_rules = ("closed_form",)
    point_rules = ("quadrature", "monte_carlo")
    target = "scaled"

    @staticmethod
    def shape(psi: FloatArray) -> float:
        """The shape a: one over the squared ratio of standard deviation to mean."""
        return math.exp(psi[0])

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """The regularised lower incomplete gamma function P(a, a y e^-f)."""
        a = self.shape(psi)
        out: FloatArray = gammainc(a, a * y * bounded_exp(-f[..., 0]))
        return out

    def log_tails(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logs of the incomplete gamma functions."""
        a = self.shape(psi)
        return log_gamma_tails(a, a * y * bounded_exp(-f[..., 0]))

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Gamma draws."""
        a = self.shape(psi)
        return rng.gamma(a, bounded_exp(f[..., 0]) / a)

    def moments(
        self, mean: FloatArray, variance: FloatArray, psi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """M = e^{m + v/2} and M^2 (e^v - 1 + e^v / a)."""
        v = variance[..., 0]
        first = bounded_exp(mean[..., 0] + 0.5 * v)
        return first, first**2 * (np.expm1(v) + np.exp(v) / self.shape(psi))

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """The root of a, the Fisher information, which does not depend on f."""
        return np.full_like(mean[..., 0], math.sqrt(self.shape(psi)))

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Half way to the log of the target."""
        return 0.5 * (column(np.log(np.maximum(y, _TINY))) + offset), np.full((len(y), 1), 0.5)


@persistable("sparse_gp.likelihoods.Exponential", "nongauss.sparse_gp.likelihoods.positive:Exponential")
class Exponential(_LogMean):
    """y exponential with mean e^f."""

    name = "exponential"

    @staticmethod
    def shape(psi: FloatArray) -> float:
        """It is a gamma distribution of shape 1."""
        return 1.0

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The log of the mean."""
        return np.array([log_mean(y, weight, _TINY)]), np.zeros(0)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """-m - y e^{-m + v/2}."""
        inverse, slope = capped_exp(0.5 * variance - mean)
        pull = column(y) * slope
        return Expectation(-mean[:, 0] - y * inverse[:, 0], pull - 1.0, -0.5 * pull, no_params(y))

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Exponential log density."""
        out: FloatArray = -f[..., 0] - y * capped_exp(-f[..., 0])[0]
        return out


@persistable("sparse_gp.likelihoods.Gamma", "nongauss.sparse_gp.likelihoods.positive:Gamma")
class Gamma(_OfLogSpread, _LogMean):
    """y gamma with mean e^f and shape a, that is, standard deviation e^f / sqrt(a); psi = (log a)."""

    name = "gamma"
    param_names = ("shape",)

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The log of the mean; twice the shape that mean and variance have, within 1 and 100."""
        mean = float(np.average(y, weights=weight))
        variance = float(np.average((y - mean) ** 2, weights=weight))
        shape = np.clip(2.0 * mean**2 / max(variance, _TINY * mean**2), 1.0, 100.0)
        return np.array([math.log(mean)]), np.array([math.log(shape)])

    def log_prior(self, psi: FloatArray) -> tuple[float, FloatArray]:
        """That of the share of noise, about 1 / a, in the variance of log y."""
        value, slope = noise_prior(-float(psi[0]) - math.log(self.spread))
        return value, np.array([-slope])

    def bounds(self) -> list[tuple[float, float]]:
        """From a twentieth to 1e10: beyond, the terms of log p cancel to noise."""
        return [(math.log(0.05), math.log(1e10))]

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """a log a - log Gamma(a) + (a - 1) log y - a (m + y e^{-m + v/2})."""
        a = math.exp(psi[0])
        inverse, slope = capped_exp(0.5 * variance - mean)
        pull, log_y = column(y) * slope, np.log(y)
        both = mean[:, 0] + y * inverse[:, 0]
        value = a * psi[0] - gammaln(a) + (a - 1.0) * log_y - a * both
        by_psi = column(a * (psi[0] + 1.0 - digamma(a) + log_y - both)) if with_params else no_params(y)
        return Expectation(value, a * (pull - 1.0), -0.5 * a * pull, by_psi)

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Gamma log density."""
        a = math.exp(psi[0])
        both = f[..., 0] + y * capped_exp(-f[..., 0])[0]
        out: FloatArray = a * psi[0] - gammaln(a) + (a - 1.0) * np.log(y) - a * both
        return out


@persistable("sparse_gp.likelihoods.LogNormal")
@dataclass(frozen=True, kw_only=True)
class LogNormal(Gaussian):
    """log y = centre + unit (f + s e), e standard normal: the Gaussian likelihood of the standardised log.

    `centre` and `unit` are learned from the data at the start of a fit; psi = (log s^2).
    """

    centre: float = 0.0
    unit: float = 1.0

    name = "log_normal"
    support = "positive"
    target = "scaled"
    mean_is_latent = False
    param_names = ("noise_variance_of_log",)

    def is_standard(self, latent: int) -> bool:
        """The logarithm is standardised."""
        return True

    def adapted(self, y: FloatArray, weight: FloatArray, scale: float) -> Likelihood:
        """With mean and standard deviation of log y."""
        centre, spread = _log_moments(y, weight)
        return replace(self, centre=centre, unit=math.sqrt(spread))

    def readable(self, psi: FloatArray, scale: float) -> dict[str, float]:
        """The variance in units of log y."""
        return {self.param_names[0]: math.exp(psi[0]) * self.unit**2}

    def standardised(self, y: FloatArray) -> FloatArray:
        """(log y - centre) / unit."""
        out: FloatArray = (np.log(y) - self.centre) / self.unit
        return out

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """At the logarithm."""
        return super().first_moments(self.standardised(y), offset)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """That of the logarithm, less log(unit y)."""
        of = super().own_expectation(self.standardised(y), mean, variance, psi, with_params)
        return of._replace(value=of.value - np.log(self.unit * y))

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Log-normal log density."""
        return super().log_prob(self.standardised(y), f, psi) - np.log(self.unit * y)

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Normal, of the logarithm."""
        return super().cdf(self.standardised(y), f, psi)

    def log_tails(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Normal, of the logarithm."""
        return super().log_tails(self.standardised(y), f, psi)

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Log-normal draws."""
        return bounded_exp(self.centre + self.unit * super().draw(f, psi, rng))

    def moments(
        self, mean: FloatArray, variance: FloatArray, psi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """M = e^{a + b / 2} and M^2 (e^b - 1), a and b mean and variance of log y."""
        spread = self.unit**2 * (variance[..., 0] + math.exp(psi[0]))
        first = bounded_exp(self.centre + self.unit * mean[..., 0] + 0.5 * spread)
        return first, np.minimum(first**2, _LARGEST) * np.expm1(np.minimum(spread, 18.0))

    def predictive(
        self,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> PredictiveDistribution:
        """The logarithm is N(a, b): in closed form, a mixture of such for several latent components."""
        middle = self.centre + math.log(scale)
        log_y: Any = super().predictive(mean, variance, psi, centre=middle, scale=self.unit)
        return LogNormalDistribution(log_y)


@persistable("sparse_gp.likelihoods.Weibull")
class Weibull(_OfLogSpread):
    """y Weibull with scale e^f and shape k, such as a time until something fails; psi = (log k)."""

    name = "weibull"
    support = "positive"
    own_rules = ("closed_form",)
    point_rules = ("quadrature", "monte_carlo")
    target = "scaled"
    param_names = ("shape",)

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The log of the mean; twice the shape that mean and variance have, roughly, within 1 and 20."""
        mean = float(np.average(y, weights=weight))
        spread = math.sqrt(float(np.average((y - mean) ** 2, weights=weight))) / mean
        return np.array([math.log(mean)]), np.log(np.clip([2.0 / max(spread, _TINY)], 1.0, 20.0))

    def log_prior(self, psi: FloatArray) -> tuple[float, FloatArray]:
        """That of the share of noise, pi^2 / (6 k^2), in the variance of log y."""
        noise = math.log(math.pi**2 / 6.0) - 2.0 * float(psi[0])
        value, slope = noise_prior(noise - math.log(self.spread))
        return value, np.array([-2.0 * slope])

    def bounds(self) -> list[tuple[float, float]]:
        """From a tenth to a million."""
        return [(math.log(0.1), math.log(1e6))]

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Half way to the log of the target."""
        return 0.5 * (column(np.log(np.maximum(y, _TINY))) + offset), np.full((len(y), 1), 0.1)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """log k - log y + k (log y - m) - e^{k (log y - m) + k^2 v / 2}."""
        k, log_y = math.exp(psi[0]), np.log(y)
        above = column(log_y) - mean
        tail, slope = capped_exp(k * above + 0.5 * k**2 * variance)
        value = psi[0] - log_y + (k * above - tail)[:, 0]
        by_psi = 1.0 + k * above - slope * (k * above + k**2 * variance) if with_params else no_params(y)
        return Expectation(value, k * (slope - 1.0), -0.5 * k**2 * slope, by_psi)

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Weibull log density."""
        above = math.exp(psi[0]) * (np.log(y) - f[..., 0])
        out: FloatArray = psi[0] - np.log(y) + above - capped_exp(above)[0]
        return out

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """1 - e^{-(y e^-f)^k}."""
        out: FloatArray = -np.expm1(-bounded_exp(math.exp(psi[0]) * (np.log(y) - f[..., 0])))
        return out

    def log_tails(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log(1 - e^-x) and -x, x = (y e^-f)^k."""
        x = bounded_exp(math.exp(psi[0]) * (np.log(y) - f[..., 0]))
        return log1mexp(-x), -x

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Weibull draws."""
        out: FloatArray = bounded_exp(f[..., 0]) * rng.weibull(math.exp(psi[0]), f.shape[:-1])
        return out

    def moments(
        self, mean: FloatArray, variance: FloatArray, psi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """M = g_1 e^{m + v/2}, g_r = Gamma(1 + r / k), and M^2 (e^v g_2 / g_1^2 - 1)."""
        k, v = math.exp(psi[0]), variance[..., 0]
        first = bounded_exp(mean[..., 0] + 0.5 * v + gammaln(1.0 + 1.0 / k))
        ratio = v + gammaln(1.0 + 2.0 / k) - 2.0 * gammaln(1.0 + 1.0 / k)
        return first, first**2 * np.expm1(ratio)

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """k, the root of the Fisher information, which does not depend on f."""
        return np.full_like(mean[..., 0], math.exp(psi[0]))

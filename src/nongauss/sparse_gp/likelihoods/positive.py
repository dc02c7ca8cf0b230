"""Likelihoods of positive targets, which come divided by a unit, and of shares between 0 and 1."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betainc, digamma, expit, gammainc, gammaln

from nongauss.core.records import persistable
from nongauss.predictive.composed import LogNormalDistribution
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.rowwise import bounded_exp
from nongauss.prob.quadrature import gauss_hermite
from nongauss.prob.tails import log_beta_tails, log_gamma_tails
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
from nongauss.sparse_gp.likelihoods.real import Gaussian

_TINY = 1e-6  # of a positive target, as a share of its unit
_SMALLEST = 1e-12  # of the mean of a share
_NO_SPREAD = 1e-9  # of a logarithm, below which it is taken to be constant
_LARGEST = 1e300


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
class Gamma(_LogMean):
    """y gamma with mean e^f and shape a, that is, standard deviation e^f / sqrt(a); psi = (log a)."""

    name = "gamma"
    param_names = ("shape",)

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The log of the mean; twice the shape that mean and variance have, within 1 and 100."""
        mean = float(np.average(y, weights=weight))
        variance = float(np.average((y - mean) ** 2, weights=weight))
        shape = np.clip(2.0 * mean**2 / max(variance, _TINY * mean**2), 1.0, 100.0)
        return np.array([math.log(mean)]), np.array([math.log(shape)])

    def bounds(self) -> list[tuple[float, float]]:
        """From a twentieth to a million."""
        return [(math.log(0.05), math.log(1e6))]

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
        log_y = np.log(y)
        centre = float(np.average(log_y, weights=weight))
        spread = math.sqrt(float(np.average((log_y - centre) ** 2, weights=weight)))
        return replace(self, centre=centre, unit=spread if spread > _NO_SPREAD else 1.0)

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


@persistable("sparse_gp.likelihoods.Beta", "nongauss.sparse_gp.likelihoods.positive:Beta")
class Beta(Likelihood):
    """y in (0, 1), beta with mean s(f) and precision p: shapes s(f) p and s(-f) p; psi = (log p).

    s is the logistic function. With llp(f) = log(1 + e^f) and
    R(f) = log Gamma(1 + s(f) p) + log Gamma(1 + s(-f) p) - log Gamma(1 + p), which vanishes on either side,
    log p(y) = log p - R(f) - 2 llp(f) + f + (s(f) p - 1) log y + (s(-f) p - 1) log(1 - y):
    y meets f only in s(f), so a few functions of f alone have to be averaged.
    """

    name = "beta"
    support = "unit"
    own_rules = ("quadrature",)
    point_rules = ("monte_carlo",)
    param_names = ("precision",)

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The logit of the mean; twice the precision that mean and variance have, within 2 and 1000."""
        mean = float(np.clip(np.average(y, weights=weight), 1e-9, 1.0 - 1e-9))
        spread = float(np.average((y - mean) ** 2, weights=weight))
        precision = np.clip(2.0 * (mean * (1.0 - mean) / max(spread, 1e-9) - 1.0), 2.0, 1e3)
        return np.array([math.log(mean / (1.0 - mean))]), np.array([math.log(precision)])

    def bounds(self) -> list[tuple[float, float]]:
        """From a tenth to a hundred thousand."""
        return [(math.log(0.1), math.log(1e5))]

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """The terms of log p in the class's docstring, one by one."""
        p, m, v = math.exp(psi[0]), mean[:, 0], variance[:, 0]
        log_y, log_rest = np.log(y), np.log1p(-y)
        odds = p * (log_y - log_rest)
        softplus, share, half_slope = expected_softplus(m, v)
        rest, rest_slope, rest_curve, share_curve, by_p = expected_shares(p, m, v)
        value = psi[0] - rest - 2.0 * softplus + m + odds * share + p * log_rest - log_y - log_rest
        d_mean = 1.0 - rest_slope - 2.0 * share + 2.0 * odds * half_slope
        d_variance = 0.5 * (odds * share_curve - rest_curve) - 2.0 * half_slope
        by_psi = column(1.0 - by_p + odds * share + p * log_rest) if with_params else no_params(y)
        return Expectation(value, column(d_mean), column(d_variance), by_psi)

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Beta log density, by the terms of log p in the class's docstring."""
        p, f = math.exp(psi[0]), f[..., 0]
        share, rest = expit(f), expit(-f)
        log_y, log_rest = np.log(y), np.log1p(-y)
        gammas = gammaln(1.0 + p * share) + gammaln(1.0 + p * rest) - gammaln(1.0 + p)
        fixed = psi[0] - gammas - np.logaddexp(0.0, f) - np.logaddexp(0.0, -f) - log_y - log_rest
        out: FloatArray = fixed + p * (share * log_y + rest * log_rest)
        return out

    @staticmethod
    def shapes(f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """s(f) p and s(-f) p, kept above 0 where f is far away."""
        p = math.exp(psi[0])
        return p * np.maximum(expit(f[..., 0]), _SMALLEST), p * np.maximum(expit(-f[..., 0]), _SMALLEST)

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """The regularised incomplete beta function."""
        out: FloatArray = betainc(*self.shapes(f, psi), y)
        return out

    def log_tails(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logs of the incomplete beta functions."""
        return log_beta_tails(*self.shapes(f, psi), y)

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Beta draws."""
        return rng.beta(*self.shapes(f, psi))

    def conditional_moments(self, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """s(f) and s(f) s(-f) / (1 + p)."""
        share = expit(f[..., 0])
        return share, share * expit(-f[..., 0]) / (1.0 + math.exp(psi[0]))

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """About the root of the largest Fisher information, which is p / 4 where p is large."""
        return np.full_like(mean[..., 0], 0.5 * math.exp(0.5 * psi[0]) + 1.0)


_NARROW, _N_NARROW = 0.35, 8
_GRID_STEP = 0.3
_BLOCK = 256  # rows whose points fit into the processor's nearer memory


def _shares(p: float, f: FloatArray) -> FloatArray:
    """R(f) of `Beta`, R', R'', s''(f) and dR / d log p: (5, ...). All vanish far from 0."""
    share, rest = expit(f), expit(-f)
    alpha, beta = 1.0 + p * share, 1.0 + p * rest
    slope, tilt = share * rest, rest - share
    psi_alpha, psi_beta = digamma(alpha), digamma(beta)
    pull = p * (psi_alpha - psi_beta)
    curve = slope * tilt * pull + (p * slope) ** 2 * (trigamma(alpha) + trigamma(beta))
    by_p = p * (share * psi_alpha + rest * psi_beta - digamma(1.0 + p))
    return np.stack(
        [gammaln(alpha) + gammaln(beta) - gammaln(1.0 + p), slope * pull, curve, slope * tilt, by_p]
    )


def expected_shares(p: float, m: FloatArray, v: FloatArray) -> FloatArray:
    """E of the five functions of f in `_shares` under N(m, v), v >= 0: (5, N).

    Where the normal is narrow, by a few Gauss-Hermite points of its own. Elsewhere the trapezoid rule on one
    grid serves all rows, so the gamma functions are evaluated once; it converges geometrically.
    """
    out = np.empty((5, len(m)))
    narrow = np.sqrt(v) < _NARROW
    points, weights = gauss_hermite(_N_NARROW)
    out[:, narrow] = _shares(p, column(m[narrow]) + np.sqrt(column(v[narrow])) * points) @ weights
    reach = math.ceil((25.0 + math.log1p(p)) / _GRID_STEP)
    grid = _GRID_STEP * np.arange(-reach, reach + 1.0)
    values = _shares(p, grid).T
    rows = np.flatnonzero(~narrow)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        sd = np.sqrt(column(v[block]))
        z = (grid - column(m[block])) / sd
        density = np.exp(-0.5 * z * z)
        out[:, block] = (density @ values / (sd * math.sqrt(2.0 * math.pi) / _GRID_STEP)).T
    return out


def trigamma(x: FloatArray) -> FloatArray:
    """Second derivative of log Gamma for x >= 1, relative error below 1e-11, five times as fast as SciPy's.

    The asymptotic series (Abramowitz and Stegun 6.4.12) six to the right, and the recurrence back.
    """
    shifts = sum(1.0 / (x + k) ** 2 for k in range(6))
    inverse = 1.0 / (x + 6.0)
    s = inverse * inverse
    series = 1.0 / 6.0 - s * (1.0 / 30.0 - s * (1.0 / 42.0 - s * (1.0 / 30.0 - s * 5.0 / 66.0)))
    return shifts + inverse * (1.0 + 0.5 * inverse + s * series)

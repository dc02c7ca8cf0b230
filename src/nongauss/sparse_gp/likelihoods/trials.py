"""Likelihoods of counts out of a known number of trials, whose latent function is the log odds.

A fit gives y as (N, 2), successes and trials. What predicts has the trials of each row in `trials`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import betainc, betaln, expit, gammaln

from nongauss.core.records import persistable
from nongauss.predictive.law import normal_points
from nongauss.prob.logistic import log1pexp
from nongauss.sparse_gp.likelihoods.base import (
    Expectation,
    FloatArray,
    IntArray,
    Likelihood,
    column,
    expected_softplus,
    no_params,
)
from nongauss.sparse_gp.likelihoods.points import expected_by_points

_HALF = 0.5  # of a count, where its logarithm is needed
_N_MOMENTS = 257
_STIRLING = 60.0
_NARROWEST = 5e-4  # sd, over which differences of gamma functions stand out of rounding
_WIDTH = 0.6  # of log p as a function of the log odds
_FARTHEST = 690.0  # log odds, beyond which a share counts as no smaller


@dataclass(frozen=True, kw_only=True)
class _OfTrials(Likelihood):
    """Successes among `trials`, one number or (N,) for each row of what is predicted."""

    trials: float | FloatArray = 1.0

    support = "count"
    takes_trials = True

    def at(self, rows: IntArray) -> Self:
        """With the trials of some rows."""
        return replace(self, trials=self.trials[rows]) if isinstance(self.trials, np.ndarray) else self

    def with_trials(self, trials: FloatArray) -> Self:
        """What predicts rows with so many trials each (N,)."""
        return replace(self, trials=trials)

    def split(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Successes and trials (N,) of what a fit gives."""
        return (y[:, 0], y[:, 1]) if y.ndim == 2 else (y, np.broadcast_to(self.trials, y.shape))

    def per_row(self, f: FloatArray) -> FloatArray:
        """The trials as they broadcast against f[..., 0]: (N, 1) where f has points for each row."""
        trials = np.asarray(self.trials)
        return trials[:, None] if trials.ndim and f.ndim > 2 else trials

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The log odds of all trials together."""
        successes, trials = self.split(y)
        hits, all_ = float(weight @ successes) + _HALF, float(weight @ trials) + 2.0 * _HALF
        return np.array([math.log(hits / (all_ - hits))]), np.zeros(0)

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Half way between the row's own log odds and the common ones, with the variance of the former."""
        successes, trials = self.split(y)
        hits, misses = successes + _HALF, trials - successes + _HALF
        own = column(np.log(hits / misses))
        return 0.5 * (own + offset), column(1.0 / hits + 1.0 / misses)

    def extra_variance(self, psi: FloatArray) -> FloatArray | float:
        """Variance of y given f, in units of the binomial's."""
        return 1.0

    def moments(
        self, mean: FloatArray, variance: FloatArray, psi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """n E s and n c E[s (1 - s)] + n^2 Var s, s the share, c the extra variance; by points."""
        z, log_weight = normal_points(_N_MOMENTS)
        weight = np.exp(log_weight)
        s = expit(mean + np.sqrt(variance) * z)
        first = s @ weight
        within, between = (s * (1.0 - s)) @ weight, ((s - first[..., None]) ** 2) @ weight
        n = np.asarray(self.trials)
        return n * first, n * self.extra_variance(psi) * within + n**2 * between

    @staticmethod
    def constant(y: FloatArray, n: FloatArray) -> FloatArray:
        """log of n over y, without what would cancel for one trial."""
        out: FloatArray = -np.log1p(n) - betaln(n - y + 1.0, y + 1.0)
        return out


@persistable("sparse_gp.likelihoods.Binomial")
@dataclass(frozen=True, kw_only=True)
class Binomial(_OfTrials):
    """y of n trials succeed, each with probability s(f), s the logistic function.

    log p = y f - n log(1 + e^f) + const: all it needs is the expected log(1 + e^f).
    """

    name = "binomial"
    own_rules = ("quadrature",)
    point_rules = ("monte_carlo",)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """y m - n E log(1 + e^f) + const."""
        y, n = self.split(y)
        softplus, share, curve = expected_softplus(mean, variance)
        value = (column(y) * mean - column(n) * softplus)[:, 0] + self.constant(y, n)
        return Expectation(value, column(y) - column(n) * share, -column(n) * curve, no_params(y))

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Binomial log probability; -inf above the number of trials."""
        n, f0 = self.per_row(f), f[..., 0]
        k = np.minimum(y, n)
        own = self.constant(k, n) - k * log1pexp(-f0) - (n - k) * log1pexp(f0)
        return np.where(y <= n, own, -np.inf)

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """The regularised incomplete beta function I_{1 - s}(n - floor(y), floor(y) + 1)."""
        n, k = self.per_row(f), np.floor(y)
        left = np.maximum(n - k, 1.0)
        return np.where(k >= n, 1.0, betainc(left, k + 1.0, expit(-f[..., 0])))

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Binomial draws."""
        n = np.broadcast_to(self.per_row(f), f.shape[:-1]).astype(np.int64)
        return rng.binomial(n, expit(f[..., 0])).astype(np.float64)

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """The root of the largest Fisher information, n / 4."""
        out: FloatArray = np.broadcast_to(0.5 * np.sqrt(self.trials), mean.shape[:-1]) + 0.5
        return out


@persistable("sparse_gp.likelihoods.BetaBinomial")
@dataclass(frozen=True, kw_only=True)
class BetaBinomial(_OfTrials):
    """Binomial with a share that varies from row to row, beta with mean s(f) and precision p; psi = (log p).

    log p(y) = log B(y + a, n - y + b) - log B(a, b) + const, a = p s(f), b = p s(-f).
    """

    name = "beta_binomial"
    param_names = ("dispersion",)

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The log odds; twice the precision that mean and variance of all rows have, within 1/2 and 10^4."""
        offset, _ = super().start(y, weight)
        successes, n = self.split(y)
        share = float(expit(offset[0]))
        square = (successes - n * share) ** 2 / (n * share * (1.0 - share))
        extra = float(np.average(square, weights=weight)) - 1.0
        size = float(np.average(n, weights=weight)) - 1.0
        precision = 2.0 * (size / extra - 1.0) if extra > 0.0 else math.inf
        return offset, np.log(np.clip([precision], 0.5, 1e4))

    def bounds(self) -> list[tuple[float, float]]:
        """From a twentieth to a million, which is binomial."""
        return [(math.log(0.05), math.log(1e6))]

    def shapes(self, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """a and b."""
        p, inner = math.exp(psi[0]), np.clip(f[..., 0], -_FARTHEST, _FARTHEST)
        return p * expit(inner), p * expit(-inner)

    def extra_variance(self, psi: FloatArray) -> FloatArray | float:
        """1 + (n - 1) / (p + 1)."""
        return 1.0 + (np.asarray(self.trials) - 1.0) / (math.exp(psi[0]) + 1.0)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """By points."""
        y, n = self.split(y)

        def log_prob(rows: IntArray, f: FloatArray, psi: FloatArray) -> FloatArray:
            return self._log_prob(y[rows, None], n[rows, None], f, psi)

        def sharp(mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
            return np.full(len(mean), 1.0 / _WIDTH)

        return expected_by_points(log_prob, sharp, mean, variance, psi, with_params, _NARROWEST)

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Beta-binomial log probability; -inf above the number of trials."""
        n = self.per_row(f)
        return np.where(y <= n, self._log_prob(np.minimum(y, n), n, f, psi), -np.inf)

    def _log_prob(self, y: FloatArray, n: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """log B(y + a, n - y + b) - log B(a, b) + const, the ratios of gamma functions one by one."""
        a, b = self.shapes(f, psi)
        rises = _log_rise(a, y) + _log_rise(b, n - y) - _log_rise(a + b, n)
        out: FloatArray = self.constant(y, n) + rises
        return out

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """The sum of the probabilities up to y."""
        n = np.broadcast_to(self.per_row(f), f.shape[:-1])
        top = np.broadcast_to(np.floor(y), f.shape[:-1])
        out = np.zeros(f.shape[:-1])
        for k in range(int(min(top.max(), n.max())) + 1):
            out += np.where((k <= top) & (k <= n), np.exp(self._log_prob(np.minimum(k, n), n, f, psi)), 0.0)
        return np.where(top >= n, 1.0, np.minimum(out, 1.0))

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Binomial draws of beta shares."""
        n = np.broadcast_to(self.per_row(f), f.shape[:-1]).astype(np.int64)
        a, b = (np.maximum(part, 1e-12) for part in self.shapes(f, psi))
        return rng.binomial(n, rng.beta(a, b)).astype(np.float64)

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """The root of the largest information, n / 4 over the extra variance."""
        size = np.sqrt(np.asarray(self.trials) / self.extra_variance(psi))
        out: FloatArray = np.broadcast_to(0.5 * size, mean.shape[:-1]) + 1.0 / _WIDTH
        return out


def _log_rise(a: FloatArray, k: FloatArray) -> FloatArray:
    """log of Gamma(a + k) / Gamma(a), 0 for k = 0; for large a the difference of Stirling's series."""
    a, k = np.broadcast_arrays(a, k)
    large = np.maximum(a, _STIRLING)
    above = large + k
    main = (large - 0.5) * np.log1p(k / large) + k * (np.log(above) - 1.0)
    rest = (1.0 / above - 1.0 / large) / 12.0 - (above**-3.0 - large**-3.0) / 360.0
    series = main + rest + (above**-5.0 - large**-5.0) / 1260.0
    return np.where(k == 0, 0.0, np.where(a > _STIRLING, series, gammaln(a + k) - gammaln(a)))

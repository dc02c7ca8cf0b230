"""Counts with a hurdle: whether there is any is one question, how many where there are some another.

So zeros may be more than a law of counts has, or fewer. Of the counts above 0 the law is that of counts
without its zeros: log p(y | f) - log(1 - p(0 | f)).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import betainc, expit, gammainc

from nongauss.core.records import persistable
from nongauss.predictive.rowwise import bounded_exp
from nongauss.prob.tails import log1mexp
from nongauss.sparse_gp.likelihoods.base import Expectation, FloatArray, IntArray, Likelihood
from nongauss.sparse_gp.likelihoods.count import NegativeBinomial, Poisson
from nongauss.sparse_gp.likelihoods.masses import _WithMasses
from nongauss.sparse_gp.likelihoods.points import expected_by_points

_WIDTH = 0.35  # of log(1 - p(0)) as a function of the log rate
_SMALL = -30.0  # log rate below which 1 - p(0) is the rate


class _AboveZero(Likelihood):
    """Counts of at least 1: those of another law, `whole`, without its zeros."""

    whole: ClassVar[Likelihood]

    support = "count"

    def check(self, y: FloatArray) -> None:
        """A count."""
        self.whole.check(y)

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As of the law with its zeros, a little lower."""
        offset, psi = self.whole.start(np.maximum(y - 0.5, 0.0), weight)
        return offset, psi

    def bounds(self) -> list[tuple[float, float]]:
        """As of the law with its zeros."""
        return self.whole.bounds()

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As of the law with its zeros, a little lower."""
        return self.whole.first_moments(np.maximum(y - 0.5, 0.0), offset)

    def log_some(self, f: FloatArray, psi: FloatArray) -> FloatArray:
        """log(1 - p(0 | f))."""
        inner = np.maximum(f, _SMALL)
        own = log1mexp(self.whole.log_prob(np.zeros(1), inner, psi))
        out: FloatArray = own + np.minimum(f[..., 0] - _SMALL, 0.0)
        return out

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """That of the law with its zeros, less E log(1 - p(0 | f)) by points."""

        def log_some(rows: IntArray, f: FloatArray, psi: FloatArray) -> FloatArray:
            return self.log_some(f, psi)

        def sharp(mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
            return np.full(len(mean), 1.0 / _WIDTH)

        of = self.whole.expected_log_prob(y, mean, variance, psi, with_params)
        less = expected_by_points(log_some, sharp, mean, variance, psi, with_params)
        return Expectation(*(whole - part for whole, part in zip(of, less, strict=True)))

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """log p(y | f) - log(1 - p(0 | f)); -inf at 0."""
        own = self.whole.log_prob(np.maximum(y, 1.0), f, psi) - self.log_some(f, psi)
        return np.where(y >= 1.0, own, -np.inf)

    @abstractmethod
    def survival(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """P(Y > y | f) of the law with its zeros, to full relative precision."""

    def cdf(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """1 - P(Y > y | f) / (1 - p(0 | f))."""
        left = self.survival(np.maximum(y, 0.0), f, psi) * np.exp(-np.maximum(self.log_some(f, psi), -700.0))
        out: FloatArray = np.where(y >= 1.0, 1.0 - np.minimum(left, 1.0), 0.0)
        return out

    def conditional_moments(self, f: FloatArray, psi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """mu / q and (s^2 + mu^2) / q - (mu / q)^2, q = 1 - p(0), mu and s^2 those of the law with zeros."""
        inner = np.maximum(f, _SMALL)
        mean, variance = self.whole.moments(inner, np.zeros_like(inner), psi)
        some = np.exp(self.log_some(inner, psi))
        first = mean / some
        return first, np.maximum((variance + mean**2) / some - first**2, 0.0)

    def sharpness(self, mean: FloatArray, sd: FloatArray, psi: FloatArray) -> FloatArray:
        """As of the law with its zeros, and of the share of zeros."""
        return self.whole.sharpness(mean, sd, psi) + 1.0


@persistable("sparse_gp.likelihoods.PoissonAboveZero")
class PoissonAboveZero(_AboveZero):
    """Poisson without zeros."""

    name = "poisson_above_zero"
    whole = Poisson()

    def survival(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """P(floor(y) + 1, e^f), the regularised lower incomplete gamma function."""
        out: FloatArray = gammainc(np.floor(y) + 1.0, bounded_exp(f[..., 0]))
        return out

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """The first event in time has happened at t < 1; those after it are Poisson with rate (1 - t) e^f."""
        rate = np.minimum(bounded_exp(np.maximum(f[..., 0], _SMALL)), 1e17)
        first = -np.log1p(rng.random(rate.shape) * np.expm1(-rate))
        out: FloatArray = 1.0 + rng.poisson(np.maximum(rate - first, 0.0)).astype(np.float64)
        return out


@persistable("sparse_gp.likelihoods.NegativeBinomialAboveZero")
class NegativeBinomialAboveZero(_AboveZero):
    """Negative binomial without zeros; psi = (log r)."""

    name = "negative_binomial_above_zero"
    whole = NegativeBinomial()
    param_names = NegativeBinomial.param_names

    def survival(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """The regularised incomplete beta function I_{1-p}(floor(y) + 1, r), p = r / (r + e^f)."""
        out: FloatArray = betainc(np.floor(y) + 1.0, math.exp(psi[0]), expit(f[..., 0] - psi[0]))
        return out

    def draw(self, f: FloatArray, psi: FloatArray, rng: np.random.Generator) -> FloatArray:
        """The first event comes after t < 1, by (1 + mu t / r)^-r; then the rate is gamma of shape r + 1."""
        r, rate = math.exp(psi[0]), np.minimum(bounded_exp(np.maximum(f[..., 0], _SMALL)), 1e17)
        some = -np.expm1(-r * np.log1p(rate / r))
        wait = np.expm1(-np.log1p(-rng.random(rate.shape) * some) / r) * r  # mu t
        own = rng.gamma(r + 1.0, 1.0 / (r + wait))
        later = np.minimum(own * np.maximum(rate - wait, 0.0), 1e18)
        out: FloatArray = 1.0 + rng.poisson(later).astype(np.float64)
        return out


@dataclass(frozen=True, kw_only=True)
class _HurdleCount(_WithMasses):
    """Counts: 0 with probability s(f_2), else at least 1, by f_1, whose log rate takes the exposure."""

    takes_exposure = True

    @property
    def rates(self) -> FloatArray:
        """The rest's function is a log rate."""
        return np.array([1.0, 0.0])

    def check(self, y: FloatArray) -> None:
        """A count."""
        Likelihood.check(self, y)


@persistable("sparse_gp.likelihoods.HurdlePoisson")
@dataclass(frozen=True, kw_only=True)
class HurdlePoisson(_HurdleCount):
    """Counts: 0 with probability s(f_2), else Poisson without its zeros."""

    rest: Likelihood = field(default_factory=PoissonAboveZero)

    name = "hurdle_poisson"
    support = "count"


@persistable("sparse_gp.likelihoods.HurdleNegativeBinomial")
@dataclass(frozen=True, kw_only=True)
class HurdleNegativeBinomial(_HurdleCount):
    """Counts: 0 with probability s(f_2), else negative binomial without its zeros."""

    rest: Likelihood = field(default_factory=NegativeBinomialAboveZero)

    name = "hurdle_negative_binomial"
    support = "count"
    param_names = NegativeBinomial.param_names

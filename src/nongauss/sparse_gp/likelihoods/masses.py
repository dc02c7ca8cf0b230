"""Targets with masses at 0 or 1, beside a likelihood of the rest or within it.

Each question has a latent function and a kernel of its own: f_1 of the rest, f_2 of whether y is at a
mass, and f_3, where there are two masses, of which. For a hurdle, with s the logistic function,

    log p(y | f) = log s(f_2) + log s(+-f_3)       y at a mass (without f_3 where there is one)
    log p(y | f) = log s(-f_2) + log p(y | f_1)    y elsewhere

so the bound is the sum of the bounds of several models: of Bernoulli processes, and of the rest on the rows
that are at no mass. Where the rest can be 0 as well (zero inflation) a row at 0 has a term in both functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.predictive.combined import mixture
from nongauss.predictive.composed import PointMassDistribution
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.law import LatentDistribution
from nongauss.prob.logistic import expected_log1pexp, expected_sigmoid, log1pexp
from nongauss.sparse_gp.likelihoods.base import (
    Expectation,
    FloatArray,
    IntArray,
    Likelihood,
    no_params,
)
from nongauss.sparse_gp.likelihoods.count import NegativeBinomial, Poisson
from nongauss.sparse_gp.likelihoods.label import Bernoulli
from nongauss.sparse_gp.likelihoods.points import points_by_width
from nongauss.sparse_gp.likelihoods.positive import Gamma, LogNormal
from nongauss.sparse_gp.likelihoods.share import Beta
from nongauss.sparse_gp.likelihoods.support import SUPPORTS, first_bad, room_for

GATE = Bernoulli()
"""What is known of whether y is at a mass, and at which of two."""

_WIDTH = 0.35
"""Of log p(0) as a function of the log rate, where a zero may be of either kind."""

_REST_GUESS = 0.5  # a value that any likelihood of the rest takes, where its log density is not used


@dataclass(frozen=True, kw_only=True)
class _WithMasses(Likelihood):
    """Values `masses` with probabilities of their own, and `rest`, of one latent function, elsewhere."""

    rest: Likelihood

    masses: ClassVar[tuple[float, ...]] = (0.0,)
    own_kernels = True
    several_modes = False

    @property
    def n_latent(self) -> int:
        """The rest's, whether y is at a mass, and at which of two."""
        return 1 + len(self.masses)

    @property
    def latent_names(self) -> tuple[str, ...]:
        """The rest's function has the plain names."""
        return "", "mass ", "which "

    @property
    def read_as(self) -> str:
        """The rest's: nothing that is not at a mass is rounded to it."""
        return self.rest.read_as

    def is_standard(self, latent: int) -> bool:
        """As the rest says of its own."""
        return latent == 0 and self.rest.is_standard(0)

    def bounds(self) -> list[tuple[float, float]]:
        """The rest's."""
        return self.rest.bounds()

    def log_prior(self, psi: FloatArray) -> tuple[float, FloatArray]:
        """The rest's."""
        return self.rest.log_prior(psi)

    def readable(self, psi: FloatArray, scale: float) -> dict[str, float]:
        """The rest's."""
        return self.rest.readable(psi, scale)

    def questions(self, y: FloatArray) -> Iterator[tuple[int, IntArray, FloatArray]]:
        """(latent function, rows that tell of it, their 0 or 1) of each question but the rest's."""
        at = np.isin(y, self.masses)
        yield 1, np.arange(len(y)), at.astype(np.float64)
        if len(self.masses) > 1:
            rows = np.flatnonzero(at)
            yield 2, rows, (y[rows] == self.masses[1]).astype(np.float64)

    def others(self, y: FloatArray) -> IntArray:
        """Rows that tell of the rest: those at no mass."""
        return np.flatnonzero(~np.isin(y, self.masses))

    def check(self, y: FloatArray) -> None:
        """At a mass, or in the support of the rest."""
        rule, is_bad = SUPPORTS[self.rest.support]
        values = " or ".join(f"{value:g}" for value in self.masses)
        bad = is_bad(y) & ~np.isin(y, self.masses)
        first_bad(y, bad, self.name, f"that is {values} or {rule.removeprefix('that is ')}", room_for(y))

    def adapted(self, y: FloatArray, weight: FloatArray, scale: float) -> Likelihood:
        """With the rest adapted to its rows."""
        rows = self._of_rest(y)
        return replace(self, rest=self.rest.adapted(y[rows], weight[rows], scale))

    def _of_rest(self, y: FloatArray) -> IntArray:
        """`others`, of which there has to be one. Raises InputError."""
        rows = self.others(y)
        if not len(rows):
            values = " or ".join(f"{value:g}" for value in self.masses)
            raise InputError(
                f"Every y is {values}: the {self.name} likelihood has no row to learn other values from; "
                "predict whether it is one or the other by a classifier, or find rows with other values."
            )
        return rows

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Each function where it would start alone."""
        rows = self._of_rest(y)
        offset, psi = self.rest.start(y[rows], weight[rows])
        gates = [GATE.start(label, weight[own])[0] for _, own, label in self.questions(y)]
        return np.concatenate([offset, *gates]), psi

    def first_moments(self, y: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Each function's guess from the rows that tell of it, and about `offset` elsewhere."""
        mean, variance = np.array(offset), np.ones_like(offset)
        rows = self.others(y)
        mean[rows, :1], variance[rows, :1] = self.rest.first_moments(y[rows], offset[rows, :1])
        return mean, variance

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """The sum of what each function has to say, on the rows that tell of it."""
        n_params = len(psi) if with_params else 0
        out = Expectation(
            np.zeros(len(y)), np.zeros_like(mean), np.zeros_like(mean), np.zeros((len(y), n_params))
        )
        rows = self.others(y)
        of = self.rest.expected_log_prob(y[rows], mean[rows, :1], variance[rows, :1], psi, with_params)
        _add(out, rows, 0, of)
        for latent, own, label in self.questions(y):
            at = mean[own, latent, None], variance[own, latent, None]
            _add(out, own, latent, GATE.expected_log_prob(label, *at, np.zeros(0)))
        return out

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """By the two cases of the module's docstring."""
        at = np.isin(y, self.masses)
        mass = -log1pexp(-f[..., 1])
        if len(self.masses) > 1:
            mass = mass - log1pexp(np.where(y == self.masses[1], -1.0, 1.0) * f[..., 2])
        rest = self.rest.log_prob(np.where(at, _REST_GUESS, y), f[..., :1], psi)
        return np.where(at, mass, rest - log1pexp(f[..., 1]))

    def predictive(
        self,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> PredictiveDistribution:
        """A mixture of a point at each mass and the law of the rest, with probabilities E s(f)."""
        m, v = (np.reshape(part, (-1, *part.shape[-2:]))[0] for part in (mean, variance))
        at, none = (expected_sigmoid(sign * m[:, 1], v[:, 1]) for sign in (1.0, -1.0))
        shares = [at]
        if len(self.masses) > 1:
            shares = [at * expected_sigmoid(sign * m[:, 2], v[:, 2]) for sign in (-1.0, 1.0)]
        rest = LatentDistribution(self.rest, psi, m[:, 0], v[:, 0], scale=scale)
        points = [
            PointMassDistribution(scale * value, len(m), discrete=rest.is_discrete) for value in self.masses
        ]
        return mixture([*points, rest], _to_one(np.stack([*shares, none], axis=1)))


def _add(out: Expectation, rows: IntArray, latent: int, of: Expectation) -> None:
    """Add what one function says of some rows."""
    out.value[rows] += of.value
    out.d_mean[rows, latent] += of.d_mean[:, 0]
    out.d_variance[rows, latent] += of.d_variance[:, 0]
    if of.d_params.shape[1]:
        out.d_params[rows] += of.d_params


def _to_one(shares: FloatArray) -> FloatArray:
    """Rows that sum to 1 but for rounding, made to do so exactly."""
    out: FloatArray = shares / shares.sum(axis=1, keepdims=True)
    return out


@persistable("sparse_gp.likelihoods.HurdleGamma")
@dataclass(frozen=True, kw_only=True)
class HurdleGamma(_WithMasses):
    """Amounts with exact zeros: 0 with probability s(f_2), else gamma with mean e^{f_1}."""

    rest: Likelihood = field(default_factory=Gamma)

    name = "hurdle_gamma"
    target = "scaled"
    param_names = Gamma.param_names


@persistable("sparse_gp.likelihoods.HurdleLogNormal")
@dataclass(frozen=True, kw_only=True)
class HurdleLogNormal(_WithMasses):
    """Amounts with exact zeros: 0 with probability s(f_2), else log-normal."""

    rest: Likelihood = field(default_factory=LogNormal)

    name = "hurdle_log_normal"
    target = "scaled"
    param_names = LogNormal.param_names


@persistable("sparse_gp.likelihoods.ZeroOneBeta")
@dataclass(frozen=True, kw_only=True)
class ZeroOneBeta(_WithMasses):
    """Shares with exact 0 or 1: one of both with probability s(f_2), then 1 with s(f_3); else beta."""

    rest: Likelihood = field(default_factory=Beta)

    name = "zero_one_beta"
    masses = (0.0, 1.0)
    param_names = Beta.param_names


@dataclass(frozen=True, kw_only=True)
class _ZeroInflated(_WithMasses):
    """Counts of `rest` with more zeros: 0 with probability s(f_2), else a count, which may be 0 as well.

    With l(f_1) = log p(0 | f_1) of the rest, log p(0) = l(f_1) + log(1 + e^{f_2 - l(f_1)}) - log(1 + e^f_2).
    """

    takes_exposure = True

    @property
    def latent_names(self) -> tuple[str, ...]:
        """The rest's function has the plain names."""
        return "", "zero "

    @property
    def rates(self) -> FloatArray:
        """The rest's function is a log rate."""
        return np.array([1.0, 0.0])

    def check(self, y: FloatArray) -> None:
        """A count."""
        Likelihood.check(self, y)

    def others(self, y: FloatArray) -> IntArray:
        """Counts above 0, which are the rest's for certain."""
        return np.flatnonzero(y > 0)

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rest's parameters of the counts above 0; of the zeros half are more than it has."""
        offset, psi = super().start(y, weight)
        share = float(weight[y == 0].sum()) + 1.0
        offset[1] = np.log(0.5 * share / (float(weight.sum()) + 2.0 - 0.5 * share))
        return offset, psi

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """As of a hurdle for counts above 0; of zeros by `_zeros`, less E log(1 + e^{f_2}) of all."""
        n_params = len(psi) if with_params else 0
        out = Expectation(
            np.zeros(len(y)), np.zeros_like(mean), np.zeros_like(mean), np.zeros((len(y), n_params))
        )
        rows, zeros = np.flatnonzero(y > 0), np.flatnonzero(y == 0)
        of = self.rest.expected_log_prob(y[rows], mean[rows, :1], variance[rows, :1], psi, with_params)
        _add(out, rows, 0, of)
        every = GATE.expected_log_prob(np.zeros(len(y)), mean[:, 1:], variance[:, 1:], np.zeros(0))
        _add(out, np.arange(len(y)), 1, every)
        if len(zeros):
            at = self._zeros(mean[zeros], variance[zeros], psi, with_params)
            for part, own in zip(out, at, strict=True):
                part[zeros] += own
        return out

    def _zeros(
        self, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """E[l(f_1) + log(1 + e^{f_2 - l(f_1)})]: over f_2 exactly, over f_1 by the trapezoid rule.

        With h(m, v) = E log(1 + e^x), x ~ N(m, v), the integrand is m_2 + h(l - m_2, v_2), whose derivatives
        by f_1 are h_m l' and h_m l'' + 2 h_v l'^2, since h_mm = 2 h_v. So written nothing cancels where
        l = -e^{f_1} is huge.
        """
        n_params = len(psi) if with_params else 0
        shapes = ((), (2,), (2,), (n_params,))
        out = Expectation(*(np.empty((len(mean), *shape)) for shape in shapes))
        for rows, z, weights in points_by_width(np.sqrt(variance[:, 0]) / _WIDTH, 1):
            f = mean[rows, :1] + np.sqrt(variance[rows, :1]) * z[:, 0]
            at = self._zeros_at(f, mean[rows, 1:], variance[rows, 1:], weights, psi, with_params)
            for part, own in zip(out, at, strict=True):
                part[rows] = own
        return out

    def _zeros_at(
        self,
        f: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        weights: FloatArray,
        psi: FloatArray,
        with_params: bool,
    ) -> Expectation:
        """`_zeros` by given points f_1 (N, Q), weights (Q,); mean and variance (N, 1) are those of f_2."""
        flat = f.reshape(-1, 1)
        at = self.rest.own_expectation(np.zeros(len(flat)), flat, np.zeros_like(flat), psi, with_params)
        log_p, slope, half_curve = (
            part.reshape(f.shape) for part in (at.value, at.d_mean[:, 0], at.d_variance[:, 0])
        )
        h, left, by_v = expected_log1pexp(log_p - mean, variance)
        d_mean = np.stack([(left * slope) @ weights, (1.0 - left) @ weights], axis=1)
        d_variance = np.stack([(left * half_curve + by_v * slope**2) @ weights, by_v @ weights], axis=1)
        by_psi = no_params(mean[:, 0])
        if with_params:
            by_psi = np.einsum("nq,nqk,q->nk", left, at.d_params.reshape(*f.shape, -1), weights)
        return Expectation((mean + h) @ weights, d_mean, d_variance, by_psi)

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """log(s(f_2) [y = 0] + s(-f_2) p(y | f_1))."""
        own = self.rest.log_prob(y, f[..., :1], psi) - log1pexp(f[..., 1])
        out: FloatArray = np.where(y == 0, np.logaddexp(-log1pexp(-f[..., 1]), own), own)
        return out


@persistable("sparse_gp.likelihoods.ZeroInflatedPoisson")
@dataclass(frozen=True, kw_only=True)
class ZeroInflatedPoisson(_ZeroInflated):
    """Counts: 0 with probability s(f_2), else Poisson with mean e^{f_1}."""

    rest: Likelihood = field(default_factory=Poisson)

    name = "zero_inflated_poisson"
    support = "count"


@persistable("sparse_gp.likelihoods.ZeroInflatedNegativeBinomial")
@dataclass(frozen=True, kw_only=True)
class ZeroInflatedNegativeBinomial(_ZeroInflated):
    """Counts: 0 with probability s(f_2), else negative binomial with mean e^{f_1}."""

    rest: Likelihood = field(default_factory=NegativeBinomial)

    name = "zero_inflated_negative_binomial"
    support = "count"
    param_names = NegativeBinomial.param_names

"""Likelihoods of labels: Bernoulli and multinomial logistic, and cumulative logistic for ordered classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.prob.logistic import expected_sigmoid, log1pexp
from nongauss.prob.piecewise import expected_bound
from nongauss.prob.softmax import SOFTMAX, expected_softmax
from nongauss.sparse_gp.likelihoods.base import (
    Expectation,
    FloatArray,
    IntArray,
    Likelihood,
    column,
    expected_softplus,
    no_params,
)
from nongauss.sparse_gp.likelihoods.support import first_bad

_SMALLEST_GAP = 1e-3  # between two cut points
_SMALLEST_PROBABILITY = 1e-300
_LARGEST_POWER = 6.0
_POWER_SD = 0.7  # of the log-normal prior of a power


@dataclass(frozen=True, kw_only=True)
class _Label(Likelihood):
    """y holds class numbers 0..C-1."""

    n_classes: int = 2

    is_label = True

    def check(self, y: FloatArray) -> None:
        """A class number."""
        bad = ~((y >= 0) & (y < self.n_classes) & (y == np.round(y)))
        rule = f"that is a class number from 0 to {self.n_classes - 1}"
        first_bad(y, bad, self.name, rule, "number the classes from 0 and declare all of them")

    def predictive(
        self,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> PredictiveDistribution:
        """Labels have probabilities, and no distribution of a number."""
        raise TypeError(f"The {self.name} likelihood predicts labels; ask for its probabilities.")

    def probabilities_given(self, f: FloatArray, psi: FloatArray) -> FloatArray:
        """P(y = c | f) of each class, for f (N, L): (N, C)."""
        classes = np.arange(self.n_classes, dtype=np.float64)
        logs = [self.log_prob(np.full(len(f), c), f, psi) for c in classes]
        return np.exp(np.stack(logs, axis=1))

    def class_weights(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        """The weight of each class (C,) with half a row more, so that none is empty."""
        counts = np.bincount(_numbers(y), weights=weight, minlength=self.n_classes)
        return counts.astype(np.float64) + 0.5


@dataclass(frozen=True, kw_only=True)
class _Logistic(_Label):
    """Made of log(1 + e^f): expected to 1e-9, or bounded from above by `n_pieces`, 2 to 20.

    The pieces are quadratics ("piecewise") or straight lines ("piecewise_linear").
    """

    n_pieces: int = 20

    own_rules: ClassVar[tuple[str, ...]] = ("quadrature", "piecewise", "piecewise_linear")
    point_rules: ClassVar[tuple[str, ...]] = ("monte_carlo",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.n_pieces <= 20:
            raise InputError(f"n_pieces must be a whole number from 2 to 20, got {self.n_pieces!r}.")

    def softplus(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """E log(1 + e^f), or a bound from above, with its derivatives by mean and variance."""
        if self.rule != "quadrature" and self.rule in self.own_rules:
            return expected_bound(mean, variance, self.n_pieces, 1 if self.rule == "piecewise_linear" else 2)
        return expected_softplus(mean, variance)


@persistable("sparse_gp.likelihoods.Bernoulli", "nongauss.sparse_gp.likelihoods.label:Bernoulli")
class Bernoulli(_Logistic):
    """y in {0, 1}, P(y = 1) = s(f), s the logistic function."""

    name = "bernoulli"

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The log odds of the classes."""
        zeros, ones = self.class_weights(y, weight)
        return np.array([math.log(ones / zeros)]), np.zeros(0)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """-E log(1 + e^{-f}) for y = 1, -E log(1 + e^f) for y = 0."""
        sign = 1.0 - 2.0 * column(y)
        value, slope, curve = self.softplus(sign * mean, variance)
        return Expectation(-value[:, 0], -sign * slope, -curve, no_params(y))

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """log s(f) or log s(-f)."""
        return -log1pexp((1.0 - 2.0 * y) * f[..., 0])

    def probabilities(self, mean: FloatArray, variance: FloatArray, psi: FloatArray) -> FloatArray:
        """E s(-f) and E s(f): (N, 2)."""
        m, v = mean[..., 0], variance[..., 0]
        return _normalised(np.stack([expected_sigmoid(-m, v), expected_sigmoid(m, v)], axis=-1))


@persistable("sparse_gp.likelihoods.Multinomial", "nongauss.sparse_gp.likelihoods.label:Multinomial")
@dataclass(frozen=True, kw_only=True)
class Multinomial(_Label):
    """y in 0..C-1, P(y = c) proportional to e^{f_c}: one latent function a class.

    E log sum e^f has no closed form. `expectation` is "monte_carlo" (quasi-random draws: no bound, but the
    closest) or a bound: "one_vs_each", "tilted", "bouchard", "bohning" or "jensen". q has independent latent
    functions, which makes predictions timid: they are raised to a `power`, and normalised again, that fits
    training rows left out.
    """

    power: float = 1.0

    name = "multinomial"
    own_rules = tuple(SOFTMAX)
    recalibrates = True
    first_step = 0.8
    """Below 1: curvature between classes, which sites leave out, is up to that within them."""

    @property
    def n_latent(self) -> int:
        """One for each class."""
        return self.n_classes

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logs of the classes' shares, centred."""
        logs = np.log(self.class_weights(y, weight))
        return logs - logs.mean(), np.zeros(0)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """E f_y - E log sum_c e^{f_c}, or a bound from below."""
        return Expectation(*SOFTMAX[self.rule](_numbers(y), mean, variance), no_params(y))

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """The class's log share."""
        number = np.broadcast_to(_numbers(y), f.shape[:-1])[..., None]
        out: FloatArray = np.take_along_axis(f, number, axis=-1)[..., 0] - logsumexp(f, axis=-1)
        return out

    def probabilities(self, mean: FloatArray, variance: FloatArray, psi: FloatArray) -> FloatArray:
        """E softmax(f), to the power and normalised again: (N, C)."""
        found: FloatArray = expected_softmax(mean, variance)
        return found if self.power == 1.0 else _to_power(found, self.power)

    def probabilities_given(self, f: FloatArray, psi: FloatArray) -> FloatArray:
        """softmax(f), to the power and normalised again."""
        return super().probabilities_given(self.power * f, psi)

    def recalibrated(
        self, y: FloatArray, weight: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray
    ) -> Likelihood:
        """With the power T that maximises sum_n w_n log p(y_n) + log N(log T; 0, sd^2), rows left out."""
        logs = np.log(expected_softmax(mean, variance))
        own = logs[np.arange(len(y)), _numbers(y)]

        def loss(log_power: float) -> float:
            power = math.exp(log_power)
            density = power * own - logsumexp(power * logs, axis=1)
            return 0.5 * (log_power / _POWER_SD) ** 2 - float(weight @ density)

        reach = math.log(_LARGEST_POWER)
        best = minimize_scalar(loss, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-3})
        return replace(self, power=math.exp(float(best.x)))


@persistable("sparse_gp.likelihoods.Ordinal", "nongauss.sparse_gp.likelihoods.label:Ordinal")
class Ordinal(_Logistic):
    """y in 0..C-1 in order, P(y <= k) = s(phi_k - f) (McCullagh 1980); psi = (phi_0, log gaps of cuts phi).

    log p(y) = log(1 - e^{phi_{y-1} - phi_y}) - llp(f - phi_y) - llp(phi_{y-1} - f), llp(x) = log(1 + e^x),
    without the terms of cuts that are not there. No difference of two probabilities is taken, so it is
    finite everywhere. f has mean 0, since the cuts can move instead; a gap has a floor, so that a class that
    nobody has seen keeps a place.
    """

    name = "ordinal"

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Cut points at the log odds of the cumulative shares."""
        total = np.cumsum(self.class_weights(y, weight))
        cuts = np.log(total[:-1]) - np.log(total[-1] - total[:-1])
        return np.zeros(1), np.concatenate(
            [cuts[:1], np.log(np.maximum(np.diff(cuts), 0.02) - _SMALLEST_GAP)]
        )

    def cuts(self, psi: FloatArray) -> FloatArray:
        """The C - 1 cut points, increasing."""
        gaps = _SMALLEST_GAP + np.exp(psi[1:])
        cuts: FloatArray = psi[0] + np.concatenate([[0.0], np.cumsum(gaps)])
        return cuts

    def bounds(self) -> list[tuple[float, float]]:
        """The first cut within 50 of 0, gaps up to 55."""
        return [(-50.0, 50.0), *[(-9.0, 4.0)] * (self.n_classes - 2)]

    def log_prior(self, psi: FloatArray) -> tuple[float, FloatArray]:
        """Normal, sd 10 for the first cut and 2 for log gaps: holds cuts of classes that are hardly seen."""
        sd = np.concatenate([[10.0], np.full(len(psi) - 1, 2.0)])
        z = psi / sd
        return -0.5 * float(z @ z), -z / sd

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """Two expectations of llp, and the log of the gap's share."""
        cuts, number, m, v = self.cuts(psi), _numbers(y), mean[:, 0], variance[:, 0]
        value, by_m, by_v = np.zeros((3, len(y)))
        by_cuts = np.zeros((len(y), len(cuts)))
        for sign, rows, cut in sides(number, len(cuts)):
            part, slope, curve = self.softplus(sign * (m[rows] - cuts[cut]), v[rows])
            value[rows] -= part
            by_m[rows] -= sign * slope
            by_v[rows] -= curve
            by_cuts[rows, cut] += sign * slope
        inner = np.flatnonzero((number > 0) & (number < len(cuts)))
        above = number[inner]
        gap = cuts[above] - cuts[above - 1]
        value[inner] += np.log(-np.expm1(-gap))
        if not with_params:
            return Expectation(value, column(by_m), column(by_v), no_params(y))
        pull = 1.0 / np.expm1(gap)
        by_cuts[inner, above] += pull
        by_cuts[inner, above - 1] -= pull
        later = np.cumsum(by_cuts[:, ::-1], axis=1)[:, ::-1]  # a gap moves every cut after it
        return Expectation(value, column(by_m), column(by_v), later * np.exp(np.r_[0.0, psi[1:]]))

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """Log probability of the class."""
        cuts, number = self.cuts(psi), _numbers(y)
        inside = np.log(-np.expm1(-np.diff(cuts)))
        share = np.concatenate([[0.0], inside, [0.0]])[: self.n_classes][number]
        low, high = np.r_[-np.inf, cuts][number], np.r_[cuts, np.inf][number]
        out: FloatArray = share - log1pexp(f[..., 0] - high) - log1pexp(low - f[..., 0])
        return out

    def probabilities(self, mean: FloatArray, variance: FloatArray, psi: FloatArray) -> FloatArray:
        """Differences of cumulative probabilities, each taken on the side where they are small: (N, C)."""
        at = self.cuts(psi) - mean[..., :1]
        spread = np.broadcast_to(variance[..., :1], at.shape)
        below, above = expected_sigmoid(at, spread), expected_sigmoid(-at, spread)
        return from_cumulative(below, above)


def from_cumulative(below: FloatArray, above: FloatArray) -> FloatArray:
    """Probabilities of classes (N, C) from P(y <= k) and P(y > k), each difference where both are small."""
    none = np.zeros((*below.shape[:-1], 1))
    from_below = np.diff(np.concatenate([none, below, none + 1.0], axis=-1))
    from_above = -np.diff(np.concatenate([none + 1.0, above, none], axis=-1))
    is_low = np.concatenate([below < above, none > 0], axis=-1)
    return _normalised(np.where(is_low, from_below, from_above))


def _numbers(y: FloatArray) -> IntArray:
    """Class numbers as integers."""
    return y.astype(np.intp)


def sides(number: IntArray, n_cuts: int) -> Iterator[tuple[float, IntArray, IntArray]]:
    """(sign, rows, cut) of the terms -llp(sign * (f - cut)): of the cuts above y, then of those below."""
    above, below = np.flatnonzero(number < n_cuts), np.flatnonzero(number > 0)
    yield 1.0, above, number[above]
    yield -1.0, below, number[below] - 1


def _to_power(probabilities: FloatArray, power: float) -> FloatArray:
    """Probabilities (N, C) to a power, rows normalised again; in logs, so that none vanishes."""
    logs = power * np.log(probabilities)
    logs -= logsumexp(logs, axis=1, keepdims=True)
    return _normalised(np.exp(logs))


def _normalised(probabilities: FloatArray) -> FloatArray:
    """Positive, with rows that sum to 1; a leading axis of components (C, N, L) is averaged."""
    positive = np.maximum(probabilities, _SMALLEST_PROBABILITY)
    positive = positive.reshape(-1, *positive.shape[-2:]).mean(axis=0)
    out: FloatArray = positive / positive.sum(axis=-1, keepdims=True)
    return out

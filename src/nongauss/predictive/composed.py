"""Laws whose logarithm, or what they are rounded from, is a mixture of Gaussians; and a point mass.

Their moments, densities and quantiles are exact: nothing is simulated or tabulated.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from nongauss.predictive import crps
from nongauss.predictive.distribution import (
    FloatArray,
    PredictiveDistribution,
    checked_count,
    checked_levels,
    checked_target,
)
from nongauss.predictive.mixture import GaussianMixtureDistribution
from nongauss.predictive.rowwise import bounded_exp
from nongauss.prob.tails import log_normal_interval

_SMOOTH_SD = 1.2
"""Standard deviation from which rounding adds 1/12 to a normal's variance and else less than 1e-12."""

_REACH = 10
"""Whole numbers to either side of the mean that are summed over where a normal is narrower than that."""


class _OfGaussians(PredictiveDistribution):
    """A law of one number a row that is a function of a number whose law is a mixture of Gaussians."""

    def __init__(self, inner: GaussianMixtureDistribution) -> None:
        self.inner = inner
        self._mean, self._variance = np.empty(len(inner)), np.empty(len(inner))
        for rows, log_weights, means, sds in inner._blocks():
            weight = np.exp(log_weights)
            mean, variance = self._component_moments(means[..., 0], sds[..., 0])
            total = (weight * mean).sum(axis=1)
            self._mean[rows] = total
            self._variance[rows] = (weight * (variance + (mean - total[:, None]) ** 2)).sum(axis=1)

    @staticmethod
    @abstractmethod
    def _component_moments(mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the function of a normal, elementwise."""

    def __len__(self) -> int:
        return len(self.inner)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_rows={len(self)})"

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        """The laws of the rows of these numbers; the moments are known."""
        out = copy(self)
        out.inner = self.inner._take(rows)
        out._mean, out._variance = self._mean[rows], self._variance[rows]
        return out

    @property
    def mean(self) -> FloatArray:
        """Expectation, exact: (N,)."""
        return self._mean.copy()

    @property
    def variance(self) -> FloatArray:
        """Variance, exact: (N,)."""
        return self._variance.copy()


def shifted(law: GaussianMixtureDistribution, by: FloatArray) -> GaussianMixtureDistribution:
    """The law of y + by, by (N,), of one number a row."""

    def components(rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        log_weights, means, sds = (np.asarray(part) for part in law._components(rows))
        return log_weights, means + by[rows, None, None], sds

    mean = law._mean + by[:, None]
    return GaussianMixtureDistribution(
        mean, law._variance, components, squeeze=law._squeeze, n_components=law.n_components
    )


@final
class LogNormalDistribution(_OfGaussians):
    """y > 0 whose logarithm is a mixture of Gaussians, `inner`."""

    @staticmethod
    def _component_moments(mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """M = e^{m + s^2/2} and M^2 (e^{s^2} - 1)."""
        first = bounded_exp(mean + 0.5 * sd**2)
        return first, np.minimum(first**2, 1e300) * np.expm1(np.minimum(sd**2, 18.0))

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Quantiles at the levels q: (N,) for one, (N, Q) for (Q,)."""
        with np.errstate(over="ignore"):
            out: FloatArray = np.exp(self.inner.quantile(q))
        return out

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y <= y): (N,)."""
        inside, log_y = self._log(y)
        return np.where(inside, self.inner.cdf(log_y), 0.0)

    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """Log density at `y`: (N,); -inf where y cannot be."""
        inside, log_y = self._log(y)
        return np.where(inside, self.inner.log_prob(log_y) - log_y, -np.inf)

    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` draws for each row: (N, n). Equal `random_state`, equal draws."""
        with np.errstate(over="ignore"):
            out: FloatArray = np.exp(self.inner.sample(n, random_state))
        return out

    def crps(self, y: npt.ArrayLike) -> FloatArray:
        """Continuous ranked probability score at `y`, in closed form: (N,)."""
        target = checked_target(y, (len(self),))
        out = np.empty(len(self))
        for rows, log_weights, means, sds in self.inner._blocks():
            out[rows] = crps.log_gaussians(target[rows], np.exp(log_weights), means[..., 0], sds[..., 0])
        return out

    def _log(self, y: npt.ArrayLike) -> tuple[npt.NDArray[np.bool_], FloatArray]:
        """Where y is above 0, and its logarithm there, (N,) each."""
        target = checked_target(y, (len(self),))
        inside = target > 0
        return inside, np.log(np.where(inside, target, 1.0))


@final
class RoundedDistribution(_OfGaussians):
    """The whole number nearest to a number whose law is a mixture of Gaussians, `inner`.

    P(Y = k) = P(k - 1/2 < Z <= k + 1/2), to full relative precision in both tails.
    """

    @staticmethod
    def _component_moments(mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """m and s^2 + 1/12 of a wide normal (Sheppard 1898); of a narrow one sums over whole numbers."""
        first, second = np.array(mean), sd**2 + 1.0 / 12.0
        narrow = sd < _SMOOTH_SD
        m, s = mean[narrow], sd[narrow]
        middle = np.round(m)
        at = np.zeros((2, len(m)))
        for k in range(-_REACH, _REACH + 1):
            low, high = (middle + (k - 0.5) - m) / s, (middle + (k + 0.5) - m) / s
            mass = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
            at += mass * np.array([[k], [k**2]])
        first[narrow], second[narrow] = middle + at[0], at[1] - at[0] ** 2
        return first, second

    @property
    def is_discrete(self) -> bool:
        """Whole numbers have probabilities."""
        return True

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """The smallest whole number with P(Y <= y) >= q: (N,) for one level, (N, Q) for (Q,)."""
        out: FloatArray = np.ceil(self.inner.quantile(q) - 0.5) + 0.0
        return out

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y <= y): (N,)."""
        return self.inner.cdf(np.floor(checked_target(y, (len(self),))) + 0.5)

    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """Log probability at `y`: (N,); -inf where y is no whole number."""
        target = checked_target(y, (len(self),))
        whole = (target == np.floor(target)) & np.isfinite(target)
        safe = np.where(whole, target, 0.0)
        out = np.empty(len(target))
        for rows, log_weights, means, sds in self.inner._blocks():
            at, m, s = safe[rows, None], means[..., 0], sds[..., 0]
            out[rows] = np.logaddexp.reduce(
                log_weights + log_normal_interval((at - 0.5 - m) / s, (at + 0.5 - m) / s), axis=1
            )
        return np.where(whole, out, -np.inf)

    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` draws for each row: (N, n). Equal `random_state`, equal draws."""
        out: FloatArray = np.ceil(self.inner.sample(n, random_state) - 0.5) + 0.0
        return out


@final
class PointMassDistribution(PredictiveDistribution):
    """y is one value, for sure: what other laws are mixed with where that value has a probability of its own.

    `discrete`: are the laws beside it those of counts?
    """

    def __init__(self, value: float, n_rows: int, *, discrete: bool = False) -> None:
        self._value, self._n_rows, self._discrete = value, n_rows, discrete

    def __len__(self) -> int:
        return self._n_rows

    def _take(self, rows: npt.NDArray[np.intp]) -> PointMassDistribution:
        """The value for as many rows."""
        return PointMassDistribution(self._value, len(rows), discrete=self._discrete)

    def crps(self, y: npt.ArrayLike) -> FloatArray:
        """|y - value|: (N,)."""
        out: FloatArray = np.abs(checked_target(y, (len(self),)) - self._value)
        return out

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value:g}, n_rows={len(self)})"

    @property
    def is_discrete(self) -> bool:
        """Are the laws beside it those of counts?"""
        return self._discrete

    @property
    def atoms(self) -> tuple[float, ...]:
        """The value, where the laws beside it have densities."""
        return () if self._discrete else (self._value,)

    @property
    def mean(self) -> FloatArray:
        """The value: (N,)."""
        return np.full(len(self), self._value)

    @property
    def variance(self) -> FloatArray:
        """Zeros: (N,)."""
        return np.zeros(len(self))

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """The value, whatever the level: (N,) for one, (N, Q) for (Q,)."""
        return np.full((len(self), *checked_levels(q).shape), self._value)

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """0 below the value, else 1: (N,)."""
        return (checked_target(y, (len(self),)) >= self._value).astype(np.float64)

    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """0 at the value, else -inf: (N,)."""
        return np.where(checked_target(y, (len(self),)) == self._value, 0.0, -np.inf)

    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """The value, `n` times for each row: (N, n)."""
        return np.full((len(self), checked_count(n)), self._value)

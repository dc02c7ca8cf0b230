"""The law of one number, what a prediction missed: kernels at what was missed before, and a wide one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr
from scipy.stats import cauchy

FloatArray = npt.NDArray[np.float64]

_MOST_RESIDUALS = 600
_POINTS = 2001
_FARTHEST = 600.0


@dataclass(frozen=True)
class Residuals:
    """A law of one number e: kernels at n residuals, and one wide Cauchy law for the (n + 1)th.

    `centres` (K,) and `width` are those of equally weighted normal kernels; one kernel is a normal law. The
    wide law has the weight 1 / (n + 1) that an exchangeable new residual has of being unlike all others.
    """

    centres: FloatArray
    width: float
    middle: float
    spread: float
    n: int

    def log_prob(self, e: FloatArray) -> FloatArray:
        """Log density at e (N,)."""
        inside = np.empty(len(e))
        for start in range(0, len(e), 4096):
            z = (e[start : start + 4096, None] - self.centres) / self.width
            inside[start : start + 4096] = logsumexp(-0.5 * z**2, axis=1)
        inside -= np.log(self.width * len(self.centres)) + 0.5 * np.log(2.0 * np.pi)
        wide = cauchy.logpdf(e, self.middle, 2.0 * self.spread)
        out: FloatArray = np.logaddexp(inside + np.log1p(-1.0 / (self.n + 1)), wide - np.log(self.n + 1.0))
        return out

    def cdf(self, e: FloatArray) -> FloatArray:
        """P(E <= e), e (N,)."""
        inside = np.empty(len(e))
        for start in range(0, len(e), 4096):
            z = (e[start : start + 4096, None] - self.centres) / self.width
            inside[start : start + 4096] = ndtr(z).mean(axis=1)
        out: FloatArray = (self.n * inside + cauchy.cdf(e, self.middle, 2.0 * self.spread)) / (self.n + 1)
        return out

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        """The distribution function at many numbers, the wide law's far quantiles among them."""
        reach = 2.0 * self.spread * _FARTHEST
        body = np.linspace(self.centres.min() - 6 * self.width, self.centres.max() + 6 * self.width, _POINTS)
        numbers = np.sort(np.concatenate([body, self.middle + reach * np.linspace(-1.0, 1.0, 101) ** 3]))
        return self.cdf(numbers), numbers

    def quantile(self, level: FloatArray | float) -> FloatArray:
        """The numbers below which e stays with these probabilities, of any shape, from a table."""
        return np.asarray(np.interp(level, *self._table), dtype=np.float64)


@dataclass(frozen=True)
class Unlike:
    """What a prediction misses where y is unlike all n before: a Cauchy law of weight 1 / (n + 1)."""

    spread: float
    n: float

    def log_prob(self, e: FloatArray) -> FloatArray:
        """Log of this part of the density at e (N,)."""
        out: FloatArray = cauchy.logpdf(e, 0.0, 2.0 * self.spread) - np.log(self.n + 1.0)
        return out

    def cdf(self, e: FloatArray) -> FloatArray:
        """This part of P(E <= e), e (N,); it is symmetric about 0."""
        out: FloatArray = cauchy.cdf(e, 0.0, 2.0 * self.spread) / (self.n + 1)
        return out


NEVER = Unlike(1.0, np.inf)
"""Of no weight: where y is known to be nowhere else."""


def normal_residuals(e: FloatArray) -> Residuals:
    """The normal law with the mean and the variance of e (N,)."""
    middle, spread = float(e.mean()), spread_of(e)
    return Residuals(np.array([middle]), spread, middle, spread, len(e))


def kernel_residuals(e: FloatArray) -> Residuals:
    """Normal kernels at e (N,), of the width 0.9 min(sd, IQR / 1.34) n^(-1/5) (Silverman 1986, eq. 3.31)."""
    spread = spread_of(e)
    quarter, three = np.quantile(e, [0.25, 0.75])
    narrow = (three - quarter) / 1.34
    width = 0.9 * (min(spread, narrow) if narrow > 0.0 else spread) * len(e) ** -0.2
    kept = e
    if len(e) > _MOST_RESIDUALS:
        kept = np.quantile(e, (np.arange(_MOST_RESIDUALS) + 0.5) / _MOST_RESIDUALS)
    return Residuals(kept, width, float(np.median(e)), spread, len(e))


def spread_of(e: FloatArray) -> float:
    """Standard deviation, kept off zero where all are equal."""
    return max(float(e.std()), 1e-9 * max(1.0, float(np.abs(e).max())))

"""What a model says about a row's target: a whole distribution, in the target's own units."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np
import numpy.typing as npt

from nongauss.core.errors import InputError

FloatArray = npt.NDArray[np.float64]


class PredictiveDistribution(ABC):
    """One distribution for each of N rows, over P outputs; everything is in the target's own units.

    Shapes are given for P outputs; for a one-dimensional target the output axis is absent throughout.
    """

    @property
    @abstractmethod
    def mean(self) -> FloatArray:
        """Expectation: (N, P)."""

    @property
    @abstractmethod
    def variance(self) -> FloatArray:
        """Variance, squared target units: (N, P)."""

    @abstractmethod
    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Quantiles of each output alone: (N, P) for one level `q`, (N, Q, P) for levels (Q,)."""

    @abstractmethod
    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y <= y) of each output alone: (N, P). `y` is (N, P), or one number for all."""

    def survival(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y > y) of each output alone: (N, P)."""
        out: FloatArray = 1.0 - self.cdf(y)
        return out

    @abstractmethod
    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """Log density at `y`, joint over the outputs: (N,). `y` is (N, P), or one number for all."""

    @abstractmethod
    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` joint draws for each row: (N, n, P). Equal `random_state`, equal draws."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows N."""

    @property
    def is_discrete(self) -> bool:
        """Is all probability at whole numbers, so that `log_prob` is of probabilities?"""
        return False

    @property
    def atoms(self) -> tuple[float, ...]:
        """Single values with a probability of their own beside a density; there `log_prob` is of it."""
        return ()

    @property
    def knows_tails(self) -> bool:
        """Are `cdf` and `survival` both right to full relative precision, however small they are?"""
        return False

    @property
    @final
    def std(self) -> FloatArray:
        """Standard deviation: (N, P)."""
        return np.sqrt(self.variance)

    @final
    def interval(self, coverage: float = 0.9) -> FloatArray:
        """Central interval of each output that leaves (1 - coverage)/2 on either side: (N, 2, P)."""
        tail = 0.5 * (1.0 - checked_coverage(coverage))
        return self.quantile(np.array([tail, 1.0 - tail]))


def checked_coverage(coverage: Any) -> float:
    """A share of all probability, above 0 and below 1. Raises InputError."""
    if not isinstance(coverage, numbers.Real) or not 0.0 < float(coverage) < 1.0:
        raise InputError(f"coverage must be a number between 0 and 1 (0.9 is 90 %): got {coverage!r}.")
    return float(coverage)


def checked_count(n: Any) -> int:
    """A number of draws. Raises InputError."""
    if not isinstance(n, numbers.Integral) or isinstance(n, bool) or int(n) < 0:
        raise InputError(f"n, the number of draws for each row, must be a whole number >= 0: got {n!r}.")
    return int(n)


def checked_levels(q: npt.ArrayLike) -> FloatArray:
    """Levels between 0 and 1, a number or (Q,). Raises InputError."""
    try:
        levels = np.asarray(q, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"q must be a number or a list of numbers between 0 and 1: {error}.") from error
    if levels.ndim > 1 or not np.all((levels >= 0.0) & (levels <= 1.0)):
        raise InputError(f"q must be a number or a list of numbers between 0 and 1: got {q!r}.")
    return levels


def checked_target(y: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """`y` as floats of this shape, (N,) or (N, P); one number stands for all. InputError on shape or NaN."""
    try:
        target = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"y must hold numbers only: {error}.") from error
    if target.ndim == 0:
        target = np.full(shape, float(target))
    if target.shape == (*shape, 1):
        target = target[..., 0]
    if target.shape != shape:
        raise InputError(
            f"y does not fit this distribution: got shape {np.shape(y)}, expected {shape}; "
            "pass one target for each row that was predicted."
        )
    missing = np.isnan(target.reshape(len(target), -1)).any(axis=1)
    if missing.any():
        raise InputError(f"y has a missing value in row {int(missing.argmax())}; leave that row out.")
    return target

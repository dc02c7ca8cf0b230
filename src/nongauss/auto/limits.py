"""Limits of a target: its largest or smallest value, where so many rows have it that it stands for more."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.predictive.clipped import ClippedDistribution
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution
from nongauss.sparse_gp.estimator import SparseGPRegressor
from nongauss.sparse_gp.left_out import left_out_law

SHARE, ROWS = 0.05, 10.0
"""Share of the rows, and their number, from which an end of the target is a limit."""

TIMES = 3.0
"""How many times as frequent as any value between the ends a limit is: else the target is rounded."""


@persistable("auto.Limits")
class Limits(NamedTuple):
    """The limits; infinite where there is none."""

    low: float
    high: float

    @property
    def any(self) -> bool:
        """Is there one?"""
        return math.isfinite(self.low) or math.isfinite(self.high)

    def law(self, law: PredictiveDistribution) -> PredictiveDistribution:
        """A law with what lies beyond a limit put on it."""
        return ClippedDistribution(law, self.low, self.high) if self.any else law

    def why(self) -> str:
        """A sentence for people; empty without a limit."""
        ends = ((self.low, "smallest"), (self.high, "largest"))
        found = [f"{end:g}, the {word} target," for end, word in ends if math.isfinite(end)]
        if not found:
            return ""
        return f" So many rows have {' and '.join(found)} that it is treated as a limit with a point mass."


def no_limits() -> Limits:
    """Of a target that may be any number."""
    return Limits(-math.inf, math.inf)


def limits_of(y: FloatArray, weight: FloatArray) -> Limits:
    """The limits of targets y (N,) with weights (N,)."""
    levels, place = np.unique(y, return_inverse=True)
    times = np.bincount(place.ravel(), weight)
    if len(levels) < 4:
        return no_limits()
    enough = max(SHARE * float(weight.sum()), ROWS, TIMES * float(times[1:-1].max()))
    low = float(levels[0]) if times[0] >= enough else -math.inf
    high = float(levels[-1]) if times[-1] >= enough else math.inf
    return Limits(low, high)


@persistable("auto.LimitedGP")
class LimitedGP(SparseGPRegressor):
    """A Gaussian process to which targets at a limit say only that what they stand for lies beyond it."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Fit to a table X (N, D) and targets y (N,). Raises InputError for targets without a limit."""
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        limits = limits_of(y, weight)
        if not limits.any:
            raise InputError("no value at an end of the target has so many rows that it is a limit")
        side = np.where(y >= limits.high, 1, np.where(y <= limits.low, -1, 0))
        return super().fit(X, y, sample_weight, censoring=side)


def limited_left_out(model: Any, X: Any, y: FloatArray, weight: FloatArray) -> PredictiveDistribution:
    """The law of what each training row's target y (N,) stands for, given all others; see `left_out_law`."""
    limits = limits_of(y, weight)
    ends = np.where(y <= limits.low, -np.inf, y), np.where(y >= limits.high, np.inf, y)
    return left_out_law(model, X, np.column_stack(ends), weight)

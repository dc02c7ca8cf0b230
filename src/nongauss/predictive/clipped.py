"""Laws of numbers that end at a limit: what lies beyond it is recorded as the limit itself."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
import numpy.typing as npt

from nongauss.predictive.distribution import FloatArray, PredictiveDistribution, checked_target
from nongauss.predictive.moments import MomentsByCdf


@final
class ClippedDistribution(MomentsByCdf):
    """min(max(Y, low), high) for Y of the law `base` of one number a row: the limits have probabilities.

    `low` and `high` may be infinite. Moments are good to one or two thousandths of the standard
    deviation; all else is exact.
    """

    def __init__(self, base: PredictiveDistribution, low: float, high: float) -> None:
        self.base = base
        self._low, self._high = low, high

    def with_base(self, base: PredictiveDistribution) -> ClippedDistribution:
        """The law of another base with the same limits."""
        return ClippedDistribution(base, self._low, self._high)

    def __len__(self) -> int:
        return len(self.base)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base!r}, {self._low:g}, {self._high:g})"

    def _take(self, rows: npt.NDArray[np.intp]) -> ClippedDistribution:
        """The laws of the rows of these numbers."""
        return self.with_base(self.base._take(rows))

    def roughly(self) -> ClippedDistribution:
        """The law from a rough base."""
        return self.with_base(self.base.roughly())

    @property
    def atoms(self) -> tuple[float, ...]:
        """The limits, at which the mass beyond them is."""
        return tuple(end for end in (self._low, self._high) if math.isfinite(end))

    @property
    def knows_tails(self) -> bool:
        """Whether the law that is clipped knows its tails."""
        return self.base.knows_tails

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y <= y): (N,)."""
        target = checked_target(y, (len(self),))
        return np.where(target < self._low, 0.0, np.where(target >= self._high, 1.0, self.base.cdf(target)))

    def survival(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y > y): (N,)."""
        target = checked_target(y, (len(self),))
        above = self.base.survival(target)
        return np.where(target < self._low, 1.0, np.where(target >= self._high, 0.0, above))

    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """Log density between the limits, log probability at them, -inf beyond: (N,)."""
        target = checked_target(y, (len(self),))
        out: FloatArray = self.base.log_prob(np.clip(target, self._low, self._high))
        with np.errstate(divide="ignore"):
            if math.isfinite(self._low):
                out = np.where(target == self._low, np.log(self.base.cdf(self._low)), out)
            if math.isfinite(self._high):
                out = np.where(target == self._high, np.log(self.base.survival(self._high)), out)
        return np.where((target < self._low) | (target > self._high), -np.inf, out)

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Quantiles at the levels q: (N,) for one, (N, Q) for (Q,)."""
        return np.clip(self.base.quantile(q), self._low, self._high)

    def extent(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """That of the base, as far as the limits."""
        low, middle, high = (np.clip(part, self._low, self._high) for part in self.base.extent())
        return low, middle, high

    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` draws for each row: (N, n). Equal `random_state`, equal draws."""
        return np.clip(self.base.sample(n, random_state), self._low, self._high)

"""A law whose shape is told on a base law's own scale: p(y) = f(y) g(z) / phi(z), z = Phi^-1(F(y)).

f and F are density and distribution function of the base, g a law of the normal score z, which is N(0, 1)
where the base is right. Then P(Y <= y) = G(z), for any base: the support stays, and where F jumps by the
probability of a single value, that value has G(z) - G(z-). Beyond the normal scores that F can tell the
base's own tail is kept, with the mass that g has there.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr, ndtri

from nongauss.predictive.clipped import ClippedDistribution
from nongauss.predictive.distribution import (
    MOST_ROWS,
    FloatArray,
    PredictiveDistribution,
    checked_levels,
    checked_target,
    in_blocks,
)
from nongauss.predictive.merged import merged
from nongauss.predictive.mixture import GaussianMixtureDistribution, of_scores
from nongauss.predictive.moments import MomentsByCdf, moments_by_cdf, moments_of_counts
from nongauss.predictive.roots import at_levels, smooth_quantile
from nongauss.predictive.scores import FAR, KNOTS, LARGEST, BaseQuantiles, reach_of, score_interval

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_MOST_SUMMED, _BEYOND = 500, 1e-12  # whole numbers that are summed one by one, and the mass on either side


def recalibrated(base: PredictiveDistribution, scores: GaussianMixtureDistribution) -> PredictiveDistribution:
    """The law of y whose normal score under `base` has the law `scores`, row by row, N rows each.

    Of a base that is one Gaussian a row it is a mixture of Gaussians again; of one with limits, whose scores
    are those of the law beyond them, it is the law of that with the same limits.
    """
    if isinstance(base, ClippedDistribution):
        return base.with_base(recalibrated(base.base, scores))
    if isinstance(base, GaussianMixtureDistribution) and base.n_components == 1:
        return of_scores(base, scores)
    return RecalibratedDistribution(base, scores)


@final
class RecalibratedDistribution(MomentsByCdf):
    """y whose normal score under `base` has the law `scores`: `recalibrated` makes it.

    Densities, distribution function and quantiles are exact, moments good to one or two thousandths of the
    standard deviation. Draws go through a table of the base's quantiles, as good (to a hundredth where single
    values have a probability). Moments of counts are sums, of wide ones over groups of whole numbers.
    """

    def __init__(self, base: PredictiveDistribution, scores: GaussianMixtureDistribution) -> None:
        self._base, self._scores = base, scores
        self._reach = reach_of(base)
        edge = np.full(len(base), self._reach)
        with np.errstate(divide="ignore"):
            masses = np.log(scores.cdf(-edge)), np.log(scores.survival(edge))
        self._log_low, self._log_high = (mass - log_ndtr(-self._reach) for mass in masses)
        self._known: BaseQuantiles | None = None

    def __len__(self) -> int:
        return len(self._base)

    def _take(self, rows: npt.NDArray[np.intp]) -> RecalibratedDistribution:
        """The laws of the rows of these numbers, with what is known of them."""
        out = copy(self)
        out._base, out._scores = self._base._take(rows), self._scores._take(rows)
        out._log_low, out._log_high, out._known = self._log_low[rows], self._log_high[rows], None
        if self._moments is not None:
            out._moments = self._moments[0][rows], self._moments[1][rows]
        return out

    def roughly(self) -> RecalibratedDistribution:
        """The law of scores of a few Gaussians on a rough base."""
        return RecalibratedDistribution(self._base.roughly(), merged(self._scores))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base!r})"

    @property
    def is_discrete(self) -> bool:
        """Whether the law that is recalibrated is discrete."""
        return self._base.is_discrete

    @property
    def atoms(self) -> tuple[float, ...]:
        """Those of the base."""
        return self._base.atoms

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """G(z), and beyond what scores reach the base's with the mass that g has there: (N,)."""
        # the far tail above is only told from 1, for which F is enough
        with np.errstate(divide="ignore"):
            return self._below(ndtri(self._base.cdf(checked_target(y, (len(self),)))))

    def survival(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y > y): (N,)."""
        with np.errstate(divide="ignore"):
            return self._above(-ndtri(self._base.survival(checked_target(y, (len(self),)))))

    def _below(self, z: FloatArray) -> FloatArray:
        """P(Z <= z) of the score as it is used, with the base's tails: (N,)."""
        inner = self._scores.cdf(np.clip(z, -self._reach, self._reach))
        low, high = ndtr(z) * np.exp(self._log_low), 1.0 - ndtr(-z) * np.exp(self._log_high)
        return np.where(z < -self._reach, low, np.where(z > self._reach, high, inner))

    def _above(self, z: FloatArray) -> FloatArray:
        """P(Z > z), as `_below`: (N,)."""
        inner = self._scores.survival(np.clip(z, -self._reach, self._reach))
        low, high = 1.0 - ndtr(z) * np.exp(self._log_low), ndtr(-z) * np.exp(self._log_high)
        return np.where(z < -self._reach, low, np.where(z > self._reach, high, inner))

    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """log f + log g(z) - log phi(z), and log(G(z) - G(z-)) where F jumps: (N,)."""
        target = checked_target(y, (len(self),))
        at = score_interval(self._base, target)
        own = self._base.log_prob(target)
        z = np.clip(at.high, -self._reach, self._reach)
        shape = self._scores.log_prob(z) + 0.5 * z * z + _HALF_LOG_2PI
        shape = np.where(at.high < -self._reach, self._log_low, shape)
        shape = np.where(at.low > self._reach, self._log_high, shape)
        out: FloatArray = np.where(own == -np.inf, own, own + shape)
        jumps = at.jumps & (at.high >= -self._reach) & (at.low <= self._reach) & (own > -np.inf)
        if jumps.any():
            upper = self._above(at.low) - self._above(at.high)
            lower = self._below(at.high) - self._below(at.low)
            mass = np.where(at.low > 0.0, upper, lower)  # from the side where both numbers are small
            with np.errstate(divide="ignore"):
                out[jumps] = np.log(np.maximum(mass, 0.0))[jumps]
        return out

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Quantiles at the levels q: (N,) for one, (N, Q) for (Q,). The smallest value with cdf >= q."""
        levels = checked_levels(q)
        if len(self) > MOST_ROWS:
            return np.concatenate([block.quantile(q) for block in in_blocks(self)])
        if not (self.is_discrete or self.atoms):
            return at_levels(self._smooth_quantile, levels)
        flat = levels.ravel()
        out = np.empty((len(self), len(flat)))
        for level in (0.0, 1.0):
            if (flat == level).any():
                out[:, flat == level] = self._base.quantile(level)[:, None]
        inside = np.flatnonzero((flat > 0.0) & (flat < 1.0))
        inside = inside[np.argsort(flat[inside])]
        z = self._scores_at(flat[inside])
        if self.is_discrete and len(inside):
            out[:, inside] = self._table().exact_counts(np.maximum.accumulate(z, axis=1))
        else:
            for j, column in zip(inside, z.T, strict=True):
                out[:, j] = self._table().exact(column)
        return out if levels.ndim else out[:, 0]

    def _scores_at(self, levels: FloatArray) -> FloatArray:
        """The scores of ascending levels (Q,) as they are used, with the base's tails: (N, Q)."""
        with np.errstate(over="ignore"):
            low = ndtri(np.clip(levels * np.exp(-self._log_low)[:, None], 0.0, 1.0))
            high = -ndtri(np.clip((1.0 - levels) * np.exp(-self._log_high)[:, None], 0.0, 1.0))
        z = self._scores.quantile(levels)
        z = np.where(z < -self._reach, low, np.where(z > self._reach, high, z))
        return np.clip(z, -FAR, FAR)

    def _smooth_quantile(self, level: float) -> FloatArray:
        """Where the cdf reaches the level: (N,)."""
        return self._base.quantile(level) if level in (0.0, 1.0) else smooth_quantile(self, level)

    def extent(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """That of the base."""
        return self._base.extent()

    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` draws for each row: (N, n). Equal `random_state`, equal draws."""
        z = self._scores.sample(n, random_state)
        if not (self.is_discrete and z.size):
            return self._table().near(z)
        place, out = np.argsort(z, axis=1), np.empty_like(z)
        ascending = np.clip(np.take_along_axis(z, place, axis=1), -FAR, FAR)
        np.put_along_axis(out, place, self._table().exact_counts(ascending), axis=1)
        return out

    def _table(self) -> BaseQuantiles:
        """The base's quantiles by normal score."""
        if self._known is None:
            self._known = BaseQuantiles(self._base)
        return self._known

    def _found_moments(self) -> tuple[FloatArray, FloatArray]:
        if not self.is_discrete:
            return moments_by_cdf(self)
        if not len(self):
            return np.empty(0), np.empty(0)
        mean, variance = np.concatenate([block._of_counts() for block in in_blocks(self)], axis=1)  # type: ignore[attr-defined]
        return mean, variance

    def _of_counts(self) -> tuple[FloatArray, FloatArray]:
        """Sums over all whole numbers that are likely, where these are few, else over groups of them."""
        low, high = np.minimum(self.quantile([_BEYOND, 1.0 - _BEYOND]), LARGEST).T
        is_narrow = high - low <= _MOST_SUMMED
        out = np.empty((2, len(self)))
        narrow, wide = np.flatnonzero(is_narrow), np.flatnonzero(~is_narrow)
        if len(narrow):
            out[:, narrow] = moments_of_counts(self._take(narrow), low[narrow], high[narrow])
        if len(wide):
            out[:, wide] = self._take(wide)._by_groups(high[wide])
        return out[0], out[1]

    def _by_groups(self, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums over groups of whole numbers up to `high` (N,), an eighth of a score of the base wide or one
        number, and farther out so many times as wide as their distance.

        What a group (a, b] holds is put evenly on its numbers: their mean is (a + 1 + b) / 2, their variance
        ((b - a)^2 - 1) / 12.
        """
        table = self._table()
        start = table.values[:, 0] - 1.0
        points = table.near(np.tile(np.linspace(KNOTS[0], KNOTS[-1], 97), (len(self), 1)))
        last = points[:, -1:] - start[:, None]
        times = np.maximum((high - start)[:, None] / last, 1.0)
        beyond = start[:, None] + np.ceil(last * times ** np.linspace(0.0, 1.0, 33)[1:])
        mean, square = np.zeros(len(self)), np.zeros(len(self))
        last, before = start, self.cdf(start)
        for point in np.concatenate([points, beyond], axis=1).T:
            end = np.maximum(point, last)
            below = self.cdf(end)
            size, mass = end - last, below - before
            middle = last + 0.5 * (size + 1.0) - start
            mean += mass * middle
            square += mass * (middle**2 + np.maximum(size**2 - 1.0, 0.0) / 12.0)
            last, before = end, below
        return start + mean, np.maximum(square - mean**2, 0.0)

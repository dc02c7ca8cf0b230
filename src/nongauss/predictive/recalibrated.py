"""A law whose shape is told on a base law's own scale: p(y) = f(y) g(z) / phi(z), z = Phi^-1(F(y)).

f and F are density and distribution function of the base, g a law of the normal score z, which is N(0, 1)
where the base is right. Then P(Y <= y) = G(z), for any base: the support stays, and where F jumps by the
probability of a single value, that value has G(z) - G(z-). Beyond the normal scores that F can tell the
base's own tail is kept, with the mass that g has there.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt
from scipy.interpolate import PchipInterpolator
from scipy.special import log_ndtr, ndtr, ndtri

from nongauss.predictive.distribution import (
    FloatArray,
    PredictiveDistribution,
    checked_levels,
    checked_target,
)
from nongauss.predictive.mixture import GaussianMixtureDistribution, of_scores

FAR, NEAR = 20.0, 7.0
"""Normal scores up to which a distribution function tells them: where both tails are known, and where not."""

KNOTS = np.linspace(-6.0, 6.0, 61)
"""Normal scores at which the base's quantiles are tabulated, for moments and draws."""

_POINTS, _SHARES = np.polynomial.hermite_e.hermegauss(5)
_SHARES = _SHARES / _SHARES.sum()
_MOST_STEPS, _ENOUGH = 100, 1e-10
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


class ScoreInterval(NamedTuple):
    """Normal scores Phi^-1(F(y-)) and Phi^-1(F(y)) of targets, (N,) each: equal but where F jumps."""

    low: FloatArray
    high: FloatArray

    @property
    def jumps(self) -> npt.NDArray[np.bool_]:
        """Where y is a value with a probability of its own: (N,)."""
        jumps: npt.NDArray[np.bool_] = self.low < self.high
        return jumps


def score_interval(law: PredictiveDistribution, y: npt.ArrayLike) -> ScoreInterval:
    """The normal scores of targets y (N,) under their laws; infinite where F is 0 or 1."""
    target = checked_target(y, (len(law),))
    high = _score(law, target)
    if law.is_discrete:
        return ScoreInterval(_score(law, np.ceil(target) - 1.0), high)
    low = high
    if law.atoms:
        before = _score(law, np.nextafter(target, -np.inf))
        low = np.where(np.isin(target, law.atoms), before, high)
    return ScoreInterval(low, high)


def _score(law: PredictiveDistribution, y: FloatArray) -> FloatArray:
    """Phi^-1(F(y)) by the tail that is the smaller one: (N,)."""
    below = law.cdf(y)
    out: FloatArray = np.where(below < 0.5, ndtri(below), -ndtri(law.survival(y)))
    return out


def reach_of(law: PredictiveDistribution) -> float:
    """The normal scores up to which a law's distribution function tells them."""
    return FAR if law.knows_tails else NEAR


def recalibrated(base: PredictiveDistribution, scores: GaussianMixtureDistribution) -> PredictiveDistribution:
    """The law of y whose normal score under `base` has the law `scores`, row by row, N rows each.

    Of a base that is one Gaussian a row it is a mixture of Gaussians again; of one with limits, whose scores
    are those of the law beyond them, it is the law of that with the same limits.
    """
    from nongauss.predictive.clipped import ClippedDistribution  # which has its moments by `BaseQuantiles`

    if isinstance(base, ClippedDistribution):
        return base.with_base(recalibrated(base.base, scores))
    if isinstance(base, GaussianMixtureDistribution) and base.n_components == 1:
        return of_scores(base, scores)
    return RecalibratedDistribution(base, scores)


@final
class RecalibratedDistribution(PredictiveDistribution):
    """y whose normal score under `base` has the law `scores`: `recalibrated` makes it.

    Densities, distribution function and quantiles are exact. Moments and draws go through a table of the
    base's quantiles, good to about a thousandth of its standard deviation (a hundredth where single values
    have a probability); moments of counts are sums, of
    wide ones over groups of whole numbers.
    """

    def __init__(self, base: PredictiveDistribution, scores: GaussianMixtureDistribution) -> None:
        self._base, self._scores = base, scores
        self._reach = reach_of(base)
        edge = np.full(len(base), self._reach)
        with np.errstate(divide="ignore"):
            masses = np.log(scores.cdf(-edge)), np.log(scores.survival(edge))
        self._log_low, self._log_high = (mass - log_ndtr(-self._reach) for mass in masses)
        self._known: BaseQuantiles | None = None
        self._moments: tuple[FloatArray, FloatArray] | None = None

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base!r})"

    @property
    def is_discrete(self) -> bool:
        """As the base."""
        return self._base.is_discrete

    @property
    def atoms(self) -> tuple[float, ...]:
        """Those of the base."""
        return self._base.atoms

    @property
    def mean(self) -> FloatArray:
        """Expectation: (N,)."""
        return self._both()[0].copy()

    @property
    def variance(self) -> FloatArray:
        """Variance: (N,)."""
        return self._both()[1].copy()

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """G(z), and beyond what scores reach the base's with the mass that g has there: (N,)."""
        return self._below(_score(self._base, checked_target(y, (len(self),))))

    def survival(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y > y): (N,)."""
        return self._above(_score(self._base, checked_target(y, (len(self),))))

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
        every = self._scores.quantile(levels.ravel())
        out = np.empty_like(every)
        for j, level in enumerate(levels.ravel()):
            if level in (0.0, 1.0):
                out[:, j] = self._base.quantile(level)
                continue
            with np.errstate(over="ignore"):
                low = ndtri(np.clip(level * np.exp(-self._log_low), 0.0, 1.0))
                high = -ndtri(np.clip((1.0 - level) * np.exp(-self._log_high), 0.0, 1.0))
            z = every[:, j]
            z = np.where(z < -self._reach, low, np.where(z > self._reach, high, z))
            out[:, j] = self._table().exact(np.clip(z, -FAR, FAR))
        return out if levels.ndim else out[:, 0]

    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` draws for each row: (N, n). Equal `random_state`, equal draws."""
        z = self._scores.sample(n, random_state)
        near = self._table().near(z)
        if not self.is_discrete:
            return near
        base = self._base._take(np.repeat(np.arange(len(self)), z.shape[1]))
        return _smallest(base, z.ravel(), near.ravel()).reshape(z.shape)

    def _table(self) -> BaseQuantiles:
        """The base's quantiles by normal score."""
        if self._known is None:
            self._known = BaseQuantiles(self._base)
        return self._known

    def _both(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance, (N,) each."""
        if self._moments is None:
            self._moments = self._of_counts() if self.is_discrete else self._of_numbers()
        return self._moments

    def _of_numbers(self) -> tuple[FloatArray, FloatArray]:
        """E[Q(Z)] and Var[Q(Z)], Q the base's quantile and Z of the score's law, component by component."""
        table = self._table()
        mean, square = np.empty(len(self)), np.empty(len(self))
        centre = table.values[:, len(KNOTS) // 2]
        for rows, log_weights, means, sds in self._scores._blocks():
            first, second = np.zeros(means.shape[:2]), np.zeros(means.shape[:2])
            for point, share in zip(_POINTS, _SHARES, strict=True):
                at = table.near(means[..., 0] + point * sds[..., 0], rows) - centre[rows, None]
                first += share * at
                second += share * at**2
            weight = np.exp(log_weights)
            mean[rows], square[rows] = (weight * first).sum(axis=1), (weight * second).sum(axis=1)
        return centre + mean, np.maximum(square - mean**2, 0.0)

    def _of_counts(self) -> tuple[FloatArray, FloatArray]:
        """Sums over whole numbers, or where these lie closer than an eighth of a score over groups of them.

        What a group (a, b] holds is put evenly on its numbers: their mean is (a + 1 + b) / 2, their variance
        ((b - a)^2 - 1) / 12.
        """
        table = self._table()
        start = table.values[:, 0] - 1.0
        mean, square = np.zeros(len(self)), np.zeros(len(self))
        last, before = start, self.cdf(start)
        for point in np.linspace(KNOTS[0], KNOTS[-1] + 1.0, 105):
            end = np.maximum(table.near(np.full((len(self), 1), point))[:, 0], last)
            below = self.cdf(end)
            size, mass = end - last, below - before
            middle = last + 0.5 * (size + 1.0) - start
            mean += mass * middle
            square += mass * (middle**2 + np.maximum(size**2 - 1.0, 0.0) / 12.0)
            last, before = end, below
        return start + mean, np.maximum(square - mean**2, 0.0)


def _smallest(law: PredictiveDistribution, z: FloatArray, guess: FloatArray) -> FloatArray:
    """The smallest whole numbers whose normal scores are not below z, (N,), from near ones."""
    z, out = np.clip(z, -FAR, FAR), guess.copy()
    while len(short := np.flatnonzero((_score(law, out) < z) & (law.survival(out) > 0.0))):
        out[short] += 1.0
    while len(long := np.flatnonzero((_score(law, out - 1.0) >= z) & (law.cdf(out - 1.0) > 0.0))):
        out[long] -= 1.0
    return out


class BaseQuantiles:
    """Quantiles Q(z) = F^-1(Phi(z)) of N rows by normal score: a table of `values` (N, K) at `KNOTS`.

    Between the knots a monotone cubic (Fritsch and Carlson 1980), beyond them straight lines.
    """

    def __init__(self, law: PredictiveDistribution) -> None:
        self._law = law
        self.values = law.quantile(ndtr(KNOTS))
        self._ends = law.quantile([0.0, 1.0])
        self._atoms = [(atom, score_interval(law, np.full(len(law), atom))) for atom in law.atoms]
        self._slopes: FloatArray = PchipInterpolator(KNOTS, self.values, axis=1).derivative()(KNOTS)

    def near(self, z: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Q at z (n, S) of these rows, by the table: (n, S)."""
        width = KNOTS[1] - KNOTS[0]
        inner = np.clip(z, KNOTS[0], KNOTS[-1])
        k = np.minimum(((inner - KNOTS[0]) / width).astype(np.intp), len(KNOTS) - 2)
        t = (inner - KNOTS[k]) / width
        value, slope = self.values[rows], self._slopes[rows]
        y_0, y_1 = np.take_along_axis(value, k, 1), np.take_along_axis(value, k + 1, 1)
        d_0, d_1 = np.take_along_axis(slope, k, 1), np.take_along_axis(slope, k + 1, 1)
        rise, s = y_1 - y_0, 1.0 - t
        out = y_0 + rise * t * t * (3.0 - 2.0 * t) + width * t * s * (d_0 * s - d_1 * t)
        out += np.where(z < inner, d_0, d_1) * (z - inner)
        ends = self._ends[rows]
        if self._law.is_discrete:
            out = np.ceil(out - 0.5)
        for atom, at in self._atoms:
            out = np.where((at.low[rows, None] < z) & (z <= at.high[rows, None]), atom, out)
        clipped: FloatArray = np.clip(out, ends[:, :1], ends[:, 1:])
        return clipped

    def exact(self, z: FloatArray) -> FloatArray:
        """The smallest y with Phi^-1(F(y)) >= z, z (N,): (N,)."""
        low, high = self._bracket(z)
        if self._law.is_discrete:
            return self._halved(z, low, high)
        out = self._root(z, low, high)
        for atom, at in self._atoms:
            out = np.where((at.low < z) & (z <= at.high), atom, out)
        return out

    def _bracket(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values with scores below and not below z, (N,) each: knots, or beyond them as far as is needed."""
        k = np.clip(np.searchsorted(KNOTS, z), 1, len(KNOTS) - 1)[:, None]
        low = np.take_along_axis(self.values, k - 1, 1)[:, 0]
        high = np.take_along_axis(self.values, k, 1)[:, 0]
        if self._law.is_discrete:
            low, high = low - 1.0, np.ceil(high)
        slack = 1e-9 * (np.abs(low) + np.abs(high)) + 1e-300
        low, high = low - slack, high + slack
        least = 1.0 if self._law.is_discrete else 0.0
        width = np.maximum(high - low, least)
        for _ in range(200):
            short = (_score(self._law, high) < z) & (high < self._ends[:, 1])
            long = (_score(self._law, low) >= z) & (low > self._ends[:, 0])
            if not (short | long).any():
                break
            high, low = np.where(short, high + width, high), np.where(long, low - width, low)
            width = np.where(short | long, 2.0 * width, width)
        return np.maximum(low, self._ends[:, 0]) - least, np.minimum(high, self._ends[:, 1])

    def _halved(self, z: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """The smallest whole number above `low` that is enough; `high` is."""
        low, high = np.floor(low), np.ceil(high)
        while (is_open := high - low > 1.0).any():
            middle = np.floor(0.5 * (low + high))
            enough = _score(self._law, middle) >= z
            high = np.where(is_open & enough, middle, high)
            low = np.where(is_open & ~enough, middle, low)
        return high

    def _root(self, z: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Where the score is z, by Newton steps within a bracket: d score / dy = f(y) / phi(score)."""
        y = np.clip(self.near(z[:, None])[:, 0], low, high)
        for _ in range(_MOST_STEPS):
            score = _score(self._law, y)
            excess = score - z
            low, high = np.where(excess < 0.0, y, low), np.where(excess < 0.0, high, y)
            settled = (np.abs(excess) < _ENOUGH) | (high - low <= 4e-16 * np.abs(y))
            if settled.all():
                break
            with np.errstate(all="ignore"):
                step = -excess * np.exp(-0.5 * score**2 - _HALF_LOG_2PI - self._law.log_prob(y))
            moved = y + step
            inside = (moved > low) & (moved < high)
            y = np.where(settled, y, np.where(inside, moved, 0.5 * (low + high)))
        return y

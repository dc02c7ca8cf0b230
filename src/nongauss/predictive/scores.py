"""Normal scores z = Phi^-1(F(y)) of a law, and its quantiles Q(z) = F^-1(Phi(z)) by them."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtr, ndtri

from nongauss.predictive.counts import ascending_counts, halved_counts
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution, checked_target

FAR, NEAR = 20.0, 7.0
"""Normal scores up to which a distribution function tells them: where both tails are known, and where not."""

KNOTS = np.linspace(-6.0, 6.0, 61)
"""Normal scores at which a law's quantiles are tabulated, for moments and draws."""

MARGIN = 0.05
"""Of normal scores, by which a bracket of quantiles is wider than the scores that are asked for."""

_MOST_STEPS, _ENOUGH = 100, 1e-10

LARGEST = 1e100
"""The largest number in a table of quantiles, and that moments are told of."""
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
    high = score(law, target)
    if law.is_discrete:
        return ScoreInterval(score(law, np.ceil(target) - 1.0), high)
    low = high
    if law.atoms:
        before = score(law, np.nextafter(target, -np.inf))
        low = np.where(np.isin(target, law.atoms), before, high)
    return ScoreInterval(low, high)


def score(law: PredictiveDistribution, y: FloatArray) -> FloatArray:
    """Phi^-1(F(y)) by the tail that is the smaller one: (N,)."""
    below = law.cdf(y)
    out: FloatArray = ndtri(below)
    upper = np.flatnonzero(below >= 0.5)
    if len(upper) and type(law).survival is PredictiveDistribution.survival:
        out[upper] = -ndtri(1.0 - below[upper])
    elif len(upper):
        part = law if len(upper) == len(law) else law._take(upper)
        out[upper] = -ndtri(part.survival(y[upper]))
    return out


def reach_of(law: PredictiveDistribution) -> float:
    """The normal scores up to which a law's distribution function tells them."""
    return FAR if law.knows_tails else NEAR


class BaseQuantiles:
    """Quantiles Q(z) = F^-1(Phi(z)) of N rows by normal score: near ones by a table, and exact ones.

    Between the table's knots a monotone cubic (Fritsch and Carlson 1980), beyond them straight lines.
    """

    def __init__(self, law: PredictiveDistribution) -> None:
        self._law = law
        self._ends = law.quantile([0.0, 1.0])
        self._atoms = [(atom, score_interval(law, np.full(len(law), atom))) for atom in law.atoms]

    @cached_property
    def values(self) -> FloatArray:
        """The table: Q at `KNOTS`, (N, K); laws without an end at these levels end at the largest number."""
        return np.clip(self._law.quantile(ndtr(KNOTS)), -LARGEST, LARGEST)

    @cached_property
    def _slopes(self) -> FloatArray:
        """dQ/dz at `KNOTS`: (N, K)."""
        slopes: FloatArray = PchipInterpolator(KNOTS, self.values, axis=1).derivative()(KNOTS)
        return slopes

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
        if not len(z):
            return z
        first = np.clip(z.min() - MARGIN, KNOTS[0], KNOTS[-1] - MARGIN)
        last = np.clip(z.max() + MARGIN, KNOTS[0] + MARGIN, KNOTS[-1])
        low, high = self._bracket(z, *self._law.quantile(ndtr([first, last])).T)
        if self._law.is_discrete:
            return halved_counts(lambda y: score(self._law, y) >= z, np.floor(low), np.ceil(high))
        out = self._root(z, low, high, (z - first) / (last - first))
        for atom, at in self._atoms:
            out = np.where((at.low < z) & (z <= at.high), atom, out)
        return out

    def exact_counts(self, z: FloatArray) -> FloatArray:
        """Quantiles of a law of counts at scores z (N, Q), which must not decrease along a row: (N, Q)."""
        out = self.exact(z[:, 0])[:, None]
        if z.shape[1] == 1 or not len(z):
            return np.repeat(out, z.shape[1], axis=1)

        def of_rows(y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
            return score(self._law if len(rows) == len(self._law) else self._law._take(rows), y)

        return ascending_counts(of_rows, z, out[:, 0], self._ends[:, 1])

    def _bracket(self, z: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values with scores below and not below z, (N,) each: these two, or as far beyond as is needed."""
        if self._law.is_discrete:
            low, high = low - 1.0, np.ceil(high)
        low = np.minimum(low, LARGEST)
        slack = 1e-9 * (np.abs(low) + np.where(np.isfinite(high), np.abs(high), 0.0)) + 1e-300
        low, high = low - slack, high + slack
        least = 1.0 if self._law.is_discrete else 0.0
        width = np.maximum(high - low, least)
        for _ in range(200):
            short = (score(self._law, high) < z) & (high < self._ends[:, 1])
            long = (score(self._law, low) >= z) & (low > self._ends[:, 0])
            if not (short | long).any():
                break
            high, low = np.where(short, high + width, high), np.where(long, low - width, low)
            width = np.where(short | long, 2.0 * width, width)
        return np.maximum(low, self._ends[:, 0]) - least, np.minimum(high, self._ends[:, 1])

    def _root(self, z: FloatArray, low: FloatArray, high: FloatArray, share: FloatArray) -> FloatArray:
        """Where the score is z, by Newton steps within a bracket: d score / dy = f(y) / phi(score).

        They begin at a `share` (N,) of the way from `low` to `high`.
        """
        y = low + np.clip(share, 0.0, 1.0) * (high - low)
        for _ in range(_MOST_STEPS):
            at = score(self._law, y)
            excess = at - z
            low, high = np.where(excess < 0.0, y, low), np.where(excess < 0.0, high, y)
            settled = (np.abs(excess) < _ENOUGH) | (high - low <= 4e-16 * np.abs(y))
            if settled.all():
                break
            with np.errstate(all="ignore"):
                step = -excess * np.exp(-0.5 * at**2 - _HALF_LOG_2PI - self._law.log_prob(y))
            moved = y + step
            inside = (moved > low) & (moved < high)
            y = np.where(settled, y, np.where(inside, moved, 0.5 * (low + high)))
        return y

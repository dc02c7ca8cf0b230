"""Distributions of one number a row, from their density and distribution function alone."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri

from nongauss.core.seeds import key_seed
from nongauss.predictive.counts import ascending_counts
from nongauss.predictive.distribution import (
    FloatArray,
    PredictiveDistribution,
    checked_count,
    checked_levels,
    checked_target,
)

LARGEST_EXPONENT = 300.0
"""Exponents are cut off here."""

_LEAST = -LARGEST_EXPONENT  # of the transform
_MOST_STEPS = 10
_NEAR, _SMALL_STEP = 1e-7, 1e-4
"""From where a Newton step is the last: distances of normal quantiles, and parts of the transformed y."""


def bounded_exp(t: npt.ArrayLike) -> FloatArray:
    """e^t, kept within what products of a few can hold."""
    out: FloatArray = np.exp(np.clip(t, -LARGEST_EXPONENT, LARGEST_EXPONENT))
    return out


class RowwiseDistribution(PredictiveDistribution):
    """centre + scale * y, y one number for each row by its density and distribution function.

    A subclass gives both for y in units of its own; `centre` and `scale` (not 0; negative only where y is any
    real number) are those of the target. `support` is "real", "positive", "unit" or "count"; quantiles of the
    first three are found in a monotone transform of y that makes the whole line of it, those of counts among
    whole numbers.
    """

    def __init__(
        self, mean: FloatArray, variance: FloatArray, support: str, *, centre: float = 0.0, scale: float = 1.0
    ) -> None:
        self._m: FloatArray = np.atleast_2d(mean)
        self._v: FloatArray = np.atleast_2d(variance)
        self._support, self._centre, self._scale = support, centre, scale

    _output_shape = ()

    def __len__(self) -> int:
        return int(self._m.shape[1])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_rows={len(self)}, support={self._support!r})"

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        """The laws of the rows of these numbers."""
        out = copy(self)
        out._m, out._v = self._m[:, rows], self._v[:, rows]
        return out

    @abstractmethod
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of y for each latent component: (K, N) each."""

    @abstractmethod
    def _row_log_prob(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Log density of y (n,) in these rows (n,)."""

    @abstractmethod
    def _row_cdf(self, y: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        """P(Y <= y) of y (n,) in these rows (n,)."""

    @abstractmethod
    def _draw(self, f: FloatArray, rows: npt.NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        """y given latent draws f (n, S) of these rows."""

    def _blocks(self) -> Iterator[npt.NDArray[np.intp]]:
        """The rows, in groups that are treated at once."""
        for start in range(0, len(self), 50_000):
            yield np.arange(start, min(start + 50_000, len(self)))

    @property
    def is_discrete(self) -> bool:
        """Is y a count?"""
        return self._support == "count"

    @property
    def mean(self) -> FloatArray:
        """Expectation, exact: (N,)."""
        out: FloatArray = self._centre + self._scale * self._moments()[0].mean(axis=0)
        return out

    @property
    def variance(self) -> FloatArray:
        """Variance, exact: (N,)."""
        mean, variance = self._moments()
        out: FloatArray = self._scale**2 * (variance.mean(axis=0) + mean.var(axis=0))
        return out

    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """Log density (log probability of a count) at `y`: (N,); -inf where y cannot be."""
        target = self._checked(y)
        inside = self._inside(target)
        out = np.full(len(self), -np.inf)
        for block in self._blocks():
            rows = block[inside[block]]
            if len(rows):
                out[rows] = self._row_log_prob(target[rows], rows)
        return out - math.log(abs(self._scale))

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y <= y): (N,)."""
        target = self._checked(y)
        low, high = {"real": (-np.inf, np.inf), "unit": (0.0, 1.0)}.get(self._support, (0.0, np.inf))
        below = target < low if self._support == "count" else target <= low
        out = np.where(below, 0.0, 1.0)
        middle = ~below & (target < high)
        for block in self._blocks():
            rows = block[middle[block]]
            if len(rows):
                out[rows] = np.clip(self._row_cdf(target[rows], rows), 0.0, 1.0)
        return out if self._scale > 0.0 else 1.0 - out

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Quantiles at the levels q: (N,) for one, (N, Q) for (Q,). The smallest count with cdf >= q."""
        levels = checked_levels(q)
        inner = levels if self._scale > 0.0 else 1.0 - levels
        out = self._centre + self._scale * self._inner_quantiles(inner.ravel())
        return out if levels.ndim else out[:, 0]

    def _inner_quantiles(self, levels: FloatArray) -> FloatArray:
        """Quantiles of y in the units of the subclass, at levels (Q,): (N, Q)."""
        out = np.empty((len(self), levels.size))
        low, high = {"real": (-np.inf, np.inf), "unit": (0.0, 1.0)}.get(self._support, (0.0, np.inf))
        out[:, levels == 0.0], out[:, levels == 1.0] = low, high
        inside = np.flatnonzero((levels > 0.0) & (levels < 1.0))
        if self._support == "count" and len(inside):
            inside = inside[np.argsort(levels[inside])]
            for rows in self._blocks():
                out[np.ix_(rows, inside)] = self._count_quantiles(levels[inside], rows)
            return out
        for j in inside:
            for rows in self._blocks():
                out[rows, j] = self._smooth_quantile(float(levels[j]), rows)
        return out

    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` draws for each row: (N, n). Equal `random_state`, equal draws."""
        rng = np.random.default_rng(key_seed(random_state))
        shape = (len(self), checked_count(n))
        which = rng.integers(0, len(self._m), shape)
        f = rng.standard_normal(shape)
        f *= np.sqrt(np.take_along_axis(self._v.T, which, axis=1))
        f += np.take_along_axis(self._m.T, which, axis=1)
        return self._centre + self._scale * self._draw(f, np.arange(len(self)), rng)

    def _smooth_quantile(self, level: float, rows: npt.NDArray[np.intp]) -> FloatArray:
        """The root of P(Y <= y) - level in the transform that makes a whole line of the support.

        By Newton steps; rows that these do not settle, as where the distribution function is flat or jumps,
        are bracketed.
        """
        t, is_settled = self._newton(level, rows)
        if not is_settled.all():
            t[~is_settled] = self._bracketed_root(level, rows[~is_settled])
        return TRANSFORMS[self._support][0](t)

    def _newton(self, level: float, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Roots (n,) of Phi^-1(P(Y <= y(t))) = Phi^-1(level), and which of them are settled, (n,).

        On the scale of normal quantiles z the left side is nearly linear in t, with the slope
        dz/dt = p(y) (dy/dt) / phi(z). A last step from |z - Phi^-1(level)| < 1e-7 leaves the square of that.
        """
        value = TRANSFORMS[self._support][0]
        goal, t = ndtri(level), self._start(level, rows)
        is_settled, left = np.zeros(len(rows), dtype=np.bool_), np.arange(len(rows))
        with np.errstate(all="ignore"):
            for _ in range(_MOST_STEPS):
                y = value(t[left])
                z = ndtri(self._row_cdf(y, rows[left]))
                log_slope = self._row_log_prob(y, rows[left]) + np.log(_derivative(self._support, y))
                step = (goal - z) * np.exp(-0.5 * z * z - log_slope) / math.sqrt(2.0 * math.pi)
                t[left] += step
                near = (np.abs(goal - z) < _NEAR) & (np.abs(step) < _SMALL_STEP * (1.0 + np.abs(t[left])))
                is_settled[left[near]] = True
                left = left[~near & np.isfinite(step)]
                if not len(left):
                    break
        return t, is_settled

    def _start(self, level: float, rows: npt.NDArray[np.intp]) -> FloatArray:
        """The quantile (n,) of a normal in the transform, of the moments of y, or of a guess without them."""
        mean, variance = (part[:, rows] for part in self._moments())
        centre, spread = mean.mean(axis=0), variance.mean(axis=0) + mean.var(axis=0)
        with np.errstate(all="ignore"):
            if self._support == "positive":  # a log-normal of these moments
                spread = np.log1p(spread / centre**2)
                centre = np.log(centre) - 0.5 * spread
            elif self._support == "unit":
                spread = spread / (centre * (1.0 - centre)) ** 2
                centre = TRANSFORMS["unit"][1](centre)
            start = centre + ndtri(level) * np.sqrt(spread)
        middle, width = self._guess(rows)
        out: FloatArray = np.where(np.isfinite(start), start, middle + ndtri(level) * width)
        return out

    def _bracketed_root(self, level: float, rows: npt.NDArray[np.intp]) -> FloatArray:
        """The transformed root (n,), between two places with the distribution function on either side."""
        from scipy.optimize.elementwise import bracket_root, find_root

        value = TRANSFORMS[self._support][0]

        def excess(t: FloatArray, index: FloatArray) -> FloatArray:
            return self._row_cdf(value(t), index.astype(np.intp)) - level

        if self._support != "real":  # a law may have more than the level between 0 and the least number
            lies_above = excess(np.full(len(rows), _LEAST), rows.astype(np.float64)) < 0.0
            if not lies_above.all():
                root = np.full(len(rows), _LEAST)
                if lies_above.any():
                    root[lies_above] = self._bracketed_root(level, rows[lies_above])
                return root
        middle, width = self._guess(rows)
        args = (rows.astype(np.float64),)
        bracket = bracket_root(excess, middle - width, middle + width, args=args).bracket
        found: FloatArray = find_root(excess, bracket, args=args).x
        return found

    def _guess(self, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Where the transformed y lies, and how far it may be off: (n,) each."""
        mean, variance = (part.mean(axis=0) for part in (self._m[:, rows], self._v[:, rows]))
        return mean, 0.5 * np.sqrt(variance) + 0.5

    def _count_quantiles(self, levels: FloatArray, rows: npt.NDArray[np.intp]) -> FloatArray:
        """The smallest whole numbers with P(Y <= y) >= each of ascending levels (Q,): (n, Q)."""
        least = self._count_quantile(float(levels[0]), rows)
        if len(levels) == 1:
            return least[:, None]

        def cdf(y: FloatArray, at: npt.NDArray[np.intp]) -> FloatArray:
            return self._row_cdf(y, rows[at])

        return ascending_counts(cdf, np.tile(levels, (len(rows), 1)), least)

    def _count_quantile(self, level: float, rows: npt.NDArray[np.intp]) -> FloatArray:
        """The smallest whole number with P(Y <= y) >= level, between two that lie on either side."""
        low, high = self._count_bracket(level, rows)
        while True:
            middle = np.floor(0.5 * (low + high))
            open_ = (high - low > 1.0) & (low < middle) & (middle < high)
            if not open_.any():
                return high
            enough = np.zeros(len(rows), dtype=np.bool_)
            enough[open_] = self._row_cdf(middle[open_], rows[open_]) >= level
            high = np.where(open_ & enough, middle, high)
            low = np.where(open_ & ~enough, middle, low)

    def _count_bracket(self, level: float, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Whole numbers (n,) with P(Y <= low) < level <= P(Y <= high): from the quantile of a normal of the
        moments of y by steps that double, up where that is too low, else down to -1.
        """
        mean, variance = (part[:, rows] for part in self._moments())
        spread = np.sqrt(variance.mean(axis=0) + mean.var(axis=0))
        with np.errstate(invalid="ignore"):
            guess = np.round(mean.mean(axis=0) + ndtri(level) * spread)
        guess = np.where(np.isfinite(guess), np.maximum(guess, 0.0), 0.0)
        is_enough = self._row_cdf(guess, rows) >= level
        low, high = np.where(is_enough, -1.0, guess), guess.copy()
        for down in (False, True):
            left, reach = np.flatnonzero(is_enough == down), 1.0
            while len(left):
                with np.errstate(over="ignore"):
                    at = np.maximum(high[left] - reach, -1.0) if down else low[left] + reach
                passed = (at < 0.0) if down else np.isinf(at)  # a law may have no end among numbers
                look = np.flatnonzero(~passed)
                if len(look):
                    passed[look] = (self._row_cdf(at[look], rows[left[look]]) >= level) != down
                (low if down else high)[left[passed]] = at[passed]
                (high if down else low)[left[~passed]] = at[~passed]
                left, reach = left[~passed], 2.0 * reach
        return low, high

    def _checked(self, y: npt.ArrayLike) -> FloatArray:
        """`y` as (N,) in the units of the subclass; one number stands for all. InputError on shape or NaN."""
        return (checked_target(y, (len(self),)) - self._centre) / self._scale

    def _inside(self, y: FloatArray) -> npt.NDArray[np.bool_]:
        """Where y is a value of the support."""
        if self._support == "count":
            whole: npt.NDArray[np.bool_] = (y >= 0) & (y == np.floor(y)) & np.isfinite(y)
            return whole
        low, high = {"positive": (0.0, np.inf), "unit": (0.0, 1.0)}.get(self._support, (-np.inf, np.inf))
        return (y > low) & (y < high)


TRANSFORMS: dict[str, tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]] = {
    "real": (lambda t: t, lambda y: y),
    "positive": (bounded_exp, np.log),
    "unit": (expit, lambda y: np.log(y) - np.log1p(-y)),
}
"""y from the whole line, and back."""


def _derivative(support: str, y: FloatArray) -> FloatArray:
    """dy/dt (n,) of the transform of a support, at y."""
    if support == "real":
        return np.ones_like(y)
    return y if support == "positive" else y * (1.0 - y)

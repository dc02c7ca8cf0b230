"""Predictive laws for regressors that have none: what their out-of-fold predictions missed.

A law says P(y | m) of the observation given a prediction m > 0 or real, the same for all rows. Each of
several candidates is fitted to pairs (m, y) of rows that the regressor had not seen; the one that predicts
parts of these pairs best from the others is taken. A law that is a density is one in the units of y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from scipy.stats import nbinom

from nongauss.predictive.crps import by_quantiles
from nongauss.report.residuals import NEVER, Residuals, Unlike, kernel_residuals, normal_residuals, spread_of

FloatArray = npt.NDArray[np.float64]

_MOST_RESIDUALS = 600
_CHOOSING_FOLDS = 5
_CLOSEST_TO_END = 1e-6  # of predicted shares to 0 and 1


class Law(Protocol):
    """P(y | m) for observations and predictions of equal shape (N,)."""

    def log_prob(self, y: FloatArray, m: FloatArray) -> FloatArray:
        """Log density, or log probability of a count."""

    def cdf(self, y: FloatArray, m: FloatArray) -> FloatArray:
        """P(Y <= y)."""

    def quantile(self, level: FloatArray | float, m: FloatArray) -> FloatArray:
        """The smallest y with cdf >= level, for levels and predictions m that broadcast."""


@dataclass(frozen=True)
class ResidualScale:
    """A monotone map of the support of y to the whole line, on which residuals are taken."""

    forward: Callable[[FloatArray], FloatArray]
    back: Callable[[FloatArray], FloatArray]
    log_slope: Callable[[FloatArray], FloatArray]
    low: float = -np.inf
    high: float = np.inf

    def of_prediction(self, m: FloatArray) -> FloatArray:
        """Predictions (N,) on this scale, kept inside the support."""
        if np.isfinite(self.high):
            m = np.clip(m, self.low + _CLOSEST_TO_END, self.high - _CLOSEST_TO_END)
        elif np.isfinite(self.low):
            m = np.maximum(m, self.low + np.finfo(np.float64).tiny)
        return self.forward(m)

    def holds(self, y: FloatArray) -> npt.NDArray[np.bool_]:
        """Which numbers are in the support."""
        inside: npt.NDArray[np.bool_] = (y > self.low) & (y < self.high)
        return inside


def _log_slope_of_logit(y: FloatArray) -> FloatArray:
    out: FloatArray = -np.log(y) - np.log1p(-y)
    return out


SCALES: dict[str, ResidualScale] = {
    "identity": ResidualScale(lambda y: y, lambda z: z, np.zeros_like),
    "log": ResidualScale(np.log, lambda z: np.exp(np.minimum(z, 700.0)), lambda y: -np.log(y), 0.0),
    "logit": ResidualScale(logit, expit, _log_slope_of_logit, 0.0, 1.0),
}


def scales_for(y: FloatArray) -> tuple[str, ...]:
    """The scales on which a continuous target with these values may be predicted."""
    if y.min() > 0.0 and y.max() < 1.0:
        return ("identity", "logit")
    return ("identity", "log") if y.min() > 0.0 else ("identity",)


@dataclass(frozen=True)
class ShiftLaw:
    """t(y) = t(m) + e on a scale t, with one law of e for all rows: p(y | m) = p_e(t(y) - t(m)) |t'(y)|.

    Beyond the support of t, y - m has the law `beyond`: a zero among positive targets is
    unlikely, not impossible.
    """

    scale: ResidualScale
    residuals: Residuals
    beyond: Unlike = NEVER

    def _ends(self, m: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The probabilities of what is below and above the support: (N,) each."""
        below, above = self.beyond.cdf(self.scale.low - m), self.beyond.cdf(m - self.scale.high)
        return below, above

    def log_prob(self, y: FloatArray, m: FloatArray) -> FloatArray:
        """Log density at y (N,)."""
        out, inside = self.beyond.log_prob(y - m), self.scale.holds(y)
        below, above = self._ends(m[inside])
        y = y[inside]
        e = self.scale.forward(y) - self.scale.of_prediction(m)[inside]
        out[inside] = self.residuals.log_prob(e) + self.scale.log_slope(y) + np.log1p(-below - above)
        return out

    def cdf(self, y: FloatArray, m: FloatArray) -> FloatArray:
        """P(Y <= y), y (N,)."""
        out, inside = self.beyond.cdf(y - m), self.scale.holds(y)
        out = np.where(y >= self.scale.high, 1.0 - self.beyond.cdf(m - y), out)
        below, above = self._ends(m[inside])
        e = self.scale.forward(y[inside]) - self.scale.of_prediction(m)[inside]
        out[inside] = below + (1.0 - below - above) * self.residuals.cdf(e)
        return out

    def quantile(self, level: FloatArray | float, m: FloatArray) -> FloatArray:
        """The smallest y of the support with cdf >= level, for levels and predictions m that broadcast."""
        below, above = self._ends(m)
        level = np.clip((level - below) / (1.0 - below - above), 0.0, 1.0)
        return self.scale.back(self.scale.of_prediction(m) + self.residuals.quantile(level))


@dataclass(frozen=True)
class RoundedLaw:
    """A count that is m + e rounded, never below 0: P(Y <= k | m) = F_e(k + 1/2 - m), k = 0, 1, ..."""

    residuals: Residuals

    def log_prob(self, y: FloatArray, m: FloatArray) -> FloatArray:
        """Log density, or log probability of a count, at y (N,)."""
        chance = self.cdf(y, m) - self.cdf(y - 1.0, m)
        whole = (y >= 0) & (y == np.round(y))
        out: FloatArray = np.where(whole, np.log(np.maximum(chance, 1e-300)), -np.inf)
        return out

    def cdf(self, y: FloatArray, m: FloatArray) -> FloatArray:
        """P(Y <= y), y (N,)."""
        return np.where(y < 0, 0.0, self.residuals.cdf(np.floor(y) + 0.5 - m))

    def quantile(self, level: FloatArray | float, m: FloatArray) -> FloatArray:
        """The smallest y with cdf >= level, for levels and predictions m that broadcast."""
        return np.maximum(np.ceil(m + self.residuals.quantile(level) - 0.5), 0.0)


@dataclass(frozen=True)
class NegativeBinomialLaw:
    """Counts of mean m and variance m + m^2 / r; r = 1e8 stands for the Poisson law."""

    r: float

    def _law(self, m: FloatArray) -> Any:
        m = np.maximum(m, 1e-12)
        return nbinom(self.r, self.r / (self.r + m))

    def log_prob(self, y: FloatArray, m: FloatArray) -> FloatArray:
        """Log density, or log probability of a count, at y (N,)."""
        out: FloatArray = np.maximum(self._law(m).logpmf(y), -700.0)
        return out

    def cdf(self, y: FloatArray, m: FloatArray) -> FloatArray:
        """P(Y <= y), y (N,)."""
        out: FloatArray = self._law(m).cdf(y)
        return out

    def quantile(self, level: FloatArray | float, m: FloatArray) -> FloatArray:
        """The smallest y with cdf >= level, for levels and predictions m that broadcast."""
        out: FloatArray = self._law(m).ppf(level)
        return out


def negative_binomial(y: FloatArray, m: FloatArray) -> NegativeBinomialLaw:
    """The dispersion r under which counts y of means m (N,) are most likely."""

    def loss(log_r: float) -> float:
        return -float(NegativeBinomialLaw(float(np.exp(log_r))).log_prob(y, m).sum())

    found = minimize_scalar(loss, bounds=(np.log(1e-3), np.log(1e8)), method="bounded")
    return NegativeBinomialLaw(float(np.exp(found.x)))


Candidate = Callable[[FloatArray, FloatArray], Law]
"""From observations and predictions (N,), those of rows not fitted to, to a law."""


def _shifted(scale: str, fitted: Callable[[FloatArray], Residuals], bounded: bool) -> Candidate:
    t = SCALES[scale]

    def candidate(y: FloatArray, m: FloatArray) -> Law:
        beyond = NEVER if bounded else Unlike(spread_of(y - m), len(y))
        return ShiftLaw(t, fitted(t.forward(y) - t.of_prediction(m)), beyond)

    return candidate


def candidates(scales: Sequence[str], counts: bool, bounded: bool = False) -> list[Candidate]:
    """The laws among which the pairs of predictions and observations decide.

    `bounded`: no target lies outside the support of a scale.
    """
    if counts:
        return [negative_binomial, lambda y, m: RoundedLaw(kernel_residuals(y - m))]
    fits = (normal_residuals, kernel_residuals)
    return [_shifted(scale, fitted, bounded) for scale in scales for fitted in fits]


def best_law(options: Sequence[Candidate], y: FloatArray, m: FloatArray) -> tuple[Law, float]:
    """The law that predicts parts of the pairs (m, y), (N,) each, best from the others, and its score.

    The score is the mean log probability of the pairs that a law was not fitted to, in nats.
    """
    order = np.random.default_rng(0).permutation(len(y))[: 4 * _MOST_RESIDUALS]
    parts = np.array_split(order, min(_CHOOSING_FOLDS, len(order)))
    scores = []
    for option in options:
        total = 0.0
        for part in parts:
            rest = np.setdiff1d(order, part)
            total += float(option(y[rest], m[rest]).log_prob(y[part], m[part]).sum())
        scores.append(total / len(order))
    best = int(np.argmax(scores))
    return options[best](y, m), scores[best]


class LawRows:
    """The predictive distribution of N rows under one law, around the predictions `mean` (N,)."""

    def __init__(self, law: Law, mean: FloatArray) -> None:
        self.mean, self._law = mean, law

    def __len__(self) -> int:
        return len(self.mean)

    def _rows(self, y: npt.ArrayLike) -> FloatArray:
        return np.broadcast_to(np.asarray(y, dtype=np.float64), self.mean.shape)

    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """Log density or log probability of y, (N,) or one number: (N,)."""
        return self._law.log_prob(self._rows(y), self.mean)

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y <= y): (N,)."""
        return self._law.cdf(self._rows(y), self.mean)

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Quantiles at the levels q: (N,) for one, (N, Q) for (Q,)."""
        levels = np.asarray(q, dtype=np.float64)
        return self._law.quantile(levels, self.mean[:, None] if levels.ndim else self.mean)

    def at_levels(self, levels: FloatArray) -> FloatArray:
        """The quantile of each row at a level of its own (N,): (N,)."""
        return self._law.quantile(levels, self.mean)

    def crps(self, y: npt.ArrayLike) -> FloatArray:
        """Continuous ranked probability score at y, (N,) or one number, to about a thousandth: (N,)."""
        at = np.asarray(y, dtype=np.float64)
        return by_quantiles(self.quantile, np.broadcast_to(at, (len(self),)))

    def interval(self, coverage: float = 0.9) -> FloatArray:
        """Central interval: (N, 2)."""
        tail = 0.5 * (1.0 - coverage)
        return self.quantile(np.array([tail, 1.0 - tail]))


class AtomRows:
    """Rows that take one of a few values with a probability of its own each, else follow a continuous law.

    `atoms` (A,) ascending, `chance` (N, A + 1) their probabilities and, last, that of the law `rest`.
    """

    def __init__(self, atoms: FloatArray, chance: FloatArray, rest: LawRows) -> None:
        self._atoms, self._chance, self._rest = atoms, chance, rest

    def __len__(self) -> int:
        return len(self._chance)

    @property
    def mean(self) -> FloatArray:
        """Expectation: (N,)."""
        out: FloatArray = self._chance[:, :-1] @ self._atoms + self._chance[:, -1] * self._rest.mean
        return out

    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """Log probability where y is one of the values, log density elsewhere: (N,)."""
        at = np.broadcast_to(np.asarray(y, dtype=np.float64), (len(self),))
        here = at[:, None] == self._atoms
        with np.errstate(divide="ignore"):
            elsewhere = np.log(self._chance[:, -1]) + self._rest.log_prob(at)
            return np.where(here.any(axis=1), np.log((self._chance[:, :-1] * here).sum(axis=1)), elsewhere)

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y <= y): (N,)."""
        at = np.broadcast_to(np.asarray(y, dtype=np.float64), (len(self),))
        below = (self._chance[:, :-1] * (self._atoms <= at[:, None])).sum(axis=1)
        out: FloatArray = below + self._chance[:, -1] * self._rest.cdf(at)
        return np.clip(out, 0.0, 1.0)

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Quantiles at the levels q: (N,) for one, (N, Q) for (Q,)."""
        levels = np.asarray(q, dtype=np.float64)
        columns = [self._quantile(float(level)) for level in levels.ravel()]
        return np.stack(columns, axis=1) if levels.ndim else columns[0]

    def _quantile(self, level: float) -> FloatArray:
        """The smallest y with cdf >= level: between two values that of the law, or the value itself."""
        out, found = np.empty(len(self)), np.zeros(len(self), dtype=np.bool_)
        left = np.full(len(self), level)  # the level less what the values so far have taken
        for number, atom in enumerate(self._atoms):
            below = ~found & (left <= self._chance[:, -1] * self._rest.cdf(atom))
            here = ~found & ~below & (self.cdf(atom) >= level)
            out = np.where(below, self._of_rest(left), np.where(here, atom, out))
            found |= below | here
            left = left - self._chance[:, number]
        return np.where(found, out, self._of_rest(left))

    def _of_rest(self, mass: FloatArray) -> FloatArray:
        """The quantile of the continuous law below which it holds this much of its own mass."""
        return self._rest.at_levels(np.clip(mass / np.maximum(self._chance[:, -1], 1e-300), 0.0, 1.0 - 1e-12))

    def crps(self, y: npt.ArrayLike) -> FloatArray:
        """Continuous ranked probability score at y, (N,) or one number, to about a thousandth: (N,)."""
        at = np.asarray(y, dtype=np.float64)
        return by_quantiles(self.quantile, np.broadcast_to(at, (len(self),)))

    def interval(self, coverage: float = 0.9) -> FloatArray:
        """Central interval: (N, 2)."""
        tail = 0.5 * (1.0 - coverage)
        return self.quantile(np.array([tail, 1.0 - tail]))

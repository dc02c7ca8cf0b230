"""Mixtures of C Gaussians, one mixture a row: densities, distribution functions, quantiles and draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from nongauss.core.errors import InputError
from nongauss.core.seeds import key_seed
from nongauss.predictive import crps
from nongauss.predictive.distribution import (
    FloatArray,
    PredictiveDistribution,
    checked_count,
    checked_levels,
    checked_target,
)

Components = Callable[[npt.NDArray[np.intp]], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]]

_BLOCK_NUMBERS = 4_000_000
_KEPT_NUMBERS = 1_000_000  # N x C x P up to which the components of all rows are kept: 24 MB
_HALF_LOG_2PI, _ROOT_2PI = 0.5 * math.log(2.0 * math.pi), math.sqrt(2.0 * math.pi)
_MAX_STEPS = 250
_CHUNK = 100_000  # numbers worked on at a time: the working arrays stay in the processor's cache
_LOG_TOL = 1e-13  # |log(F/q)| that counts as solved; the sum over components is good to about 1e-15
_LAST_STEP = 1e-5  # Halley's error is cubic: a step this small (in local units) leaves about 1e-15
_EPS = 2.0**-52
_LEAST_LOG_WEIGHT = math.log(1e-13)  # of a Gaussian that tells how far a law extends


@final
class GaussianMixtureDistribution(PredictiveDistribution):
    r"""Each row is a mixture of C Gaussians whose P outputs are independent given the component.

    $p(y) = \sum_c w_c \prod_p N(y_p; m_{cp}, s_{cp}^2)$, evaluated in blocks of rows, so that a block's
    N x C x P numbers stay few however many rows there are.

    Parameters
    ----------
    mean, variance : (N, P)
        Exact moments in target units.
    components : callable (rows (n,)) -> (log_weights (n, C), means (n, C, P), sds (n, C, P))
        The mixtures of the rows of these numbers, target units; weights sum to 1, sds are positive. Unless
        few, they are asked for anew by each method, with equal answers.
    squeeze : bool
        Drop the output axis from all results (needs P = 1).
    n_components : int, optional
        C, which sets the number of rows in a block. Without it, row 0 is asked for once to see.
    """

    def __init__(
        self,
        mean: npt.ArrayLike,
        variance: npt.ArrayLike,
        components: Components,
        *,
        squeeze: bool,
        n_components: int | None = None,
    ) -> None:
        self._mean = np.asarray(mean, dtype=np.float64)
        self._variance = np.asarray(variance, dtype=np.float64)
        self._components = components
        self._squeeze = squeeze
        self._n_components = n_components
        self._kept: tuple[FloatArray, FloatArray, FloatArray] | None = None
        self._kept_weights: FloatArray | None = None
        if self._mean.ndim != 2 or self._variance.shape != self._mean.shape:
            raise InputError(
                "mean and variance must both have shape (n_rows, n_outputs): got "
                f"{self._mean.shape} and {self._variance.shape}."
            )
        if squeeze and self._mean.shape[1] != 1:
            raise InputError(f"squeeze needs exactly one output: got {self._mean.shape[1]}.")

    def __len__(self) -> int:
        return len(self._mean)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_rows={len(self)}, n_outputs={self._mean.shape[1]})"

    @property
    def mean(self) -> FloatArray:
        """Expectation, exact: (N, P)."""
        return self._shaped(self._mean.copy())

    @property
    def variance(self) -> FloatArray:
        """Variance, exact: (N, P)."""
        return self._shaped(self._variance.copy())

    @property
    def n_components(self) -> int:
        """Number C of Gaussians of each row."""
        if self._n_components is None:
            self._n_components = np.shape(self._components(np.zeros(1, np.intp))[0])[1] if len(self) else 0
        return self._n_components

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Quantiles of each output alone, to about 1e-13 in probability: (N, P) or (N, Q, P)."""
        levels = checked_levels(q)
        n_outputs = self._mean.shape[1]
        out = np.empty((len(self), levels.size, n_outputs))
        for rows, weights, means, sds in self._weighed():
            for p in range(n_outputs):
                mean_p, sd_p = np.ascontiguousarray(means[:, :, p]), np.ascontiguousarray(sds[:, :, p])
                guess, spread = self._mean[rows, p], np.sqrt(self._variance[rows, p])
                for j, level in enumerate(levels.ravel()):
                    start = guess + spread * _normal_quantile(level)
                    out[rows, j, p] = mixture_quantile(float(level), weights, mean_p, sd_p, start)
        return self._shaped(out if levels.ndim else out[:, 0])

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y <= y) of each output alone, small values to full relative precision: (N, P)."""
        return self._below(self._checked_target(y), 1.0)

    def survival(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y > y) of each output alone, small values to full relative precision: (N, P)."""
        return self._below(-self._checked_target(y), -1.0)

    def extent(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Where Gaussians of more than 1e-13 of the mass lie, to six standard deviations, and the mean."""
        low, high = np.empty_like(self._mean), np.empty_like(self._mean)
        for rows, log_weights, means, sds in self._blocks():
            reach = np.where(log_weights[:, :, None] > _LEAST_LOG_WEIGHT, 6.0 * sds, -np.inf)
            low[rows], high[rows] = (means - reach).min(axis=1), (means + reach).max(axis=1)
        return self._shaped(low), self.mean, self._shaped(high)

    @property
    def _output_shape(self) -> tuple[int, ...]:
        return () if self._squeeze else self._mean.shape[1:]

    @property
    def knows_tails(self) -> bool:
        """Each tail is a sum of normal ones."""
        return True

    def _below(self, target: FloatArray, sign: float) -> FloatArray:
        """P(sign Y <= target) of each output alone, target (N, P): (N, P)."""
        out = np.empty_like(target)
        for rows, weights, means, sds in self._weighed():
            for p in range(target.shape[1]):
                out[rows, p] = mixture_cdf(target[rows, p], weights, sign * means[:, :, p], sds[:, :, p])
        return self._shaped(out)

    def log_prob(self, y: npt.ArrayLike) -> FloatArray:
        """Log density, joint over the outputs, by log-sum-exp (finite far out): (N,)."""
        target = self._checked_target(y)
        out = np.empty(len(self))
        for rows, log_weights, means, sds in self._blocks():
            z = (target[rows, None, :] - means) / sds
            with np.errstate(over="ignore"):  # beyond 1e154 sds the log density is -inf
                terms = log_weights - (0.5 * z * z + np.log(sds) + _HALF_LOG_2PI).sum(axis=2)
            out[rows] = _log_sum_exp(terms)
        return out

    def sample(self, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` joint draws for each row: (N, n, P). Equal `random_state`, equal draws."""
        n_draws = checked_count(n)
        rng = np.random.default_rng(key_seed(random_state))
        n_rows, n_outputs = self._mean.shape
        which = rng.random((n_rows, n_draws))
        out = rng.standard_normal((n_rows, n_draws, n_outputs))  # all noise first: no trace of the blocks
        for rows, weights, means, sds in self._weighed():
            chosen = _choose(weights, which[rows])[:, :, None]
            out[rows] *= np.take_along_axis(sds, chosen, axis=1)
            out[rows] += np.take_along_axis(means, chosen, axis=1)
        return self._shaped(out)

    def crps(self, y: npt.ArrayLike) -> FloatArray:
        """Continuous ranked probability score of each output at `y`, in closed form: (N, P)."""
        target = self._checked_target(y)
        out = np.empty_like(target)
        for rows, weights, means, sds in self._weighed():
            for p in range(target.shape[1]):
                out[rows, p] = crps.gaussians(target[rows, p], weights, means[:, :, p], sds[:, :, p])
        return self._shaped(out)

    def _take(self, rows: npt.NDArray[np.intp]) -> GaussianMixtureDistribution:
        """The mixtures of the rows of these numbers."""
        return GaussianMixtureDistribution(
            self._mean[rows],
            self._variance[rows],
            lambda own: self._of(rows[own]),
            squeeze=self._squeeze,
            n_components=self._n_components,
        )

    def __getstate__(self) -> dict[str, Any]:
        """With all components as arrays: another process may not know the function that gives them."""
        every = self._of(np.arange(len(self))) if len(self) else (np.empty((0, 1, 1)),) * 3
        return self.__dict__ | {"_components": partial(_some, every)}

    def _blocks(self) -> Iterator[tuple[slice, FloatArray, FloatArray, FloatArray]]:
        """The rows in blocks of at most `_BLOCK_NUMBERS` numbers (but one row at least)."""
        height = max(1, _BLOCK_NUMBERS // max(1, self.n_components * self._mean.shape[1]))
        kept = self._all()
        for start in range(0, len(self), height):
            rows = slice(start, min(start + height, len(self)))
            if kept is None:
                yield rows, *self._asked(np.arange(rows.start, rows.stop))
            else:
                yield rows, kept[0][rows], kept[1][rows], kept[2][rows]

    def _weighed(self) -> Iterator[tuple[slice, FloatArray, FloatArray, FloatArray]]:
        """The blocks, with weights instead of their logs."""
        if self._kept_weights is None and (every := self._all()) is not None:
            self._kept_weights = np.exp(every[0])
        kept = self._kept_weights
        for rows, log_weights, means, sds in self._blocks():
            yield rows, np.exp(log_weights) if kept is None else kept[rows], means, sds

    def _all(self) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """The components of all rows, which are kept where they are few."""
        if self._kept is None and 0 < self._mean.size * self.n_components <= _KEPT_NUMBERS:
            self._kept = self._asked(np.arange(len(self)))
        return self._kept

    def _of(self, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The components of some rows, from those of all where these are kept."""
        kept = self._all()
        return self._asked(rows) if kept is None else _some(kept, rows)

    def _asked(self, rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The components of some rows, computed now. Raises ValueError for those of other rows."""
        parts = self._components(rows)
        log_weights, means, sds = (np.asarray(part, dtype=np.float64) for part in parts)
        size = (len(rows), self.n_components, self._mean.shape[1])
        if (got := (log_weights.shape, means.shape, sds.shape)) != (size[:2], size, size):
            raise ValueError(
                f"components of {size[0]} rows must have shapes {(size[:2], size, size)}: got {got}."
            )
        return log_weights, means, sds

    def _shaped(self, values: FloatArray) -> FloatArray:
        return values[..., 0] if self._squeeze else values

    def _checked_target(self, y: npt.ArrayLike) -> FloatArray:
        """`y` as (N, P) floats; one number stands for all. Raises `InputError` on shape or NaN."""
        if self._squeeze:
            return checked_target(y, self._mean.shape[:1])[:, None]
        return checked_target(y, self._mean.shape)


def _some(
    every: tuple[FloatArray, FloatArray, FloatArray], rows: npt.NDArray[np.intp]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Some rows of log weights, means and standard deviations."""
    return every[0][rows], every[1][rows], every[2][rows]


def standard_normal(n_rows: int) -> GaussianMixtureDistribution:
    """N(0, 1) in each of N rows."""

    def components(rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        plain = np.zeros((len(rows), 1))
        return plain, plain[:, :, None], np.ones((len(rows), 1, 1))

    one = np.ones((n_rows, 1))
    return GaussianMixtureDistribution(0.0 * one, one, components, squeeze=True, n_components=1)


def of_scores(
    base: GaussianMixtureDistribution, scores: GaussianMixtureDistribution
) -> GaussianMixtureDistribution:
    """The law of m + s z, where `base` is one Gaussian N(m, s^2) a row and z has the law `scores`."""

    def components(rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        _, m, s = (np.asarray(part) for part in base._components(rows))
        log_weights, means, sds = (np.asarray(part) for part in scores._components(rows))
        return log_weights, m + s * means, s * sds

    sd = np.sqrt(base._variance)
    return GaussianMixtureDistribution(
        base._mean + sd * scores._mean,
        base._variance * scores._variance,
        components,
        squeeze=base._squeeze,
        n_components=scores.n_components,
    )


def mixture_cdf(y: FloatArray, weights: FloatArray, means: FloatArray, sds: FloatArray) -> FloatArray:
    """P(Y <= y) of each row: y (R,), the rest (R, C), to (R,)."""
    z = y[:, None] - means
    z /= sds
    total = np.einsum("rc,rc->r", weights, ndtr(z, out=z))
    out: FloatArray = np.minimum(total, 1.0)  # weights sum to 1 only up to rounding
    return out


def mixture_quantile(
    q: float, weights: FloatArray, means: FloatArray, sds: FloatArray, start: FloatArray
) -> FloatArray:
    """The point below which mass `q` (0 <= q <= 1) lies, for each row: (R,).

    weights, means, sds: (R, C), sds positive, weights summing to 1. start: (R,), a first guess, anywhere.
    Above the median the mirrored problem is solved, so that both tails keep their relative precision.
    """
    if q in (0.0, 1.0):
        return np.full(len(means), -np.inf if q == 0.0 else np.inf)
    sign, tail = (-1.0, 1.0 - q) if q > 0.5 else (1.0, q)
    out = np.empty(len(means))
    height = max(1, _CHUNK // max(1, means.shape[1]))
    for first in range(0, len(means), height):
        rows = slice(first, first + height)
        out[rows] = sign * _lower_quantile(
            tail, weights[rows], sign * means[rows], sds[rows], sign * start[rows]
        )
    return out


def _lower_quantile(
    q: float, weights: FloatArray, means: FloatArray, sds: FloatArray, start: FloatArray
) -> FloatArray:
    """Solve log F(x) = log q by Halley steps inside a bracket, halving it where a step is no good.

    The bracket: below every component's own quantile F is less than q, above all of them it is more.
    """
    own = means + sds * ndtri(q)
    used = weights > 0.0
    low = np.where(used, own, np.inf).min(axis=1)
    high = np.where(used, own, -np.inf).max(axis=1)
    x = np.clip(start, low, high)
    last = high - low
    rows = np.arange(len(x))  # those not yet solved; the arrays below hold these rows only
    out = x.copy()
    for _ in range(_MAX_STEPS):
        excess, step, solved = _halley(x, q, weights, means, sds)
        low, high = np.where(excess < 0.0, x, low), np.where(excess < 0.0, high, x)
        moved = x + step
        solved &= (moved >= low) & (moved <= high)
        halve = ~solved & ~((moved > low) & (moved < high) & (np.abs(step) < 0.5 * last))
        moved = np.where(halve, low + 0.5 * (high - low), moved)
        last = np.abs(moved - x)
        moved = np.where(np.abs(excess) <= _LOG_TOL, x, moved)
        out[rows] = moved
        on = ~(solved | (last <= _EPS * np.abs(x)) | (high - low <= 2.0 * _EPS * np.abs(x)))
        on &= np.abs(excess) > _LOG_TOL
        if not on.any():
            break
        if not on.all():
            rows, x, low, high, last = rows[on], moved[on], low[on], high[on], last[on]
            weights, means, sds = weights[on], means[on], sds[on]
        else:
            x = moved
    return out


def _halley(
    x: FloatArray, q: float, weights: FloatArray, means: FloatArray, sds: FloatArray
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """log F(x) - log q, Halley's step towards its root, and whether that step is surely the last."""
    z = (x[:, None] - means) / sds
    mass = np.einsum("rc,rc->r", weights, ndtr(z))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        bell = weights * np.exp(-0.5 * z * z) / (_ROOT_2PI * sds)
        density = bell.sum(axis=1)
        slope = -np.einsum("rc,rc->r", bell, z / sds)
        excess = np.log(mass / q)
        newton = -excess * mass / density
        bend = slope / density - density / mass  # (log F)'' / (log F)'
        step = newton / np.clip(1.0 + 0.5 * newton * bend, 0.5, 2.0)
        reach = np.abs(newton) * (np.abs(bend) + 1.0 / sds.min(axis=1))
        solved = reach < _LAST_STEP
    return excess, step, solved


def _normal_quantile(level: float) -> float:
    """Standard normal quantile, kept finite: it is only a first guess."""
    return float(np.clip(ndtri(level), -40.0, 40.0))


def _log_sum_exp(terms: FloatArray) -> FloatArray:
    """log sum_c exp(terms): (n, C) to (n,); -inf where all terms are."""
    top = terms.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        out: FloatArray = safe + np.log(np.exp(terms - safe[:, None]).sum(axis=1))
    return out


def _choose(weights: FloatArray, uniform: FloatArray) -> npt.NDArray[np.intp]:
    """Index of the component that each uniform number falls on: weights (n, C), uniform (n, S), to (n, S).

    Row r's cumulative weights are shifted by r, so that one sorted search serves all rows.
    """
    n, size = weights.shape
    edges = np.cumsum(weights, axis=1)
    edges /= edges[:, -1:]
    row = np.arange(n)[:, None]
    found = np.searchsorted((edges + row).ravel(), (uniform + row).ravel(), side="right")
    out: npt.NDArray[np.intp] = np.clip(found.reshape(uniform.shape) - row * size, 0, size - 1)
    return out

"""What a model says about a row's target: a whole distribution, in the target's own units."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from nongauss.core.errors import InputError
from nongauss.core.seeds import key_seed
from nongauss.predictive.mixture import FloatArray, mixture_cdf, mixture_quantile

__all__ = ["FloatArray", "GaussianMixtureDistribution", "PredictiveDistribution", "averaged"]

Components = Callable[[int, int], tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]]

_BLOCK_NUMBERS = 4_000_000
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


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
    @final
    def std(self) -> FloatArray:
        """Standard deviation: (N, P)."""
        return np.sqrt(self.variance)

    @final
    def interval(self, coverage: float = 0.9) -> FloatArray:
        """Central interval of each output that leaves (1 - coverage)/2 on either side: (N, 2, P)."""
        tail = 0.5 * (1.0 - _checked_coverage(coverage))
        return self.quantile(np.array([tail, 1.0 - tail]))


@final
class GaussianMixtureDistribution(PredictiveDistribution):
    r"""Each row is a mixture of C Gaussians whose P outputs are independent given the component.

    $p(y) = \sum_c w_c \prod_p N(y_p; m_{cp}, s_{cp}^2)$, evaluated in blocks of rows, so that a block's
    N x C x P numbers stay few however many rows there are.

    Parameters
    ----------
    mean, variance : (N, P)
        Exact moments in target units.
    components : callable (start, stop) -> (log_weights (n, C), means (n, C, P), sds (n, C, P))
        The mixtures of rows start..stop-1, target units; weights sum to 1, sds are positive. It is called
        anew by each method and must give equal answers.
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

    def quantile(self, q: npt.ArrayLike) -> FloatArray:
        """Quantiles of each output alone, to about 1e-13 in probability: (N, P) or (N, Q, P)."""
        levels = checked_levels(q)
        n_outputs = self._mean.shape[1]
        out = np.empty((len(self), levels.size, n_outputs))
        for rows, log_weights, means, sds in self._blocks():
            weights = np.exp(log_weights)
            for p in range(n_outputs):
                mean_p, sd_p = np.ascontiguousarray(means[:, :, p]), np.ascontiguousarray(sds[:, :, p])
                guess, spread = self._mean[rows, p], np.sqrt(self._variance[rows, p])
                for j, level in enumerate(levels.ravel()):
                    start = guess + spread * _normal_quantile(level)
                    out[rows, j, p] = mixture_quantile(float(level), weights, mean_p, sd_p, start)
        return self._shaped(out if levels.ndim else out[:, 0])

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y <= y) of each output alone, small values to full relative precision: (N, P)."""
        target = self._checked_target(y)
        out = np.empty_like(target)
        for rows, log_weights, means, sds in self._blocks():
            weights = np.exp(log_weights)
            for p in range(target.shape[1]):
                out[rows, p] = mixture_cdf(target[rows, p], weights, means[:, :, p], sds[:, :, p])
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
        for rows, log_weights, means, sds in self._blocks():
            chosen = _choose(np.exp(log_weights), which[rows])[:, :, None]
            out[rows] *= np.take_along_axis(sds, chosen, axis=1)
            out[rows] += np.take_along_axis(means, chosen, axis=1)
        return self._shaped(out)

    def _blocks(self) -> Iterator[tuple[slice, FloatArray, FloatArray, FloatArray]]:
        """The rows in blocks of at most `_BLOCK_NUMBERS` numbers (but one row at least)."""
        n_rows, n_outputs = self._mean.shape
        if self._n_components is None and n_rows:
            self._n_components = np.shape(self._components(0, 1)[0])[1]
        height = max(1, _BLOCK_NUMBERS // max(1, (self._n_components or 1) * n_outputs))
        for start in range(0, n_rows, height):
            rows = slice(start, min(start + height, n_rows))
            parts = self._components(rows.start, rows.stop)
            log_weights, means, sds = (np.asarray(part, dtype=np.float64) for part in parts)
            expected = (rows.stop - rows.start, self._n_components, n_outputs)
            if log_weights.shape != expected[:2] or means.shape != expected or sds.shape != expected:
                raise ValueError(
                    f"components({rows.start}, {rows.stop}) must give shapes {expected[:2]}, {expected}, "
                    f"{expected}: got {log_weights.shape}, {means.shape}, {sds.shape}."
                )
            yield rows, log_weights, means, sds

    def _shaped(self, values: FloatArray) -> FloatArray:
        return values[..., 0] if self._squeeze else values

    def _checked_target(self, y: npt.ArrayLike) -> FloatArray:
        """`y` as (N, P) floats; one number stands for all. Raises `InputError` on shape or NaN."""
        expected = self._mean.shape
        try:
            target = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"y must hold numbers only: {error}.") from error
        if target.ndim == 0:
            target = np.full(expected, float(target))
        elif self._squeeze and target.ndim == 1:
            target = target[:, None]
        if target.shape != expected:
            wanted = expected[:1] if self._squeeze else expected
            raise InputError(
                f"y does not fit this distribution: got shape {np.shape(y)}, expected {wanted}; "
                "pass one target for each row that was predicted."
            )
        missing = np.isnan(target).any(axis=1)
        if missing.any():
            raise InputError(f"y has a missing value in row {int(missing.argmax())}; leave that row out.")
        return target


def averaged(
    parts: Sequence[GaussianMixtureDistribution], weights: FloatArray
) -> GaussianMixtureDistribution:
    """The mixture of several distributions of the same rows, with weights (C,) that sum to 1."""
    mean = sum(w * part._mean for w, part in zip(weights, parts, strict=True))
    variance = sum(
        w * (part._variance + (part._mean - mean) ** 2) for w, part in zip(weights, parts, strict=True)
    )
    with np.errstate(divide="ignore"):
        logs = np.log(weights)

    def components(start: int, stop: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        every = [part._components(start, stop) for part in parts]
        log_weights = [np.asarray(own[0]) + log for own, log in zip(every, logs, strict=True)]
        means, sds = (np.concatenate([own[i] for own in every], axis=1) for i in (1, 2))
        return np.concatenate(log_weights, axis=1), means, sds

    return GaussianMixtureDistribution(mean, variance, components, squeeze=parts[0]._squeeze)


def _checked_coverage(coverage: Any) -> float:
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


def _normal_quantile(level: float) -> float:
    """Standard normal quantile, kept finite: it is only a first guess."""
    return float(np.clip(ndtri(level), -40.0, 40.0))


def _log_sum_exp(terms: FloatArray) -> FloatArray:
    """log sum_c exp(terms): (n, C) to (n,); -inf where all terms are."""
    top = terms.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return safe + np.log(np.exp(terms - safe[:, None]).sum(axis=1))


def _choose(weights: FloatArray, uniform: FloatArray) -> npt.NDArray[np.intp]:
    """Index of the component that each uniform number falls on: weights (n, C), uniform (n, S), to (n, S).

    Row r's cumulative weights are shifted by r, so that one sorted search serves all rows.
    """
    n, size = weights.shape
    edges = np.cumsum(weights, axis=1)
    edges /= edges[:, -1:]
    row = np.arange(n)[:, None]
    found = np.searchsorted((edges + row).ravel(), (uniform + row).ravel(), side="right")
    return np.clip(found.reshape(uniform.shape) - row * size, 0, size - 1)

"""What the model says about new rows: exact moments, and the skewed density as a mixture over the units."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp
from scipy.stats import qmc

from nongauss.core.device import double_precision
from nongauss.core.records import persistable
from nongauss.optimise.minibatch import bucket
from nongauss.prob import probit, truncnorm
from nongauss.tables.sparse import SparseRows
from nongauss.tggm.objective import filled, last_drive
from nongauss.tggm.params import Config, Params

N_POINTS = 64
"""Quasi-random points of the hidden units a member. See `components` for the error that this leaves."""

N_SKEWED = 8
"""Units a row whose skewness is integrated; the others enter by their mean and variance."""

N_FINE = 64
"""Points of the grid for the probabilities of labels."""

_BLOCK, _SMALL_BLOCK = 8192, 512
"""Rows that are computed at once: blocks are padded to one of two sizes, so that little is compiled."""

_MOST_NUMBERS = 2**24
"""Numbers that rows computed at once may need: wider rows, or ones of many classes, go in small blocks."""

TINY = 1e-200

FloatArray = NDArray[np.float64]
Parts = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@persistable("tggm.Ensemble", "nongauss.tggm.predict:Ensemble")
class Ensemble(NamedTuple):
    """Fitted members with what undoes the scaling: all that a prediction needs.

    `inflation` (P,): factor of every variance. `skewness` in [0, 1]: the share of the hidden variance that
    keeps its skewed shape, the rest of it being taken as Gaussian. `centre`, `scale` (P,): of the target.
    """

    params: Params
    config: Config
    inflation: FloatArray
    skewness: float
    centre: FloatArray
    scale: FloatArray

    def moments(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of y in original units at standardised rows X (N, D): (N, P) each.

        Exact for the mixture of members: the average of their means; the average of their variances plus
        the spread of their means.
        """
        mean, variance = member_moments_of(self.params, self.config, X)
        middle = mean.mean(axis=0)
        total = self.inflation * variance.mean(axis=0) + ((mean - middle) ** 2).mean(axis=0)
        return self.centre + self.scale * middle, self.scale**2 * total

    @property
    def n_components(self) -> int:
        """Gaussians in the mixture that stands for the density of a row."""
        return len(self.params.b1) * (1 if self.config.method == "bp" else N_POINTS)

    def components(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The predictive mixture of each row, original units: log weights (N, C), means and sds (N, C, P).

        Mean and variance are exact. What the finite number of points leaves is an error of the shape. In the
        distribution function, at full skewness, it is at most 0.007 where a single unit varies as much as the
        noise and 0.035 where it varies ten times as much, the worst case (tests/tggm/test_predict.py), and
        up to 0.02 in a fitted model (tests/tggm/test_estimator.py).
        """
        means, variances = mixture(parts_of(self.params, self.config, X), self.inflation, self.skewness)
        n_rows, n_outputs = len(X), len(self.centre)
        means = np.moveaxis(means, 0, 1).reshape(n_rows, -1, n_outputs)
        sds = np.sqrt(np.moveaxis(variances, 0, 1).reshape(n_rows, -1, n_outputs))
        weights = np.full(means.shape[:2], -np.log(means.shape[1]))
        return weights, self.centre + self.scale * means, np.abs(self.scale) * sds

    def classes(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Of labels: the probability of each class (N, C), rows summing to 1, and E[z|x] (N, P).

        Both are averages over the members. X (N, D) is dense or `SparseRows`.
        """
        probabilities, mean = _in_blocks(partial(_classes, config=self.config), _BLOCK, self.params, X)
        average = np.maximum(probabilities.mean(axis=0), TINY)
        return average / average.sum(axis=1, keepdims=True), mean.mean(axis=0)


def mixture(parts: Parts, inflation: FloatArray, skewness: float) -> tuple[FloatArray, FloatArray]:
    """Means and variances (E, N, S, P) of the Gaussians of each member and row, standardised scale."""
    mean, shift, share, rest = parts
    means = mean[:, :, None, :] + np.sqrt(inflation * skewness) * shift
    variances = inflation * (rest + (1.0 - skewness) * share)
    return means, np.broadcast_to(variances[:, :, None, :], means.shape)


def member_moments_of(params: Params, config: Config, X: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of each member at rows X (N, D), standardised scale: (E, N, P) each, float64."""
    mean, variance = _in_blocks(partial(_moments, config=config), _BLOCK, params, X)
    return mean, variance


def parts_of(params: Params, config: Config, X: NDArray[Any]) -> Parts:
    """The parts of each member's y at rows X (N, D): y = mean + shift + Gaussian of variance `rest`.

    The units that skew y most are put at quasi-random points of their distributions and give `shift`
    (E, N, S, P), with mean 0 and exact variance `share` (E, N, P); the others are in `rest` (E, N, P) with
    the noise. With several outputs all units are put at points, which keeps the outputs' dependence.
    Returns mean (E, N, P), shift, share, rest.
    """
    n_outputs, n_hidden = params.W1.shape[1:]
    if config.method == "bp":
        mean, noise = member_moments_of(params, config, X)
        return mean, np.zeros((*mean.shape[:2], 1, n_outputs)), np.zeros_like(noise), noise
    n_chosen = n_hidden if n_outputs > 1 else min(N_SKEWED, n_hidden)
    found = _in_blocks(partial(_units, n_chosen=n_chosen), _SMALL_BLOCK, params, X)
    mean, location, sd, center, variance, weight, rest = found
    share = np.einsum("enpk,enk->enp", weight**2, variance)
    shift = np.empty((*mean.shape[:2], N_POINTS, n_outputs))
    for first in range(0, len(X), _SMALL_BLOCK):
        block = slice(first, first + _SMALL_BLOCK)
        shift[:, block] = _shift(
            _points(n_chosen), *(part[:, block] for part in (share, location, sd, center, weight))
        )
    return mean, shift, share, rest


def _shift(
    points: FloatArray,
    share: FloatArray,
    location: FloatArray,
    sd: FloatArray,
    mean: FloatArray,
    weight: FloatArray,
) -> FloatArray:
    """What the chosen units (E, N, K) at the points (S, K) add to E[y]: (E, N, S, P), of variance `share`.

    The quantile of N_T(c, sd^2) at u is c - sd Phi^-1((1 - u) Phi(c / sd)), in logs. On the host: SciPy has
    it ready, where compiling it would take longer than most people's predictions.
    """
    tail = np.log1p(-points) + log_ndtr(location / sd)[:, :, None, :]
    drawn = location[:, :, None, :] - sd[:, :, None, :] * ndtri_exp(tail)
    shift = np.einsum("ensk,enpk->ensp", drawn - mean[:, :, None, :], weight)
    shift -= shift.mean(axis=2, keepdims=True)
    scale = np.sqrt(share / np.maximum((shift**2).mean(axis=2), TINY))
    exact: FloatArray = shift * scale[:, :, None, :]
    return exact


@partial(jax.jit, static_argnames="spread")
def _hidden(member: Params, X: Any, spread: bool) -> tuple[jax.Array, ...]:
    """Location, sd, mean and variance of the last layer's units at rows X: (N, M) each.

    The only part of a regression's predictions that is compiled.
    """
    location, sd = jax.vmap(partial(last_drive, member, spread=spread))(filled(X, member.W0.shape[-1]))
    return location, sd, *truncnorm.moments(location, sd)


def _moments(member: Params, X: Any, config: Config) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of y, or z, at each row for one member: (N, P) each. Exact with one layer (eq. 5)."""
    _, _, mean, variance = map(np.asarray, _hidden(member, X, spread=config.method == "ml"))
    W1, noise = np.asarray(member.W1), np.exp(2.0 * np.asarray(member.log_sd1))
    middle = mean @ W1.T + np.asarray(member.b1)
    if config.method == "bp":
        return middle, np.broadcast_to(noise, middle.shape)
    return middle, variance @ W1.T**2 + noise


def _units(member: Params, X: Any, n_chosen: int) -> tuple[FloatArray, ...]:
    """The K units of one member that skew y most at each row, apart from the others.

    Returns E[y] (N, P); location, sd, mean and variance of the chosen units (N, K) each; their weights
    (N, P, K); and the variance of y that the other units and the noise give, `rest` (N, P).
    """
    location, sd, mean, variance = map(np.asarray, _hidden(member, X, spread=True))
    W1, noise = np.asarray(member.W1), np.exp(2.0 * np.asarray(member.log_sd1))
    m, v = mean / sd, variance / sd**2
    third = (m - location / sd) * (m * m - v)  # r (m^2 - v), the third central moment at sd 1
    skew = np.abs(W1).max(axis=0) * sd * np.cbrt(np.abs(third))
    chosen = np.argsort(-skew, axis=1, kind="stable")[:, :n_chosen]
    location, sd, center, spread = (
        np.take_along_axis(part, chosen, axis=1) for part in (location, sd, mean, variance)
    )
    weight = np.moveaxis(W1[:, chosen], 0, 1)
    others = variance @ W1.T**2 - np.einsum("npk,nk->np", weight**2, spread)
    rest = np.maximum(others, 0.0) + noise
    return mean @ W1.T + np.asarray(member.b1), location, sd, center, spread, weight, rest


def _classes(member: Params, X: Any, config: Config) -> tuple[jax.Array, FloatArray]:
    """The probability of each class (N, C) and E[z|x] (N, P), of one member."""
    mean, variance = _moments(member, X, config)
    return _probabilities(mean, variance), mean


@jax.jit
def _probabilities(mean: jax.Array, variance: jax.Array) -> jax.Array:
    return jnp.exp(jax.vmap(partial(probit.log_probabilities, n_points=N_FINE))(mean, variance))


@lru_cache
def _points(n_dimensions: int) -> NDArray[np.float64]:
    """Scrambled Sobol points (S, K) inside the unit cube; the same in every process."""
    points: NDArray[np.float64] = qmc.Sobol(n_dimensions, scramble=True, rng=0).random(N_POINTS)
    return np.clip(points, 1e-12, 1.0 - 1e-12)


def _block(X: Any, first: int, n_rows: int, size: int) -> Any:
    """Rows from `first` on, floats in float64, padded by zeros to `size`, sparse ones to a usual width."""

    def cut(array: NDArray[Any]) -> NDArray[Any]:
        block = array[first : first + n_rows]
        dtype = np.float64 if block.dtype.kind == "f" else block.dtype
        wider = bucket(block.shape[1]) - block.shape[1] if isinstance(X, SparseRows) else 0
        return np.pad(block.astype(dtype), ((0, size - n_rows), (0, wider)))

    return jax.device_put(jax.tree.map(cut, X))


def _in_blocks(compute: Any, most: int, params: Params, X: Any) -> list[FloatArray]:
    """`compute` of each member on blocks of rows in float64, padded to one of two sizes; (E, N, ...) each."""
    blocks: list[list[FloatArray]] = []
    if (params.W0.shape[-1] + N_FINE * params.b1.shape[-1]) * most > _MOST_NUMBERS:
        most = _SMALL_BLOCK
    with double_precision():
        exact = [jax.tree.map(partial(_member, e), params) for e in range(len(params.b1))]
        for first in range(0, len(X), most):
            n_rows = min(most, len(X) - first)
            size = _SMALL_BLOCK if n_rows <= _SMALL_BLOCK else most
            rows = _block(X, first, n_rows, size)
            out = zip(*(compute(member, rows) for member in exact), strict=True)
            blocks.append([np.stack([np.asarray(one)[:n_rows] for one in part]) for part in out])
    return [np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)]


def _member(number: int, leaf: Any) -> jax.Array:
    return jax.device_put(np.asarray(leaf, np.float64)[number])

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

from nongauss.core.precision import double_precision
from nongauss.core.registry import persistable
from nongauss.prob import probit
from nongauss.prob.normal import unit_moments
from nongauss.tggm.objective import filled, last_drive, output_moments
from nongauss.tggm.params import Config, Params

N_POINTS = 64
"""Quasi-random points of the hidden units a member. See `components` for the error that this leaves."""

N_SKEWED = 8
"""Units a row whose skewness is integrated; the others enter by their mean and variance."""

N_FINE = 64
"""Points of the grid for the probabilities of labels."""

_BLOCK, _SMALL_BLOCK = 8192, 512
"""Rows that are computed at once: blocks are padded to one of two sizes, so that little is compiled."""

TINY = 1e-200

FloatArray = NDArray[np.float64]
Parts = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def member_moments(params: Params, config: Config, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of y given one row, for one member: (P,), (P,). Exact with one layer (eq. 5)."""
    mean, _, hidden = output_moments(params, x, spread=config.method == "ml")
    noise = jnp.exp(2.0 * params.log_sd1)
    return mean, noise if config.method == "bp" else params.W1**2 @ hidden + noise


def member_units(params: Params, n_chosen: int, x: jax.Array) -> tuple[jax.Array, ...]:
    """One member at one row, the K units that skew y most apart from the others.

    Returns E[y] (P,); location, sd, mean and variance of the K chosen units (K,) each; their weights (P, K);
    and the variance of y that the other units and the noise give, `rest` (P,).
    """
    mean, center, hidden = output_moments(params, x)
    noise = jnp.exp(2.0 * params.log_sd1)
    c, sd = last_drive(params, x)
    r, m, v = unit_moments(c / sd)
    skew = jnp.max(jnp.abs(params.W1), axis=0) * sd * jnp.cbrt(r * jnp.abs(m * m - v))
    chosen = jax.lax.top_k(skew, n_chosen)[1]
    weight = params.W1[:, chosen]
    rest = jnp.maximum(params.W1**2 @ hidden - weight**2 @ hidden[chosen], 0.0) + noise
    return mean, c[chosen], sd[chosen], center[chosen], hidden[chosen], weight, rest


@persistable
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


@partial(jax.jit, static_argnames="config")
def _moments(member: Params, X: jax.Array, config: Config) -> tuple[jax.Array, ...]:
    return jax.vmap(partial(member_moments, member, config))(X)


@partial(jax.jit, static_argnames="config")
def _classes(member: Params, X: Any, config: Config) -> tuple[jax.Array, ...]:
    mean, variance = jax.vmap(partial(member_moments, member, config))(filled(X, member.W0.shape[-1]))
    return jnp.exp(jax.vmap(partial(probit.log_probabilities, n_points=N_FINE))(mean, variance)), mean


@partial(jax.jit, static_argnames="n_chosen")
def _units(member: Params, X: jax.Array, n_chosen: int) -> tuple[jax.Array, ...]:
    return jax.vmap(partial(member_units, member, n_chosen))(X)


@lru_cache
def _points(n_dimensions: int) -> NDArray[np.float64]:
    """Scrambled Sobol points (S, K) inside the unit cube; the same in every process."""
    points: NDArray[np.float64] = qmc.Sobol(n_dimensions, scramble=True, rng=0).random(N_POINTS)
    return np.clip(points, 1e-12, 1.0 - 1e-12)


def _cut(first: int, n_rows: int, size: int, array: NDArray[Any]) -> NDArray[Any]:
    """Rows from `first` on, floats in float64, padded by zeros to `size`."""
    block = array[first : first + n_rows]
    dtype = np.float64 if block.dtype.kind == "f" else block.dtype
    return np.pad(block.astype(dtype), ((0, size - n_rows), (0, 0)))


def _in_blocks(compute: Any, most: int, params: Params, X: Any) -> list[FloatArray]:
    """`compute` of each member on blocks of rows in float64, padded to one of two sizes; (E, N, ...) each."""
    blocks: list[list[FloatArray]] = []
    with double_precision():
        exact = [jax.tree.map(partial(_member, e), params) for e in range(len(params.b1))]
        for first in range(0, len(X), most):
            n_rows = min(most, len(X) - first)
            size = _SMALL_BLOCK if n_rows <= _SMALL_BLOCK else most
            rows = jax.device_put(jax.tree.map(partial(_cut, first, n_rows, size), X))
            out = zip(*(compute(member, rows) for member in exact), strict=True)
            blocks.append([np.stack([np.asarray(one)[:n_rows] for one in part]) for part in out])
    return [np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)]


def _member(number: int, leaf: Any) -> jax.Array:
    return jax.device_put(np.asarray(leaf, np.float64)[number])

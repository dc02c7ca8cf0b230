"""What the model says about new rows: exact moments, and the skewed density as a mixture over hidden units."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from nongauss.core.precision import double_precision
from nongauss.core.registry import persistable
from nongauss.prob import truncnorm
from nongauss.prob.normal import third_moment
from nongauss.tggm.objective import drive, output_moments
from nongauss.tggm.params import Config, Params

N_POINTS = 64
"""Quasi-random points of the hidden units a member. See `components` for the error that this leaves."""

N_SKEWED = 8
"""Units a row whose skewness is integrated; the others enter by their mean and variance."""

_BLOCK, _SMALLEST_BLOCK = 8192, 64
"""Most and fewest rows that are computed at once; a block is padded to a power of two."""

TINY = 1e-200


def member_moments(
    params: Params, config: Config, calibration: jax.Array, x: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of y given one row, for one member: (P,), (P,). Exact for the model (eq. 5)."""
    mean, _, hidden = output_moments(params, x)
    noise = jnp.exp(2.0 * params.log_sd1)
    if config.method == "bp":
        return mean, calibration * noise
    return mean, calibration * (params.W1**2 @ hidden + noise)


def member_components(
    params: Params, config: Config, calibration: jax.Array, points: jax.Array, x: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """One member's density of y at one row as a mixture of Gaussians: means and variances (S, P).

    y = b1 + sum_k W1_k h_k + noise. The units that skew y most, at most `points.shape[1]`, are put at the
    quasi-random `points` (S, K) of their distributions; the rest are Gaussian with their exact moments.
    With several outputs all units are put at points, which keeps the outputs' dependence.
    """
    mean, center, hidden = output_moments(params, x)
    noise = jnp.exp(2.0 * params.log_sd1)
    if config.method == "bp":
        return mean[None, :], (calibration * noise)[None, :]
    c, sd = drive(params, x), jnp.exp(params.log_sd0)
    skew = jnp.max(jnp.abs(params.W1), axis=0) * sd * jnp.cbrt(jnp.abs(third_moment(c / sd)))
    chosen = jax.lax.top_k(skew, points.shape[1])[1]
    weight, known = params.W1[:, chosen], params.W1**2 @ hidden
    drawn = truncnorm.quantile(points, c[None, chosen], sd[None, chosen])
    shift = (drawn - center[None, chosen]) @ weight.T
    shift = shift - jnp.mean(shift, axis=0, keepdims=True)
    exact = weight**2 @ hidden[chosen]
    shift = shift * jnp.sqrt(exact / jnp.maximum(jnp.mean(shift**2, axis=0), TINY))[None, :]
    rest = jnp.maximum(known - exact, 0.0) + noise
    means = mean[None, :] + jnp.sqrt(calibration)[None, :] * shift
    return means, jnp.broadcast_to((calibration * rest)[None, :], means.shape)


@persistable
class Ensemble(NamedTuple):
    """Fitted members with what undoes the scaling: all that a prediction needs."""

    params: Params
    config: Config
    calibration: NDArray[np.float64]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]

    def moments(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and variance of y in original units at standardised rows X (N, D): (N, P) each.

        Exact for the mixture of members: the average of their means; the average of their variances plus
        the spread of their means.
        """
        mean, variance = member_moments_of(self.params, self.config, X, self.calibration)
        middle = mean.mean(axis=0)
        spread = variance.mean(axis=0) + ((mean - middle) ** 2).mean(axis=0)
        return self.centre + self.scale * middle, self.scale**2 * spread

    @property
    def n_components(self) -> int:
        """Gaussians in the mixture that stands for the density of a row."""
        return len(self.calibration) * (1 if self.config.method == "bp" else N_POINTS)

    def components(
        self, X: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The predictive mixture of each row, original units: log weights (N, C), means and sds (N, C, P).

        Mean and variance are exact. What the finite number of points leaves is an error of the shape:
        tested to be below 2e-3 in the distribution function where one skewed unit carries nearly all of the
        variance, the worst case, and of the order of 1e-4 in fitted models.
        """
        means, variances = _in_blocks(_components, self.params, self.config, self.calibration, X)
        n_rows, n_outputs = len(X), len(self.centre)
        means = np.moveaxis(means, 0, 1).reshape(n_rows, -1, n_outputs)
        sds = np.sqrt(np.moveaxis(variances, 0, 1).reshape(n_rows, -1, n_outputs))
        weights = np.full(means.shape[:2], -np.log(means.shape[1]))
        return weights, self.centre + self.scale * means, np.abs(self.scale) * sds


def member_moments_of(
    params: Params, config: Config, X: NDArray[np.floating], calibration: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of each member at rows X (N, D), standardised scale: (E, N, P) each, float64."""
    if calibration is None:
        calibration = np.ones(np.shape(params.b1))
    return _in_blocks(_moments, params, config, calibration, X)


@partial(jax.jit, static_argnames="config")
def _moments(params: Params, config: Config, calibration: jax.Array, X: jax.Array) -> tuple[jax.Array, jax.Array]:
    over_rows = jax.vmap(member_moments, (None, None, None, 0))
    return jax.vmap(over_rows, (0, None, 0, None))(params, config, calibration, X)


@partial(jax.jit, static_argnames="config")
def _components(
    params: Params, config: Config, calibration: jax.Array, X: jax.Array
) -> tuple[jax.Array, jax.Array]:
    n_hidden, n_outputs = params.W1.shape[2], params.W1.shape[1]
    points = jnp.asarray(_points(n_hidden if n_outputs > 1 else min(N_SKEWED, n_hidden)))
    over_rows = jax.vmap(member_components, (None, None, None, None, 0))
    return jax.vmap(over_rows, (0, None, 0, None, None))(params, config, calibration, points, X)


@lru_cache
def _points(n_dimensions: int) -> NDArray[np.float64]:
    """Scrambled Sobol points (S, K) inside the unit cube; the same in every process."""
    points: NDArray[np.float64] = qmc.Sobol(n_dimensions, scramble=True, rng=0).random(N_POINTS)
    return np.clip(points, 1e-12, 1.0 - 1e-12)


def _in_blocks(
    compute: Any, params: Params, config: Config, calibration: NDArray[np.float64], X: NDArray[np.floating]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`compute` on blocks of rows in float64, each padded to a power of two: few sizes are ever compiled."""
    parts = []
    with double_precision():
        exact = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), params)
        for first in range(0, len(X), _BLOCK):
            block = np.asarray(X[first : first + _BLOCK], np.float64)
            size = max(_SMALLEST_BLOCK, 1 << (len(block) - 1).bit_length())
            padded = np.pad(block, ((0, size - len(block)), (0, 0)))
            out = compute(exact, config, jnp.asarray(calibration), jnp.asarray(padded))
            parts.append([np.asarray(part)[:, : len(block)] for part in out])
    first_part, second_part = (np.concatenate(list(part), axis=1) for part in zip(*parts, strict=True))
    return first_part, second_part

"""What a truncated-Gaussian graphical model estimates, where it starts, and the state of its training."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Float32, Int32

from nongauss.core.device import record
from nongauss.core.records import persistable
from nongauss.tggm.config import NetworkConfig, TrainingRecipe

LARGEST_LOG_SD = 3.0
"""Upper end of the log standard deviations, in units of the standardised target."""

SMALLEST_LOG_SD = -9.0
"""Lower end: a noise of 1e-4 target standard deviations. It keeps a noise-free fit finite."""

SMALLEST_LOG_HEAD = -4.0
"""The same of a head of several, which could otherwise close in on a value that occurs more than once."""

WEIGHT_PRECISION = 1e-2
"""Precision of the Gaussian prior on all weights, standardised scale: next to nothing beyond a few rows."""

LABEL_PRECISION = 2e-2
"""Prior precision of a classifier's weights, times the number of inputs of the weight's unit: labels that can
be separated would draw the weights out without end."""

NO_LEAST = -1e3
"""Least log sd of noise that is bounded by nothing else, a finite number."""

WORST = -1e30
"""The held-out score that no epoch has: that of a member before its first one."""


@persistable("tggm.Layer", "nongauss.tggm.params:Layer")
class HiddenLayer(NamedTuple):
    """A layer of hidden units above another: `W` (E, M, M below), `b` (E, M), `log_sd` (E, M)."""

    W: Float[jax.Array, "*E M B"]
    b: Float[jax.Array, "*E M"]
    log_sd: Float[jax.Array, "*E M"]


@persistable("tggm.Gate")
class HeadGate(NamedTuple):
    """Logits of the heads' weights: `W` (E, H, M) times the means of the last layer, plus `b` (E, H)."""

    W: Float[jax.Array, "*E H M"]
    b: Float[jax.Array, "*E H"]


@persistable("tggm.Params", "nongauss.tggm.params:Params")
class NetworkParams(NamedTuple):
    """Parameters of the members of an ensemble (leading axis E), or of one member without that axis.

    `W0` (E, M, D) and `b0` (E, M): input to the first hidden layer. `W1` (E, P, M) and `b1` (E, P): last
    hidden layer to output. `log_sd0` (E, M) and `log_sd1` (E, P): logs of the standard deviations of the
    first hidden layer and of the noise. `deeper`: the hidden layers above the first, in order. `gate`: empty,
    or the one of a mixture of heads; then the P axis is that of the heads of a single output. `skip`: empty,
    or the one array V (E, P, D) of a linear term V x beside W1 h.
    All on the scale of standardised inputs and targets.
    """

    W0: Float[jax.Array, "*E M D"]
    b0: Float[jax.Array, "*E M"]
    W1: Float[jax.Array, "*E P H"]
    b1: Float[jax.Array, "*E P"]
    log_sd0: Float[jax.Array, "*E M"]
    log_sd1: Float[jax.Array, "*E P"]
    deeper: tuple[HiddenLayer, ...] = ()
    gate: tuple[HeadGate, ...] = ()
    skip: tuple[Any, ...] = ()

    def at(self, x: Float[Array, " D"]) -> NetworkParams:
        """The parameters of one member at a row x, with b1 + V x instead of the constant b1 and a skip."""
        if not self.skip:
            return self
        return self._replace(b1=self.b1 + self.skip[0] @ x, skip=())

    @property
    def n_outputs(self) -> int:
        """P, which heads do not count in."""
        return 1 if self.gate else int(self.b1.shape[-1])

    @property
    def hidden(self) -> tuple[HiddenLayer, ...]:
        """All hidden layers in order, from the inputs up."""
        return (HiddenLayer(self.W0, self.b0, self.log_sd0), *self.deeper)


def start(
    rng: np.random.Generator, config: NetworkConfig, n_members: int, n_inputs: int, Y: np.ndarray
) -> NetworkParams:
    """Random starting values of an ensemble for standardised targets `Y` (N, P), float32 on the host.

    Weights are scaled by the number of units that feed them; the spread of the biases puts the bends of the
    units at different places. The output starts at the mean of the target, which is 0, and a skip at 0. An
    output that never varies gets no weights: from there its gradient keeps them at exactly 0.
    """
    first, last = config.layers[0], config.layers[-1]
    hidden = 0.5 if config.hidden_variance is None else math.sqrt(config.hidden_variance)
    noise = 0.5 if config.noise_variance is None else math.sqrt(config.noise_variance)
    n_outputs = Y.shape[1] if not config.n_classes else 1 if config.n_classes == 2 else config.n_classes
    varies: Any = np.ones(n_outputs, np.float32)
    if not config.n_classes:
        varies = (Y[:1] != Y).any(axis=0).astype(np.float32)

    def normal(sd: float, *shape: int) -> Any:
        return np.float32(sd) * rng.standard_normal((n_members, *shape), np.float32)

    def filled(number: float, size: int) -> Any:
        return np.full((n_members, size), number, np.float32)

    params = NetworkParams(
        W0=normal(1.0 / math.sqrt(max(n_inputs, 1)), first, n_inputs),
        b0=normal(0.5, first),
        W1=normal(1.0 / math.sqrt(last), n_outputs, last) * varies[None, :, None],
        b1=filled(0.0, n_outputs),
        log_sd0=filled(math.log(hidden), first),
        log_sd1=filled(math.log(noise), n_outputs),
    )
    if config.preset:  # N(0, 0.01), read as variance
        params = params._replace(
            W0=normal(0.1, first, n_inputs), b0=normal(0.1, first), W1=normal(0.1, n_outputs, last)
        )
    params = params._replace(W0=turned(params, config, np.abs))
    deeper = tuple(
        HiddenLayer(
            normal(0.1 if config.preset else math.sqrt(2.0 / below), size, below),
            normal(0.1 if config.preset else 0.5, size),
            filled(math.log(hidden), size),
        )
        for below, size in itertools.pairwise(config.layers)
    )
    skip = (np.zeros((n_members, n_outputs, n_inputs), np.float32),) if config.skip else ()
    return params._replace(deeper=deeper, skip=skip)


def with_heads(
    rng: np.random.Generator, params: NetworkParams, n_heads: int, target: Float[np.ndarray, " N"]
) -> NetworkParams:
    """Starting values with a mixture of heads instead of the output: each at a quantile of the target."""
    n_members, _, last = params.W1.shape

    def normal(sd: float) -> Any:
        return np.float32(sd / math.sqrt(last)) * rng.standard_normal((n_members, n_heads, last), np.float32)

    def alike(row: Any) -> Any:
        return np.tile(np.asarray(row, np.float32), (n_members, 1))

    skip = tuple(np.repeat(weights, n_heads, axis=1) for weights in params.skip)
    levels = np.quantile(target, (np.arange(n_heads) + 0.5) / n_heads)
    return params._replace(
        W1=normal(1.0),
        b1=alike(levels),
        log_sd1=alike(np.repeat(np.asarray(params.log_sd1)[:1, 0], n_heads)),
        gate=(HeadGate(normal(0.1), alike(np.zeros(n_heads))),),
        skip=skip,
    )


def turned(params: NetworkParams, config: NetworkConfig, made_positive: Callable[[Any], Any]) -> Any:
    """`W0`, where an input with a direction d has weights with d W1_m W0_mj >= 0 on each unit m.

    dE[y] / dx_j = sum_m W1_m g'(mu_m) W0_mj with g' > 0 (eq. 16): of one output and one hidden layer, the
    mean is monotone in x_j if no term has the wrong sign. `made_positive` maps d sign(W1_m) W0_mj.
    """
    if not config.directions:
        return params.W0
    direction = np.broadcast_to(np.asarray(config.directions, np.float32), params.W0.shape)
    up = params.W1[..., 0, :, None] >= 0.0
    sign = (2.0 * up.astype(np.float32) - 1.0) * direction
    return params.W0 * (direction == 0.0) + sign * made_positive(sign * params.W0)


def _skip_turned(params: NetworkParams, config: NetworkConfig) -> tuple[Any, ...]:
    """The skip, whose weights of an input with a direction d are legal for d V_j >= 0, else 0."""
    if not config.directions:
        return params.skip

    def legal(weights: jax.Array) -> jax.Array:
        direction = jnp.broadcast_to(jnp.asarray(config.directions, weights.dtype), weights.shape)
        return jnp.where(direction * weights < 0.0, 0.0, weights)

    return tuple(map(legal, params.skip))


def limits(params: NetworkParams, config: NetworkConfig) -> tuple[tuple[float, float], tuple[float, float]]:
    """Least and largest log sd of hidden units, and of the noise; equal where the variance is fixed."""

    def of(fixed: float | None, least: float) -> tuple[float, float]:
        return (least, LARGEST_LOG_SD) if fixed is None else (0.5 * math.log(fixed),) * 2

    least = SMALLEST_LOG_HEAD if params.gate else SMALLEST_LOG_SD
    return of(config.hidden_variance, SMALLEST_LOG_SD), of(config.noise_variance, least)


def constrain(params: NetworkParams, config: NetworkConfig) -> NetworkParams:
    """The nearest legal parameters: standard deviations within their limits, fixed ones put back, and weights
    of monotone inputs that point the wrong way at 0.
    """
    hidden, noise = limits(params, config)
    return params._replace(
        W0=turned(params, config, jax.nn.relu),
        skip=_skip_turned(params, config),
        log_sd0=jnp.clip(params.log_sd0, *hidden),
        log_sd1=jnp.clip(params.log_sd1, *noise),
        deeper=tuple(layer._replace(log_sd=jnp.clip(layer.log_sd, *hidden)) for layer in params.deeper),
    )


def weight_precision(config: NetworkConfig, n_below: float) -> float:
    """Precision of the prior on the weights of units that are fed by `n_below` others; the paper has none."""
    if config.preset:
        return 0.0
    return LABEL_PRECISION * n_below if config.n_classes else WEIGHT_PRECISION


@record
class TrainingState:
    """What the next epoch reads. E members; `best*` are those of the epoch with the best held-out rows.

    `total` (E,): weight of the rows each member trains on, about 1 a row; `counted` (E,): the total weight
    that the prior is divided by, the user's own units for labels, `total` for numbers; `precision`: that of
    the weights of inputs. `n_steps`: optimiser steps of the schedule (a huge number: the learning
    rate stays), `rate`: its first learning rate. `patience`, `tol`: the rule for stopping early.
    `least_noise` (P,): least log sd of the noise beside the limits that the settings give.
    """

    params: NetworkParams
    optimiser: Any
    step: Float32[Array, ""]
    n_steps: Float32[Array, ""]
    rate: Float32[Array, ""]
    total: Float32[Array, " E"]
    counted: Float32[Array, " E"]
    epoch: Int32[Array, ""]
    best: NetworkParams
    best_score: Float32[Array, " E"]
    best_epoch: Int32[Array, " E"]
    patience: Int32[Array, ""]
    tol: Float32[Array, ""]
    least_noise: Float32[Array, " P"]
    precision: Float32[Array, ""]


def optimiser(config: NetworkConfig) -> optax.GradientTransformation:
    """RMSProp with momentum and bias correction (Adam), or the paper's without. Rates come in `update`."""
    if config.preset:
        return optax.scale_by_rms(decay=0.95)
    return optax.scale_by_adam(b1=0.9, b2=0.99)


def ravelled(params: NetworkParams) -> Float[Array, "E K"]:
    """All numbers of each member in a row: one long array compiles faster than many short ones."""
    return jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(params)], axis=1)


def unravelled(numbers: Float[Array, "E K"], like: NetworkParams) -> NetworkParams:
    """Undo `ravelled`, into arrays of the shapes of `like`."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([leaf[0].size for leaf in leaves])
    parts = [
        part.reshape(leaf.shape) for part, leaf in zip(jnp.split(numbers, ends[:-1], 1), leaves, strict=True)
    ]
    rebuilt: NetworkParams = jax.tree.unflatten(structure, parts)
    return rebuilt


def first_state(
    params: NetworkParams,
    total: Float[np.ndarray, " E"],
    n_steps: float,
    recipe: TrainingRecipe,
    config: NetworkConfig,
    counted: Float[np.ndarray, " E"] | None = None,
    least_noise: Float[np.ndarray, " P"] | float = NO_LEAST,
    n_counted: float | None = None,
) -> TrainingState:
    """The state before the first epoch, as host arrays: nothing is compiled to make it.

    `total`, `counted` (by default the same) and `least_noise` as in `TrainingState`. `n_counted`: the
    inputs that the prior counts, None for all.
    """
    n_members = params.b0.shape[0]
    host: Any = np  # host arrays where the record says jax.Array: they become that at the first step
    shapes = jax.eval_shape(lambda params: optimiser(config).init(ravelled(params)), params)
    return TrainingState(
        params=params,
        optimiser=jax.tree.map(lambda leaf: host.zeros(leaf.shape, leaf.dtype), shapes),
        step=host.float32(0),
        n_steps=host.float32(n_steps),
        rate=host.float32(recipe.learning_rate),
        total=host.asarray(total, host.float32),
        counted=host.asarray(total if counted is None else counted, host.float32),
        epoch=host.int32(0),
        best=params,
        best_score=host.full(n_members, WORST, host.float32),
        best_epoch=host.zeros(n_members, host.int32),
        patience=host.int32(recipe.n_iter_no_change),
        tol=host.float32(recipe.tol),
        least_noise=host.full(params.b1.shape[1], least_noise, host.float32),
        precision=host.float32(
            weight_precision(config, params.W0.shape[-1] if n_counted is None else n_counted)
        ),
    )

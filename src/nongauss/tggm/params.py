"""What a truncated-Gaussian graphical model estimates, how it is set up and where it starts."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from nongauss.core.records import value
from nongauss.core.registry import persistable
from nongauss.core.rng import split_named

LARGEST_LOG_SD = 3.0
"""Upper end of the log standard deviations, in units of the standardised target."""

SMALLEST_LOG_SD = -9.0
"""Lower end: a noise of 1e-4 target standard deviations. It keeps a noise-free fit finite."""


@persistable
class Params(NamedTuple):
    """Parameters of the members of an ensemble (leading axis E), or of one member without that axis.

    `W0` (E, M, D) and `b0` (E, M): input to hidden. `W1` (E, P, M) and `b1` (E, P): hidden to output.
    `log_sd0` (E, M) and `log_sd1` (E, P): logs of the hidden and noise standard deviations.
    All on the scale of standardised inputs and targets.
    """

    W0: jax.Array
    b0: jax.Array
    W1: jax.Array
    b1: jax.Array
    log_sd0: jax.Array
    log_sd1: jax.Array


@persistable
@value
class Config:
    """The settings that a compiled step depends on.

    `method`: "ml" or "bp"; `posterior`: "moments" or "mean_field" (of `ml`); `n_sweeps`: its sweeps.
    `hidden_variance`, `noise_variance`: a number fixes it, None learns it. `n_hidden`: M.
    """

    n_hidden: int
    method: str
    posterior: str
    n_sweeps: int
    hidden_variance: float | None
    noise_variance: float | None
    learning_rate: float


def start(key: jax.Array, config: Config, n_members: int, n_inputs: int, n_outputs: int) -> Params:
    """Random starting values of an ensemble, float32.

    Weights are scaled by the number of units that feed them; the spread of the biases puts the bends of the
    units at different places. The output starts at the mean of the standardised target, which is 0.
    """
    keys = split_named(key, "W0", "b0", "W1")
    n_hidden = config.n_hidden
    first = (n_members, n_hidden, n_inputs)
    last = (n_members, n_outputs, n_hidden)
    hidden = 0.5 if config.hidden_variance is None else math.sqrt(config.hidden_variance)
    noise = 0.5 if config.noise_variance is None else math.sqrt(config.noise_variance)
    return Params(
        W0=jax.random.normal(keys["W0"], first, jnp.float32) / math.sqrt(max(n_inputs, 1)),
        b0=0.5 * jax.random.normal(keys["b0"], first[:2], jnp.float32),
        W1=jax.random.normal(keys["W1"], last, jnp.float32) / math.sqrt(n_hidden),
        b1=jnp.zeros(last[:2], jnp.float32),
        log_sd0=jnp.full(first[:2], math.log(hidden), jnp.float32),
        log_sd1=jnp.full(last[:2], math.log(noise), jnp.float32),
    )


def constrain(params: Params, config: Config) -> Params:
    """The nearest legal parameters: standard deviations within their limits, fixed ones put back."""

    def legal(log_sd: jax.Array, fixed: float | None) -> jax.Array:
        if fixed is not None:
            return jnp.full_like(log_sd, 0.5 * math.log(fixed))
        return jnp.clip(log_sd, SMALLEST_LOG_SD, LARGEST_LOG_SD)

    return params._replace(
        log_sd0=legal(params.log_sd0, config.hidden_variance),
        log_sd1=legal(params.log_sd1, config.noise_variance),
    )

"""What a truncated-Gaussian graphical model estimates, how it is set up and where it starts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nongauss.core.records import value
from nongauss.core.registry import persistable

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


def start(rng: np.random.Generator, config: Config, n_members: int, n_inputs: int, Y: np.ndarray) -> Params:
    """Random starting values of an ensemble for standardised targets `Y` (N, P), float32 on the host.

    Weights are scaled by the number of units that feed them; the spread of the biases puts the bends of the
    units at different places. The output starts at the mean of the target, which is 0. An output that never
    varies gets no weights: from there its gradient keeps them at exactly 0.
    """
    n_hidden, n_outputs = config.n_hidden, Y.shape[1]
    hidden = 0.5 if config.hidden_variance is None else math.sqrt(config.hidden_variance)
    noise = 0.5 if config.noise_variance is None else math.sqrt(config.noise_variance)

    def normal(sd: float, *shape: int) -> Any:
        return np.float32(sd) * rng.standard_normal((n_members, *shape), np.float32)

    def filled(number: float, size: int) -> Any:
        return np.full((n_members, size), number, np.float32)

    varies: Any = (Y[:1] != Y).any(axis=0).astype(np.float32)
    return Params(
        W0=normal(1.0 / math.sqrt(max(n_inputs, 1)), n_hidden, n_inputs),
        b0=normal(0.5, n_hidden),
        W1=normal(1.0 / math.sqrt(n_hidden), n_outputs, n_hidden) * varies[None, :, None],
        b1=filled(0.0, n_outputs),
        log_sd0=filled(math.log(hidden), n_hidden),
        log_sd1=filled(math.log(noise), n_outputs),
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

"""The multinomial probit: the probability that each of several independent normals is the largest.

    P(z_c largest) = int N(t; m_c, v_c) prod_{k != c} Phi((t - m_k) / sd_k) dt,    z_k ~ N(m_k, v_k)

one integral for each class, all by the trapezoid rule on one grid. The integrands are smooth and vanish at
both ends, so the rule is off by about exp(-2 pi^2 (sd / step)^2): 1e-8 where the step is as wide as the
smallest sd. A single normal stands for the difference of two classes, and needs no integral.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from nongauss.prob.normal import HALF_LOG_2PI, log_cdf

N_POINTS = 24
"""Points of the grid: right to 1e-6 for sds that differ up to threefold."""

_REACH = 6.0  # sds from the means to the ends of the grid


def log_probabilities(
    mean: Float[Array, " P"], variance: Float[Array, " P"], n_points: int = N_POINTS
) -> Float[Array, " C"]:
    """Log probability of each class from mean and variance of the outputs.

    P = C >= 3: the class is the largest output, each integral one sum over the grid, in logs. P = 1: two
    classes, the second if the output is positive: log Phi(-m / sd) and log Phi(m / sd).
    """
    sd = jnp.sqrt(variance)
    if mean.shape[0] == 1:
        at = mean / sd
        return jnp.concatenate([log_cdf(-at), log_cdf(at)])
    held = jax.lax.stop_gradient((mean, sd))
    low, high = jnp.max(held[0] - _REACH * held[1]), jnp.max(held[0] + _REACH * held[1])
    grid = low + (high - low) * jnp.linspace(0.0, 1.0, n_points, dtype=mean.dtype)
    at = (grid[:, None] - mean[None, :]) / sd[None, :]
    below = log_cdf(at)  # at > -6, so taking the own class off the sum costs no digits
    others = jnp.sum(below, axis=1, keepdims=True) - below
    each = jax.nn.logsumexp(others - 0.5 * at * at, axis=0) - HALF_LOG_2PI - jnp.log(sd)
    return each - jax.nn.logsumexp(each)

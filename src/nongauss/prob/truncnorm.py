"""The normal distribution N(mu, sd^2) truncated to [0, inf), written N_T(mu, sd^2).

    p(x) = N(x; mu, sd^2) 1[x >= 0] / Phi(a),     a = mu / sd,     r(a) = phi(a) / Phi(a)
    mean = mu + sd r(a),     variance = sd^2 (1 - a r(a) - r(a)^2),     d mean / d mu = variance / sd^2

The textbook forms cancel for a << 0; here they are replaced by forms that do not (`nongauss.prob.normal`).
All functions work elementwise with broadcasting and keep the floating dtype. `sd` > 0 is a standard
deviation; one that is not positive gives meaningless numbers, without an error.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key, Real

from nongauss.prob.normal import HALF_LOG_2PI, as_float, hazard, log_cdf, unit_moments

_TAIL = -1.0  # below this mu / sd the quantile is taken from the hazard, above it from the normal quantile
_NEWTON_STEPS = 3


def _split(a: Float[Array, "*S"]) -> tuple[Float[Array, "*S"], Float[Array, "*S"]]:
    """The negative and the positive part of a, so that the branch not taken stays harmless; 0 is positive."""
    return jnp.where(a < 0, a, 0.0), jnp.where(a < 0, 0.0, a)


def moments(
    mu: Real[ArrayLike, "*#S"], sd: Real[ArrayLike, "*#S"]
) -> tuple[Float[Array, "*B"], Float[Array, "*B"]]:
    """Mean mu + sd r(a) and variance sd^2 (1 - a r(a) - r(a)^2) of N_T(mu, sd^2), a = mu / sd.

    Both are positive and exact to a few roundings for any a.
    """
    mu, sd = as_float(mu), as_float(sd)
    a = mu / sd
    r, m, v = unit_moments(a)
    # sd m would do on both sides, but for a >= 0 this form also differentiates without cancellation
    return jnp.where(a < 0, sd * m, mu + sd * r), sd * sd * v


def mean(mu: Real[ArrayLike, "*#S"], sd: Real[ArrayLike, "*#S"]) -> Float[Array, "*B"]:
    """Mean of N_T(mu, sd^2): mu + sd r(mu / sd)."""
    return moments(mu, sd)[0]


def variance(mu: Real[ArrayLike, "*#S"], sd: Real[ArrayLike, "*#S"]) -> Float[Array, "*B"]:
    """Variance of N_T(mu, sd^2): sd^2 (1 - a r(a) - r(a)^2) with a = mu / sd."""
    return moments(mu, sd)[1]


def log_partition(mu: Real[ArrayLike, "*#S"], sd: Real[ArrayLike, "*#S"]) -> Float[Array, "*B"]:
    """log Phi(mu / sd): the log probability that N(mu, sd^2) is not negative."""
    return log_cdf(as_float(mu) / sd)


def log_pdf(
    x: Real[ArrayLike, "*#S"], mu: Real[ArrayLike, "*#S"], sd: Real[ArrayLike, "*#S"]
) -> Float[Array, "*B"]:
    """Log density of N_T(mu, sd^2) at x: log N(x; mu, sd^2) - log Phi(mu / sd), -inf for x < 0."""
    mu, sd = as_float(mu), as_float(sd)
    a, t = mu / sd, x / sd
    low, high = _split(a)
    # a < 0: the -a^2 / 2 of both terms is cancelled by hand; log Phi(a) = log phi(a) - log r(a)
    tail = -0.5 * t * t + low * t + jnp.log(hazard(low))
    body = -0.5 * (t - high) * (t - high) - HALF_LOG_2PI - log_cdf(high)
    return jnp.where(t < 0, -jnp.inf, jnp.where(a < 0, tail, body) - jnp.log(sd))


@jax.custom_jvp
@partial(jax.jit, inline=True)
def _unit_entropy(a: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Entropy of N_T(a, 1): log(2 pi) / 2 + log Phi(a) + (1 - a r(a)) / 2.

    For a < 0, log Phi(a) = log phi(a) - log r(a), and with m = a + r what is left is (1 - a m) / 2 - log r.
    """
    low, high = _split(a)
    r_low, m_low, _ = unit_moments(low)
    tail = 0.5 - 0.5 * low * m_low - jnp.log(r_low)
    body = HALF_LOG_2PI + log_cdf(high) + 0.5 * (1.0 - high * hazard(high))
    return jnp.where(a < 0, tail, body)


@_unit_entropy.defjvp
def _unit_entropy_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Its derivative by a is r (v + m^2) / 2."""
    (a,), (da,) = primals, tangents
    r, m, v = unit_moments(a)
    return _unit_entropy(a), 0.5 * r * (v + m * m) * da


def entropy(mu: Real[ArrayLike, "*#S"], sd: Real[ArrayLike, "*#S"]) -> Float[Array, "*B"]:
    """Entropy of N_T(mu, sd^2) in nats: log sd + log(2 pi) / 2 + log Phi(a) + (1 - a r(a)) / 2."""
    total: Float[Array, "*B"] = jnp.log(sd) + _unit_entropy(as_float(mu) / sd)
    return total


def _body_quantile(u: Float[Array, "*S"], a: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Quantile of N_T(a, 1) through the normal quantile, taken from whichever normal tail is the smaller."""
    above = jnp.exp(log_cdf(a)) * (1.0 - u)
    below = jnp.exp(log_cdf(-a)) + jnp.exp(log_cdf(a)) * u
    y = ndtri(jnp.minimum(above, below))
    return jnp.maximum(a + jnp.where(above < below, -y, y), 0.0)


def _tail_quantile(u: Float[Array, "*S"], a: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Quantile t of N_T(a, 1) for a < 0: the root of G(t) = -log(1 - u), G being the integrated hazard.

    G(t) = -a t + t^2 / 2 + log(r(a - t) / r(a)) increases and is convex: few Newton steps from its
    second-order start suffice. Where t is so small that G loses its digits, the start is exact enough.
    """
    r, m, v = unit_moments(a)
    target = -jnp.log1p(-u)
    start = 2.0 * target / (r + jnp.sqrt(r * r + 2.0 * (1.0 - v) * target))
    t = start
    for _ in range(_NEWTON_STEPS):
        r_t, m_t, _ = unit_moments(a - t)
        t = t - (t * (0.5 * t - a) + jnp.log1p((t + m_t - m) / r) - target) / r_t
    return jnp.where(target < 10.0 * float(np.finfo(u.dtype).eps) ** 0.4, start, t)


@jax.custom_jvp
@partial(jax.jit, inline=True)
def _unit_quantile(u: Float[Array, "*S"], a: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Quantile of N_T(a, 1) at u: by the hazard for a below `_TAIL`, by the normal quantile above."""
    low = jnp.where(a < _TAIL, a, _TAIL)
    inside = jnp.where((u > 0) & (u < 1), u, 0.5)
    body = _body_quantile(inside, jnp.where(a < _TAIL, 0.0, a))
    t = jnp.where(a < _TAIL, _tail_quantile(inside, low), body)
    return jnp.where(u > 0, jnp.where(u < 1, t, jnp.inf), 0.0)


@_unit_quantile.defjvp
def _unit_quantile_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    """With t the quantile: dt/du = 1 / ((1 - u) r(a - t)) and dt/da = 1 - r(a) / r(a - t)."""
    (u, a), (du, da) = primals, tangents
    t = _unit_quantile(u, a)
    # implicit: the upper probability (1 - u) Phi(a) = Phi(a - t) is held, and hazards replace densities
    r_t = jnp.maximum(hazard(a - t), float(np.finfo(t.dtype).tiny))
    return t, du / ((1.0 - u) * r_t) + (1.0 - hazard(a) / r_t) * da


def quantile(
    u: Real[ArrayLike, "*#S"], mu: Real[ArrayLike, "*#S"], sd: Real[ArrayLike, "*#S"]
) -> Float[Array, "*B"]:
    """The x with P(X <= x) = u for X ~ N_T(mu, sd^2): 0 at u = 0, infinite at u = 1, increasing in u.

    Differentiable in mu and sd too (the reparametrisation gradient of a draw).
    """
    u, mu, sd = jnp.broadcast_arrays(as_float(u), as_float(mu), as_float(sd))
    x: Float[Array, "*B"] = sd * _unit_quantile(u, mu / sd)
    return x


def sample(
    key: Key[Array, ""], mu: Real[ArrayLike, "*#S"], sd: Real[ArrayLike, "*#S"], shape: tuple[int, ...]
) -> Float[Array, "*B"]:
    """Independent draws of N_T(mu, sd^2), an array of the given shape, to which mu and sd must broadcast."""
    mu, sd = jnp.broadcast_to(as_float(mu), shape), jnp.broadcast_to(as_float(sd), shape)
    return quantile(jax.random.uniform(key, shape, jnp.result_type(mu, sd)), mu, sd)

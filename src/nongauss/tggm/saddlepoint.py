r"""The likelihood of the outputs with the hidden units integrated out, by their closed cumulant function.

With c and s the locations and standard deviations of the last hidden layer before it is cut, a = c / s and
l(z) = log(Phi(z) / phi(z)), whose derivatives are the mean m(z) and the variance v(z) of N(z, 1) cut at 0,
the log of E[exp(t'y) | x] is

    K(t) = t'b1 + sum_p t_p^2 s1_p^2 / 2 + sum_k [l(a_k + q_k't) - l(a_k)],     q_pk = W1_pk s_k,
    K'(t) = b1 + s1^2 t + Q m(a + Q't),      K''(t) = diag(s1^2) + Q diag(v(a + Q't)) Q'.

It is exact with one layer, for any number of units and outputs. The density follows from the saddlepoint t,
at which K'(t) = y (Daniels, Annals of Mathematical Statistics 1954):

    log p(y|x) = K(t) - t'y - log det(2 pi K''(t)) / 2 - log of a normaliser near 1.

K is convex, so there is one saddlepoint, and |K'''| <= 2 K''^(3/2), since no cut normal is skewed more than
an exponential: steps that mind K''' find it soon. Functions are for one row and one member.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from nongauss.prob.normal import HALF_LOG_2PI, log_mills_difference, third_moment, unit_moments

N_STEPS = 3
"""Steps to the saddlepoint of one output; each trebles the digits. `tests/tggm/test_saddlepoint.py` has what
is left."""

N_DAMPED_STEPS = 8
"""Damped Newton steps to the saddlepoint of several outputs."""

LEAST_BEND = 0.3  # least factor by which K''' may lengthen a step


class CumulantTerms(NamedTuple):
    """What the cumulant function of one output depends on: the symbols of the module's equations.

    `a` (M,): drives of the units, c / s. `q` (M,): what one sd of a unit moves the output. `constant`: b1.
    `noise`: the variance s1^2.
    """

    a: Float[Array, " M"]
    q: Float[Array, " M"]
    constant: Float[Array, ""]
    noise: Float[Array, ""]


def cumulant(terms: CumulantTerms, t: Float[Array, ""]) -> Float[Array, ""]:
    """K(t) - t b1: the cumulant function of the output about its constant."""
    units = jnp.sum(log_mills_difference(terms.a, terms.q * t))
    return 0.5 * terms.noise * t * t + units


def slopes(
    terms: CumulantTerms, t: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """K'(t) - b1, K''(t) and K'''(t)."""
    a, q = terms.a + terms.q * t, terms.q
    _, m, v = unit_moments(a)
    first = terms.noise * t + jnp.sum(q * m)
    return first, terms.noise + jnp.sum(q * q * v), jnp.sum(q**3 * third_moment(a))


def saddlepoint(terms: CumulantTerms, y: Float[Array, ""], n_steps: int = N_STEPS) -> Float[Array, ""]:
    """The t with K'(t) = y by Halley's method from 0, where K' and K'' are the moments of y.

    K' is replaced near t by the hyperbola of its value, slope and bend, K' + K'' d / (1 - K''' d / (2 K'')):
    that of a gamma law. So of skewed laws the long tail and the short one are found alike.
    """

    def closer(_: Array | int, t: Float[Array, ""]) -> Float[Array, ""]:
        r, m, v = unit_moments(terms.a + terms.q * t)
        second = terms.noise + jnp.sum(terms.q**2 * v)
        third = jnp.sum(terms.q**3 * r * (m * m - v))  # good enough to steer by
        newton = (y - terms.constant - terms.noise * t - jnp.sum(terms.q * m)) / second
        return t + newton / jnp.maximum(1.0 + 0.5 * newton * third / second, LEAST_BEND)

    found: Float[Array, ""] = jax.lax.fori_loop(0, n_steps, closer, jnp.zeros_like(y))
    return found


def log_density_of_one(terms: CumulantTerms, y: Float[Array, ""]) -> Float[Array, ""]:
    """log p(y|x) of one output before normalising, with the gradient through the saddlepoint.

    At fixed y the saddlepoint moves with the parameters by dt = -dK'(t) / K''(t), which only the last term of
    the density feels: d(-log K'' / 2) = -dK'' / (2 K'') + K''' dK' / (2 K''^2).
    """
    held: CumulantTerms = jax.lax.stop_gradient(terms)
    t = saddlepoint(held, y)
    first, second, third = slopes(terms, t)
    first_held, second_held, third_held = jax.lax.stop_gradient((first, second, third))
    off = y - held.constant - first_held
    # what is left of the exponent, whose minimum over t is -off^2 / (2 K'') lower
    exponent = cumulant(terms, t) + t * (terms.constant - y) - 0.5 * off * off / second_held
    moved = 0.5 * third_held / second_held**2 * (first - first_held + terms.constant - held.constant)
    return exponent - 0.5 * jnp.log(second) - HALF_LOG_2PI + moved


class JointTerms(NamedTuple):
    """What the cumulant function of P outputs depends on: `a` (M,), `q` (P, M), `constant`, `noise` (P,)."""

    a: Float[Array, " M"]
    q: Float[Array, "P M"]
    constant: Float[Array, " P"]
    noise: Float[Array, " P"]


def joint_slopes(terms: JointTerms, t: Float[Array, " P"]) -> tuple[Float[Array, " P"], Float[Array, "P P"]]:
    """K'(t) - b1 and K''(t) of several outputs."""
    _, m, v = unit_moments(terms.a + t @ terms.q)
    return terms.noise * t + terms.q @ m, jnp.diag(terms.noise) + (terms.q * v[None, :]) @ terms.q.T


def joint_saddlepoint(terms: JointTerms, y: Float[Array, " P"]) -> Float[Array, " P"]:
    """The t with K'(t) = y by damped Newton steps from 0.

    With d the decrement, d^2 = (y - K')' K''^-1 (y - K'), a step of length 1 / (1 + d) always raises
    t'y - K(t), since |K'''| <= 2 K''^(3/2); full steps are taken for d < 1, longer damped ones beyond.
    """

    def closer(_: Array, t: Float[Array, " P"]) -> Float[Array, " P"]:
        first, second = joint_slopes(terms, t)
        off = y - terms.constant - first
        way = jnp.linalg.solve(second, off)
        size = jnp.sqrt(jnp.maximum(off @ way, 0.0))
        moved: Array = t + way / jnp.where(size < 1.0, 1.0, 0.5 + 0.5 * size)
        return moved

    found: Float[Array, " P"] = jax.lax.fori_loop(0, N_DAMPED_STEPS, closer, jnp.zeros_like(y))
    return found


def log_density_of_several(terms: JointTerms, y: Float[Array, " P"]) -> Float[Array, ""]:
    """log p(y|x) of P outputs together before normalising, with the gradient through the saddlepoint.

    One further Newton step carries how the saddlepoint moves with the parameters.
    """
    held: JointTerms = jax.lax.stop_gradient(terms)
    near = joint_saddlepoint(held, y)
    first, _ = joint_slopes(terms, near)
    curved = jax.lax.stop_gradient(joint_slopes(held, near)[1])
    t = near + jnp.linalg.solve(curved, y - terms.constant - first)
    _, second = joint_slopes(terms, t)
    units = jnp.sum(log_mills_difference(terms.a, t @ terms.q))
    exponent = 0.5 * jnp.sum(terms.noise * t * t) + units + t @ (terms.constant - y)
    found: Float[Array, ""] = exponent - 0.5 * jnp.linalg.slogdet(second)[1] - y.shape[0] * HALF_LOG_2PI
    return found

"""The standard normal distribution, exact to rounding in both tails.

Everything rests on two functions of z >= 0: mean and variance of the excess X - z given X > z, X ~ N(0, 1).
With u = 1 / (z + c) they are u P(s) and u^2 Q(s), where P and Q are polynomials in s = 1 - 2 c u, which runs
over [-1, 1]. So no difference of large numbers is formed, and one polynomial serves z from 0 to infinity. The
coefficients come from `tests/reference/make_truncnorm.py`: Chebyshev interpolation of exact values.

Notation: phi and Phi are density and distribution function, r(a) = phi(a) / Phi(a) is the hazard (inverse
Mills ratio). All functions work elementwise and keep the floating dtype of their arguments; float32 and
float64 each have their own coefficients.
"""

from __future__ import annotations

from functools import partial
from math import log, pi, sqrt

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Real

HALF_LOG_2PI = 0.5 * log(2.0 * pi)
_INV_SQRT_2PI = 1.0 / sqrt(2.0 * pi)
SHIFT = 3.5  # c above: the choice that needs the fewest coefficients

# fmt: off
_MEAN_32 = (
    2.883887091e-05, -4.595059238e-04, -1.628126195e-04, 3.007008440e-03,
    2.405114172e-04, -1.133551071e-02, 2.042718299e-03, 3.541446968e-02,
    -2.218277076e-02, -1.007619343e-01, 1.537139289e-01, 2.106945688e-01,
    -1.029978395e+00, 1.759738871e+00,
)
_VARIANCE_32 = (
    4.127900329e-04, 1.760865572e-03, -2.856078689e-03, -1.165558170e-02,
    1.101784436e-02, 4.098838936e-02, -3.532319704e-02, -1.075547358e-01,
    1.109611775e-01, 2.345010954e-01, -3.465783764e-01, -3.929988150e-01,
    1.018011179e+00, 1.709454315e-01, -2.481349231e+00, 2.789717260e+00,
)
MEAN_64 = (
    -3.974647760808169e-09, 1.0258564129313269e-08, 2.089400050041101e-08, -1.433336151615983e-07,
    1.0966398638150465e-08, 1.0966974226692024e-06, -4.461466145609855e-07, -6.1022320857347e-06,
    1.9258936160569064e-06, 2.7552008997320185e-05, -3.544696655249873e-06, -0.00010727843530208728,
    -4.362967043814445e-06, 0.00037629115734778796, 5.555277584166589e-05, -0.0012316407370872797,
    -0.000204380461067641, 0.0038678080250464375, 0.00027216855695113255, -0.011862644414322521,
    0.002029881705622421, 0.035587516289165386, -0.02218009878281826, -0.10078958422774553,
    0.15371368344104813, 0.21069624634473083, -1.0299783886096456, 1.759738854003898,
)
VARIANCE_64 = (
    5.3807240705205344e-08, 4.823423953597566e-08, -5.189395412215453e-07, -3.801158753426637e-07,
    2.513552903613431e-06, 8.873693738423419e-07, -9.109414811523154e-06, 3.0339457008911096e-06,
    3.2544227210190074e-05, -3.373535990375397e-05, -0.00012659659954085604, 0.00016094067965295584,
    0.0004925667742297392, -0.0005603216302789045, -0.0017663952731014232, 0.0016470570635516528,
    0.005710879111523158, -0.004490513162629785, -0.01673378799958284, 0.012327171770173248,
    0.04479412049081281, -0.03595640319454884, -0.10921332201276451, 0.1111402098698816,
    0.23490344243598124, -0.34660569048577516, -0.39304742723674907, 1.0180130706766384,
    0.17094768871121085, -2.4813492699087645, 2.7897172426135435,
)
# fmt: on


def as_float(value: Real[ArrayLike, "*B"]) -> Float[Array, "*B"]:
    """The value as a floating array: integers are promoted, a floating dtype stays."""
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


def _horner(coefficients: tuple[float, ...], s: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """(...(c_0 s + c_1) s + ...) + c_n: the polynomial, highest power first."""
    total = jnp.full_like(s, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * s + coefficient
    return total


def _polynomial(coefficients: tuple[float, ...], s: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """The polynomial at s, highest power first; odd and even powers are two chains that run side by side."""
    square = s * s
    return _horner(coefficients[-2::-2][::-1], square) * s + _horner(coefficients[-1::-2][::-1], square)


def _excess_mean(z: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """E[X - z | X > z] = u P(s), u = 1 / (z + c) and s = 1 - 2 c u, for z >= 0."""
    u = 1.0 / (z + SHIFT)
    table = MEAN_64 if z.dtype == jnp.float64 else _MEAN_32
    return u * _polynomial(table, 1.0 - 2.0 * SHIFT * u)


def _excess_variance(z: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Var[X | X > z] = u^2 Q(s), u = 1 / (z + c) and s = 1 - 2 c u, for z >= 0."""
    u = 1.0 / (z + SHIFT)
    table = VARIANCE_64 if z.dtype == jnp.float64 else _VARIANCE_32
    return u * u * _polynomial(table, 1.0 - 2.0 * SHIFT * u)


def _magnitude(a: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """|a|, but with derivative 1 at zero, where that of `abs` is 0."""
    return jnp.where(a < 0, -a, a)


def _density(z: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """phi(z) = exp(-z^2 / 2) / sqrt(2 pi)."""
    return _INV_SQRT_2PI * jnp.exp(-0.5 * z * z)


@jax.custom_jvp
@partial(jax.jit, inline=True)
def unit_moments(
    a: Float[Array, "*S"],
) -> tuple[Float[Array, "*S"], Float[Array, "*S"], Float[Array, "*S"]]:
    """Hazard r, mean m = a + r and variance v = 1 - r m of N(a, 1) truncated to [0, inf), exact in the tail.

    For a < 0 this is the excess over z = -a. For a >= 0 the excess over z = a gives Phi(-a) as
    phi / (z + excess), and that gives r. Derivatives: r' = -r m, m' = v, v' = third central moment.

    `a` is floating, of any shape; the three results have its shape and dtype, and m and v are positive.
    """
    z = _magnitude(a)
    tail_mean = _excess_mean(z)
    tail_hazard = z + tail_mean
    density = _density(z)
    body_hazard = density * tail_hazard / (tail_hazard - density)
    body_mean = z + body_hazard
    below = a < 0
    return (
        jnp.where(below, tail_hazard, body_hazard),
        jnp.where(below, tail_mean, body_mean),
        jnp.where(below, _excess_variance(z), 1.0 - body_hazard * body_mean),
    )


@unit_moments.defjvp
def _unit_moments_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """r' = -r m, m' = v and v' = r (m^2 - v)."""
    (a,), (da,) = primals, tangents
    r, m, v = unit_moments(a)
    return (r, m, v), (-r * m * da, v * da, third_moment(a) * da)


@partial(jax.jit, inline=True)
def third_moment(a: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Third central moment of N(a, 1) truncated to [0, inf): r (m^2 - v), for a < 0 the slope of v."""
    r, m, v = unit_moments(a)
    z = _magnitude(a)
    slope: Float[Array, "*S"] = jax.jvp(_excess_variance, (z,), (jnp.ones_like(z),))[1]
    return jnp.where(a < 0, -slope, r * m * m - r * v)


def hazard(a: Real[ArrayLike, "*B"]) -> Float[Array, "*B"]:
    """phi(a) / Phi(a), the inverse Mills ratio: tends to -a for a -> -inf, and to phi(a) for a -> inf."""
    r: Float[Array, "*B"] = unit_moments(as_float(a))[0]
    return r


@jax.custom_jvp
@partial(jax.jit, inline=True)
def _log_cdf(a: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """log Phi(a): log phi(a) - log r(a) for a < 0, else log(1 - Phi(-a)) with Phi(-a) = phi(a) / r(-a)."""
    z = _magnitude(a)
    tail_hazard = z + _excess_mean(z)
    below = a < 0
    # log Phi(-z) = log phi(z) - log(hazard), and log Phi(z) = log(1 - Phi(-z)), where a log1p would take most
    # of the time: the rounding of 1 - Phi(-z) is put right to first order instead
    upper = _density(z) / tail_hazard
    rest = 1.0 - upper
    log = jnp.log(jnp.where(below, tail_hazard, rest))
    return jnp.where(below, -0.5 * z * z - HALF_LOG_2PI - log, log + ((1.0 - rest) - upper) / rest)


@_log_cdf.defjvp
def _log_cdf_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """(log Phi)' = r."""
    (a,), (da,) = primals, tangents
    return _log_cdf(a), unit_moments(a)[0] * da


def log_cdf(a: Real[ArrayLike, "*B"]) -> Float[Array, "*B"]:
    """log Phi(a), finite and exact to rounding in both tails; its derivative is the hazard."""
    log: Float[Array, "*B"] = _log_cdf(as_float(a))
    return log


def _log_mills(z: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """l(z) = log(Phi(z) / phi(z)) for z < 0, where it is -log r(z), and l(z) - z^2 / 2 for z >= 0."""
    size = _magnitude(z)
    tail_hazard = size + _excess_mean(size)
    upper = _density(size) / tail_hazard
    rest = 1.0 - upper
    body = jnp.log(rest) + ((1.0 - rest) - upper) / rest + HALF_LOG_2PI
    return jnp.where(z < 0, -jnp.log(tail_hazard), body)


@jax.custom_jvp
@partial(jax.jit, inline=True)
def log_mills_difference(a: Float[Array, "*S"], step: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """l(a + step) - l(a) of l(z) = log(Phi(z) / phi(z)), the log of Mills' ratio, whose slope is z + r(z).

    That of z^2 / 2, which l has for z >= 0, is formed by hand: no large numbers are subtracted.
    """
    b = a + step
    from_a, to_b = jnp.where(a < 0, 0.0, a), jnp.where(b < 0, 0.0, b)
    way = jnp.where((a < 0) | (b < 0), to_b - from_a, step)
    return _log_mills(b) - _log_mills(a) + 0.5 * way * (from_a + to_b)


@log_mills_difference.defjvp
def _log_mills_difference_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    """By a: m(a + step) - m(a); by the step: m(a + step)."""
    (a, step), (da, dstep) = primals, tangents
    there = unit_moments(a + step)[1]
    return log_mills_difference(a, step), (there - unit_moments(a)[1]) * da + there * dstep


def log_pdf(
    x: Real[ArrayLike, "*#S"], mean: Real[ArrayLike, "*#S"], sd: Real[ArrayLike, "*#S"]
) -> Float[Array, "*B"]:
    """log N(x; mean, sd^2) = -((x - mean) / sd)^2 / 2 - log(2 pi) / 2 - log sd, with broadcasting; sd > 0."""
    scaled = (as_float(x) - mean) / sd
    return -0.5 * scaled * scaled - HALF_LOG_2PI - jnp.log(sd)

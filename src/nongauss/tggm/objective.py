r"""What is maximised: the specification of the model, for one row and one member of the ensemble.

Hidden units h >= 0 and outputs y of a row x, with c = W0 x + b0:

    p(h|x) = N(h; c, diag s0^2) 1[h >= 0] / prod_k Phi(c_k / s0_k)          (paper, eq. 1)
    p(y|h) = N(y; W1 h + b1, diag s1^2)

Three objectives, each a lower bound of, or a stand-in for, log p(y|x) = log int p(y, h|x) dh (eq. 8):

- `mean_field_bound`: the evidence lower bound at a factorised posterior q(h) = prod_k N_T(xi_k, v_k);
- `moment_log_likelihood`: the Gaussian that has the exact mean and covariance of y given x;
- `plug_in_log_likelihood`: the Gaussian about the mean of y with the noise alone (back-propagation).

Shapes: x (D,), y (P,), units M. Source: Su, Liao, Chen and Carin (ICML 2016); `NOTATION.md` lists errata.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from nongauss.prob import normal, truncnorm
from nongauss.tggm.params import Config, Params

LOG_2PI = 2.0 * normal.HALF_LOG_2PI


class Posterior(NamedTuple):
    """Factorised posterior of one row: unit k is N_T(location_k, sd_k^2) with these moments. Each (M,)."""

    location: jax.Array
    sd: jax.Array
    mean: jax.Array
    variance: jax.Array


def drive(params: Params, x: jax.Array) -> jax.Array:
    """c = W0 x + b0, the location of the hidden units before truncation: (M,)."""
    return params.W0 @ x + params.b0


def output_moments(params: Params, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """E[y|x] = W1 E[h|x] + b1 (eq. 5), and prior mean and variance of the hidden units: (P,), (M,), (M,)."""
    mean, variance = truncnorm.moments(drive(params, x), jnp.exp(params.log_sd0))
    return params.W1 @ mean + params.b1, mean, variance


def plug_in_log_likelihood(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    """log N(y; E[y|x], s1^2): its gradient is back-propagation through the soft ReLU (sec. 3.2)."""
    mean, _, _ = output_moments(params, x)
    return jnp.sum(normal.log_pdf(y, mean, jnp.exp(params.log_sd1)))


def moment_log_likelihood(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    """log N(y; E[y|x], W1 diag(var h) W1' + diag s1^2): both moments of the model are exact.

    y sums many independent units, so the Gaussian is close, and unlike mean field it keeps the
    posterior's correlation between units.
    """
    mean, _, hidden = output_moments(params, x)
    noise = jnp.exp(2.0 * params.log_sd1)
    error = y - mean
    if y.shape[0] == 1:
        variance = jnp.sum(params.W1[0] ** 2 * hidden) + noise
        return -0.5 * jnp.sum(LOG_2PI + jnp.log(variance) + error**2 / variance)
    covariance = (params.W1 * hidden[None, :]) @ params.W1.T + jnp.diag(noise)
    factor = jnp.linalg.cholesky(covariance)
    scaled = jax.scipy.linalg.solve_triangular(factor, error, lower=True)
    return -0.5 * (y.shape[0] * LOG_2PI + scaled @ scaled) - jnp.sum(jnp.log(jnp.diag(factor)))


def expected_log_noise(params: Params, q: Posterior, y: jax.Array) -> jax.Array:
    """E_q log p(y|h), p(y|h) = N(W1 h + b1, s1^2)."""
    error = y - params.b1 - params.W1 @ q.mean
    square = error**2 + params.W1**2 @ q.variance
    return -0.5 * jnp.sum(LOG_2PI + 2.0 * params.log_sd1 + square * jnp.exp(-2.0 * params.log_sd1))


def expected_log_prior(params: Params, q: Posterior, x: jax.Array) -> jax.Array:
    """E_q log p(h|x), the truncated normal with its normaliser Phi(c/s0)."""
    c, sd = drive(params, x), jnp.exp(params.log_sd0)
    square = ((q.mean - c) ** 2 + q.variance) / sd**2
    return -0.5 * jnp.sum(LOG_2PI + 2.0 * params.log_sd0 + square) - jnp.sum(truncnorm.log_partition(c, sd))


def entropy(q: Posterior) -> jax.Array:
    """Entropy of the factorised posterior, by its own moments (not `truncnorm.entropy`: they are at hand)."""
    spread = 0.5 * (q.variance + (q.mean - q.location) ** 2) / q.sd**2
    parts = 0.5 * LOG_2PI + jnp.log(q.sd) + truncnorm.log_partition(q.location, q.sd) + spread
    return jnp.sum(parts)


def mean_field_bound(params: Params, q: Posterior, x: jax.Array, y: jax.Array) -> jax.Array:
    """Evidence lower bound of one row: expected noise term + expected prior term + entropy (eq. 10)."""
    return expected_log_noise(params, q, y) + expected_log_prior(params, q, x) + entropy(q)


def predictive_log_likelihood(params: Params, config: Config, x: jax.Array, y: jax.Array) -> jax.Array:
    """The density by which held-out rows judge a member: that of `predict`, up to its skewness."""
    if config.method == "bp":
        return plug_in_log_likelihood(params, x, y)
    return moment_log_likelihood(params, x, y)

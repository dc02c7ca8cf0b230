r"""What is maximised: the specification of the model, for one row and one member of the ensemble.

Hidden units h >= 0 in layers l = 1..L and outputs z of a row x, with h_0 = x and s the standard deviations:

    p(h|x) = prod_l N(h_l; W_l h_{l-1} + b_l, diag s_l^2) 1[h >= 0] / Z(x)    (paper, eq. 1, 39 to 41)
    p(z|h) = N(z; W1 h_L + b1, diag s1^2)

With a skip V, z has the mean W1 h_L + V x + b1: at a row, `NetworkParams.at` has V x in the constant b1.
With one layer Z(x) = prod_k Phi(c_k / s_k), c = W0 x + b0. Numbers are y = z. A label is the output that is
largest (eq. 23), or with two classes the sign of the only one; there s1 = 1.

Four objectives, each a lower bound of, or a stand-in for, log p(y|x):

- `mean_field.row_bound`: by a factorised posterior, and with depth a factorised prior as well;
- `moment_log_likelihood`: as if z were Gaussian with its mean and covariance given x;
- `exact_log_likelihood`: by the saddlepoint of the closed cumulant function (`saddlepoint.py`);
- `plug_in_log_likelihood`: as if the noise alone spread it about its mean (back-propagation).

Shapes: x (D,), y (Y,): the P numbers, or the one class number of a label; M units. Source: Su, Liao, Chen and
Carin (ICML 2016); `NOTATION.md` lists errata.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from nongauss.prob import normal, probit, truncnorm
from nongauss.tggm import mean_field, saddlepoint
from nongauss.tggm.config import NetworkConfig
from nongauss.tggm.params import NetworkParams

LOG_2PI = 2.0 * normal.HALF_LOG_2PI


def last_preactivation(
    params: NetworkParams, x: Float[Array, " D"], spread: bool = True
) -> tuple[Float[Array, " M"], Float[Array, " M"]]:
    """Location and sd of the last hidden layer's units before truncation.

    One layer: c = W0 x + b0 and s0, exactly. Deeper, the layer below counts as a Gaussian with the mean m and
    the variances v of its truncated normals (assumed density): a unit sees N(W m + b, s^2 + W^2 v) before it
    is truncated. Without `spread`, m alone is passed on, as a network does.
    """
    location, sd = params.W0 @ x + params.b0, jnp.exp(params.log_sd0)
    for layer in params.deeper:
        mean, variance = truncnorm.moments(location, sd)
        location, sd = layer.W @ mean + layer.b, jnp.exp(layer.log_sd)
        if spread:
            sd = jnp.sqrt(sd**2 + layer.W**2 @ variance)
    return location, sd


def last_layer(
    params: NetworkParams, prior: str, x: Float[Array, " D"]
) -> tuple[Float[Array, " M"], Float[Array, " M"]]:
    """Location and sd of the last layer's units before truncation, by the prior that a fit trains.

    `prior` is `NetworkConfig.prior`: that of `mean_field.row_bound`, or moments or means passed up.
    """
    if prior == "mean_field":
        return mean_field.last_layer(params, x)
    return last_preactivation(params, x, spread=prior == "moments")


def output_moments(
    params: NetworkParams, x: Float[Array, " D"], spread: bool = True
) -> tuple[Float[Array, " P"], Float[Array, " M"], Float[Array, " M"]]:
    """E[z|x] = W1 E[h|x] + b1 (eq. 5), and mean and variance of the last hidden layer."""
    params = params.at(x)
    mean, variance = truncnorm.moments(*last_preactivation(params, x, spread))
    return params.W1 @ mean + params.b1, mean, variance


def plug_in_log_likelihood(
    params: NetworkParams, x: Float[Array, " D"], y: Float[Array, " Y"], n_classes: int = 0
) -> Float[Array, ""]:
    """log p(y | z ~ N(E[z|x], s1^2)): its gradient is back-propagation through the soft ReLU (sec. 3.2)."""
    mean, _, _ = output_moments(params, x, spread=False)
    if n_classes:
        return probit.log_probabilities(mean, jnp.exp(2.0 * params.log_sd1))[y[0].astype(int)]
    return jnp.sum(normal.log_pdf(y, mean, jnp.exp(params.log_sd1)))


def moment_log_likelihood(
    params: NetworkParams, x: Float[Array, " D"], y: Float[Array, " Y"], n_classes: int = 0
) -> Float[Array, ""]:
    """log N(y; E[y|x], W1 diag(var h) W1' + diag s1^2): with one layer both moments of the model are exact.

    y sums many independent units, so the Gaussian is close, and unlike mean field it keeps the
    posterior's correlation between units. For labels, the probability that this Gaussian makes output y the
    largest, outputs taken as independent (two classes have one output, which needs no such step).
    """
    return log_gaussian(params.at(x), *last_preactivation(params, x), y, n_classes)


def log_gaussian(
    params: NetworkParams,
    location: Float[Array, " M"],
    sd: Float[Array, " M"],
    y: Float[Array, " Y"],
    n_classes: int = 0,
) -> Float[Array, ""]:
    """`moment_log_likelihood` of a last layer with this location and sd before truncation.

    With heads it is the log density of their mixture, in which each is a Gaussian by moments.
    """
    unit_mean, hidden = truncnorm.moments(location, sd)
    mean, noise = params.W1 @ unit_mean + params.b1, jnp.exp(2.0 * params.log_sd1)
    if params.gate:  # log sum_j pi_j(x) N(y; m_j, v_j), the heads j weighed by their logits
        (gate,) = params.gate
        spread = jnp.sqrt(params.W1**2 @ hidden + noise)
        share = jax.nn.log_softmax(gate.W @ unit_mean + gate.b)
        return jax.nn.logsumexp(share + normal.log_pdf(y[0], mean, spread))
    if n_classes:
        return probit.log_probabilities(mean, params.W1**2 @ hidden + noise)[y[0].astype(int)]
    error = y - mean
    if y.shape[0] == 1:  # log N(y; m, v) = -(log 2 pi + log v + (y - m)^2 / v) / 2
        variance = jnp.sum(params.W1[0] ** 2 * hidden) + noise
        return -0.5 * jnp.sum(LOG_2PI + jnp.log(variance) + error**2 / variance)
    covariance = (params.W1 * hidden[None, :]) @ params.W1.T + jnp.diag(noise)
    # with L L' the covariance: log N = -(P log 2 pi + |L^-1 (y - E[y|x])|^2) / 2 - sum_p log L_pp
    factor = jnp.linalg.cholesky(covariance)
    scaled = jax.scipy.linalg.solve_triangular(factor, error, lower=True)
    return -0.5 * (y.shape[0] * LOG_2PI + scaled @ scaled) - jnp.sum(jnp.log(jnp.diag(factor)))


def exact_log_likelihood(
    params: NetworkParams, x: Float[Array, " D"], y: Float[Array, " P"]
) -> Float[Array, ""]:
    """log p(y|x) with the hidden units integrated out (eq. 4 and 8), by the saddlepoint of K(t).

    Up to a normaliser that hardly varies with x: it is within .1 of 1 where one unit gives all of the spread,
    and the nearer to it the more units do.
    """
    params = params.at(x)
    location, sd = last_preactivation(params, x)
    noise = jnp.exp(2.0 * params.log_sd1)
    a, q = location / sd, params.W1 * sd[None, :]
    if y.shape[0] == 1:
        terms = saddlepoint.CumulantTerms(a, q[0], params.b1[0], noise[0])
        return saddlepoint.log_density_of_one(terms, y[0])
    return saddlepoint.log_density_of_several(saddlepoint.JointTerms(a, q, params.b1, noise), y)


def peak_and_distance(
    params: NetworkParams, config: NetworkConfig, x: Float[Array, " D"], y: Float[Array, " P"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """log N(m; m, C) and (y - m)' C^-1 (y - m) of `log_gaussian`: what a factor of C changes."""
    params = params.at(x)
    location, sd = last_layer(params, config.prior, x)
    mean = params.W1 @ truncnorm.mean(location, sd) + params.b1
    peak = log_gaussian(params, location, sd, mean)
    return peak, 2.0 * (peak - log_gaussian(params, location, sd, y))


def predictive_log_likelihood(
    params: NetworkParams, config: NetworkConfig, x: Float[Array, " D"], y: Float[Array, " Y"]
) -> Float[Array, ""]:
    """The density by which held-out rows judge a member: that of `predict`, up to its skewness."""
    if config.method == "ml" and config.posterior == "exact":
        return exact_log_likelihood(params, x, y)
    if config.method == "bp":
        return plug_in_log_likelihood(params, x, y, config.n_classes)
    return log_gaussian(params.at(x), *last_layer(params, config.prior, x), y, config.n_classes)

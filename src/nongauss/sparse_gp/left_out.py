"""What a fitted Gaussian process says of each row that it was fitted to, as if without that row.

At the sites' fixed point row n adds g_n f + h_n f^2 to log q(f), g and h the derivatives of its expectation
by mean and variance; dividing that site out of q(u) leaves a Gaussian again. Hyper-parameters stay: they have
seen the row, which flatters a fit by about a nat for each of them in all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from nongauss.predictive.combined import mixture
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.sparse_gp.beside import log_exposure
from nongauss.sparse_gp.data import with_a_column
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.likelihoods import Censored
from nongauss.sparse_gp.objective import latent_moments
from nongauss.sparse_gp.params import basis, inducing, row_slices
from nongauss.sparse_gp.predict import GPPosterior
from nongauss.sparse_gp.stacking import SMALLEST_REST


def left_out_law(
    model: Any, X: Any, y: FloatArray, weight: FloatArray, exposure: Any = None
) -> PredictiveDistribution:
    """The law of each training row's target y (N,) given all others, of a fitted `SparseGPRegressor`.

    Of one fitted to censored targets y is (N, 2), the ends of what is known of each row. `X`, `weight` (N,)
    and `exposure` are what the model was fitted to; a row is left out with its whole weight.
    """
    encoded = with_a_column(model._encoder.as_scaled(X))
    centre, scale = float(model._scaler.centre[0]), float(model._scaler.scale[0])
    target = (np.asarray(y, np.float64) - centre) / scale
    if target.ndim == 2:
        target = np.sort(target, axis=1)  # the scale may be negative
    parts = []
    for posterior in model.posteriors_:
        shift = log_exposure(exposure, len(encoded), posterior.likelihood)
        exact = bool(model.is_exact_)
        seen = posterior
        if target.ndim == 2:
            seen = posterior._replace(likelihood=Censored(of=posterior.likelihood))
        mean, variance = left_out_moments(seen, encoded, target, weight, shift, exact)
        psi = posterior.psi
        parts.append(posterior.likelihood.predictive(mean, variance, psi, centre=centre, scale=scale))
    return mixture(parts, model.weights_)


def left_out_probabilities(model: Any, X: Any, codes: FloatArray, weight: FloatArray) -> FloatArray:
    """The probability of each class (N, C) at each training row given all others, of a fitted classifier.

    `codes` (N,): the number of each row's class in `classes_`.
    """
    encoded = with_a_column(model._encoder.as_scaled(X))
    posterior = model.posterior_
    shift = np.zeros(len(encoded))
    moments = left_out_moments(posterior, encoded, np.asarray(codes, np.float64), weight, shift, False)
    found: FloatArray = posterior.likelihood.probabilities(*moments, posterior.psi)
    return found


def n_parameters(model: Any) -> int:
    """Number of hyper-parameters that the rows chose: of the largest of the models that are averaged."""
    return max(sum(map(len, p.thetas)) + len(p.psi) for p in model.posteriors_)


def left_out_moments(
    posterior: GPPosterior,
    X: Float[np.ndarray, "N D"],
    y: Float[np.ndarray, " N"] | Float[np.ndarray, "N 2"],
    weight: Float[np.ndarray, " N"],
    shift: Float[np.ndarray, " N"],
    is_exact: bool,
) -> tuple[Float[np.ndarray, "C N L"], Float[np.ndarray, "C N L"]]:
    """Mean and variance of each latent function at each row without the row's own site: (1, N, L) each.

    Of the variance v = b + a at a row, b is what q(u) leaves open and a the part given u, which a site does
    not reach (a = 0 where every row is an inducing input). With beta = -2 w h:
    mean = m - w b g / (1 - beta b), variance = b / (1 - beta b) + a.
    """
    m, v, given = _moments(posterior, X, is_exact)
    m += shift[:, None]
    sites = posterior.likelihood.expected_log_prob(y, m, v, posterior.psi)
    open_part = np.maximum(v - given, 0.0)
    precision = -2.0 * weight[:, None] * sites.d_variance
    rest = np.maximum(1.0 - precision * open_part, SMALLEST_REST)
    mean = m - weight[:, None] * open_part * sites.d_mean / rest
    return mean[None], (open_part / rest + given)[None]


def _moments(
    posterior: GPPosterior, X: Float[np.ndarray, "N D"], is_exact: bool
) -> tuple[Float[np.ndarray, "N L"], Float[np.ndarray, "N L"], Float[np.ndarray, "N L"]]:
    """Mean, variance, and variance given u, k_nn - k_n' K_zz^-1 k_n, of each latent function: (N, L) each."""
    mean, variance, given = np.zeros((3, len(X), len(posterior.offset)))
    for number, kernel in enumerate(posterior.kernels):
        theta, latents = posterior.thetas[number], posterior._latents_of(number)
        root = None if is_exact else inducing(kernel, theta, posterior.space, posterior.Z).inverse
        for rows in row_slices(len(X), len(posterior.Z)):
            at = basis(kernel, theta, posterior.space, posterior.Z, X[rows])
            if root is not None:
                white = root @ at.K
                left = np.maximum(at.diagonal - np.einsum("mn,mn->n", white, white), 0.0)
                given[rows, latents] = left[:, None]
            for l in latents:
                mean[rows, l], variance[rows, l], _ = latent_moments(
                    at, posterior.alpha[0, l], posterior.W[0, l]
                )
    return mean + posterior.offset, variance, given

"""Gaussian noise with an inducing input at every row: the exact Gaussian process, for one inverse."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dpotri

from nongauss.sparse_gp.kernels.algebra import FloatArray
from nongauss.sparse_gp.params import Model, Params, Rows
from nongauss.sparse_gp.updates import first_sites


class Evidence(NamedTuple):
    """The log evidence with its derivatives, and what predicts: mean c + k' alpha, variance k - k' W k."""

    value: float
    by_theta: FloatArray
    by_psi: FloatArray
    alpha: FloatArray
    W: FloatArray


def evidence(model: Model, params: Params, rows: Rows) -> Evidence:
    """log N(y; c, K + diag(1 / beta)) with beta the rows' noise precisions, weights as repetitions.

    Written as the bound at its optimum, sum_n w_n E_q[log p] - KL(q || p), so that the noise parameters get
    their derivative from the likelihood. Raises LinAlgError where the matrix has no Cholesky factor.
    """
    kernel, theta = model.kernels[0], params.thetas[0]
    sites = first_sites(model, rows, params.psi)
    noise = 1.0 / sites.precision[:, 0]
    K, cache = kernel.forward(theta, model.space, rows.X, rows.X)
    white = kernel.diagonal(theta, model.space, rows.X) - K.diagonal()
    total = K + np.diag(noise + white)
    root = cholesky(total, lower=True, overwrite_a=True, check_finite=False)
    centred = sites.linear[:, 0] * noise
    alpha = cho_solve((root, True), centred, check_finite=False)
    log_det = 2.0 * float(np.log(root.diagonal()).sum())
    inverse, _ = dpotri(root, lower=1, overwrite_c=1)
    inverse = np.tril(inverse)
    inverse += np.tril(inverse, -1).T
    left = inverse.diagonal()
    mean, variance = centred - noise * alpha, np.maximum(noise - noise**2 * left, 1e-300)
    divergence = 0.5 * (noise @ left + alpha @ mean - len(noise) + log_det - np.log(noise).sum())
    at = (mean + model.offset[0] + rows.shift)[:, None]
    expectation = model.likelihood.expect(rows.y, at, variance[:, None], params.psi, with_params=True)
    cotangent = 0.5 * (np.multiply.outer(alpha, alpha) - inverse)
    by_diagonal = cotangent.diagonal().copy()
    by_theta = kernel.diagonal_backward(theta, model.space, rows.X, by_diagonal)
    np.fill_diagonal(cotangent, 0.0)
    by_theta = by_theta + kernel.backward(theta, model.space, cache, cotangent)[0]
    value = float(rows.weight @ expectation.value) - float(divergence)
    return Evidence(value, by_theta, rows.weight @ expectation.d_params, alpha, inverse)

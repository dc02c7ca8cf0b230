"""The bound: what is maximised, term by term. Equations are of Bui and Turner 2014 (NOTATION.md).

    F = sum_n w_n E_{N(mu_n, v_n)}[log p(y_n | f_n)] - sum_l KL(q(u_l) || p(u_l))                     (eq. 7)

Latent functions that share a kernel share a `Basis`. With u = L e, L L' = K_zz, q(e) = N(m, S), p = N(0, I):

    mu_n = c + k_n' alpha,          alpha = L^-T m
    v_n  = k_nn - k_n' W k_n,       W = L^-T (I - S) L^-1

q is held as *sites*: q(e) is proportional to p(e) prod_n exp(lambda_n f_n - beta_n f_n^2 / 2), so that
S^-1 = I + T, T = L^-1 (K_zx diag(beta) K_xz) L^-T, and m = S L^-1 K_zx lambda. At the sites' fixed point
lambda = g - 2 h (mu - c), beta = -2 h (g, h: derivatives of the expectation by mu and v) F is stationary in
q, and its derivative by all else is the partial one, with q(e) held fixed (Adam, Chang, Khan and Solin 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dtrtri

from nongauss.sparse_gp.kernels.algebra import FloatArray, Kernel, Space

JITTER = 1e-8
"""Added to the diagonal of K_zz, relative to its mean."""

SMALLEST_VARIANCE = 1e-10
"""Of f, relative to its prior variance: rounding leaves less."""


class Basis(NamedTuple):
    """A kernel at the inducing inputs and at some rows."""

    K: FloatArray
    """K_zx (M, N)."""
    diagonal: FloatArray
    """k_nn (N,)."""
    cache: Any


class Inducing(NamedTuple):
    """A kernel at the inducing inputs alone."""

    inverse: FloatArray
    """L^-1 (M, M), lower triangular."""
    cache: Any


class Latent(NamedTuple):
    """q of one latent function, for one basis."""

    mean: FloatArray
    """m (M,), whitened."""
    precision: FloatArray
    """S^-1 (M, M)."""
    covariance: FloatArray
    """S (M, M)."""
    alpha: FloatArray
    W: FloatArray
    divergence: float
    """KL(q || p)."""


def basis(kernel: Kernel, theta: FloatArray, space: Space, Z: FloatArray, X: FloatArray) -> Basis:
    """Kernel matrices of some rows."""
    K, cache = kernel.forward(theta, space, Z, X)
    return Basis(K, kernel.diagonal(theta, space, X), cache)


def inducing(kernel: Kernel, theta: FloatArray, space: Space, Z: FloatArray) -> Inducing:
    """The inverse factor of K_zz with jitter. Raises LinAlgError where it has none."""
    Kz, cache = kernel.forward(theta, space, Z, Z)
    Kz = Kz + JITTER * kernel.diagonal(theta, space, Z).mean() * np.eye(len(Z))
    L = cholesky(Kz, lower=True, overwrite_a=True, check_finite=False)
    inverse, info = dtrtri(L, lower=1)
    if info != 0:
        raise np.linalg.LinAlgError("The inducing inputs coincide.")
    return Inducing(inverse, cache)


def weighted_gram(K: FloatArray, beta: FloatArray) -> FloatArray:
    """K diag(beta) K' (M, M), at half the price where no weight is negative."""
    if (beta >= 0).all():
        root = K * np.sqrt(beta)
        return root @ root.T
    return (K * beta) @ K.T


def latent(inverse: FloatArray, gram: FloatArray, linear: FloatArray) -> Latent:
    """q from sums over rows: K diag(beta) K' (M, M) and K lambda (M,). LinAlgError if it is no density."""
    size = len(inverse)
    precision = inverse @ gram @ inverse.T
    precision += precision.T
    precision *= 0.5
    precision[np.diag_indices(size)] += 1.0
    root = cholesky(precision, lower=True, check_finite=False)
    covariance = cho_solve((root, True), np.eye(size), check_finite=False)
    mean = covariance @ (inverse @ linear)
    divergence = 0.5 * (covariance.trace() + mean @ mean - size) + float(np.log(root.diagonal()).sum())
    return Latent(
        mean, precision, covariance, inverse.T @ mean, spread_factor(inverse, covariance), divergence
    )


def spread_factor(inverse: FloatArray, covariance: FloatArray) -> FloatArray:
    """W = L^-T (I - S) L^-1."""
    left = -covariance
    left[np.diag_indices(len(left))] += 1.0
    W: FloatArray = inverse.T @ left @ inverse
    return W


def moments(at: Basis, q: Latent) -> tuple[FloatArray, FloatArray, FloatArray]:
    """mu - c (N,), v (N,), and W K (M, N), which the gradient needs as well."""
    return conditional(at, q.alpha, q.W)


def conditional(at: Basis, alpha: FloatArray, W: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`moments` of a q of which only alpha and W are known."""
    WK = W @ at.K
    variance = at.diagonal - np.einsum("mn,mn->n", at.K, WK)
    return at.K.T @ alpha, np.maximum(variance, SMALLEST_VARIANCE * at.diagonal), WK


def by_rows(
    latents: Sequence[Latent], products: Sequence[FloatArray], g: FloatArray, beta: FloatArray
) -> FloatArray:
    """dF/dK_zx (M, N) of the L latent functions of a basis, at settled sites. Overwrites the products W K.

    g = lambda - beta (mu - c), beta: (N, L). By the chain rule with q(e) fixed
    dF = g' d(mu) - beta' d(v) / 2; so dF/dk_nn = -beta / 2.
    """
    out: FloatArray = np.stack([q.alpha for q in latents], axis=1) @ g.T
    for WK, own in zip(products, beta.T, strict=True):
        WK *= own
        out += WK
    return out


def by_inducing(at: Inducing, q: Latent) -> FloatArray:
    """dF/dK_zz (M, M) of one latent function whose sites have settled, since L changes with K_zz."""
    middle = q.precision + q.covariance + np.multiply.outer(q.mean, q.mean)
    middle[np.diag_indices(len(middle))] -= 2.0
    out: FloatArray = -0.5 * at.inverse.T @ middle @ at.inverse
    return out


def pull_back_inducing(
    kernel: Kernel, theta: FloatArray, space: Space, at: Inducing, by_Kz: FloatArray, Z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """From dF/dK_zz to derivatives by theta and Z (M, D), jitter included."""
    by_theta, half = kernel.backward(theta, space, at.cache, by_Kz)
    jitter = np.full(len(Z), JITTER * by_Kz.trace() / len(Z))
    return by_theta + kernel.diagonal_backward(theta, space, Z, jitter), 2.0 * half

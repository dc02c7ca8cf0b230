"""The bound: what is maximised, term by term. Equations are of Bui and Turner 2014 (NOTATION.md).

    F = sum_n w_n E_{N(mu_n, v_n)}[log p(y_n | f_n)] - sum_l KL(q(u_l) || p(u_l))                     (eq. 7)

Latent functions that share a kernel share a `Basis`. With u = L e, L L' = K_zz, q(e) = N(m, S), p = N(0, I):

    mu_n = c + k_n' alpha,          alpha = L^-T m
    v_n  = k_nn - k_n' W k_n,       W = L^-T (I - S) L^-1

q is held as *sites*: q(e) is proportional to p(e) prod_n exp(lambda_n f_n - beta_n f_n^2 / 2), so that
S^-1 = I + T, T = L^-1 (K_zx diag(beta) K_xz) L^-T, and m = S L^-1 K_zx lambda. At the sites' fixed point
lambda = g - 2 h (mu - c), beta = -2 h (g, h: derivatives of the expectation by mu and v) F is stationary in
q, and its derivative by all else is the partial one, with q(e) held fixed (Adam, Chang, Khan and Solin 2021).
A fit maximises F plus `log_prior`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_solve, cholesky, eigh, solve
from scipy.linalg.lapack import dpotri

from nongauss.sparse_gp.buffers import product, times
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.kernels import PRIOR_SD, FloatArray
from nongauss.sparse_gp.likelihoods import Expectation
from nongauss.sparse_gp.params import (
    Basis,
    GaussianSites,
    GPModel,
    GPParams,
    Inducing,
    KernelBlocks,
    first_sites,
)

SMALLEST_VARIANCE = 1e-10
"""Least variance of f, relative to its prior variance: rounding leaves less."""

LATENT_SD = 3.0
"""Prior sd of the log variance of a function that is not on the target's scale: labels that are nearly
separable want it large, and held-out log-loss of five binary sets is on average a little lower so."""


@dataclass(frozen=True, eq=False)
class LatentQ:
    """q of one latent function, for one basis."""

    mean: FloatArray
    """m (M,), whitened."""
    precision: FloatArray
    """S^-1 (M, M)."""
    covariance: FloatArray
    """S (M, M)."""
    divergence: float
    """KL(q || p)."""
    inverse: FloatArray
    """L^-1 (M, M) of its basis."""

    @cached_property
    def alpha(self) -> FloatArray:
        """L^-T m (M,)."""
        return self.inverse.T @ self.mean

    @cached_property
    def W(self) -> FloatArray:
        """L^-T (I - S) L^-1 (M, M); sums over V = L^-1 K_zx do without it."""
        return spread_factor(self.inverse, self.covariance)


class QAtSites(NamedTuple):
    """q at some sites, and what the bound and its derivatives need."""

    sites: GaussianSites
    latents: tuple[Any, ...]
    """`LatentQ`, or `every_row.RowQ`."""
    centred: FloatArray
    """mu - c (N, L), without the rows' shift."""
    variance: FloatArray
    """v (N, L)."""
    products: tuple[list[FloatArray], ...]
    """W K, or S V, of each block and latent function where these are kept, else empty."""
    expectation: Expectation
    """Without derivatives by psi, which only a q that has converged is asked for."""
    bound: float


class Evidence(NamedTuple):
    """The log evidence with its derivatives, and what predicts: mean c + k' alpha, variance k - k' W k."""

    value: float
    by_theta: FloatArray
    by_psi: FloatArray
    alpha: FloatArray
    W: FloatArray


def weighted_gram(K: Float[np.ndarray, "M N"], beta: Float[np.ndarray, " N"]) -> Float[np.ndarray, "M M"]:
    """K diag(beta) K' (M, M), at half the price where no weight is negative."""
    if (beta >= 0).all():
        root = times(K, np.sqrt(beta))
        gram: FloatArray = root @ root.T
    else:
        gram = times(K, beta) @ K.T
    return gram


def latent(
    inverse: Float[np.ndarray, "M M"],
    gram: Float[np.ndarray, "M M"],
    linear: Float[np.ndarray, " M"],
    is_positive: bool = False,
    is_white: bool = False,
) -> LatentQ:
    """q from sums over rows: K diag(beta) K' (M, M) and K lambda (M,). LinAlgError if it is no density.

    S^-1 = I + L^-1 gram L^-T, m = S L^-1 linear, KL = (tr S + m'm - M - log det S) / 2. `is_positive`: no
    beta is negative, so that the eigenvalues of S^-1 are 1 at least, whatever rounding has left of them.
    `is_white`: the sums are over V = L^-1 K in the place of K.
    """
    size = len(inverse)
    precision = gram if is_white else inverse @ gram @ inverse.T
    precision = precision + precision.T
    precision *= 0.5
    precision[np.diag_indices(size)] += 1.0
    try:
        root = cholesky(precision, lower=True, check_finite=False)
        half_log_det = float(np.log(root.diagonal()).sum())
        covariance = inverse_of(root)
    except np.linalg.LinAlgError:
        if not (is_positive and np.isfinite(precision).all()):
            raise
        values, vectors = eigh(precision, check_finite=False)
        values = np.maximum(values, 1.0)
        precision, covariance = (vectors * values) @ vectors.T, (vectors / values) @ vectors.T
        half_log_det = 0.5 * float(np.log(values).sum())
    mean = covariance @ (linear if is_white else inverse @ linear)
    divergence = 0.5 * (covariance.trace() + mean @ mean - size) + half_log_det
    return LatentQ(mean, precision, covariance, divergence, inverse)


def inverse_of(root: Float[np.ndarray, "M M"]) -> Float[np.ndarray, "M M"]:
    """(R R')^-1 from its lower factor R, which is overwritten and may have no rows."""
    if not len(root):
        return root  # LAPACK would print that it was misused
    inverse: FloatArray = np.tril(dpotri(root, lower=1, overwrite_c=1)[0])
    inverse += np.tril(inverse, -1).T
    return inverse


def spread_factor(
    inverse: Float[np.ndarray, "M M"], covariance: Float[np.ndarray, "M M"]
) -> Float[np.ndarray, "M M"]:
    """W = L^-T (I - S) L^-1."""
    left = -covariance
    left[np.diag_indices(len(left))] += 1.0
    W: FloatArray = inverse.T @ left @ inverse
    return W


def latent_moments(
    at: Basis, alpha: Float[np.ndarray, " M"], W: Float[np.ndarray, "M M"]
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"], Float[np.ndarray, "M N"]]:
    """mu - c = K' alpha (N,), v = k_nn - k_n' W k_n (N,), and W K (M, N), which the gradient needs too."""
    WK = product(W, at.K)
    variance = at.diagonal - np.einsum("mn,mn->n", at.K, WK)
    return at.K.T @ alpha, np.maximum(variance, SMALLEST_VARIANCE * at.diagonal), WK


def white_moments(
    V: Float[np.ndarray, "M N"],
    diagonal: Float[np.ndarray, " N"],
    given: Float[np.ndarray, " N"],
    q: LatentQ,
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"], Float[np.ndarray, "M N"]]:
    """mu - c = V' m, v = k_nn - sum V^2 + sum V (S V), and S V; V = L^-1 K, sums over inducing inputs.

    `given`: k_nn - sum V^2, at least 0, which functions of one basis share.
    """
    SV = product(q.covariance, V)
    variance = given + np.einsum("mn,mn->n", V, SV)
    return V.T @ q.mean, np.maximum(variance, SMALLEST_VARIANCE * diagonal), SV


def given_u(at: Basis) -> Float[np.ndarray, " N"]:
    """k_nn - sum V^2, what inducing values leave open: (N,); empty where V is not kept."""
    if at.white is None:
        return np.zeros(0)
    out: FloatArray = np.maximum(at.diagonal - np.einsum("mn,mn->n", at.white, at.white), 0.0)
    return out


def bound_at(blocks: KernelBlocks, sites: GaussianSites) -> QAtSites:
    """q at these sites and F (eq. 7) there: one pass for q, one for the moments."""
    model, rows = blocks.model, blocks.rows
    grams, linears = _site_sums(blocks, sites)
    latents = [
        latent(blocks.inducing[own].inverse, gram, linear, bool((beta >= 0).all()), blocks.is_white)
        for own, gram, linear, beta in zip(model.kernel_of, grams, linears, sites.precision.T, strict=True)
    ]
    centred, variance = np.empty_like(sites.linear), np.empty_like(sites.linear)
    products: list[list[FloatArray]] = []
    for part, bases in blocks:
        made = []
        given = [given_u(at) for at in bases]
        for l, own in enumerate(model.kernel_of):
            at, q = bases[own], latents[l]
            if at.white is not None:
                moments = white_moments(at.white, at.diagonal, given[own], q)
            else:
                moments = latent_moments(at, q.alpha, q.W)
            centred[part, l], variance[part, l], made_of_K = moments
            made.append(made_of_K)
        if blocks.keeps_products:
            products.append(made)
    mean = centred + model.centre(rows.shift)
    psi = blocks.params.psi
    expectation = model.likelihood.expected_log_prob(rows.y, mean, variance, psi)
    bound = float(rows.weight @ expectation.value) - sum(q.divergence for q in latents)
    return QAtSites(sites, tuple(latents), centred, variance, tuple(products), expectation, bound)


def mean_at(blocks: KernelBlocks, sites: GaussianSites) -> Float[np.ndarray, "N L"]:
    """mu - c of q at sites of positive precision: K' L^-T (I + T)^-1 L^-1 K lambda."""
    kernel_of = blocks.model.kernel_of
    centred = np.empty_like(sites.linear)
    alphas = []
    for own, gram, linear in zip(kernel_of, *_site_sums(blocks, sites), strict=True):
        inverse = blocks.inducing[own].inverse
        if not blocks.is_white:
            gram, linear = inverse @ gram @ inverse.T, inverse @ linear
        gram[np.diag_indices(len(gram))] += 1.0
        mean = solve(gram, linear, assume_a="pos", check_finite=False)
        alphas.append(mean if blocks.is_white else inverse.T @ mean)
    for part, bases in blocks:
        for l, own in enumerate(kernel_of):
            K = bases[own].summed
            centred[part, l] = K.T @ alphas[l]
    return centred


def _site_sums(
    blocks: KernelBlocks, sites: GaussianSites
) -> tuple[list[Float[np.ndarray, "M M"]], list[Float[np.ndarray, " M"]]]:
    """K diag(beta) K' and K lambda of each latent function over all rows; of V for K where that is kept."""
    size, kernel_of = len(blocks.params.Z), blocks.model.kernel_of
    grams = [np.zeros((size, size)) for _ in kernel_of]
    linears = [np.zeros(size) for _ in kernel_of]
    for part, bases in blocks:
        for l, own in enumerate(kernel_of):
            K = bases[own].summed
            grams[l] += weighted_gram(K, sites.precision[part, l])
            linears[l] += K @ sites.linear[part, l]
    return grams, linears


def by_rows(
    at: Basis,
    inverse: Float[np.ndarray, "M M"],
    latents: Sequence[LatentQ],
    products: Sequence[Float[np.ndarray, "M N"]],
    g: Float[np.ndarray, "N L"],
    beta: Float[np.ndarray, "N L"],
) -> Float[np.ndarray, "M N"]:
    """dF/dK_zx (M, N) of the L latent functions of a basis, at converged sites. Overwrites the products.

    g = lambda - beta (mu - c), beta: (N, L). By the chain rule with q(e) fixed
    dF = g' d(mu) - beta' d(v) / 2; so dF/dk_nn = -beta / 2, and dF/dK_zx = sum_l alpha g' + (W K) beta
    = L^-T sum_l (m g' + (V - S V) beta).
    """
    if at.white is None:
        out = product(np.stack([q.alpha for q in latents], axis=1), g.T)
        for WK, own in zip(products, beta.T, strict=True):
            WK *= own
            out += WK
        return out
    total = product(np.stack([q.mean for q in latents], axis=1), g.T)
    total += times(at.white, beta.sum(axis=1))
    for SV, own in zip(products, beta.T, strict=True):
        SV *= own
        total -= SV
    return product(inverse.T, total)


def by_inducing(at: Inducing, latents: Sequence[LatentQ]) -> Float[np.ndarray, "M M"]:
    """dF/dK_zz (M, M) of the latent functions of a basis, whose sites have converged, as L changes with K_zz.

    -L^-T sum_l (S^-1 + S + m m' - 2 I) L^-1 / 2.
    """
    middle = np.zeros_like(at.inverse)
    for q in latents:
        middle += q.precision + q.covariance + np.multiply.outer(q.mean, q.mean)
    middle[np.diag_indices(len(middle))] -= 2.0 * len(latents)
    out: FloatArray = -0.5 * at.inverse.T @ middle @ at.inverse
    return out


def log_prior(
    model: GPModel, params: GPParams
) -> tuple[float, list[Float[np.ndarray, " T"]], Float[np.ndarray, " K"]]:
    """Log density, up to a constant, of kernel and likelihood parameters, and its derivatives by them.

    Log length-scales and variances are normal about the kernel's own mean; so none runs off on its own. How
    large f is is known roughly where the target is standardised, and hardly where f is a logit or a log rate.
    """
    value, by_psi = model.likelihood.log_prior(params.psi)
    by_thetas = []
    for number, (kernel, theta) in enumerate(zip(model.kernels, params.thetas, strict=True)):
        of_variance = PRIOR_SD if model.likelihood.is_standard(model.latents_of(number)[0]) else LATENT_SD
        sd = kernel.prior_sd(model.space, of_variance)
        z = (theta - kernel.prior_mean(model.space)) / sd
        value -= 0.5 * float(z @ z)
        by_thetas.append(-z / sd)
    return value, by_thetas, by_psi


class ExactSolution(NamedTuple):
    """What the process of normal observations at its inducing inputs comes from."""

    noise: FloatArray
    """Variance of each row's noise (N,)."""
    centred: FloatArray
    """Targets less the latent mean (N,)."""
    alpha: FloatArray
    """P (N, N) times these."""
    inverse: FloatArray
    """P, the inverse of the targets' covariance."""
    log_det: float
    """That of this covariance."""
    cache: Any
    """The kernel's."""


def exact_solution(model: GPModel, params: GPParams, rows: GPRows) -> ExactSolution:
    """P and what it makes of the targets. LinAlgError where their covariance has no Cholesky factor."""
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
    return ExactSolution(noise, centred, alpha, inverse_of(root), log_det, cache)


def exact_evidence(model: GPModel, params: GPParams, rows: GPRows) -> Evidence:
    """log N(y; c, K + diag(1 / beta)) with beta the rows' noise precisions, weights as repetitions.

    Gaussian noise with an inducing input at every row: the exact Gaussian process, for one inverse. Written
    as the bound at its optimum, sum_n w_n E_q[log p] - KL(q || p), so that the noise parameters get their
    derivative from the likelihood. Raises LinAlgError where the matrix has no Cholesky factor.
    """
    kernel, theta = model.kernels[0], params.thetas[0]
    noise, centred, alpha, inverse, log_det, cache = exact_solution(model, params, rows)
    left = inverse.diagonal()
    mean, variance = centred - noise * alpha, np.maximum(noise - noise**2 * left, 1e-300)
    divergence = 0.5 * (noise @ left + alpha @ mean - len(noise) + log_det - np.log(noise).sum())
    at = (mean + model.offset[0] + rows.shift)[:, None]
    expectation = model.likelihood.expected_log_prob(rows.y, at, variance[:, None], params.psi, True)
    cotangent = 0.5 * (np.multiply.outer(alpha, alpha) - inverse)
    by_diagonal = cotangent.diagonal().copy()
    by_theta = kernel.diagonal_backward(theta, model.space, rows.X, by_diagonal)
    np.fill_diagonal(cotangent, 0.0)
    by_theta = by_theta + kernel.backward(theta, model.space, cache, cotangent)[0]
    value = float(rows.weight @ expectation.value) - float(divergence)
    return Evidence(value, by_theta, rows.weight @ expectation.d_params, alpha, inverse)

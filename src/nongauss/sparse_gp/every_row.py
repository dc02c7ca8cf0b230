"""q where every row is an inducing input: by kernel matrices between rows, (N, N), at a quarter of the price.

With K one of these, sites (lambda, beta) of a latent function, D = diag(beta), S = (K^-1 + D)^-1 its
covariance at the rows and m = mu - c = S lambda its mean:

    a = lambda - D m,   m = K a,   R = (K + D^-1)^-1 = D - D S D
    KL(q || p) = (a' m - beta' v + log det(I + K D)) / 2

and a new row has mean c + k' a and variance k - k' R k. Rows of a precision that is positive and not tiny, P,
come first: B = I + D_P^1/2 K_PP D_P^1/2 has no eigenvalue below 1, and v = (1 - (B^-1)_nn) / beta. The others
are told by columns of S; those of negative precision, as outliers have under Student's t, change it by as
many ranks as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from nongauss.sparse_gp.buffers import times
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.objective import SMALLEST_VARIANCE, QAtSites, inverse_of
from nongauss.sparse_gp.params import GaussianSites, GPModel, GPParams

MOST_CERTAIN = 1e7
"""Product of a row's precision and its prior variance beyond which these matrices have too few digits: what q
leaves of the prior's variance is their difference."""

TINY = 1e-6
"""Product of a row's precision and its prior variance below which it says nothing of f."""


class NoDigits(np.linalg.LinAlgError):
    """Matrices between rows do not tell q, which those with jitter still may."""


class RowKernels:
    """Each kernel of a model between all rows, at some parameters."""

    def __init__(self, model: GPModel, params: GPParams, rows: GPRows) -> None:
        self.model, self.params, self.rows = model, params, rows
        pairs = zip(model.kernels, params.thetas, strict=True)
        made = [kernel.forward(theta, model.space, rows.X, rows.X) for kernel, theta in pairs]
        self.K: list[FloatArray] = [K for K, _ in made]
        self.caches: list[Any] = [cache for _, cache in made]


def is_without_white(model: GPModel, params: GPParams, rows: GPRows) -> bool:
    """Is no kernel of a model larger at a row with itself than with one at its place?"""
    first = rows.X[:1]
    return all(
        np.allclose(
            kernel.forward(theta, model.space, first, first)[0][0], kernel.diagonal(theta, model.space, first)
        )
        for kernel, theta in zip(model.kernels, params.thetas, strict=True)
    )


@dataclass(frozen=True, eq=False)
class RowQ:
    """q of one latent function at all rows."""

    alpha: Float[np.ndarray, " N"]
    """a."""
    centred: Float[np.ndarray, " N"]
    """m."""
    variance: Float[np.ndarray, " N"]
    """v."""
    divergence: float
    """KL(q || p)."""
    first: NDArray[np.bool_]
    """Is a row one of P? (N,)"""
    inner: FloatArray
    """(K_PP + D_P^-1)^-1."""
    outer: FloatArray
    """R is that of P less the product of this (k, N) with itself, for k rows of negative precision."""

    @cached_property
    def W(self) -> Float[np.ndarray, "N N"]:
        """R of all rows, put together from `inner` and `outer`."""
        if self.first.all():
            return self.inner
        out = -(self.outer.T @ self.outer)
        out[np.ix_(self.first, self.first)] += self.inner
        return out


def row_q(
    K: Float[np.ndarray, "N N"], linear: Float[np.ndarray, " N"], precision: Float[np.ndarray, " N"]
) -> RowQ:
    """q from sites lambda and beta, tiny ones taken for 0.

    LinAlgError if it is no density, NoDigits if the numbers are too large.
    """
    told = np.abs(precision) * K.diagonal()
    if not told.max() < MOST_CERTAIN:
        raise NoDigits("The kernel is too large for these precisions.")
    beta = np.where(told > TINY, precision, 0.0)
    first = beta > 0
    own, target = beta[first], linear[first] / beta[first]
    root = np.sqrt(own)
    factor = _factor(K if first.all() else K[np.ix_(first, first)], root)
    log_det = 2.0 * float(np.log(factor.diagonal()).sum())
    alpha, variance = np.zeros((2, len(beta)))
    alpha[first] = root * cho_solve((factor, True), root * target, check_finite=False)
    outer = np.zeros((0, len(beta)))
    if not first.all():
        more, outer = _beside(K, linear, beta, (factor, root), (alpha, variance))
        log_det += more
    inner = inverse_of(factor)
    variance[first] += (1.0 - inner.diagonal()) / own
    inner *= root
    inner *= root[:, None]
    mean = np.empty_like(alpha)
    mean[first] = target - alpha[first] / own
    mean[~first] = K[~first] @ alpha
    variance = np.maximum(variance, SMALLEST_VARIANCE * K.diagonal())
    divergence = 0.5 * float(alpha @ mean - beta @ variance + log_det)
    return RowQ(alpha, mean, variance, divergence, first, inner, outer)


def _factor(K: Float[np.ndarray, "P P"], root: Float[np.ndarray, " P"]) -> Float[np.ndarray, "P P"]:
    """The lower factor of I + D^1/2 K D^1/2, `root` the diagonal of D^1/2."""
    B = times(K, root)
    B *= root[:, None]
    B[np.diag_indices(len(B))] += 1.0
    factor: FloatArray = cholesky(B, lower=True, overwrite_a=True, check_finite=False)
    return factor


def _beside(
    K: Float[np.ndarray, "N N"],
    linear: Float[np.ndarray, " N"],
    beta: Float[np.ndarray, " N"],
    told: tuple[FloatArray, FloatArray],
    found: tuple[FloatArray, FloatArray],
) -> tuple[float, FloatArray]:
    """Add what rows other than P tell to a and v (N,), in place: their log determinant, and `RowQ.outer`.

    `told`: the factor of B and D_P^1/2. With R and S of P alone, Q = E - R K for the columns of these rows,
    so that S's are K Q, and n those of negative precision, T = diag(1 / |beta_n|) - S_nn:

        S becomes S + S_n T^-1 S_n',   R becomes R - Q_n T^-1 Q_n',   a becomes a + Q lambda + Q_n T^-1 m_n
    """
    (factor, root), (alpha, variance) = told, found
    first, rest = beta > 0, beta <= 0
    columns = K[:, rest]
    half = solve_triangular(factor, root[:, None] * columns[first], lower=True, check_finite=False)
    pulled = root[:, None] * solve_triangular(factor, half, lower=True, trans=1, check_finite=False)
    Q, S = np.zeros_like(columns), np.empty_like(columns)
    Q[first], Q[rest] = -pulled, np.eye(columns.shape[1])
    S[first], S[rest] = pulled / beta[first, None], columns[rest] - half.T @ half
    variance[rest] = S[rest].diagonal()
    alpha += Q @ linear[rest]
    negative = beta < 0
    among = negative[rest]
    if not among.any():
        return 0.0, np.zeros((0, len(beta)))
    size, S, Q = -beta[negative], S[:, among], Q[:, among]
    C = cholesky(np.diag(1.0 / size) - S[negative], lower=True, check_finite=False)
    spread = solve_triangular(C, S.T, lower=True, check_finite=False)
    outer = solve_triangular(C, Q.T, lower=True, check_finite=False)
    variance += np.einsum("kn,kn->n", spread, spread)
    alpha += outer.T @ solve_triangular(C, K[negative] @ alpha, lower=True, check_finite=False)
    return float(np.log(size).sum()) + 2.0 * float(np.log(C.diagonal()).sum()), outer


def row_bound_at(kernels: RowKernels, sites: GaussianSites) -> QAtSites:
    """q at these sites and F there, as `objective.bound_at`."""
    model, rows = kernels.model, kernels.rows
    each = zip(model.kernel_of, sites.linear.T, sites.precision.T, strict=True)
    latents = tuple(row_q(kernels.K[own], linear, precision) for own, linear, precision in each)
    centred = np.stack([q.centred for q in latents], axis=1)
    variance = np.stack([q.variance for q in latents], axis=1)
    mean = centred + model.centre(rows.shift)
    psi = kernels.params.psi
    expectation = model.likelihood.expected_log_prob(rows.y, mean, variance, psi)
    bound = float(rows.weight @ expectation.value) - sum(q.divergence for q in latents)
    return QAtSites(sites, latents, centred, variance, (), expectation, bound)


def row_mean_at(kernels: RowKernels, sites: GaussianSites) -> Float[np.ndarray, "N L"]:
    """mu - c of q at sites of positive precision, as `objective.mean_at`."""
    out = np.empty_like(sites.linear)
    for l, own in enumerate(kernels.model.kernel_of):
        K = kernels.K[own]
        root = np.sqrt(np.maximum(sites.precision[:, l], TINY**2))
        factor = _factor(K, root)
        out[:, l] = K @ (root * cho_solve((factor, True), sites.linear[:, l] / root, check_finite=False))
    return out


def by_row_kernels(kernels: RowKernels, q: QAtSites) -> list[FloatArray]:
    """dF/dtheta of each kernel, as sites have converged: dF/dK = sum (a a' - R) / 2 over its functions."""
    out = []
    for number, kernel in enumerate(kernels.model.kernels):
        K = kernels.K[number]
        cotangent = np.zeros_like(K)
        for l in kernels.model.latents_of(number):
            latent: Any = q.latents[l]
            cotangent += np.multiply.outer(0.5 * latent.alpha, latent.alpha)
            cotangent -= 0.5 * latent.W
        theta, space, X = kernels.params.thetas[number], kernels.model.space, kernels.rows.X
        by_diagonal = cotangent.diagonal().copy()
        by_theta = kernel.diagonal_backward(theta, space, X, by_diagonal)
        np.fill_diagonal(cotangent, 0.0)
        out.append(by_theta + kernel.backward(theta, space, kernels.caches[number], cotangent)[0])
    return out

"""What is estimated, with its start values and constraints, what stays fixed meanwhile, and matrices of both.

Kernel matrices between inducing inputs and rows come in blocks of rows. They are kept where they fit and
made again on each pass where they do not. So a pass over N rows takes O(N M^2) time and O(B M + M^2) memory,
B rows in a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dtrtri

from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.kernels import FloatArray, Kernel, Space
from nongauss.sparse_gp.likelihoods import Expectation, Likelihood

WIDEST = 12.0
"""Log parameters of kernels stay within this of 0."""

INPUT_UNIT = 4.0
"""An optimiser sees inducing inputs divided by this: each matters to fewer rows than a log parameter does,
and so takes longer steps. A fit needs about two thirds of the iterations."""

JITTER = 1e-8
"""Added to the diagonal of K_zz, relative to its mean."""

MOST_ROWS = 20_000
"""Rows that k-means++ looks at: the centres of more would be the same, at a higher price."""

BLOCK_NUMBERS = 2**20
"""Elements of K_zx in a block: what is made of it stays in the cache, and in memory that was used before."""

KEPT_NUMBERS = 25_000_000
"""Elements of K_zx, all kernels together, that are kept between passes (a fifth of a GiB)."""

PRODUCT_NUMBERS = 2**23
"""Elements up to which what a step makes of K_zx is kept for the gradient; two such are there at times."""

WHITE_NUMBERS, MOST_TOLD = 1_000_000, 1e7
"""Where V = L^-1 K_zx is kept too, and summed over: elements of K_zx up to which, if q is found by steps, and
w k_nn / s^2 of all rows, with normal noise or noise like it of scale s, from which it is. Sums over V lose no
digits where K_zz is nearly singular; without it the bound is off by tenths of a nat there, and neither steps
nor line searches see their way: fits to 2,100 rows of naval predicted held-out rows a quarter of a nat worse.
Sums over K take four fifths of the time."""


class GPModel(NamedTuple):
    """The fixed parts of a model.

    `kernels`: one for each independent covariance; `kernel_of` gives each of the L latent functions its own.
    `offset` (L,): the latent functions' constant mean c.
    """

    kernels: tuple[Kernel, ...]
    kernel_of: tuple[int, ...]
    space: Space
    likelihood: Likelihood
    offset: FloatArray

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of log parameters of each kernel."""
        return tuple(kernel.size(self.space) for kernel in self.kernels)

    @property
    def n_leaves(self) -> int:
        """Number of kernel matrices that an evaluation makes."""
        return sum(kernel.n_leaves for kernel in self.kernels)

    def centre(self, shift: FloatArray) -> FloatArray:
        """The latent functions' mean c at rows with a log exposure `shift` (N,): (N, L)."""
        return self.offset + shift[:, None] * self.likelihood.rates

    def latents_of(self, kernel: int) -> list[int]:
        """The latent functions that have this kernel."""
        return [latent for latent, own in enumerate(self.kernel_of) if own == kernel]


class GPParams(NamedTuple):
    """Kernel parameters (one array each kernel), likelihood parameters psi (K,), inducing inputs Z (M, D)."""

    thetas: tuple[FloatArray, ...]
    psi: FloatArray
    Z: FloatArray

    def flat(self, with_inputs: bool) -> FloatArray:
        """All numbers in one vector, for an optimiser; Z only if it is to move."""
        inputs = self.Z.ravel() / INPUT_UNIT if with_inputs else np.zeros(0)
        return np.concatenate([*self.thetas, self.psi, inputs])

    def like(self, flat: FloatArray) -> GPParams:
        """The inverse of `flat`."""
        cuts = np.cumsum([*(len(theta) for theta in self.thetas), len(self.psi)])
        *thetas, psi, Z = np.split(flat, cuts)
        return GPParams(tuple(thetas), psi, INPUT_UNIT * Z.reshape(self.Z.shape) if len(Z) else self.Z)


class GaussianSites(NamedTuple):
    """lambda and beta (N, L), weights included: observations of c + lambda / beta with precision beta."""

    linear: FloatArray
    precision: FloatArray

    def towards(self, other: GaussianSites, step: float) -> GaussianSites:
        """Sites that are a share `step` of the way to other sites."""
        return GaussianSites(*(mine + step * (its - mine) for mine, its in zip(self, other, strict=True)))


def start(model: GPModel, psi: FloatArray, Z: FloatArray) -> GPParams:
    """Parameters with every kernel where it starts."""
    return GPParams(tuple(kernel.start(model.space) for kernel in model.kernels), psi, Z)


def box(model: GPModel, n_inputs: int) -> list[tuple[float | None, float | None]]:
    """Bounds of each element of `GPParams.flat`."""
    bounds: list[tuple[float | None, float | None]] = [(-WIDEST, WIDEST)] * sum(model.sizes)
    return [*bounds, *model.likelihood.bounds(), *[(None, None)] * n_inputs]


def first_sites(model: GPModel, rows: GPRows, psi: FloatArray) -> GaussianSites:
    """Sites from each row's own target alone; none is negative, so that there is a q to begin with."""
    centre = model.centre(rows.shift)
    mean, variance = model.likelihood.first_moments(rows.y, centre)
    of = model.likelihood.expected_log_prob(rows.y, mean, variance, psi)
    return sites_at(mean - centre, of._replace(d_variance=np.minimum(of.d_variance, 0.0)), rows.weight)


def sites_at(centred: FloatArray, expectation: Expectation, weight: FloatArray) -> GaussianSites:
    """Where the expectations' derivatives put the sites of rows with mu - c = `centred` (N, L).

    beta = -2 w h and lambda = w g + beta (mu - c), with g and h the derivatives by mean and variance.
    """
    precision = -2.0 * weight[:, None] * expectation.d_variance
    return GaussianSites(weight[:, None] * expectation.d_mean + precision * centred, precision)


class Basis(NamedTuple):
    """A kernel at the inducing inputs and at some rows."""

    K: FloatArray
    """K_zx (M, N)."""
    diagonal: FloatArray
    """k_nn (N,)."""
    cache: Any
    white: FloatArray | None = None
    """V = L^-1 K_zx (M, N), where it is kept."""

    @property
    def summed(self) -> FloatArray:
        """What sums over rows are of: V where it is kept, else K."""
        return self.K if self.white is None else self.white


class Inducing(NamedTuple):
    """A kernel at the inducing inputs alone."""

    inverse: FloatArray
    """L^-1 (M, M), lower triangular."""
    cache: Any


def inducing_inputs(X: FloatArray, n_inducing: int, seed: int) -> FloatArray:
    """At most `n_inducing` distinct rows of X (N, D), far from one another; all of them if they are few.

    The centres of k-means++ (Arthur and Vassilvitskii 2007).
    """
    if len(X) > MOST_ROWS:
        X = X[np.random.default_rng(seed).choice(len(X), MOST_ROWS, replace=False)]
    distinct = np.unique(X, axis=0)
    if len(distinct) <= n_inducing:
        return distinct
    from sklearn.cluster import kmeans_plusplus  # a model that only predicts does not need it

    centres, _ = kmeans_plusplus(distinct, n_inducing, random_state=seed, n_local_trials=2)
    return np.unique(centres, axis=0)


def are_all_rows(Z: FloatArray, X: FloatArray) -> bool:
    """Are inducing inputs Z, which are distinct rows of X, all the distinct rows there are?"""
    first = len(np.unique(X[:MOST_ROWS], axis=0))
    return first <= len(Z) and len(Z) == (first if len(X) <= MOST_ROWS else len(np.unique(X, axis=0)))


def shares_a_row(Z: FloatArray, X: FloatArray) -> bool:
    """Is a row of Z (M, D) also one of X (N, D), to the last bit?"""
    known = {row.tobytes() for row in Z}
    return any(row.tobytes() in known for row in X)


def basis(kernel: Kernel, theta: FloatArray, space: Space, Z: FloatArray, X: FloatArray) -> Basis:
    """K_zx and k_nn of some rows X (N, D)."""
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


def inducing_of(model: GPModel, params: GPParams) -> list[Inducing]:
    """`inducing` of each kernel of a model."""
    return [
        inducing(kernel, theta, model.space, params.Z)
        for kernel, theta in zip(model.kernels, params.thetas, strict=True)
    ]


def whitened(at: Basis, inverse: FloatArray) -> Basis:
    """The basis with V = L^-1 K_zx, by L^-1, at half the price of a full product."""
    V: FloatArray = dtrmm(1.0, inverse, at.K.T, side=1, lower=1, trans_a=1).T
    return at._replace(white=V)


def bases_of(model: GPModel, params: GPParams, X: FloatArray) -> list[Basis]:
    """`basis` of each kernel of a model at some rows."""
    return [
        basis(kernel, theta, model.space, params.Z, X)
        for kernel, theta in zip(model.kernels, params.thetas, strict=True)
    ]


def pull_back_inducing(
    kernel: Kernel, theta: FloatArray, space: Space, at: Inducing, by_Kz: FloatArray, Z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """From dF/dK_zz (M, M) to derivatives by theta and Z (M, D), jitter included.

    K_zz is symmetric in its two arguments, so dF/dZ is twice the derivative by the first.
    """
    by_theta, half = kernel.backward(theta, space, at.cache, by_Kz)
    jitter = np.full(len(Z), JITTER * by_Kz.trace() / len(Z))
    return by_theta + kernel.diagonal_backward(theta, space, Z, jitter), 2.0 * half


def row_slices(n_rows: int, n_inducing: int) -> list[slice]:
    """Rows cut into blocks of `BLOCK_NUMBERS` elements of K_zx."""
    height = max(1, BLOCK_NUMBERS // max(n_inducing, 1))
    return [slice(i, min(i + height, n_rows)) for i in range(0, n_rows, height)]


def most_rows(n_inducing: int) -> int:
    """How many rows can keep their kernel matrices."""
    return KEPT_NUMBERS // n_inducing


def learning_rows(rows: GPRows, n_inducing: int) -> GPRows:
    """Rows to learn hyper-parameters from: as many as can keep their kernel matrices.

    Rows are in an order by a hash of their content, so the first ones are a random sample.
    """
    most = most_rows(n_inducing)
    return rows if len(rows.y) <= most else rows.take(slice(most))


class KernelBlocks:
    """Kernel matrices of a model at some parameters and rows; iterating gives (rows, one Basis a kernel)."""

    def __init__(self, model: GPModel, params: GPParams, rows: GPRows) -> None:
        self.model, self.params, self.rows = model, params, rows
        self.inducing = inducing_of(model, params)
        n_rows, n_inducing = len(rows.y), len(params.Z)
        self.kept = n_rows * n_inducing * model.n_leaves <= KEPT_NUMBERS
        few = n_rows * n_inducing * len(model.kernel_of) <= PRODUCT_NUMBERS
        self.keeps_products = self.kept and (few or model.likelihood.conjugate)  # whose one step is exact
        small = not model.likelihood.conjugate and n_rows * n_inducing <= WHITE_NUMBERS
        self.is_white = self.kept and (small or self._told() > MOST_TOLD)
        self.slices = row_slices(n_rows, n_inducing)
        self._known: list[list[Basis]] = []

    def __iter__(self) -> Iterator[tuple[slice, list[Basis]]]:
        if self.kept and not self._known:
            self._known = [self._made(part) for part in self.slices]
        for number, part in enumerate(self.slices):
            yield part, self._known[number] if self.kept else self._made(part)

    def _told(self) -> float:
        """w k_nn / s^2 of all rows together; 0 where noise is not normal or like it."""
        model, params = self.model, self.params
        if not (model.likelihood.conjugate or model.likelihood.nears_gaussian):
            return 0.0
        size = model.kernels[0].diagonal(params.thetas[0], model.space, params.Z).mean()
        sharpness = model.likelihood.sharpness(np.zeros((1, 1)), np.zeros((1, 1)), params.psi)
        return float(self.rows.weight.sum() * size * sharpness[0] ** 2)

    def _made(self, part: slice) -> list[Basis]:
        bases = bases_of(self.model, self.params, self.rows.X[part])
        if not self.is_white:
            return bases
        return [whitened(at, own.inverse) for own, at in zip(self.inducing, bases, strict=True)]

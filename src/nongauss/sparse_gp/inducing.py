"""Inducing inputs: where they start, and kernel matrices between them and the rows, in blocks of rows.

Matrices are kept where they fit and made again on each pass where they do not. So a pass over N rows takes
O(N M^2) time and O(B M + M^2) memory, B rows in a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dtrtri

from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.kernels import FloatArray, Kernel, Space
from nongauss.sparse_gp.params import GPModel, GPParams

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
        self.slices = row_slices(n_rows, n_inducing)
        self._known: list[list[Basis]] = []

    def __iter__(self) -> Iterator[tuple[slice, list[Basis]]]:
        if self.kept and not self._known:
            self._known = [self._made(part) for part in self.slices]
        for number, part in enumerate(self.slices):
            yield part, self._known[number] if self.kept else self._made(part)

    def _made(self, part: slice) -> list[Basis]:
        return bases_of(self.model, self.params, self.rows.X[part])

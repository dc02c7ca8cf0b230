"""What is estimated, and everything that stays fixed while it is: rows, settings, normals, packed squares."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.core.records import persistable
from nongauss.rank_factor.shrinkage import Prior

FloatArray = NDArray[Any]


@persistable("rank_factor.Config", "nongauss.rank_factor.params:Config")
class Config(NamedTuple):
    """Settings of a model: K factors, T experts, C outputs of the classifier (0: no labels), and its words.

    `eps`: the margin of a rank, an inverse temperature (see NOTATION.md). `prior`: shapes of the shrinkage.
    `cut`: the classifier learns from factors that have not seen the labels.
    """

    n_factors: int
    observation: str = "rank"
    neighbours: str = "level"
    eps: float = 1.0
    n_experts: int = 1
    n_outputs: int = 0
    cut: bool = True
    prior: Prior = Prior()


class Normal(NamedTuple):
    """Independent normals of K values each: mean (.., K), covariance (.., K, K)."""

    mean: FloatArray
    covariance: FloatArray

    @property
    def second(self) -> FloatArray:
        """E[v v']: (.., K, K)."""
        return self.covariance + self.mean[..., :, None] * self.mean[..., None, :]


def pack(square: FloatArray) -> FloatArray:
    """The upper triangle of symmetric matrices: (.., K, K) to (.., K (K + 1) / 2)."""
    rows, columns = np.triu_indices(square.shape[-1])
    return square[..., rows, columns]


def pack_twice(square: FloatArray) -> FloatArray:
    """`pack` with the elements beside the diagonal doubled: pack(S) @ pack_twice(T) is the trace of S T."""
    rows, columns = np.triu_indices(square.shape[-1])
    return square[..., rows, columns] * np.where(rows == columns, 1.0, 2.0).astype(square.dtype)


def outer(v: FloatArray) -> FloatArray:
    """Packed v v' of vectors (.., K)."""
    rows, columns = np.triu_indices(v.shape[-1])
    return v[..., rows] * v[..., columns]


def unpack(packed: FloatArray, size: int) -> FloatArray:
    """The inverse of `pack`."""
    rows, columns = np.triu_indices(size)
    out = np.empty((*packed.shape[:-1], size, size), dtype=np.float64)
    out[..., rows, columns] = packed
    out[..., columns, rows] = packed
    return out


def solve(precision: FloatArray, linear: FloatArray) -> Normal:
    """The normals with log density linear' v - v' precision v / 2, in 64 bits."""
    covariance = np.linalg.inv(precision)
    covariance = 0.5 * (covariance + np.swapaxes(covariance, -1, -2))
    return Normal((covariance @ linear[..., None])[..., 0], covariance)


def cholesky_draw(rng: np.random.Generator, precision: FloatArray, linear: FloatArray) -> FloatArray:
    """One draw (.., K) from each of the normals that `solve` describes.

    The many small factorisations run side by side, their axis last: several times faster than one by one.
    """
    K = linear.shape[-1]
    P = np.ascontiguousarray(precision.reshape(-1, K, K).transpose(1, 2, 0))
    x = np.ascontiguousarray(linear.reshape(-1, K).T)
    L = np.zeros_like(P)
    for j in range(K):
        column = P[j:, j] - np.einsum("kmd,md->kd", L[j:, :j], L[j, :j])
        L[j, j] = np.sqrt(column[0])
        L[j + 1 :, j] = column[1:] / L[j, j]
        x[j] = (x[j] - np.einsum("md,md->d", L[j, :j], x[:j])) / L[j, j]
    x += rng.standard_normal(x.shape)
    for j in range(K - 1, -1, -1):
        x[j] = (x[j] - np.einsum("md,md->d", L[j + 1 :, j], x[j + 1 :])) / L[j, j]
    return np.ascontiguousarray(x.T).reshape(linear.shape)

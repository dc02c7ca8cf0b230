"""What is estimated: the quantities of the model, the algebra of their normals, and start values."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from nongauss.core.records import persistable
from nongauss.rank_factor.config import RankConfig
from nongauss.rank_factor.data import NONE, FloatArray, RankRows

System = tuple[FloatArray, FloatArray]
"""Precisions (.., K, K) and linear terms (.., K) of normals: log density linear' v - v' precision v / 2."""

SPREAD_Z, SPREAD_A = 0.1, 0.01
"""First variances of factors and loadings."""
MOST_TURNS = 50
"""Steps of the rotation to few large loadings."""


class Normal(NamedTuple):
    """Independent normals of K values each: mean (.., K), covariance (.., K, K)."""

    mean: FloatArray
    covariance: FloatArray

    @property
    def second(self) -> FloatArray:
        """E[v v']: (.., K, K)."""
        found: FloatArray = self.covariance + self.mean[..., :, None] * self.mean[..., None, :]
        return found

    @property
    def squares(self) -> FloatArray:
        """E[v_k^2]: (.., K)."""
        found: FloatArray = self.mean**2 + np.einsum("...kk->...k", self.covariance)
        return found

    def take(self, part: slice | NDArray[np.intp]) -> Normal:
        """Some of the normals along the first axis."""
        return Normal(self.mean[part], self.covariance[part])


class WeightedLabels(NamedTuple):
    """Labels (N, C) of -1 and 1; C is 0 without them. Weights (N,)."""

    y: FloatArray
    weight: FloatArray


class Shrinkage(NamedTuple):
    """Expectations (or draws): precision <1/xi> (D, K), rate <eta> (D, K), scale <phi> (K,), hyper <t>."""

    precision: FloatArray
    rate: FloatArray
    scale: FloatArray
    hyper: float


@persistable("rank_factor.Gate", "nongauss.rank_factor.experts:Gate")
class Gate(NamedTuple):
    """The mixture: centres N(mean (T, K), variance (T,)), <psi> and E log psi (T,), E log of the shares (T,).

    alpha : the concentration's expectation. A draw has variance 0 and logs of itself.
    """

    mean: Float[np.ndarray, "T K"]
    variance: Float[np.ndarray, " T"]
    precision: Float[np.ndarray, " T"]
    log_precision: Float[np.ndarray, " T"]
    log_share: Float[np.ndarray, " T"]
    alpha: float


class Experts(NamedTuple):
    """Coefficients N((T, C, K + 1)), the last the offset; their shrinkage (K, T C); the gate, or None."""

    beta: Normal
    shrink: Shrinkage
    gate: Gate | None


class NeighbourScores(NamedTuple):
    """What a cell is compared with: scores of the level below and above each level (D, Q), or noise (D,).

    `means` (D, Q, K) are the mean factors of the levels, where scores follow from them.
    """

    lower: FloatArray
    upper: FloatArray
    noise: FloatArray
    means: FloatArray | None = None


class RankState(NamedTuple):
    """Where a fit stands. `z` are the factors that the classifier sees: with `cut`, those of a new row."""

    A: Normal
    shrink: Shrinkage
    z: Normal
    scale: NeighbourScores
    experts: Experts


def point(mean: FloatArray) -> Normal:
    """A known value as a normal without variance."""
    return Normal(mean, np.broadcast_to(0.0, (*mean.shape, mean.shape[-1])))


def joined(parts: list[Normal]) -> Normal:
    """Normals of blocks of rows, one after the other."""
    return Normal(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


@cache
def triangle(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the elements of the upper triangle, in the order in which they are packed."""
    return np.triu_indices(size)


def pack(square: FloatArray) -> FloatArray:
    """The upper triangle of symmetric matrices: (.., K, K) to (.., K (K + 1) / 2)."""
    rows, columns = triangle(square.shape[-1])
    return square[..., rows, columns]


def pack_twice(square: FloatArray) -> FloatArray:
    """`pack` with the elements beside the diagonal doubled: pack(S) @ pack_twice(T) is the trace of S T."""
    rows, columns = triangle(square.shape[-1])
    found: FloatArray = square[..., rows, columns] * np.where(rows == columns, 1.0, 2.0).astype(square.dtype)
    return found


def outer(v: FloatArray) -> FloatArray:
    """Packed v v' of vectors (.., K)."""
    rows, columns = triangle(v.shape[-1])
    return v[..., rows] * v[..., columns]


def unpack(packed: FloatArray, size: int) -> FloatArray:
    """The inverse of `pack`, in 64 bits."""
    rows, columns = triangle(size)
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

    With P = L L' a draw is L^-T (L^-1 linear + e), e ~ N(0, I). The many small factorisations run side by
    side, their axis last: several times faster than one by one.
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


def joint_draw(rng: np.random.Generator, precision: FloatArray, linear: FloatArray) -> FloatArray:
    """One draw (N, K) of the normal with that precision (N, K, N, K) and linear term."""
    root = cholesky(precision.reshape(linear.size, linear.size), lower=True)
    half = solve_triangular(root, linear.ravel(), lower=True) + rng.standard_normal(linear.size)
    found: FloatArray = solve_triangular(root, half, lower=True, trans="T").reshape(linear.shape)
    return found


def first_shrinkage(shape: tuple[int, int]) -> Shrinkage:
    """Every expectation of the hierarchy of coefficients (D, K) at 1."""
    return Shrinkage(np.ones(shape), np.ones(shape), np.ones(shape[1]), 1.0)


def first_experts(config: RankConfig) -> Experts:
    """Experts that say nothing yet: coefficients near zero, no gate."""
    T, C, K = config.n_experts, config.n_outputs, config.n_factors
    beta = Normal(np.zeros((T, C, K + 1)), np.tile(0.01 * np.eye(K + 1), (T, C, 1, 1)))
    return Experts(beta, first_shrinkage((K, T * C)), None)


def first_factors(
    rng: np.random.Generator, rows: RankRows, weight: FloatArray, n_factors: int
) -> tuple[Normal, Normal]:
    """Factors (N, K) and loadings (D, K): principal components of the standardised ranks or values, turned.

    The likelihood is the same for every rotation, and sweeps do not turn far. The shrinkage prefers few large
    loadings: so the start has them, which also lets fits of two tables be compared factor by factor.
    """
    factors, loadings = components(rng, standardised_ranks(rows, weight), weight, n_factors)
    rotation = varimax(loadings)
    factors, loadings = factors @ rotation, loadings @ rotation
    z = Normal(factors, np.tile(SPREAD_Z * np.eye(n_factors), (len(factors), 1, 1)))
    return z, Normal(loadings, np.tile(SPREAD_A * np.eye(n_factors), (len(loadings), 1, 1)))


def varimax(loadings: FloatArray) -> FloatArray:
    """The rotation (K, K) that makes the variance of squared loadings (D, K) largest (Kaiser 1958).

    By singular values of the gradient A' (L^3 - L mean(L^2)), L the rotated loadings.
    """
    rotation = np.eye(loadings.shape[1])
    before = 0.0
    for _ in range(MOST_TURNS):
        turned = loadings @ rotation
        left, size, right = np.linalg.svd(loadings.T @ (turned**3 - turned * (turned**2).mean(axis=0)))
        rotation = left @ right
        if size.sum() <= before * (1.0 + 1e-6):
            break
        before = size.sum()
    return rotation


def standardised_ranks(rows: RankRows, weight: FloatArray) -> FloatArray:
    """Standardised mid-ranks of the levels, or values, with 0 where missing: (N, D)."""
    if rows.codes is None:
        assert rows.values is not None
        return np.nan_to_num(rows.values)
    out = np.empty(rows.codes.shape)
    for i, column in enumerate(rows.codes.T):
        present = column != NONE
        mass = np.bincount(column[present], weights=weight[present])
        middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum() - 0.5
        spread = np.sqrt((mass @ middle**2) / mass.sum() - ((mass @ middle) / mass.sum()) ** 2)
        centred = np.append(middle - (mass @ middle) / mass.sum(), 0.0)
        out[:, i] = centred[np.where(present, column, len(middle))] / max(spread, 1e-12)
    return out


def components(
    rng: np.random.Generator, table: FloatArray, weight: FloatArray, n_factors: int
) -> tuple[FloatArray, FloatArray]:
    """Factors (N, K) of mean square 1 and loadings (D, K), by subspace iteration; noise beyond the rank."""
    root = np.sqrt(weight / weight.sum())[:, None]
    X = table * root
    size = min(n_factors + 10, *X.shape)
    basis = np.linalg.qr(X.T @ (X @ rng.standard_normal((X.shape[1], size))))[0]
    for _ in range(6):
        basis = np.linalg.qr(X.T @ (X @ basis))[0]
    u, s, vt = np.linalg.svd(X @ basis, full_matrices=False)
    kept = min(n_factors, int((s > 1e-8 * max(s[0], 1e-12)).sum()))
    factors = rng.standard_normal((len(X), n_factors))
    loadings = 0.01 * rng.standard_normal((X.shape[1], n_factors))
    loadings[:, :kept] = basis @ vt[:kept].T * s[:kept]
    sign = np.sign(loadings[np.abs(loadings[:, :kept]).argmax(axis=0), np.arange(kept)])
    factors[:, :kept] = u[:, :kept] / root
    loadings[:, :kept] *= sign
    factors[:, :kept] *= sign
    return factors, loadings

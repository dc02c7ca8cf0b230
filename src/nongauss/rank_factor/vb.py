"""Variational Bayes for the level rule and for values: one sweep over z, A, shrinkage and classifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.rank_factor import experts as heads
from nongauss.rank_factor import shrinkage, sites
from nongauss.rank_factor.experts import Experts
from nongauss.rank_factor.levels import NONE, Neighbours
from nongauss.rank_factor.params import Config, FloatArray, Normal, outer, pack, pack_twice, solve, unpack
from nongauss.rank_factor.shrinkage import Shrinkage

BLOCK = 2_000_000
"""Cells that are handled at once."""
SLAB = 1.0
FLOOR = 1e-3
"""<u^2> of a hinge is at least the square of this share of eps."""


class Rows(NamedTuple):
    """Training rows: levels (N, D) with their neighbours, or values with NaN gaps; labels (N, C); weight (N,)."""

    codes: NDArray[np.uint8] | None
    cells: Neighbours | None
    values: FloatArray | None
    y: FloatArray
    weight: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        return (self.values if self.codes is None else self.codes).shape  # type: ignore[union-attr,return-value]


class State(NamedTuple):
    """Where a fit stands. z: factors as a new row would have them; `means`: mean factors of each level (D, Q, K)."""

    A: Normal
    shrink: Shrinkage
    z: Normal
    means: FloatArray
    noise: FloatArray
    experts: Experts | None


def blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Rows in blocks of about BLOCK cells."""
    height = max(1, BLOCK // max(n_columns, 1))
    for begin in range(0, n_rows, height):
        yield slice(begin, min(begin + height, n_rows))


class CellSums(NamedTuple):
    """Sums over rows, by column, from which q(A) follows; level sums have the axis Q before K."""

    square: FloatArray
    mass: FloatArray
    z: FloatArray
    lower: FloatArray
    lower_z: FloatArray
    upper: FloatArray
    upper_z: FloatArray


class LoadingTerms(NamedTuple):
    """What the rows' factors see of the loadings, in the precision of the cells.

    mean (D, K); second (D, J) packed E[a a']; spread (2 J, D) packed [a a', S] with S the covariance of a.
    Of the levels' mean factors M: table (D, Q) is M a, cross (Q, K, D) is S M, size (D, Q) is M' S M.
    """

    mean: FloatArray
    second: FloatArray
    spread: FloatArray
    table: FloatArray
    cross: FloatArray
    size: FloatArray


def loading_terms(A: Normal, means: FloatArray, dtype: Any) -> LoadingTerms:
    """From q(A) and the mean factors of the levels (D, Q, K)."""
    mean_square = A.mean[:, :, None] * A.mean[:, None, :]
    spread = np.concatenate([pack_twice(mean_square), pack_twice(A.covariance)], axis=1)
    cross = means @ A.covariance
    parts = (
        A.mean,
        pack(A.second),
        spread.T,
        np.einsum("dk,dqk->dq", A.mean, means),
        cross.transpose(1, 2, 0),
        (cross * means).sum(axis=2),
    )
    return LoadingTerms(*(np.ascontiguousarray(part, dtype=dtype) for part in parts))


def score_variance(z: Normal, terms: LoadingTerms) -> FloatArray:
    """Var(a'z) of each cell under independent q(a), q(z): (B, D)."""
    dtype = terms.mean.dtype
    covariance = pack(z.covariance)
    spread = np.concatenate([covariance, covariance + outer(z.mean)], axis=1).astype(dtype)
    return spread @ terms.spread


def hinge_variances(z: Normal, terms: LoadingTerms, cells: Neighbours) -> tuple[FloatArray, FloatArray]:
    """Var(a'D) of the lower and the upper hinge, D the difference of a row's factors to the mean of a level.

    It is a'V a + tr S V + D'S D; with z'S z in place of D'S D the weights would be too small and the scale
    would grow without end.
    """
    common = score_variance(z, terms)
    mean = z.mean.astype(common.dtype)
    lower, upper = common.copy(), common
    for level, cross in enumerate(terms.cross):
        change = terms.size[:, level] - 2.0 * (mean @ cross)
        lower += np.where(cells.lower == level, change, 0.0)
        upper += np.where(cells.upper == level, change, 0.0)
    return np.maximum(lower, 0.0), np.maximum(upper, 0.0)


def rank_sites(
    z: Normal, terms: LoadingTerms, cells: Neighbours, eps: float
) -> tuple[sites.Hinges, tuple[FloatArray, FloatArray], FloatArray, FloatArray, FloatArray]:
    """Hinges, their weights, precision and linear term of cells, and the rows' loss."""
    score = z.mean.astype(terms.mean.dtype) @ terms.mean.T
    at = sites.hinges(score, terms.table, cells, eps)
    variances = hinge_variances(z, terms, cells)
    g = sites.weights(at, variances, FLOOR * eps)
    precision, linear = sites.quadratic(at, g, score)
    return at, g, precision, linear, sites.loss(at, variances)


def z_system(precision: FloatArray, linear: FloatArray, terms: LoadingTerms) -> tuple[FloatArray, FloatArray]:
    """Precision (B, K, K) and linear term (B, K) of z from its cells."""
    K = terms.mean.shape[1]
    return unpack(precision @ terms.second, K), (linear @ terms.mean).astype(np.float64)


def with_prior(system: tuple[FloatArray, FloatArray], prior: tuple[FloatArray, FloatArray]) -> Normal:
    """q(z) from its cells and its prior."""
    K = system[1].shape[1]
    return solve(system[0] + prior[0][:, None, None] * np.eye(K), system[1] + prior[1])


def level_sums(
    codes: NDArray[np.uint8], g: tuple[FloatArray, FloatArray], z: Normal, weight: FloatArray, n_levels: int, dtype: Any
) -> CellSums:
    """The sums of one block for the rank model."""
    w = weight.astype(dtype)
    g_lower, g_upper = g[0] * w[:, None], g[1] * w[:, None]
    mean = z.mean.astype(dtype)
    one = np.concatenate([mean, np.ones((len(mean), 1), dtype)], axis=1)
    second = (pack(z.covariance) + outer(z.mean)).astype(dtype)
    n_columns, K = codes.shape[1], mean.shape[1]
    sums = np.zeros((3, n_columns, n_levels, K + 1), dtype=np.float64)
    for level in range(n_levels):
        here = (codes == level).astype(dtype)
        sums[0, :, level] = (here * w[:, None]).T @ one
        sums[1, :, level] = (here * g_lower).T @ one
        sums[2, :, level] = (here * g_upper).T @ one
    square = ((g_lower + g_upper).T @ second).astype(np.float64)
    parts = [part for s in sums for part in (s[..., -1], s[..., :-1])]
    return CellSums(square, *parts)


def level_means(sums: CellSums) -> FloatArray:
    """Mean factors of each level: (D, Q, K); zero for one without rows."""
    return sums.z / np.maximum(sums.mass, 1e-12)[:, :, None]


def loadings_from_levels(sums: CellSums, eps: float, own: FloatArray) -> tuple[Normal, FloatArray]:
    """q(A) given the rows, and the mean factors of the levels.

    Every u is eps - a'D with D a difference of factors, so that the levels' means move with a: were they held
    still, nothing would oppose a growing scale.
    """
    K = sums.z.shape[2]
    means = level_means(sums)
    precision = unpack(sums.square, K)
    linear = np.zeros((len(precision), K))
    for mass, weighted, shift, sign in (
        (sums.lower, sums.lower_z, -1, 1.0),
        (sums.upper, sums.upper_z, 1, -1.0),
    ):
        here, there = _facing(means.shape[1], shift)
        M, G, R = means[:, there], mass[:, here], weighted[:, here]
        cross = np.einsum("dqk,dql->dkl", R, M)
        precision += np.einsum("dq,dqk,dql->dkl", G, M, M, optimize=True) - cross - np.swapaxes(cross, 1, 2)
        count = np.where(sums.mass[:, there] > 0, sums.mass[:, here], 0.0)
        linear += sign * (eps * (R - G[:, :, None] * M) + count[:, :, None] * (means[:, here] - M)).sum(axis=1)
    return _stable(precision, own, linear), means


def _facing(n_levels: int, shift: int) -> tuple[slice, slice]:
    """Levels that have a neighbour `shift` away, and those neighbours."""
    if shift > 0:
        return slice(0, n_levels - 1), slice(1, n_levels)
    return slice(1, n_levels), slice(0, n_levels - 1)


def _stable(precision: FloatArray, own: FloatArray, linear: FloatArray) -> Normal:
    """The normals, with a relative jitter against rounding in sums of 32 bits."""
    K = linear.shape[1]
    size = np.trace(precision, axis1=1, axis2=2) / K
    precision[:, np.arange(K), np.arange(K)] += own + 1e-6 * size[:, None]
    return solve(precision, linear)


def sweep(state: State, rows: Rows, config: Config, dtype: Any) -> tuple[State, dict[str, float]]:
    """z, then A and its shrinkage, then the classifier; and the bound's terms that it met."""
    n_rows, n_columns = rows.shape
    terms = loading_terms(state.A, state.means, dtype)
    free_mean, free_cov = np.empty_like(state.z.mean), np.empty_like(state.z.covariance)
    total: CellSums | None = None
    lost = 0.0
    n_levels = state.means.shape[1]
    label_g, shares_all = [], []
    for part in blocks(n_rows, n_columns):
        z = Normal(state.z.mean[part], state.z.covariance[part])
        cells = Neighbours(rows.cells.lower[part], rows.cells.upper[part])
        at, g, precision, linear, loss = rank_sites(z, terms, cells, config.eps)
        lost += float(rows.weight[part] @ loss)
        system = z_system(precision, linear, terms)
        shares = heads.shares_of(None if state.experts is None else state.experts.gate, z)
        prior = heads.prior_of(None if state.experts is None else state.experts.gate, shares, config.n_factors)
        free = with_prior(system, prior)
        joint = free
        if state.experts is not None and config.n_outputs:
            y = rows.y[part]
            _, square = heads.margins(state.experts, z, y)
            label = heads.label_terms(state.experts, heads.floored(square), y, shares)
            joint = with_prior((system[0] + label[0], system[1] + label[1]), prior)
        free_mean[part], free_cov[part] = free if config.cut else joint
        sums = level_sums(rows.codes[part], g, joint, rows.weight[part], n_levels, dtype)
        total = sums if total is None else CellSums(*(a + b for a, b in zip(total, sums)))
    second = (rows.weight @ free_mean**2 + rows.weight @ np.einsum("nkk->nk", free_cov)).mean()
    c = float(np.sqrt(rows.weight.sum() / second))
    total = total._replace(
        square=total.square * c**2, z=total.z * c, lower_z=total.lower_z * c, upper_z=total.upper_z * c
    )
    free_mean *= c
    free_cov *= c**2
    A, means = loadings_from_levels(total, config.eps, state.shrink.precision + SLAB)
    squares = A.mean**2 + np.einsum("dkk->dk", A.covariance)
    shrink = shrinkage.expect(state.shrink, squares, config.prior)
    z = Normal(free_mean, free_cov)
    experts = state.experts
    if experts is not None:
        shares = heads.shares_of(experts.gate, z)
        _, square = heads.margins(experts, z, rows.y)
        experts = heads.update_beta(experts, z, heads.floored(square), shares, rows.y, rows.weight, config.prior)
        if experts.gate is not None:
            experts = experts._replace(gate=heads.update_gate(experts.gate, z, shares, rows.weight))
    return State(A, shrink, z, means, state.noise, experts), {"bound": -lost}


_ = NONE

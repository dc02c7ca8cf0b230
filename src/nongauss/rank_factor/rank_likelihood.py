r"""From cells to normals: what the cells of a row say of its factors, and those of a column of its loadings.

Everything is a sum over cells of a quadratic -p w^2 / 2 + b w in the score w = a'z, so that ranks by levels,
ranks by extremes and values share all of it but the quadratic itself. That of a rank is the augmentation of
its hinges: exp(-2 [u]_+) is a mixture of normals, exp(-g u^2 / 2 - u) given 1/lambda = g (Polson and Scott
2011, their eq. 3), with u = eps + w - m_upper and u = eps + m_lower - w, m the mean score of a level.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.prob import inverse_gaussian
from nongauss.rank_factor.config import RankConfig
from nongauss.rank_factor.data import NONE, FloatArray, Neighbours, RankRows
from nongauss.rank_factor.objective import rank_loss, value_loss
from nongauss.rank_factor.params import (
    NeighbourScores,
    Normal,
    System,
    outer,
    pack,
    pack_twice,
    point,
    unpack,
)


class Hinges(NamedTuple):
    """Cells (B, D): u of the lower and of the upper hinge at the mean, and whether there is one."""

    lower: FloatArray
    upper: FloatArray
    has_lower: NDArray[np.bool_]
    has_upper: NDArray[np.bool_]

    @property
    def sides(self) -> tuple[tuple[FloatArray, NDArray[np.bool_]], ...]:
        """u and whether there is a hinge, of the lower and of the upper side."""
        return (self.lower, self.has_lower), (self.upper, self.has_upper)


def hinges(score: FloatArray, below: FloatArray, above: FloatArray, cells: Neighbours, eps: float) -> Hinges:
    """Both hinges of scores w (B, D), given a level's score as lower and as upper neighbour (D, Q)."""
    n_columns, n_levels = below.shape
    base = np.arange(n_columns, dtype=np.intp) * n_levels
    has_lower, has_upper = cells.lower != NONE, cells.upper != NONE
    margin = score.dtype.type(eps)
    lower = below.ravel()[base + np.where(has_lower, cells.lower, 0)] - score + margin
    upper = score - above.ravel()[base + np.where(has_upper, cells.upper, 0)] + margin
    return Hinges(lower, upper, has_lower, has_upper)


def expected_weights(
    at: Hinges, variances: tuple[FloatArray, FloatArray], floor: float
) -> tuple[FloatArray, FloatArray]:
    """<1/lambda> = <u^2>^{-1/2} of both hinges, 0 where there is none; <u^2> is at least floor^2."""
    out = []
    for (u, has), variance in zip(at.sides, variances, strict=True):
        square = np.maximum(u * u + variance, u.dtype.type(floor * floor))
        out.append(np.where(has, 1.0 / np.sqrt(square), u.dtype.type(0.0)))
    return out[0], out[1]


def drawn_weights(rng: np.random.Generator, at: Hinges) -> tuple[FloatArray, FloatArray]:
    """Draws of 1/lambda ~ inverse Gaussian(1 / |u|, 1) of both hinges, 0 where there is none."""
    out = []
    for u, has in at.sides:
        g = np.zeros_like(u)
        g[has] = inverse_gaussian.draw(rng, u[has])
        out.append(g)
    return out[0], out[1]


def quadratic(
    at: Hinges, g: tuple[FloatArray, FloatArray], score: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Precision p and linear term b of each cell (B, D), at the scores where the hinges were taken.

    p = g_l + g_u, and b = g_l (u_l + w) - g_u (u_u - w) + [has_l] - [has_u].
    """
    g_lower, g_upper = g
    precision = g_lower + g_upper
    linear = g_lower * at.lower - g_upper * at.upper + precision * score
    linear += at.has_lower
    linear -= at.has_upper
    return precision, linear


FLOOR = 1e-3
"""<u^2> of a hinge is at least the square of this share of eps."""


class LoadingMoments(NamedTuple):
    """What rows need to know of the loadings, in the precision of the cells.

    mean (D, K); second (D, J): packed E[a a']; spread: packed [a a', S] (2 J, D) with S the covariance of a,
    or packed a a' (J, D) alone where a is known. cross (Q, K, D) is S M and size (D, Q) is M' S M, of the
    levels' mean factors M; empty where a is known.
    """

    mean: FloatArray
    second: FloatArray
    spread: FloatArray
    scale: NeighbourScores
    cross: FloatArray
    size: FloatArray


def moments_of(A: Normal, scale: NeighbourScores, dtype: Any) -> LoadingMoments:
    """What rows need of loadings with q(A)."""
    spread = np.concatenate(
        [pack_twice(A.mean[:, :, None] * A.mean[:, None, :]), pack_twice(A.covariance)], axis=1
    )
    means = np.zeros((len(A.mean), 0, A.mean.shape[1])) if scale.means is None else scale.means
    cross = means @ A.covariance
    parts = (A.mean, pack(A.second), spread.T)
    more = (cross.transpose(1, 2, 0), (cross * means).sum(axis=2))
    mean, second, across = _arrays(parts, dtype)
    return LoadingMoments(mean, second, across, _in_type(scale, dtype), *_arrays(more, dtype))


def moments_of_draw(A: FloatArray, scale: NeighbourScores, dtype: Any) -> LoadingMoments:
    """What rows need of known loadings (D, K)."""
    square = A[:, :, None] * A[:, None, :]
    empty = np.zeros((0, *A.shape[::-1])), np.zeros((len(A), 0))
    parts = (A, pack(square), pack_twice(square).T)
    mean, second, spread = _arrays(parts, dtype)
    return LoadingMoments(mean, second, spread, _in_type(scale, dtype), *_arrays(empty, dtype))


def _arrays(parts: tuple[FloatArray, ...], dtype: Any) -> list[FloatArray]:
    """The arrays in the precision of the cells, contiguous."""
    return [np.ascontiguousarray(part, dtype=dtype) for part in parts]


def _in_type(scale: NeighbourScores, dtype: Any) -> NeighbourScores:
    """Scores and noise in the precision of the cells; the levels' mean factors have gone into the moments."""
    return NeighbourScores(*_arrays(scale[:3], dtype))


def score_variance(z: Normal, loadings: LoadingMoments) -> FloatArray:
    """Var(a'z) of each cell under independent q(a), q(z): (B, D)."""
    covariance = pack(z.covariance)
    if len(loadings.spread) > covariance.shape[1]:
        covariance = np.concatenate([covariance, covariance + outer(z.mean)], axis=1)
    return covariance.astype(loadings.mean.dtype) @ loadings.spread


def _hinge_variances(z: Normal, loadings: LoadingMoments, cells: Neighbours) -> tuple[FloatArray, FloatArray]:
    """Var(a'D) of the lower and the upper hinge, D the difference of a row's factors to the mean of a level.

    It is a'V a + tr S V + D'S D. With z'S z in place of D'S D the weights of rows far from zero would be too
    small, and the scale would grow without end.
    """
    common = score_variance(z, loadings)
    mean = z.mean.astype(common.dtype)
    lower, upper = common.copy(), common
    for level, cross in enumerate(loadings.cross):
        change = loadings.size[:, level] - 2.0 * (mean @ cross)
        lower += np.where(cells.lower == level, change, 0.0)
        upper += np.where(cells.upper == level, change, 0.0)
    return np.maximum(lower, 0.0), np.maximum(upper, 0.0)


class CellQuadratics(NamedTuple):
    """Quadratics -p w^2 / 2 + b w of cells (B, D); the hinges' weights; the loss of each row (B,)."""

    precision: FloatArray
    linear: FloatArray
    weights: tuple[FloatArray, FloatArray] | None
    loss: FloatArray


def expected_quadratics(
    z: Normal, loadings: LoadingMoments, rows: RankRows, config: RankConfig
) -> CellQuadratics:
    """The quadratics of some rows at the best q of their latent variances: <1/lambda> = <u^2>^{-1/2}."""
    if rows.cells is None:
        return _value_quadratics(z, loadings, rows)
    score, at = _hinges(z.mean, loadings, rows.cells, config)
    variances = _hinge_variances(z, loadings, rows.cells)
    g = expected_weights(at, variances, FLOOR * config.eps)
    return CellQuadratics(*quadratic(at, g, score), g, _hinge_loss(at, variances))


def drawn_quadratics(
    rng: np.random.Generator, z: FloatArray, loadings: LoadingMoments, rows: RankRows, config: RankConfig
) -> CellQuadratics:
    """The quadratics of some rows at draws of their latent variances, given factors z (B, K)."""
    if rows.cells is None:
        return _value_quadratics(point(z), loadings, rows)
    score, at = _hinges(z, loadings, rows.cells, config)
    g = drawn_weights(rng, at)
    zero = np.zeros((1, 1), score.dtype)
    return CellQuadratics(*quadratic(at, g, score), g, _hinge_loss(at, (zero, zero)))


def _hinges(
    z: FloatArray, loadings: LoadingMoments, cells: Neighbours, config: RankConfig
) -> tuple[FloatArray, Hinges]:
    """Scores w = a'z of cells (B, D), and their hinges against the neighbours' scores."""
    score = z.astype(loadings.mean.dtype) @ loadings.mean.T
    return score, hinges(score, loadings.scale.lower, loadings.scale.upper, cells, config.eps)


def _hinge_loss(at: Hinges, variances: tuple[FloatArray, FloatArray]) -> FloatArray:
    """(B1) of NOTATION.md of each row, both sides: (B,)."""
    return sum(
        (rank_loss(u, variance, has) for (u, has), variance in zip(at.sides, variances, strict=True)),
        start=np.zeros(len(at.lower)),
    )


def _value_quadratics(z: Normal, loadings: LoadingMoments, rows: RankRows) -> CellQuadratics:
    """Normal noise of variance s: log density -(x - w)^2 / (2 s) + .., so p = 1 / s and b = x / s."""
    assert rows.values is not None
    noise = loadings.scale.noise
    present = ~np.isnan(rows.values)
    values = np.where(present, rows.values, 0.0).astype(loadings.mean.dtype)
    precision = present / noise
    score = z.mean.astype(values.dtype) @ loadings.mean.T
    square = (values - score) ** 2 + score_variance(z, loadings)
    return CellQuadratics(precision, precision * values, None, value_loss(square, present, noise))


def z_system(at: CellQuadratics, loadings: LoadingMoments) -> System:
    """Precision (B, K, K) and linear term (B, K) of z from its cells."""
    K = loadings.mean.shape[1]
    return unpack(at.precision @ loadings.second, K), (at.linear @ loadings.mean).astype(np.float64)


def with_prior(system: System, prior: System) -> System:
    """The system of z with its prior added: precision (B,) of each factor and linear term (B, K)."""
    K = system[1].shape[1]
    return system[0] + prior[0][:, None, None] * np.eye(K), system[1] + prior[1]


class CellSums(NamedTuple):
    """Sums over rows, a row counting by its weight, from which the loadings follow.

    square (D, J): sum of p E[z z'], packed; linear (D, K): sum of b E[z]. By level, (D, Q, K + 1) each, of
    (E[z], 1): plain, times the lower hinge's weight, times the upper one's; empty but for the level rule.
    """

    square: FloatArray
    linear: FloatArray
    plain: FloatArray
    lower: FloatArray
    upper: FloatArray

    def plus(self, other: CellSums) -> CellSums:
        """The sums over the rows of both."""
        return CellSums(*(a + b for a, b in zip(self, other, strict=True)))

    def rescaled(self, c: float) -> CellSums:
        """The sums of the same rows if all factors were c times as large."""
        by = np.append(np.full(self.linear.shape[1], c), 1.0)
        return CellSums(
            self.square * c**2, self.linear * c, self.plain * by, self.lower * by, self.upper * by
        )


def cell_sums(at: CellQuadratics, z: Normal, rows: RankRows, weight: FloatArray, n_levels: int) -> CellSums:
    """The sums over some rows; n_levels is 0 but for the level rule."""
    dtype = at.precision.dtype
    w = weight.astype(dtype)[:, None]
    mean = z.mean.astype(dtype)
    second = (pack(z.covariance) + outer(z.mean)).astype(dtype)
    square = ((at.precision * w).T @ second).astype(np.float64)
    linear = ((at.linear * w).T @ mean).astype(np.float64)
    by_level = np.zeros((3, len(square), n_levels, mean.shape[1] + 1))
    if n_levels:
        assert at.weights is not None
        assert rows.codes is not None
        one = w * np.concatenate([mean, np.ones((len(mean), 1), dtype)], axis=1)
        for level in range(n_levels):
            here: NDArray[np.bool_] = rows.codes == level
            for out, part in zip(by_level, (None, *at.weights), strict=True):
                chosen = here.astype(dtype) if part is None else np.where(here, part, dtype.type(0.0))
                out[:, level] = chosen.T @ one
    return CellSums(square, linear, *by_level)


def level_means(sums: CellSums) -> FloatArray:
    """Mean factors of each level: (D, Q, K); zero for one without rows."""
    return sums.plain[..., :-1] / np.maximum(sums.plain[..., -1:], 1e-12)


def level_system(sums: CellSums, means: FloatArray, eps: float) -> System:
    """Precision (D, K, K) and linear term (D, K) of the loadings under the level rule.

    Every u is eps - a'D with D a difference of factors, so that the levels' scores move with a: were they
    held still, nothing would oppose a growing scale.
    """
    K = means.shape[2]
    precision, linear = unpack(sums.square, K), np.zeros((len(means), K))
    mass = sums.plain[..., -1]
    n_levels = means.shape[1]
    below, above = slice(0, n_levels - 1), slice(1, n_levels)
    for weighted, here, there, sign in ((sums.lower, above, below, 1.0), (sums.upper, below, above, -1.0)):
        M, R, G = means[:, there], weighted[:, here, :-1], weighted[:, here, -1]
        cross = np.einsum("dqk,dql->dkl", R, M)
        precision += np.einsum("dqk,dql->dkl", G[..., None] * M, M) - cross - np.swapaxes(cross, 1, 2)
        count = np.where(mass[:, there] > 0, mass[:, here], 0.0)[..., None]
        linear += sign * (eps * (R - G[..., None] * M) + count * (means[:, here] - M)).sum(axis=1)
    return precision, linear


def with_loading_prior(system: System, own: FloatArray) -> System:
    """The loadings' system with their prior precision (D, K), and a jitter against rounding in 32 bits."""
    precision, linear = system
    K = linear.shape[1]
    size = np.trace(precision, axis1=1, axis2=2) / K
    precision = precision.copy()
    precision[:, np.arange(K), np.arange(K)] += own + 1e-6 * np.maximum(size, 0.0)[:, None]
    return precision, linear


def extreme_scores(
    score: FloatArray, codes: NDArray[np.uint8], n_levels: int
) -> tuple[FloatArray, FloatArray]:
    """Largest score at or below each level, smallest at or above it: (D, Q) each, of scores (N, D)."""
    n_columns = score.shape[1]
    highest = np.full((n_columns, n_levels), -np.inf)
    lowest = np.full((n_columns, n_levels), np.inf)
    columns = np.broadcast_to(np.arange(n_columns), codes.shape)
    present = codes != NONE
    place = columns[present], codes[present].astype(np.intp)
    np.maximum.at(highest, place, score[present])
    np.minimum.at(lowest, place, score[present])
    lower = np.maximum.accumulate(highest, axis=1)
    upper = np.minimum.accumulate(lowest[:, ::-1], axis=1)[:, ::-1]
    return np.where(np.isfinite(lower), lower, 0.0), np.where(np.isfinite(upper), upper, 0.0)


def level_scores(A: Normal, means: FloatArray) -> NeighbourScores:
    """Scores a'm of the levels' mean factors m (D, Q, K): what the level rule compares cells with."""
    table = np.einsum("dk,dqk->dq", A.mean, means)
    return NeighbourScores(table, table, np.ones(len(table)), means)


def neighbour_extremes(A: Normal, z: Normal, codes: NDArray[np.uint8], n_levels: int) -> NeighbourScores:
    """Neighbours' scores as published: the largest of all lower rows, the smallest of all higher ones."""
    lower, upper = extreme_scores(z.mean @ A.mean.T, codes, n_levels)
    return NeighbourScores(lower, upper, np.ones(len(lower)))


def mean_by_level(codes: NDArray[np.uint8], z: FloatArray, weight: FloatArray, n_levels: int) -> FloatArray:
    """Mean factors (D, Q, K) of the rows of each level of a column; zero for a level without rows."""
    one = weight[:, None] * np.append(z, np.ones((len(z), 1)), axis=1)
    sums = np.stack([(codes == level).T @ one for level in range(n_levels)], axis=1)
    found: FloatArray = sums[..., :-1] / np.maximum(sums[..., -1:], 1e-12)
    return found

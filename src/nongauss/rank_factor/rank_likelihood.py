"""From cells to normals: what the cells of a row say of its factors, and those of a column of its loadings.

Everything is a sum over cells of a quadratic in the score, so that ranks by levels, ranks by extremes and
values share all of it but the quadratic itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.rank_factor import hinge_augmentation as sites
from nongauss.rank_factor.levels import NONE, Neighbours
from nongauss.rank_factor.params import Config, FloatArray, Normal, outer, pack, pack_twice, unpack

BLOCK = 500_000
"""Cells that are handled at once: few enough for the caches."""
FLOOR = 1e-3
"""<u^2> of a hinge is at least the square of this share of eps."""


class Rows(NamedTuple):
    """Neighbours of cells or values (N, D), NaN where missing; codes: levels of training cells."""

    cells: Neighbours | None
    values: FloatArray | None
    codes: NDArray[np.uint8] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        array: Any = self.values if self.cells is None else self.cells.lower
        return array.shape

    def take(self, part: slice) -> Rows:
        """Some of the rows."""
        cells = None if self.cells is None else Neighbours(*(side[part] for side in self.cells))
        values, codes = (None if array is None else array[part] for array in (self.values, self.codes))
        return Rows(cells, values, codes)

    def blocks(self) -> Iterator[slice]:
        """Rows in blocks of about BLOCK cells."""
        n_rows, n_columns = self.shape
        height = max(1, BLOCK // max(n_columns, 1))
        for begin in range(0, n_rows, height):
            yield slice(begin, min(begin + height, n_rows))


class Scale(NamedTuple):
    """What a cell is compared with: scores of the level below and above each level (D, Q), or noise (D,).

    `means` (D, Q, K) are the mean factors of the levels, where scores follow from them.
    """

    lower: FloatArray
    upper: FloatArray
    noise: FloatArray
    means: FloatArray | None = None


class Terms(NamedTuple):
    """What rows need to know of the loadings, in the precision of the cells.

    mean (D, K); second (D, J): packed E[a a']; spread: packed [a a', S] (2 J, D) with S the covariance of a,
    or packed a a' (J, D) alone where a is known. cross (Q, K, D) is S M and size (D, Q) is M' S M, of the
    levels' mean factors M; empty where a is known.
    """

    mean: FloatArray
    second: FloatArray
    spread: FloatArray
    scale: Scale
    cross: FloatArray
    size: FloatArray


def terms_of(A: Normal, scale: Scale, dtype: Any) -> Terms:
    """From q(A)."""
    spread = np.concatenate(
        [pack_twice(A.mean[:, :, None] * A.mean[:, None, :]), pack_twice(A.covariance)], axis=1
    )
    means = np.zeros((len(A.mean), 0, A.mean.shape[1])) if scale.means is None else scale.means
    cross = means @ A.covariance
    parts = (A.mean, pack(A.second), spread.T)
    more = (cross.transpose(1, 2, 0), (cross * means).sum(axis=2))
    mean, second, across = _arrays(parts, dtype)
    return Terms(mean, second, across, _scale(scale, dtype), *_arrays(more, dtype))


def terms_of_draw(A: FloatArray, scale: Scale, dtype: Any) -> Terms:
    """From known loadings (D, K)."""
    square = A[:, :, None] * A[:, None, :]
    empty = np.zeros((0, *A.shape[::-1])), np.zeros((len(A), 0))
    parts = (A, pack(square), pack_twice(square).T)
    mean, second, spread = _arrays(parts, dtype)
    return Terms(mean, second, spread, _scale(scale, dtype), *_arrays(empty, dtype))


def _arrays(parts: tuple[FloatArray, ...], dtype: Any) -> list[FloatArray]:
    return [np.ascontiguousarray(part, dtype=dtype) for part in parts]


def _scale(scale: Scale, dtype: Any) -> Scale:
    return Scale(*_arrays(scale[:3], dtype))


def score_variance(z: Normal, terms: Terms) -> FloatArray:
    """Var(a'z) of each cell under independent q(a), q(z): (B, D)."""
    covariance = pack(z.covariance)
    if len(terms.spread) > covariance.shape[1]:
        covariance = np.concatenate([covariance, covariance + outer(z.mean)], axis=1)
    return covariance.astype(terms.mean.dtype) @ terms.spread


def _hinge_variances(z: Normal, terms: Terms, cells: Neighbours) -> tuple[FloatArray, FloatArray]:
    """Var(a'D) of the lower and the upper hinge, D the difference of a row's factors to the mean of a level.

    It is a'V a + tr S V + D'S D. With z'S z in place of D'S D the weights of rows far from zero would be too
    small, and the scale would grow without end.
    """
    common = score_variance(z, terms)
    mean = z.mean.astype(common.dtype)
    lower, upper = common.copy(), common
    for level, cross in enumerate(terms.cross):
        change = terms.size[:, level] - 2.0 * (mean @ cross)
        lower += np.where(cells.lower == level, change, 0.0)
        upper += np.where(cells.upper == level, change, 0.0)
    return np.maximum(lower, 0.0), np.maximum(upper, 0.0)


class Sites(NamedTuple):
    """Quadratics -p w^2 / 2 + b w of cells (B, D); the hinges' weights; the loss of each row (B,)."""

    precision: FloatArray
    linear: FloatArray
    weights: tuple[FloatArray, FloatArray] | None
    loss: FloatArray


def expected_sites(z: Normal, terms: Terms, rows: Rows, config: Config) -> Sites:
    """The sites of some rows at the best q of their latent variances."""
    if rows.cells is None:
        return _value_sites(z, terms, rows)
    score = z.mean.astype(terms.mean.dtype) @ terms.mean.T
    at = sites.hinges(score, terms.scale.lower, terms.scale.upper, rows.cells, config.eps)
    variances = _hinge_variances(z, terms, rows.cells)
    g = sites.weights(at, variances, FLOOR * config.eps)
    return Sites(*sites.quadratic(at, g, score), g, sites.loss(at, variances))


def drawn_sites(rng: np.random.Generator, z: FloatArray, terms: Terms, rows: Rows, config: Config) -> Sites:
    """The sites of some rows at draws of their latent variances, given factors z (B, K)."""
    point = Normal(z, np.zeros((len(z), z.shape[1], z.shape[1])))
    if rows.cells is None:
        return _value_sites(point, terms, rows)
    score = z.astype(terms.mean.dtype) @ terms.mean.T
    at = sites.hinges(score, terms.scale.lower, terms.scale.upper, rows.cells, config.eps)
    g = sites.drawn_weights(rng, at)
    zero = np.zeros((1, 1), score.dtype)
    return Sites(*sites.quadratic(at, g, score), g, sites.loss(at, (zero, zero)))


def _value_sites(z: Normal, terms: Terms, rows: Rows) -> Sites:
    """Normal noise; `loss` is twice the expected negative log density, without its constant."""
    assert rows.values is not None
    present = ~np.isnan(rows.values)
    values = np.where(present, rows.values, 0.0).astype(terms.mean.dtype)
    precision = present / terms.scale.noise
    score = z.mean.astype(values.dtype) @ terms.mean.T
    square = (values - score) ** 2 + score_variance(z, terms)
    loss = (precision * square + present * np.log(terms.scale.noise)).sum(axis=1, dtype=np.float64)
    return Sites(precision, precision * values, None, loss)


def z_system(at: Sites, terms: Terms) -> tuple[FloatArray, FloatArray]:
    """Precision (B, K, K) and linear term (B, K) of z from its cells."""
    K = terms.mean.shape[1]
    return unpack(at.precision @ terms.second, K), (at.linear @ terms.mean).astype(np.float64)


def with_prior(
    system: tuple[FloatArray, FloatArray], prior: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """The same with the prior of z added: its precision (B,) and linear term (B, K)."""
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
        """The sum of both."""
        return CellSums(*(a + b for a, b in zip(self, other, strict=True)))

    def rescaled(self, c: float) -> CellSums:
        """As if all factors were c times as large."""
        by = np.append(np.full(self.linear.shape[1], c), 1.0)
        return CellSums(
            self.square * c**2, self.linear * c, self.plain * by, self.lower * by, self.upper * by
        )


def cell_sums(at: Sites, z: Normal, rows: Rows, weight: FloatArray, n_levels: int) -> CellSums:
    """The sums of some rows; n_levels is 0 but for the level rule."""
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


def level_system(sums: CellSums, means: FloatArray, eps: float) -> tuple[FloatArray, FloatArray]:
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


def with_own(system: tuple[FloatArray, FloatArray], own: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same with the prior precision (D, K) of the loadings, and a jitter against rounding in 32 bits."""
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

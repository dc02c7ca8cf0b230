"""Rows with missing cells: their patterns, and products of each row's columns with a matrix of its pattern.

Axes: N rows, G patterns, S starts, K clusters, P columns. In the matrices of a pattern the places of columns
that it does not have are those of the unit matrix, so that all are of one size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

AT_ONCE = 2**18
"""Numbers of a structure's rows handled at once: small enough for the cache."""


class GapPatterns(NamedTuple):
    """Patterns of missing cells: the columns seen (G, P), and the numbers of the rows of each."""

    seen: NDArray[np.bool_]
    rows: list[IntArray]

    @property
    def work(self) -> float:
        """Products that one factor of each takes, up to a constant."""
        return float(len(self.seen) * self.seen.shape[1] ** 3)


def gap_patterns(Y: Float[np.ndarray, "N P"]) -> GapPatterns:
    """The patterns of the NaN in some rows."""
    present = ~np.isnan(Y)
    if present.all():
        return GapPatterns(np.ones((1, Y.shape[1]), dtype=np.bool_), [np.arange(len(Y))])
    patterns, which = np.unique(present, axis=0, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(which.reshape(-1)))[:-1]
    return GapPatterns(patterns, np.split(order, ends))


class RowBlock(NamedTuple):
    """Rows handled at once: the columns seen in each pattern of gaps (G, P), rows (n,), patterns (n,)."""

    seen: NDArray[np.bool_]
    rows: IntArray
    which: IntArray


def row_blocks(patterns: GapPatterns, n_laws: int) -> Iterator[RowBlock]:
    """The rows, in blocks whose arrays for so many laws stay small.

    Rows of a frequent pattern are by themselves, since their products are of whole matrices; rare patterns
    stand together.
    """
    P = max(patterns.seen.shape[1], 1)
    step, most = max(1, AT_ONCE // (n_laws * P)), 4 * AT_ONCE // (n_laws * P * P)
    rare: list[int] = []
    for i, members in enumerate(patterns.rows):
        if len(patterns.rows) == 1 or len(members) > most // 4:
            for start in range(0, len(members), step):
                part = members[start : start + step]
                yield RowBlock(patterns.seen[[i]], part, np.zeros(len(part), dtype=np.intp))
            continue
        if sum(len(patterns.rows[j]) for j in rare) + len(members) > most:
            yield _block_of(patterns, rare)
            rare = []
        rare.append(i)
    if rare:
        yield _block_of(patterns, rare)


def _block_of(patterns: GapPatterns, chosen: list[int]) -> RowBlock:
    """The rows of some patterns."""
    members = [patterns.rows[i] for i in chosen]
    which = np.repeat(np.arange(len(chosen)), [len(own) for own in members])
    return RowBlock(patterns.seen[chosen], np.concatenate(members), which)


def of_seen(
    scatter: Float[np.ndarray, "S K P P"], seen: Bool[np.ndarray, "G P"]
) -> Float[np.ndarray, "S K G P P"]:
    """The scatter of the columns seen in each pattern, the unit matrix in the places of the others."""
    if seen.all():
        return scatter[:, :, None]
    out: FloatArray = np.where(seen[:, :, None] & seen[:, None], scatter[:, :, None], np.eye(seen.shape[1]))
    return out


def each_row(
    matrices: Float[np.ndarray, "S K G P P"],
    vectors: Float[np.ndarray, "S K n P"],
    which: Int[np.ndarray, " n"],
) -> Float[np.ndarray, "S K n P"]:
    """The product of each row's vector with the matrix of its pattern."""
    if matrices.shape[2] == 1:
        product: FloatArray = vectors @ np.swapaxes(matrices[:, :, 0], -1, -2)
    else:
        product = (matrices[:, :, which] @ vectors[..., None])[..., 0]
    return product


def dot_each(
    of_pattern: Float[np.ndarray, "S K G P"], vectors: Float[np.ndarray, "n P"], which: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "S K n"]:
    """The scalar product of each row's vector with that of its pattern."""
    if of_pattern.shape[2] == 1:
        product: FloatArray = of_pattern[:, :, 0] @ vectors.T
    else:
        product = (of_pattern[:, :, which] * vectors).sum(axis=-1)
    return product

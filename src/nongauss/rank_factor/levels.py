"""Ranks, merged into levels: all that the rank model sees of a column.

A level is a run of neighbouring values of one column. Only comparisons with training values are made, so an
increasing transform of a column changes nothing, to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.core.records import persistable

FloatArray = NDArray[np.float64]

NONE = 255
"""Neighbour index of a cell that has no neighbour on that side."""
MOST = 254
"""Most levels of a column."""


class Neighbours(NamedTuple):
    """For each cell (N, D), uint8: the next level below its value and the next above; NONE where there is
    none.

    A missing cell has neither.
    """

    lower: NDArray[np.uint8]
    upper: NDArray[np.uint8]


@persistable("rank_factor.Levels", "nongauss.rank_factor.levels:Levels")
class Levels(NamedTuple):
    """Smallest and largest training value of each level, (D, Q), ascending; +inf after the last level."""

    low: FloatArray
    high: FloatArray

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of levels of each column: (D,)."""
        return np.isfinite(self.low).sum(axis=1)

    def place(self, X: FloatArray) -> Neighbours:
        """The neighbours of new cells X (N, D), NaN where missing, by comparisons with training values."""
        lower = np.full(X.shape, NONE, dtype=np.uint8, order="F")
        upper = lower.copy(order="F")
        for i, n_levels in enumerate(self.counts):
            below = np.searchsorted(self.high[i, :n_levels], X[:, i], side="left")
            above = np.searchsorted(self.low[i, :n_levels], X[:, i], side="right")
            present = ~np.isnan(X[:, i])
            has = present & (below > 0)
            lower[has, i] = below[has] - 1
            has = present & (above < n_levels)
            upper[has, i] = above[has]
        return Neighbours(np.ascontiguousarray(lower), np.ascontiguousarray(upper))

    def codes(self, X: FloatArray) -> NDArray[np.uint8]:
        """The level of each training cell: (N, D), NONE where missing."""
        out = np.full(X.shape, NONE, dtype=np.uint8)
        for i, n_levels in enumerate(self.counts):
            present = ~np.isnan(X[:, i])
            out[present, i] = np.searchsorted(self.high[i, :n_levels], X[present, i], side="left")
        return out


def neighbours_of(codes: NDArray[np.uint8], counts: NDArray[np.intp]) -> Neighbours:
    """The neighbours of training cells, from their levels (N, D) and the levels of a column (D,)."""
    missing = codes == NONE
    lower = np.where(missing | (codes == 0), NONE, codes - np.uint8(1))
    upper = np.where(missing | (codes + 1 >= counts), NONE, codes + np.uint8(1))
    return Neighbours(lower.astype(np.uint8), upper.astype(np.uint8))


def find_levels(X: FloatArray, weight: FloatArray, n_levels: int | None) -> Levels:
    """Levels of about equal weight from training values X (N, D), NaN where missing; None: one for each
    value.

    Equal values are never parted, so a value that is more frequent than a level's share is a level of its
    own. Every column needs one value at least.
    """
    ends = [_one_column(X[:, i], weight, n_levels) for i in range(X.shape[1])]
    most = max((len(low) for low, _ in ends), default=1)
    low, high = np.full((2, X.shape[1], most), np.inf)
    for i, (first, last) in enumerate(ends):
        low[i, : len(first)], high[i, : len(last)] = first, last
    return Levels(low, high)


def _one_column(x: FloatArray, weight: FloatArray, n_levels: int | None) -> tuple[FloatArray, FloatArray]:
    present = ~np.isnan(x)
    values, group = np.unique(x[present], return_inverse=True)
    wanted = min(MOST, len(values)) if n_levels is None else n_levels
    if len(values) <= wanted:
        return values, values
    mass: FloatArray = np.cumsum(np.bincount(group, weights=weight[present]))
    last: list[int] = []
    begin = 0
    for left in range(wanted, 0, -1):
        before = mass[begin - 1] if begin else 0.0
        aim = before + (mass[-1] - before) / left
        end = _nearest(mass, aim, begin)
        last.append(end)
        begin = end + 1
        if begin == len(values):
            break
    first = [0, *(end + 1 for end in last[:-1])]
    return values[first], values[last]


def _nearest(mass: FloatArray, aim: float, begin: int) -> int:
    """The index from `begin` on whose mass is nearest to `aim`."""
    at = max(int(np.searchsorted(mass, aim)), begin)
    if at >= len(mass):
        return len(mass) - 1
    return at - 1 if at > begin and aim - mass[at - 1] < mass[at] - aim else at

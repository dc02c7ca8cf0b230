"""From the cells of a table to what the rank factors see of them: levels and their neighbours, or values.

A level is a run of neighbouring values of one column. Only comparisons with training values are made, so an
increasing transform of a column changes nothing, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.rank_factor.config import MOST_LEVELS
from nongauss.tables.clipped_scale import CLIP, clipped_scale, reaches_beyond
from nongauss.tables.kinds.number import Moments, Scale
from nongauss.tables.rows import CanonicalRows, bits_of, canonical_rows, content_hash

FloatArray = NDArray[Any]

NONE = 255
"""Level of a missing cell, and of the neighbour of a cell that has none on that side."""
BLOCK = 500_000
"""Cells that are handled at once: few enough for the caches."""
MOST_REPEATED = 1_000_000
"""Rows, counted by their weights, that may be held apart."""
_MISSING = np.float32(-3e38)


class Neighbours(NamedTuple):
    """For each cell (N, D), uint8: the next level below its value and the next above.

    NONE where there is none; a missing cell has neither.
    """

    lower: NDArray[np.uint8]
    upper: NDArray[np.uint8]


class RankRows(NamedTuple):
    """Neighbours of cells (N, D), or values (N, D), NaN where missing; codes: levels of training cells."""

    cells: Neighbours | None
    values: FloatArray | None
    codes: NDArray[np.uint8] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        array: Any = self.values if self.cells is None else self.cells.lower
        found: tuple[int, int] = array.shape
        return found

    def take(self, part: slice | NDArray[np.intp]) -> RankRows:
        """The rows of a slice, or by their numbers."""
        cells = None if self.cells is None else Neighbours(*(side[part] for side in self.cells))
        values, codes = (None if array is None else array[part] for array in (self.values, self.codes))
        return RankRows(cells, values, codes)

    def blocks(self) -> Iterator[slice]:
        """Slices of rows that hold about BLOCK cells each."""
        n_rows, n_columns = self.shape
        height = max(1, BLOCK // max(n_columns, 1))
        for begin in range(0, n_rows, height):
            yield slice(begin, min(begin + height, n_rows))


@persistable("rank_factor.Levels", "nongauss.rank_factor.levels:Levels")
class Levels(NamedTuple):
    """Smallest and largest training value of each level, (D, Q), ascending; +inf after the last level."""

    low: Float[np.ndarray, "D Q"]
    high: Float[np.ndarray, "D Q"]

    @classmethod
    def of_ends(cls, ends: list[tuple[FloatArray, FloatArray]]) -> Levels:
        """From the ends of the levels of each column."""
        low, high = np.full((2, len(ends), max((len(first) for first, _ in ends), default=1)), np.inf)
        for i, (first, last) in enumerate(ends):
            low[i, : len(first)], high[i, : len(last)] = first, last
        return cls(low, high)

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of levels of each column: (D,)."""
        found: NDArray[np.intp] = np.isfinite(self.low).sum(axis=1)
        return found

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
    """The neighbours of training cells, from their levels (N, D) and the columns' numbers of levels (D,)."""
    missing = codes == NONE
    lower = np.where(missing | (codes == 0), NONE, codes - np.uint8(1))
    upper = np.where(missing | (codes + 1 >= counts), NONE, codes + np.uint8(1))
    return Neighbours(lower.astype(np.uint8), upper.astype(np.uint8))


def n_levels_of(codes: NDArray[np.uint8]) -> int:
    """The number of levels that occur in any column of training cells (N, D); 1 where all are missing."""
    return int(codes[codes != NONE].max(initial=0)) + 1


def find_levels(X: FloatArray, weight: FloatArray, n_levels: int | None) -> Levels:
    """Levels of about equal weight from training values X (N, D), NaN where missing.

    `n_levels` None: one for each value. Equal values are never parted, so a value that is more frequent than
    a level's share is a level of its own. Every column needs one value at least.
    """
    return Levels.of_ends([_levels_of_column(X[:, i], weight, n_levels) for i in range(X.shape[1])])


def _levels_of_column(
    x: FloatArray, weight: FloatArray, n_levels: int | None
) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest value of each level of one column x (N,)."""
    present = ~np.isnan(x)
    values, group = np.unique(x[present], return_inverse=True)
    wanted = min(MOST_LEVELS, len(values)) if n_levels is None else n_levels
    return grouped(values, values, np.bincount(group, weights=weight[present], minlength=1), wanted)


def grouped(
    low: FloatArray, high: FloatArray, weight: FloatArray, wanted: int
) -> tuple[FloatArray, FloatArray]:
    """Runs of neighbouring cells, from `low` to `high` (F,) each, of about equal weight: their ends."""
    if len(low) <= wanted:
        return low, high
    mass: FloatArray = np.cumsum(weight)
    last: list[int] = []
    begin = 0
    for left in range(wanted, 0, -1):
        before = mass[begin - 1] if begin else 0.0
        aim = before + (mass[-1] - before) / left
        end = _nearest(mass, aim, begin)
        last.append(end)
        begin = end + 1
        if begin == len(low):
            break
    first = [0, *(end + 1 for end in last[:-1])]
    return low[first], high[last]


def _nearest(mass: FloatArray, aim: float, begin: int) -> int:
    """The index from `begin` on whose cumulated mass is nearest to `aim`."""
    at = max(int(np.searchsorted(mass, aim)), begin)
    if at >= len(mass):
        return len(mass) - 1
    return at - 1 if at > begin and aim - mass[at - 1] < mass[at] - aim else at


@persistable("rank_factor.Coding", "nongauss.rank_factor.coding:Coding")
class CellCoding(NamedTuple):
    """How a cell is seen: by the levels of ranks, or by unit, mean and standard deviation of each column.

    `clips`: whose scale is that of clipped cells, so that others are clipped, too; () where no column's is.
    """

    levels: Levels | None
    scales: tuple[tuple[float, float, float], ...]
    clips: tuple[bool, ...] = ()

    def rows(self, X: FloatArray) -> RankRows:
        """Coded rows of raw cells X (N, D)."""
        if self.levels is not None:
            return RankRows(self.levels.place(X), None)
        return RankRows(None, self.standardised(X))

    def standardised(self, X: FloatArray) -> FloatArray:
        """Values (N, D) in standard deviations from the mean of their column."""
        z = np.stack([Scale(*scale).apply(X[:, i]) for i, scale in enumerate(self.scales)], axis=1)
        return np.where(np.array(self.clips), np.clip(z, -CLIP, CLIP), z) if self.clips else z

    def typical(self, scores: FloatArray, table: FloatArray) -> FloatArray:
        """Cells in original units with these scores (N, D), given the levels' mean scores (D, Q)."""
        if self.levels is None:
            return np.stack(
                [unit * (mean + sd * scores[:, i]) for i, (unit, mean, sd) in enumerate(self.scales)], axis=1
            )
        out = np.empty_like(scores)
        for i, n_levels in enumerate(self.levels.counts):
            middle = 0.5 * self.levels.low[i, :n_levels] + 0.5 * self.levels.high[i, :n_levels]
            out[:, i] = np.interp(scores[:, i], np.maximum.accumulate(table[i, :n_levels]), middle)
        return out


class CodedTable(NamedTuple):
    """Training rows in canonical order, as the mathematics takes them, with class numbers and weights (N,).

    `shows_rows`: whether a cell of one row alone can be read from the coding. `order`: the numbers of the
    rows of the raw table, those of weight above 0, in an order that does not depend on the user's.
    """

    coding: CellCoding
    rows: RankRows
    classes: FloatArray
    weight: FloatArray
    shows_rows: bool
    order: NDArray[np.intp]


def code_ranks(
    cells: FloatArray,
    classes: FloatArray,
    weight: FloatArray,
    n_levels: int | None,
    apart: str | None,
    known: Levels | None = None,
) -> CodedTable:
    """Rows of ranks, from raw cells (N, D); `n_levels` None: a level for each value. `known`: given levels.

    Rows that are coded alike are merged, but for `apart`: what needs each row by itself, in words.
    """
    counted = weight > 0
    levels = find_levels(cells[counted], weight[counted], n_levels) if known is None else known
    seen = levels.codes(cells)
    shows_rows = n_levels is None or has_lone_row(seen[counted])
    merged = canonical_rows(seen, classes[:, None], weight)
    merged = merged if apart is None else repeated(merged, apart)
    codes = merged.X.astype(np.uint8)
    rows = RankRows(neighbours_of(codes, levels.counts), None, codes)
    order = _order_like(merged, cells)
    return CodedTable(CellCoding(levels, ()), rows, _first_column(merged), merged.weight, shows_rows, order)


def code_values(cells: FloatArray, classes: FloatArray, weight: FloatArray, apart: str | None) -> CodedTable:
    """Rows of standardised values, from raw cells (N, D); see `code_ranks`."""
    scales, clips = zip(*(scale_of(column, weight) for column in cells.T), strict=True)
    numbers = tuple((scale.unit, scale.mean, scale.sd) for scale in scales)
    coding = CellCoding(None, numbers, clips if any(clips) else ())
    values = coding.standardised(cells)
    merged = canonical_rows(np.where(np.isnan(values), _MISSING, values), classes[:, None], weight)
    merged = merged if apart is None else repeated(merged, apart)
    values = np.where(merged.X == _MISSING, np.nan, merged.X.astype(np.float64))
    order = _order_like(merged, cells)
    return CodedTable(coding, RankRows(None, values), _first_column(merged), merged.weight, False, order)


def _order_like(merged: CanonicalRows, cells: FloatArray) -> NDArray[np.intp]:
    """Numbers of the rows of raw cells (N, D) that count, in the order of the merged rows they are in.

    Rows that were merged with each other are ordered by their cells.
    """
    known = bits_of(np.nan_to_num(cells))
    order = np.lexsort((content_hash(known, known[:, :0]), merged.order))
    counted: NDArray[np.intp] = order[merged.order[order] >= 0]
    return counted


def _first_column(merged: CanonicalRows) -> FloatArray:
    """The class numbers (N,) of merged rows."""
    return merged.Y[:, 0].astype(np.float64)


def scale_of(column: FloatArray, weight: FloatArray) -> tuple[Scale, bool]:
    """The scale of a column, and whether its cells are clipped: where a few far ones are most of the spread.

    There is no mirroring: a column that rises with a factor has a positive loading.
    """
    used = (weight > 0) & ~np.isnan(column)
    moments = Moments.of(column[used], weight[used])
    usual = scale = moments.scale()
    if reaches_beyond(moments):
        scale = clipped_scale(column[used], weight[used], usual)
    return Scale(scale.unit, scale.mean, abs(scale.sd) or 1.0), scale != usual


def has_lone_row(codes: NDArray[np.uint8]) -> bool:
    """Does a level of a column hold one row alone, by the levels of training cells (N, D)?

    Then the level's bounds are the row's cell, and its mean factors those of the row.
    """
    return any(bool((np.bincount(column[column != NONE]) == 1).any()) for column in codes.T)


def repeated(rows: CanonicalRows, why: str) -> CanonicalRows:
    """Rows as often as they count: draws of equal rows differ. InputError for weights that forbid it."""
    counts = np.rint(rows.weight)
    if not np.array_equal(counts, rows.weight) or counts.sum() > MOST_REPEATED:
        odd = rows.weight[counts != rows.weight] if (counts != rows.weight).any() else counts.max()
        raise InputError(
            f"{why} repeats each row as often as it counts, which needs whole sample weights of at most "
            f"{MOST_REPEATED:,} in all, got {np.ravel(odd)[0]:g}; scale them, or take "
            'neighbours="level" with inference="vb".'
        )
    X, Y = (np.repeat(part, counts.astype(np.intp), axis=0) for part in (rows.X, rows.Y))
    return replace(rows, X=X, Y=Y, weight=np.ones(len(X)))


def one_against_rest(classes: FloatArray, n_outputs: int) -> FloatArray:
    """Class numbers (N,) as -1 and 1: (N, C); of two classes the second against the first, (N, 1)."""
    if n_outputs == 1:
        return np.where(classes == 1, 1.0, -1.0)[:, None]
    return np.where(classes[:, None] == np.arange(n_outputs), 1.0, -1.0)

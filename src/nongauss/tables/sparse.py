"""Sparse matrices such as word counts: checked, scaled without centring, and cut into rows of equal length.

A row is kept as the numbers of its filled columns and their values, padded to the longest row. That is a few
times smaller than a dense matrix and has the plain shape that compiled code wants, which fills a batch of
dense rows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.tables.frame import check_width
from nongauss.tables.kinds.number import Moments, power_of_two

MOST_COLUMNS = 2**24
"""Column numbers are held in float32 beside the values, which is exact up to here."""


class SparseRows(NamedTuple):
    """Rows of a sparse matrix: `index` (N, K) of the filled columns and `value` (N, K), padded by zeros."""

    index: Any
    value: Any

    def __len__(self) -> int:
        return len(self.index)


@persistable("tables.SparseEncoder", "nongauss.data.sparse:SparseEncoder")
@dataclass(frozen=True)
class SparseEncoder:
    """The scale of a sparse matrix with `n_features` columns: one for all, since columns are of one kind.

    `scale` is the root mean square of the filled cells, rows counted by their weights, so that the user's own
    weighting of the columns (counts, logs, tf-idf) is kept and a filled cell is about 1. Zero stays zero.
    """

    n_features: int
    scale: float
    feature_names: None = None

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """Names of the columns, as for an array."""
        return tuple(f"x{j}" for j in range(self.n_features))

    @classmethod
    def fit(
        cls, X: Any, weight: NDArray[np.float64], estimator_name: str = "this estimator"
    ) -> SparseEncoder:
        """Learn the scale of `X` (N, D), rows counted by `weight` (N,). Raises ValueError as scikit-learn."""
        matrix = _checked(X, estimator_name)
        if matrix.shape[1] > MOST_COLUMNS:
            raise InputError(f"X has {matrix.shape[1]} columns; at most {MOST_COLUMNS} are possible.")
        top = np.abs(matrix.data).max(initial=0.0)
        if top == 0.0:
            return cls(matrix.shape[1], 1.0)
        counted = np.repeat(weight, np.diff(matrix.indptr))
        if not counted.any():
            return cls(matrix.shape[1], float(top))
        mean = np.average((matrix.data / top) ** 2, weights=counted)
        return cls(matrix.shape[1], float(top * np.sqrt(mean)))

    def as_scaled(self, X: Any, estimator_name: str = "this estimator", warn: bool = True) -> SparseRows:
        """The scaled rows of `X`, sparse or dense. Raises ValueError as scikit-learn."""
        matrix = _checked(X, estimator_name)
        check_width(matrix.shape[1], self.n_features, estimator_name)
        counts = np.diff(matrix.indptr)
        place = np.arange(counts.max(initial=1))[None, :] < counts[:, None]
        index, value = np.zeros(place.shape, np.int32), np.zeros(place.shape)
        index[place], value[place] = matrix.indices, matrix.data / self.scale
        return SparseRows(index, value)


@dataclass(frozen=True)
class SparseTable:
    """A SciPy matrix (N, D) as a table of numbers without gaps: what is not stored is 0.

    Its columns are summed up all at once, never made dense. Raises InputError for NaN and infinity.
    """

    matrix: Any

    def __post_init__(self) -> None:
        if not np.isfinite(self.matrix.data).all():
            raise InputError(
                "X is sparse and holds NaN or infinity; a sparse table has no gaps, so give a dense one."
            )

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.matrix.shape[0], self.matrix.shape[1]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns, as for an array."""
        return tuple(f"x{j}" for j in range(self.matrix.shape[1]))

    def moments(self, weight: NDArray[np.float64]) -> list[Moments]:
        """The `Moments` of each column, zeros included, over the rows of `weight` (N,) above 0."""
        kept = weight > 0
        matrix = sparse.csc_array(self.matrix if kept.all() else sparse.csr_array(self.matrix)[kept])
        matrix = matrix.astype(np.float64)
        matrix.sum_duplicates()
        weight, cells = weight[kept], _Cells.of(matrix)
        share = weight / weight.max()
        share = share / share.sum()
        low, high = cells.extremes()
        unit = np.array([power_of_two(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)])
        mean, variance, skewness = cells.standard_moments(unit, share)
        two = cells.are_two(low, high)
        fraction = cells.first_fraction()
        positive = cells.sums((matrix.data > 0) * weight[cells.row])
        columns = (unit, mean, variance, skewness, low, high, fraction, positive)
        total = float(weight.sum())
        return [
            Moments(u, total, m, v, s, a, b, f, p, tuple({a, b}) if few else ())
            for (u, m, v, s, a, b, f, p), few in zip(
                zip(*(values.tolist() for values in columns), strict=True), two.tolist(), strict=True
            )
        ]


class _Cells(NamedTuple):
    """The stored cells of a CSC matrix of N rows, column by column, and where each column of D begins."""

    data: NDArray[np.float64]
    row: NDArray[Any]
    column: NDArray[Any]
    begin: NDArray[Any]
    n_rows: int

    @classmethod
    def of(cls, matrix: Any) -> _Cells:
        column = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))
        return cls(matrix.data, matrix.indices, column, matrix.indptr, matrix.shape[0])

    @property
    def n_columns(self) -> int:
        """D."""
        return len(self.begin) - 1

    @property
    def counts(self) -> NDArray[Any]:
        """Stored cells of each column, (D,)."""
        return np.diff(self.begin)

    def sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The sum of one value a stored cell over each column, (D,)."""
        return np.bincount(self.column, weights=values, minlength=self.n_columns).astype(np.float64)

    def extremes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Smallest and largest cell of each column, zeros included, (D,) each."""
        filled = np.flatnonzero(self.counts)
        ends = np.zeros((2, self.n_columns))
        if len(filled):
            for end, largest in zip(ends, (np.minimum, np.maximum), strict=True):
                end[filled] = largest.reduceat(self.data, self.begin[:-1][filled])
                partly = self.counts < self.n_rows
                end[partly] = largest(end[partly], 0.0)
        return ends[0], ends[1]

    def standard_moments(
        self, unit: NDArray[np.float64], share: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Mean and variance in units, and the third moment in standard deviations: see `Moments`.

        `share` (N,) of the rows. Of cells that are not stored, each sum has (0 - mean)^k times their share.
        """
        z, own = self.data / unit[self.column], share[self.row]
        empty = np.where(self.counts < self.n_rows, np.maximum(1.0 - self.sums(own), 0.0), 0.0)
        mean = self.sums(own * z)
        mean += self.sums(own * (z - mean[self.column])) - empty * mean
        z -= mean[self.column]
        variance = self.sums(own * z * z) + empty * mean * mean
        spread = np.sqrt(variance)
        spread[spread == 0.0] = 1.0
        z /= spread[self.column]
        return mean, variance, self.sums(own * z * z * z) - empty * (mean / spread) ** 3

    def are_two(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Has each column no cell but its smallest and largest, (D,)?"""
        ends = (self.data == low[self.column]) | (self.data == high[self.column])
        zero = (low == 0.0) | (high == 0.0) | (self.counts == self.n_rows)
        whole: NDArray[np.bool_] = zero & (self.sums(ends) == self.counts)
        return whole

    def first_fraction(self) -> NDArray[np.float64]:
        """The first cell of each column that is not whole, (D,); NaN where all are."""
        out = np.full(self.n_columns, np.nan)
        odd = np.flatnonzero(self.data != np.round(self.data))
        columns, first = np.unique(self.column[odd], return_index=True)
        out[columns] = self.data[odd[first]]
        return out


def as_one_array(rows: SparseRows) -> NDArray[np.float32]:
    """Index and value side by side, (N, 2 K): one array, in which equal rows have equal bits."""
    return np.concatenate([rows.index, rows.value], axis=1, dtype=np.float32, casting="unsafe")


def from_one_array(both: NDArray[np.float32]) -> SparseRows:
    """Undo `as_one_array`."""
    width = both.shape[1] // 2
    return SparseRows(both[:, :width].astype(np.int32), np.ascontiguousarray(both[:, width:]))


def _checked(X: Any, estimator_name: str) -> Any:
    """A finite CSR matrix with sorted columns and no stored zeros, float64; the user's is left alone."""
    array = check_array(X, accept_sparse="csr", dtype=np.float64, estimator=estimator_name, input_name="X")
    matrix = sparse.csr_array(array, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix

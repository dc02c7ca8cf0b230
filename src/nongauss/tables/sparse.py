"""Sparse matrices such as word counts: checked, scaled without centring, and cut into rows of equal length.

A row is kept as the numbers of its filled columns and their values, padded to the longest row. That is a few
times smaller than a dense matrix and has the plain shape that compiled code wants; `dense` fills a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.tables.matching import check_width

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

    def transform(self, X: Any, estimator_name: str = "this estimator", warn: bool = True) -> SparseRows:
        """The scaled rows of `X`, sparse or dense. Raises ValueError as scikit-learn."""
        matrix = _checked(X, estimator_name)
        check_width(matrix.shape[1], self.n_features, estimator_name)
        counts = np.diff(matrix.indptr)
        place = np.arange(counts.max(initial=1))[None, :] < counts[:, None]
        index, value = np.zeros(place.shape, np.int32), np.zeros(place.shape)
        index[place], value[place] = matrix.indices, matrix.data / self.scale
        return SparseRows(index, value)


def joined(rows: SparseRows) -> NDArray[np.float32]:
    """Index and value side by side, (N, 2 K): one array, in which equal rows have equal bits."""
    return np.concatenate([rows.index, rows.value], axis=1, dtype=np.float32, casting="unsafe")


def parted(both: NDArray[np.float32]) -> SparseRows:
    """Undo `joined`."""
    width = both.shape[1] // 2
    return SparseRows(both[:, :width].astype(np.int32), np.ascontiguousarray(both[:, width:]))


def _checked(X: Any, estimator_name: str) -> Any:
    """A finite CSR matrix with sorted columns and no stored zeros, float64; the user's is left alone."""
    array = check_array(X, accept_sparse="csr", dtype=np.float64, estimator=estimator_name, input_name="X")
    matrix = sparse.csr_array(array, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix

"""What every `fit` does first with its table: learn the encoding, encode, check the weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nongauss.tables.encoder import TableEncoder
from nongauss.tables.rows import validate_weight


class Inputs(NamedTuple):
    """The encoding of a table, the encoded matrix (N, D) and one weight a row (N,)."""

    encoder: TableEncoder
    encoded: NDArray[np.float64]
    weight: NDArray[np.float64]


def read_inputs(X: Any, sample_weight: ArrayLike | None, estimator_name: str) -> Inputs:
    """Learn the encoding of X, in which rows of weight 0 leave no trace. Raises InputError."""
    weight = None if sample_weight is None else np.asarray(sample_weight)
    n_rows = _n_rows(X)
    checked = validate_weight(weight, n_rows) if n_rows is not None else None
    encoder = TableEncoder.fit(X, checked, estimator_name=estimator_name)
    encoded = encoder.transform(X, estimator_name=estimator_name, warn=False)
    return Inputs(encoder, encoded, validate_weight(weight, len(encoded)))


def _n_rows(X: Any) -> int | None:
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else (len(X) if hasattr(X, "__len__") else None)

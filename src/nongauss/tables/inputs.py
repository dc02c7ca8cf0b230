"""Former way in of a table in memory: see `learn`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nongauss.tables.encoder import TableEncoder
from nongauss.tables.learn import as_source, learn


class Inputs(NamedTuple):
    """The encoding of a table, the encoded matrix (N, D) and one weight a row (N,)."""

    encoder: TableEncoder
    encoded: NDArray[np.float64]
    weight: NDArray[np.float64]


def read_inputs(X: Any, sample_weight: ArrayLike | None, estimator_name: str) -> Inputs:
    """Learn the encoding of X, in which rows of weight 0 leave no trace. Raises InputError."""
    source = as_source(X, None, sample_weight, estimator_name=estimator_name)
    (part,) = source.each(lambda part: part)
    encoder = learn(source, estimator_name).encoder
    return Inputs(encoder, encoder.as_scaled(part.X, estimator_name, warn=False), part.weight)

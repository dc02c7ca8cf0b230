"""Tables that candidates do not take as they come: of one in parts a sample, of a sparse one all cells.

Also weights that are no numbers of rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.predictive.distribution import FloatArray
from nongauss.tables.frame import InputTable
from nongauss.tables.learn import as_source, is_parted, learn
from nongauss.tables.source import Encode, Part, sample_table

MOST_SAMPLED = 10_000
"""Rows that are read of a table in parts."""

MOST_COPIES = 1e6
"""Whole weights above this are no numbers of copies of a row."""

MOST_DENSE = 20_000_000
"""Cells of a sparse table up to which zeros are written out: 160 MB."""


def all_cells(X: Any, name: str) -> Any:
    """A sparse table with its zeros written out, since most candidates look at all cells; others as they are.

    Raises InputError where these are too many.
    """
    if not issparse(X):
        return X
    n_cells = math.prod(X.shape)
    if n_cells > MOST_DENSE:
        raise InputError(
            f"X is sparse and has {n_cells:,} cells, of which {name} would write out the zeros; it takes up "
            f"to {MOST_DENSE:,}: give fewer columns or rows, or fit a family that takes sparse tables, as "
            "TGGMClassifier."
        )
    return X.toarray()


def in_memory(X: Any, y: Any, weight: Any, beside: Mapping[str, Any], name: str) -> tuple[Any, Part]:
    """The source of a table, and its one part.

    Of a table in parts these are a sample of its rows, which depends on their content alone; y, `weight` and
    what is `beside` are then names of columns. Warns how many rows there are. Raises InputError.
    """
    given = {word: values for word, values in beside.items() if values is not None}
    if is_parted(X):
        X, y, weight, given = _sampled(X, y, weight, given, name)
    source = as_source(all_cells(X, name), y, weight, estimator_name=name, **given)
    (part,) = source.each(_itself)
    counts = as_counts(part.weight)
    if counts is not part.weight:
        source = as_source(part.X, part.y, counts, estimator_name=name, **given)
        (part,) = source.each(_itself)
    return source, part


def as_counts(weight: FloatArray) -> FloatArray:
    """Weights (N,) as numbers of rows, which tell how sure of what was chosen these make us.

    Whole numbers up to `MOST_COPIES` are. Others say how much rows count beside one another: they are scaled
    so that they sum to (sum w)^2 / sum w^2, the number of rows with equal weights whose mean is as exact
    (Kish 1965).
    """
    if weight.max() <= MOST_COPIES and (weight == np.rint(weight)).all():
        return weight
    share = weight / weight.max()
    scaled: FloatArray = share * (share.sum() / (share @ share))
    return scaled


def _sampled(X: Any, y: Any, weight: Any, beside: Mapping[str, Any], name: str) -> Any:
    """Inputs, target, weights and what is beside of some rows of a table in parts."""
    named = [column for column in (y, weight, *beside.values()) if column is not None]
    if not all(isinstance(column, str) for column in named):
        raise InputError(
            f"{name} reads a sample of a table in parts, for which y and weights are given by the names of "
            "their columns; give names, or rows in memory, or fit one family, such as SparseGPRegressor."
        )
    source = as_source(X)
    encoder = learn(source, name).encoder
    found = sample_table(source, Encode(encoder, None, name), MOST_SAMPLED)
    frame = found.table.as_frame() if isinstance(found.table, InputTable) else found.table
    lacking = [column for column in named if column not in frame.columns]
    if lacking:
        raise InputError(f"The table has no column {lacking[0]!r}; it has: {', '.join(map(str, frame))}.")
    if len(frame) >= MOST_SAMPLED:
        warnings.warn(
            f"{name} compares its candidates on a sample of {len(frame):,} rows of this table in parts; fit "
            "one family, such as SparseGPRegressor, to all.",
            NongaussWarning,
            stacklevel=5,
        )
    weights = np.asarray(found.rows.weight, np.float64)
    if weight is not None:
        weights = weights * frame[weight].to_numpy(np.float64)
    others = {word: frame[column].to_numpy(np.float64) for word, column in beside.items()}
    return frame.drop(columns=named), frame[y], weights, others


def _itself(part: Part) -> Part:
    return part

"""The cells of a table as they are: numbers unscaled, labels as 0 and 1 or by rank, NaN where missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nongauss.tables.encoder import ColumnCode, TableEncoder


def raw_names(encoder: TableEncoder, by_rank: bool) -> tuple[str, ...]:
    """Names of the D columns of `raw_cells`, such as "age", "colour=red"."""
    return tuple(name for code in encoder.columns for name in _names(code, by_rank))


def raw_cells(
    encoder: TableEncoder, X: Any, by_rank: bool, estimator_name: str = "this estimator", warn: bool = True
) -> NDArray[np.float64]:
    """The matrix (N, D) float64: a numeric column as it is, a label column as one 0/1 column a level.

    Two levels make one column; columns with one value are left out. `by_rank`: an ordered category is one
    column of whole numbers in its order, since only the order of values counts. A label that was not seen in
    `fit` is a missing cell. Warns and raises as `TableEncoder.read` does.
    """
    columns = encoder.read(X, estimator_name, warn)
    out = [np.zeros((len(columns[0].missing), 0))]
    for code, column in zip(encoder.columns, columns, strict=True):
        if not _names(code, by_rank):
            continue
        if column.values is not None:
            out.append(column.values[:, None])
            continue
        assert column.codes is not None
        if by_rank and code.ranks:
            cells = np.array(code.ranks, dtype=np.float64)[column.codes, None]
        else:
            shown = np.arange(len(code.levels))[1 if len(code.levels) == 2 else 0 :]
            cells = (column.codes[:, None] == shown).astype(np.float64)
        cells[column.codes < 0] = np.nan
        out.append(cells)
    return np.concatenate(out, axis=1)


def _names(code: ColumnCode, by_rank: bool) -> tuple[str, ...]:
    if code.role == "numeric":
        return (code.name,) * (code.sd != 0)
    if code.role == "labels" and len(code.levels) > 1:
        if by_rank and code.ranks:
            return (code.name,)
        return tuple(f"{code.name}={level}" for level in code.levels[1 if len(code.levels) == 2 else 0 :])
    return ()

"""The cells of a table as they are: numbers unscaled, labels as 0 and 1, NaN where missing.

For models that see only the order of a column's values, or that leave missing cells out.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nongauss.core.contracts import NongaussWarning
from nongauss.data.encoder import ColumnCode, TableEncoder
from nongauss.data.table import read_input


def raw_names(encoder: TableEncoder) -> tuple[str, ...]:
    """Names of the D columns of `raw_cells`, such as "age", "colour=red"."""
    return tuple(name for code in encoder.columns for name in _names(code))


def raw_cells(
    encoder: TableEncoder, X: Any, estimator_name: str = "this estimator", warn: bool = True
) -> NDArray[np.float64]:
    """The matrix (N, D) float64: a numeric column as it is, a label column as one 0/1 column a level.

    Two levels make one column; columns with one value are left out. Columns are matched and warnings given as
    by `TableEncoder.transform`; a label that was not seen in `fit` is a missing cell. Raises: InputError.
    """
    table = read_input(X, estimator_name)
    notes: list[str] = []
    out = [np.zeros((table.n_rows, 0))]
    for code, place in zip(encoder.columns, encoder.match(table, estimator_name, notes), strict=True):
        if not _names(code):
            continue
        column = table.column(place)
        if code.role == "numeric":
            values = column.as_numbers().values
            assert values is not None
            out.append(values[:, None])
            continue
        labels = column.as_labels()
        assert labels.codes is not None
        known = {level: number for number, level in enumerate(code.levels)}
        lookup = np.array([*(known.get(level, -1) for level in labels.levels), -1], dtype=np.intp)
        codes = lookup[labels.codes]
        strange = (codes < 0) & (labels.codes >= 0)
        if strange.any():
            row = int(np.argmax(strange))
            notes.append(
                f"The label {labels.levels[labels.codes[row]]!r} in column {code.name!r} (first in row {row}) "
                "was not seen when fitting and is treated as missing."
            )
        shown = np.arange(len(code.levels))[1 if len(code.levels) == 2 else 0 :]
        cells = (codes[:, None] == shown).astype(np.float64)
        cells[codes < 0] = np.nan
        out.append(cells)
    if notes and warn:
        warnings.warn(" ".join(notes), NongaussWarning, stacklevel=2)
    return np.concatenate(out, axis=1)


def _names(code: ColumnCode) -> tuple[str, ...]:
    if code.role == "numeric":
        return (code.name,) * (code.sd != 0)
    if code.role == "labels" and len(code.levels) > 1:
        return tuple(f"{code.name}={level}" for level in code.levels[1 if len(code.levels) == 2 else 0 :])
    return ()

"""Tables to visible units and back, by a `Coder`. Missing cells stay missing; sparse tables stay sparse."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.harmonium.columns import Coder, Unit
from nongauss.harmonium.exponential_families import RANGES, Array
from nongauss.tables.frame import Column, read_input
from nongauss.tables.matching import check_width, match_columns


def encode(coder: Coder, X: Any, estimator_name: str) -> tuple[Any, Array | None]:
    """Units (N, D) float32, dense or CSR, and which cells are missing (N, D) or None. Raises InputError."""
    if sp.issparse(X):
        return _encode_sparse(coder, X, estimator_name), None
    table = read_input(X, estimator_name)
    notes: list[str] = []
    places = match_columns(table, coder.feature_names, coder.n_features, estimator_name, notes)
    out = np.zeros((table.n_rows, len(coder.units)), np.float32)
    by_column: dict[int, Column] = {}
    unseen: dict[str, None] = {}
    known: dict[int, set[str]] = {}
    for unit in coder.units:
        known.setdefault(unit.column, set()).update({unit.label, unit.other})
    for d, unit in enumerate(coder.units):
        if unit.column not in by_column:
            by_column = {unit.column: table.column(places[unit.column])}
        column = by_column[unit.column]
        out[:, d] = _cells(unit, column, known[unit.column], unseen)
    if unseen:
        notes.append(f"Labels not seen when fitting are treated as missing: {', '.join(unseen)}.")
    if notes:
        warnings.warn(" ".join(notes), NongaussWarning, stacklevel=3)
    missing = np.isnan(out)
    if not missing.any():
        return out, None
    out[missing] = 0.0
    return out, missing


def _cells(unit: Unit, column: Column, known: set[str], unseen: dict[str, None]) -> Array:
    """Values of a unit, NaN where missing."""
    if unit.label:
        labels = column.as_labels()
        assert labels.codes is not None
        is_level = np.array([level == unit.label for level in labels.levels] + [False])
        out = is_level[labels.codes].astype(np.float64)
        out[labels.codes < 0] = np.nan
        strange = [level for level in labels.levels if level not in known]
        for level in strange:
            rows = labels.codes == labels.levels.index(level)
            if rows.any():
                out[rows] = np.nan
                unseen[f"{level!r} in column {column.name!r}"] = None
        return out
    values = column.as_numbers().values
    assert values is not None
    z = (values / unit.unit - unit.mean) / unit.sd
    return np.clip(z, *RANGES[unit.kind])


def _encode_sparse(coder: Coder, X: Any, estimator_name: str) -> Any:
    check_width(X.shape[1], coder.n_features, estimator_name)
    matrix = sp.csr_matrix(X)
    if not np.isfinite(matrix.data).all():
        raise InputError(
            "X is sparse and holds NaN or infinity; a sparse table has no gaps, so give a dense one."
        )
    if any(unit.mean != 0.0 or unit.label for unit in coder.units):
        out, _ = encode(coder._replace(feature_names=None), matrix.toarray(), estimator_name)
        return out
    chosen = matrix[:, [unit.column for unit in coder.units]].astype(np.float64)
    scale, sd, low, high = np.array([(unit.unit, unit.sd, *RANGES[unit.kind]) for unit in coder.units]).T
    at = chosen.indices
    chosen.data = np.clip(chosen.data / scale[at] / sd[at], low[at], high[at])
    return chosen.astype(np.float32)


def decode(coder: Coder, units: Array) -> Array:
    """Expected values of the input columns in their own units, (N, columns): the inverse of `encode`.

    A column of labels gets the number of its likeliest level, in the order of its units (with two levels,
    0 or 1); columns that say nothing have their one value, or NaN.
    """
    out = np.tile(np.array(coder.constants), (len(units), 1))
    best = np.full(out.shape, -np.inf)
    count = np.zeros(coder.n_features, int)
    width = Counter(unit.column for unit in coder.units)
    for d, unit in enumerate(coder.units):
        j, value = unit.column, units[:, d].astype(np.float64)
        if not unit.label:
            if np.isfinite(unit.sd):
                out[:, j] = unit.unit * (unit.mean + unit.sd * value)
        elif width[j] == 1:
            out[:, j] = value > 0.5
        else:
            better = value > best[:, j]
            out[better, j], best[:, j] = count[j], np.maximum(best[:, j], value)
            count[j] += 1
    return out

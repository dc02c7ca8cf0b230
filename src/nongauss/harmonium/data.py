"""From a table to the rows that the mathematics takes, and back; statistics of rows; rows block by block.

Missing cells stay missing, sparse tables stay sparse.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.harmonium.config import MOST_SAMPLED
from nongauss.harmonium.exponential_families import RANGES, Array, Layout, totals_of
from nongauss.harmonium.visible_units import UnitCoder, VisibleUnit, coder_of, fit_coder
from nongauss.tables.frame import Column, as_pandas, read_input
from nongauss.tables.labels import LabelCoder
from nongauss.tables.matching import check_width, match_columns
from nongauss.tables.parquet import Encoded, Part, n_rows_of
from nongauss.tables.parted import describe, is_parted, labels_of, naming, open_parts, sample
from nongauss.tables.rows import canonical_rows, canonical_sparse, validate_weight
from nongauss.tables.source import Source
from nongauss.tables.summary import weight_of

GAP = np.float32(3e38)
"""Stands for a missing cell while rows are put in order."""


class VisibleRows(NamedTuple):
    """X (N, D) float32, dense or CSR; missing (N, D) or None; weight (N,); class numbers (N,) or None."""

    X: Any
    missing: Array | None
    weight: Array
    labels: Array | None

    def take(self, chosen: Any) -> VisibleRows:
        """The rows that `chosen`, numbers, a mask or a slice, names."""
        return VisibleRows(
            self.X[chosen],
            None if self.missing is None else self.missing[chosen],
            self.weight[chosen],
            None if self.labels is None else self.labels[chosen],
        )

    def blocks(self, n_cells: int) -> Iterator[tuple[slice, VisibleRows]]:
        """All rows in order, as many at a time as have `n_cells` cells, with their place among the N."""
        N, D = self.X.shape
        size = max(1, n_cells // max(D, 1))
        for start in range(0, N, size):
            place = slice(start, min(start + size, N))
            yield place, self.take(place)


def unlabelled(X: Any, missing: Array | None = None) -> VisibleRows:
    """Encoded rows X (N, D), each of weight 1, without classes."""
    return VisibleRows(X, missing, np.ones(X.shape[0]), None)


class RowSource(NamedTuple):
    """All rows of a table wherever they are: parts that are `VisibleRows`, their number, total weight and
    checksum."""

    source: Source
    n_rows: int
    weight: float
    checksum: int = 0


class HarmoniumTable(NamedTuple):
    """A table as a fit takes it: its units, its rows or a sample of them, its classes (None without labels),
    and all rows if the sample is not the table (else None)."""

    coder: UnitCoder
    rows: VisibleRows
    classes: LabelCoder | None
    all_rows: RowSource | None


# ------------------------------------------------------------- statistics of rows


def column_means(rows: VisibleRows) -> Array:
    """Weighted mean of the cells that are present in each column, (D,)."""
    weight = rows.weight / rows.weight.mean()
    total = np.asarray(rows.X.T @ weight, dtype=np.float64).reshape(-1)
    present = weight.sum() if rows.missing is None else (~rows.missing).T @ weight
    means: Array = total / np.maximum(present, 1e-12)
    return means


def column_spreads(rows: VisibleRows) -> Array:
    """Standard deviation of each visible unit over the cells that are present, (D,)."""
    X, share = rows.X, rows.weight / rows.weight.sum()
    squared = X.multiply(X) if hasattr(X, "multiply") else X * X
    present = 1.0 if rows.missing is None else np.maximum((~rows.missing).T @ share, 1e-12)
    mean = np.asarray(X.T @ share).reshape(-1) / present
    return np.sqrt(np.maximum(np.asarray(squared.T @ share).reshape(-1) / present - mean * mean, 0.0))


def mean_square(rows: VisibleRows) -> float:
    """Weighted mean over rows of |x|^2, at least 1: the variance of x' w for weights of variance 1."""
    X = rows.X
    squares = (
        np.asarray(X.multiply(X).sum(axis=1)).reshape(-1) if hasattr(X, "multiply") else (X * X).sum(axis=1)
    )
    return max(float(np.average(squares, weights=rows.weight)), 1.0)


def mean_totals(layout: Layout, rows: VisibleRows) -> Array:
    """What the counts of a row without gaps sum to in each block of counts, on average."""
    totals: Array = totals_of(layout, column_means(rows)[None])[0]
    return totals


# ------------------------------------------------------------- a table as a fit takes it


def read_table(
    X: Any, y: Any, weight: Any, *, views: Any, has_labels: bool, estimator_name: str
) -> HarmoniumTable:
    """Units, rows and classes of a table, dense, sparse or in parts. Raises InputError.

    `has_labels`: y holds classes; else it is ignored.
    """
    if is_parted(X):
        return _read_parts(X, y if has_labels else None, weight, views, estimator_name)
    coder, X, weight = _read(X, weight, views, estimator_name)
    classes = LabelCoder.fit(y, weight, estimator_name) if has_labels else None
    labels = None if classes is None else classes.encode(y, len(weight), estimator_name, weight)
    return HarmoniumTable(coder, _canonical(coder, X, weight, labels, estimator_name), classes, None)


def _read(X: Any, weight: Any, views: Any, estimator_name: str) -> tuple[UnitCoder, Any, Array]:
    """The units as the rows of weight above 0 tell them, the table, and all weights as numbers."""
    frame = None if sp.issparse(X) else as_pandas(X)
    X = X if frame is None else frame
    if not hasattr(X, "shape") and not isinstance(X, list | tuple):
        X = np.asarray(X)
    weight = validate_weight(weight, X.shape[0] if getattr(X, "shape", ()) else len(X))
    counted = weight > 0
    chosen = X
    if not counted.all():
        chosen = X.loc[counted] if hasattr(X, "loc") else (X if hasattr(X, "shape") else np.array(X))[counted]
    return fit_coder(chosen, weight[counted], views, estimator_name), X, weight


def _canonical(
    coder: UnitCoder, X: Any, weight: Array, labels: Array | None, estimator_name: str
) -> VisibleRows:
    """Encoded distinct rows in canonical order, weights added up."""
    encoded, missing = encode(coder, X, estimator_name)
    own = np.zeros((len(weight), 0)) if labels is None else labels[:, None]
    if sp.issparse(encoded):
        cells, Y, merged, _ = canonical_sparse(encoded, own, weight)
        gaps = None
    else:
        marked = encoded if missing is None else np.where(missing, GAP, encoded)
        rows = canonical_rows(marked, own, weight)
        cells, Y, merged = rows.X, rows.Y, rows.weight
        gaps = None if missing is None else cells == GAP
        cells = cells if gaps is None else np.where(gaps, np.float32(0), cells)
    return VisibleRows(cells, gaps, merged, None if labels is None else Y[:, 0].astype(np.int64))


def _read_parts(X: Any, y: Any, weight: Any, views: Any, estimator_name: str) -> HarmoniumTable:
    """Of a table in parts the first rows in canonical order are in memory, and all of them where they are."""
    source = open_parts(X, y, weight)
    summary, labels = describe(
        source, estimator_name, None if y is None else partial(labels_of, estimator_name)
    )
    coder, classes = coder_of(summary, views), None if labels is None else labels.coder(estimator_name)
    has_gaps = any(column.gaps for column in summary.columns)
    encoded = source.map(EncodeUnits(coder, classes, estimator_name))
    first = sample(encoded, MOST_SAMPLED)
    all_rows = None
    if not first.are_all:
        n_rows = int(encoded.sum(_n_rows))
        parts = encoded.map(as_visible_rows, has_gaps)
        all_rows = RowSource(parts, n_rows, summary.counted.weight, first.checksum)
    return HarmoniumTable(coder, as_visible_rows(first.rows, has_gaps), classes, all_rows)


@dataclass(frozen=True)
class EncodeUnits:
    """A `Part` as `Encoded` rows of visible units, gaps marked, labels as the target."""

    coder: UnitCoder
    classes: LabelCoder | None
    name: str

    def __call__(self, part: Part) -> Encoded:
        """The rows of weight above 0. Raises InputError naming the part."""
        found: Encoded = naming(part, partial(self._rows, part))
        return found

    def _rows(self, part: Part) -> Encoded:
        n_rows, n_labels = n_rows_of(part.X), int(self.classes is not None)
        if not n_rows:
            nothing = np.zeros((0, len(self.coder.units)), np.float32)
            return Encoded(nothing, nothing[:, :n_labels], np.zeros(0))
        weight = weight_of(part)
        X, missing = encode(self.coder, part.X, self.name)
        Y = np.zeros((n_rows, 0))
        if self.classes is not None:
            Y = self.classes.encode(part.y, n_rows, self.name, weight)[:, None]
        X = X if missing is None else np.where(missing, GAP, X)
        kept = weight > 0
        return Encoded(X[kept] + np.float32(0), Y[kept].astype(np.float32), weight[kept])


def as_visible_rows(part: Encoded, has_gaps: bool) -> VisibleRows:
    """Encoded rows as the mathematics takes them. `has_gaps`: has any part of the table missing cells?"""
    missing = part.X == GAP if has_gaps else None
    X = part.X if missing is None else np.where(missing, np.float32(0), part.X)
    return VisibleRows(X, missing, part.weight, part.Y[:, 0].astype(np.int64) if part.Y.shape[1] else None)


def _n_rows(part: Encoded) -> int:
    return len(part.weight)


# ------------------------------------------------------------- cells as visible units


def encode(coder: UnitCoder, X: Any, estimator_name: str) -> tuple[Any, Array | None]:
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


def _cells(unit: VisibleUnit, column: Column, known: set[str], unseen: dict[str, None]) -> Array:
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


def _encode_sparse(coder: UnitCoder, X: Any, estimator_name: str) -> Any:
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


def decode(coder: UnitCoder, units: Array) -> Array:
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

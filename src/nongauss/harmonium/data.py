"""From a table to the rows that the mathematics takes, and back; statistics of rows; rows block by block.

Missing cells stay missing, sparse tables stay sparse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nongauss.core.errors import InputError
from nongauss.harmonium.clipped_scale import FAR, few_far, with_clipped_scales
from nongauss.harmonium.config import MOST_SAMPLED
from nongauss.harmonium.exponential_families import RANGES, Array, Layout, totals_of
from nongauss.harmonium.visible_units import UnitCoder, VisibleUnit, unit_coder
from nongauss.tables.clipped_scale import clipped_scale, reaches_beyond
from nongauss.tables.column import Column
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.frame import check_width, n_rows_of
from nongauss.tables.labels import LabelCoder, class_target, labels_of
from nongauss.tables.learn import Learned, OfTarget, as_source, learn
from nongauss.tables.rows import canonical_sparse
from nongauss.tables.source import Encoded, Part, Sample, Source, first_rows, itself, naming, weight_of
from nongauss.tables.sparse import SparseTable
from nongauss.tables.target import TargetScaler, TargetSummary, scaled_target, target_of, validate_target

GAP = np.float32(3e38)
"""Stands for a missing cell while rows are put in order."""

GRID = np.float32(2**16)
"""Steps of a standard deviation that rows of a regression are rounded to."""


class VisibleRows(NamedTuple):
    """X (N, D) float32, dense or CSR; missing (N, D) or None; weight (N,).

    labels: class numbers (N,), or standardised numbers (N,) float32, or None.
    """

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
    """A table as a fit takes it: its units, its rows or a sample of them, what reads its labels (None without
    any), and all rows if the sample is not the table (else None).

    `part`: the table as it came, where it is dense and in memory, and the `encoder` of its columns.
    """

    coder: UnitCoder
    rows: VisibleRows
    target: LabelCoder | TargetScaler | None
    all_rows: RowSource | None
    part: Part | None = None
    encoder: TableEncoder | None = None


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


def scaled(X: Any, scale: Array) -> Any:
    """Rows (N, D), dense or CSR, with each column times its scale (D,)."""
    return X.multiply(scale).tocsr() if hasattr(X, "multiply") else X * scale.astype(X.dtype)


def mean_totals(layout: Layout, rows: VisibleRows) -> Array:
    """What the counts of a row without gaps sum to in each block of counts, on average."""
    totals: Array = totals_of(layout, column_means(rows)[None])[0]
    return totals


# ------------------------------------------------------------- a table as a fit takes it


def read_table(
    X: Any,
    y: Any,
    weight: Any,
    *,
    views: Any,
    labels: str,
    in_memory: bool,
    estimator_name: str,
) -> HarmoniumTable:
    """Units, rows and labels of a table, dense, sparse or in parts. Raises InputError.

    `labels`: y holds "classes" or "numbers", or is ignored ("none"). `in_memory`: a table in parts is
    refused.
    """
    y = None if labels == "none" else y
    source = as_source(X, y, weight, estimator_name=estimator_name, accept_sparse=True)
    if in_memory and not source.in_memory:
        raise InputError(
            f"method='lbfgs' and early_stopping of {estimator_name} take tables in memory; leave them out "
            "for one in parts."
        )
    readers: dict[str, OfTarget] = {
        "classes": partial(labels_of, estimator_name),
        "numbers": partial(target_of, estimator_name),
    }
    learned = learn(source, estimator_name, readers.get(labels), warn=False)
    coder = unit_coder(learned, views, sp.issparse(X))
    target = _target_coder(learned.target, labels, estimator_name)
    if source.in_memory:
        coder, target = _unmoved_by_far_cells(coder, target, learned, source, estimator_name)
    encoded = source.map(EncodeUnits(coder, target, estimator_name))
    first: Sample = encoded.sum(_first_rows, None if source.in_memory else MOST_SAMPLED)
    columns = learned.columns
    has_gaps = any(columns[unit.column].gaps for unit in coder.units)
    all_rows = None
    if not first.is_all:
        parts, counted = encoded.map(as_visible_rows, has_gaps, labels), learned.counted
        all_rows = RowSource(parts, counted.rows, counted.weight, first.checksum)
    rows = as_visible_rows(first.rows, has_gaps, labels)
    if not source.in_memory or sp.issparse(X):
        return HarmoniumTable(coder, rows, target, all_rows)
    (part,) = source.each(itself)
    return HarmoniumTable(coder, rows, target, all_rows, part, learned.encoder)


def _unmoved_by_far_cells(
    coder: UnitCoder,
    target: LabelCoder | TargetScaler | None,
    learned: Learned,
    source: Source,
    estimator_name: str,
) -> tuple[UnitCoder, LabelCoder | TargetScaler | None]:
    """Units and target of a table in memory on scales that a few far cells do not move."""
    (part,) = source.each(itself)
    weight = weight_of(part)
    if not isinstance(part.X, SparseTable):
        coder = with_clipped_scales(
            coder, learned.columns, lambda: coder.table.raw(part.X, estimator_name), weight
        )
    if isinstance(target, TargetScaler) and reaches_beyond(learned.target.outputs[0]):
        (y,), kept = validate_target(part.y, len(weight), estimator_name, warn=False)[0].T, weight > 0
        scale = clipped_scale(y[kept], weight[kept], learned.target.outputs[0].scale())
        moved = TargetScaler.of_scales([scale])
        z = moved.transform(y[kept, None])[:, 0]
        if few_far(z, weight[kept]).any() == (np.abs(z) > FAR).any():
            target = moved
    return coder, target


def _target_coder(learned: Any, labels: str, estimator_name: str) -> LabelCoder | TargetScaler | None:
    """The coder of class labels or the scaler of a number. Raises InputError for targets of neither kind."""
    if labels == "none":
        return None
    if labels == "classes":
        coder: LabelCoder = learned.coder(estimator_name)
        return coder
    summary: TargetSummary = learned
    if len(summary.outputs) > 1:
        raise InputError(
            f"y has {len(summary.outputs)} outputs, but {estimator_name} takes one; fit a model for each."
        )
    return summary.scaler()


def _first_rows(part: Encoded, most: int | None) -> Sample | None:
    """The first `most` distinct rows of a part in canonical order; of a sparse one all."""
    if not sp.issparse(part.X):
        return first_rows(part, most)
    X, Y, weight, _ = canonical_sparse(*part)
    return Sample(Encoded(X, Y, weight), None)


@dataclass(frozen=True)
class EncodeUnits:
    """A `Part` as `Encoded` rows of visible units, dense with gaps marked, or CSR; labels as the target."""

    coder: UnitCoder
    target: LabelCoder | TargetScaler | None
    estimator_name: str

    def __call__(self, part: Part) -> Encoded:
        """The rows of weight above 0. Raises InputError naming the part."""
        found: Encoded = naming(part, partial(self._encoded, part))
        return found

    def _encoded(self, part: Part) -> Encoded:
        """The rows of weight above 0, of a part that may have none."""
        n_rows, n_labels = n_rows_of(part.X), int(self.target is not None)
        if not n_rows:
            nothing = np.zeros((0, len(self.coder.units)), np.float32)
            return Encoded(nothing, nothing[:, :n_labels], np.zeros(0))
        weight = weight_of(part)
        table = part.X.matrix if isinstance(part.X, SparseTable) else part.X
        X, missing = encode(self.coder, table, self.estimator_name)
        Y = np.zeros((n_rows, 0))
        if isinstance(self.target, TargetScaler):
            Y = scaled_target(self.target, self.estimator_name, part, weight)
        elif self.target is not None:
            Y = class_target(self.target, self.estimator_name, part, weight)
        kept = weight > 0
        if not sp.issparse(X):
            X = (X if missing is None else np.where(missing, GAP, X)) + np.float32(0)
        rounded = Y.astype(np.float32)
        if isinstance(self.target, TargetScaler) and not sp.issparse(X):
            X, rounded = _on_grid(X), _on_grid(rounded)
        return Encoded(X[kept], rounded[kept], weight[kept])


def _on_grid(values: Array) -> Array:
    """Standardised numbers rounded to 2^-16 standard deviations.

    Other units of a column change last bits, which decide the order of rows, and so the batches of a fit; a
    class may stand that, the third digit of a number does not. Gaps stay marked.
    """
    near = np.where(values == GAP, np.float32(0), values)
    out: Array = np.where(values == GAP, values, np.round(near * GRID) / GRID)
    return out


def as_visible_rows(part: Encoded, has_gaps: bool, labels: str) -> VisibleRows:
    """Encoded rows as the mathematics takes them. `has_gaps`: has any part of the table missing cells?

    `labels`: see `read_table`.
    """
    missing = part.X == GAP if has_gaps else None
    X = part.X if missing is None else np.where(missing, np.float32(0), part.X)
    known = None if labels == "none" else part.Y[:, 0].astype(np.int64 if labels == "classes" else np.float32)
    return VisibleRows(X, missing, part.weight, known)


# ------------------------------------------------------------- cells as visible units


def encode(coder: UnitCoder, X: Any, estimator_name: str, warn: bool = True) -> tuple[Any, Array | None]:
    """Units (N, D) float32, dense or CSR, and which cells are missing (N, D) or None. Raises InputError.

    Labels that were not seen in fitting are missing cells, with a warning unless `warn` is False.
    """
    if sp.issparse(X):
        return _encode_sparse(coder, X, estimator_name), None
    columns = coder.table.raw(X, estimator_name, warn)
    out = np.empty((columns[0].n_rows, len(coder.units)), np.float32)
    for d, unit in enumerate(coder.units):
        out[:, d] = _cells(unit, columns[unit.column])
    missing = np.isnan(out)
    if not missing.any():
        return out, None
    out[missing] = 0.0
    return out, missing


def _cells(unit: VisibleUnit, column: Column) -> Array:
    """Values of a unit (N,), NaN where missing: is it this label, or (x / unit - mean) / sd."""
    if unit.label:
        assert column.codes is not None
        is_level = np.array([level == unit.label for level in column.levels] + [np.nan])
        return is_level[column.codes]
    assert column.values is not None
    with np.errstate(over="ignore"):
        z = (column.values / unit.unit - unit.mean) / unit.sd
    return np.clip(z, *RANGES[unit.kind])


def _encode_sparse(coder: UnitCoder, X: Any, estimator_name: str) -> Any:
    """Units (N, D) float32 of a sparse table: CSR where zeros stay zeros, else dense. Raises InputError."""
    check_width(X.shape[1], coder.n_features, estimator_name)
    matrix = sp.csr_matrix(X)
    if not np.isfinite(matrix.data).all():
        raise InputError(
            "X is sparse and holds NaN or infinity; a sparse table has no gaps, so give a dense one."
        )
    if any(unit.mean != 0.0 or unit.label for unit in coder.units):
        unnamed = replace(coder, feature_names=None, encoder=replace(coder.table, feature_names=None))
        out, _ = encode(unnamed, matrix.toarray(), estimator_name)
        return out
    chosen = matrix[:, [unit.column for unit in coder.units]].astype(np.float64)
    scale, sd, low, high = np.array([(unit.unit, unit.sd, *RANGES[unit.kind]) for unit in coder.units]).T
    at = chosen.indices
    chosen.data = np.clip(chosen.data / scale[at] / sd[at], low[at], high[at])
    return chosen.astype(np.float32)


def decode(coder: UnitCoder, units: Array) -> Array:
    """Expected values of the input columns in their own units, (N, columns): the inverse of `encode`.

    A column of labels gets the number of its likeliest level, in the order of its units (with two levels,
    0 or 1); columns that say nothing have their one value, or NaN. An input column of several flat ones has
    the first.
    """
    out = np.tile(np.array(coder.constants), (len(units), 1))
    best = np.full(out.shape, -np.inf)
    count = np.zeros(out.shape[1], int)
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
    return out[:, np.unique(coder.table.places, return_index=True)[1]]

"""From a user's table to the rows of a fit: columns of rules, columns of structure, and their scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.rectangle.params import FloatArray, IntArray, Labels, Rows
from nongauss.tables.encoder import ColumnCode, TableEncoder
from nongauss.tables.frame import as_pandas, read_input
from nongauss.tables.rows import canonical_rows

MOST_KNOTS = 2000
"""Distinct values from which a rank scale is interpolated."""

FEW_LABELS = 10
"""A column of more labels than these, most of which occur once, names rows: it makes no rule or cluster."""

_MISSING = 1e30  # stands for a gap while equal rows are sought


@persistable("rectangle.ColumnScale", "nongauss.rectangle.columns:ColumnScale")
class ColumnScale(NamedTuple):
    """Original values to scaled ones: (x / unit - mean) / sd, or through points (knots, heights) of ranks."""

    unit: float
    mean: float
    sd: float
    knots: FloatArray
    heights: FloatArray

    def apply(self, x: FloatArray) -> FloatArray:
        """Scaled values; NaN stays NaN."""
        if len(self.knots):
            return np.where(np.isnan(x), np.nan, np.interp(x, self.knots, self.heights))
        return (x / self.unit - self.mean) / self.sd


@persistable("rectangle.View", "nongauss.rectangle.columns:View")
class View(NamedTuple):
    """Some columns of the table: their encoder, their places, and the scales of those that hold numbers.

    `numeric` and `labels` are positions among the encoder's columns; columns that say nothing are in neither.
    """

    encoder: TableEncoder
    places: tuple[int, ...]
    numeric: tuple[int, ...]
    labels: tuple[int, ...]
    scales: tuple[ColumnScale, ...]

    @property
    def codes(self) -> tuple[ColumnCode, ...]:
        """Records of the columns used, numbers first."""
        return tuple(self.encoder.columns[i] for i in (*self.numeric, *self.labels))

    def read(self, X: Any, whole: TableEncoder, name: str, warn: bool = True) -> Cells:
        """These columns of a table, which may lack all others. Raises InputError."""
        columns = self.encoder.read(self._narrowed(X, whole, name), name, warn)
        n_rows = len(columns[0].missing)
        numbers = np.empty((n_rows, len(self.numeric)))
        for j, i in enumerate(self.numeric):
            numbers[:, j] = columns[i].values
        codes = np.empty((n_rows, len(self.labels)), dtype=np.intp)
        for j, i in enumerate(self.labels):
            codes[:, j] = np.asarray(columns[i].codes)
        return Cells(numbers, Labels(codes, tuple(len(self.encoder.columns[i].levels) for i in self.labels)))

    def scaled(self, numbers: FloatArray) -> FloatArray:
        """Original numbers (N, D) on the scale of the fit, in float32's steps."""
        out = np.empty(numbers.shape)
        for column, scale, x in zip(out.T, self.scales, numbers.T, strict=True):
            column[:] = scale.apply(x).astype(np.float32)
        return out + 0.0

    def _narrowed(self, X: Any, whole: TableEncoder, name: str) -> Any:
        """X without the columns that this view does not read."""
        frame = as_pandas(X)
        if frame is not None and whole.feature_names is not None and hasattr(frame, "columns"):
            known = {n for i, n in enumerate(whole.feature_names) if i not in set(self.places)}
            return frame[[column for column in frame.columns if column not in known]]
        table = read_input(X, name)
        if len(table.labels) == whole.n_features:
            source, chosen = table.source, list(self.places)
            return source.iloc[:, chosen] if isinstance(source, pd.DataFrame) else source[:, chosen]
        if len(table.labels) == len(self.places):
            return X
        raise InputError(
            f"X has {len(table.labels)} features, but {name} is expecting {whole.n_features} "
            f"features as input{'' if len(self.places) == whole.n_features else ' (or those of its rules)'}."
        )


class Cells(NamedTuple):
    """Cells of some columns in original units: numbers (N, D), NaN where missing, and labels."""

    numbers: FloatArray
    labels: Labels


def names_of_rows(views: Sequence[View]) -> list[str]:
    """Label columns that are in none of the views because most of their labels occur once."""
    columns = {i: c for v in views for i, c in zip(v.places, v.encoder.columns, strict=True)}
    used = {v.places[i] for v in views for i in v.labels}
    return [str(c.name) for i, c in sorted(columns.items()) if c.role == "labels" and i not in used]


def view(
    X: Any, whole: TableEncoder, places: tuple[int, ...], weight: FloatArray, scaling: str, name: str
) -> tuple[View, Cells]:
    """The columns at `places`, with scales learned from rows of positive weight."""
    names = None if whole.feature_names is None else tuple(whole.feature_names[i] for i in places)
    encoder = TableEncoder(names, tuple(whole.columns[i] for i in places))
    numeric = tuple(i for i, c in enumerate(encoder.columns) if c.role == "numeric" and c.sd != 0)
    most = max(FEW_LABELS, 0.5 * float(weight.sum()))
    labels = tuple(i for i, c in enumerate(encoder.columns) if c.role == "labels" and len(c.levels) <= most)
    bare = View(encoder, places, numeric, labels, ())
    cells = bare.read(X, whole, name, warn=False)
    scales = tuple(
        _scale(encoder.columns[i], x, weight, scaling) for i, x in zip(numeric, cells.numbers.T, strict=True)
    )
    return bare._replace(scales=scales), cells


def _scale(code: ColumnCode, x: FloatArray, weight: FloatArray, scaling: str) -> ColumnScale:
    none = np.zeros(0)
    if scaling == "standard":
        return ColumnScale(code.unit, code.mean, abs(code.sd), none, none)
    used = (weight > 0) & ~np.isnan(x)
    values, which = np.unique(x[used], return_inverse=True)
    mass = np.bincount(which, weight[used])
    height = (np.cumsum(mass) - 0.5 * mass) / mass.sum() - 0.5
    height /= np.sqrt(np.average(height**2, weights=mass))
    kept = np.unique(np.linspace(0, len(values) - 1, min(MOST_KNOTS, len(values))).astype(np.intp))
    return ColumnScale(code.unit, code.mean, abs(code.sd), values[kept], height[kept])


def places_of(chosen: Any, encoder: TableEncoder, parameter: str) -> tuple[int, ...]:
    """Positions of the columns that a parameter names, by name or number; None is all. Raises InputError."""
    if chosen is None:
        return tuple(range(encoder.n_features))
    items: Sequence[Any] = [chosen] if isinstance(chosen, str | int) else list(chosen)
    known = [code.name for code in encoder.columns]
    places = [_place(item, known, parameter) for item in items]
    if not places:
        raise InputError(f"{parameter} is empty; name at least one column, or give None for all.")
    if len(set(places)) < len(places):
        raise InputError(f"{parameter} names a column twice: {items}; name each once.")
    return tuple(places)


def _place(item: Any, known: list[str], parameter: str) -> int:
    if isinstance(item, str) and item in known:
        return known.index(item)
    is_number = isinstance(item, int | np.integer) and not isinstance(item, bool)
    if is_number and -len(known) <= item < len(known):
        return int(item) % len(known)
    shown = ", ".join(repr(name) for name in known[:8]) + (", …" if len(known) > 8 else "")
    raise InputError(f"{parameter} names the column {item!r}, which X does not have; it has {shown}.")


class Merged(NamedTuple):
    """Distinct rows ready to fit, and the original row (N,) that each of them was first seen in."""

    rows: Rows
    first: IntArray


def merge(rule: View, rule_cells: Cells, structure: View, cells: Cells, weight: FloatArray) -> Merged:
    """Scaled rows in canonical form: equal rows merged, ordered by content."""
    X, Y = rule.scaled(rule_cells.numbers), structure.scaled(cells.numbers)
    everything = np.hstack([X, Y, rule_cells.labels.codes, cells.labels.codes])
    merged = canonical_rows(np.nan_to_num(everything, nan=_MISSING), np.zeros((len(X), 0)), weight)
    kept = np.flatnonzero(merged.order >= 0)
    _, at = np.unique(merged.order[kept], return_index=True)
    first = kept[at]
    rows = Rows(X[first], rule_cells.labels.take(first), Y[first], cells.labels.take(first), merged.weight)
    return Merged(rows, first)


def n_distinct(numbers: FloatArray, labels: Labels) -> int:
    """How many different rows there are."""
    return len(np.unique(np.hstack([np.nan_to_num(numbers, nan=_MISSING), labels.codes]), axis=0))

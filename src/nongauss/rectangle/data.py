"""From a user's table to the rows of a fit: columns of rules, columns of structure, and their scales.

Axes: N rows, D numeric rule columns, L levels of all label rule columns together, P numeric structure
columns. "Scaled" means in standard deviations of the column, or on its rank scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.rectangle.gaps import GapPatterns, gap_patterns
from nongauss.rectangle.grain import column_grain
from nongauss.tables.column import Column
from nongauss.tables.column_code import ColumnCode
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.kinds.number import Scale
from nongauss.tables.rows import canonical_rows
from nongauss.tables.source import Encode, Source, itself, sample_table

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MOST_ROWS = 20_000
"""Most distinct rows that a model is learned from."""

MOST_KNOTS = 2000
"""Distinct values from which a rank scale is interpolated."""

FEW_LABELS = 10
"""A column of more labels than these, most of which occur once, names rows: it makes no rule or cluster."""

_MISSING = 1e30  # stands for a gap while equal rows are sought


class LevelCodes(NamedTuple):
    """Label columns: codes (N, C), -1 where missing, and the number of levels of each column."""

    codes: IntArray
    n_levels: tuple[int, ...]

    @property
    def offsets(self) -> IntArray:
        """Where the levels of each column begin among all levels."""
        return np.concatenate([[0], np.cumsum(self.n_levels)[:-1]]).astype(np.intp)[: len(self.n_levels)]

    def one_hot(self) -> FloatArray:
        """Levels as 0/1 columns (N, L); a missing cell has none."""
        out = np.zeros((len(self.codes), sum(self.n_levels)))
        for column, offset in zip(self.codes.T, self.offsets, strict=True):
            present = np.flatnonzero(column >= 0)
            out[present, offset + column[present]] = 1.0
        return out

    def take(self, rows: IntArray) -> LevelCodes:
        """The codes of the rows with these numbers."""
        return LevelCodes(self.codes[rows], self.n_levels)


class RawCells(NamedTuple):
    """Cells of some columns in original units: numbers (N, D), NaN where missing, and labels."""

    numbers: FloatArray
    labels: LevelCodes

    def take(self, rows: IntArray) -> RawCells:
        """The cells of the rows with these numbers."""
        return RawCells(self.numbers[rows], self.labels.take(rows))


class RectangleRows:
    """Rows, scaled, with their weights (N,). X (N, D) for the rules and Y (N, P) for the structure.

    NaN is a missing cell. `grain` (N, P) is the variance of what each value of Y stands for, 0 if not given.
    """

    def __init__(
        self,
        X: FloatArray,
        X_labels: LevelCodes,
        Y: FloatArray,
        Y_labels: LevelCodes,
        weight: FloatArray,
        grain: FloatArray | None = None,
    ):
        self.X, self.X_labels, self.Y, self.Y_labels, self.weight = X, X_labels, Y, Y_labels, weight
        self.grain = np.zeros(Y.shape) if grain is None else grain

    def __len__(self) -> int:
        return len(self.weight)

    def take(self, rows: IntArray) -> RectangleRows:
        """The rows with these numbers."""
        return RectangleRows(
            self.X[rows],
            self.X_labels.take(rows),
            self.Y[rows],
            self.Y_labels.take(rows),
            self.weight[rows],
            self.grain[rows],
        )

    @cached_property
    def gap_patterns(self) -> GapPatterns:
        """Which columns of Y are seen in each pattern of missing cells, and the rows of each."""
        return gap_patterns(self.Y)

    @cached_property
    def spread(self) -> FloatArray:
        """What the prior of the scatter is a multiple of, (P, P): the unit matrix unless another is set."""
        return np.eye(self.Y.shape[1])

    @cached_property
    def X_levels(self) -> FloatArray:
        """Levels of the label rule columns as 0/1 columns (N, L)."""
        return self.X_labels.one_hot()

    @cached_property
    def Y_levels(self) -> FloatArray:
        """Levels of the label structure columns as 0/1 columns (N, Ly)."""
        return self.Y_labels.one_hot()


@persistable("rectangle.ColumnScale", "nongauss.rectangle.columns:ColumnScale")
class ColumnScale(NamedTuple):
    """Original values to scaled ones: (x / unit - mean) / sd, or through points (knots, heights) of ranks.

    A mirrored column has a negative `sd`, and heights that fall.
    """

    unit: float
    mean: float
    sd: float
    knots: Float64[np.ndarray, " n"]
    heights: Float64[np.ndarray, " n"]

    @property
    def step(self) -> float:
        """The standard deviation in original units, positive."""
        return abs(self.sd) * self.unit

    @property
    def sign(self) -> int:
        """-1 for a mirrored column, else 1."""
        return -1 if self.sd < 0 else 1

    def apply(self, x: FloatArray) -> FloatArray:
        """Scaled values; NaN stays NaN."""
        if len(self.knots):
            return np.where(np.isnan(x), np.nan, np.interp(x, self.knots, self.heights))
        return Scale(self.unit, self.mean, self.sd).apply(x)

    def invert(self, z: float) -> float:
        """The original value of a scaled one; of a rank scale, within the range of the rows."""
        if len(self.knots):
            return float(np.interp(z, self.heights[:: self.sign], self.knots[:: self.sign]))
        return float((z * self.sd + self.mean) * self.unit)


@persistable("rectangle.View", "nongauss.rectangle.columns:View")
class ColumnView(NamedTuple):
    """Some columns of the table: their encoder, their places among all, and the scales of those with numbers.

    `numeric` and `labels` are positions among the encoder's columns; columns that say nothing are in neither.
    `grains` are the variances, scaled, within the least step between the values of each column of numbers;
    `atoms` (n, 2) are values that many rows of a column have, and the variances of what these stand for.
    """

    encoder: TableEncoder
    places: tuple[int, ...]
    numeric: tuple[int, ...]
    labels: tuple[int, ...]
    scales: tuple[ColumnScale, ...]
    grains: tuple[float, ...] = ()
    atoms: tuple[Float64[np.ndarray, "n 2"], ...] = ()

    @property
    def codes(self) -> tuple[ColumnCode, ...]:
        """Records of the columns used, numbers first."""
        return tuple(self.encoder.columns[i] for i in (*self.numeric, *self.labels))

    def read(self, X: Any, whole: TableEncoder, name: str, warn: bool = True) -> RawCells:
        """These columns of a table, which may lack all others. Raises InputError."""
        return self.cells(read_columns(X, whole, self.places, name, warn))

    def cells(self, columns: Mapping[int, Column]) -> RawCells:
        """The cells of the columns used, from the table's decoded columns by their places."""
        numbers = [columns[self.places[i]].values for i in self.numeric]
        codes = [columns[self.places[i]].codes for i in self.labels]
        n_rows = len(columns[self.places[0]].missing)
        n_levels = tuple(len(self.encoder.columns[i].levels) for i in self.labels)
        return RawCells(
            np.array(numbers, dtype=np.float64).reshape(len(numbers), n_rows).T.copy(),
            LevelCodes(np.array(codes, dtype=np.intp).reshape(len(codes), n_rows).T.copy(), n_levels),
        )

    def scaled(self, numbers: FloatArray) -> FloatArray:
        """Original numbers (N, D) on the scale of the fit, in float32's steps and within its range."""
        out, most = np.empty(numbers.shape), np.finfo(np.float32).max
        for column, scale, x in zip(out.T, self.scales, numbers.T, strict=True):
            column[:] = np.clip(scale.apply(x), -most, most).astype(np.float32)
        return out + 0.0

    def grain(self, scaled: FloatArray) -> FloatArray | None:
        """The variance of what each scaled number stands for, (N, D)."""
        if not self.grains:
            return None
        out = np.tile(self.grains, (len(scaled), 1))
        for column, x, atoms in zip(out.T, scaled.T, self.atoms, strict=False):
            for at, variance in atoms:
                column[x == at] = max(variance, column[0])
        return out


@persistable("rectangle.Views")
class ColumnViews(NamedTuple):
    """The columns that rules speak of, and those in which the rows of a cluster are alike."""

    rule: ColumnView
    structure: ColumnView

    @property
    def places(self) -> tuple[int, ...]:
        """Places in the table of all columns that are read."""
        return tuple(dict.fromkeys((*self.rule.places, *self.structure.places)))

    def read(
        self, X: Any, whole: TableEncoder, name: str, warn: bool = True
    ) -> tuple[RawCells, RectangleRows]:
        """Cells of the rule columns in original units, and all rows scaled, each of weight 1."""
        return self.scaled_rows(read_columns(X, whole, self.places, name, warn))

    def scaled_rows(self, columns: Mapping[int, Column]) -> tuple[RawCells, RectangleRows]:
        """Cells of the rule columns and scaled rows, from decoded columns by their places in the table."""
        cells, seen = self.rule.cells(columns), self.structure.cells(columns)
        X, Y = self.rule.scaled(cells.numbers), self.structure.scaled(seen.numbers)
        return cells, RectangleRows(X, cells.labels, Y, seen.labels, np.ones(len(X)), self.structure.grain(Y))


def read_columns(
    X: Any, whole: TableEncoder, places: tuple[int, ...], name: str, warn: bool = True
) -> dict[int, Column]:
    """Decoded columns of a table by their places; the table may lack all others. Raises InputError."""
    return dict(zip(places, whole.raw(X, name, warn, only=places), strict=True))


def _part_of(whole: TableEncoder, places: tuple[int, ...]) -> TableEncoder:
    """The encoder of the columns at some places."""
    inputs, names = dict.fromkeys(whole.places[i] for i in places), whole.feature_names
    own = None if names is None else tuple(names[i] for i in inputs)
    return TableEncoder(own, tuple(whole.columns[i] for i in places))


def names_of_rows(views: Sequence[ColumnView]) -> list[str]:
    """Label columns that are in none of the views because most of their labels occur once."""
    columns = {i: c for v in views for i, c in zip(v.places, v.encoder.columns, strict=True)}
    used = {v.places[i] for v in views for i in v.labels}
    return [str(c.name) for i, c in sorted(columns.items()) if c.role == "labels" and i not in used]


def learn_view(
    columns: Mapping[int, Column],
    whole: TableEncoder,
    places: tuple[int, ...],
    weight: FloatArray,
    scaling: str,
) -> ColumnView:
    """The view of the columns at `places`, with scales learned from rows of positive weight."""
    encoder = _part_of(whole, places)
    numeric = tuple(i for i, c in enumerate(encoder.columns) if c.role == "numeric" and c.sd != 0)
    most = max(FEW_LABELS, 0.5 * float(weight.sum()))
    labels = tuple(i for i, c in enumerate(encoder.columns) if c.role == "labels" and len(c.levels) <= most)
    scales = tuple(_scale(encoder.columns[i], columns[places[i]], weight, scaling) for i in numeric)
    grains = [
        column_grain(scale.apply(np.asarray(columns[places[i]].values)), weight, scaling)
        for i, scale in zip(numeric, scales, strict=True)
    ]
    steps, atoms = tuple(grain.step for grain in grains), tuple(grain.atoms for grain in grains)
    return ColumnView(encoder, places, numeric, labels, scales, steps, atoms)


def _scale(code: ColumnCode, column: Column, weight: FloatArray, scaling: str) -> ColumnScale:
    """Standard deviations about the mean; or ranks, spread evenly with mean 0 and mean square 1.

    Both are mirrored where the column's skew is negative, so that the fit is the same for a x + b, any a.
    """
    none = np.zeros(0)
    if scaling == "standard":
        return ColumnScale(code.unit, code.mean, code.sd, none, none)
    x = np.asarray(column.values)
    used = (weight > 0) & ~np.isnan(x)
    values, which = np.unique(x[used], return_inverse=True)
    mass = np.bincount(which, weight[used])
    height = (np.cumsum(mass) - 0.5 * mass) / mass.sum() - 0.5
    height /= np.sqrt(np.average(height**2, weights=mass))
    kept = np.unique(np.linspace(0, len(values) - 1, min(MOST_KNOTS, len(values))).astype(np.intp))
    return ColumnScale(code.unit, code.mean, code.sd, values[kept], np.sign(code.sd) * height[kept])


def places_of(chosen: Any, encoder: TableEncoder, parameter: str) -> tuple[int, ...]:
    """Places of the encoder's columns that a parameter names; None is all. Raises InputError.

    A name or number of a column of X is all columns that come from it; a name of their own, such as "day
    (month)" of the dates in "day", is that one.
    """
    if chosen is None:
        return tuple(range(len(encoder.columns)))
    items: Sequence[Any] = [chosen] if isinstance(chosen, str | int) else list(chosen)
    if not items:
        raise InputError(f"{parameter} is empty; name at least one column, or give None for all.")
    found = [place for item in items for place in _places_of_one(item, encoder, parameter)]
    if len(set(found)) < len(found):
        raise InputError(f"{parameter} names a column twice: {items}; name each once.")
    return tuple(found)


def _places_of_one(item: Any, encoder: TableEncoder, parameter: str) -> list[int]:
    """Places of the encoder's columns that one name or number stands for."""
    own = [code.name for code in encoder.columns]
    if isinstance(item, str) and item in own and item not in (encoder.feature_names or own):
        return [own.index(item)]
    column = _input_of(item, encoder, parameter)
    return [i for i, place in enumerate(encoder.places) if place == column]


def _input_of(item: Any, encoder: TableEncoder, parameter: str) -> int:
    """The number of the column of X that a parameter names."""
    known = encoder.feature_names or [code.name for code in encoder.columns]
    if isinstance(item, str) and item in known:
        return known.index(item)
    is_number = isinstance(item, int | np.integer) and not isinstance(item, bool)
    if is_number and -encoder.n_features <= item < encoder.n_features:
        return int(item) % encoder.n_features
    shown = ", ".join(repr(name) for name in known[:8]) + (", …" if len(known) > 8 else "")
    raise InputError(f"{parameter} names the column {item!r}, which X does not have; it has {shown}.")


class MergedRows(NamedTuple):
    """Distinct rows of weight above 0, scaled and in original units."""

    rows: RectangleRows
    cells: RawCells


def merge(views: ColumnViews, columns: Mapping[int, Column], weight: FloatArray) -> MergedRows:
    """Rows in canonical form: scaled, equal ones merged (with the first one's cells), ordered by content."""
    cells, rows = views.scaled_rows(columns)
    everything = np.hstack([rows.X, rows.Y, rows.X_labels.codes, rows.Y_labels.codes])
    merged = canonical_rows(np.nan_to_num(everything, nan=_MISSING), np.zeros((len(rows), 0)), weight)
    kept = np.flatnonzero(merged.order >= 0)
    _, at = np.unique(merged.order[kept], return_index=True)
    first = kept[at]
    distinct = rows.take(first)
    distinct.weight = merged.weight
    return MergedRows(distinct, cells.take(first))


def n_distinct(numbers: FloatArray, labels: LevelCodes) -> int:
    """How many different rows there are."""
    return len(np.unique(np.hstack([np.nan_to_num(numbers, nan=_MISSING), labels.codes]), axis=0))


def rows_to_fit(source: Source, whole: TableEncoder, name: str) -> tuple[Any, FloatArray]:
    """The rows that are learned from, and their weights: a small table in memory as it is, else a sample."""
    if source.in_memory:
        (part,) = source.each(itself)
        if len(part.X) <= MOST_ROWS:
            return part.X, part.weight
    sampled = sample_table(source, Encode(whole, None, name), MOST_ROWS)
    return sampled.table, sampled.rows.weight

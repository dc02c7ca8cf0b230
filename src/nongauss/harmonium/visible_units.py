"""The units of the visible layer that the columns of a table become: their kinds, view by view.

Label columns become one binary unit a level (one unit for two levels); numeric columns with two values are
binary, other numbers real (standardised, in sparse tables only scaled, clipped at 5) or counts (see
`KindTally`). Constant and empty columns say nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.records import persistable
from nongauss.harmonium.exponential_families import KINDS, RANGES, Layout, UnitBlock
from nongauss.tables.column import ColumnSummary, listed
from nongauss.tables.column_code import ColumnCode, names_rows
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.kinds.number import Moments
from nongauss.tables.learn import Learned

SMALL_COUNT, SPARSE = 20.0, 0.5
"""Whole numbers are counts if at least this share of them is 0 and the others have at most this mean."""

MOST_LEVELS = 255


@persistable("harmonium.Unit", "nongauss.harmonium.columns:Unit")
class VisibleUnit(NamedTuple):
    """One visible unit: flat column, label ("" for numbers), kind, and z = (x / unit - mean) / sd.

    `other` is the first label of a column of two, which has one unit, for the second.
    """

    column: int
    label: str
    kind: str
    unit: float = 1.0
    mean: float = 0.0
    sd: float = 1.0
    other: str = ""


@persistable("harmonium.Coder", "nongauss.harmonium.columns:Coder")
@dataclass(frozen=True)
class UnitCoder:
    """The D units of a table and their blocks, and what reads its columns.

    `labels` and `constants` are of the flat columns: their names, and the value of each column of numbers
    that has only one, NaN for others. `views`: the input columns of each view, in the order in which they
    were given. `encoder`: None in records that are older than it.
    """

    feature_names: tuple[str, ...] | None
    labels: tuple[str, ...]
    units: tuple[VisibleUnit, ...]
    layout: Layout
    constants: tuple[float, ...]
    views: dict[str, tuple[int, ...]]
    encoder: TableEncoder | None = None

    @cached_property
    def table(self) -> TableEncoder:
        """The encoder whose view `raw` gives the flat columns as the units take them."""
        if self.encoder is not None:
            return self.encoder
        codes = [ColumnCode(label, "constant") for label in self.labels]
        return TableEncoder(self.feature_names, _with_levels(codes, self.units))

    def check_fields(self) -> None:
        """Raises ValueError for units of no known kind, or of columns that are not there."""
        n_columns = len(self.labels)
        for unit in self.units:
            if not 0 <= unit.column < n_columns or unit.kind not in RANGES or not unit.sd or not unit.unit:
                raise ValueError(f"a unit of column {unit.column} of {n_columns} and kind {unit.kind!r}")

    @property
    def n_features(self) -> int:
        """Number of input columns."""
        return self.table.n_features

    @property
    def owners(self) -> NDArray[np.intp]:
        """The number of the input column of each unit: (D,)."""
        return np.array([self.table.places[unit.column] for unit in self.units], dtype=np.intp)

    @property
    def directions(self) -> NDArray[np.float64]:
        """1 of each unit that rises with its column, -1 where the column is mirrored: (D,)."""
        return np.sign([unit.sd for unit in self.units])

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """Names of the D units, such as "age" or "colour=red"."""
        return tuple(
            self.labels[unit.column] + (f"={unit.label}" if unit.label else "") for unit in self.units
        )


def _read_as_it_is(column: ColumnSummary) -> ColumnCode:
    """The code of a flat column that has no unit."""
    place, kind, part, origin = column.place, column.kind, column.part, column.origin
    return ColumnCode(column.name, "constant", place=place, kind=kind, part=part, origin=origin)


def _with_levels(codes: Sequence[ColumnCode], units: Sequence[VisibleUnit]) -> tuple[ColumnCode, ...]:
    """The codes of flat columns by which they are read as their units need them: numbers, or known levels."""
    known: dict[int, tuple[str, ...]] = {}
    for unit in units:
        named = (unit.other, unit.label) if unit.other else (unit.label,) if unit.label else ()
        known[unit.column] = known.get(unit.column, ()) + named
    out = list(codes)
    for j, levels in known.items():
        out[j] = replace(out[j], role="labels" if levels else "numeric", levels=levels, ranks=())
    return tuple(out)


class KindTally:
    """What is known of the numbers of a view after some of its columns: enough to tell its kind."""

    def __init__(self) -> None:
        self.n_cells = self.n_positive = 0.0
        self.total = 0.0
        self.whole, self.pairs = True, True

    def add(self, numbers: Moments) -> None:
        """One more column; a constant one tells nothing."""
        if numbers.low == numbers.high:
            return
        self.pairs = self.pairs and len(numbers.few) == 2
        self.whole = self.whole and numbers.low >= 0 and numbers.whole
        self.n_cells += numbers.weight
        self.n_positive += numbers.positive
        self.total += numbers.weight * numbers.unit * numbers.mean if self.whole else 0.0

    @property
    def counts(self) -> bool:
        """Whole numbers from 0, at least half of them 0, the others of mean 20 at most, as words in texts."""
        if self.pairs or not self.whole or not self.n_positive:
            return False
        return self.n_positive <= SPARSE * self.n_cells and self.total <= SMALL_COUNT * self.n_positive


def resolve_views(
    views: Any, n_columns: int, names: Sequence[str]
) -> dict[str, tuple[tuple[int, ...], str | None]]:
    """Columns and kind (None: to be detected) of each view. Raises InputError for a view that cannot be."""
    if views is None:
        return {"all": (tuple(range(n_columns)), None)}
    if not isinstance(views, Mapping) or not views:
        raise InputError(
            f"views must be a mapping from names to columns, got {views!r}; write "
            "{'text': slice(0, 100), 'colour': ['red', 'green']}."
        )
    place = {name: number for number, name in enumerate(names)}
    out, owner = {}, dict[int, str]()
    for view, given in views.items():
        is_pair = isinstance(given, tuple) and len(given) == 2 and str(given[1]) in KINDS
        columns, kind = given if is_pair else (given, None)
        chosen = _columns_of_view(view, columns, n_columns, place)
        for column in chosen:
            if column in owner:
                raise InputError(
                    f"Column {names[column]!r} is in the views {owner[column]!r} and {view!r}; "
                    "give it to one."
                )
            owner[column] = view
        out[str(view)] = (chosen, kind)
    return out


def _columns_of_view(view: Any, given: Any, n_columns: int, place: Mapping[str, int]) -> tuple[int, ...]:
    """The numbers of the columns that a user gave for a view. Raises InputError where there are none such."""
    try:
        chosen = _numbers(given, n_columns, place)
    except TypeError:
        raise InputError(
            f"View {view!r} must name its columns by a slice, a list or a mask, got {given!r}; "
            "a kind, 'binary', 'real' or 'counts', goes beside them: (columns, 'binary')."
        ) from None
    if not chosen or min(chosen) < 0 or max(chosen) >= n_columns:
        raise InputError(
            f"View {view!r} names columns that X does not have, or none: {given!r}; correct them."
        )
    return chosen


def _numbers(given: Any, n_columns: int, place: Mapping[str, int]) -> tuple[int, ...]:
    """What a slice, a list of numbers or names, or a mask of all columns chooses. TypeError for others."""
    if isinstance(given, slice):
        return tuple(range(*given.indices(n_columns)))
    if isinstance(given, str):
        raise TypeError
    entries = list(given)
    if all(isinstance(entry, bool | np.bool_) for entry in entries):
        return tuple(np.flatnonzero(entries).tolist()) if len(entries) == n_columns else ()
    return tuple(place.get(entry, -1) if isinstance(entry, str) else index(entry) for entry in entries)


def unit_coder(table: Learned, views: Any, is_sparse: bool = False) -> UnitCoder:
    """The units of a table that has been learned. Warns about columns that are ignored; InputError.

    Numbers of a sparse table are scaled and not centred, so that its zeros stay zeros.
    """
    columns = table.columns
    names = [column.name for column in table.summary.inputs]
    units: list[VisibleUnit] = []
    layout: list[UnitBlock] = []
    by_view = resolve_views(views, len(names), names)
    told: set[int] = set()
    of_place: dict[int, list[int]] = {}
    for j, column in enumerate(columns):
        of_place.setdefault(column.place, []).append(j)
    for view, (chosen, kind) in by_view.items():
        flat = [j for place in chosen for j in of_place.get(place, ())]
        told.update(flat)
        own = _view_units(columns, [j for j in flat if not names_rows(columns[j], table.counted)], kind, view)
        for name in KINDS:
            some = [unit for unit in own if unit.kind == name]
            if some:
                layout.append(UnitBlock(view, name, len(units), len(units) + len(some)))
                units.extend(some)
    if is_sparse:
        units = [unit._replace(mean=0.0) if unit.kind == "real" else unit for unit in units]
    used = {unit.column for unit in units}
    idle = tuple(np.nan if j in used else _only_value(column) for j, column in enumerate(columns))
    _warn_ignored([columns[j].name for j in sorted(told - used) if table.is_frame or np.isnan(idle[j])])
    encoder = TableEncoder(table.names, _with_levels([_read_as_it_is(column) for column in columns], units))
    if not units:
        units, layout = (
            [VisibleUnit(0, "", "real", sd=np.inf)],
            [UnitBlock(next(iter(by_view)), "real", 0, 1)],
        )
    owned = {view: chosen for view, (chosen, _) in by_view.items()}
    labels = tuple(column.name for column in columns)
    return UnitCoder(table.names, labels, tuple(units), tuple(layout), idle, owned, encoder)


def _warn_ignored(names: Sequence[str]) -> None:
    """Say which columns become no unit."""
    if names:
        warnings.warn(
            f"X has columns that are ignored, with one value, none, too many labels, or labels that are "
            f"different in every row or nearly so: {listed(names)}; to keep labels, group them into fewer.",
            NongaussWarning,
            stacklevel=6,
        )


def _only_value(column: ColumnSummary) -> float:
    """The one value of a constant column of numbers, NaN for others."""
    numbers = column.numbers
    return numbers.low if numbers is not None and numbers.low == numbers.high else np.nan


def _view_units(
    columns: Sequence[ColumnSummary], chosen: Sequence[int], kind: str | None, view: str
) -> list[VisibleUnit]:
    """The units of a view. Numbers of one view are counts together or not at all."""
    tally = KindTally()
    for j in chosen:
        numbers = columns[j].numbers
        if kind is None and numbers is not None:
            tally.add(numbers)
    kind = "counts" if kind is None and tally.counts else kind
    units: list[VisibleUnit] = []
    for j in chosen:
        column = columns[j]
        if column.levels is not None:
            units += _label_units(j, tuple(column.levels))
        elif column.numbers is not None:
            _check_kind(column.numbers, kind, column.name, view)
            unit = _number_unit(j, column.numbers, kind)
            units += [] if unit is None else [unit]
    return units


def _label_units(j: int, levels: tuple[str, ...]) -> list[VisibleUnit]:
    """The units of a column of labels: none of one level or too many, one of two, else one a level."""
    if not 2 <= len(levels) <= MOST_LEVELS:
        return []
    if len(levels) == 2:
        return [VisibleUnit(j, levels[1], "binary", other=levels[0])]
    return [VisibleUnit(j, level, "binary") for level in levels]


def _check_kind(numbers: Moments, kind: str | None, column: str, view: str) -> None:
    """Raises InputError where a column holds values that the kind given for its view cannot have."""
    if kind not in ("binary", "counts"):
        return
    too_high = kind == "binary" and numbers.high > 1.0
    if numbers.low < 0.0 or too_high or (kind == "counts" and not numbers.whole):
        rule = "0, 1 or between" if kind == "binary" else "whole and not negative"
        odd = numbers.low if numbers.low < 0.0 else numbers.high if too_high else numbers.fraction
        raise InputError(
            f"Column {column!r} of view {view!r} holds {odd:g}, but values of kind {kind!r} "
            f"are {rule}; leave the kind out, or name another one."
        )


def _number_unit(j: int, numbers: Moments, kind: str | None) -> VisibleUnit | None:
    """The unit of a column of numbers: as they are, two values at 0 and 1, or standardised; None of one."""
    low, high = numbers.low, numbers.high
    if low == high:
        return None
    if kind in ("counts", "binary"):
        return VisibleUnit(j, "", kind)
    if kind is None and len(numbers.few) == 2:
        half = 0.5 * low + 0.5 * high
        unit = max(abs(low), abs(high))
        return VisibleUnit(j, "", "binary", unit, low / unit, 2.0 * (half / unit - low / unit))
    scale = numbers.scale()
    return VisibleUnit(j, "", "real", scale.unit, scale.mean, scale.sd) if scale.sd else None

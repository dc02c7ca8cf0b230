"""Values along one column of a table at which a model is asked, row by row, and how they stand on an axis."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.report.metrics import FloatArray
from nongauss.report.plots.calendar import hidden_cycles, nearest_of_level, same_phase
from nongauss.report.plots.style import SMALL
from nongauss.tables.column import Column
from nongauss.tables.frame import InputTable
from nongauss.tables.kinds import kind_of
from nongauss.tables.kinds.date import DateFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LEVELS = 12
_THOUSANDS = re.compile(r"(?<![\d.])\d{5,15}(?!\d)")
_NUMBER_KINDS = ("floating", "integer", "mixed-integer-float", "decimal")


@dataclass(frozen=True)
class Grid:
    """What is asked along a column: `values` (G,), and for each of them and each row a cell.

    Cells are numbers (G, N) of `cells`. `axis`: what a display holds of its axis.
    """

    values: pd.Series[Any]
    cells: pd.Series[Any]
    at: npt.NDArray[np.intp]
    axis: dict[str, Any]

    def cells_at(self, numbers: npt.NDArray[np.intp]) -> pd.Series[Any]:
        """The cells of all rows at some of the values, one value after the other."""
        return self.cells.iloc[self.at[numbers].ravel()]


def grid_of(every: InputTable, rows: InputTable, place: int, size: int) -> Grid:
    """The grid of a column of a table, for some of its rows."""
    cells = pd.Series(every.raw(place)).infer_objects()
    dates = _dates(every, place)
    if dates is not None:
        own = rows.column(place).values
        assert own is not None
        return _along_dates(cells, dates, own, size)
    numbers = _numbers(cells)
    if numbers is not None:
        return _same_for_all(_steps(numbers, size), len(rows), {"observed": numbers})
    levels, n_levels = _levels(every, place, cells)
    return _same_for_all(levels, len(rows), {"n_levels": n_levels})


def parts_of(every: InputTable, place: int) -> list[str]:
    """The parts of the calendar that come again in a column of dates; none of other columns."""
    dates = _dates(every, place)
    return [] if dates is None else dates.parts


def grid_of_part(every: InputTable, rows: InputTable, place: int, part: str) -> Grid:
    """The grid of a part of the calendar, such as the weekday, of a column of dates that has it.

    Each row gets the date nearest to its own that has the weekday, month or hour.
    """
    dates = _dates(every, place)
    assert dates is not None
    days, first = np.unique(dates.observed, return_index=True)
    column, own = kind_of("date").flat(every.column(place), part, 0.0), rows.column(place).values
    assert column.codes is not None
    assert own is not None
    present = np.flatnonzero(np.isfinite(dates.values))[first]
    codes = column.codes[present]
    levels = np.unique(codes)
    own = _known_days(own, dates.observed)
    at = present[nearest_of_level(days, codes, own, levels.tolist(), part)]
    names = pd.Series([column.levels[level] for level in levels])
    cells = pd.Series(every.raw(place)).infer_objects()
    return Grid(names, cells, at, {"n_levels": len(levels)})


def _same_for_all(values: pd.Series[Any], n_rows: int, axis: dict[str, Any]) -> Grid:
    """A grid whose value is that of every row."""
    return Grid(values, values, np.repeat(np.arange(len(values))[:, None], n_rows, axis=1), axis)


def _along_dates(cells: pd.Series[Any], dates: _DateAxis, own: FloatArray, size: int) -> Grid:
    """A grid of dates, or of numbers as text; each row keeps its place in cycles that the grid cannot show.

    The values stand at the mean of the dates that the rows were given.
    """
    places = _own_steps(dates.observed, size)
    hidden = hidden_cycles(dates.parts, places)
    axis: dict[str, Any] = {"observed": dates.observed, "places": places, "shown": dates.shown}
    first = np.array(dates.first_rows(places), dtype=np.intp)
    values = cells.iloc[first]
    if not hidden:
        return Grid(values, cells, np.repeat(first[:, None], len(own), axis=1), axis)
    days, place = np.unique(dates.observed, return_index=True)
    number = np.flatnonzero(np.isfinite(dates.values))[place]
    chosen = same_phase(days, _known_days(own, dates.observed), places, hidden)
    middle = days[chosen].mean(axis=1)
    if (np.diff(middle) > 0).all():
        axis["places"] = middle
    axis["note"] = f"each row keeps its {' and '.join(hidden)}"
    return Grid(values, cells, number[chosen], axis)


def _known_days(own: FloatArray, observed: FloatArray) -> FloatArray:
    """The days of rows (N,), those of others where they are missing."""
    others = observed[np.arange(len(own)) * max(1, len(observed) // max(len(own), 1)) % len(observed)]
    out: FloatArray = np.where(np.isfinite(own), own, others)
    return out


def _numbers(cells: pd.Series[Any]) -> FloatArray | None:
    """The cells that are not missing, if they are numbers; two numbers, such as 0 and 1, are labels."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return None
    if pd.api.types.infer_dtype(cells, skipna=True) not in _NUMBER_KINDS:
        return None
    numbers = cells.dropna().to_numpy(dtype=np.float64)
    return None if 1 <= len(np.unique(numbers)) <= 2 else numbers


@dataclass(frozen=True)
class _DateAxis:
    """Dates, or numbers as text, as numbers: those of all cells (N,), NaN where missing; the text of one."""

    values: FloatArray
    shown: Callable[[float], str]
    parts: list[str]

    @property
    def observed(self) -> FloatArray:
        """The numbers of the cells that are not missing."""
        return self.values[np.isfinite(self.values)]

    def first_rows(self, places: FloatArray) -> list[int]:
        """For each of these numbers, the first row that has it."""
        return [int(np.argmax(self.values == place)) for place in places]


def _dates(rows: InputTable, place: int) -> _DateAxis | None:
    """The axis of dates, in days since 1970, or of numbers as text; None of others and of no kind."""
    try:
        column = rows.column(place)
    except (InputError, TypeError):  # a model of another library may know what the cells are
        return None
    if column.kind not in ("date", "quantity") or column.values is None or column.missing.all():
        return None
    kind, present = kind_of(column.kind), ~column.missing
    facts = kind.summarise(column.take(present), np.ones(int(present.sum())))
    (days, *_) = kind.columns(column.name, facts, gaps=False)
    parts = list(facts.repeated()) if isinstance(facts, DateFacts) else []

    def shown(day: float) -> str:
        text = kind.shown(day - days.origin, days.part, days.origin)
        return text if kind.name == "date" else _THOUSANDS.sub(lambda whole: f"{int(whole[0]):,}", text)

    return _DateAxis(column.values, shown, parts)


def _own_steps(numbers: FloatArray, size: int) -> FloatArray:
    """The numbers that are nearest to the even places of `_steps`, in order, each once."""
    own = np.unique(numbers)
    wanted = _steps(numbers, size).to_numpy(dtype=np.float64)
    return np.unique(own[np.abs(own[:, None] - wanted).argmin(axis=0)])


def _steps(numbers: FloatArray, size: int) -> pd.Series[Any]:
    """`size` even places from the 5 % to the 95 % quantile, or the numbers themselves if they are fewer."""
    own = np.unique(numbers)
    if len(own) <= size:
        return pd.Series(own)
    low, high = np.quantile(numbers, [0.05, 0.95])
    return pd.Series(np.linspace(low, high, size) if high > low else np.linspace(own[0], own[-1], size))


def _levels(rows: InputTable, place: int, cells: pd.Series[Any]) -> tuple[pd.Series[Any], int]:
    """The most frequent labels, and how many there are.

    Grades, ranges of numbers, ordered categories and numbers stand in their order, others by frequency. Of
    pairs of numbers there are those at even places in the order of the first and second.
    """
    pairs = _pairs_in_order(rows, place)
    if pairs is not None:
        return cells.iloc[pairs[0]], pairs[1]
    known = _label_column(rows, place)
    if known is None:
        counts = cells.value_counts()
        grid = pd.Series(counts.index[counts.to_numpy() > 0][:_MOST_LEVELS])
        numeric = pd.api.types.is_numeric_dtype(grid.dtype)
        return grid.sort_values(ignore_index=True) if numeric else grid, int(cells.nunique())
    assert known.codes is not None
    count = np.bincount(known.codes[known.codes >= 0], minlength=len(known.levels))
    found = np.argsort(-count, kind="stable")[: min(_MOST_LEVELS, int((count > 0).sum()))]
    facts = kind_of("label").summarise(known.take(~known.missing), np.ones(int(count.sum())))
    (summary,) = kind_of("label").columns(known.name, facts, gaps=False)
    if summary.order is not None:
        rank = {level: number for number, level in enumerate(summary.order)}
        found = np.array(sorted(found, key=lambda code: rank.get(known.levels[code], len(rank))), np.intp)
    return cells.iloc[[_spelled_so(cells, known, code) for code in found]], int((count > 0).sum())


def _pairs_in_order(rows: InputTable, place: int) -> tuple[npt.NDArray[np.intp], int] | None:
    """Rows with pairs at even places in their order, and how many different pairs; None of other columns."""
    try:
        column = rows.column(place)
    except (InputError, TypeError):  # a model of another library may know what the cells are
        return None
    if column.kind != "pair" or column.codes is None:
        return None
    codes, first = np.unique(column.codes, return_index=True)
    row_of = {int(code): row for code, row in zip(codes, first, strict=True) if code >= 0}
    in_order = sorted(row_of, key=lambda code: _numbers_in(column.levels[code]))
    chosen = in_order
    if len(in_order) > _MOST_LEVELS:
        count = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))[in_order]
        at = np.searchsorted(np.cumsum(count) / count.sum(), np.linspace(0.05, 0.95, _MOST_LEVELS))
        chosen = [in_order[i] for i in np.unique(at)]
    return np.array([row_of[code] for code in chosen], dtype=np.intp), len(in_order)


def _numbers_in(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def _label_column(rows: InputTable, place: int) -> Column | None:
    """A column of labels as its kind reads it; None of others and of no kind."""
    try:
        column = rows.column(place)
    except (InputError, TypeError):  # a model of another library may know what the cells are
        return None
    return column if column.kind == "label" and column.codes is not None else None


def _spelled_so(cells: pd.Series[Any], column: Column, code: int) -> int:
    """The first row with a level, spelled as it is if there is one."""
    assert column.codes is not None
    rows = np.flatnonzero(column.codes == code)
    own = (row for row in rows if str(cells.iloc[row]) == column.levels[code])
    return int(next(own, rows[0]))


SLANT = 20.0
"""Degrees of dates along an axis."""

_PER_LETTER = 0.065  # inches that a letter of the small type takes


def are_crowded(texts: Sequence[str]) -> bool:
    """Are there too many letters to stand side by side along an axis?"""
    return sum(len(text) + 2 for text in texts if text) > 40


def named_every(names: Sequence[str]) -> list[str]:
    """The names along an axis; of more than labels have, such as 24 hours, every so many, the others ""."""
    every = 1
    if len(names) > _MOST_LEVELS:
        every = next((step for step in (2, 3, 4) if not are_crowded(names[::step])), 6)
    return [name if number % every == 0 else "" for number, name in enumerate(names)]


def depth_of(texts: Sequence[str], degrees: float) -> float:
    """Inches below an axis that texts take which are turned so far."""
    return _PER_LETTER * max(map(len, texts), default=0) * float(np.sin(np.radians(degrees)))


def print_by(shown: Callable[[float], str], ax: Axes, observed: FloatArray) -> None:
    """Ticks of the x axis in the words of the column's kind, at whole numbers where all values are whole."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    whole = bool((observed == np.round(observed)).all())
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=whole))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(float(f"{value:.12g}"))))
    ax.tick_params(axis="x", labelrotation=SLANT, labelsize=SMALL)

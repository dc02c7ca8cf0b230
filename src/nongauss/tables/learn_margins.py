"""The distribution of each column that can be filled, learned from the cells that are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nongauss.tables.column import Column
from nongauss.tables.column_code import ColumnCode
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.kinds.label import FEW_ROWS
from nongauss.tables.kinds.quantity import SPAN
from nongauss.tables.margin_tails import Line, with_tails
from nongauss.tables.margins import BULK, MOST_DIGITS, TIED, FloatArray, Margin

MOST_ATOMS = 100
"""A column of at most so many values, each of which comes twice on average, has these values alone."""

MOST_KNOTS, LEAST_KNOTS, CELLS_A_KNOT = 200, 24, 8
"""Values between which the distribution of a column of numbers is linear: one for so many cells."""

TIME_ERROR, TENTH = 1e-4, 0.1
"""Part of a step of time by which days as doubles may be off; decimal steps in which people write days."""


def learn_margins(
    encoder: TableEncoder, columns: list[Column], weight: FloatArray
) -> tuple[tuple[Margin, ...], FloatArray]:
    """The margins of the columns of a table that can be filled, and their cells (N, J), NaN where missing.

    One of each input column: of a date its days, none of a column that is empty or whose texts nearly all
    differ.
    `columns` are the flat columns by `TableEncoder.raw`, `weight` (N,) how often a row counts.
    """
    margins = []
    places = encoder.places
    for flat, column in enumerate(columns):
        code = encoder.columns[flat]
        if flat and places[flat] == places[flat - 1]:
            continue  # parts of a date follow from its days
        margin = _margin(flat, code, column, weight)
        if margin is not None:
            margins.append(margin)
    return tuple(margins), cells_of(tuple(margins), columns)


def cells_of(margins: tuple[Margin, ...], columns: list[Column]) -> FloatArray:
    """Cells (N, J) of flat columns as the margins have them: numbers, or those of levels, or NaN."""
    n_rows = columns[0].n_rows if columns else 0
    out = np.full((n_rows, len(margins)), np.nan)
    for j, margin in enumerate(margins):
        out[:, j] = _numbers(columns[margin.flat], margin.labels) + margin.origin
    return out


def _numbers(column: Column, labels: tuple[str, ...]) -> FloatArray:
    """The cells of a flat column: numbers, or numbers of `labels`; NaN where missing or of none of these."""
    if column.codes is None:
        assert column.values is not None
        return column.values
    place = {label: float(number) for number, label in enumerate(labels)}
    table = np.array([*(place.get(level, np.nan) for level in column.levels), np.nan])
    found: FloatArray = table[column.codes]
    return found


def _margin(flat: int, code: ColumnCode, column: Column, weight: FloatArray) -> Margin | None:
    """The margin of one flat column, None where it cannot be filled."""
    if code.role in ("empty", "identifier"):
        return None
    labels: tuple[str, ...] = ()
    if column.codes is not None:
        levels = code.levels or column.levels
        order = np.argsort(code.ranks) if code.ranks else np.arange(len(levels))
        labels = tuple(levels[i] for i in order)
    values = _numbers(column, labels)
    present = ~np.isnan(values) & (weight > 0)
    if not present.any():
        return None
    x, group = np.unique(values[present], return_inverse=True)
    if code.levels and not code.ranks and len(x) > FEW_ROWS and present.sum() < 2 * len(x):
        return None  # texts that name rows, as fewer than two have the same one
    origin = code.origin if code.kind == "date" else 0.0
    shares = np.bincount(group, weights=weight[present]).astype(np.float64)
    is_whole = bool(labels) or len(x) == 1 or (len(x) <= MOST_ATOMS and present.sum() >= 2 * len(x))
    if labels:
        shares = np.bincount(x.astype(np.intp), weights=shares, minlength=len(labels)).astype(np.float64)
        x = np.arange(len(labels), dtype=np.float64)
    line = _steps(x, shares) if is_whole else _line(x, shares, float(present.sum()), _reaches(code))
    step = 0.0 if labels else _step_of(x)
    if code.kind == "date" and code.part.startswith("day"):
        step = 1.0
    elif code.kind == "date" or (code.part == SPAN and step < TENTH):
        step = _step_of_time(x + origin)
    elif code.kind == "clock" and np.allclose(60.0 * x, np.round(60.0 * x), rtol=0.0, atol=1e-6):
        step = 1.0 / 60.0  # times of whole minutes
    edge, of_code = line.edge + origin, (flat, code.name, labels, bool(code.ranks))
    return Margin(*of_code, edge, line.below, step, is_whole, origin, line.tails)


def _reaches(code: ColumnCode) -> bool:
    """May cells lie far beyond what was seen? Not dates, times of day and durations."""
    return code.kind not in ("date", "clock")


def _steps(x: FloatArray, mass: FloatArray) -> Line:
    """Edges and shares below of values that all have probabilities of their own."""
    upper = np.cumsum(mass) / mass.sum()
    upper[-1] = 1.0
    below = np.stack([np.append(0.0, upper[:-1]), upper], axis=1).ravel()
    return Line(np.repeat(x, 2), below, (0, 0))


def _line(x: FloatArray, mass: FloatArray, n_cells: float, reaches: bool) -> Line:
    """Edges and shares below of numbers: linear between middles of single values, jumps at frequent ones."""
    share = mass / mass.sum()
    upper = np.cumsum(share)
    lower = upper - share
    jumps = share >= max(TIED, 2.0 / n_cells)
    middle = 0.5 * (lower + upper)
    kept = _are_knots(x, middle, jumps, n_cells)
    edges, below = [], []
    for value, low, high, mid, jump in zip(
        x[kept], lower[kept], upper[kept], middle[kept], jumps[kept], strict=True
    ):
        edges += [value, value] if jump else [value]
        below += [low, high] if jump else [mid]
    if jumps[-1]:
        below[-1] = 1.0
    return with_tails(np.array(edges), np.maximum.accumulate(np.clip(below, 0.0, 1.0)), reaches)


def _are_knots(
    x: FloatArray, middle: FloatArray, jumps: NDArray[np.bool_], n_cells: float
) -> NDArray[np.bool_]:
    """Which values (Q,), whose places are `middle`, are edges: ends, jumps, one for so many cells.

    Both sides of a gap wider than the bulk of the values, too: else the values before a lone far one would be
    spread over the gap.
    """
    cell = np.floor(middle * np.clip(n_cells / CELLS_A_KNOT, LEAST_KNOTS, MOST_KNOTS))
    kept: NDArray[np.bool_] = jumps | np.append(True, cell[1:] != cell[:-1])
    low, high = np.interp(BULK, middle, x)
    with np.errstate(over="ignore"):
        is_gap = (np.diff(x) > high - low) & (high > low)
    kept[:-1] |= is_gap
    kept[1:] |= is_gap
    kept[[0, -1]] = True
    return kept


def _step_of(x: FloatArray) -> float:
    """The power of ten, 1 at most, of which all values are multiples; 0 where there is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        for digits in range(MOST_DIGITS + 1):
            if np.array_equal(np.round(x, digits), x):
                return float(10.0**-digits)
    return 0.0


def _step_of_time(days: FloatArray) -> float:
    """The day, hour, minute or second of which all times are multiples; 0 where there is none."""
    for step in (1.0, 1.0 / 24.0, 1.0 / 1440.0, 1.0 / 86_400.0):
        if np.abs(days / step - np.round(days / step)).max() < TIME_ERROR:
            return step
    return 0.0

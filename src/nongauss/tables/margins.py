"""What is known of each column by itself: its distribution, by which any cell is a place between 0 and 1.

A margin turns cells into normal scores and places back into cells, so that a model of scores speaks of
columns of every kind in their own units: a value is never one that the column cannot have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray
from scipy.special import ndtri

from nongauss.core.records import persistable
from nongauss.tables.column import Column
from nongauss.tables.column_code import ColumnCode
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.kinds.label import FEW_ROWS
from nongauss.tables.kinds.quantity import SPAN
from nongauss.tables.rows import bits_of, content_hash, mixed_bits, rounded

FloatArray = NDArray[np.float64]

MOST_ATOMS = 100
"""A column of at most so many values, each of which comes twice on average, has these values alone."""

MOST_KNOTS, LEAST_KNOTS, CELLS_A_KNOT = 200, 24, 8
"""Values between which the distribution of a column of numbers is linear: one for so many cells."""

TIED = 0.02
"""A value with at least this share of the cells is an interval of scores, a rarer one its middle."""

_LARGE = 1e307
"""Differences of such numbers may be beyond a double."""

BULK = (0.1, 0.9)
"""Shares of cells below and up to the bulk of a column of numbers."""

OUTERMOST = 0.25
"""Part of the share of the last stretch beyond which all numbers have one score."""

TIME_ERROR, TENTH = 1e-4, 0.1
"""Part of a step of time by which days as doubles may be off; decimal steps in which people write days."""

MOST_DIGITS = 6
"""Decimals up to which values are taken for rounded."""


@persistable("tables.Margin")
@dataclass(frozen=True, eq=False)
class Margin:
    """The distribution of one column: `edge` (Q,) ascending, the share `below` (Q,) of cells up to there.

    Between two edges it is linear; at an edge that comes twice it jumps: that value has a probability of its
    own. `flat`: the number of the flat column. `labels`: of a column of labels, whose edges are the numbers
    of the labels. `step`: cells are multiples of it; 0 where they are not. `is_whole`: only edges are values.
    `origin`: what is added to the numbers of the flat column.
    """

    flat: int
    name: str
    labels: tuple[str, ...]
    is_ordered: bool
    edge: Float64[np.ndarray, " Q"]
    below: Float64[np.ndarray, " Q"]
    step: float
    is_whole: bool
    origin: float = 0.0

    @property
    def n_values(self) -> int:
        """How many different values the edges are."""
        return len(np.unique(self.edge))

    @property
    def is_label(self) -> bool:
        """Are the cells labels without an order?"""
        return bool(self.labels) and not self.is_ordered

    @property
    def score_edges(self) -> FloatArray:
        """Normal scores of the edges: (Q,), from -inf to inf."""
        scores: FloatArray = ndtri(self.below)
        return scores

    def shares(self) -> FloatArray:
        """The share of each value of a column that only has its edges: (L,)."""
        shares: FloatArray = self.below[1::2] - self.below[::2]
        return shares

    def span(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shares of cells below and up to each of these values (N,): equal unless the value has its own."""
        last = np.searchsorted(self.edge, values, side="right")
        first = np.searchsorted(self.edge, values, side="left")
        return self._share(values, first), self._share(values, last)

    @property
    def _unit(self) -> float:
        """What edges are multiplied by before they are subtracted: 1, less where that would overflow."""
        return 0.5 if np.abs(self.edge).max(initial=0.0) > _LARGE else 1.0

    def _share(self, values: FloatArray, after: NDArray[np.intp]) -> FloatArray:
        """The share up to values (N,), the edge before and the edge `after` each being known."""
        right = np.clip(after, 0, len(self.edge) - 1)
        left = np.clip(after - 1, 0, len(self.edge) - 1)
        unit, inside_of = self._unit, np.clip(values, self.edge[:1], self.edge[-1:])
        edge = unit * self.edge
        width = edge[right] - edge[left]
        part = np.where(width > 0, (unit * inside_of - edge[left]) / np.where(width > 0, width, 1.0), 0.0)
        part = np.clip(part, 0.0, 1.0)
        inside = self.below[left] + part * (self.below[right] - self.below[left])
        return np.where(after <= 0, 0.0, np.where(after >= len(self.edge), 1.0, inside))

    def scores(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The interval of scores of each value (N,), NaN where missing: two equal numbers but for ties.

        A number beyond those that were seen is as extreme as one in `OUTERMOST` of the last stretch: nothing
        tells how much rarer it is.
        """
        low, high = self.span(values)
        middle = np.clip(0.5 * (low + high), *self._ends)
        is_tied = high - low >= TIED
        first, last = np.where(is_tied, low, middle), np.where(is_tied, high, middle)
        missing = np.isnan(values)
        return np.where(missing, np.nan, ndtri(first)), np.where(missing, np.nan, ndtri(last))

    @property
    def _ends(self) -> tuple[float, float]:
        """The least and the largest share for which a score is given."""
        first, last = OUTERMOST * self.below[1], 1.0 - OUTERMOST * (1.0 - self.below[-2])
        return max(float(first), 1e-9), min(float(last), 1.0 - 1e-9)

    def log_slope(self, values: FloatArray) -> FloatArray:
        """Log of the density, or of the probability of its own, of values (N,); NaN where missing.

        Beyond all edges the density of numbers falls off exponentially over the length of the last stretch.
        """
        low, high = self.span(values)
        after = np.clip(np.searchsorted(self.edge, values, side="right"), 1, len(self.edge) - 1)
        unit = self._unit
        width = unit * self.edge[after] - unit * self.edge[after - 1]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = unit * (self.below[after] - self.below[after - 1])
            density = np.where(width > 0, np.log(share) - np.log(width), -np.inf)  # 1 / width may overflow
            own = np.where(high > low, np.log(high - low), density)
            return own - self.beyond(values) * unit / np.where(width > 0, width, np.inf)

    def beyond(self, values: FloatArray) -> FloatArray:
        """How far values (N,) lie beyond all edges."""
        found: FloatArray = np.maximum(self.edge[0] - values, 0.0) + np.maximum(values - self.edge[-1], 0.0)
        return found

    def value(self, place: FloatArray) -> FloatArray:
        """The values at places between 0 and 1, of any shape: quantiles, rounded as the cells are."""
        after = np.clip(np.searchsorted(self.below, place, side="left"), 1, len(self.below) - 1)
        rise = self.below[after] - self.below[after - 1]
        part = np.where(rise > 0, (place - self.below[after - 1]) / np.where(rise > 0, rise, 1.0), 1.0)
        left, right = self.edge[after - 1], self.edge[after]
        part = np.clip(part, 0.0, 1.0)
        is_large = self._unit < 1.0
        found = left * (1.0 - part) + right * part if is_large else left + part * (right - left)
        if self.is_whole:
            found = np.where(part > 0, right, left)
        return self.rounded(found)

    def rounded(self, values: FloatArray) -> FloatArray:
        """Values as multiples of the step."""
        if not self.step:
            return values
        out: FloatArray = np.round(values / self.step) * self.step
        return np.round(out, MOST_DIGITS) if self.step == round(self.step, MOST_DIGITS) else out


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
    nodes = _steps(x, shares) if is_whole else _line(x, shares, float(present.sum()))
    step = 0.0 if labels else _step_of(x)
    if code.kind == "date" and code.part.startswith("day"):
        step = 1.0
    elif code.kind == "date" or (code.part == SPAN and step < TENTH):
        step = _step_of_time(x + origin)
    elif code.kind == "clock" and np.allclose(60.0 * x, np.round(60.0 * x), rtol=0.0, atol=1e-6):
        step = 1.0 / 60.0  # times of whole minutes
    return Margin(
        flat, code.name, labels, bool(code.ranks), nodes[0] + origin, nodes[1], step, is_whole, origin
    )


def _steps(x: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Edges and shares below of values that all have probabilities of their own."""
    upper = np.cumsum(mass) / mass.sum()
    upper[-1] = 1.0
    return np.repeat(x, 2), np.stack([np.append(0.0, upper[:-1]), upper], axis=1).ravel()


def _line(x: FloatArray, mass: FloatArray, n_cells: float) -> tuple[FloatArray, FloatArray]:
    """Edges and shares below of numbers: linear between the middles of single values, jumps at frequent ones.

    Beyond the smallest and the largest value half of a cell's share lies within the distance to the third
    value, not beyond 0 and 1 where no value is.
    """
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
    third = min(2, len(x) - 1)
    if not jumps[0]:
        least = x[0] - (x[third] - x[0])
        edges, below = [max(least, 0.0) if x[0] >= 0 else least, *edges], [0.0, *below]
    if not jumps[-1]:
        most = x[-1] + (x[-1] - x[-1 - third])
        most = min(most, 1.0) if x[0] >= 0 and x[-1] <= 1 else min(most, 0.0) if x[-1] <= 0 else most
        edges, below = [*edges, most], [*below, 1.0]
    below[-1], below[0] = 1.0, 0.0
    return np.array(edges), np.maximum.accumulate(np.clip(below, 0.0, 1.0))


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


def row_hashes(cells: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """A number for each row by its cells (N, J) and gaps: of equal rows another for the second, and so on."""
    hashes = equal_row_hashes(cells, missing)
    order = np.argsort(hashes, kind="stable")
    is_new = np.append(True, hashes[order][1:] != hashes[order][:-1]) if len(order) else np.zeros(0, np.bool_)
    first = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))
    occurrence = np.empty(len(order), dtype=np.uint64)
    occurrence[order] = np.arange(len(order)) - first
    return hashes ^ mixed_bits(occurrence)


def equal_row_hashes(cells: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """A number for each row by its cells (N, J) and gaps, the same for equal rows."""
    return content_hash(bits_of(np.where(missing, 0.0, cells)), rounded(missing))


class RowNoise:
    """Random numbers of each row that depend on its content and the seed alone, not on the rows beside it."""

    def __init__(self, hashes: NDArray[np.uint64], seed: int) -> None:
        self._state = mixed_bits(hashes ^ mixed_bits(np.full(1, seed, np.uint64)))
        self._count = 0

    def uniform(self, n: int) -> FloatArray:
        """New numbers in (0, 1): (N, n)."""
        numbers = np.arange(self._count, self._count + n, dtype=np.uint64)
        self._count += n
        bits = mixed_bits(self._state[:, None] ^ mixed_bits(numbers)[None])
        return (bits >> np.uint64(11)).astype(np.float64) / 2.0**53 + 2.0**-54

    def normal(self, n: int) -> FloatArray:
        """New standard normal numbers: (N, n)."""
        found: FloatArray = ndtri(self.uniform(n))
        return found


class OrderedCells(NamedTuple):
    """Missing cells of an ordered column in `rows` (R,): S normal laws of each score, a draw of each.

    mean, sd and draw are (S, R); a cell's law is the mixture of its S normals.
    """

    rows: NDArray[np.intp]
    mean: FloatArray
    sd: FloatArray
    draw: FloatArray


class LabelCells(NamedTuple):
    """Missing cells of few values or labels in `rows` (R,): probabilities (R, L), S drawn places (S, R)."""

    rows: NDArray[np.intp]
    probabilities: FloatArray
    draw: NDArray[np.intp]


class MixedCells(NamedTuple):
    """Missing cells in `rows` (R,) of which each has one of the laws of C parts, each of a margin of its own.

    share (C,): of the laws in the mixture; draw (S, R): the part of which each draw is.
    """

    rows: NDArray[np.intp]
    parts: tuple[tuple[Margin, OrderedCells | LabelCells | MixedCells], ...]
    share: FloatArray
    draw: NDArray[np.intp]

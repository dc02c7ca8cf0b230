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
from nongauss.tables.rows import bits_of, content_hash, mixed_bits, rounded

FloatArray = NDArray[np.float64]

TIED = 0.02
"""A value with at least this share of the cells is an interval of scores, a rarer one its middle."""

_LARGE = 1e307
"""Differences of such numbers may be beyond a double."""

BULK = (0.1, 0.9)
"""Shares of cells below and up to the bulk of a column of numbers."""

OUTERMOST = 0.25
"""Part of the share beyond all seen values: numbers of which less lies further out have the score of this."""

MOST_DIGITS = 6
"""Decimals up to which values are taken for rounded."""


@persistable("tables.Margin")
@dataclass(frozen=True, eq=False)
class Margin:
    """The distribution of one column: `edge` (Q,) ascending, the share `below` (Q,) of cells up to there.

    Between two edges it is linear; at an edge that comes twice it jumps: that value has a probability of its
    own. `flat`: the number of the flat column. `labels`: of a column of labels, whose edges are the numbers
    of the labels. `step`: cells are multiples of it; 0 where they are not. `is_whole`: only edges are values.
    `origin`: what is added to the numbers of the flat column. `tails`: how many edges are below and above all
    values that were seen.
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
    tails: tuple[int, int] = (1, 1)

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
        first, last = (max(number, 1) for number in self.tails)
        first, last = OUTERMOST * self.below[first], 1.0 - OUTERMOST * (1.0 - self.below[-1 - last])
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

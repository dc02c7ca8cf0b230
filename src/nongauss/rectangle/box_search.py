"""The exact box step: from labels to the few hard bounds that hold each cluster's rows and no others.

The objective is a count: the weight of rows inside the box of their own cluster, less the weight of rows
inside boxes of others. Each column's bounds are sought over all places where they could lie, and conditions
that are not worth having are dropped. Bounds are places among the sorted distinct values of a column: no
rounding comes in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.rectangle.data import ColumnView, FloatArray, IntArray, RawCells
from nongauss.rectangle.params import SoftBoxes, StatedBound

BoolArray = NDArray[np.bool_]
LOWER, UPPER, SET = 0, 1, 2
Key = tuple[int, int]
"""A condition's column and side."""

SWEEPS = 20
"""Most rounds of the search over all columns."""

MOST_CONDITIONS = 8
"""Most conditions of a rule, whatever fewer cost; those that were stated are never dropped."""

MIDDLE = (0.1, 0.9)
"""Quantiles of the rows outside a cluster's boxes between which the search for a further box begins."""


class CodeGrid(NamedTuple):
    """Columns as codes (D, N), -1 where missing: ranks among the distinct values, or levels."""

    codes: IntArray
    n_codes: tuple[int, ...]
    ordered: tuple[bool, ...]
    weight: FloatArray


class HardBox:
    """The box of one cluster while it is sought.

    `conditions` maps (column, side) to the least code inside (LOWER), the greatest (UPPER), or the levels
    inside (SET). `held` conditions are never moved nor dropped.
    """

    def __init__(
        self, grid: CodeGrid, own: BoolArray, conditions: Mapping[Key, Any], held: Iterable[Key] = ()
    ):
        self.grid, self.held = grid, frozenset(held)
        self.gain = np.where(own, grid.weight, -grid.weight)
        self.conditions: dict[Key, Any] = {}
        self.broken = np.zeros(len(own), dtype=np.int32)
        for key, where in conditions.items():
            self.put(key, where)

    @property
    def value(self) -> float:
        """Weight of own rows inside less weight of others inside."""
        return float(self.gain[self.broken == 0].sum())

    @property
    def free(self) -> list[Key]:
        """Conditions that may be dropped."""
        return [key for key in self.conditions if key not in self.held]

    def violated(self, key: Key) -> BoolArray:
        """Rows that break a condition, (N,); a missing cell breaks none."""
        if key not in self.conditions:
            return np.zeros(len(self.gain), dtype=np.bool_)
        codes, where = self.grid.codes[key[0]], self.conditions[key]
        broken: BoolArray
        if key[1] == LOWER:
            broken = (codes < where) & (codes >= 0)
        elif key[1] == UPPER:
            broken = codes > where
        else:
            broken = np.append(~np.asarray(where), False)[codes]  # code -1, a missing cell, is the last
        return broken

    def put(self, key: Key, where: Any) -> None:
        """Set a condition on one side of a column, or drop it (None)."""
        self.broken -= self.violated(key)
        if where is None:
            self.conditions.pop(key, None)
        else:
            self.conditions[key] = where
        self.broken += self.violated(key)

    def copy(self) -> HardBox:
        """A box with the same conditions that can be changed by itself."""
        out = HardBox.__new__(HardBox)
        out.grid, out.held, out.gain = self.grid, self.held, self.gain
        out.conditions, out.broken = dict(self.conditions), self.broken.copy()
        return out

    def gain_by_code(self, column: int) -> FloatArray:
        """Total gain of the rows of each code that all conditions on other columns let in."""
        sides = (LOWER, UPPER) if self.grid.ordered[column] else (SET,)
        others = self.broken.copy()
        for side in sides:
            others -= self.violated((column, side))
        codes = self.grid.codes[column]
        rows = (others == 0) & (codes >= 0)
        totals: FloatArray = np.bincount(
            codes[rows], self.gain[rows], minlength=self.grid.n_codes[column]
        ).astype(np.float64)
        return totals

    def improve(self, column: int, sides: Iterable[int]) -> None:
        """The best place of this column's bounds on these sides, all other columns as they are."""
        totals = self.gain_by_code(column)
        if not self.grid.ordered[column]:
            inside = totals >= 0 if SET in sides else np.ones(len(totals), dtype=np.bool_)
            if inside.any() and (column, SET) not in self.held:
                self.put((column, SET), None if inside.all() else inside)
            return
        last = len(totals) - 1
        low, high = best_interval(totals, *(self._places(column, side, side in sides) for side in (0, 1)))
        for side, at, end in ((LOWER, low, 0), (UPPER, high, last)):
            if (column, side) not in self.held:
                self.put((column, side), None if at == end else at)

    def _places(self, column: int, side: int, free: bool) -> BoolArray:
        """Codes at which a bound may lie."""
        n = self.grid.n_codes[column]
        if free and (column, side) not in self.held:
            return np.ones(n, dtype=np.bool_)
        end = 0 if side == LOWER else n - 1
        held: BoolArray = np.arange(n) == self.conditions.get((column, side), end)
        return held

    def climb(self, keys: Iterable[Key]) -> None:
        """Search these conditions, column after column, until nothing gains."""
        by_column: dict[int, list[int]] = {}
        for column, side in keys:
            by_column.setdefault(column, []).append(side)
        best = self.value
        for _ in range(SWEEPS):
            for column, sides in by_column.items():
                self.improve(column, sides)
            if self.value <= best:
                return
            best = self.value

    def loss(self, key: Key) -> float:
        """What dropping a condition costs at once."""
        let_in = (self.broken == 1) & self.violated(key)
        return -float(self.gain[let_in].sum())


def best_interval(totals: FloatArray, lows: BoolArray, highs: BoolArray) -> tuple[int, int]:
    """Codes [low, high] with the greatest total among the places allowed; of equals the widest."""
    before = np.concatenate([[0.0], np.cumsum(totals)])
    starts = np.where(lows, before[:-1], np.inf)
    value = np.where(highs, before[1:] - np.minimum.accumulate(starts), -np.inf)
    best = value.max()
    tie = 1e-9 * max(1.0, float(np.abs(totals).sum()))
    high = int(np.flatnonzero(value >= best - tie)[-1])
    inside = starts[: high + 1]
    return int(np.flatnonzero(inside <= inside.min() + tie)[0]), high


def search_boxes(grid: CodeGrid, boxes: list[HardBox], tolerance: float) -> list[HardBox]:
    """Better the boxes: drop what gains by going, search everything, then spend the tolerance on fewer
    conditions. A box of more than `MOST_CONDITIONS` goes on beyond the tolerance.

    `tolerance` is the share of all rows by which the objective of all boxes together may end below its best.
    """
    everything = [
        (column, side)
        for column, ordered in enumerate(grid.ordered)
        for side in ((LOWER, UPPER) if ordered else (SET,))
    ]
    for box in boxes:
        _drop_while_free(box)
        box.climb(everything)
        _drop_while_free(box)
        box.climb(list(box.conditions))
    total = float(grid.weight.sum())
    budget, tie = tolerance * total, 1e-9 * total
    options = [_one_less(box) for box in boxes]
    while True:
        losses = [(loss, i, j) for i, tried in enumerate(options) for j, (loss, _) in enumerate(tried)]
        long = [loss for loss in losses if len(boxes[loss[1]].conditions) > MOST_CONDITIONS]
        loss, i, j = min(losses, default=(np.inf, 0, 0))
        if loss > budget + tie:
            if not long:
                return boxes
            loss, i, j = min(long)
        boxes[i] = options[i][j][1]
        options[i] = _one_less(boxes[i])
        budget -= loss


def further_box(grid: CodeGrid, own: BoolArray, boxes: Sequence[HardBox], price: float) -> HardBox | None:
    """One more box for the rows of a cluster (N,) that its boxes do not hold; None if it is not worth it.

    It pays `price`, in weight of rows, for each condition. Rows that are inside already count no more.
    """
    inside = np.any([box.broken == 0 for box in boxes], axis=0)
    left = own & ~inside
    if left @ grid.weight <= price:
        return None
    start: dict[Key, Any] = {}
    for column, (codes, ordered) in enumerate(zip(grid.codes, grid.ordered, strict=True)):
        seen = codes[left & (codes >= 0)]
        if ordered and len(seen):
            low, high = np.quantile(seen, MIDDLE, method="nearest")
            start |= {(column, LOWER): int(low)} if low > 0 else {}
            start |= {(column, UPPER): int(high)} if high < grid.n_codes[column] - 1 else {}
        elif len(seen):
            levels = np.bincount(seen, minlength=grid.n_codes[column]) > 0
            start |= {} if levels.all() else {(column, SET): levels}
    box = HardBox(grid, own, start)
    box.gain = np.where(inside, 0.0, box.gain)
    (box,) = search_boxes(grid, [box], price / float(grid.weight.sum()))
    return box if box.conditions and box.value > price * len(box.conditions) else None


def _drop_while_free(box: HardBox) -> None:
    """Drop, dearest gain first, every condition that costs nothing."""
    while box.free:
        losses = {key: box.loss(key) for key in box.free}
        key = min(losses, key=lambda k: losses[k])
        if losses[key] > 0:
            return
        box.put(key, None)


def _one_less(box: HardBox) -> list[tuple[float, HardBox]]:
    """Each way to drop one condition and search the others again, with what it costs.

    A box that is worth having stays so, and keeps a condition: brevity empties no small cluster, nor lets a
    large one hold every row.
    """
    out = []
    for key in box.free:
        tried = box.copy()
        tried.put(key, None)
        tried.climb(list(tried.conditions))
        if tried.conditions and (tried.value > 0 or box.value <= 0):
            out.append((box.value - tried.value, tried))
    return out


class RankedColumns(NamedTuple):
    """Distinct rows as the box step sees them: codes, and what is behind those of each column of numbers.

    That is its distinct values, sorted, the same scaled, whether all are whole numbers, the standard
    deviation, and -1 where the column is mirrored: then the values stand here with the other sign, so that
    LOWER and UPPER are those of the fit.
    """

    grid: CodeGrid
    values: tuple[FloatArray, ...]
    scaled: tuple[FloatArray, ...]
    whole: tuple[bool, ...]
    units: tuple[float, ...]
    signs: tuple[int, ...]


def rank_columns(view: ColumnView, cells: RawCells, X: FloatArray, weight: FloatArray) -> RankedColumns:
    """The columns of cells in original units, which are X (N, D) when scaled."""
    codes: list[IntArray] = []
    values, scaled, whole = [], [], []
    for column, x, z in zip(view.scales, cells.numbers.T, X.T, strict=True):
        distinct, first, code = np.unique(column.sign * x, return_index=True, return_inverse=True)
        n = len(distinct) - int(np.isnan(distinct[-1]))
        codes.append(np.where(np.isnan(x), -1, code.reshape(-1)))
        values.append(distinct[:n])
        scaled.append(z[first[:n]])
        whole.append(is_whole(distinct[:n]))
    n_codes = (*(len(v) for v in values), *cells.labels.n_levels)
    ordered = (*(True for _ in values), *(False for _ in cells.labels.n_levels))
    everything = np.array([*codes, *cells.labels.codes.T], dtype=np.intp).reshape(len(n_codes), len(weight))
    grid = CodeGrid(everything, n_codes, ordered, weight)
    units, signs = tuple(c.step for c in view.scales), tuple(c.sign for c in view.scales)
    return RankedColumns(grid, tuple(values), tuple(scaled), tuple(whole), units, signs)


def hard_boxes(
    ranked: RankedColumns, boxes: SoftBoxes, own: IntArray, tolerance: float, stated: Sequence[StatedBound]
) -> list[HardBox]:
    """The box step, from soft boxes (S = 1) and the cluster of each row (N,); stated bounds stay."""
    held = [_held(ranked, stated, k) for k in range(boxes.lower.shape[1])]
    found = [
        HardBox(ranked.grid, own == k, _conditions(ranked, boxes, k), held[k])
        for k in range(boxes.lower.shape[1])
    ]
    return search_boxes(ranked.grid, found, tolerance)


def _conditions(ranked: RankedColumns, boxes: SoftBoxes, k: int) -> dict[Key, Any]:
    """Where a soft box cuts the values; a box that holds none is as good as none."""
    out: dict[Key, Any] = {}
    for d, z in enumerate(ranked.scaled):
        low = int(np.searchsorted(z, boxes.lower[0, k, d]))
        high = int(np.searchsorted(z, boxes.upper[0, k, d], side="right")) - 1
        if low > high:
            continue
        if low > 0:
            out[d, LOWER] = low
        if high < len(z) - 1:
            out[d, UPPER] = high
    n_numbers, offset = len(ranked.scaled), 0
    for c, n in enumerate(ranked.grid.n_codes[n_numbers:], start=n_numbers):
        inside = boxes.sets[0, k, offset : offset + n] >= 0
        if inside.any() and not inside.all():
            out[c, SET] = inside
        offset += n
    return out


def _held(ranked: RankedColumns, stated: Sequence[StatedBound], k: int) -> list[Key]:
    """The conditions of a cluster that were stated."""
    n_numbers, keys = len(ranked.scaled), []
    sizes = ranked.grid.n_codes[n_numbers:]
    for item in stated:
        if item.cluster != k:
            continue
        if item.place < 2 * n_numbers:
            keys.append((item.place % n_numbers, item.place // n_numbers))
        else:
            column = int(np.searchsorted(np.cumsum(sizes), item.place - 2 * n_numbers, side="right"))
            keys.append((n_numbers + column, SET))
    return keys


def is_whole(values: FloatArray) -> bool:
    """Does the column hold whole numbers only? Then its bounds are whole and belong to the box."""
    return bool((values == np.round(values)).all() and np.abs(values).max(initial=0.0) < 2.0**53)

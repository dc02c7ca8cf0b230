"""From soft boxes to printed rules: the box step on the original values, and where the bounds are put."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nongauss.rectangle.box_search import LOWER, SET, UPPER, Box, Grid, Key, hold
from nongauss.rectangle.columns import Cells, View
from nongauss.rectangle.params import Boxes, FloatArray, IntArray, Stated
from nongauss.rectangle.rounding import is_whole, place
from nongauss.rectangle.rules import Condition, Rules


class Sheet(NamedTuple):
    """Distinct rows as the box step and the printer see them: codes, and the values behind them."""

    grid: Grid
    values: tuple[FloatArray, ...]
    scaled: tuple[FloatArray, ...]
    whole: tuple[bool, ...]
    units: tuple[float, ...]


def sheet(view: View, cells: Cells, X: FloatArray, weight: FloatArray) -> Sheet:
    """From cells in original units and the same scaled, X (N, D)."""
    codes: list[IntArray] = []
    values, scaled, whole, units = [], [], [], []
    for column, x, z in zip(view.scales, cells.numbers.T, X.T, strict=True):
        distinct, first, code = np.unique(x, return_index=True, return_inverse=True)
        n = len(distinct) - int(np.isnan(distinct[-1]))
        codes.append(np.where(np.isnan(x), -1, code.reshape(-1)))
        values.append(distinct[:n])
        scaled.append(z[first[:n]])
        whole.append(is_whole(distinct[:n]))
        units.append(column.sd * column.unit)
    n_codes = (*(len(v) for v in values), *cells.labels.n_levels)
    ordered = (*(True for _ in values), *(False for _ in cells.labels.n_levels))
    everything = np.array([*codes, *cells.labels.codes.T], dtype=np.intp).reshape(len(n_codes), len(weight))
    grid = Grid(everything, n_codes, ordered, weight)
    return Sheet(grid, tuple(values), tuple(scaled), tuple(whole), tuple(units))


def hard_boxes(
    at: Sheet, boxes: Boxes, own: IntArray, tolerance: float, stated: Sequence[Stated] = ()
) -> list[Box]:
    """The box step, from soft boxes (S = 1) and the cluster of each row (N,); stated bounds stay."""
    held = [_held(at, stated, k) for k in range(boxes.lower.shape[1])]
    found = [Box(at.grid, own == k, _conditions(at, boxes, k), held[k]) for k in range(boxes.lower.shape[1])]
    return hold(at.grid, found, tolerance)


def printed(
    at: Sheet, view: View, boxes: Sequence[Box], names: tuple[str, ...], precision: str | int | None
) -> Rules:
    """The boxes as rules in original units."""
    conditions = tuple(
        tuple(
            _condition(at, view, box, d, precision) for d in sorted({column for column, _ in box.conditions})
        )
        for box in boxes
    )
    return Rules(names, conditions)


def _conditions(at: Sheet, boxes: Boxes, k: int) -> dict[Key, Any]:
    """Where a soft box cuts the values; a box that holds none is as good as none."""
    out: dict[Key, Any] = {}
    for d, z in enumerate(at.scaled):
        low = int(np.searchsorted(z, boxes.lower[0, k, d]))
        high = int(np.searchsorted(z, boxes.upper[0, k, d], side="right")) - 1
        if low > high:
            continue
        if low > 0:
            out[d, LOWER] = low
        if high < len(z) - 1:
            out[d, UPPER] = high
    n_numbers, offset = len(at.scaled), 0
    for c, n in enumerate(at.grid.n_codes[n_numbers:], start=n_numbers):
        inside = boxes.sets[0, k, offset : offset + n] >= 0
        if inside.any() and not inside.all():
            out[c, SET] = inside
        offset += n
    return out


def _held(at: Sheet, stated: Sequence[Stated], k: int) -> list[Key]:
    """The conditions of a cluster that were stated."""
    n_numbers, keys = len(at.scaled), []
    sizes = at.grid.n_codes[n_numbers:]
    for item in stated:
        if item.cluster != k:
            continue
        if item.place < 2 * n_numbers:
            keys.append((item.place % n_numbers, item.place // n_numbers))
        else:
            column = int(np.searchsorted(np.cumsum(sizes), item.place - 2 * n_numbers, side="right"))
            keys.append((n_numbers + column, SET))
    return keys


def _condition(at: Sheet, view: View, box: Box, d: int, precision: str | int | None) -> Condition:
    """One column's part of a box, its bounds put where they read best."""
    code = view.codes[d]
    if not at.grid.ordered[d]:
        levels = tuple(
            level for level, inside in zip(code.levels, box.conditions[d, SET], strict=True) if inside
        )
        return Condition(d, str(code.name), levels=levels, all_levels=code.levels)
    bounds = {LOWER: -np.inf, UPPER: np.inf}
    for side in (LOWER, UPPER):
        if (d, side) in box.conditions:
            outside, inside = _gap(at, box, d, side)
            bounds[side] = place(outside, inside, at.whole[d], precision)
    return Condition(d, str(code.name), bounds[LOWER], bounds[UPPER], at.units[d])


def _gap(at: Sheet, box: Box, d: int, side: int) -> tuple[float, float]:
    """The nearest values outside and inside a bound, among rows that only this column could keep out.

    A stated bound looks at all values, so that it stays where it is.
    """
    cut = int(box.conditions[d, side])
    values = at.values[d]
    step = -1 if side == LOWER else 1
    outside, inside = cut + step, cut
    if (d, side) not in box.held:
        others = box.broken - box.violated((d, LOWER)) - box.violated((d, UPPER))
        codes = at.grid.codes[d]
        codes = codes[(others == 0) & (codes >= 0)]
        beyond = codes[codes < cut] if side == LOWER else codes[codes > cut]
        within = codes[codes >= cut] if side == LOWER else codes[codes <= cut]
        if len(beyond):
            outside = int(beyond.max() if side == LOWER else beyond.min())
        if len(within):
            inside = int(within.min() if side == LOWER else within.max())
    return float(values[outside]), float(values[inside])

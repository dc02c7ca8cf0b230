"""Quantiles of counts: by halving, and at many levels from the least up, each from where the last ended."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from nongauss.predictive.distribution import FloatArray

RowValues = Callable[[FloatArray, npt.NDArray[np.intp]], FloatArray]
"""What grows with y (n,) in the rows (n,) of these numbers, such as their distribution function: (n,)."""


def halved_counts(
    is_enough: Callable[[FloatArray], npt.NDArray[np.bool_]], low: FloatArray, high: FloatArray
) -> FloatArray:
    """The smallest whole number of each row that is enough, between `low` (not) and `high` (which is).

    As far as such numbers are told apart: beyond 2^53 not all of them are there. All are (N,).
    """
    middle = np.floor(0.5 * (low + high))
    while (is_open := (middle > low) & (middle < high)).any():
        enough = is_enough(middle)
        high = np.where(is_open & enough, middle, high)
        low = np.where(is_open & ~enough, middle, low)
        middle = np.floor(0.5 * (low + high))
    return high


def ascending_counts(
    value: RowValues, wanted: FloatArray, first: FloatArray, most: FloatArray | None = None
) -> FloatArray:
    """The smallest whole numbers y from `first` (N,) up, where `value` is not below `wanted`: (N, Q).

    `wanted` (N, Q) must not decrease from one column to the next. Beyond `most` (N,) there is none.
    """
    out = np.empty_like(wanted)
    most = np.full(len(wanted), np.inf) if most is None else most
    at, step = first.copy(), np.ones(len(wanted))
    height = value(at, np.arange(len(at)))
    for j in range(wanted.shape[1]):
        short = np.flatnonzero((height < wanted[:, j]) & (at < most))
        if len(short):
            begin = at[short]
            at[short], height[short] = _next(value, wanted[short, j], begin, short, step[short], most[short])
            step[short] = np.maximum(np.floor(0.5 * (at[short] - begin)), 1.0)
        out[:, j] = at
    return out


def _next(
    value: RowValues,
    wanted: FloatArray,
    low: FloatArray,
    rows: npt.NDArray[np.intp],
    step: FloatArray,
    most: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The smallest whole numbers above `low`, which is too low, and the values there: (n,) each.

    By steps that double until a number is enough, and by halves between it and the last that is not.
    """
    low, high, height = low.copy(), low.copy(), np.zeros(len(low))
    left, reach = np.arange(len(low)), step
    while len(left):
        with np.errstate(over="ignore"):
            y = np.minimum(low[left] + reach, most[left])
        found = value(y, rows[left])
        stops = (found >= wanted[left]) | (y >= most[left]) | (y <= low[left])
        high[left[stops]], height[left[stops]] = y[stops], found[stops]
        low[left[~stops]] = y[~stops]
        left, reach = left[~stops], 2.0 * reach[~stops]
    while True:
        middle = np.floor(0.5 * (low + high))
        open_ = np.flatnonzero((low < middle) & (middle < high))
        if not len(open_):
            return high, height
        found = value(middle[open_], rows[open_])
        stops = found >= wanted[open_]
        high[open_[stops]], height[open_[stops]] = middle[open_[stops]], found[stops]
        low[open_[~stops]] = middle[open_[~stops]]

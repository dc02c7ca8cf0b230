"""The grain of a column: the variance of the range of values that each cell stands for.

A value that was rounded, counted or is 0 or 1 stands for all values half a step around it. An atom is a value
that many rows have, far more than those beside it, as the 0 of amounts that are mostly none. It stands for as
wide a range as the nearest values of as many rows, or all others, up to a wide gap. So no density is finer
than its steps, and an atom makes no cluster of no width and hides none that a gap parts from others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

ATOM, TIMES, BESIDE = 0.05, 5.0, 2
"""An atom is a value that so great a share of a column's rows have, and so many times as many as have any of
the two values next to it on either side. A rounded measurement has none, since the values beside a frequent
one are frequent, too."""

GAP, BESIDE_GAP, ROWS_BESIDE_GAP = 3.0, 0.1, 8.0
"""A gap: a value is so many times as far from an atom as the next nearer one, and such a share of the other
rows or more, and so many rows, are on either side. Evenly spread values have one behind k of them with
probability 3^-k."""


class ColumnGrain(NamedTuple):
    """The variance within a column's least step, and its atoms, each with its variance (n, 2)."""

    step: float
    atoms: FloatArray


def column_grain(z: FloatArray, weight: FloatArray, scaling: str = "standard") -> ColumnGrain:
    """The variances within the step and the atoms of a scaled column z (N,) with weights (N,).

    On a scale of ranks an atom is as wide as the ranks of its own rows.
    """
    # the variance within a step h is h^2 / 12 (Sheppard 1898)
    seen = (weight > 0) & ~np.isnan(z)
    distinct, which = np.unique(z[seen].astype(np.float32), return_inverse=True)
    values = distinct.astype(np.float64)
    count = np.bincount(which.reshape(-1), weight[seen]).astype(np.float64)
    if len(values) < 2:
        return ColumnGrain(0.0, np.zeros((0, 2)))
    is_atom = _atoms(count)
    others, n_others = values[~is_atom], count[~is_atom]
    near = [
        _variance_near(at, n, others, n_others) for at, n in zip(values[is_atom], count[is_atom], strict=True)
    ]
    if scaling == "rank":
        a_rank = (values[-1] - values[0]) / (count.sum() - 0.5 * (count[0] + count[-1]))
        near = list((a_rank * count[is_atom]) ** 2 / 12.0)
    return ColumnGrain(float(np.diff(values).min() ** 2 / 12.0), np.column_stack([values[is_atom], near]))


def _atoms(count: FloatArray) -> NDArray[np.bool_]:
    """Which of a column's values, in order, are atoms, by the weight of the rows that have each."""
    around = np.pad(count, BESIDE)
    beside = [around[BESIDE + d : BESIDE + d + len(count)] for d in range(-BESIDE, BESIDE + 1) if d]
    found: NDArray[np.bool_] = (count >= ATOM * count.sum()) & (count >= TIMES * np.max(beside, axis=0))
    return found


def _variance_near(at: float, n: float, values: FloatArray, count: FloatArray) -> float:
    """The variance of the values up to a gap nearest to a place that `n` rows have, or all; 0 of none."""
    order = np.argsort(np.abs(values - at), kind="stable")
    if not len(order):
        return 0.0
    away, up_to = np.abs(values[order] - at), np.cumsum(count[order])
    least = max(BESIDE_GAP * up_to[-1], ROWS_BESIDE_GAP)
    is_gap = (away[1:] > GAP * away[:-1]) & (up_to[:-1] >= least) & (up_to[-1] - up_to[:-1] >= least)
    most = int(np.argmax(is_gap)) + 1 if is_gap.any() else len(order)
    near = order[: min(most, int(np.searchsorted(up_to, n)) + 1)]
    mean = np.average(values[near], weights=count[near])
    return float(np.average((values[near] - mean) ** 2, weights=count[near]))

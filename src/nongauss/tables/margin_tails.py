"""Tails of a column of numbers: what may lie beyond the values that were seen, and how far.

The quantile is continued as a line over the normal score, or its logarithm is where the values have one sign
and that is straighter. A limit that numbers of the column do not pass (0, 1) is approached exponentially.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

FloatArray = NDArray[np.float64]

N_KNOTS, FALL = 10, 4.0
"""Knots of a tail, and how many times less lies beyond each than beyond the one before."""
WITHIN, LEAST_APART = 2.0, 0.5
"""Normal scores from the end within which the slope is found, from pairs of points so far apart at least."""

STRAIGHT = 0.95
"""Least correlation of logarithms with scores by which they are continued: a lone far value has less."""


class Line(NamedTuple):
    """Edges (Q,) of a distribution, the share below each, and how many are below and above what was seen."""

    edge: FloatArray
    below: FloatArray
    tails: tuple[int, int]


def with_tails(edge: FloatArray, below: FloatArray, reaches: bool) -> Line:
    """The distribution with its tails, from edges that were seen and the share `below` each.

    An end that jumps has no tail. `reaches` False: tails no longer than to the third value from each end.
    """
    low, high = _limits(edge)
    with np.errstate(over="ignore", invalid="ignore"):
        after = _tail(edge, ndtri(below), 1.0 - below[-1], high, reaches)
        before = -_tail(-edge[::-1], -ndtri(below[::-1]), below[0], -low, reaches)[::-1]
    fall = FALL ** -np.arange(1.0, N_KNOTS + 1.0)
    fall[-1] = 0.0
    shares = fall if len(after) > 1 else fall[-1:]
    upper = 1.0 - (1.0 - below[-1]) * shares[: len(after)]
    shares = fall if len(before) > 1 else fall[-1:]
    lower = (below[0] * shares[: len(before)])[::-1]
    whole = np.concatenate([lower, below, upper])
    whole[0], whole[-1] = 0.0, 1.0
    return Line(np.concatenate([before, edge, after]), whole, (len(before), len(after)))


def _limits(edge: FloatArray) -> tuple[float, float]:
    """What numbers of the column do not pass, as far as their own range tells."""
    first, last = float(edge[0]), float(edge[-1])
    low = 0.0 if first >= 0.0 else -np.inf
    if first >= 0.0:
        return low, 1.0 if last <= 1.0 else np.inf
    return low, 0.0 if last <= 0.0 else np.inf


def _tail(edge: FloatArray, score: FloatArray, share: float, limit: float, reaches: bool) -> FloatArray:
    """Edges above the last of `edge` (Q,), at `score` (Q,), above which lies a `share`: none, one, or all."""
    if share <= 0.0:
        return np.zeros(0)
    last = float(edge[-1])
    slope = _slope(edge, score) if reaches and last < limit else 0.0
    if not slope > 0.0:
        third = float(np.unique(edge)[max(-3, -len(np.unique(edge)))])
        return np.array([min(last + (last - third), limit)])
    further = -ndtri(share * FALL ** -np.arange(1.0, N_KNOTS + 1.0)) - score[-1]
    return last + _reach(edge, score, slope, limit, further)


def _reach(
    edge: FloatArray, score: FloatArray, slope: float, limit: float, further: FloatArray
) -> FloatArray:
    """How far beyond the last edge the quantiles lie that are so much `further` in scores."""
    last = float(edge[-1])
    if np.isfinite(limit):
        room = limit - edge
        near = -np.log(room)
        fall = _slope(near, score) if _is_straighter(near, edge, score) else slope / room[-1]
        near_limit: FloatArray = -room[-1] * np.expm1(-fall * further)
        return near_limit
    if edge[0] > 0.0 and _is_straighter(np.log(edge), edge, score):
        return last * np.expm1(_slope(np.log(edge), score) * further)
    return slope * further


def _is_straighter(one: FloatArray, other: FloatArray, score: FloatArray) -> bool:
    """Are the values `one` on a line over their scores, next to the end, and closer to it than `other`?"""
    own = np.isfinite(score) & (score >= score[-1] - 2.0 * WITHIN)
    if own.sum() < 3:
        return False
    # of the largest, as squares of numbers near 1e-200 are 0
    parts = (part[own] / max(float(np.abs(part[own]).max()), 1e-300) for part in (one, other))
    straight, beside = (np.corrcoef(part, score[own])[0, 1] for part in parts)
    return bool(straight > max(beside, STRAIGHT))


def _slope(value: FloatArray, score: FloatArray) -> float:
    """The slope of values over their normal scores next to the end: a median, so that no lone value tells it.

    0 where there are too few.
    """
    begin = max(float(score[-1]) - WITHIN, float(score[np.isfinite(score)][0]))
    own = np.isfinite(score) & (score >= begin + LEAST_APART)
    if not own.any():
        return 0.0
    first = np.interp(begin, score[np.isfinite(score)], value[np.isfinite(score)])
    return float(np.median((value[own] - first) / (score[own] - begin)))

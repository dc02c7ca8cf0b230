"""Dates of a table in the place of others: along the years without the week, over the week without the years.

A model that knows weekdays, months and hours answers a change of the date with all of them at once. What is
asked here holds the others still: each row keeps its own weekday where the date changes, and its date, as far
as the table has such days, where the weekday does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nongauss.report.metrics import FloatArray

PERIODS = {"month": 365.2425, "weekday": 7.0, "hour": 1.0}
"""Days after which each part of the calendar comes again."""

_PRICE = {"month": 2.0, "weekday": 8.0, "hour": 64.0}
"""Days farther from the date that was asked for, that are worth a day nearer to the same place in a cycle."""

_RESOLVED = 4.0  # steps of a grid in a cycle that it shows as it is
_MOST_DAYS = 5_000


def hidden_cycles(parts: Sequence[str], places: FloatArray) -> list[str]:
    """The parts of the calendar that a grid of days cannot show, its steps being too wide for them."""
    step = float(np.diff(places).mean()) if len(places) > 1 else 0.0
    return [part for part in parts if step > PERIODS[part] / _RESOLVED]


def same_phase(
    days: FloatArray, own: FloatArray, places: FloatArray, cycles: Sequence[str]
) -> npt.NDArray[np.intp]:
    """For each place (G,) and each row with a day of its own (N,), the number of a day near to it: (G, N).

    Of the days (U,) it is that nearest to the place, at the row's own place in each of the cycles.
    """
    kept = _some(days)
    chosen = np.empty((len(places), len(own)), dtype=np.intp)
    for row, day in enumerate(own):
        off = _off_phase(days[kept], day, cycles)
        away = np.abs(days[kept] - places[:, None]) + off
        chosen[:, row] = kept[away.argmin(axis=1)]
    return chosen


def nearest_of_level(
    days: FloatArray, codes: npt.NDArray[np.intp], own: FloatArray, levels: Sequence[int], part: str
) -> npt.NDArray[np.intp]:
    """For each level of a part of the calendar (L,) and each row, the number of the nearest such day: (L, N).

    `codes` (U,): the level of each of the days (U,). The shorter cycles are kept.
    """
    shorter = [other for other in PERIODS if PERIODS[other] < PERIODS[part]]
    chosen = np.empty((len(levels), len(own)), dtype=np.intp)
    for number, level in enumerate(levels):
        of_level = np.flatnonzero(codes == level)
        kept = of_level[_some(days[of_level])]
        for row, day in enumerate(own):
            away = np.abs(days[kept] - day) + _off_phase(days[kept], day, shorter)
            chosen[number, row] = kept[int(away.argmin())]
    return chosen


def _off_phase(days: FloatArray, day: float, cycles: Sequence[str]) -> FloatArray:
    """The price of days (U,) for standing elsewhere in the cycles than one day does."""
    price = np.zeros(len(days))
    for cycle in cycles:
        period = PERIODS[cycle]
        ahead = np.mod(days - day, period)
        price += _PRICE[cycle] * np.minimum(ahead, period - ahead)
    return price


def _some(days: FloatArray) -> npt.NDArray[np.intp]:
    """The numbers of the days, of very many a random part."""
    if len(days) <= _MOST_DAYS:
        return np.arange(len(days))
    return np.sort(np.random.RandomState(0).permutation(len(days))[:_MOST_DAYS])

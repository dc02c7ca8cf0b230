"""Scales that a few far cells do not move: mean and spread of cells that are clipped as units clip them.

Real units are clipped at RANGES["real"] standard deviations. Where cells beyond are most of the spread, mean
and sd are those of the clipped cells, m = E[c], s^2 = E[(c - m)^2], c = clip(x, m - 5 s, m + 5 s): a fixed
point (Huber and Ronchetti 2009, section 5.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nongauss.harmonium.exponential_families import RANGES
from nongauss.harmonium.visible_units import UnitCoder, VisibleUnit
from nongauss.tables.column import Column, ColumnSummary
from nongauss.tables.kinds.number import MIRROR_SKEW, Moments, Scale, power_of_two

FloatArray = NDArray[np.float64]

MOST_ROUNDS, SETTLED = 100, 1e-6
"""Rounds of the fixed point, and the relative change of the spread at which it is reached."""

MOST_OF_SPREAD = 0.5
"""With more of the spread left the far cells are no errors but the column's tail: it keeps its scale."""

FAR, MOST_FAR = 20.0, 2
"""So few standardised targets beyond this are errors, and tell nothing of those of the others."""

BULK, NORMAL_BULK = (0.05, 0.95), 3.29
"""Quantiles of the bulk of the cells, and how many standard deviations of a normal law lie between them."""


def reaches_beyond(numbers: Moments) -> bool:
    """Do cells lie farther from the mean than a unit shows?"""
    scale = numbers.scale()
    ends = np.array([numbers.low, numbers.high]) / scale.unit - scale.mean
    return bool(np.abs(ends).max() > RANGES["real"][1] * abs(scale.sd))


def few_far(z: FloatArray, weight: FloatArray) -> NDArray[np.bool_]:
    """Which of standardised targets (N,) are beyond `FAR`; none if these are more than `MOST_FAR` rows."""
    far: NDArray[np.bool_] = (np.abs(z) > FAR) & (weight > 0)
    return far & (max(float(far.sum()), float(weight[far].sum())) <= MOST_FAR)


def clipped_scale(x: FloatArray, weight: FloatArray, scale: Scale) -> Scale:
    """The scale of finite cells x (N,), clipped; `scale`, theirs unclipped, if far ones are not most of it.

    So it is if the bulk of the cells, or nearly all their weight, is one value.
    """
    order = np.argsort(x, kind="stable")
    x, share = x[order], weight[order] / weight.sum()
    low, high = map(float, np.interp(BULK, np.cumsum(share) - 0.5 * share, x))
    unit = power_of_two(low, high)
    mean, sd = 0.5 * (low / unit + high / unit), (high / unit - low / unit) / NORMAL_BULK
    if not sd > 0.0:
        return scale
    with np.errstate(over="ignore"):
        z = x / unit
    for _ in range(MOST_ROUNDS):
        last, c = sd, np.clip(z, mean - RANGES["real"][1] * sd, mean + RANGES["real"][1] * sd)
        mean = float(np.sum(share * c))
        sd = float(np.sqrt(np.sum(share * (c - mean) ** 2)))
        if abs(sd - last) <= SETTLED * last:
            break
    if not 0.0 < unit * sd <= MOST_OF_SPREAD * abs(scale.step):
        return scale
    skewness = float(np.sum(share * ((c - mean) / sd) ** 3))
    return Scale(unit, mean, -sd if skewness < -MIRROR_SKEW else sd)


def with_clipped_scales(
    coder: UnitCoder,
    summaries: Sequence[ColumnSummary],
    read: Callable[[], Sequence[Column]],
    weight: FloatArray,
) -> UnitCoder:
    """The coder with `clipped_scale` for each real unit of which cells lie beyond what it shows.

    `read` gives the flat columns, of rows of weight (N,), where there is such a unit.
    """
    far = [_has_far_cells(unit, summaries[unit.column].numbers) for unit in coder.units]
    if not any(far):
        return coder
    columns = read()

    def moved(unit: VisibleUnit) -> VisibleUnit:
        """The unit on its scale."""
        numbers, values = summaries[unit.column].numbers, columns[unit.column].values
        assert numbers is not None
        assert values is not None
        kept = ~np.isnan(values) & (weight > 0)
        scale = clipped_scale(values[kept], weight[kept], numbers.scale())
        return unit._replace(unit=scale.unit, mean=scale.mean, sd=scale.sd)

    units = (moved(unit) if is_far else unit for unit, is_far in zip(coder.units, far, strict=True))
    return replace(coder, units=tuple(units))


def _has_far_cells(unit: VisibleUnit, numbers: Moments | None) -> bool:
    """Is this a real unit of which cells lie beyond what it shows?"""
    return unit.kind == "real" and numbers is not None and reaches_beyond(numbers)

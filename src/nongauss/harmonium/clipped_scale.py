"""Real units whose scale a few far cells do not move, and which targets are far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nongauss.harmonium.visible_units import UnitCoder, VisibleUnit
from nongauss.tables.clipped_scale import clipped_scale, reaches_beyond
from nongauss.tables.column import Column, ColumnSummary
from nongauss.tables.kinds.number import Moments

FloatArray = NDArray[np.float64]

FAR, MOST_FAR = 20.0, 2
"""So few standardised targets beyond this are errors, and tell nothing of those of the others."""


def few_far(z: FloatArray, weight: FloatArray) -> NDArray[np.bool_]:
    """Which of standardised targets (N,) are beyond `FAR`; none if these are more than `MOST_FAR` rows."""
    far: NDArray[np.bool_] = (np.abs(z) > FAR) & (weight > 0)
    return far & (max(float(far.sum()), float(weight[far].sum())) <= MOST_FAR)


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

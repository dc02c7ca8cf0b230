"""How a candidate may see columns: strongly skewed ones through arcsinh, labels of many groups as effects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nongauss.core.records import persistable
from nongauss.tables.frame import InputTable
from nongauss.tables.kinds.label import MOST_LEVELS
from nongauss.tables.kinds.number import power_of_two

STRONG_SKEW = 2.0
"""Skewness from which a column is strongly skewed; that of an exponential law."""

FARTHEST = 1e300
"""Numbers are taken to be no farther out than this, in their column's scale."""

FEWEST_VALUES = 10
"""A column of fewer different numbers is none that a transform would change."""


@persistable("auto.Arcsinh")
class Arcsinh(NamedTuple):
    """Columns by their places: number v becomes arcsinh((v - centre) / scale)."""

    places: tuple[int, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]

    def __call__(self, table: InputTable) -> InputTable:
        """The table with these columns changed; gaps stay gaps."""
        for place, centre, scale in zip(self.places, self.centres, self.scales, strict=True):
            values = table.column(place).values
            assert values is not None
            with np.errstate(over="ignore"):  # beyond the largest number it is as far out as that
                z = np.clip((values - centre) / scale, -FARTHEST, FARTHEST)
            table = table.with_column(place, np.arcsinh(z))
        return table


def arcsinh_of_skewed(table: InputTable) -> Arcsinh | None:
    """Median and half the middle half's width of each strongly skewed column; None without one."""
    found = []
    for place in range(table.shape[1]):
        column = table.column(place)
        if column.kind != "number" or column.values is None:
            continue
        values = column.values[~column.missing]
        if len(np.unique(values)) < FEWEST_VALUES:
            continue
        sized = values / power_of_two(float(values.min()), float(values.max()))
        z = (sized - sized.mean()) / sized.std()
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        scale = 0.5 * (high - low)
        if abs(float((z**3).mean())) >= STRONG_SKEW and scale > 0.0:
            found.append((place, float(middle), float(scale)))
    return Arcsinh(*zip(*found, strict=True)) if found else None


FEWEST_GROUPS, FEWEST_ROWS_A_GROUP = 8, 2.0
"""Groups from which their effects are worth a law of their own, and rows that each has on average: with fewer
groups their spread is hardly known, with one row each an effect is noise by another name."""


def column_of_groups(table: InputTable) -> int | None:
    """The place of the column whose labels, without an order, name most groups; None without one."""
    found: list[tuple[int, int]] = []
    for place in range(table.shape[1]):
        column = table.column(place)
        if column.codes is None or column.ranks or column.kind not in ("label", "code"):
            continue
        known = column.codes[~column.missing]
        n_groups = len(np.unique(known))
        if FEWEST_GROUPS <= n_groups <= min(MOST_LEVELS, len(known) / FEWEST_ROWS_A_GROUP):
            found.append((-n_groups, place))
    return min(found)[1] if found else None

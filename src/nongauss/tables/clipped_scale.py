"""Scales that a few far cells do not move: mean and spread of cells that are clipped.

Where cells beyond `CLIP` standard deviations are most of the spread, mean and sd are those of the clipped
cells, m = E[c], s^2 = E[(c - m)^2], c = clip(x, m - 5 s, m + 5 s): a fixed point (Huber and Ronchetti 2009,
section 5.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nongauss.tables.kinds.number import MIRROR_SKEW, Moments, Scale, power_of_two

FloatArray = NDArray[np.float64]

CLIP = 5.0
"""Cells farther from the mean than so many standard deviations count as these."""

MOST_ROUNDS, SETTLED = 100, 1e-6
"""Rounds of the fixed point, and the relative change of the spread at which it is reached."""

MOST_OF_SPREAD = 0.5
"""With more of the spread left the far cells are no errors but the column's tail: it keeps its scale."""

BULK, NORMAL_BULK = (0.05, 0.95), 3.29
"""Quantiles of the bulk of the cells, and how many standard deviations of a normal law lie between them."""


def reaches_beyond(numbers: Moments) -> bool:
    """Do cells lie farther from the mean than `CLIP`?"""
    scale = numbers.scale()
    ends = np.array([numbers.low, numbers.high]) / scale.unit - scale.mean
    return bool(np.abs(ends).max() > CLIP * abs(scale.sd))


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
        last, c = sd, np.clip(z, mean - CLIP * sd, mean + CLIP * sd)
        mean = float(np.sum(share * c))
        sd = float(np.sqrt(np.sum(share * (c - mean) ** 2)))
        if abs(sd - last) <= SETTLED * last:
            break
    if not 0.0 < unit * sd <= MOST_OF_SPREAD * abs(scale.step):
        return scale
    skewness = float(np.sum(share * ((c - mean) / sd) ** 3))
    return Scale(unit, mean, -sd if skewness < -MIRROR_SKEW else sd)

"""The affine scale of one column: weighted mean and spread, safe at any magnitude, with a fixed direction."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ROUNDING_RANGE = 16 * 2.0**-52  # a range below this share of the largest value is rounding noise
CLEAR_SKEW = 1e-6  # a third moment (in standard deviations) beyond this fixes the direction


@dataclass(frozen=True)
class Scale:
    """How a column is standardised: `z = (x / unit - mean) / sd`.

    `unit` is a power of two near the largest absolute value, so nothing overflows and the division is exact;
    `sd` is negative where the column is mirrored, and 0 where it is constant.
    """

    unit: float
    mean: float
    sd: float

    @property
    def centre(self) -> float:
        """The mean in original units."""
        return self.unit * self.mean

    @property
    def step(self) -> float:
        """The signed standard deviation in original units; 0 for a constant column."""
        return self.unit * self.sd

    def apply(self, x: Floats) -> Floats:
        """Standardise values `x` of any shape; not defined for a constant column."""
        z: Floats = (x / self.unit - self.mean) / self.sd
        return z


def fit_scale(x: Floats, weight: Floats) -> Scale:
    """Weighted mean and population sd of finite values `x` (N,), mirrored so that the skew is not negative.

    Weights count like repetitions of the row. Because the direction follows from the third moment, values
    `a*x + b` get the same standardised values for every a other than 0, unless the column is symmetric, where
    a negative `a` still mirrors it. A column whose range is rounding noise is constant (sd 0).
    """
    unit = math.ldexp(1.0, math.frexp(float(np.max(np.abs(x))))[1] - 1)
    z = x / unit
    low, high = float(z.min()), float(z.max())
    if high - low <= ROUNDING_RANGE * max(abs(low), abs(high)):
        return Scale(unit=unit, mean=low if low == high else 0.5 * (low + high), sd=0.0)
    share = weight / weight.max()  # np.sum below, not a BLAS product: same bits whatever the threads
    share = share / share.sum()
    mean = float(np.sum(share * z))
    mean += float(np.sum(share * (z - mean)))
    z -= mean
    sd = math.sqrt(float(np.sum(share * z * z)))
    z /= sd
    if float(np.sum(share * z * z * z)) < -CLEAR_SKEW:
        sd = -sd
    return Scale(unit=unit, mean=mean, sd=sd)

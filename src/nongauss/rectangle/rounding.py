"""Where a bound is printed: of all places that keep the same rows inside, the one with the fewest digits."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np

from nongauss.rectangle.params import FloatArray


def is_whole(values: FloatArray) -> bool:
    """Does the column hold whole numbers only? Then its bounds are whole and belong to the box."""
    return bool((values == np.round(values)).all() and np.abs(values).max(initial=0.0) < 2.0**53)


def place(outside: float, inside: float, whole: bool, precision: str | int | None) -> float:
    """A bound between the last value outside and the first value inside; either may be the greater.

    precision : "auto" takes the fewest digits that keep the rows; None the middle; an integer rounds the
    middle to so many decimals, whatever that does. The bound belongs to the box: where values are whole, an
    upper bound of 29 and a lower one of 30 share the gap.
    """
    low, high = min(outside, inside), max(outside, inside)
    middle = low + 0.5 * (high - low)
    if isinstance(precision, int):
        return round(middle, precision)
    if whole:
        cut = math.floor(low) + 1.0 if precision is None or high - low <= 1 else roundest(low, high + 0.5)
        return cut if inside > outside else cut - 1.0
    return middle if precision is None else roundest(low, high)


def roundest(low: float, high: float) -> float:
    """The number strictly between two others with the fewest digits; of equals the nearest their middle."""
    if not low < high:
        return low
    a, b = Decimal(repr(float(low))), Decimal(repr(float(high)))
    middle = (a + b) / 2
    for power in range(math.frexp(high - low)[1] // 3 + 3, -400, -1):
        for digit in (10, 5, 1):
            step = Decimal(digit).scaleb(power - 1)
            for nearest in _multiples(middle, step):
                if a < nearest < b:
                    return float(nearest) + 0.0
    return low + 0.5 * (high - low)


def _multiples(middle: Decimal, step: Decimal) -> list[Decimal]:
    """The two multiples of a step around a number, the nearer first."""
    ratio = middle / step
    around = [ratio.to_integral_value(ROUND_FLOOR) * step, ratio.to_integral_value(ROUND_CEILING) * step]
    return sorted(around, key=lambda m: abs(m - middle))

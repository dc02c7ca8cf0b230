"""Columns of numbers, and the affine scale of one: mean and spread, safe at any magnitude."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.column import TEXT, Cells, Column, ColumnSummary, Kind
from nongauss.tables.rows import floats_of, widened

Floats = NDArray[np.float64]

ROUNDING_RANGE = 16 * 2.0**-52  # a range below this share of the largest value is rounding noise
_LOOK = 100  # values looked at before all are
MIRROR_SKEW = 1e-6  # a third moment (in standard deviations) beyond this fixes the direction

CONTENTS = ("floating", "integer", "mixed-integer-float", "decimal", "empty")
"""What pandas calls objects that are numbers, or none at all."""


_LARGEST = float(np.finfo(np.float64).max)


HIDDEN, FEWEST_HIDDEN = 0.01, 20
"""A value hides at least so many others where their sd is this share of that of all."""


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
        """Standardise values `x` of any shape; not defined for a constant column.

        Numbers beyond the range of a double are taken for its ends.
        """
        with np.errstate(over="ignore"):
            z: Floats = (x / self.unit - self.mean) / self.sd
        return np.clip(z, -_LARGEST, _LARGEST)


def fit_scale(x: Floats, weight: Floats) -> Scale:
    """Weighted mean and population sd of finite values `x` (N,), mirrored so that the skew is not negative.

    Weights count like repetitions of the row. Because the direction follows from the third moment, values
    `a*x + b` get the same standardised values for every a other than 0, unless the column is symmetric, where
    a negative `a` still mirrors it. A column whose range is rounding noise is constant (sd 0).
    """
    return Moments.of(x, weight).scale()


@dataclass(frozen=True)
class Moments:
    """What a `Scale` needs of a column, in a form that adds up over parts of the rows.

    Weight, mean and variance in units of `unit`, and the third moment in standard deviations, `skewness`
    (they add up as Chan, Golub and LeVeque 1979 and Pebay 2008 say); smallest and largest value, one that is
    not whole (NaN: all are), the weight of those above 0, and the values if they are one or two, else ().
    """

    unit: float
    weight: float
    mean: float
    variance: float
    skewness: float
    low: float
    high: float
    fraction: float
    positive: float
    few: tuple[float, ...]

    @classmethod
    def of(cls, x: Floats, weight: Floats) -> Moments:
        """Moments of finite values `x` (N,), at least one, with weights above 0."""
        x = np.ascontiguousarray(x)
        low, high = float(x.min()), float(x.max())
        unit = power_of_two(low, high)
        z = x / unit
        share = weight / weight.max()  # np.sum below, not a BLAS product: same bits whatever the threads
        share = share / share.sum()
        mean = float(np.sum(share * z))
        mean += float(np.sum(share * (z - mean)))
        z -= mean
        variance = float(np.sum(share * z * z))
        z /= math.sqrt(variance) or 1.0
        return cls(
            unit=unit,
            weight=float(np.sum(weight)),
            mean=mean,
            variance=variance,
            skewness=float(np.sum(share * z * z * z)),
            low=low,
            high=high,
            fraction=_first_fraction(x),
            positive=float(np.sum(weight) if low > 0 else np.sum(weight, where=x > 0) if high > 0 else 0.0),
            few=tuple({low, high}) if _are(x[:_LOOK], low, high) and _are(x, low, high) else (),
        )

    def __add__(self, other: Moments) -> Moments:
        unit = max(self.unit, other.unit)
        a, b = self._in(unit), other._in(unit)
        total, apart = a.weight + b.weight, b.mean - a.mean
        share_a, share_b = a.weight / total, b.weight / total
        variance = share_a * a.variance + share_b * b.variance + share_a * share_b * apart * apart
        third = share_a * a.skewness * a.variance**1.5 + share_b * b.skewness * b.variance**1.5
        third += share_a * share_b * apart * (share_a - share_b) * apart * apart
        third += 3.0 * share_a * share_b * apart * (b.variance - a.variance)
        return Moments(
            unit=unit,
            weight=total,
            mean=a.mean + apart * share_b,
            variance=variance,
            skewness=third / variance / math.sqrt(variance) if third and variance else 0.0,
            low=min(a.low, b.low),
            high=max(a.high, b.high),
            fraction=b.fraction if math.isnan(a.fraction) else a.fraction,
            positive=a.positive + b.positive,
            few=_at_most_two(a.few, b.few),
        )

    def _in(self, unit: float) -> Moments:
        s = self.unit / unit
        return replace(self, unit=unit, mean=s * self.mean, variance=s * s * self.variance)

    @property
    def whole(self) -> bool:
        """Are all values whole numbers?"""
        return math.isnan(self.fraction)

    def times(self, ratio: float) -> Moments:
        """Moments of `ratio * x`, `ratio` above 0, to rounding; `fraction` may be another value."""
        if ratio == 1.0:
            return self
        low, high = self.low * ratio, self.high * ratio
        unit = power_of_two(low, high)
        s = self.unit * ratio / unit
        odd = next((x for x in (low, high, self.fraction * ratio) if x != round(x)), math.nan)
        few = tuple(value * ratio for value in self.few)
        moved = replace(self, unit=unit, mean=s * self.mean, variance=s * s * self.variance, few=few)
        return replace(moved, low=low, high=high, fraction=odd)

    def shifted(self, origin: float) -> Moments:
        """Moments of `x - origin`, to rounding; `fraction` and `positive` stay those of x."""
        low, high = self.low - origin, self.high - origin
        unit = power_of_two(low, high)
        s = self.unit / unit
        mean = (self.unit * self.mean - origin) / unit
        few = tuple(value - origin for value in self.few)
        moved = replace(self, unit=unit, mean=mean, variance=s * s * self.variance, few=few)
        return replace(moved, low=low, high=high)

    @property
    def hides(self) -> float:
        """A single value beside which all others look the same, NaN where there is none."""
        end = self.high if self.skewness > 0.0 else self.low
        n, off = self.weight, end / self.unit - self.mean
        if n < FEWEST_HIDDEN or self.few or not self.variance:
            return math.nan
        # Of n values without one at a distance d from the mean: (n - 1) s'^2 = n s^2 - d^2 n / (n - 1).
        others = n * self.variance - off * off * n / (n - 1.0)
        return end if others <= HIDDEN**2 * self.variance * (n - 1.0) else math.nan

    def scale(self) -> Scale:
        """The scale of all the rows."""
        low, high = self.low / self.unit, self.high / self.unit
        if high - low <= ROUNDING_RANGE * max(abs(low), abs(high)):
            return Scale(unit=self.unit, mean=low if low == high else 0.5 * (low + high), sd=0.0)
        sd = math.sqrt(self.variance)
        return Scale(unit=self.unit, mean=self.mean, sd=-sd if self.skewness < -MIRROR_SKEW else sd)


def _first_fraction(x: Floats) -> float:
    """The first value that is not whole, NaN if all are. It is mostly among the first."""
    for some in (x[:_LOOK], x[_LOOK:]):
        odd = some != np.round(some)
        if odd.any():
            return float(some[np.argmax(odd)])
    return math.nan


def _are(x: Floats, low: float, high: float) -> bool:
    """Is every value one of these two?"""
    return bool(((x == low) | (x == high)).all())


def _at_most_two(a: tuple[float, ...], b: tuple[float, ...]) -> tuple[float, ...]:
    together = tuple({*a, *b})
    return together if a and b and len(together) <= 2 else ()


def power_of_two(low: float, high: float) -> float:
    """The largest power of two that is not above the largest absolute value."""
    return math.ldexp(1.0, math.frexp(max(abs(low), abs(high)))[1] - 1)


class Number(Kind):
    """Numbers of any type; True and False beside numbers, or in an array, count as 1 and 0."""

    name = "number"
    plural = "numbers"

    def decode(self, cells: Cells) -> Column | None:
        """Numbers as float64, NaN where missing; those that are float64 already are not copied."""
        if isinstance(cells.dtype, pd.CategoricalDtype) or getattr(cells.dtype, "kind", "") in "mMV":
            return None
        values = _typed(cells)
        if values is None:
            content = cells.content
            if content in TEXT:
                return None
            if content not in CONTENTS:
                present = cells.objects[~cells.missing]
                if not all(isinstance(cell, bool | int | float | np.number | np.bool_) for cell in present):
                    return None
            values = np.full(len(cells.objects), np.nan)
            values[~cells.missing] = as_doubles(cells.objects[~cells.missing])
        return Column(cells.name, values, kind=self.name)

    def summarise(self, column: Column, weight: NDArray[np.float64]) -> Moments:
        """Moments and extremes."""
        assert column.values is not None
        return Moments.of(column.values, weight)

    def columns(self, name: str, facts: Moments, gaps: bool) -> tuple[ColumnSummary, ...]:
        """The column itself."""
        return (ColumnSummary(name, gaps, facts, kind=self.name),)

    def flat(self, column: Column, part: str, origin: float) -> Column:
        """The numbers. Labels are read by the kind of quantities (see `tables.kinds.flat`)."""
        return column

    def shown(self, value: Any, part: str, origin: float) -> str:
        """A number without more digits than it has."""
        return shown_number(float(value))


def as_doubles(objects: NDArray[np.object_]) -> Floats:
    """Numbers of any types (N,) as float64: one beyond its range is infinite, as a literal of it is."""
    try:
        return objects.astype(np.float64)
    except OverflowError:  # of Python's integers alone
        return np.array([_as_double(cell) for cell in objects], dtype=np.float64)


def _as_double(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def shown_number(x: float) -> str:
    """A number without more digits than it has."""
    return np.format_float_positional(x, trim="-") if 1e-4 <= abs(x) < 1e15 or x == 0 else f"{x:.12g}"


def _typed(cells: Cells) -> NDArray[np.float64] | None:
    """The values of a typed column of numbers, None of objects."""
    raw, dtype = cells.raw, cells.dtype
    if not isinstance(raw, pd.Series):
        return widened(raw) if dtype.kind in "biuf" else None
    if pd.api.types.is_complex_dtype(dtype):
        raise InputError(
            f"Complex data not supported: column {cells.name!r} of X; split it into two real ones."
        )
    if not pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        return None
    return floats_of(raw)

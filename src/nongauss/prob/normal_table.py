"""Moments of N(a, 1) cut at 0 on the host, by a table of Taylor series: nothing is compiled.

The mean m(a) and its derivatives, which are the variance v, the third central moment and so on, stand at the
middles of cells `_WIDTH` wide, and so do the log of Mills' ratio and its first two derivatives. Between them
a few terms of the series suffice: in float32 they are exact to rounding, in float64 to 1e-11 (the log to
1e-9). Far below the table the asymptotic series of Mills' ratio goes on; far above it N(a, 1) is not cut at
all. `nongauss.prob.normal` has the same functions for JAX.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx

from nongauss.prob.normal import MEAN_64, SHIFT, VARIANCE_64

_LEFT, _RIGHT, _WIDTH = -40.0, 16.0, 1.0 / 512.0

Numbers = npt.NDArray[Any]


class Located(NamedTuple):
    """Numbers a, the cell of the table that each lies in (beyond the table the outermost), and how far it is
    from the middle of that, at most half a cell. NaN is in no cell, and as far as NaN."""

    a: Numbers
    cell: npt.NDArray[np.intp]
    way: Numbers


class CutMoments(NamedTuple):
    """Mean, variance and third central moment of N(a, 1) cut at 0, each of the shape of a."""

    mean: Numbers
    variance: Numbers
    third: Numbers


class _Table(NamedTuple):
    """The middles of the cells; at each m with its derivatives, and with its first two derivatives the log
    of Mills' ratio l(a) = log(Phi(a) / phi(a)), less a^2 / 2 where a is not negative. (T,), one precision.
    """

    middles: Numbers
    moments: list[Numbers]
    log_mills: list[Numbers]


def located(a: Numbers) -> Located:
    """Where in the table the numbers lie: an array of any shape in float32 or float64.

    Here and below arrays are small and worked on in place: making new ones would cost most.
    """
    kind = a.dtype.type
    within = np.maximum(a, kind(_LEFT))
    np.minimum(within, kind(_RIGHT - 0.25 * _WIDTH), out=within)
    shifted = within - kind(_LEFT)
    shifted *= kind(1.0 / _WIDTH)
    with np.errstate(invalid="ignore"):  # of NaN the cell is any
        cell = shifted.astype(np.intp)
    within -= _at(cell, _table(a.dtype.char).middles)  # which are exact in both precisions
    return Located(a, cell, within)


def _at(cell: npt.NDArray[np.intp], column: Numbers) -> Numbers:
    """A column of the table at cells; NaN, which has none, takes what stands at the end."""
    return column.take(cell, mode="clip")


def cut_moments(at: Located) -> CutMoments:
    """The moments, in the precision of the numbers."""
    a, cell, way = at
    mean, variance, third, f, *rest = (_at(cell, column) for column in _table(a.dtype.char).moments)
    if rest:
        g, h = rest
        mean += way * (
            variance + way * (third / 2.0 + way * (f / 6.0 + way * (g / 24.0 + way * (h / 120.0))))
        )
        variance += way * (third + way * (f / 2.0 + way * (g / 6.0 + way * (h / 24.0))))
        third += way * (f + way * (g / 2.0 + way * (h / 6.0)))
    else:
        mean += way * variance  # cells are so narrow that the bend of each is below rounding
        variance += way * third
        f *= way
        third += f
    np.maximum(mean, a, out=mean)  # far above N(a, 1) is not cut at all
    if a.size and a.min() < _LEFT:
        far = np.flatnonzero(a < _LEFT)
        for part, found in zip((mean, variance, third), _far_below(-a.take(far)), strict=True):
            part.put(far, found)
    return CutMoments(mean, variance, third)


def log_mills_difference(before: Located, after: Located, step: Numbers) -> Numbers:
    """l(a + step) - l(a), of the places of a and a + step. The z^2 / 2 of z >= 0 is formed by hand."""
    from_a, to_b = np.maximum(before.a, 0.0), np.maximum(after.a, 0.0)
    change = np.maximum(step, -from_a)  # of z where z >= 0: all of the step, or the part of it above 0
    np.minimum(change, to_b, out=change)
    from_a += to_b
    change *= from_a
    change *= 0.5
    change += _log_mills(after)
    change -= _log_mills(before)
    return change


def _log_mills(at: Located) -> Numbers:
    """l(a) for a < 0, and l(a) - a^2 / 2 for a >= 0."""
    found, slope, bend = (_at(at.cell, column) for column in _table(at.a.dtype.char).log_mills)
    bend *= 0.5
    bend *= at.way
    bend += slope
    bend *= at.way
    bend += found
    if at.a.size and at.a.min() < _LEFT:
        far = np.flatnonzero(at.a < _LEFT)
        z = -at.a.take(far)
        u = (1.0 / z) ** 2
        bend.put(far, np.log1p(-u * (1.0 - u * (3.0 - u * (15.0 - 105.0 * u)))) - np.log(z))
    return bend


def _far_below(z: Numbers) -> CutMoments:
    """The moments at -z, z large: m = 1/z - 2/z^3 + 10/z^5 - ..., and its derivatives by a = -z."""
    u = (1.0 / z) ** 2  # z^2 may be no number any more
    return CutMoments(
        (1.0 - u * (2.0 - u * (10.0 - u * (74.0 - 706.0 * u)))) / z,
        u * (1.0 - u * (6.0 - u * (50.0 - u * (518.0 - 6354.0 * u)))),
        2.0 * u / z * (1.0 - u * (12.0 - u * (150.0 - u * (2072.0 - 31770.0 * u)))),
    )


@lru_cache
def _table(kind: str) -> _Table:
    """The table in one precision: float32 needs fewer derivatives."""
    a = _LEFT + _WIDTH * (np.arange(round((_RIGHT - _LEFT) / _WIDTH)) + 0.5)
    dtype, above = np.dtype(kind), a >= 0.0
    moments = _derivatives(a)
    m, v = moments[:2]
    log = np.log(np.sqrt(0.5 * np.pi) * erfcx(-a / np.sqrt(2.0))) - np.where(above, 0.5 * a * a, 0.0)
    mills = [log, m - np.where(above, a, 0.0), v - np.where(above, 1.0, 0.0)]
    n = 4 if dtype == np.float32 else 6
    least = 1e-30 if dtype == np.float32 else 0.0  # numbers below the normal ones are slow

    def kept(column: Numbers) -> Numbers:
        return np.where(np.abs(column) < least, 0.0, column).astype(dtype)

    return _Table(a.astype(dtype), list(map(kept, moments[:n])), list(map(kept, mills)))


def _derivatives(a: Numbers) -> list[Numbers]:
    """m and its first five derivatives; m and v as in `nongauss.prob.normal`, which has the equations."""
    u = 1.0 / (np.abs(a) + SHIFT)
    excess, excess_variance = (np.polyval(c, 1.0 - 2.0 * SHIFT * u) for c in (MEAN_64, VARIANCE_64))
    r = np.where(a < 0.0, u * excess - a, np.sqrt(2.0 / np.pi) / erfcx(-a / np.sqrt(2.0)))
    m = np.where(a < 0.0, u * excess, a + r)
    v = np.where(a < 0.0, u * u * excess_variance, 1.0 - r * m)
    w = m * m - v  # the third moment is r w, and r' = v - 1
    t = r * w
    dw = 2.0 * m * v - t
    f = (v - 1.0) * w + r * dw
    ddw = 2.0 * v * v + 2.0 * m * t - f
    g = t * w + 2.0 * (v - 1.0) * dw + r * ddw
    dddw = 6.0 * v * t + 2.0 * m * f - g
    h = f * w + 3.0 * t * dw + 3.0 * (v - 1.0) * ddw + r * dddw
    return [m, v, t, f, g, h]

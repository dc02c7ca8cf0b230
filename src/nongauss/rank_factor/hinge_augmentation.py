r"""What a cell tells of its factor score w = a'z: a quadratic -p w^2 / 2 + b w, for ranks and for values.

A rank's hinge exp(-2 [u]_+) is a mixture of normals (Polson and Scott 2011, their eq. 3): given 1/lambda =
g it is exp(-g u^2 / 2 - u). u = eps + w - m_upper and u = eps + m_lower - w, where m is the mean score of a
level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.prob.inverse_gaussian import draw
from nongauss.rank_factor.levels import NONE, Neighbours
from nongauss.rank_factor.params import FloatArray


class Hinges(NamedTuple):
    """Cells (B, D): u of the lower and of the upper hinge at the mean, and whether there is one."""

    lower: FloatArray
    upper: FloatArray
    has_lower: NDArray[np.bool_]
    has_upper: NDArray[np.bool_]


def hinges(score: FloatArray, below: FloatArray, above: FloatArray, cells: Neighbours, eps: float) -> Hinges:
    """Both hinges of scores w (B, D), given a level's score as lower and as upper neighbour (D, Q)."""
    n_columns, n_levels = below.shape
    base = np.arange(n_columns, dtype=np.intp) * n_levels
    has_lower, has_upper = cells.lower != NONE, cells.upper != NONE
    margin = score.dtype.type(eps)
    lower = below.ravel()[base + np.where(has_lower, cells.lower, 0)] - score + margin
    upper = score - above.ravel()[base + np.where(has_upper, cells.upper, 0)] + margin
    return Hinges(lower, upper, has_lower, has_upper)


def weights(
    at: Hinges, variances: tuple[FloatArray, FloatArray], floor: float
) -> tuple[FloatArray, FloatArray]:
    """<1/lambda> = <u^2>^{-1/2} of both hinges, 0 where there is none; <u^2> is at least floor^2."""
    out = []
    for u, has, variance in zip(at[:2], at[2:], variances, strict=True):
        square = np.maximum(u * u + variance, u.dtype.type(floor * floor))
        out.append(np.where(has, 1.0 / np.sqrt(square), u.dtype.type(0.0)))
    return out[0], out[1]


def drawn_weights(rng: np.random.Generator, at: Hinges) -> tuple[FloatArray, FloatArray]:
    """Draws of 1/lambda of both hinges, 0 where there is none."""
    out = []
    for u, has in zip(at[:2], at[2:], strict=True):
        g = np.zeros_like(u)
        g[has] = draw(rng, u[has])
        out.append(g)
    return out[0], out[1]


def quadratic(
    at: Hinges, g: tuple[FloatArray, FloatArray], score: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Precision p and linear term b of each cell (B, D), at the scores where the hinges were taken."""
    g_lower, g_upper = g
    precision = g_lower + g_upper
    linear = g_lower * at.lower - g_upper * at.upper + precision * score
    linear += at.has_lower
    linear -= at.has_upper
    return precision, linear


def loss(at: Hinges, variances: tuple[FloatArray, FloatArray]) -> FloatArray:
    """E of both hinges' exponent, bounded: u + sqrt <u^2>, summed over the cells of a row: (B,)."""
    each = (
        np.where(has, u + np.sqrt(u * u + variance), u.dtype.type(0.0))
        for u, has, variance in zip(at[:2], at[2:], variances, strict=True)
    )
    total: FloatArray = sum(part.sum(axis=1, dtype=np.float64) for part in each)
    return total

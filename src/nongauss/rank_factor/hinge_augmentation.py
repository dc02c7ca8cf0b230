r"""What a cell tells of its factor score w = a'z: -p w^2 / 2 + b w, by the augmentation of its hinges.

A rank's hinge exp(-2 [u]_+) is a mixture of normals (Polson and Scott 2011, their eq. 3): given 1/lambda =
g it is exp(-g u^2 / 2 - u). u = eps + w - m_upper and u = eps + m_lower - w, where m is the mean score of a
level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.prob import inverse_gaussian
from nongauss.rank_factor.data import NONE, FloatArray, Neighbours


class Hinges(NamedTuple):
    """Cells (B, D): u of the lower and of the upper hinge at the mean, and whether there is one."""

    lower: FloatArray
    upper: FloatArray
    has_lower: NDArray[np.bool_]
    has_upper: NDArray[np.bool_]

    @property
    def sides(self) -> tuple[tuple[FloatArray, NDArray[np.bool_]], ...]:
        """u and whether there is a hinge, of the lower and of the upper side."""
        return (self.lower, self.has_lower), (self.upper, self.has_upper)


def hinges(score: FloatArray, below: FloatArray, above: FloatArray, cells: Neighbours, eps: float) -> Hinges:
    """Both hinges of scores w (B, D), given a level's score as lower and as upper neighbour (D, Q)."""
    n_columns, n_levels = below.shape
    base = np.arange(n_columns, dtype=np.intp) * n_levels
    has_lower, has_upper = cells.lower != NONE, cells.upper != NONE
    margin = score.dtype.type(eps)
    lower = below.ravel()[base + np.where(has_lower, cells.lower, 0)] - score + margin
    upper = score - above.ravel()[base + np.where(has_upper, cells.upper, 0)] + margin
    return Hinges(lower, upper, has_lower, has_upper)


def expected_weights(
    at: Hinges, variances: tuple[FloatArray, FloatArray], floor: float
) -> tuple[FloatArray, FloatArray]:
    """<1/lambda> = <u^2>^{-1/2} of both hinges, 0 where there is none; <u^2> is at least floor^2."""
    out = []
    for (u, has), variance in zip(at.sides, variances, strict=True):
        square = np.maximum(u * u + variance, u.dtype.type(floor * floor))
        out.append(np.where(has, 1.0 / np.sqrt(square), u.dtype.type(0.0)))
    return out[0], out[1]


def drawn_weights(rng: np.random.Generator, at: Hinges) -> tuple[FloatArray, FloatArray]:
    """Draws of 1/lambda ~ inverse Gaussian(1 / |u|, 1) of both hinges, 0 where there is none."""
    out = []
    for u, has in at.sides:
        g = np.zeros_like(u)
        g[has] = inverse_gaussian.draw(rng, u[has])
        out.append(g)
    return out[0], out[1]


def quadratic(
    at: Hinges, g: tuple[FloatArray, FloatArray], score: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Precision p and linear term b of each cell (B, D), at the scores where the hinges were taken.

    p = g_l + g_u, and b = g_l (u_l + w) - g_u (u_u - w) + [has_l] - [has_u].
    """
    g_lower, g_upper = g
    precision = g_lower + g_upper
    linear = g_lower * at.lower - g_upper * at.upper + precision * score
    linear += at.has_lower
    linear -= at.has_upper
    return precision, linear

"""Piecewise linear and quadratic upper bounds of log(1 + e^x), and their expectations under a normal.

A bound with R pieces is minimax: its largest error is the least that R pieces of that degree can have
(Marlin, Khan and Murphy, ICML 2011). `piecewise.json` holds the coefficients,
`tests/reference/make_piecewise.py` computes them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike
from scipy.special import ndtr

Expected = tuple[Float64[np.ndarray, "*S"], Float64[np.ndarray, "*S"], Float64[np.ndarray, "*S"]]
"""A value and its derivatives by the mean and by the variance."""

_ROOT_2PI = float(np.sqrt(2.0 * np.pi))


class Pieces(NamedTuple):
    """a x^2 + b x + c on [low, high], one number a piece; `error`: largest gap to log(1 + e^x)."""

    a: Float64[np.ndarray, " R"]
    b: Float64[np.ndarray, " R"]
    c: Float64[np.ndarray, " R"]
    low: Float64[np.ndarray, " R"]
    high: Float64[np.ndarray, " R"]
    error: float


@lru_cache(maxsize=64)
def bound(n_pieces: int, degree: int = 2) -> Pieces:
    """The bound with 2 to 20 pieces of degree 1 or 2. Raises ValueError for others."""
    table = json.loads((resources.files("nongauss.prob") / "piecewise.json").read_text())
    entry = table.get(f"{degree}:{n_pieces}")
    if entry is None:
        raise ValueError(f"Bounds have 2 to 20 pieces of degree 1 or 2, got {n_pieces} of degree {degree}.")
    edges = np.array([-np.inf, *entry["breakpoints"], np.inf])
    a, b, c = np.array(entry["coefficients"]).T
    return Pieces(a, b, c, edges[:-1], edges[1:], entry["error"])


def evaluate(x: ArrayLike | float, n_pieces: int, degree: int = 2) -> Float64[np.ndarray, "*B"]:
    """The bound itself at x; at a breakpoint, the piece to its right.

    No fit computes it: it is the specification that tests compare `bound` and `expected_bound` with.
    """
    pieces = bound(n_pieces, degree)
    at = np.asarray(x, dtype=np.float64)
    which = np.searchsorted(pieces.high[:-1], at, side="right")
    found: Float64[np.ndarray, "*B"] = (pieces.a[which] * at + pieces.b[which]) * at + pieces.c[which]
    return found


def expected_bound(
    mean: ArrayLike | float, variance: ArrayLike | float, n_pieces: int = 20, degree: int = 2
) -> Expected:
    """E bound(f) for f ~ N(mean, variance) and its derivatives by both, in closed form by truncated moments.

    With z the ends of a piece on the standard scale, d0 and d1 the differences over it of the density
    N(.; m, v) and of edge times density: its mass is the difference of Phi(z), E[f] on it is m mass - v d0,
    and E[f^2] is (m^2 + v) mass - v (d1 + m d0).

    At most `bound(...).error` above E log(1 + e^f). The bound jumps at its breakpoints, which adds to the
    derivatives; so that by the variance may be negative.
    """
    p = bound(n_pieces, degree)
    m, v = np.broadcast_arrays(np.asarray(mean, np.float64), np.asarray(variance, np.float64))
    m, v = m[..., None], v[..., None]
    sd = np.sqrt(v)
    edges = p.high[:-1]
    z = (edges - m) / sd
    density = np.exp(-0.5 * np.minimum(z * z, 1400.0)) / (sd * _ROOT_2PI)
    below = np.concatenate([np.zeros_like(m), ndtr(z), np.ones_like(m)], axis=-1)
    above = np.concatenate([np.ones_like(m), ndtr(-z), np.zeros_like(m)], axis=-1)
    small = below[..., :-1] < above[..., 1:]
    mass = np.where(small, np.diff(below), -np.diff(above))
    edge = np.zeros_like(m)
    d0 = np.diff(np.concatenate([edge, density, edge], axis=-1))  # N at the upper end less that at the lower
    d1 = np.diff(np.concatenate([edge, edges * density, edge], axis=-1))
    first = m * mass - v * d0
    second = (m * m + v) * mass - v * (d1 + m * d0)
    value = (p.a * second + p.b * first + p.c * mass).sum(axis=-1)
    jump = np.diff(p.a) * edges**2 + np.diff(p.b) * edges + np.diff(p.c)
    slope_jump = 2.0 * np.diff(p.a) * edges + np.diff(p.b)
    by_mean = (2.0 * p.a * first + p.b * mass).sum(axis=-1) + (jump * density).sum(axis=-1)
    steep = (slope_jump + jump * z / sd) * density
    by_variance = (p.a * mass).sum(axis=-1) + 0.5 * steep.sum(axis=-1)
    return value, by_mean, by_variance

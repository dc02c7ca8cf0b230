"""Draws of the inverse Gaussian distribution with shape 1, without cancellation however large its mean."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

FLOOR = 1e-6
"""Least 1/mean: below it draws no longer change to this relative accuracy."""


def draw(rng: np.random.Generator, inverse_mean: Float[np.ndarray, "*S"]) -> Float[np.ndarray, "*S"]:
    """One draw of IG(1 / |inverse_mean|, 1) for each element, in its precision.

    Michael, Schucany and Haas (1976); with t = mean z^2 / 2 for a standard normal z, the smaller
    root is mean / (1 + t + sqrt(t (t + 2))); it is taken with probability mean / (mean + root), else
    mean^2 / root is.
    """
    r = np.maximum(np.abs(inverse_mean), inverse_mean.dtype.type(FLOOR))
    t = rng.standard_normal(r.shape, dtype=r.dtype)
    np.square(t, out=t)
    t /= 2.0 * r
    root = 1.0 + t + np.sqrt(t * (t + 2.0))  # mean / smaller root
    smaller = rng.random(r.shape, dtype=r.dtype) * (1.0 + root) <= root
    drawn: Float[np.ndarray, "*S"] = np.where(smaller, 1.0 / (r * root), root / r)
    return drawn

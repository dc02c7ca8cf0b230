"""Draws of the inverse Gaussian distribution with shape 1, without cancellation however large its mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOOR = 1e-6
"""Least 1/mean: below it draws no longer change to this relative accuracy."""


def draw(rng: np.random.Generator, inverse_mean: NDArray[Any]) -> NDArray[Any]:
    """One draw of IG(1 / inverse_mean, 1) for each element, in its precision; negative ones count as theirs.

    Michael, Schucany and Haas (1976); the smaller root is mean / (1 + t + sqrt(t (t + 2))).
    """
    r = np.maximum(np.abs(inverse_mean), inverse_mean.dtype.type(FLOOR))
    t = rng.standard_normal(r.shape, dtype=r.dtype)
    np.square(t, out=t)
    t /= 2.0 * r
    root = 1.0 + t + np.sqrt(t * (t + 2.0))  # mean / smaller root
    smaller = rng.random(r.shape, dtype=r.dtype) * (1.0 + root) <= root
    return np.where(smaller, 1.0 / (r * root), root / r)

"""What is estimated: soft rectangles and what the clusters look like, with the prior of the rectangles.

Axes: S starts side by side, K clusters, D numeric rule columns, L levels of all label rule columns together,
P numeric structure columns. Everything is scaled. Start values are in `updates.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray

from nongauss.core.records import persistable
from nongauss.rectangle.data import FloatArray, IntArray

REACH = 16.0
"""Bounds and scaled rule values are held inside this: farther out nothing changes and nothing overflows."""

ALPHA, BETA = 0.1, 1.0
"""The paper's precisions, for bounds that nobody has stated: around the column's mean, and of the width."""


@persistable("rectangle.SoftBoxes")
class SoftBoxes(NamedTuple):
    """Soft rectangles: lower and upper (S, K, D), and how much each level belongs, sets (S, K, L)."""

    lower: Float64[np.ndarray, "S K D"]
    upper: Float64[np.ndarray, "S K D"]
    sets: Float64[np.ndarray, "S K L"]

    def flat(self) -> FloatArray:
        """All parameters side by side: lower, upper, sets, (S, K, 2 D + L)."""
        return np.concatenate(self, axis=-1)

    @classmethod
    def of(cls, flat: FloatArray, n_numeric: int) -> SoftBoxes:
        """The boxes whose parameters side by side are (S, K, 2 D + L)."""
        lower, upper, sets = np.split(flat, [n_numeric, 2 * n_numeric], axis=-1)
        return cls(lower, upper, sets)


@persistable("rectangle.Structure", "nongauss.rectangle.params:Structure")
class ClusterStructure(NamedTuple):
    """What the clusters look like: mean (S, K, P), scatter (S, K, P, P), log level probabilities (S, K, Ly).

    `scatter` is the covariance, or for Student's t the scale matrix.
    """

    mean: Float64[np.ndarray, "S K P"]
    scatter: Float64[np.ndarray, "S K P P"]
    log_levels: Float64[np.ndarray, "S K L"]


class RectangleParams(NamedTuple):
    """Boxes and structure of all starts."""

    boxes: SoftBoxes
    structure: ClusterStructure

    def starts(self, chosen: IntArray) -> RectangleParams:
        """The starts with these numbers."""
        boxes, structure = ([part[chosen] for part in parts] for parts in self)
        return RectangleParams(SoftBoxes(*boxes), ClusterStructure(*structure))

    def clusters(self, chosen: IntArray) -> RectangleParams:
        """The clusters with these numbers, in this order, of all starts."""
        boxes, structure = ([part[:, chosen] for part in parts] for parts in self)
        return RectangleParams(SoftBoxes(*boxes), ClusterStructure(*structure))


class StatedBound(NamedTuple):
    """One scaled bound stated beforehand: `place` counts lower bounds, then upper bounds, then levels."""

    cluster: int
    place: int
    value: float
    precision: float


class BoxPrior(NamedTuple):
    """Normal priors: centre and precision of each parameter (K, 2 D + L), precision of each width (K, D).

    `stated` (K, 2 D + L): which parameters somebody has stated.
    """

    centre: FloatArray
    precision: FloatArray
    width_precision: FloatArray
    stated: NDArray[np.bool_]


def box_prior(
    n_clusters: int,
    n_numeric: int,
    n_levels: int,
    stated: Sequence[StatedBound],
    alpha: float = ALPHA,
    beta: float = BETA,
) -> BoxPrior:
    """The weak prior, with the stated bounds in their places: these do not feel the pull on the width."""
    centre = np.zeros((n_clusters, 2 * n_numeric + n_levels))
    precision = np.full(centre.shape, alpha)
    width = np.full((n_clusters, n_numeric), beta)
    known = np.zeros(centre.shape, dtype=np.bool_)
    for item in stated:
        centre[item.cluster, item.place] = item.value
        precision[item.cluster, item.place] = item.precision
        known[item.cluster, item.place] = True
        if item.place < 2 * n_numeric:
            width[item.cluster, item.place % n_numeric] = 0.0
    return BoxPrior(centre, precision, width, known)

"""What is estimated, and the rows that it is estimated from. Start values are in `starts.py`.

Axes: N rows, D numeric rule columns, L levels of all label rule columns together, P numeric structure
columns, S starts side by side, K clusters. "Scaled" means in standard deviations of the column (or its rank
scale).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.core.records import persistable

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

KINDS = ("student_t", "full", "diagonal", "shared")
"""Distributions of the numeric structure columns within a cluster."""

REACH = 16.0
"""Bounds and scaled rule values are held inside this: farther out nothing changes and nothing overflows."""

STEEPNESS = (5.0, 10.0, 20.0)
"""Slopes of the soft bounds, from soft to hard, per standard deviation."""


class Labels(NamedTuple):
    """Label columns: codes (N, C), -1 where missing, and the number of levels of each column."""

    codes: IntArray
    n_levels: tuple[int, ...]

    @property
    def offsets(self) -> IntArray:
        """Where the levels of each column begin among all levels."""
        return np.concatenate([[0], np.cumsum(self.n_levels)[:-1]]).astype(np.intp)[: len(self.n_levels)]

    def one_hot(self) -> FloatArray:
        """Levels as 0/1 columns (N, L); a missing cell has none."""
        out = np.zeros((len(self.codes), sum(self.n_levels)))
        for column, offset in zip(self.codes.T, self.offsets, strict=True):
            present = np.flatnonzero(column >= 0)
            out[present, offset + column[present]] = 1.0
        return out

    def take(self, rows: IntArray) -> Labels:
        """Some of the rows."""
        return Labels(self.codes[rows], self.n_levels)


class Rows:
    """Distinct rows, scaled, with their weights. X (N, D) for the rules and Y (N, P) for the structure.

    NaN is a missing cell. `groups` lists, for each pattern of missing cells in Y, the rows and the columns
    present.
    """

    def __init__(self, X: FloatArray, X_labels: Labels, Y: FloatArray, Y_labels: Labels, weight: FloatArray):
        self.X, self.X_labels, self.Y, self.Y_labels, self.weight = X, X_labels, Y, Y_labels, weight

    def __len__(self) -> int:
        return len(self.weight)

    def take(self, rows: IntArray) -> Rows:
        """Some of the rows."""
        return Rows(
            self.X[rows], self.X_labels.take(rows), self.Y[rows], self.Y_labels.take(rows), self.weight[rows]
        )

    @cached_property
    def groups(self) -> list[tuple[IntArray, IntArray]]:
        """(row numbers, columns present) for each pattern of missing cells in Y."""
        present = ~np.isnan(self.Y)
        patterns, which = np.unique(present, axis=0, return_inverse=True)
        which = which.reshape(-1)
        return [(np.flatnonzero(which == i), np.flatnonzero(pattern)) for i, pattern in enumerate(patterns)]

    @cached_property
    def X_levels(self) -> FloatArray:
        """Levels of the label rule columns as 0/1 columns (N, L)."""
        return self.X_labels.one_hot()

    @cached_property
    def Y_levels(self) -> FloatArray:
        """Levels of the label structure columns as 0/1 columns (N, Ly)."""
        return self.Y_labels.one_hot()


class Boxes(NamedTuple):
    """Soft rectangles, scaled: lower and upper (S, K, D), and how much each level belongs, sets (S, K, L)."""

    lower: FloatArray
    upper: FloatArray
    sets: FloatArray

    def flat(self) -> FloatArray:
        """(S, K, 2 D + L)."""
        return np.concatenate(self, axis=-1)

    @classmethod
    def of(cls, flat: FloatArray, n_numeric: int) -> Boxes:
        """From (S, K, 2 D + L)."""
        lower, upper, sets = np.split(flat, [n_numeric, 2 * n_numeric], axis=-1)
        return cls(lower, upper, sets)

    def start(self, s: int) -> Boxes:
        """One of the starts, as S = 1."""
        return Boxes(*(part[s : s + 1] for part in self))


@persistable("rectangle.Structure", "nongauss.rectangle.params:Structure")
class Structure(NamedTuple):
    """What the clusters look like: mean (S, K, P), scatter (S, K, P, P), log level probabilities (S, K, Ly).

    `scatter` is the covariance, or for Student's t the scale matrix.
    """

    mean: FloatArray
    scatter: FloatArray
    log_levels: FloatArray

    def start(self, s: int) -> Structure:
        """One of the starts, as S = 1."""
        return Structure(*(part[s : s + 1] for part in self))


class BoxPrior(NamedTuple):
    """Normal priors: centre and precision of each parameter (K, 2 D + L), precision of each width (K, D)."""

    centre: FloatArray
    precision: FloatArray
    width_precision: FloatArray


ALPHA, BETA = 0.1, 1.0
"""The paper's precisions, for bounds that nobody has stated: around the column's mean, and of the width."""


def box_prior(n_clusters: int, n_numeric: int, n_levels: int, stated: Sequence[Stated] = ()) -> BoxPrior:
    """The weak prior, with the stated bounds in their places: these do not feel the pull on the width."""
    centre = np.zeros((n_clusters, 2 * n_numeric + n_levels))
    precision = np.full(centre.shape, ALPHA)
    width = np.full((n_clusters, n_numeric), BETA)
    for item in stated:
        centre[item.cluster, item.place] = item.value
        precision[item.cluster, item.place] = item.precision
        if item.place < 2 * n_numeric:
            width[item.cluster, item.place % n_numeric] = 0.0
    return BoxPrior(centre, precision, width)


class Stated(NamedTuple):
    """One scaled bound stated beforehand: `place` counts lower bounds, then upper bounds, then levels."""

    cluster: int
    place: int
    value: float
    precision: float

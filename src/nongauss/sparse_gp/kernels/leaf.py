"""Kernels that are no sums or products: which columns they look at, and the priors of their parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.sparse_gp.kernels.base import FloatArray, Kernel, Space

PRIOR_SD = 1.5
"""Standard deviation of the log-normal prior of every length-scale and variance: a factor of 20 in 2 sd."""


@dataclass(frozen=True)
class Leaf(Kernel):
    """A kernel that is no sum or product: a variance, and a length-scale for each column it looks at.

    `columns` are names or positions of input columns, None is all.
    """

    columns: tuple[str | int, ...] | None = None
    name: ClassVar[str] = ""
    extra: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if isinstance(self.columns, str | int):
            object.__setattr__(self, "columns", (self.columns,))
        elif self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))

    @property
    def n_leaves(self) -> int:
        """One: the kernel itself."""
        return 1

    def labels(self, space: Space) -> tuple[str, ...]:
        """Variance, length-scales, then what else there is."""
        _, _, used = chosen(self.columns, space)
        scales = tuple(f"{self.name} lengthscale {space.names[g]}" for g in used)
        return (f"{self.name} variance", *scales, *(f"{self.name} {word}" for word in self.extra))

    def lengthscales(self, theta: FloatArray, space: Space) -> dict[str, float]:
        """Length-scales of the columns that the kernel looks at."""
        used = chosen(self.columns, space)[2]
        scales = np.exp(theta[1 : 1 + len(used)])
        return {space.names[g]: float(scale) for g, scale in zip(used, scales, strict=True)}

    def restricted(self, columns: tuple[str, ...]) -> Kernel:
        """The kernel of these columns; as it is if it names its own."""
        return self if self.columns is not None else replace(self, columns=columns)

    @property
    def label_columns(self) -> tuple[str | int, ...]:
        """None: a leaf looks at numbers unless it says otherwise."""
        return ()

    @property
    def labels_everywhere(self) -> bool:
        """No: cells are numbers to it, unless it says otherwise."""
        return False

    def prior_mean(self, space: Space) -> FloatArray:
        """Variance 1; length-scales sqrt(D), the size of a typical distance between standardised rows.

        D counts the input columns that it looks at, also where these share a length-scale.
        """
        _, _, used = chosen(self.columns, space)
        scales = np.full(len(used), 0.5 * math.log(max(len(used) * space.together, 1)))
        return np.concatenate([[0.0], scales, np.zeros(len(self.extra))])

    def prior_sd(self, space: Space, of_variance: float) -> FloatArray:
        """`of_variance` for the log of the variance, which comes first; one value for all others."""
        return np.concatenate([[of_variance], np.full(self.size(space) - 1, PRIOR_SD)])

    def start(self, space: Space, shift: float = 0.0) -> FloatArray:
        """The mean of the prior, length-scales shifted."""
        theta = self.prior_mean(space)
        theta[1 : len(theta) - len(self.extra)] += shift
        return theta

    def variance(self, theta: FloatArray, space: Space) -> float:
        """The first parameter, whose log is in `theta`."""
        return math.exp(theta[0])

    def diagonal(self, theta: FloatArray, space: Space, B: FloatArray) -> FloatArray:
        """The variance, at every row."""
        return np.full(len(B), math.exp(theta[0]))

    def diagonal_backward(
        self, theta: FloatArray, space: Space, B: FloatArray, cotangent: FloatArray
    ) -> FloatArray:
        """Only the variance has a part in it."""
        out = np.zeros(len(theta))
        out[0] = math.exp(theta[0]) * cotangent.sum()
        return out


@lru_cache(maxsize=256)
def chosen(
    columns: tuple[str | int, ...] | None, space: Space
) -> tuple[NDArray[np.intp], NDArray[np.intp], tuple[int, ...]]:
    """The encoded columns of some input columns: their positions, for each its place among the input columns
    used, and the numbers of those. None is all. Raises InputError for a column that is not there.
    """
    wanted = tuple(range(len(space.names))) if columns is None else tuple(_number(c, space) for c in columns)
    group = np.array(space.group, dtype=np.intp)
    used = tuple(g for g in wanted if (group == g).any())
    index = np.flatnonzero(np.isin(group, used))
    local = np.array([used.index(g) for g in group[index]], dtype=np.intp)
    return index, local, used


def _number(column: str | int, space: Space) -> int:
    if isinstance(column, str) and column in space.names:
        return space.names.index(column)
    if not isinstance(column, str) and -len(space.names) <= column < len(space.names):
        return int(column) % len(space.names)
    raise InputError(
        f"The kernel looks at column {column!r}, which is not there; there are {', '.join(space.names)}."
    )

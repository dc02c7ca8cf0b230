"""What the kernels that are no sums or products share: a variance, and a length-scale a column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nongauss.sparse_gp.kernels.algebra import PRIOR_SD, FloatArray, Kernel, Space, chosen


@dataclass(frozen=True)
class Leaf(Kernel):
    """A kernel of its own: a variance, and a length-scale for each column it looks at (all by default).

    `columns` are names or positions of input columns.
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
        """Itself."""
        return 1

    def labels(self, space: Space) -> tuple[str, ...]:
        """Variance, length-scales, then what else there is."""
        _, _, used = chosen(self.columns, space)
        scales = tuple(f"{self.name} lengthscale {space.names[g]}" for g in used)
        return (f"{self.name} variance", *scales, *(f"{self.name} {word}" for word in self.extra))

    def lengthscales(self, theta: FloatArray, space: Space) -> dict[str, float]:
        """Those of the columns it looks at."""
        used = chosen(self.columns, space)[2]
        scales = np.exp(theta[1 : 1 + len(used)])
        return {space.names[g]: float(scale) for g, scale in zip(used, scales, strict=True)}

    def prior_mean(self, space: Space) -> FloatArray:
        """Variance 1; length-scales sqrt(D), the size of a typical distance between standardised rows."""
        _, _, used = chosen(self.columns, space)
        scales = np.full(len(used), 0.5 * math.log(max(len(used), 1)))
        return np.concatenate([[0.0], scales, np.zeros(len(self.extra))])

    def prior_sd(self, space: Space, of_variance: float) -> FloatArray:
        """The variance comes first."""
        return np.concatenate([[of_variance], np.full(self.size(space) - 1, PRIOR_SD)])

    def start(self, space: Space, shift: float = 0.0) -> FloatArray:
        """The mean of the prior, length-scales shifted."""
        theta = self.prior_mean(space)
        theta[1 : len(theta) - len(self.extra)] += shift
        return theta

    def variance(self, theta: FloatArray, space: Space) -> float:
        """The first parameter."""
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

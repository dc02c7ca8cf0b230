"""What a kernel is: a covariance function with derivatives written by hand; sums and products.

A kernel is a frozen expression such as `Matern52() + Linear(columns=("age",))`. It holds no numbers: its
log parameters live in one flat array `theta` that is passed along, so that an optimiser sees one vector.
`forward` gives K(A, B) with what the way back needs; `backward` turns a cotangent of K into those of `theta`
and of A.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nongauss.core.records import persistable
from nongauss.sparse_gp.buffers import empty

FloatArray = NDArray[np.float64]

APART = 1.4
"""Log distance of the length-scales with which equal terms of a sum start: a factor of 4."""


@persistable("sparse_gp.kernels.Space", "nongauss.sparse_gp.kernel:Space")
@dataclass(frozen=True)
class Space:
    """The encoded columns: the input columns' names, and for each encoded column the number of its own.

    Encoded columns of one input column (the levels of a label, a number and its gaps) share a length-scale.
    `flags`: the encoded columns that are 1 where a label is missing. `turns`: of labels that come again and
    again, as hours of the day, the place of each encoded column's label as a share of a turn, -1 of the other
    encoded columns; () where there are no such labels. `together`: input columns that each name stands for.
    """

    names: tuple[str, ...]
    group: tuple[int, ...]
    flags: tuple[int, ...] = ()
    turns: tuple[float, ...] = ()
    together: int = 1

    @property
    def cycles(self) -> tuple[str, ...]:
        """Names of the columns whose labels come again and again."""
        own = dict.fromkeys(g for g, turn in zip(self.group, self.turns, strict=False) if turn >= 0)
        return tuple(self.names[g] for g in own)

    @property
    def as_one(self) -> Space:
        """These encoded columns as if all came from one, so that they share a length-scale."""
        together = len(self.names) * self.together
        return Space(("all columns",), (0,) * len(self.group), self.flags, together=together)


class Kernel(ABC):
    """A covariance function of one or several columns; `+` and `*` combine kernels."""

    def __add__(self, other: Kernel) -> Kernel:
        return Sum((self, other))

    def __mul__(self, other: Kernel) -> Kernel:
        return Product((self, other))

    def size(self, space: Space) -> int:
        """Number of log parameters."""
        return len(self.labels(space))

    @property
    @abstractmethod
    def n_leaves(self) -> int:
        """Number of kernels that it is made of."""

    @abstractmethod
    def labels(self, space: Space) -> tuple[str, ...]:
        """A readable name for each parameter, such as "matern52 lengthscale age"."""

    @abstractmethod
    def lengthscales(self, theta: FloatArray, space: Space) -> dict[str, float]:
        """The length-scale of each column by name, that of the whole where there are several."""

    @abstractmethod
    def variance(self, theta: FloatArray, space: Space) -> float:
        """The factor in front of the whole."""

    @abstractmethod
    def prior_mean(self, space: Space) -> FloatArray:
        """Mean of the normal prior of each log parameter."""

    @abstractmethod
    def prior_sd(self, space: Space, of_variance: float) -> FloatArray:
        """Its standard deviation: that of variances is given."""

    @abstractmethod
    def start(self, space: Space, shift: float = 0.0) -> FloatArray:
        """Where a fit starts: the mean of the prior, with `shift` added to the log length-scales."""

    @abstractmethod
    def restricted(self, columns: tuple[str, ...]) -> Kernel:
        """This kernel, with parts that look at all columns looking at these."""

    @property
    @abstractmethod
    def label_columns(self) -> tuple[str | int, ...]:
        """The columns whose cells are labels to it, whether or not they are numbers."""

    @property
    @abstractmethod
    def labels_everywhere(self) -> bool:
        """Are the cells of all columns labels to a part of it?"""

    @abstractmethod
    def forward(
        self, theta: FloatArray, space: Space, A: FloatArray, B: FloatArray
    ) -> tuple[FloatArray, Any]:
        """K(A, B) (M, N) for rows A (M, D) and B (N, D), and what `backward` needs."""

    @abstractmethod
    def backward(
        self, theta: FloatArray, space: Space, cache: Any, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Derivatives of sum(cotangent * K) by theta and by A (M, D)."""

    @abstractmethod
    def diagonal(self, theta: FloatArray, space: Space, B: FloatArray) -> FloatArray:
        """k(b, b) for each row of B: (N,)."""

    @abstractmethod
    def diagonal_backward(
        self, theta: FloatArray, space: Space, B: FloatArray, cotangent: FloatArray
    ) -> FloatArray:
        """Derivative of sum(cotangent * diagonal) by theta."""


@dataclass(frozen=True)
class _Many(Kernel):
    """Several kernels; their parameters follow one another in `theta`."""

    parts: tuple[Kernel, ...]

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all parts together."""
        return sum(part.n_leaves for part in self.parts)

    def labels(self, space: Space) -> tuple[str, ...]:
        """Labels of the parameters of all parts; a second part of the same name is numbered."""
        out: list[str] = []
        times: Counter[str] = Counter()
        for part in self.parts:
            for label in part.labels(space):
                times[label] += 1
                out.append(f"{label} ({times[label]})" if times[label] > 1 else label)
        return tuple(out)

    def prior_mean(self, space: Space) -> FloatArray:
        """Prior means of the parameters of all parts, one after the other."""
        return np.concatenate([part.prior_mean(space) for part in self.parts])

    def prior_sd(self, space: Space, of_variance: float) -> FloatArray:
        """Prior standard deviations of the parameters of all parts, one after the other."""
        return np.concatenate([part.prior_sd(space, of_variance) for part in self.parts])

    def start(self, space: Space, shift: float = 0.0) -> FloatArray:
        """Start values of the parameters of all parts, one after the other."""
        return np.concatenate([part.start(space, shift) for part in self.parts])

    def restricted(self, columns: tuple[str, ...]) -> Kernel:
        """The kernel whose parts look at these columns alone, but for those that name their own."""
        return type(self)(tuple(part.restricted(columns) for part in self.parts))

    @property
    def label_columns(self) -> tuple[str | int, ...]:
        """The label columns that any part looks at."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.label_columns))

    @property
    def labels_everywhere(self) -> bool:
        """Are the cells of all columns labels to one of the parts?"""
        return any(part.labels_everywhere for part in self.parts)

    def pieces(self, theta: FloatArray, space: Space) -> list[tuple[Kernel, FloatArray]]:
        """Each part with its own log parameters."""
        ends = _ends(self.parts, space)
        return [
            (part, theta[begin:end])
            for part, begin, end in zip(self.parts, (0, *ends[:-1]), ends, strict=True)
        ]


@lru_cache(maxsize=256)
def _ends(parts: tuple[Kernel, ...], space: Space) -> tuple[int, ...]:
    """Where the parameters of each part end."""
    return tuple(accumulate(part.size(space) for part in parts))


@persistable("sparse_gp.kernels.Sum", "nongauss.sparse_gp.kernel:Sum")
class Sum(_Many):
    """The sum of kernels: the latent function is a sum of independent functions."""

    def __add__(self, other: Kernel) -> Kernel:
        return Sum((*self.parts, other))

    def start(self, space: Space, shift: float = 0.0) -> FloatArray:
        """Equal terms start apart, the smoothest first: together they would stay equal for ever."""
        starts = []
        for number, part in enumerate(self.parts):
            alike = [i for i, other in enumerate(self.parts) if other == part]
            place = 0.5 * (len(alike) - 1) - alike.index(number)
            starts.append(part.start(space, shift + APART * place))
        return np.concatenate(starts)

    def variance(self, theta: FloatArray, space: Space) -> float:
        """The sum of the parts' variances."""
        return sum(part.variance(own, space) for part, own in self.pieces(theta, space))

    def lengthscales(self, theta: FloatArray, space: Space) -> dict[str, float]:
        """Scales of one term with the same variance and mean squared slope, that is variance / l^2."""
        totals: dict[str, tuple[float, float]] = {}
        for part, own in self.pieces(theta, space):
            size = part.variance(own, space)
            for name, scale in part.lengthscales(own, space).items():
                total, slope = totals.get(name, (0.0, 0.0))
                totals[name] = (total + size, slope + size / scale**2)
        return {name: float(np.sqrt(total / slope)) for name, (total, slope) in totals.items()}

    def forward(
        self, theta: FloatArray, space: Space, A: FloatArray, B: FloatArray
    ) -> tuple[FloatArray, Any]:
        """The sum of the parts' covariances (A, B), and what `backward` needs."""
        both = [part.forward(own, space, A, B) for part, own in self.pieces(theta, space)]
        total = both[0][0]
        for K, _ in both[1:]:
            total = np.add(total, K, out=empty(*K.shape))
        return total, [cache for _, cache in both]

    def backward(
        self, theta: FloatArray, space: Space, cache: Any, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The derivative of a sum: each part gets the whole cotangent."""
        both = [
            part.backward(own, space, mine, cotangent)
            for (part, own), mine in zip(self.pieces(theta, space), cache, strict=True)
        ]
        return np.concatenate([by_theta for by_theta, _ in both]), np.sum([by_A for _, by_A in both], axis=0)

    def diagonal(self, theta: FloatArray, space: Space, B: FloatArray) -> FloatArray:
        """The sum of the parts' variances at each row."""
        every = [part.diagonal(own, space, B) for part, own in self.pieces(theta, space)]
        total: FloatArray = np.sum(every, axis=0)
        return total

    def diagonal_backward(
        self, theta: FloatArray, space: Space, B: FloatArray, cotangent: FloatArray
    ) -> FloatArray:
        """The derivative of a sum: each part gets the whole cotangent."""
        pieces = self.pieces(theta, space)
        return np.concatenate([part.diagonal_backward(own, space, B, cotangent) for part, own in pieces])


@persistable("sparse_gp.kernels.Product", "nongauss.sparse_gp.kernel:Product")
class Product(_Many):
    """The product of kernels: rows are alike where they are alike by every part."""

    def __mul__(self, other: Kernel) -> Kernel:
        return Product((*self.parts, other))

    def variance(self, theta: FloatArray, space: Space) -> float:
        """The product of the parts' variances."""
        return float(np.prod([part.variance(own, space) for part, own in self.pieces(theta, space)]))

    def lengthscales(self, theta: FloatArray, space: Space) -> dict[str, float]:
        """For each column the shortest length-scale of any part."""
        out: dict[str, float] = {}
        for part, own in self.pieces(theta, space):
            for name, scale in part.lengthscales(own, space).items():
                out[name] = min(scale, out.get(name, np.inf))
        return out

    def forward(
        self, theta: FloatArray, space: Space, A: FloatArray, B: FloatArray
    ) -> tuple[FloatArray, Any]:
        """The product of the parts' covariances (A, B), and what `backward` needs."""
        both = [part.forward(own, space, A, B) for part, own in self.pieces(theta, space)]
        values = [K for K, _ in both]
        return np.prod(values, axis=0), (values, [cache for _, cache in both])

    def backward(
        self, theta: FloatArray, space: Space, cache: Any, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The derivative of a product: each part gets the cotangent times the other parts' covariances."""
        values, caches = cache
        both = [
            part.backward(own, space, caches[i], cotangent * _others(values, i))
            for i, (part, own) in enumerate(self.pieces(theta, space))
        ]
        return np.concatenate([by_theta for by_theta, _ in both]), np.sum([by_A for _, by_A in both], axis=0)

    def diagonal(self, theta: FloatArray, space: Space, B: FloatArray) -> FloatArray:
        """The product of the parts' variances at each row."""
        every = [part.diagonal(own, space, B) for part, own in self.pieces(theta, space)]
        total: FloatArray = np.prod(every, axis=0)
        return total

    def diagonal_backward(
        self, theta: FloatArray, space: Space, B: FloatArray, cotangent: FloatArray
    ) -> FloatArray:
        """The derivative of a product: each part gets the cotangent times the other parts' covariances."""
        pieces = self.pieces(theta, space)
        values = [part.diagonal(own, space, B) for part, own in pieces]
        return np.concatenate(
            [
                part.diagonal_backward(own, space, B, cotangent * _others(values, i))
                for i, (part, own) in enumerate(pieces)
            ]
        )


def _others(values: list[FloatArray], i: int) -> FloatArray:
    """The product of all factors but one."""
    out: FloatArray = np.prod(values[:i] + values[i + 1 :], axis=0)
    return out

"""Kernels of the distance between rows: squared exponential, Matern, rational quadratic."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from nongauss.core.records import persistable
from nongauss.sparse_gp.buffers import empty, product, times
from nongauss.sparse_gp.kernels.base import FloatArray, Space
from nongauss.sparse_gp.kernels.leaf import Leaf, chosen

PIECE = 32_000
"""Numbers that a kernel works on at a time: they stay in the processor's cache."""


class Stationary(Leaf):
    """k is a function of the variance and of s, the squared distance in length-scales."""

    falls_as_it_is: ClassVar[bool] = False
    """Is -2 dk/ds = k?"""

    def forward(
        self, theta: FloatArray, space: Space, A: FloatArray, B: FloatArray
    ) -> tuple[FloatArray, Any]:
        """All squared distances by one matrix product, then the shape."""
        index, local, used = chosen(self.columns, space)
        inverse = np.exp(-theta[1 : 1 + len(used)])[local]
        a, b = A[:, index] * inverse, B[:, index] * inverse
        left = np.column_stack([-2.0 * a, (a * a).sum(1), np.ones(len(a))])
        square = product(left, np.column_stack([b, np.ones(len(b)), (b * b).sum(1)]).T)
        K, fall, others = self._shaped(square, math.exp(theta[0]), theta[1 + len(used) :])
        return K, (a, b, inverse, K, fall, others, A.shape[1])

    def _shaped(
        self, square: FloatArray, variance: float, rest: FloatArray
    ) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """`shape` piece by piece, k in the place of the squares."""
        fall = square if self.falls_as_it_is else empty(*square.shape)
        others = [empty(*square.shape) for _ in rest]
        for start in range(0, square.size, PIECE):
            mine, its, *more = (part.reshape(-1)[start : start + PIECE] for part in (square, fall, *others))
            np.maximum(mine, 0.0, out=mine)
            k, slope, slopes = self.shape(mine, variance, rest)
            its[:] = slope
            mine[:] = k
            for out, found in zip(more, slopes, strict=True):
                out[:] = found
        return square, fall, others

    def backward(
        self, theta: FloatArray, space: Space, cache: Any, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Chain rule through the squared distance, as one matrix product."""
        a, b, inverse, K, fall, others, n_columns = cache
        index, local, used = chosen(self.columns, space)
        size = len(index)
        products = times(cotangent, fall) @ np.column_stack([b, b * b, np.ones(len(b))])
        first, second, total = products[:, :size], products[:, size:-1], products[:, -1:]
        by_scale = (a * a * total + second - 2.0 * a * first).sum(0)
        out = np.empty(len(theta))
        out[0] = np.vdot(cotangent, K)
        out[1 : 1 + len(used)] = np.bincount(local, weights=by_scale, minlength=len(used))
        out[1 + len(used) :] = [np.vdot(cotangent, other) for other in others]
        by_A = np.zeros((len(a), n_columns))
        by_A[:, index] = (first - a * total) * inverse
        return out, by_A

    @staticmethod
    @abstractmethod
    def shape(
        square: FloatArray, variance: float, rest: FloatArray
    ) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """At squared distances: k, its fall -2 dk/ds, and its derivatives by the log parameters `rest`.

        May overwrite `square`; k and its fall may be one array.
        """


@persistable("sparse_gp.kernels.SquaredExponential", "nongauss.sparse_gp.kernels:SquaredExponential")
class SquaredExponential(Stationary):
    """exp(-s/2): infinitely smooth."""

    name = "squared_exponential"
    falls_as_it_is = True

    @staticmethod
    def shape(
        square: FloatArray, variance: float, rest: FloatArray
    ) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """It falls as it is."""
        square *= -0.5
        K = np.exp(square, out=square)
        K *= variance
        return K, K, []


@persistable("sparse_gp.kernels.Matern12", "nongauss.sparse_gp.kernels:Matern12")
class Matern12(Stationary):
    """exp(-sqrt(s)): continuous, nowhere smooth."""

    name = "matern12"

    @staticmethod
    def shape(
        square: FloatArray, variance: float, rest: FloatArray
    ) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Its fall is cut off at distance 1e-5, where it has a pole."""
        r = np.sqrt(square)
        K = variance * np.exp(-r)
        return K, K / np.maximum(r, 1e-5), []


@persistable("sparse_gp.kernels.Matern32", "nongauss.sparse_gp.kernels:Matern32")
class Matern32(Stationary):
    """(1 + r) exp(-r), r = sqrt(3 s): once differentiable."""

    name = "matern32"

    @staticmethod
    def shape(
        square: FloatArray, variance: float, rest: FloatArray
    ) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Both are multiples of the exponential."""
        square *= 3.0
        r = np.sqrt(square, out=square)
        fall = np.negative(r, out=empty(*square.shape))
        np.exp(fall, out=fall)
        fall *= 3.0 * variance
        r += 1.0
        r *= 1.0 / 3.0
        r *= fall
        return r, fall, []


@persistable("sparse_gp.kernels.Matern52", "nongauss.sparse_gp.kernels:Matern52")
class Matern52(Stationary):
    """(1 + r + r^2/3) exp(-r), r = sqrt(5 s): twice differentiable."""

    name = "matern52"

    @staticmethod
    def shape(
        square: FloatArray, variance: float, rest: FloatArray
    ) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Both are multiples of the exponential."""
        square *= 5.0 / 3.0
        r = np.sqrt(square, out=empty(*square.shape))
        r *= math.sqrt(3.0)
        fall = np.negative(r, out=empty(*square.shape))
        np.exp(fall, out=fall)
        fall *= variance
        r += 1.0
        square += r
        square *= fall
        r *= 5.0 / 3.0
        fall *= r
        return square, fall, []


@persistable("sparse_gp.kernels.RationalQuadratic", "nongauss.sparse_gp.kernels:RationalQuadratic")
class RationalQuadratic(Stationary):
    """(1 + s/(2 a))^-a: a mixture of squared exponentials of many length-scales."""

    name = "rational_quadratic"
    extra = ("shape",)

    @staticmethod
    def shape(
        square: FloatArray, variance: float, rest: FloatArray
    ) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Value, derivative by the squared distance, and derivative by log a."""
        alpha = math.exp(rest[0])
        base = 1.0 + square / (2.0 * alpha)
        K = variance * base**-alpha
        return K, K / base, [alpha * K * (1.0 - 1.0 / base - np.log(base))]

"""Kernels that say more than near and far: periods, straight lines, labels, a level, independent noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nongauss.core.records import persistable
from nongauss.sparse_gp.kernels.base import FloatArray, Leaf, Space, chosen


@persistable("sparse_gp.kernels.Periodic", "nongauss.sparse_gp.kernels:Periodic")
class Periodic(Leaf):
    """exp(-2 sum_d sin^2(pi (x_d - x'_d) / p) / l_d^2), one period p for its columns (MacKay 1998, eq. 47).

    It is the squared exponential of the columns wound round circles of circumference p, and computed so.
    """

    name = "periodic"
    extra = ("period",)

    def forward(
        self, theta: FloatArray, space: Space, A: FloatArray, B: FloatArray
    ) -> tuple[FloatArray, Any]:
        """The squared exponential on the circles."""
        index, local, used = chosen(self.columns, space)
        inverse = np.exp(-theta[1 : 1 + len(used)])[local]
        turn = 2.0 * math.pi * math.exp(-theta[-1])
        a, b = turn * A[:, index], turn * B[:, index]
        on_a = np.concatenate([np.cos(a), np.sin(a)], axis=1) * np.tile(inverse, 2)
        on_b = np.concatenate([np.cos(b), np.sin(b)], axis=1) * np.tile(inverse, 2)
        K = np.exp(on_a @ on_b.T - inverse @ inverse)
        K *= math.exp(theta[0])
        return K, (a, b, on_a, on_b, inverse, K, turn, A.shape[1])

    def backward(
        self, theta: FloatArray, space: Space, cache: Any, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Chain rule through the circles."""
        a, b, on_a, on_b, inverse, K, turn, n_columns = cache
        index, local, used = chosen(self.columns, space)
        H = cotangent * K
        by_on_a, by_on_b = H @ on_b, H.T @ on_a
        size = len(index)
        by_a = on_a[:, :size] * by_on_a[:, size:] - on_a[:, size:] * by_on_a[:, :size]
        by_b = on_b[:, :size] * by_on_b[:, size:] - on_b[:, size:] * by_on_b[:, :size]
        inner = (on_a * by_on_a).sum(0)
        by_scale = -2.0 * (inner[:size] + inner[size:]) + 2.0 * inverse**2 * H.sum()
        out = np.empty(len(theta))
        out[0] = H.sum()
        out[1 : 1 + len(used)] = np.bincount(local, weights=by_scale, minlength=len(used))
        out[-1] = -(np.vdot(by_a, a) + np.vdot(by_b, b))
        by_A = np.zeros((len(a), n_columns))
        by_A[:, index] = turn * by_a
        return out, by_A


@persistable("sparse_gp.kernels.Linear", "nongauss.sparse_gp.kernels:Linear")
class Linear(Leaf):
    """variance * sum_d x_d x'_d / l_d^2: straight lines through the mean of the data."""

    name = "linear"

    def forward(
        self, theta: FloatArray, space: Space, A: FloatArray, B: FloatArray
    ) -> tuple[FloatArray, Any]:
        """An inner product."""
        index, local, used = chosen(self.columns, space)
        inverse = np.exp(0.5 * theta[0] - theta[1 : 1 + len(used)])[local]
        a, b = A[:, index] * inverse, B[:, index] * inverse
        return a @ b.T, (a, b, inverse, A.shape[1])

    def backward(
        self, theta: FloatArray, space: Space, cache: Any, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Linear in both arguments."""
        a, b, inverse, n_columns = cache
        index, local, used = chosen(self.columns, space)
        by_a = cotangent @ b
        by_scale = np.bincount(local, weights=(a * by_a).sum(0), minlength=len(used))
        by_A = np.zeros((len(a), n_columns))
        by_A[:, index] = by_a * inverse
        return np.concatenate([[by_scale.sum()], -2.0 * by_scale]), by_A

    def diagonal(self, theta: FloatArray, space: Space, B: FloatArray) -> FloatArray:
        """Weighted squares."""
        index, local, used = chosen(self.columns, space)
        inverse = np.exp(0.5 * theta[0] - theta[1 : 1 + len(used)])[local]
        squares: FloatArray = ((B[:, index] * inverse) ** 2).sum(1)
        return squares

    def diagonal_backward(
        self, theta: FloatArray, space: Space, B: FloatArray, cotangent: FloatArray
    ) -> FloatArray:
        """Weighted squares again."""
        index, local, used = chosen(self.columns, space)
        inverse = np.exp(0.5 * theta[0] - theta[1 : 1 + len(used)])[local]
        by_scale = np.bincount(local, weights=cotangent @ (B[:, index] * inverse) ** 2, minlength=len(used))
        return np.concatenate([[by_scale.sum()], -2.0 * by_scale])


@persistable("sparse_gp.kernels.Categorical", "nongauss.sparse_gp.kernels:Categorical")
class Categorical(Leaf):
    """1 where the labels of the columns agree, r where they do not: labels without an order.

    For label columns. A label that is missing or was not seen agrees with none. The variance and r in (0, 1).
    """

    name = "categorical"
    extra = ("odds",)

    def labels(self, space: Space) -> tuple[str, ...]:
        """Variance, and the odds of r."""
        return f"{self.name} variance", f"{self.name} odds"

    def lengthscales(self, theta: FloatArray, space: Space) -> dict[str, float]:
        """It has none."""
        return {}

    def prior_mean(self, space: Space) -> FloatArray:
        """Variance 1, r one half."""
        return np.zeros(2)

    def forward(
        self, theta: FloatArray, space: Space, A: FloatArray, B: FloatArray
    ) -> tuple[FloatArray, Any]:
        """r + (1 - r) times the share of columns that agree, from their 0/1 codes."""
        index, local, used = chosen(self.columns, space)
        alone = np.bincount(local, minlength=len(used))[local] == 1  # one 0/1 column says it all: two levels
        a, b = _full_codes(A[:, index], alone), _full_codes(B[:, index], alone)
        agree = a @ b.T / len(used)
        shared = 1.0 / (1.0 + math.exp(-theta[1]))
        K = math.exp(theta[0]) * (shared + (1.0 - shared) * agree)
        return K, (K, agree, shared, b, alone, len(used), A.shape[1])

    def backward(
        self, theta: FloatArray, space: Space, cache: Any, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Linear in the codes."""
        K, agree, shared, b, alone, n_used, n_columns = cache
        index, _, _ = chosen(self.columns, space)
        variance = math.exp(theta[0])
        by_odds = variance * shared * (1.0 - shared) * (cotangent.sum() - np.vdot(cotangent, agree))
        full = variance * (1.0 - shared) / n_used * (cotangent @ b)
        by_A = np.zeros((len(cotangent), n_columns))
        size = len(index)
        by_A[:, index] = full[:, :size]
        by_A[:, index[alone]] -= full[:, size:]
        return np.array([np.vdot(cotangent, K), by_odds]), by_A


def _full_codes(codes: FloatArray, alone: NDArray[np.bool_]) -> FloatArray:
    """0/1 codes with the column that a pair of levels leaves out: 1 - x."""
    return np.concatenate([codes, 1.0 - codes[:, alone]], axis=1)


@persistable("sparse_gp.kernels.Constant", "nongauss.sparse_gp.kernels:Constant")
class Constant(Leaf):
    """One covariance everywhere: an unknown level."""

    name = "constant"

    def labels(self, space: Space) -> tuple[str, ...]:
        """Only a variance."""
        return (f"{self.name} variance",)

    def lengthscales(self, theta: FloatArray, space: Space) -> dict[str, float]:
        """It has none."""
        return {}

    def prior_mean(self, space: Space) -> FloatArray:
        """Variance 1."""
        return np.zeros(1)

    def forward(
        self, theta: FloatArray, space: Space, A: FloatArray, B: FloatArray
    ) -> tuple[FloatArray, Any]:
        """One number."""
        return np.full((len(A), len(B)), self._value(theta)), A.shape

    def backward(
        self, theta: FloatArray, space: Space, cache: Any, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Only the variance has a part in it."""
        return np.array([self._value(theta) * cotangent.sum()]), np.zeros(cache)

    @staticmethod
    def _value(theta: FloatArray) -> float:
        return math.exp(theta[0])


@persistable("sparse_gp.kernels.White", "nongauss.sparse_gp.kernels:White")
class White(Constant):
    """Independent noise in the latent function, on the diagonal alone: counts that are over-dispersed."""

    name = "white"

    @staticmethod
    def _value(theta: FloatArray) -> float:
        return 0.0

"""Kernels that say more than near and far: periods, straight lines, labels, a level, independent noise."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.sparse_gp.kernels.base import FloatArray, Space
from nongauss.sparse_gp.kernels.leaf import Leaf, chosen


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
        """Inner products of the rows of A and B, columns divided by their length-scales."""
        index, local, used = chosen(self.columns, space)
        inverse = np.exp(0.5 * theta[0] - theta[1 : 1 + len(used)])[local]
        a, b = A[:, index] * inverse, B[:, index] * inverse
        return a @ b.T, (a, b, inverse, A.shape[1])

    def backward(
        self, theta: FloatArray, space: Space, cache: Any, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Derivatives of the inner products: by the parameters, and by A."""
        a, b, inverse, n_columns = cache
        index, local, used = chosen(self.columns, space)
        by_a = cotangent @ b
        by_scale = np.bincount(local, weights=(a * by_a).sum(0), minlength=len(used))
        by_A = np.zeros((len(a), n_columns))
        by_A[:, index] = by_a * inverse
        return np.concatenate([[by_scale.sum()], -2.0 * by_scale]), by_A

    def diagonal(self, theta: FloatArray, space: Space, B: FloatArray) -> FloatArray:
        """The inner product of each row with itself."""
        index, local, used = chosen(self.columns, space)
        inverse = np.exp(0.5 * theta[0] - theta[1 : 1 + len(used)])[local]
        squares: FloatArray = ((B[:, index] * inverse) ** 2).sum(1)
        return squares

    def diagonal_backward(
        self, theta: FloatArray, space: Space, B: FloatArray, cotangent: FloatArray
    ) -> FloatArray:
        """Derivatives by the parameters of the inner product of each row with itself."""
        index, local, used = chosen(self.columns, space)
        inverse = np.exp(0.5 * theta[0] - theta[1 : 1 + len(used)])[local]
        by_scale = np.bincount(local, weights=cotangent @ (B[:, index] * inverse) ** 2, minlength=len(used))
        return np.concatenate([[by_scale.sum()], -2.0 * by_scale])


NO_LABEL = -10.0
"""The code of a label that is neither of two, in the one encoded column that a pair has."""


@persistable("sparse_gp.kernels.Categorical", "nongauss.sparse_gp.kernels:Categorical")
class Categorical(Leaf):
    """1 where the labels of the columns agree, r where they do not: labels without an order.

    For label columns. A label that is missing or was not seen agrees with none. The variance and r in (0, 1).
    """

    name = "categorical"
    extra: ClassVar[tuple[str, ...]] = ("odds",)

    def labels(self, space: Space) -> tuple[str, ...]:
        """Variance, and the odds of r."""
        return f"{self.name} variance", f"{self.name} odds"

    def lengthscales(self, theta: FloatArray, space: Space) -> dict[str, float]:
        """No column has a length-scale."""
        return {}

    @property
    def label_columns(self) -> tuple[str | int, ...]:
        """The columns that it names."""
        return self.columns or ()

    @property
    def labels_everywhere(self) -> bool:
        """Where it names none."""
        return self.columns is None

    def prior_mean(self, space: Space) -> FloatArray:
        """Variance 1, r one half."""
        return np.zeros(2)

    def forward(
        self, theta: FloatArray, space: Space, A: FloatArray, B: FloatArray
    ) -> tuple[FloatArray, Any]:
        """r + (1 - r) times the share of columns that agree, from their 0/1 codes."""
        coder = _LabelCodes.of(self.columns, space)
        a, b = coder.full(A), coder.full(B)
        agree = a @ b.T / coder.n_used
        shared = self._shared(theta)
        K = math.exp(theta[0]) * (shared + (1.0 - shared) * agree)
        return K, (K, agree, b, coder, A)

    def backward(
        self, theta: FloatArray, space: Space, cache: Any, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Linear in the codes."""
        K, agree, b, coder, A = cache
        variance, shared = math.exp(theta[0]), self._shared(theta)
        by_odds = variance * shared * (1.0 - shared) * (cotangent.sum() - np.vdot(cotangent, agree))
        by_A = coder.backward(A, variance * (1.0 - shared) / coder.n_used * (cotangent @ b))
        return np.array([np.vdot(cotangent, K), by_odds]), by_A

    @staticmethod
    def _shared(theta: FloatArray) -> float:
        """r, what labels have in common that do not agree."""
        return 1.0 / (1.0 + math.exp(-theta[1]))


@persistable("sparse_gp.kernels.GroupEffect")
class GroupEffect(Categorical):
    """1 where the labels agree, 0 elsewhere: each group has an effect of its own, N(0, variance).

    The random intercept of mixed models. A group that is missing or was not seen agrees with none, so that
    its effect is drawn from the prior.
    """

    name = "group"
    extra = ()

    def labels(self, space: Space) -> tuple[str, ...]:
        """Only the variance of the effects."""
        return (f"{self.name} variance",)

    def prior_mean(self, space: Space) -> FloatArray:
        """The log of variance 1."""
        return np.zeros(1)

    def backward(
        self, theta: FloatArray, space: Space, cache: Any, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """As of labels, without the odds, which a group does not have."""
        by_theta, by_A = super().backward(theta, space, cache, cotangent)
        return by_theta[:1], by_A

    @staticmethod
    def _shared(theta: FloatArray) -> float:
        return 0.0


@persistable("sparse_gp.kernels.Cyclic")
class Cyclic(Leaf):
    """exp(-2 sin^2(pi (t - t') ) / l^2), t the place of a label on its cycle as a share of a turn.

    For weekdays, months and hours of dates: neighbours are alike, also across midnight. The mean over its
    columns, each with an l; `columns` None is all that are such. A label that is missing agrees with none.
    """

    name = "cyclic"

    def labels(self, space: Space) -> tuple[str, ...]:
        """Variance and length-scales, in units of the circle's radius."""
        used = _on_cycles(self.columns, space).used
        return (f"{self.name} variance", *(f"{self.name} lengthscale {name}" for name in used))

    def lengthscales(self, theta: FloatArray, space: Space) -> dict[str, float]:
        """It has none in standard deviations of a column."""
        return {}

    def prior_mean(self, space: Space) -> FloatArray:
        """Variance and length-scales 1."""
        return np.zeros(self.size(space))

    def forward(
        self, theta: FloatArray, space: Space, A: FloatArray, B: FloatArray
    ) -> tuple[FloatArray, Any]:
        """Bilinear in the codes of the labels."""
        at = _on_cycles(self.columns, space)
        by_label = np.exp(-at.apart * np.exp(-2.0 * theta[1:])[at.local]) * at.same
        by_label *= math.exp(theta[0]) / len(at.used)
        a, b = A[:, at.places], B[:, at.places]
        return a @ by_label @ b.T, (a, b, by_label, A.shape)

    def backward(
        self, theta: FloatArray, space: Space, cache: Any, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Through the kernel of the labels."""
        a, b, by_label, shape = cache
        at = _on_cycles(self.columns, space)
        right = cotangent @ b
        total = (a.T @ right) * by_label
        by_scale = (2.0 * total * at.apart).sum(axis=1) * np.exp(-2.0 * theta[1:])[at.local]
        by_A = np.zeros(shape)
        by_A[:, at.places] = right @ by_label
        scales = np.bincount(at.local, weights=by_scale, minlength=len(at.used))
        return np.concatenate([[total.sum()], scales]), by_A


class _Cycles(NamedTuple):
    """Encoded columns of labels on cycles.

    Their `places` (E,), the column that each is of, `local` (E,), among the names `used`; for each pair
    of labels whether they are of one column, `same`, and 2 sin^2 of half their angle, `apart` (E, E).
    """

    places: NDArray[np.intp]
    local: NDArray[np.intp]
    used: tuple[str, ...]
    same: NDArray[np.bool_]
    apart: FloatArray


@lru_cache(maxsize=256)
def _on_cycles(columns: tuple[str | int, ...] | None, space: Space) -> _Cycles:
    """The labels of some columns, None for all that are on cycles. Raises InputError for others."""
    places, local, used = chosen(space.cycles if columns is None else columns, space)
    names = tuple(space.names[g] for g in used)
    others = [name for name in names if name not in space.cycles]
    if others or not names:
        raise InputError(
            f"The kernel 'cyclic' is of weekdays, months and hours of dates, and "
            f"{f'column {others[0]!r} holds others' if others else 'the table has none'}; take 'periodic' of "
            "numbers, 'categorical' of other labels."
        )
    turns = np.array(space.turns)[places]
    same = local[:, None] == local
    return _Cycles(places, local, names, same, 2.0 * np.sin(math.pi * (turns[:, None] - turns)) ** 2)


class _LabelCodes(NamedTuple):
    """Where the 0/1 codes of label columns are among the encoded columns.

    `places` (E,) of them; `alone` (E,) whether one code says which of two levels a column has; `flag` (E,)
    the place of the code that says that the label is missing, -1 without. `n_used`: the number of columns.
    """

    places: NDArray[np.intp]
    alone: NDArray[np.bool_]
    flag: NDArray[np.intp]
    n_used: int

    @classmethod
    def of(cls, columns: tuple[str | int, ...] | None, space: Space) -> _LabelCodes:
        """Those of some columns, None for all."""
        every, local, used = chosen(columns, space)
        is_flag = np.isin(every, space.flags)
        flag_of = {int(own): int(at) for at, own in zip(every[is_flag], local[is_flag], strict=True)}
        places, local = every[~is_flag], local[~is_flag]
        has_flag = np.array([int(own) in flag_of for own in local], dtype=np.bool_)
        alone = (np.bincount(local, minlength=len(used))[local] == 1) & ~has_flag
        flag = np.array([flag_of.get(int(own), -1) for own in local], dtype=np.intp)
        return cls(places, alone, flag, len(used))

    def known(self, X: FloatArray) -> FloatArray:
        """1 for each code whose label is there, 0 where it is missing: (N, E)."""
        return np.where(self.flag >= 0, 1.0 - X[:, self.flag], X[:, self.places] > 0.5 * NO_LABEL)

    def full(self, X: FloatArray) -> FloatArray:
        """The codes, 0 where the label is missing, and 1 - x for the level that a pair leaves out."""
        codes, known = X[:, self.places], self.known(X)
        return np.concatenate([codes * known, ((1.0 - codes) * known)[:, self.alone]], axis=1)

    def backward(self, X: FloatArray, by_full: FloatArray) -> FloatArray:
        """The derivative by X (N, D) of what has the derivative `by_full` by the full codes."""
        size = len(self.places)
        by_X = np.zeros_like(X)
        known = self.known(X)
        by_X[:, self.places] = by_full[:, :size] * known
        by_X[:, self.places[self.alone]] -= by_full[:, size:] * known[:, self.alone]
        for at in np.unique(self.flag[self.flag >= 0]):
            mine = self.flag == at
            by_X[:, at] -= (by_full[:, :size] * X[:, self.places])[:, mine].sum(axis=1)
        return by_X


@persistable("sparse_gp.kernels.Constant", "nongauss.sparse_gp.kernels:Constant")
class Constant(Leaf):
    """One covariance everywhere: an unknown level."""

    name = "constant"

    def labels(self, space: Space) -> tuple[str, ...]:
        """The only parameter is the variance."""
        return (f"{self.name} variance",)

    def lengthscales(self, theta: FloatArray, space: Space) -> dict[str, float]:
        """No column has a length-scale."""
        return {}

    def prior_mean(self, space: Space) -> FloatArray:
        """The log of variance 1."""
        return np.zeros(1)

    def forward(
        self, theta: FloatArray, space: Space, A: FloatArray, B: FloatArray
    ) -> tuple[FloatArray, Any]:
        """The same covariance for all rows of A and B."""
        return np.full((len(A), len(B)), self._value(theta)), A.shape

    def backward(
        self, theta: FloatArray, space: Space, cache: Any, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Derivatives by the variance; none by A."""
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

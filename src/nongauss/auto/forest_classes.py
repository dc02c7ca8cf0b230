"""The classes that a forest sees about a row: where labels lie in pockets, no smooth function reaches them.

P(c | x) = (1 - e) p_c + e s_c, where p_c is proportional to ((1 - a) sum_i w_i(x) 1[y_i = c] + a s_c)^b with
the weights w_i(x) of a forest and s_c the share of class c of all rows. Trees that err apart from one another
make an average that is less sure than it may be, which b > 1 mends. N rows do not tell of classes that are
rarer than e = 1 / (N + 1), so much is left to the overall frequencies. a, b, the size of the leaves and the
columns that a split looks at are those under which rows are most probable by the trees that have not drawn
them. The label of each training row is part of the model and of its file.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int
from scipy.sparse import csr_array

from nongauss.auto.forest import LeafForest, grow
from nongauss.core.records import persistable
from nongauss.predictive.distribution import FloatArray

LEAVES = (1, 3, 10)
"""Fewest rows of a leaf that are tried."""

FEW, MANY, MANY_ROOTS = "sqrt", 0.5, 5.0
"""Columns that a split looks at: the root of their number; and half of them, with the best leaf alone, but no
more than so many times the root, as they cost in proportion."""

POWERS = (0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
"""Powers b that are tried."""

SHARES = (0.003, 0.01, 0.03, 0.1, 0.2, 0.4)
"""Shares of the overall frequencies that are tried. None is 0: every class has a chance."""

N_CHOSEN = 4
"""Numbers that the rows choose: leaf, columns of a split, share and power."""


@persistable("auto.ForestClasses")
class ForestClasses(NamedTuple):
    """The forest, the class number of each training row (N,), the classes' shares (C,), a, b and e."""

    forest: LeafForest
    codes: Int[np.ndarray, " N"]
    shares: Float64[np.ndarray, " C"]
    smoothing: float
    power: float = 1.0
    unseen: float = 0.0

    def probabilities(self, X: FloatArray) -> FloatArray:
        """The forest's probability of each of C classes at encoded rows X (N, D): (N, C)."""
        return self._smooth(_shares_of(self.forest.weights(X), self.codes, len(self.shares)))

    def _smooth(self, own: FloatArray) -> FloatArray:
        out: FloatArray = ((1.0 - self.smoothing) * own + self.smoothing * self.shares) ** self.power
        out *= (1.0 - self.unseen) / out.sum(axis=1, keepdims=True)
        out += self.unseen * self.shares
        return out


def fit_forest_classes(
    X: FloatArray,
    codes: FloatArray,
    n_classes: int,
    weight: FloatArray,
    seed: int,
    n_jobs: int | None = None,
    n_trees: int | None = None,
    left_out: FloatArray | None = None,
) -> tuple[ForestClasses, FloatArray]:
    """The forest of rows X (N, D) with class numbers (N,), and the rows' probabilities without them.

    `left_out` (N,): without so much of their weight, all by default.
    """
    own = codes.astype(np.int32)
    is_class, unseen = np.eye(n_classes)[own], 1.0 / (len(own) + 1.0)
    shares = (weight @ is_class + 0.5) / (weight.sum() + 0.5 * n_classes)

    def tried(leaf: int, features: float | str) -> tuple[float, int, ForestClasses, FloatArray]:
        forest, W = grow(X, is_class, weight, leaf, seed, n_jobs, features, n_trees, left_out)
        plain, best = _shares_of(W, own, n_classes), None
        for smoothing, power in product(SHARES, POWERS):
            found = ForestClasses(forest, own, shares, smoothing, power, unseen)
            probabilities = found._smooth(plain)
            value = float(weight @ np.log(probabilities[np.arange(len(own)), own]))
            if best is None or value > best[0]:
                best = value, leaf, found, probabilities
        assert best is not None
        return best

    first = max((tried(leaf, FEW) for leaf in LEAVES), key=lambda one: one[0])
    many = min(MANY, MANY_ROOTS / np.sqrt(X.shape[1]))
    return max(first, tried(first[1], many), key=lambda one: one[0])[2:]


def _shares_of(W: csr_array, codes: np.ndarray[Any, np.dtype[np.int32]], n_classes: int) -> FloatArray:
    """The weight (N, n_rows) of the rows of each class: (N, C)."""
    shares: FloatArray = W @ np.eye(n_classes)[codes]
    return shares

"""The law of one encoded column given others, by donors: rows that are alike in what is known.

A ridge regression predicts the column's cells, and a few trees, grown on that prediction and the other
columns, part the donors; one of the leaf gives its cell, a number moved by the difference of the two
predictions. That is predictive mean matching (Little 1988; van Buuren 2018, section 3.4) within leaves that
also take up what is not linear (Doove, van Buuren and Dusseldorp 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

MOST_PREDICTORS = 30
"""Encoded columns from which one is predicted: those that are most correlated with it."""

LEAF = 5
"""Fewest donors in a leaf."""

PENALTIES = np.logspace(-2, 4, 7)
"""Penalties of the ridge regression, of columns of sd 1."""

NOISE = 6.0
"""What a split must gain, in variances of what the tree explains, times the number of donors."""


class _Tree(NamedTuple):
    """A tree, its donors leaf by leaf, the bounds of each leaf among them, and their weights added up."""

    tree: Any
    order: NDArray[np.intp]
    bounds: NDArray[np.intp]
    mass: FloatArray

    def donors(self, features: FloatArray, uniform: FloatArray) -> NDArray[np.intp]:
        """The donor of each row, that on which its uniform number falls among those of its leaf: (R,)."""
        leaf = self.tree.tree_.apply(features.astype(np.float32))
        first, last = self.bounds[leaf], self.bounds[leaf + 1]
        at = self.mass[first] + uniform * (self.mass[last] - self.mass[first])
        place = np.searchsorted(self.mass, at, side="right") - 1
        donor: NDArray[np.intp] = self.order[np.clip(place, first, last - 1)]
        return donor


@dataclass(frozen=True)
class ColumnLaw:
    """The law of one input column given others: the donors' cells, and what picks a donor.

    `given` are the columns of the encoded row (and the target's, after them) that matter; `slope` and `level`
    predict the cells from these. `cells` (n, L) and `predicted` (n, L) are the donors'. `moves`: a number is
    moved by the difference of the predictions; `steps`: the values to which it is rounded, if they repeat.
    """

    values: NDArray[np.intp]
    given: NDArray[np.intp]
    slope: FloatArray
    level: FloatArray
    trees: tuple[_Tree, ...]
    cells: FloatArray
    predicted: FloatArray
    moves: bool
    steps: FloatArray | None
    looks_on: bool

    @classmethod
    def learn(
        cls,
        Z: FloatArray,
        cells: FloatArray,
        weight: FloatArray,
        values: NDArray[np.intp],
        moves: bool,
        given: NDArray[np.intp],
        n_trees: int,
        looks_on: bool,
    ) -> ColumnLaw:
        """The law from the `cells` (n, L) of donors, and from what is `given` of them: Z (n, p).

        `looks_on`: the trees see what is given as well, not the prediction alone.
        """
        from sklearn import config_context

        with config_context(assume_finite=True, skip_parameter_validation=True):
            slope, level = _ridge(Z, cells, weight)
            predicted = Z @ slope + level
            rest = cells - predicted if moves else cells
            goal, features = _goals(rest, weight), np.hstack([predicted, Z]) if looks_on else predicted
            trees = tuple(_tree(features, goal, rest[:, 0], weight, t) for t in range(n_trees))
        steps = np.unique(cells[:, 0])
        steps_repeat = len(steps) < 0.5 * len(cells)
        return cls(
            values,
            given,
            slope,
            level,
            trees,
            cells,
            predicted,
            moves,
            steps if steps_repeat else None,
            looks_on,
        )

    def draw(self, Z: FloatArray, tree: NDArray[np.intp], uniform: FloatArray) -> FloatArray:
        """A draw of the column's cells (R, L), given Z (R, p), by the tree and the number of each row."""
        predicted = Z @ self.slope + self.level
        features = np.hstack([predicted, Z]) if self.looks_on else predicted
        donor = np.empty(len(Z), dtype=np.intp)
        for t, one in enumerate(self.trees):
            own = np.flatnonzero(tree == t)
            if len(own):
                donor[own] = one.donors(features[own], uniform[own])
        drawn = self.cells[donor]
        if not self.moves:
            return drawn
        drawn = drawn + predicted - self.predicted[donor]
        drawn = np.clip(drawn, self.cells.min(axis=0), self.cells.max(axis=0))
        return drawn if self.steps is None else _nearest(self.steps, drawn)


def most_correlated(
    standard: NDArray[np.float32], values: NDArray[np.intp], given: NDArray[np.intp], n_targets: int
) -> NDArray[np.intp]:
    """Those of the given columns that vary and are most correlated with the values; the targets always.

    `standard` (n, D + P): all columns and then the targets, standardised, constant ones 0. Where there are
    more columns than may be taken, one counts only if its correlation is above sqrt(2 log D / n), the largest
    that D columns of pure noise have (Donoho and Johnstone 1994): chosen noise would fit the donors alone.
    """
    n, most = len(standard), min(MOST_PREDICTORS, max(2, len(standard) // LEAF))
    size = np.abs(standard.T @ standard[:, values]).max(axis=1, initial=0.0)[given] / n
    is_target = given >= standard.shape[1] - n_targets
    varies = standard[0, given] != 0  # a standardised column is nowhere 0 but by chance
    varies[~varies] = standard[:, given[~varies]].any(axis=0)
    counts = varies.copy()
    if len(given) > most:
        counts &= is_target | (size > np.sqrt(2.0 * np.log(len(given)) / n))
        score = np.where(counts, np.where(is_target, np.inf, size), -1.0)
        best = np.sort(np.argsort(-score, kind="stable")[:most])
        given, counts = given[best], counts[best]
    return np.asarray(given[counts], dtype=np.intp)


def standardised(columns: NDArray[Any], weight: FloatArray) -> NDArray[np.float32]:
    """Columns (n, D) with mean 0 and sd 1 by weight (n,), those that are constant 0.

    Rows are multiplied by the root of their weight, of which the mean is 1: the products of two columns then
    sum up to n times their correlation by weight, and no row of next to no weight is far out.
    """
    share = weight / weight.sum()
    Z = columns - share @ columns
    sd = np.sqrt(share @ Z**2)
    root = np.sqrt(weight / weight.mean())[:, None]
    out = root * np.where(sd > 0, Z / np.where(sd > 0, sd, 1.0), 0.0)
    return np.asarray(out, dtype=np.float32)


def columns_of(
    X: NDArray[Any], Y: NDArray[Any], rows: NDArray[np.intp], numbers: NDArray[np.intp]
) -> FloatArray:
    """Some rows (R,) of some columns (p,) of X (n, D) and then Y (n, P) side by side: (R, p)."""
    n_columns = X.shape[1]
    own = numbers < n_columns
    parts = [X[np.ix_(rows, numbers[own])], Y[np.ix_(rows, numbers[~own] - n_columns)]]
    return np.hstack(parts).astype(np.float64)


def _ridge(Z: FloatArray, cells: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slopes (p, L) and levels (L,) of the cells on Z (n, p); the penalty by leave-one-out errors.

    The same as scikit-learn's RidgeCV, whose checks of a table cost many times the sums of one this small.
    """
    share = weight / weight.sum()
    if not Z.shape[1] or len(Z) < 2 * LEAF:
        return np.zeros((Z.shape[1], cells.shape[1])), share @ cells
    scale = Z.std(axis=0)
    scale[scale == 0.0] = 1.0
    middle, level = share @ Z, share @ cells
    root = np.sqrt(weight / weight.mean())[:, None]
    U, s, V = np.linalg.svd(root * (Z - middle) / scale, full_matrices=False)
    goal = root * (cells - level)
    inner, least, best = U.T @ goal, np.inf, PENALTIES[0]
    for penalty in PENALTIES:  # e_i / (1 - h_i), h = diag U s^2 / (s^2 + a) U' + w / sum w
        kept = s**2 / (s**2 + penalty)
        leverage = (U**2 @ kept + share)[:, None]
        error = float(np.mean(((goal - U @ (kept[:, None] * inner)) / (1.0 - leverage)) ** 2))
        if error < least:
            least, best = error, penalty
    slope = (V.T @ ((s / (s**2 + best))[:, None] * inner)) / scale[:, None]
    return slope, level - middle @ slope


def _tree(features: FloatArray, goal: FloatArray, rank: FloatArray, weight: FloatArray, seed: int) -> _Tree:
    """A tree of the goals (n, L) on the features, donors weighted anew at random (the Bayesian bootstrap).

    A split must explain more than one of pure noise would. Donors of a leaf are in the order of their `rank`.
    """
    from sklearn.tree import DecisionTreeRegressor

    drawn = weight / weight.mean() * np.random.default_rng(seed).exponential(size=len(weight))
    least = NOISE / len(goal)
    tree = DecisionTreeRegressor(min_samples_leaf=LEAF, min_impurity_decrease=least, random_state=seed)
    tree.fit(features.astype(np.float32), goal, sample_weight=drawn)
    leaf = tree.tree_.apply(features.astype(np.float32))
    order = np.lexsort((rank, leaf))
    bounds = np.searchsorted(leaf[order], np.arange(tree.tree_.node_count + 1))
    mass = np.concatenate([[0.0], np.cumsum(weight[order])])
    return _Tree(tree, order, bounds, mass)


def _goals(rest: FloatArray, weight: FloatArray) -> FloatArray:
    """What a tree explains of rests (n, L) of sd 1: each, and its square, so that their spread counts."""
    share = weight / weight.sum()
    both = np.hstack([rest - share @ rest, (rest - share @ rest) ** 2])
    both = both - share @ both
    sd = np.sqrt(share @ both**2)
    return both[:, sd > 0] / sd[sd > 0] if (sd > 0).any() else np.zeros((len(rest), 1))


def _nearest(steps: FloatArray, values: FloatArray) -> FloatArray:
    """The nearest of the sorted steps to each value."""
    right = np.clip(np.searchsorted(steps, values), 1, max(1, len(steps) - 1))
    if len(steps) == 1:
        return np.full_like(values, steps[0])
    left = steps[right - 1]
    return np.where(values - left <= steps[right] - values, left, steps[right])

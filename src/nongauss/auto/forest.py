"""A random forest kept as arrays: which training rows share a leaf with a row, and how often.

The weight of training row i at x is its share of the leaf that x falls into, averaged over T trees,
w_i(x) = (1 / T) sum_t c_ti 1[leaf_t(i) = leaf_t(x)] / sum_j c_tj 1[leaf_t(j) = leaf_t(x)], c_ti how often
tree t drew row i (Meinshausen, JMLR 7, 2006). Trees are grown by scikit-learn; a model that predicts does not
need it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Float64, Int
from scipy.sparse import csr_array

from nongauss.core.records import persistable
from nongauss.predictive.distribution import FloatArray

IntArray = npt.NDArray[np.int32]

N_TREES = 150
"""Trees of a forest: the weights of twice as many predict no better on the sets that were looked at."""


@persistable("auto.LeafForest")
class LeafForest(NamedTuple):
    """T trees, their K nodes one tree after the other, and the training rows of each leaf.

    `root` (T,) is each tree's first node. A row goes from node k to `left` if its number in column
    `feature[k]` is at most `threshold[k]`, else to `right`; a leaf has feature -1. The members of node k are
    `member[start[k]:start[k + 1]]`, training rows by number, and `share` their shares of it.
    """

    root: Int[np.ndarray, " T"]
    feature: Int[np.ndarray, " K"]
    threshold: Float64[np.ndarray, " K"]
    left: Int[np.ndarray, " K"]
    right: Int[np.ndarray, " K"]
    start: Int[np.ndarray, " K+1"]
    member: Int[np.ndarray, " S"]
    share: Float[np.ndarray, " S"]
    n_rows: int

    def check_fields(self) -> None:
        """Raises ValueError for numbers of nodes or rows that are not there; children come after parents."""
        node = np.arange(len(self.feature))
        inner = self.feature >= 0
        children = np.stack([self.left, self.right])[:, inner]
        fits = len(node) and ((self.root >= 0) & (self.root < len(node))).all()
        fits = fits and ((children > node[inner]) & (children < len(node))).all()
        fits = (
            fits
            and self.start[0] == 0
            and self.start[-1] == len(self.member)
            and (np.diff(self.start) >= 0).all()
        )
        if not fits or ((self.member < 0) | (self.member >= self.n_rows)).any():
            raise ValueError("trees with nodes or rows that are not there")

    def leaves(self, X: FloatArray) -> IntArray:
        """The leaf of each row X (N, D) in each tree: (N, T) node numbers."""
        cells = np.asarray(X, np.float32)  # as scikit-learn's trees have it
        at = np.tile(self.root, len(cells))
        row = np.repeat(np.arange(len(cells)), len(self.root))
        under_way = np.arange(len(at))
        while len(under_way):
            node = at[under_way]
            column = self.feature[node]
            inner = column >= 0
            under_way, node, column = under_way[inner], node[inner], column[inner]
            goes_left = cells[row[under_way], column] <= self.threshold[node]
            at[under_way] = np.where(goes_left, self.left[node], self.right[node])
        return at.reshape(len(cells), -1)

    def weights(self, X: FloatArray) -> csr_array:
        """The weight of each training row at each row X (N, D): sparse (N, n_rows), rows sum to 1."""
        return self._weights(self.leaves(X), np.ones((len(X), len(self.root))))

    def _weights(self, leaves: IntArray, used: FloatArray) -> csr_array:
        """Weights from the leaves (N, T), averaged over the trees that are `used` (N, T)."""
        share = used / np.maximum(used.sum(axis=1, keepdims=True), 1.0)
        n_nodes = len(self.feature)
        falls = csr_array(
            (share.ravel(), leaves.ravel(), np.arange(0, leaves.size + 1, leaves.shape[1])),
            shape=(len(leaves), n_nodes),
        )
        falls.eliminate_zeros()
        holds = csr_array((self.share, self.member, self.start), shape=(n_nodes, self.n_rows))
        return csr_array(falls @ holds)


def trees_of(share: float) -> int:
    """How many trees a share of those of a forest is."""
    return max(1, round(share * N_TREES))


def grow(
    X: FloatArray,
    targets: FloatArray,
    weight: FloatArray,
    leaf: int,
    seed: int,
    n_jobs: int | None = None,
    max_features: float | str = 1.0,
    n_trees: int | None = None,
    left_out: FloatArray | None = None,
    n_judged: int | None = None,
) -> tuple[LeafForest, csr_array]:
    """A forest on X (N, D) whose leaves are alike in all `targets` (N, P), and the rows' own weights.

    The weights of each training row (N, N) come from the trees that did not draw it. `leaf`: fewest rows of a
    leaf; `max_features`: columns that each split looks at, as in scikit-learn. A tree draws rows by their
    weights, as many as these sum to. `n_trees`: `N_TREES` by default. `left_out` (N,): the weight of a row
    that is not to be drawn, all by default; of a part s of it a tree with c draws of the row counts
    (1 - s)^c, the probability that none of these was of that part. `n_judged`: the first rows, of which alone
    the weights (J, N) are given.
    """
    from sklearn import config_context
    from sklearn.tree import DecisionTreeRegressor
    from sklearn.utils.parallel import Parallel, delayed

    cells, wanted = np.asarray(X, np.float32, order="C"), np.asarray(targets, np.float64, order="C")
    rng = np.random.default_rng(seed)
    n_draws = max(1, round(float(weight.sum())))
    n_trees = N_TREES if n_trees is None else n_trees
    counts = rng.multinomial(n_draws, weight / weight.sum(), n_trees).T.astype(np.float64)
    seeds = rng.integers(0, 2**31, n_trees)

    def one(t: int) -> Any:
        made = DecisionTreeRegressor(
            min_samples_leaf=leaf, max_features=max_features, random_state=int(seeds[t])
        )
        return made.fit(cells, wanted, sample_weight=counts[:, t], check_input=False).tree_

    with config_context(assume_finite=True, skip_parameter_validation=True):  # a fifth of a small tree's time
        trees = Parallel(n_jobs, prefer="threads")(delayed(one)(t) for t in range(n_trees))
    root = np.cumsum([0, *(tree.node_count for tree in trees)]).astype(np.int32)
    at = np.stack([tree.apply(cells) for tree in trees], axis=1).astype(np.int32) + root[:-1]
    forest = _stored(trees, root, at, counts)
    part = np.ones(len(weight)) if left_out is None else left_out / weight
    judged = slice(n_judged)
    return forest, forest._weights(at[judged], (1.0 - part[judged])[:, None] ** counts[judged])


def _stored(trees: list[Any], root: IntArray, at: IntArray, counts: FloatArray) -> LeafForest:
    """The record of grown trees, from the leaf of each row in each tree and how often the tree drew it."""
    first = np.repeat(root[:-1], np.diff(root))
    feature = np.concatenate([tree.feature for tree in trees]).astype(np.int32)
    inner = feature >= 0
    left, right = (
        np.where(inner, np.concatenate([getattr(tree, side) for tree in trees]) + first, 0).astype(np.int32)
        for side in ("children_left", "children_right")
    )
    row, tree = np.nonzero(counts)
    node = at[row, tree]
    order = np.argsort(node, kind="stable")
    held = counts[row, tree][order]
    total = np.bincount(node, weights=counts[row, tree], minlength=len(feature))
    share = held / total[node[order]]
    start = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=len(feature)))])
    return LeafForest(
        root[:-1],
        np.where(inner, feature, -1).astype(np.int32),
        np.concatenate([tree.threshold for tree in trees]),
        left,
        right,
        start.astype(np.int64),
        row[order].astype(np.int32),
        share.astype(np.float32),
        len(at),
    )

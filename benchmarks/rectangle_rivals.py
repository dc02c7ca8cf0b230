"""What the rectangle mixture is compared with: partitions, and rules made from them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.mixture import GaussianMixture
from sklearn.tree import DecisionTreeClassifier

from nongauss.rectangle.box_search import CodeGrid, HardBox, search_boxes
from nongauss.rectangle.rules import best_slopes


@dataclass
class Answer:
    """Labels of the rows, and where there are rules: conditions a rule, and the share of rows in exactly
    one."""

    labels: np.ndarray
    conditions: float = np.nan
    inside_one: float = np.nan

    def figures(self, truth: np.ndarray, seconds: float) -> dict[str, float]:
        """How the labels agree with the true ones, and how readable the rules are."""
        return {
            "nmi": float(normalized_mutual_info_score(truth, self.labels)),
            "ari": float(adjusted_rand_score(truth, self.labels)),
            "conditions": float(self.conditions),
            "inside_one": float(self.inside_one),
            "seconds": seconds,
        }


def as_numbers(X: pd.DataFrame) -> np.ndarray:
    """Standardised columns without the constant ones; a label column becomes 0/1 columns, gaps the mean."""
    frame = pd.get_dummies(X, dtype=float)
    numbers = frame.fillna(frame.mean()).to_numpy(float)
    numbers = numbers[:, numbers.std(axis=0) > 0]
    return (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)


def k_means(Z: np.ndarray, K: int, seed: int) -> KMeans:
    return KMeans(K, n_init=10, random_state=seed).fit(Z)


def mixture(Z: np.ndarray, K: int, seed: int) -> np.ndarray:
    """Labels of a Gaussian mixture with full covariances, 10 starts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GaussianMixture(K, n_init=10, random_state=seed, reg_covar=1e-3).fit_predict(Z)


def tree(Z: np.ndarray, labels: np.ndarray, n_leaves: int, seed: int) -> Answer:
    """A decision tree that learns the labels; a rule is a leaf, its conditions the tightest of its path."""
    if len(np.unique(labels)) == 1:
        return Answer(labels, 0.0, 1.0)
    model = DecisionTreeClassifier(max_leaf_nodes=max(2, n_leaves), random_state=seed).fit(Z, labels)
    return Answer(model.predict(Z), _conditions(model), 1.0)


def _conditions(model: DecisionTreeClassifier) -> float:
    """Mean number of (column, side) pairs on the paths to the leaves."""
    inner, counts = model.tree_, []
    paths: list[tuple[int, frozenset[tuple[int, int]]]] = [(0, frozenset())]
    while paths:
        node, path = paths.pop()
        if inner.children_left[node] < 0:
            counts.append(len(path))
            continue
        for side, child in enumerate((inner.children_left[node], inner.children_right[node])):
            paths.append((child, path | {(int(inner.feature[node]), side)}))
    return float(np.mean(counts))


def voting_rules(Z: np.ndarray, labels: np.ndarray, seed: int) -> Answer:
    """For each label an ensemble of rules (SkopeRules of `imodels`, of three conditions at most) against all
    others; the most votes win. Conditions are those of all rules of a label."""
    from imodels import SkopeRulesClassifier

    found, votes, count = np.unique(labels), [], []
    for k in found:
        model = SkopeRulesClassifier(max_depth=3, n_estimators=10, random_state=seed)
        model.fit(Z, (labels == k).astype(int))
        votes.append(model.predict_proba(Z)[:, 1])
        count.append(sum(len(rule.agg_dict) for rule in model.rules_))
    return Answer(found[np.argmax(votes, axis=0)], float(np.mean(count)))


def sums_of_trees(Z: np.ndarray, labels: np.ndarray, seed: int) -> Answer:
    """For each label a sum of trees (FIGS of `imodels`) of four splits at most against all others."""
    from imodels import FIGSClassifier

    found, votes, count = np.unique(labels), [], []
    for k in found:
        model = FIGSClassifier(max_rules=4, random_state=seed).fit(Z, (labels == k).astype(int))
        votes.append(model.predict_proba(Z)[:, 1])
        count.append(model.complexity_)
    return Answer(found[np.argmax(votes, axis=0)], float(np.mean(count)))


def box_step(Z: np.ndarray, labels: np.ndarray, tolerance: float = 0.01) -> Answer:
    """Our own box step on someone else's labels, from the box of each cluster's mean and standard
    deviation; our own slopes for rows in several boxes or in none."""
    values = [np.unique(z) for z in Z.T]
    codes = np.array([np.searchsorted(v, z) for v, z in zip(values, Z.T, strict=True)])
    grid = CodeGrid(codes, tuple(len(v) for v in values), (True,) * len(values), np.ones(len(Z)))
    boxes = []
    for k in np.unique(labels):
        own = labels == k
        conditions = {}
        for d, v in enumerate(values):
            mean, sd = Z[own, d].mean(), Z[own, d].std()
            low, high = np.searchsorted(v, mean - 2 * sd), np.searchsorted(v, mean + 2 * sd, "right") - 1
            conditions |= {(d, 0): int(low)} if low > 0 else {}
            conditions |= {(d, 1): int(high)} if high < len(v) - 1 else {}
        boxes.append(HardBox(grid, own, conditions))
    boxes = search_boxes(grid, boxes, tolerance)
    depth = np.array([_depth(Z, values, box) for box in boxes])
    inside = (np.array([box.broken for box in boxes]) == 0).sum(axis=0)
    conditions = float(np.mean([len(box.conditions) for box in boxes]))
    share = (labels[:, None] == np.unique(labels)).astype(float)
    claims = depth.T * best_slopes(depth.T, share, np.ones(len(Z)))
    return Answer(claims.argmax(axis=1), conditions, float((inside == 1).mean()))


def _depth(Z: np.ndarray, values: list[np.ndarray], box: HardBox) -> np.ndarray:
    """How deep inside a box each row is."""
    out = np.full(len(Z), 8.0)
    for (d, side), at in box.conditions.items():
        beyond = values[d][at + (1 if side else -1)]
        cut = 0.5 * (values[d][at] + beyond)
        out = np.minimum(out, cut - Z[:, d] if side else Z[:, d] - cut)
    return out


Leaf = tuple[np.ndarray, int, frozenset[tuple[int, bool]]]
"""Rows of a leaf, its centre, and the columns and sides of its path."""


def explainable_k_means(Z: np.ndarray, model: KMeans) -> Answer:
    """The tree of K leaves of the fewest mistakes (Moshkovitz, Dasgupta, Rashtchian, Frost 2020)."""
    return _answer_of(Z, _leaves(Z, model))


def grown_k_means(Z: np.ndarray, model: KMeans, n_leaves: int) -> Answer:
    """The same tree with more leaves (Frost, Moshkovitz, Rashtchian, ExKMC 2020).

    Again and again the split that saves most of the distance to the leaves' centres, each the best of the K.
    """
    leaves, cost = _leaves(Z, model), model.transform(Z) ** 2
    best = [_best_split(Z, cost, leaf) for leaf in leaves]
    while len(leaves) < n_leaves and max(saved for saved, _ in best) > 1e-9:
        i = int(np.argmax([saved for saved, _ in best]))
        parts = best[i][1]
        leaves[i : i + 1] = parts
        best[i : i + 1] = [_best_split(Z, cost, leaf) for leaf in parts]
    return _answer_of(Z, leaves)


def _best_split(Z: np.ndarray, cost: np.ndarray, leaf: Leaf) -> tuple[float, list[Leaf]]:
    """How much the best split of a leaf saves, and its two parts."""
    here, centre, path = leaf
    rows, best, parts = np.flatnonzero(here), 0.0, [leaf]
    for d in range(Z.shape[1]):
        order = rows[np.argsort(Z[rows, d], kind="stable")]
        z = Z[order, d]
        left = np.cumsum(cost[order], axis=0)[:-1]
        right = left[-1:] + cost[order[-1:]] - left if len(left) else left
        saved = cost[rows, centre].sum() - left.min(axis=1) - right.min(axis=1)
        saved[z[1:] == z[:-1]] = 0.0
        if len(saved) and saved.max() > best:
            at = int(saved.argmax())
            best, low = float(saved[at]), here & (Z[:, d] <= z[at])
            parts = [
                (low, int(left[at].argmin()), path | {(d, False)}),
                (here & ~low, int(right[at].argmin()), path | {(d, True)}),
            ]
    return best, parts


def _answer_of(Z: np.ndarray, leaves: list[Leaf]) -> Answer:
    labels = np.empty(len(Z), dtype=int)
    for here, centre, _ in leaves:
        labels[here] = centre
    return Answer(labels, float(np.mean([len(path) for _, _, path in leaves])), 1.0)


def _leaves(Z: np.ndarray, model: KMeans) -> list[Leaf]:
    """Leaves of the tree of K: a node is split where the fewest of its rows are parted from their own centre;
    parted rows are then ignored."""
    leaves = []
    own, every_centre, Z = model.labels_, model.cluster_centers_.round(9), Z.round(9)
    nodes = [(np.ones(len(Z), bool), np.ones(len(Z), bool), np.arange(model.n_clusters), frozenset())]
    while nodes:
        here, counted, centres, path = nodes.pop()
        if len(centres) == 1:
            leaves.append((here, int(centres[0]), path))
            continue
        d, cut = _fewest_mistakes(Z, own, counted, every_centre, centres)
        right_centres = every_centre[:, d] > cut
        right_rows = Z[:, d] > cut
        agree = counted & (right_rows == right_centres[own])
        for side in (False, True):
            chosen = centres[right_centres[centres] == side]
            nodes.append(
                (here & (right_rows == side), agree & (right_rows == side), chosen, path | {(d, side)})
            )
    return leaves


def _fewest_mistakes(Z, own, counted, every_centre, centres) -> tuple[int, float]:
    best, answer = np.inf, (0, 0.0)
    for d in range(Z.shape[1]):
        places = np.sort(every_centre[centres, d])
        if places[0] == places[-1]:
            continue
        z = Z[counted, d]
        cuts = np.unique(
            np.concatenate([z[(z >= places[0]) & (z < places[-1])], places[places < places[-1]]])
        )
        home = every_centre[own[counted], d]
        low, high = np.minimum(z, home), np.maximum(z, home)
        parted = np.searchsorted(np.sort(low), cuts, "right") - np.searchsorted(np.sort(high), cuts, "right")
        at = int(np.argmin(parted))
        if parted[at] < best:
            best, answer = parted[at], (d, float(cuts[at]))
    return answer

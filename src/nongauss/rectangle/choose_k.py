"""How many clusters: groups that valleys of the density part, and what rules explain beyond them.

Groups decide first (`pieces.py`, `agreement.py`): between an even cloud's halves, or the pieces of a skewed
or bent one, there is no valley, and columns of noise make none. Those of more than one piece, but not of so
many that these are their shape, are then divided further where rules explain the
structure columns better so, by the conditional likelihood, sum log sum_k p(k | rules) p(y | k), less half the
log of N for each parameter (Schwarz 1978). The objective of a fit cannot say it, because its constraint has a
term for each cluster. Where rules may speak of the structure columns themselves, cutting any cloud into K
equal parts gains N log K without a cluster being there; that is taken off, and of the parameters only means
and bounds count. Where no valley is found at all, each covariance counts one nat, the error that it brings
(Akaike 1973).
A further cluster must gain twice the standard error of its gain (Vuong, Econometrica 1989), and twice what it
does in tables whose clusters are those found so far and no more: in each of them the columns keep their
values and rank correlations, a Gaussian copula. So an even, skewed or heavy-tailed cluster is not divided
because it is no Gaussian. Where the clusters of the rules are the pieces, two ways have found the same, and
no such table is asked.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from nongauss.optimise.checkpoint import Checkpoint, computed_once
from nongauss.rectangle.agreement import agreed_groups, label_groups
from nongauss.rectangle.config import RectangleRecipe
from nongauss.rectangle.criterion import criterion, of_rows, seen_by_criterion, with_levels
from nongauss.rectangle.data import (
    FloatArray,
    IntArray,
    LevelCodes,
    RectangleRows,
    n_distinct,
)
from nongauss.rectangle.fit import ClusterTask
from nongauss.rectangle.null_tables import without_clusters
from nongauss.rectangle.pieces import find_pieces

MOST_CLUSTERS = 10
"""Numbers of clusters up to this are tried."""

PATIENCE = 2
"""How many numbers beyond the clusters found so far are looked at."""

WORTH = 0.01
"""Nats that a further cluster must gain: one that ends without rows leaves the criterion as it was."""

MOST_ROWS = 2000
"""Most rows that it looks at."""

SHAPED = 3
"""Pieces a group, on the mean, above which pieces make the shape of groups, which are not divided further."""

AGREED = 0.8
"""Adjusted Rand index above which clusters of rules and Gaussian pieces are the same."""

ASKED = 2.0
"""How many times what it does in such tables a number must gain."""

SURE = 2.0
"""How many of its standard errors a number must gain."""

NULL_TABLES, TRIED_STARTS = 2, 4
"""Tables without clusters that are compared with, and most starts of each fit that is made to choose."""


class NumberChoice(NamedTuple):
    """The number of clusters, the criterion in nats of each number tried (greater is better), and why."""

    number: int
    criterion: dict[int, float]
    why: str


def choose(task: ClusterTask, recipe: RectangleRecipe, checkpoint: Checkpoint | None = None) -> NumberChoice:
    """The number of clusters. Each that is tried is fitted to the end, or KeyboardInterrupt."""
    small = _reduced(task, recipe.seed)
    valleys, group = None, np.zeros(len(small.rows), dtype=np.intp)
    if task.views_overlap:
        like = ValleyFigures(0.0, 0.0, 0.0, 0.0, 0.0, group, group)
        valleys = computed_once(checkpoint, "valleys", partial(_valleys, small, recipe.seed), like)
        group = valleys.group
    V = 1 if valleys is None else valleys.n_groups
    search = NumberSearch(small, recipe, checkpoint, strict=valleys is not None and V == 1)
    seen = search.seen
    most = min(
        MOST_CLUSTERS,
        n_distinct(seen.rows.X, seen.rows.X_labels),
        n_distinct(seen.rows.Y, seen.rows.Y_labels),
    )
    least = max(1, len(task.stated.names), min(V, most))
    if valleys is not None and valleys.settled:
        return NumberChoice(least, {}, why(least, {}, valleys))
    best, beside = least, ""
    while True:
        further = search.best_above(best, most)
        if further == best:
            break
        if V > 1 and _agree(valleys, search, further):
            best, beside = further, " They coincide with the Gaussian components."
            break
        if valleys is not None and np.isfinite(search.values[best]):
            is_enough, beside = _gains_enough(search, best, further, group if best == V else None)
            if not is_enough:
                break
        best = further
    return NumberChoice(best, search.values, why(best, search.values, valleys) + beside)


def _gains_enough(search: NumberSearch, best: int, further: int, group: IntArray | None) -> tuple[bool, str]:
    """Do the rules of a further number gain more on the best than their error and chance explain, and a
    sentence on that. `group` (N,): the clusters of the best, or None for the partition of its rules.
    """
    gain, error = search.values[further] - search.values[best], search.error(further, best)
    said = f" The rules of {further} gain {gain:.0f} nats on those of {best}"
    if gain <= SURE * error:
        return False, f"{said}, with a standard error of {error:.0f}; twice that is required."
    chance = search.by_chance(best, further, search.partition(best) if group is None else group, gain)
    made = (
        "simulated tables of one cluster" if best == 1 else f"simulated tables of only these {best} clusters"
    )
    said += f"; in {made} they gain {chance:.0f}, and twice that is required."
    return gain > ASKED * chance, said


def _agree(valleys: ValleyFigures | None, search: NumberSearch, K: int) -> bool:
    """Are the clusters of the rules the Gaussian pieces, which were found without rules?"""
    from sklearn.metrics import adjusted_rand_score

    if valleys is None or valleys.n_pieces != K:
        return False
    return float(adjusted_rand_score(valleys.piece, search.partition(K))) > AGREED


class NumberSearch:
    """The criterion of the numbers of clusters tried so far, and the partitions of their fits."""

    def __init__(
        self, task: ClusterTask, recipe: RectangleRecipe, checkpoint: Checkpoint | None, strict: bool
    ):
        self.task, self.seen, self.strict = task, seen_by_criterion(task), strict
        self.few = recipe._replace(n_init=min(recipe.n_init, TRIED_STARTS))
        self.checkpoint = checkpoint
        self.values: dict[int, float] = {}
        self._groups: dict[int, IntArray] = {}
        self._log_p: dict[int, FloatArray] = {}

    def try_number(self, K: int) -> float:
        """The criterion of one number of clusters, in nats; tried once."""
        if K not in self.values:
            nothing = np.zeros(len(self.seen.rows))
            work = partial(criterion, self.seen, self.few, self.strict, K)
            found = computed_once(
                self.checkpoint, f"{K} clusters", work, (0.0, nothing.astype(np.intp), nothing)
            )
            self.values[K], self._groups[K], self._log_p[K] = found
        return self.values[K]

    def partition(self, K: int) -> IntArray:
        """The cluster of each row in the fit of a number that was tried."""
        return self._groups[K]

    def best_above(self, least: int, most: int) -> int:
        """The number with the greatest criterion among `least` and the next `PATIENCE`."""
        best = least
        self.try_number(least)
        for K in range(least + 1, min(least + PATIENCE, most) + 1):
            if self.try_number(K) > self.values[best] + WORTH:
                best = K
        return best

    def error(self, one: int, other: int) -> float:
        """Standard error in nats of what a number gains over another (Vuong 1989)."""
        # sqrt(sum w (d - mean d)^2), d = log p_K - log p_J of each row
        w, off = self.seen.rows.weight, self._log_p[one] - self._log_p[other]
        return float(np.sqrt(w @ (off - np.average(off, weights=w)) ** 2))

    def by_chance(self, least: int, most: int, group: IntArray, gain: float) -> float:
        """What `most` clusters gain over `least` where those of `group` (N,) are all: nats, a mean.

        No more tables are made once it is known that a `gain` is too small.
        """

        def work(table: ClusterTask) -> float:
            before, after = (criterion(table, self.few, self.strict, K)[0] for K in (least, most))
            return max(0.0, after - before) if np.isfinite(before) else 0.0

        gains: list[float] = []
        for seed in range(NULL_TABLES):
            table = seen_by_criterion(without_clusters(self.task, seed, group))
            name = f"{most} of {least} clusters, table {seed}"
            gains.append(computed_once(self.checkpoint, name, partial(work, table), 0.0))
            if ASKED * sum(gains) / NULL_TABLES >= gain:
                break
        return float(np.mean(gains))


class ValleyFigures(NamedTuple):
    """The deepest valley in a group, the least deep between two; each row's piece and group (N,).

    `core` (0 or 1): some are parted by the edge of a dense core. `labels` (0 or 1): there are no columns of
    numbers, and in the place of valleys stand silhouette and prediction strength. `doubted`: how many groups
    valleys part, where halves of the rows agree on fewer, else 0.
    """

    within: float
    between: float
    core: float
    labels: float
    doubted: float
    piece: IntArray
    group: IntArray

    @property
    def n_pieces(self) -> int:
        """The number of Gaussian pieces."""
        return int(self.piece.max()) + 1

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return int(self.group.max()) + 1

    @property
    def settled(self) -> bool:
        """Is there nothing to divide: is each group one piece, or of so many that these are its shape?"""
        shaped = self.n_pieces > SHAPED * self.n_groups or self.core > 0
        return self.n_groups > 1 and (shaped or self.n_pieces == self.n_groups or self.labels > 0)

    @property
    def told(self) -> str:
        """A sentence on the groups: which valleys or labels part them, or that none do."""
        V, K, within = self.n_groups, self.n_pieces, 100 * self.within
        if K == 1:
            return "The structure columns are a single component."
        if self.labels and V == 1:
            return (
                f"The labels have {K} components, but halves of the rows agree on no number of groups "
                "of them."
            )
        if self.labels:
            return (
                f"The labels have {K} components; two halves of the rows agree on {V} groups of them "
                "(prediction "
                f"strength {self.between:.2f}, silhouette {self.within:.2f})."
            )
        if self.core:
            said = (
                f"Valleys of the density, and the edge of a dense core in a wider cloud, separate {V} groups."
            )
            if self.doubted:
                said += (
                    f" Valleys separate {self.doubted:.0f}, but halves of the rows agree on fewer of these."
                )
            return said
        if self.doubted:
            agreed = f"only on {V}" if V > 1 else "on none"
            return (
                f"Valleys separate {self.doubted:.0f} groups, but halves of the rows agree {agreed} of them."
            )
        if V == 1:
            return (
                f"No valley separates the {K} components of the structure columns: the density "
                "between them does not "
                f"fall below {within:.0f} % of the lower peak."
            )
        return (
            f"Valleys separate {V} groups: between any two, the density of the structure columns falls to "
            f"{100 * self.between:.0f} % of the lower peak or less, within them to not less than "
            f"{within:.0f} %."
        )


def _valleys(task: ClusterTask, seed: int) -> ValleyFigures:
    """The groups that valleys part, sought in the density of its columns.

    By the numbers alone where these part any: a label that goes with them would part each group once more.
    """
    rows = with_levels(task.rows)
    if rows.Y.shape[1] and rows.Y_labels.n_levels:
        nothing = LevelCodes(np.zeros((len(rows), 0), dtype=np.intp), ())
        found = _groups_of(
            RectangleRows(rows.X, rows.X_labels, rows.Y, nothing, rows.weight, rows.grain), seed
        )
        if found.n_groups > 1:
            return found
    return _groups_of(rows, seed)


def _groups_of(rows: RectangleRows, seed: int) -> ValleyFigures:
    """The groups that valleys part in the density of these rows."""
    pieces = find_pieces(rows, seed)
    found = (agreed_groups if rows.Y.shape[1] else label_groups)(rows, pieces, seed)
    nearest = pieces.share.argmax(axis=0)
    piece = np.unique(nearest, return_inverse=True)[1].reshape(-1)
    own = np.unique(found.group[nearest], return_inverse=True)[1].reshape(-1)
    kind = float(found.core), float(not rows.Y.shape[1]), float(found.doubted)
    return ValleyFigures(found.within, found.between, *kind, piece, own)


def why(best: int, values: dict[int, float], valleys: ValleyFigures | None) -> str:
    """What spoke for a number of clusters, and what against its rivals, as sentences."""
    said = [f"{best} cluster{'s' * (best != 1)}."]
    V = 1
    if valleys is not None:
        V = valleys.n_groups
        said += [valleys.told]
    values = {K: value for K, value in values.items() if np.isfinite(value)}
    if len(values) > 1:
        tried = sorted(values, key=lambda K: (-round(values[K], 1), K))
        lead = values[tried[0]] - values[tried[1]]
        said += [
            f"Of the numbers {min(tried)} to {max(tried)}, the rules of {tried[0]} explain the structure "
            f"columns best; {tried[1]} is {lead:.1f} nats behind."
        ]
    elif valleys is not None and V > 1 and not valleys.labels:
        made = (
            "one Gaussian component each" if valleys.n_pieces == V else "several components without a valley"
        )
        said += [f"The groups have {made}, so none is divided further."]
    return " ".join(said)


def _reduced(task: ClusterTask, seed: int) -> ClusterTask:
    """The task with at most `MOST_ROWS` of its rows, drawn at random."""
    chosen = np.arange(len(task.rows))
    if len(chosen) > MOST_ROWS:
        chosen = np.sort(np.random.default_rng(seed).choice(len(chosen), MOST_ROWS, replace=False))
    return of_rows(task, chosen)

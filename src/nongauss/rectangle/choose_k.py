"""How many clusters: groups that valleys of the density part, and what rules explain beyond them.

Valleys decide first (`pieces.py`): between an even cloud's halves, or the pieces of a skewed or bent one,
there is none, and columns of noise make none. The groups are then divided further where rules explain the
structure columns better so, by the conditional likelihood, sum log sum_k p(k | rules) p(y | k), less half the
log of N for each parameter (Schwarz 1978). The objective of a fit cannot say it, because its constraint has a
term for each cluster. Where rules may speak of the structure columns themselves, cutting any cloud into K
equal parts gains N log K without a cluster being there; that is taken off, and of the parameters only means
and bounds count. Where no valley is found at all, each covariance counts one nat, the error that it brings
(Akaike 1973).
A further cluster must gain twice what it does in tables whose clusters are those found so far and no more:
in each of them the columns keep their values and rank correlations, a Gaussian copula. So an even, skewed or
heavy-tailed cluster is not divided because it is no Gaussian. Where the clusters of the rules are the pieces,
two ways have found the same, and no such table is asked.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from nongauss.optimise.checkpoint import Checkpoint, computed_once
from nongauss.optimise.course import NOBODY, Status
from nongauss.rectangle.config import RectangleRecipe, StructureKind
from nongauss.rectangle.data import (
    ColumnView,
    FloatArray,
    IntArray,
    LevelCodes,
    RawCells,
    RectangleRows,
    n_distinct,
)
from nongauss.rectangle.fit import ClusterTask, fit
from nongauss.rectangle.objective import log_density
from nongauss.rectangle.pieces import find_pieces, least_rows, valley_groups
from nongauss.rectangle.predict import FittedRectangles

MOST_CLUSTERS = 10
"""Numbers of clusters up to this are tried."""

PATIENCE = 2
"""How many numbers beyond the clusters found so far are looked at."""

MOST_COMPONENTS = 5
"""Principal components of the structure columns that the criterion looks at."""

WORTH = 0.01
"""Nats that a further cluster must gain: one that ends without rows leaves the criterion as it was."""

FEW_VALUES = 10
"""A column of numbers with at most so many different values, ten rows for each, counts as levels: a density
would find a cluster of no width at every value."""

KIND: StructureKind = "full"
"""Structure model of the criterion."""

MOST_ROWS = 5000
"""Most rows that it looks at."""

MOST_FOR_PIECES = 2000
"""Most rows in which valleys are sought."""

SHAPED = 3
"""Pieces a group, on the mean, above which pieces make the shape of groups, which are not divided further."""

AGREED = 0.8
"""Adjusted Rand index above which clusters of rules and Gaussian pieces are the same."""

ASKED = 2.0
"""How many times what it does in such tables a number must gain."""

NULL_TABLES, NULL_STARTS = 2, 4
"""Tables without clusters that are compared with, and most starts of each fit to them."""


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
        like = ValleyFigures(0.0, 0.0, group, group)
        valleys = computed_once(checkpoint, "valleys", partial(_valleys, small, recipe.seed), like)
        group = valleys.group
    V = int(group.max()) + 1
    search = NumberSearch(small, recipe, checkpoint, strict=valleys is not None and V == 1)
    seen = search.seen
    most = min(
        MOST_CLUSTERS,
        n_distinct(seen.rows.X, seen.rows.X_labels),
        n_distinct(seen.rows.Y, seen.rows.Y_labels),
    )
    least = max(1, len(task.stated.names), min(V, most))
    if valleys is not None and V > 1 and (valleys.n_pieces > SHAPED * V or not seen.rows.Y.shape[1]):
        return NumberChoice(least, {}, why(least, {}, valleys))
    best, beside = least, ""
    while True:
        further = search.best_above(best, most)
        if further == best:
            break
        if V > 1 and _agree(valleys, search, further):
            best, beside = further, " They are the Gaussian pieces, too."
            break
        if valleys is not None and np.isfinite(search.values[best]):
            gain = search.values[further] - search.values[best]
            chance = search.by_chance(best, further, group if best == V else search.partition(best), gain)
            made = "tables of one cluster" if best == 1 else f"tables of just these {best} clusters"
            beside = (
                f" The rules of {further} gain {gain:.0f} nats on those of {best}; in {made} they gain "
                f"{chance:.0f}, and twice that is asked."
            )
            if gain <= ASKED * chance:
                break
        best = further
    return NumberChoice(best, search.values, why(best, search.values, valleys) + beside)


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
        self.task, self.seen, self.strict = task, _seen_by_criterion(task), strict
        self.recipe, self.checkpoint = recipe, checkpoint
        self.values: dict[int, float] = {}
        self._groups: dict[int, IntArray] = {}

    def try_number(self, K: int) -> float:
        """The criterion of one number of clusters, in nats; tried once."""
        if K not in self.values:
            like = (0.0, np.zeros(len(self.seen.rows), dtype=np.intp))
            work = partial(_criterion, self.seen, self.recipe, self.strict, K)
            self.values[K], self._groups[K] = computed_once(self.checkpoint, f"{K} clusters", work, like)
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

    def by_chance(self, least: int, most: int, group: IntArray, gain: float) -> float:
        """What `most` clusters gain over `least` where those of `group` (N,) are all: nats, a mean.

        No more tables are made once it is known that a `gain` is too small.
        """
        few = self.recipe._replace(n_init=min(self.recipe.n_init, NULL_STARTS))

        def work(table: ClusterTask) -> float:
            before, after = (_criterion(table, few, self.strict, K)[0] for K in (least, most))
            return max(0.0, after - before) if np.isfinite(before) else 0.0

        gains: list[float] = []
        for seed in range(NULL_TABLES):
            table = _seen_by_criterion(without_clusters(self.task, seed, group))
            name = f"{most} of {least} clusters, table {seed}"
            gains.append(computed_once(self.checkpoint, name, partial(work, table), 0.0))
            if ASKED * sum(gains) / NULL_TABLES >= gain:
                break
        return float(np.mean(gains))


def _criterion(task: ClusterTask, recipe: RectangleRecipe, strict: bool, K: int) -> tuple[float, IntArray]:
    """The criterion of one number of clusters, in nats, and each row's cluster by rules and structure.

    Minus infinity where one of the clusters has too few rows to be one, or was lost on the way.
    """
    settings = recipe._replace(n_clusters=K, structure=KIND, preset=None, max_boxes=1)
    result, fitted = fit(task, settings, NOBODY)
    if result.status is Status.STOPPED:
        raise KeyboardInterrupt
    group = fitted.posterior(task.cells, task.rows).argmax(axis=1)
    size = np.bincount(group, task.rows.weight, minlength=len(fitted.rules.names))
    if K > 1 and (len(size) < K or size.min() < least_rows(task.rows)):
        return -np.inf, group
    return fitted.log_conditional(task.cells, task.rows) - _penalty(fitted, task, strict), group


def without_clusters(task: ClusterTask, seed: int, group: IntArray | None = None) -> ClusterTask:
    """A table of the same columns without clusters, or with none but the given groups of its rows (N,).

    In each group columns of numbers keep their values and rank correlations, a Gaussian copula; labels are
    permuted. Each cell is that of some row of the group in the same column.
    """
    rows, cells, rng = task.rows, task.cells, np.random.default_rng(seed)
    rule, look = task.views.rule, task.views.structure
    group = np.zeros(len(rows), dtype=np.intp) if group is None else group
    places = [[view.places[i] for i in view.numeric] for view in (rule, look)]
    numbers = dict(zip(places[0] + places[1], [*rows.X.T, *rows.Y.T], strict=True))
    labels = {view.places[i] for view in (rule, look) for i in view.labels}
    from_row = {place: np.arange(len(rows)) for place in [*numbers, *sorted(labels)]}
    for own in (np.flatnonzero(group == g) for g in np.unique(group)):
        columns = np.array([numbers[place][own] for place in numbers]).reshape(len(numbers), len(own)).T
        for place, drawn in zip(numbers, _copula_rows(columns, rows.weight[own], rng).T, strict=True):
            from_row[place][own] = own[drawn]
        for place in sorted(labels):
            from_row[place][own] = rng.permutation(own)

    def drawn_cells(table: Any, view: ColumnView, used: tuple[int, ...]) -> Any:
        out = table.copy()
        for column, i in zip(out.T, used, strict=True):
            column[:] = column[from_row[view.places[i]]]
        return out

    X_labels = LevelCodes(drawn_cells(rows.X_labels.codes, rule, rule.labels), rows.X_labels.n_levels)
    Y_labels = LevelCodes(drawn_cells(rows.Y_labels.codes, look, look.labels), rows.Y_labels.n_levels)
    X, Y = drawn_cells(rows.X, rule, rule.numeric), drawn_cells(rows.Y, look, look.numeric)
    new = RectangleRows(X, X_labels, Y, Y_labels, rows.weight)
    return task._replace(rows=new, cells=RawCells(drawn_cells(cells.numbers, rule, rule.numeric), X_labels))


def _copula_rows(columns: FloatArray, weight: FloatArray, rng: np.random.Generator) -> IntArray:
    """For each cell (n, P) of a new table the row whose value it takes: a Gaussian copula of the columns."""
    if not columns.shape[1]:
        return np.zeros(columns.shape, dtype=np.intp)
    root = np.linalg.cholesky(_correlations(_normal_scores(columns, weight)))
    u = ndtr(rng.normal(size=columns.shape) @ root.T)
    out = np.empty(columns.shape, dtype=np.intp)
    for taken, column, share in zip(out.T, columns.T, u.T, strict=True):
        order = np.argsort(column, kind="stable")[: max(1, int((~np.isnan(column)).sum()))]
        upto = np.cumsum(weight[order]) / weight[order].sum()
        taken[:] = order[np.minimum(np.searchsorted(upto, share), len(order) - 1)]
    return out


def _correlations(scores: FloatArray) -> FloatArray:
    """Correlations of columns (N, P), gaps at the mean, kept from being singular."""
    filled = np.nan_to_num(scores)
    filled = filled / np.maximum(filled.std(axis=0), 1e-12)
    matrix: FloatArray = (filled.T @ filled) / len(filled)
    return (1.0 - 1e-6) * matrix + 1e-6 * np.eye(len(matrix))


class ValleyFigures(NamedTuple):
    """The deepest valley in a group, the least deep between two; each row's piece and group (N,)."""

    within: float
    between: float
    piece: IntArray
    group: IntArray

    @property
    def n_pieces(self) -> int:
        """The number of Gaussian pieces."""
        return int(self.piece.max()) + 1


def _valleys(task: ClusterTask, seed: int) -> ValleyFigures:
    """The groups that valleys part, sought in few rows at most and told of all."""
    Y, Y_labels = _with_levels(task.rows)
    rows = part = RectangleRows(task.rows.X, task.rows.X_labels, Y, Y_labels, task.rows.weight)
    if len(rows) > MOST_FOR_PIECES:
        chosen = np.random.default_rng(seed).choice(len(rows), MOST_FOR_PIECES, replace=False)
        part = rows.take(np.sort(chosen))
    pieces = find_pieces(part, seed)
    group, within, between = valley_groups(part, pieces)
    log_p = log_density(rows, pieces.structure, pieces.kind)[0][0] + np.log(pieces.mass)[:, None]
    piece = np.unique(log_p.argmax(axis=0), return_inverse=True)[1].reshape(-1)
    own = np.unique(group[log_p.argmax(axis=0)], return_inverse=True)[1].reshape(-1)
    return ValleyFigures(within, between, piece, own)


def why(best: int, values: dict[int, float], valleys: ValleyFigures | None) -> str:
    """What spoke for a number of clusters, and what against its rivals, as sentences."""
    said = [f"{best} cluster{'s' * (best != 1)}."]
    V = 1
    if valleys is not None:
        V, K = int(valleys.group.max()) + 1, valleys.n_pieces
        if K == 1:
            said += ["The structure columns are one piece."]
        elif V == 1:
            said += [
                f"No valley parts the {K} pieces of the structure columns: the density between them does not "
                f"fall below {100 * valleys.within:.0f} % of the lower peak."
            ]
        else:
            said += [
                f"Valleys part {V} groups: between any two the density of the structure columns falls to "
                f"{100 * valleys.between:.0f} % of the lower peak or less, within them to no less than "
                f"{100 * valleys.within:.0f} %."
            ]
    values = {K: value for K, value in values.items() if np.isfinite(value)}
    if len(values) > 1:
        tried = sorted(values, key=lambda K: (-round(values[K], 1), K))
        lead = values[tried[0]] - values[tried[1]]
        said += [
            f"Of the numbers {min(tried)} to {max(tried)}, the rules of {tried[0]} explain the structure "
            f"columns best; {tried[1]} is {lead:.1f} nats behind."
        ]
    elif valleys is not None and V > 1:
        said += ["The groups are of several pieces without a valley, so none is divided further."]
    return " ".join(said)


def _penalty(fitted: FittedRectangles, task: ClusterTask, strict: bool) -> float:
    """Half the log of N for each parameter; or for each mean and bound, and N log K.

    `strict`: and one nat for each variance and covariance.
    """
    K, P = (int(n) for n in fitted.structure.mean.shape[1:])
    total = float(task.rows.weight.sum())
    each, spread = P + sum(n - 1 for n in task.rows.Y_labels.n_levels), P * (P + 1) // 2
    each += 0 if task.views_overlap else spread
    bounds = sum(condition.n_bounds for rule in fitted.rules.conditions for condition in rule)
    # (K each + bounds) log(N) / 2 [+ N log K] [+ K spread]
    cut = total * float(np.log(K)) if task.views_overlap else 0.0
    return cut + 0.5 * float(np.log(total)) * (K * each + bounds) + strict * K * spread


def _reduced(task: ClusterTask, seed: int) -> ClusterTask:
    """Fewer rows."""
    chosen = np.arange(len(task.rows))
    if len(chosen) > MOST_ROWS:
        chosen = np.sort(np.random.default_rng(seed).choice(len(chosen), MOST_ROWS, replace=False))
    return task._replace(rows=task.rows.take(chosen), cells=task.cells.take(chosen))


def _seen_by_criterion(task: ClusterTask) -> ClusterTask:
    """Few values as levels, and the first principal components of the other structure columns."""
    rows = task.rows
    Y, Y_labels = _with_levels(rows)
    Y = _components(Y, rows.weight)
    return task._replace(rows=RectangleRows(rows.X, rows.X_labels, Y, Y_labels, rows.weight))


def _normal_scores(Y: FloatArray, weight: FloatArray) -> FloatArray:
    """Each column through its ranks to a standard normal (N, P); equal values stay equal, gaps gaps."""
    out = np.full(Y.shape, np.nan)
    for column, y in zip(out.T, Y.T, strict=True):
        seen = ~np.isnan(y)
        _, which = np.unique(y[seen], return_inverse=True)
        mass = np.bincount(which, weight[seen])
        column[seen] = ndtri((np.cumsum(mass) - 0.5 * mass) / mass.sum())[which]
    return out


def _with_levels(rows: RectangleRows) -> tuple[FloatArray, LevelCodes]:
    """Structure columns (N, P') of many different values, and the others beside the label columns."""
    most = min(FEW_VALUES, 0.1 * float(rows.weight.sum()))
    numbers, codes, sizes = [], [rows.Y_labels.codes], list(rows.Y_labels.n_levels)
    for y in rows.Y.T:
        values, which = np.unique(y, return_inverse=True)
        n_values = len(values) - int(np.isnan(values[-1]))
        if n_values > most:
            numbers.append(y)
            continue
        codes.append(np.where(np.isnan(y), -1, which.reshape(-1))[:, None])
        sizes.append(n_values)
    Y = np.column_stack(numbers) if numbers else np.zeros((len(rows), 0))
    return Y, LevelCodes(np.hstack(codes).astype(np.intp), tuple(sizes))


def _components(Y: FloatArray, weight: FloatArray) -> FloatArray:
    """Principal components (N, at most 5), gaps at the mean."""
    if Y.shape[1] <= MOST_COMPONENTS:
        return Y
    filled = np.nan_to_num(Y - np.average(np.nan_to_num(Y), axis=0, weights=weight))
    _, vectors = np.linalg.eigh((filled.T * weight) @ filled)
    components: FloatArray = filled @ vectors[:, ::-1][:, :MOST_COMPONENTS]
    return components

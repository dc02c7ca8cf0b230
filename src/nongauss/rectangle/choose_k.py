"""How many clusters: groups that valleys of the density part, and what rules explain beyond them.

Valleys decide first (`pieces.py`): between an even cloud's halves, or the pieces of a skewed or bent one,
there is none, and columns of noise make none. The groups are then divided further where rules explain the
structure columns better so, by the conditional likelihood, sum log sum_k p(k | rules) p(y | k), less half the
log of N for each parameter (Schwarz 1978). The objective of a fit cannot say it, because its constraint has a
term for each cluster. Where rules may speak of the structure columns themselves, cutting any cloud into K
equal parts gains N log K without a cluster being there; that is taken off, and of the parameters only means
and bounds count.
Where no valley is found at all, each covariance counts one nat, the error that it brings (Akaike 1973), and
the rules of several clusters must gain twice what they do in tables with the same columns and correlations
but no clusters, a Gaussian copula: skew and tails of single columns make none.
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
    LevelCodes,
    RawCells,
    RectangleRows,
    n_distinct,
)
from nongauss.rectangle.fit import ClusterTask, fit
from nongauss.rectangle.pieces import find_pieces, valley_groups
from nongauss.rectangle.predict import FittedRectangles

MOST_CLUSTERS = 10
"""Numbers of clusters up to this are tried."""

PATIENCE = 2
"""Numbers in a row without a gain after which no more are tried."""

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

NULL_TABLES, NULL_STARTS = 2, 4
"""Tables without clusters that are compared with, and most starts of each fit to them."""

VALLEY_NAMES = ("groups", "within", "between", "pieces")
"""What is kept of the search for valleys."""


class NumberChoice(NamedTuple):
    """The number of clusters, the criterion in nats of each number tried (greater is better), and why."""

    number: int
    criterion: dict[int, float]
    why: str


def choose(task: ClusterTask, recipe: RectangleRecipe, checkpoint: Checkpoint | None = None) -> NumberChoice:
    """The number of clusters. Each that is tried is fitted to the end, or KeyboardInterrupt."""
    small = _reduced(task, recipe.seed)
    seen = _seen_by_criterion(small)
    named = max(1, len(task.stated.names))
    most = min(
        MOST_CLUSTERS,
        n_distinct(seen.rows.X, seen.rows.X_labels),
        n_distinct(seen.rows.Y, seen.rows.Y_labels),
    )
    valleys = None
    if task.views_overlap:
        valleys = computed_once(
            checkpoint, "valleys", partial(_valleys, small, recipe.seed), dict.fromkeys(VALLEY_NAMES, 0.0)
        )
    V = 1 if valleys is None else int(valleys["groups"])
    strict = valleys is not None and V == 1
    least = max(named, min(V, most))
    if valleys is not None and V > 1 and (valleys["pieces"] > SHAPED * V or not seen.rows.Y.shape[1]):
        return NumberChoice(least, {}, _why(least, {}, valleys))
    values: dict[int, float] = {}
    best = least
    for K in range(least, most + 1):
        work = partial(_criterion, seen, recipe, strict, K)
        values[K] = computed_once(checkpoint, f"{K} clusters", work, 0.0)
        if values[K] > values[best] + WORTH:
            best = K
        if K - best >= PATIENCE:
            break
    why = _why(best, values, valleys)
    if strict and least == 1 and best > 1:
        chance = np.mean([_by_chance(small, recipe, max(values), i, checkpoint) for i in range(NULL_TABLES)])
        gain = values[best] - values[1]
        beside = f"in tables without clusters it is {chance:.0f}."
        if gain <= 2.0 * chance:
            best, why = 1, _why(1, {}, valleys) + f" Rules of more explain {gain:.0f} nats more, but {beside}"
        else:
            why += f" They explain {gain:.0f} nats more than one; {beside}"
    return NumberChoice(best, values, why)


def _by_chance(
    task: ClusterTask, recipe: RectangleRecipe, most: int, seed: int, checkpoint: Checkpoint | None
) -> float:
    """What the rules of 2 to `most` clusters gain over one in a table without clusters, at best, in nats."""
    table = _seen_by_criterion(without_clusters(task, seed))
    few = recipe._replace(n_init=min(recipe.n_init, NULL_STARTS))

    def work() -> float:
        values = [_criterion(table, few, True, K) for K in range(1, most + 1)]
        return max(0.0, *(value - values[0] for value in values[1:]))

    return computed_once(checkpoint, f"table without clusters {seed}", work, 0.0)


def _criterion(task: ClusterTask, recipe: RectangleRecipe, strict: bool, K: int) -> float:
    """The criterion of one number of clusters, in nats."""
    settings = recipe._replace(n_clusters=K, structure=KIND, preset=None, max_boxes=1)
    result, fitted = fit(task, settings, NOBODY)
    if result.status is Status.STOPPED:
        raise KeyboardInterrupt
    return fitted.log_conditional(task.cells, task.rows) - _penalty(fitted, task, strict)


def without_clusters(task: ClusterTask, seed: int) -> ClusterTask:
    """A table of the same columns of numbers with the same rank correlations: a Gaussian copula, no clusters.

    Each cell is that of some row in the same column, so that all marginals are kept. Labels are permuted.
    """
    rows, cells, rng = task.rows, task.cells, np.random.default_rng(seed)
    rule, look = task.views.rule, task.views.structure
    places = [[view.places[i] for i in view.numeric] for view in (rule, look)]
    columns = dict(zip(places[0] + places[1], [*rows.X.T, *rows.Y.T], strict=True))
    numbers = np.array(list(columns.values())).reshape(len(columns), len(rows)).T
    scores = _normal_scores(numbers, rows.weight)
    root = np.linalg.cholesky(_correlations(scores))
    u = ndtr(rng.normal(size=(len(rows), len(columns))) @ root.T)
    from_row = {}
    for (place, column), share in zip(columns.items(), u.T, strict=True):
        order = np.argsort(column, kind="stable")[: int((~np.isnan(column)).sum())]
        upto = np.cumsum(rows.weight[order]) / rows.weight[order].sum()
        from_row[place] = order[np.minimum(np.searchsorted(upto, share), len(order) - 1)]
    for view in (rule, look):
        for i in view.labels:
            from_row.setdefault(view.places[i], rng.permutation(len(rows)))

    def drawn(table: Any, view: ColumnView, used: tuple[int, ...]) -> Any:
        out = table.copy()
        for column, i in zip(out.T, used, strict=True):
            column[:] = column[from_row[view.places[i]]]
        return out

    X_labels = LevelCodes(drawn(rows.X_labels.codes, rule, rule.labels), rows.X_labels.n_levels)
    Y_labels = LevelCodes(drawn(rows.Y_labels.codes, look, look.labels), rows.Y_labels.n_levels)
    X, Y = drawn(rows.X, rule, rule.numeric), drawn(rows.Y, look, look.numeric)
    new = RectangleRows(X, X_labels, Y, Y_labels, rows.weight)
    return task._replace(rows=new, cells=RawCells(drawn(cells.numbers, rule, rule.numeric), X_labels))


def _correlations(scores: FloatArray) -> FloatArray:
    """Correlations of columns (N, P), gaps at the mean, kept from being singular."""
    filled = np.nan_to_num(scores)
    filled = filled / np.maximum(filled.std(axis=0), 1e-12)
    matrix: FloatArray = (filled.T @ filled) / len(filled)
    return (1.0 - 1e-6) * matrix + 1e-6 * np.eye(len(matrix))


def _valleys(task: ClusterTask, seed: int) -> dict[str, float]:
    """Groups parted by valleys, the valleys within and between them, and the pieces that they are of."""
    Y, Y_labels = _with_levels(task.rows)
    rows = RectangleRows(task.rows.X, task.rows.X_labels, Y, Y_labels, task.rows.weight)
    if len(rows) > MOST_FOR_PIECES:
        chosen = np.random.default_rng(seed).choice(len(rows), MOST_FOR_PIECES, replace=False)
        rows = rows.take(np.sort(chosen))
    pieces = find_pieces(rows, seed)
    group, within, between = valley_groups(rows, pieces)
    figures = (float(group.max() + 1), within, between, float(len(group)))
    return dict(zip(VALLEY_NAMES, figures, strict=True))


def _why(best: int, values: dict[int, float], valleys: dict[str, float] | None) -> str:
    """What spoke for a number of clusters, and what against its rivals, as sentences."""
    said = [f"{best} cluster{'s' * (best != 1)}."]
    if valleys is not None:
        V, K = int(valleys["groups"]), int(valleys["pieces"])
        if K == 1:
            said += ["The structure columns are one piece."]
        elif V == 1:
            said += [
                f"No valley parts the {K} pieces of the structure columns: the density between them does not "
                f"fall below {100 * valleys['within']:.0f} % of the lower peak."
            ]
        else:
            said += [
                f"Valleys part {V} groups: between any two the density of the structure columns falls to "
                f"{100 * valleys['between']:.0f} % of the lower peak or less, within them to no less than "
                f"{100 * valleys['within']:.0f} %."
            ]
    if len(values) > 1:
        tried = sorted(values, key=lambda K: (-round(values[K], 1), K))
        lead = values[tried[0]] - values[tried[1]]
        said += [
            f"Of the numbers {min(tried)} to {max(tried)}, the rules of {tried[0]} explain the structure "
            f"columns best; {tried[1]} is {lead:.1f} nats behind."
        ]
    elif valleys is not None and int(valleys["groups"]) > 1:
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

"""How many clusters: groups that valleys of the density part, and what rules explain beyond them.

Valleys decide first (`pieces.py`): between an even cloud's halves, or the pieces of a skewed or bent one,
there is none, and columns of noise make none. The groups are then divided further where rules explain the
structure columns better so, by the conditional likelihood, sum log sum_k p(k | rules) p(y | k), less half the
log of N for each parameter (Schwarz 1978). The objective of a fit cannot say it, because its constraint has a
term for each cluster. Where rules may speak of the structure columns themselves, cutting any cloud into K
equal parts gains N log K without a cluster being there; that is taken off, and of the parameters only means
and bounds count.
Where no valley is found at all, the columns are looked at as normal scores, so that skew and tails of single
columns make no clusters, and each covariance counts one nat, the error that it brings (Akaike 1973).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from nongauss.optimise.checkpoint import Checkpoint, computed_once
from nongauss.optimise.course import NOBODY, Status
from nongauss.rectangle.config import RectangleRecipe, StructureKind
from nongauss.rectangle.data import FloatArray, LevelCodes, RectangleRows, n_distinct
from nongauss.rectangle.fit import ClusterTask, fit
from nongauss.rectangle.pieces import bend, find_pieces, valley_groups
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

BENT = 0.25
"""Nats a row that pieces explain more than one Gaussian a group, above which groups are not divided."""

VALLEY_NAMES = ("groups", "within", "between", "bent", "pieces")
"""What is kept of the search for valleys."""


class NumberChoice(NamedTuple):
    """The number of clusters, the criterion in nats of each number tried (greater is better), and why."""

    number: int
    criterion: dict[int, float]
    why: str


def choose(task: ClusterTask, recipe: RectangleRecipe, checkpoint: Checkpoint | None = None) -> NumberChoice:
    """The number of clusters. Each that is tried is fitted to the end, or KeyboardInterrupt."""
    small = _reduced(task, recipe.seed)
    rows = small.rows
    named = max(1, len(task.stated.names))
    most = min(MOST_CLUSTERS, n_distinct(rows.X, rows.X_labels), n_distinct(rows.Y, rows.Y_labels))
    valleys = None
    if task.views_overlap:
        valleys = computed_once(
            checkpoint, "valleys", partial(_valleys, small, recipe.seed), dict.fromkeys(VALLEY_NAMES, 0.0)
        )
    V = 1 if valleys is None else int(valleys["groups"])
    smooth = valleys is not None and V == 1
    least = max(named, min(V, most))
    if valleys is not None and ((V > 1 and valleys["bent"] > BENT) or not rows.Y.shape[1]):
        return NumberChoice(least, {}, _why(least, {}, valleys))
    seen = _seen_by_criterion(small, smooth)

    def criterion(K: int) -> float:
        settings = recipe._replace(n_clusters=K, structure=KIND, preset=None, max_boxes=1)
        result, fitted = fit(seen, settings, NOBODY)
        if result.status is Status.STOPPED:
            raise KeyboardInterrupt
        return fitted.log_conditional(seen.cells, seen.rows) - _penalty(fitted, seen, smooth)

    values: dict[int, float] = {}
    best = least
    for K in range(least, most + 1):
        values[K] = computed_once(checkpoint, f"{K} clusters", partial(criterion, K), 0.0)
        if values[K] > values[best] + WORTH:
            best = K
        if K - best >= PATIENCE:
            break
    return NumberChoice(best, values, _why(best, values, valleys))


def _valleys(task: ClusterTask, seed: int) -> dict[str, float]:
    """Groups parted by valleys, the valleys within and between them, and how bent the groups are."""
    rows = task.rows
    if len(rows) > MOST_FOR_PIECES:
        chosen = np.random.default_rng(seed).choice(len(rows), MOST_FOR_PIECES, replace=False)
        rows = rows.take(np.sort(chosen))
    pieces = find_pieces(rows, seed)
    group, within, between = valley_groups(rows, pieces)
    figures = (float(group.max() + 1), within, between, bend(rows, pieces, group), float(len(group)))
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


def _penalty(fitted: FittedRectangles, task: ClusterTask, smooth: bool) -> float:
    """Half the log of N for each parameter; or for each mean and bound, and N log K.

    `smooth`: and one nat for each variance and covariance.
    """
    K, P = (int(n) for n in fitted.structure.mean.shape[1:])
    total = float(task.rows.weight.sum())
    each, spread = P + sum(n - 1 for n in task.rows.Y_labels.n_levels), P * (P + 1) // 2
    each += 0 if task.views_overlap else spread
    bounds = sum(condition.n_bounds for rule in fitted.rules.conditions for condition in rule)
    # (K each + bounds) log(N) / 2 [+ N log K] [+ K spread]
    cut = total * float(np.log(K)) if task.views_overlap else 0.0
    return cut + 0.5 * float(np.log(total)) * (K * each + bounds) + smooth * K * spread


def _reduced(task: ClusterTask, seed: int) -> ClusterTask:
    """Fewer rows, and few values as levels."""
    chosen = np.arange(len(task.rows))
    if len(chosen) > MOST_ROWS:
        chosen = np.sort(np.random.default_rng(seed).choice(len(chosen), MOST_ROWS, replace=False))
    rows = task.rows.take(chosen)
    Y, Y_labels = _with_levels(rows)
    rows = RectangleRows(rows.X, rows.X_labels, Y, Y_labels, rows.weight)
    return task._replace(rows=rows, cells=task.cells.take(chosen))


def _seen_by_criterion(task: ClusterTask, smooth: bool) -> ClusterTask:
    """The first principal components of the structure columns, of their normal scores where `smooth`."""
    rows = task.rows
    Y = _normal_scores(rows.Y, rows.weight) if smooth else rows.Y
    Y = _components(Y, rows.weight)
    return task._replace(rows=RectangleRows(rows.X, rows.X_labels, Y, rows.Y_labels, rows.weight))


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

"""How many clusters: the number whose rules explain the structure columns best, for what they cost.

The objective of a fit cannot say it, because its constraint has a term for each cluster. The criterion is the
conditional likelihood, sum log sum_k p(k | rules) p(y | k), less half the log of N for each parameter
(Schwarz 1978). Where rules may speak of the structure columns themselves, cutting any cloud into K equal
parts gains N log K without a cluster being there; then that is taken off, and of the parameters only means
and bounds count.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from nongauss.optimise.checkpoint import Checkpoint, computed_once
from nongauss.optimise.course import NOBODY, Status
from nongauss.rectangle.config import RectangleRecipe, StructureKind
from nongauss.rectangle.data import FloatArray, LevelCodes, RectangleRows, n_distinct
from nongauss.rectangle.fit import ClusterTask, fit
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


def choose(
    task: ClusterTask, recipe: RectangleRecipe, checkpoint: Checkpoint | None = None
) -> tuple[int, dict[int, float]]:
    """The number of clusters, and the criterion in nats of each number tried; greater is better.

    Each is tried to the end, or KeyboardInterrupt.
    """
    small = _reduced(task, recipe.seed)

    def criterion(K: int) -> float:
        result, fitted = fit(small, recipe._replace(n_clusters=K, structure=KIND), NOBODY)
        if result.status is Status.STOPPED:
            raise KeyboardInterrupt
        return fitted.log_conditional(small.cells, small.rows) - _penalty(fitted, small)

    most = min(
        MOST_CLUSTERS,
        n_distinct(small.rows.X, small.rows.X_labels),
        n_distinct(small.rows.Y, small.rows.Y_labels),
    )
    values: dict[int, float] = {}
    best = max(1, len(task.stated.names))
    for K in range(best, most + 1):
        values[K] = computed_once(checkpoint, f"{K} clusters", partial(criterion, K), 0.0)
        if values[K] > values.get(best, -np.inf) + WORTH:
            best = K
        if K - best >= PATIENCE:
            break
    return best, values


def _penalty(fitted: FittedRectangles, task: ClusterTask) -> float:
    """Half the log of N for each parameter; or for each mean and bound, and N log K."""
    K, P = (int(n) for n in fitted.structure.mean.shape[1:])
    total = float(task.rows.weight.sum())
    each = P + sum(n - 1 for n in task.rows.Y_labels.n_levels)
    each += 0 if task.views_overlap else P * (P + 1) // 2
    bounds = sum(condition.n_bounds for rule in fitted.rules.conditions for condition in rule)
    # (K each + bounds) log(N) / 2 [+ N log K]
    cut = total * float(np.log(K)) if task.views_overlap else 0.0
    return cut + 0.5 * float(np.log(total)) * (K * each + bounds)


def _reduced(task: ClusterTask, seed: int) -> ClusterTask:
    """Fewer rows, few values as levels, and the first principal components of the other structure columns."""
    chosen = np.arange(len(task.rows))
    if len(chosen) > MOST_ROWS:
        chosen = np.sort(np.random.default_rng(seed).choice(len(chosen), MOST_ROWS, replace=False))
    rows = task.rows.take(chosen)
    cells = task.cells.take(chosen)
    Y, Y_labels = _with_levels(rows)
    rows = RectangleRows(rows.X, rows.X_labels, _components(Y, rows.weight), Y_labels, rows.weight)
    return task._replace(rows=rows, cells=cells)


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

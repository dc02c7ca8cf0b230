"""The criterion of a number of clusters: what their rules explain of the structure columns, in nats."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from nongauss.optimise.course import NOBODY, Status
from nongauss.rectangle.config import STAGES, RectangleRecipe, StructureKind
from nongauss.rectangle.data import FloatArray, IntArray, LevelCodes, RectangleRows, n_distinct
from nongauss.rectangle.fit import ClusterTask, fit, rows_drawn
from nongauss.rectangle.pieces import least_rows
from nongauss.rectangle.predict import FittedRectangles

MOST_COMPONENTS = 5
"""Principal components of the structure columns that the criterion looks at."""

FEW_VALUES = 10
"""A column of numbers with at most so many different values, ten rows for each, counts as levels: a density
would find a cluster of no width at every value."""

REPEATED = 1e-6
"""Share of a column's variance that other columns must leave, or it repeats them."""

KIND: StructureKind = "full"
"""Structure model of the criterion."""

CriterionFigures = tuple[float, IntArray, FloatArray]
"""The criterion of a number of clusters in nats, each row's cluster and log density (N,)."""


def criterion(task: ClusterTask, recipe: RectangleRecipe, strict: bool, K: int) -> CriterionFigures:
    """The criterion of one number of clusters, in nats; each row's cluster and log density.

    A cluster of too few rows to be one takes the place of another: a fit without such rows is made, and that
    of all rows begins there. Minus infinity where it has such clusters, too, or some were lost on the way.
    """
    settings = recipe._replace(n_clusters=K, structure=KIND, preset=None, max_boxes=1)
    fitted, size = _fitted_for_criterion(task, settings)
    if K > 1 and size.min() < least_rows(task.rows):
        begun = _begun_without(
            task, settings, np.flatnonzero(size[_own(fitted, task)] >= least_rows(task.rows))
        )
        if begun is not None:
            fitted, size = _fitted_for_criterion(begun, settings)
    group = _own(fitted, task)
    if K > 1 and (len(size) < K or size.min() < least_rows(task.rows)):
        return -np.inf, group, np.zeros(len(group))
    log_p = logsumexp(fitted.log_joint(task.cells, task.rows), axis=1)
    return float(log_p @ task.rows.weight) - _penalty(fitted, task, strict), group, log_p


def _fitted_for_criterion(
    task: ClusterTask, settings: RectangleRecipe
) -> tuple[FittedRectangles, FloatArray]:
    """A fit, and the weight of the rows of each of its clusters (K,)."""
    result, fitted = fit(task, settings, NOBODY)
    if result.status is Status.STOPPED:
        raise KeyboardInterrupt
    own = _own(fitted, task)
    size = np.bincount(own, task.rows.weight, minlength=len(fitted.rules.names))
    return fitted, size.astype(np.float64)


def _begun_without(task: ClusterTask, settings: RectangleRecipe, stays: IntArray) -> ClusterTask | None:
    """The task that starts from the clusters of only some rows; None where these have fewer clusters."""
    if n_distinct(task.rows.Y[stays], task.rows.Y_labels.take(stays)) < settings.n_clusters:
        return None
    fitted, size = _fitted_for_criterion(of_rows(task, stays), settings)
    if len(size) < settings.n_clusters:
        return None
    first = rows_drawn(len(task.rows), settings.seed, STAGES[0].most_rows)
    return task._replace(starts=fitted.posterior(task.cells, task.rows)[first].T[None])


def _own(fitted: FittedRectangles, task: ClusterTask) -> IntArray:
    """The likeliest cluster of each row, (N,)."""
    own: IntArray = fitted.posterior(task.cells, task.rows).argmax(axis=1)
    return own


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


def of_rows(task: ClusterTask, chosen: IntArray) -> ClusterTask:
    """The task with some of its rows."""
    return task._replace(rows=task.rows.take(chosen), cells=task.cells.take(chosen))


def seen_by_criterion(task: ClusterTask) -> ClusterTask:
    """Few values as levels, and the first principal components of the other structure columns."""
    rows = task.rows
    rows = with_levels(rows)
    Y, grain = _components(rows)
    return task._replace(rows=RectangleRows(rows.X, rows.X_labels, Y, rows.Y_labels, rows.weight, grain))


def with_levels(rows: RectangleRows) -> RectangleRows:
    """The rows with structure columns of few different values as labels, without those that repeat others."""
    most = min(FEW_VALUES, 0.1 * float(rows.weight.sum()))
    numbers, codes, sizes = [], [rows.Y_labels.codes], list(rows.Y_labels.n_levels)
    for j, y in enumerate(rows.Y.T):
        values, which = np.unique(y, return_inverse=True)
        n_values = len(values) - int(np.isnan(values[-1]))
        if n_values > most:
            numbers.append(j)
            continue
        codes.append(np.where(np.isnan(y), -1, which.reshape(-1))[:, None])
        sizes.append(n_values)
    kept = np.array(numbers, dtype=np.intp)
    if numbers:
        kept = kept[_not_repeated(rows.Y[:, kept])]
    Y_labels = LevelCodes(np.hstack(codes).astype(np.intp), tuple(sizes))
    return RectangleRows(rows.X, rows.X_labels, rows.Y[:, kept], Y_labels, rows.weight, rows.grain[:, kept])


def _not_repeated(Y: FloatArray) -> list[int]:
    """The columns of (N, P) that are no linear function of those before, gaps at the mean.

    A column that repeats others says nothing anew, but a density would see rows in a plane: no width at all.
    Of more columns than half the rows all stay, since any column follows from so many.
    """
    N, P = Y.shape
    if 2 * P > N:
        return list(range(P))
    off = np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)
    off = off - off.mean(axis=0)
    off /= np.maximum(np.sqrt((off * off).sum(axis=0)), 1e-300)
    kept: list[int] = []
    for j in range(P):
        if off[:, j] @ off[:, j] <= REPEATED:
            continue
        kept.append(j)
        own = off[:, j] / np.sqrt(off[:, j] @ off[:, j])
        off[:, j + 1 :] -= np.outer(own, own @ off[:, j + 1 :])
    return kept


def _components(rows: RectangleRows) -> tuple[FloatArray, FloatArray]:
    """Principal components (N, at most 5), gaps at the mean, and the variance within their steps."""
    Y, weight = rows.Y, rows.weight
    if Y.shape[1] <= MOST_COMPONENTS:
        return Y, rows.grain
    filled = np.nan_to_num(Y - np.average(np.nan_to_num(Y), axis=0, weights=weight))
    _, vectors = np.linalg.eigh((filled.T * weight) @ filled)
    kept = vectors[:, ::-1][:, :MOST_COMPONENTS]
    return filled @ kept, rows.grain @ kept**2

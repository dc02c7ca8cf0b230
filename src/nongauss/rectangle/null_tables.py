"""Tables of the same columns that have no clusters, or none but those given: what chance alone would gain."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from scipy.special import ndtr, ndtri

from nongauss.rectangle.data import ColumnView, FloatArray, IntArray, LevelCodes, RawCells, RectangleRows
from nongauss.rectangle.fit import ClusterTask

Cells = TypeVar("Cells", FloatArray, IntArray)


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

    def drawn_cells(table: Cells, view: ColumnView, used: tuple[int, ...]) -> Cells:
        out = table.copy()
        for column, i in zip(out.T, used, strict=True):
            column[:] = column[from_row[view.places[i]]]
        return out

    X_labels = LevelCodes(drawn_cells(rows.X_labels.codes, rule, rule.labels), rows.X_labels.n_levels)
    Y_labels = LevelCodes(drawn_cells(rows.Y_labels.codes, look, look.labels), rows.Y_labels.n_levels)
    X, Y = drawn_cells(rows.X, rule, rule.numeric), drawn_cells(rows.Y, look, look.numeric)
    grain = drawn_cells(rows.grain, look, look.numeric)
    new = RectangleRows(X, X_labels, Y, Y_labels, rows.weight, grain)
    return task._replace(rows=new, cells=RawCells(drawn_cells(cells.numbers, rule, rule.numeric), X_labels))


def _copula_rows(columns: FloatArray, weight: FloatArray, rng: np.random.Generator) -> IntArray:
    """For each cell (n, P) of a new table the row whose value it takes: a Gaussian copula of the columns."""
    if not columns.shape[1]:
        return np.zeros(columns.shape, dtype=np.intp)
    root = np.linalg.cholesky(_correlations(normal_scores(columns, weight)))
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


def normal_scores(Y: FloatArray, weight: FloatArray) -> FloatArray:
    """Each column through its ranks to a standard normal (N, P); equal values stay equal, gaps gaps."""
    out = np.full(Y.shape, np.nan)
    for column, y in zip(out.T, Y.T, strict=True):
        seen = ~np.isnan(y)
        _, which = np.unique(y[seen], return_inverse=True)
        mass = np.bincount(which, weight[seen])
        column[seen] = ndtri((np.cumsum(mass) - 0.5 * mass) / mass.sum())[which]
    return out

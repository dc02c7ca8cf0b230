"""Small problems that the tests of the family share."""

from __future__ import annotations

from typing import Any

import numpy as np

from encoding import encoder_of
from nongauss.rectangle.data import (
    ColumnView,
    ColumnViews,
    LevelCodes,
    RawCells,
    RectangleRows,
    learn_view,
    merge,
    read_columns,
)
from nongauss.rectangle.fit import ClusterTask
from nongauss.rectangle.params import ClusterStructure, SoftBoxes
from nongauss.rectangle.stated import NOTHING_STATED
from nongauss.tables.encoder import TableEncoder


def labels(codes: np.ndarray | None = None, *n_levels: int, n_rows: int = 0) -> LevelCodes:
    codes = np.zeros((n_rows, 0), dtype=np.intp) if codes is None else codes
    return LevelCodes(codes, n_levels)


def rows(n_rows: int = 40, *, gaps: bool = True, seed: int = 0) -> RectangleRows:
    """Two numeric and one label column for rules, three numeric and one label column for structure."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n_rows, 2)), rng.normal(size=(n_rows, 3))
    low = -1 if gaps else 0
    X_labels = labels(rng.integers(low, 3, (n_rows, 1)), 3)
    Y_labels = labels(rng.integers(low, 2, (n_rows, 1)), 2)
    if gaps:
        X[3, 1] = Y[5, 0] = np.nan
        X[4], Y[6], X_labels.codes[4] = np.nan, np.nan, -1
    return RectangleRows(X, X_labels, Y, Y_labels, rng.uniform(0.5, 2.0, n_rows))


def boxes(n_starts: int = 2, K: int = 3, seed: int = 1) -> SoftBoxes:
    rng = np.random.default_rng(seed)
    flat = rng.normal(size=(n_starts, K, 7))
    flat[..., 2:4] += 2.0
    return SoftBoxes.of(flat, 2)


def structure(n_starts: int = 2, K: int = 3, seed: int = 2) -> ClusterStructure:
    """Three numeric structure columns and a label column of two levels."""
    P, n_levels, rng = 3, 2, np.random.default_rng(seed)
    root = rng.normal(size=(n_starts, K, P, P))
    scatter = root @ np.swapaxes(root, -1, -2) + np.eye(P)
    levels = rng.dirichlet(np.ones(n_levels), (n_starts, K))
    return ClusterStructure(rng.normal(size=(n_starts, K, P)), scatter, np.log(levels))


def blobs(n_rows: int = 200, K: int = 4, seed: int = 0, spread: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    """Rows in clear boxes around points of a grid with steps of 4, and the cluster of each."""
    rng = np.random.default_rng(seed)
    centres = np.array([(x, y) for x in range(3) for y in range(2)])[:K] * 4.0
    truth = rng.integers(0, K, n_rows)
    return centres[truth] + rng.uniform(-spread * 2, spread * 2, (n_rows, 2)), truth


def viewed(
    X: Any,
    whole: TableEncoder | None = None,
    places: tuple[int, ...] | None = None,
    weight: np.ndarray | None = None,
    scaling: str = "standard",
) -> tuple[ColumnView, RawCells]:
    """The view of some columns of a table (None: all), and their cells."""
    whole = encoder_of(X) if whole is None else whole
    places = tuple(range(whole.n_features)) if places is None else places
    columns = read_columns(X, whole, places, "model")
    weight = np.ones(len(X)) if weight is None else weight
    there = learn_view(columns, whole, places, weight, scaling)
    return there, there.cells(columns)


def task_of(X: np.ndarray) -> ClusterTask:
    """What is fitted to an array, every column for rules and structure."""
    whole, places = encoder_of(X), tuple(range(X.shape[1]))
    columns = read_columns(X, whole, places, "model")
    there = learn_view(columns, whole, places, np.ones(len(X)), "standard")
    views = ColumnViews(there, there)
    return ClusterTask(*merge(views, columns, np.ones(len(X))), views, NOTHING_STATED)

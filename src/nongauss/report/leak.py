"""Columns that give the target away: what to look for where a model is too good to be true."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from nongauss.report.scoring import LabelScores, Scores
from nongauss.tables.frame import n_rows_of, take_rows
from nongauss.tables.learn import as_source, learn

_MOST_ROWS, _MOST_COLUMNS = 2_000, 500
_TOO_GOOD = 1e-3  # share of the constant model's error that is left
_GIVES_AWAY = 0.98  # share of the variance, or of the labels beyond the commonest, that one column explains


def too_good(model: Scores, constant: Scores) -> bool:
    """Is next to nothing left of the error that the constant model makes?"""
    left, whole = float(np.mean(model.error)), float(np.mean(constant.error))
    most = 0.01 if isinstance(model, LabelScores) else _TOO_GOOD
    return whole > 0 and left <= most * whole


def leaking_columns(model: Any, X: Any, y: Any) -> list[str]:
    """Names of columns of which each alone explains the target almost wholly, one half by the other half.

    A tree is fitted to each column.
    """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rows = np.random.default_rng(0).permutation(n_rows_of(X))[:_MOST_ROWS]
    some, target = take_rows(X, rows), np.asarray(y)[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = learn(as_source(some), warn=False).encoder
        columns = encoder.raw(some, warn=False)
    kind = DecisionTreeClassifier if is_classifier(model) else DecisionTreeRegressor
    half, out = len(rows) // 2, []
    for code, column in list(zip(encoder.columns, columns, strict=True))[:_MOST_COLUMNS]:
        if code.role not in ("numeric", "labels"):
            continue
        cells = np.asarray(column.values if column.codes is None else column.codes, dtype=np.float64)
        tree = kind(min_samples_leaf=2, random_state=0).fit(cells[:half, None], target[:half])
        if _explained(tree, cells[half:, None], target[half:], is_classifier(model)) > _GIVES_AWAY:
            out.append(code.name)
    return out


def _explained(tree: Any, cells: Any, target: Any, classify: bool) -> float:
    """The share of the variance, or of the labels other than the commonest, that a tree predicts."""
    if not classify:
        return float(tree.score(cells, target)) if np.ptp(target) > 0 else 0.0
    commonest = float(np.unique(target, return_counts=True)[1].max()) / len(target)
    return (float(tree.score(cells, target)) - commonest) / max(1e-12, 1.0 - commonest)

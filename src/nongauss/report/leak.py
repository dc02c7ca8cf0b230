"""Columns that give the target away: what to look for where a model is too good to be true."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from nongauss.report.metrics import FloatArray
from nongauss.report.scoring import LabelScores, Scores
from nongauss.tables.frame import InputTable, n_rows_of, read_input, take_rows
from nongauss.tables.learn import as_source, learn
from nongauss.tables.words import typed

_MOST_ROWS, _MOST_COLUMNS = 2_000, 500
_MOST_PAIRED, _MOST_TOLD, _FEWEST, _FEWEST_VALUES = 20, 3, 20, 10
_TOO_GOOD = 1e-3  # share of the constant model's error that is left
_GIVES_AWAY = 0.98  # share of the variance, or of the labels beyond the commonest, that one column explains


def too_good(model: Scores, constant: Scores) -> bool:
    """Is next to nothing left of the error that the constant model makes?"""
    left, whole = float(np.mean(model.error)), float(np.mean(constant.error))
    most = 0.01 if isinstance(model, LabelScores) else _TOO_GOOD
    return whole > 0 and left <= most * whole


def nearly_all(model: Scores, constant: Scores) -> bool:
    """Is R² above .98, so that it is worth a look whether two columns give a number exactly?"""
    left, whole = float(np.mean(model.error)), float(np.mean(constant.error))
    return not isinstance(model, LabelScores) and 0.0 <= left <= (1.0 - _GIVES_AWAY) * whole


def exact_pairs(X: Any, y: Any, *, dates_only: bool = False) -> list[tuple[str, str, str]]:
    """Pairs of columns that together give a number exactly, and how: "sum or difference", "product or ratio".

    In 99 % of the rows that have both, y is a + b x + c z, or exp(a) x^b z^c, to half a unit of whole
    numbers, else to a thousandth of its standard deviation. Columns of which one alone does it make no
    pairs. `dates_only`: pairs of dates whose difference it is, in days or in other units of time.
    """
    target = np.asarray(y, dtype=np.float64)
    picked = np.random.default_rng(0).permutation(len(target))[:_MOST_ROWS]
    some = X.take(picked) if isinstance(X, InputTable) else read_input(take_rows(X, picked))
    target = target[picked]
    values = _numbers_of(some, dates_only)
    alone = {name for name, x in values.items() if _how(target, x[:, None])}
    found = []
    for one, other in combinations([name for name in values if name not in alone], 2):
        how = _how(target, np.column_stack([values[one], values[other]]))
        if how and not (dates_only and how != _SUM):
            found.append((one, other, how))
    return found


def told_of_dates(rows: InputTable, y: Any, target: str) -> list[str]:
    """A sentence on each pair of dates whose difference is the target; none where that is no number."""
    if np.asarray(y).dtype.kind not in "fiu":
        return []
    return told_of_pairs(exact_pairs(rows, y, dates_only=True), target)


def told_of_pairs(pairs: Sequence[tuple[str, str, str]], target: str) -> list[str]:
    """A sentence on each of the first pairs."""
    return [
        f"Columns {one!r} and {other!r} together give {target!r} away: it is their {how}. If one of "
        f"them is known only after the target, leave it out with --ignore {typed(other, listed=True)}."
        for one, other, how in pairs[:_MOST_TOLD]
    ]


def _numbers_of(rows: InputTable, dates_only: bool) -> dict[str, FloatArray]:
    """The columns of numbers and dates, the first of many, by name."""
    out: dict[str, FloatArray] = {}
    for place, name in enumerate(rows.labels):
        if len(out) == _MOST_PAIRED:
            break
        column = rows.column(place)
        if column.values is not None and (column.kind == "date" or not dates_only):
            out[name] = column.values
    return out


_SUM, _PRODUCT = "sum or difference", "product or ratio"


def _how(y: FloatArray, x: FloatArray) -> str:
    """How columns x (N, D) give y (N,) exactly; "" where they do not."""
    known = np.isfinite(x).all(axis=1) & np.isfinite(y)
    y, x = y[known], x[known]
    if len(y) < _FEWEST or len(np.unique(y)) < _FEWEST_VALUES or (x.std(axis=0) == 0).any():
        return ""
    whole = bool((y == np.round(y)).all())
    slack = 0.51 if whole else 1e-3 * float(y.std())
    if _are_near(y, _line(y, x), slack):
        return _SUM
    if (y > 0).all() and (x > 0).all() and _are_near(y, np.exp(_line(np.log(y), np.log(x))), slack):
        return _PRODUCT
    return ""


def _line(y: FloatArray, x: FloatArray) -> FloatArray:
    """The least-squares line of y (N,) on x (N, D), fitted again without the twentieth farthest from it."""
    scaled = np.column_stack([np.ones(len(y)), (x - x.mean(axis=0)) / x.std(axis=0)])
    near = np.ones(len(y), dtype=np.bool_)
    for _ in range(2):
        line: FloatArray = scaled @ np.linalg.lstsq(scaled[near], y[near], rcond=None)[0]
        off = np.abs(y - line)
        near = off <= np.quantile(off, 0.95)
    return line


def _are_near(y: FloatArray, line: FloatArray, slack: float) -> bool:
    """Is the line at y in 99 % of the rows, and does it leave next to nothing of its variance?"""
    off = np.abs(y - line)
    return float((off <= slack).mean()) >= 0.99 and float(np.median(off)) <= 0.05 * float(y.std())


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

"""Cross-validated tables: models of the house beside scikit-learn's, every one judged on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import is_classifier
from sklearn.model_selection import BaseCrossValidator, KFold, StratifiedKFold
from sklearn.utils import _safe_indexing

from nongauss.core.errors import InputError
from nongauss.report.evidence import Dependence
from nongauss.report.metrics import SHORT_LABELS, format_figure
from nongauss.report.scoring import NumberScores, Scores, density_kind, fit_timed, joined, score, with_law
from nongauss.report.text import text_table
from nongauss.tables.frame import InputTable

_FIGURES = ("rmse", "log_density", "crps", "coverage_90", "width_90", "interval_score_90", "seconds")
_LABEL_FIGURES = ("log_loss", "accuracy", "balanced_accuracy", "brier", "level_error", "seconds")


def compare(
    estimators: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    cv: int | BaseCrossValidator = 5,
    levels: npt.ArrayLike | None = None,
    random_state: int | None = 0,
    progress: Callable[[int, int, str], object] | None = None,
) -> pd.DataFrame:
    """Cross-validated figures of several regressors, or classifiers, on the same folds, best first.

    A regressor with `predict_distribution` is judged by its own density and interval. Any other gets the law
    of its out-of-fold residuals inside each training part, one for all rows (normal, or kernels at the
    residuals); the column `density` says which. Classifiers are judged by `predict_proba`, on
    folds that each hold all classes in proportion. Seconds count the fit of the model alone.

    Parameters
    ----------
    estimators : unfitted regressors, or unfitted classifiers, by name; they are cloned, not changed.
    X : (N, D) array or frame. y : (N,) one target, numeric or labels.
    cv : number of shuffled folds, or a scikit-learn splitter.
    levels : all labels from lowest to highest, for classes that have an order.
    random_state : seed of the shuffle. progress : called with (done, total, name) before each fit.

    Returns
    -------
    DataFrame indexed by model. Regressors: `rmse`, `log_density` (nats a row), `crps`,
    `coverage_90`, `width_90`, `interval_score_90`;
    classifiers: `log_loss` (nats a row), `accuracy`, `balanced_accuracy`, `brier`, with `levels` also
    `level_error`, see `classification_metrics`. Then `seconds`. Each is the mean over folds and followed by
    `..._se`, its standard error. Then `density` (regressors), and `reason`, the error of a model that
    failed (its figures are blank). `log_score_behind` (nats a row) and `crps_behind` (units of the target):
    how much worse each model is than the first, row by row, with standard errors of these differences.
    Sorted by log density or log loss, or by RMSE where a model that ran has no log density; failures last.
    `attrs["sorted_by"]` names the column.

    Raises
    ------
    InputError where there are no estimators, or both kinds, or fewer rows than folds.
    """
    if not estimators:
        raise InputError("`estimators` is empty; give at least one model to compare.")
    kinds = {is_classifier(estimator) for estimator in estimators.values()}
    if len(kinds) > 1:
        raise InputError("`estimators` mixes classifiers and regressors; compare models of one kind.")
    classify = kinds.pop()
    target = _target(y, classify)
    splits = _splits(cv, target, random_state, classify)
    report = progress if progress is not None else _silent
    total = len(splits) * len(estimators)
    rows = {}
    for number, (name, estimator) in enumerate(estimators.items()):

        def starts(fold: int, before: int = number * len(splits), name: str = name) -> None:
            report(before + fold, total, name)

        rows[name] = _cross_validated(estimator, X, target, splits, levels, starts)
    report(total, total, "")
    if all(row["reason"] for row in rows.values()):
        reasons = "; ".join(f"{name}: {row['reason']}" for name, row in rows.items())
        raise InputError(f"No model could be fitted ({reasons}).")
    scores = {name: row.pop("scores") for name, row in rows.items() if "scores" in row}
    table = _table(rows, classify)
    return _with_distances(table, scores)


def _with_distances(table: pd.DataFrame, scores: Mapping[str, Scores]) -> pd.DataFrame:
    """The table with how far each model is behind the first one, row by row, and the standard errors of that.

    A difference over the same rows is known better than either figure; fits of folds share rows, which is
    allowed for (see `evidence`).
    """
    first = next(name for name in table.index if name in scores)
    for figure, values in _BEHIND.items():
        own = {name: values(found) for name, found in scores.items()}
        if any(row is None for row in own.values()):
            continue
        gaps = {name: _mean_gap(own[first], row) for name, row in own.items()}
        place = list(table.columns).index("seconds")
        for column, which in ((figure, 0), (f"{figure}_se", 1)):
            cells = [gaps[name][which] if name in gaps else np.nan for name in table.index]
            table.insert(place, column, cells)
            place += 1
    return table


def _mean_gap(first: Any, other: Any) -> tuple[float, float]:
    """Mean and standard error of the differences of scores (N,) of which more is better."""
    gap = first - other
    gap = gap[~np.isnan(gap)]
    if not len(gap) or not np.isfinite(gap).all():
        return (float(gap.mean()) if len(gap) else np.nan), np.nan
    return float(gap.mean()), Dependence(several=True).of_mean(gap)[0]


def _minus_crps(scores: Scores) -> Any:
    return None if not isinstance(scores, NumberScores) or scores.crps is None else -scores.crps


_BEHIND: dict[str, Callable[[Scores], Any]] = {
    "log_score_behind": lambda scores: scores.log_score,
    "crps_behind": _minus_crps,
}
"""How far each model is behind the best one, by the scores of which differences are taken."""


def _target(y: Any, classify: bool) -> Any:
    """A target that can be cut into rows: numbers, or labels as they came."""
    target = y if classify and hasattr(y, "shape") else np.asarray(y, dtype=None if classify else np.float64)
    if len(target.shape) != 1:
        raise InputError(f"`y` must be one target, of shape (N,), got shape {target.shape}.")
    return target


def _cross_validated(
    estimator: Any, X: Any, y: Any, splits: list[Any], levels: Any, report: Callable[[int], object]
) -> dict[str, Any]:
    """One row of the table: figures pooled over folds, or the reason why there are none."""
    row: dict[str, Any] = {"density": density_kind(estimator), "reason": ""}
    folds, scores = [], []
    for fold, (train, test) in enumerate(splits):
        report(fold)
        X_train, X_test, y_train, y_test = (_some(a, part) for a in (X, y) for part in (train, test))
        try:
            model, seconds = fit_timed(with_law(estimator), X_train, y_train)
            scores.append(score(model, X_test, y_test))
            folds.append(scores[-1].figures(seconds, levels))
        except Exception as error:  # noqa: BLE001 (one failure must not end the others)
            cause = " ".join(str(error).split())
            return {**row, "reason": f"fold {fold + 1}: {type(error).__name__}: {cause}"}
    return {**row, **_pooled(folds), "scores": joined(scores)}


def _some(rows: Any, part: Any) -> Any:
    """Some of the rows of a table, or entries of a target."""
    return rows.take(part) if isinstance(rows, InputTable) else _safe_indexing(rows, part)


def _silent(done: int, total: int, name: str) -> None:
    """A progress callback that shows nothing."""


def comparison_text(table: pd.DataFrame) -> str:
    """The table of `compare` as text, each figure with its standard error, failures with their reason."""
    header = ["model"]
    rows = [[str(name)] for name in table.index]
    for name in [name for name in SHORT_LABELS if name in table]:
        header.append(SHORT_LABELS[name])
        for cells, (_, values) in zip(rows, table.iterrows(), strict=True):
            value, error = format_figure(name, values[name]), format_figure(name, values[f"{name}_se"])
            cells.append(f"{value} ± {error}" if error else value)
    best = SHORT_LABELS[table.attrs["sorted_by"]]
    lines = [text_table(header, rows), "", f"Best first by {best}; ± one standard error."]
    if "density" in table and (table["density"] != "own").any():
        lines.append(
            "Models that predict no distribution get one from their out-of-fold residuals, the same "
            "for all rows."
        )
    lines += [f"{name} failed: {reason}" for name, reason in table["reason"].items() if reason]
    return "\n".join(lines)


def _splits(cv: int | BaseCrossValidator, y: Any, seed: int | None, classify: bool) -> list[Any]:
    if not isinstance(cv, int):
        return list(cv.split(y, y))
    if cv < 2:
        raise InputError(f"`cv` must be at least 2 folds, got {cv}.")
    if len(y) < 2 * cv:
        raise InputError(
            f"{cv} folds need at least {2 * cv} rows, got {len(y)}; give more rows or lower `cv`."
        )
    if classify and pd.Series(y).value_counts().max() < cv:
        raise InputError(f"{cv} folds need a class with at least {cv} rows; lower `cv`.")
    folds = (StratifiedKFold if classify else KFold)(cv, shuffle=True, random_state=seed)
    return list(folds.split(y, pd.factorize(pd.Series(y))[0] if classify else y))


def _pooled(folds: list[dict[str, float]]) -> dict[str, float]:
    pooled: dict[str, float] = {}
    for name in folds[0]:
        values = np.array([fold[name] for fold in folds])
        pooled[name] = float(values.mean())
        pooled[f"{name}_se"] = np.nan  # also where a fold's log density is minus infinity
        if len(values) > 1 and np.isfinite(values).all():
            pooled[f"{name}_se"] = float(values.std(ddof=1) / np.sqrt(len(values)))
    return pooled


def _table(rows: dict[str, dict[str, Any]], classify: bool) -> pd.DataFrame:
    names = _LABEL_FIGURES if classify else _FIGURES
    shown = [name for name in names if any(name in row for row in rows.values())]
    columns = [column for name in shown for column in (name, f"{name}_se")]
    columns += ["reason"] if classify else ["density", "reason"]
    table = pd.DataFrame.from_dict(rows, orient="index").reindex(columns=columns)
    table.index.name = "model"
    key = "log_loss" if classify else _best_key(table)
    # A failed model has no figure, and blanks sort last.
    table = table.sort_values(key, ascending=key != "log_density", kind="stable", na_position="last")
    table.attrs["sorted_by"] = key
    return table


def _best_key(table: pd.DataFrame) -> str:
    densities = table.loc[table["reason"] == "", "log_density"].astype(float)
    return "log_density" if bool(np.isfinite(densities).all()) else "rmse"

"""Cross-validated tables: models of the house beside scikit-learn's, every one judged on the same rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import BaseCrossValidator, KFold, cross_val_predict
from sklearn.utils import _safe_indexing

from nongauss.core.contracts import InputError, Status
from nongauss.report.metrics import SHORT_LABELS, FloatArray, format_figure, regression_metrics
from nongauss.report.text import text_table

_Z90 = 1.6448536269514722  # 95th percentile of the standard normal
_FIGURES = ("rmse", "log_density", "coverage_90", "width_90", "seconds")
_INNER_FOLDS = 5


def compare(
    estimators: Mapping[str, Any],
    X: Any,
    y: npt.ArrayLike,
    *,
    cv: int | BaseCrossValidator = 5,
    random_state: int | None = 0,
    progress: Callable[[int, int, str], object] | None = None,
) -> pd.DataFrame:
    """Cross-validated figures of several regressors on the same folds, best first, whoever it is.

    A model with `predict_distribution` is judged by its own density and interval. Any other gets a
    Gaussian around its prediction whose one variance is estimated, inside each training part, from
    out-of-fold residuals; the column `density` says which. Seconds count the fit of the model alone.

    Parameters
    ----------
    estimators : unfitted regressors by name; they are cloned, not changed.
    X : (N, D) array or frame. y : (N,) one numeric target.
    cv : number of shuffled folds, or a scikit-learn splitter.
    random_state : seed of the shuffle. progress : called with (done, total, name) before each fit.

    Returns
    -------
    DataFrame indexed by model: `rmse`, `log_density` (nats a row), `coverage_90`, `width_90`, `seconds`, each
    the mean over folds and followed by `..._se`, its standard error; `density`; `reason`, the error of
    a model that failed (its figures are blank). Sorted by log density, or by RMSE where a model that
    ran has none; failures last. `attrs["sorted_by"]` names the column.

    Raises
    ------
    InputError where there are no estimators, or fewer rows than folds.
    """
    if not estimators:
        raise InputError("`estimators` is empty; give at least one model to compare.")
    target = np.asarray(y, dtype=np.float64)
    if target.ndim != 1:
        raise InputError(f"`y` must be one target, of shape (N,), got shape {target.shape}.")
    splits = _splits(cv, target, random_state)
    report = progress if progress is not None else _silent
    total = len(splits) * len(estimators)
    rows = {}
    for number, (name, estimator) in enumerate(estimators.items()):

        def starts(fold: int, before: int = number * len(splits), name: str = name) -> None:
            report(before + fold, total, name)

        rows[name] = _cross_validated(estimator, X, target, splits, starts)
    report(total, total, "")
    if all(row["reason"] for row in rows.values()):
        reasons = "; ".join(f"{name}: {row['reason']}" for name, row in rows.items())
        raise InputError(f"No model could be fitted ({reasons}).")
    return _table(rows)


def _cross_validated(
    estimator: Any, X: Any, y: FloatArray, splits: list[Any], report: Callable[[int], object]
) -> dict[str, Any]:
    """One row of the table: figures pooled over folds, or the reason why there are none."""
    row: dict[str, Any] = {"density": density_kind(estimator), "reason": ""}
    folds = []
    for fold, (train, test) in enumerate(splits):
        report(fold)
        X_train, X_test = _safe_indexing(X, train), _safe_indexing(X, test)
        try:
            folds.append(fit_and_score(estimator, X_train, y[train], X_test, y[test])[1])
        except Exception as error:  # noqa: BLE001 (one failure must not end the others)
            cause = " ".join(str(error).split())
            return {**row, "reason": f"fold {fold + 1}: {type(error).__name__}: {cause}"}
    return {**row, **_pooled(folds)}


def _silent(done: int, total: int, name: str) -> None:
    """Progress that nobody watches."""


def fit_and_score(
    estimator: Any, X_train: Any, y_train: FloatArray, X_test: Any, y_test: FloatArray
) -> tuple[Any, dict[str, float]]:
    """Fit a clone on the training rows; return it with its figures on the test rows (see `compare`)."""
    model = clone(estimator)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X_train, y_train)
    seconds = time.perf_counter() - started
    raise_if_stopped(model)
    if density_kind(model) == "own":
        distribution = model.predict_distribution(X_test)
        mean = np.asarray(distribution.mean)
        log_density, interval = distribution.log_prob(y_test), distribution.interval(0.9)
    else:
        mean = np.asarray(model.predict(X_test), dtype=np.float64)
        log_density, interval = _residual_gaussian(estimator, X_train, y_train, mean, y_test)
    return model, regression_metrics(y_test, mean, log_density, interval, seconds)


def raise_if_stopped(model: Any) -> None:
    """Ctrl-C ends a fit early with a usable model; here it means that the person wants all of it to end."""
    if getattr(model, "stop_reason_", None) == Status.STOPPED.value:
        raise KeyboardInterrupt


def comparison_text(table: pd.DataFrame) -> str:
    """The table of `compare` as text, each figure with its standard error, failures with their reason."""
    header = ["model"]
    rows = [[str(name)] for name in table.index]
    for name in _FIGURES:
        header.append(SHORT_LABELS[name])
        for cells, (_, values) in zip(rows, table.iterrows(), strict=True):
            value, error = format_figure(name, values[name]), format_figure(name, values[f"{name}_se"])
            cells.append(f"{value} ± {error}" if error else value)
    best = SHORT_LABELS[table.attrs["sorted_by"]]
    lines = [text_table(header, rows), "", f"Best first by {best}; ± one standard error."]
    if (table["density"] != "own").any():
        lines.append(
            "Models that predict no distribution get a Gaussian of one width, from out-of-fold residuals."
        )
    lines += [f"{name} failed: {reason}" for name, reason in table["reason"].items() if reason]
    return "\n".join(lines)


def density_kind(estimator: Any) -> str:
    """'own' where the model predicts a distribution, else 'residual Gaussian'."""
    return "own" if hasattr(estimator, "predict_distribution") else "residual Gaussian"


def baselines(frame: pd.DataFrame, *, random_state: int | None = 0) -> dict[str, BaseEstimator]:
    """Ridge regression, gradient-boosted trees and a neural network, ready for the columns of `frame`.

    Category, string and bool columns are encoded, gaps imputed with an indicator (trees take gaps as
    they are), numbers scaled, and the target scaled for ridge and network. Settings are
    scikit-learn's own, but that ridge picks its penalty by cross-validation and the network gets
    up to 1000 epochs. Columns that are neither numbers nor labels (dates) are left out.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.neural_network import MLPRegressor

    numbers = [c for c in frame.columns if _is_number(frame[c])]
    labels = [c for c in frame.columns if c not in numbers and not _is_date(frame[c])]
    ridge = RidgeCV(alphas=np.logspace(-3, 4, 22))
    network = MLPRegressor(max_iter=1000, random_state=random_state)
    mask = [False] * len(numbers) + [True] * len(labels)
    trees = HistGradientBoostingRegressor(categorical_features=mask, random_state=random_state)
    return {
        "ridge regression": _scaled(numbers, labels, ridge),
        "gradient-boosted trees": _tree_pipeline(numbers, labels, trees),
        "neural network": _scaled(numbers, labels, network),
    }


def _splits(cv: int | BaseCrossValidator, y: FloatArray, seed: int | None) -> list[Any]:
    if not isinstance(cv, int):
        return list(cv.split(y, y))
    if cv < 2:
        raise InputError(f"`cv` must be at least 2 folds, got {cv}.")
    if len(y) < 2 * cv:
        raise InputError(
            f"{cv} folds need at least {2 * cv} rows, got {len(y)}; give more rows or lower `cv`."
        )
    return list(KFold(cv, shuffle=True, random_state=seed).split(y))


def _residual_gaussian(
    estimator: Any, X: Any, y: FloatArray, mean: FloatArray, y_test: FloatArray
) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """Log density and 90 % interval of N(mean, v), v the mean square of out-of-fold residuals on X, y."""
    folds = KFold(min(_INNER_FOLDS, len(y)), shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        residual = y - cross_val_predict(clone(estimator), X, y, cv=folds)
    # The floor keeps the density finite where a baseline interpolates the target exactly.
    floor = (1e-6 * (float(np.std(y)) or 1.0)) ** 2
    variance = max(float(np.mean(residual**2)), floor)
    log_density = -0.5 * (np.log(2 * np.pi * variance) + (y_test - mean) ** 2 / variance)
    half = _Z90 * np.sqrt(variance)
    return log_density, (mean - half, mean + half)


def _pooled(folds: list[dict[str, float]]) -> dict[str, float]:
    pooled: dict[str, float] = {}
    for name in _FIGURES:
        values = np.array([fold[name] for fold in folds])
        pooled[name] = float(values.mean())
        pooled[f"{name}_se"] = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan
    return pooled


def _table(rows: dict[str, dict[str, Any]]) -> pd.DataFrame:
    columns = [c for name in _FIGURES for c in (name, f"{name}_se")] + ["density", "reason"]
    table = pd.DataFrame.from_dict(rows, orient="index").reindex(columns=columns)
    table.index.name = "model"
    ran = table["reason"] == ""
    by_density = bool(np.isfinite(table.loc[ran, "log_density"].astype(float)).all())
    key = "log_density" if by_density else "rmse"
    # A failed model has no figure, and blanks sort last.
    table = table.sort_values(key, ascending=not by_density, kind="stable", na_position="last")
    table.attrs["sorted_by"] = key
    return table


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _is_date(column: pd.Series) -> bool:
    return column.dtype.kind in "mM"


def _as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Labels as plain strings with None for gaps, whatever kind of column they came in."""
    text = frame.astype(object)
    return text.map(str, na_action="ignore").where(text.notna(), None)


class _EmptyColumnsToZero(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Columns with no value among the rows fitted become 0, which no tree splits; gaps elsewhere stay."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> _EmptyColumnsToZero:
        """Note which columns are empty."""
        self.empty_ = np.isnan(self._floats(X)).all(axis=0)
        return self

    def transform(self, X: pd.DataFrame) -> FloatArray:
        """Numbers (N, D) with NaN for gaps."""
        return np.where(self.empty_, 0.0, self._floats(X))

    @staticmethod
    def _floats(X: pd.DataFrame) -> FloatArray:
        return X.to_numpy(dtype=np.float64, na_value=np.nan)


def _label_steps(*steps: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    return make_pipeline(FunctionTransformer(_as_text, feature_names_out="one-to-one"), *steps)


def _scaled(numbers: list[Any], labels: list[Any], regressor: Any) -> Any:
    from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=50, sparse_output=False)
    impute = SimpleImputer(add_indicator=True, keep_empty_features=True)
    scale = make_pipeline(impute, StandardScaler())
    encode = ColumnTransformer([("numbers", scale, numbers), ("labels", _label_steps(one_hot), labels)])
    return TransformedTargetRegressor(make_pipeline(encode, regressor), transformer=StandardScaler())


def _tree_pipeline(numbers: list[Any], labels: list[Any], regressor: Any) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
        max_categories=250,
    )
    encode = ColumnTransformer(
        [("numbers", _EmptyColumnsToZero(), numbers), ("labels", _label_steps(codes), labels)]
    )
    return make_pipeline(encode, regressor)

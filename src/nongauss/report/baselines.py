"""The models that ours must beat: scikit-learn's usual ones, ready for a table with labels and gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin


def baselines(
    frame: pd.DataFrame, *, classify: bool = False, random_state: int | None = 0
) -> dict[str, BaseEstimator]:
    """Linear model, gradient-boosted trees and neural network, ready for the columns of `frame`.

    The linear model is ridge regression, with `classify` logistic regression; then the class shares, which
    look at no column, stand beside them. Category, string and bool columns are encoded, gaps imputed with an
    indicator (trees take gaps as they are), numbers scaled, and the target scaled for ridge and network.
    Settings are scikit-learn's own, but that ridge picks its penalty by cross-validation and that logistic
    regression and network get up to 1000 iterations. Columns that are neither numbers nor labels (dates)
    are left out.
    """
    numbers = [c for c in frame.columns if _is_number(frame[c])]
    labels = [c for c in frame.columns if c not in numbers and not _is_date(frame[c])]
    return (_classifiers if classify else _regressors)(numbers, labels, random_state)


def _regressors(numbers: list[Any], labels: list[Any], seed: int | None) -> dict[str, BaseEstimator]:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.neural_network import MLPRegressor
    from sklearn.preprocessing import StandardScaler

    def scaled(regressor: Any) -> Any:
        return TransformedTargetRegressor(_scaled(numbers, labels, regressor), transformer=StandardScaler())

    trees = HistGradientBoostingRegressor(categorical_features=_mask(numbers, labels), random_state=seed)
    return {
        "ridge regression": scaled(RidgeCV(alphas=np.logspace(-3, 4, 22))),
        "gradient-boosted trees": _tree_pipeline(numbers, labels, trees),
        "neural network": scaled(MLPRegressor(max_iter=1000, random_state=seed)),
    }


def _classifiers(numbers: list[Any], labels: list[Any], seed: int | None) -> dict[str, BaseEstimator]:
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    trees = HistGradientBoostingClassifier(categorical_features=_mask(numbers, labels), random_state=seed)
    return {
        "class shares": DummyClassifier(strategy="prior"),
        "logistic regression": _scaled(numbers, labels, LogisticRegression(max_iter=1000)),
        "gradient-boosted trees": _tree_pipeline(numbers, labels, trees),
        "neural network": _scaled(numbers, labels, MLPClassifier(max_iter=1000, random_state=seed)),
    }


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

    def transform(self, X: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Numbers (N, D) with NaN for gaps."""
        return np.where(self.empty_, 0.0, self._floats(X))

    @staticmethod
    def _floats(X: pd.DataFrame) -> npt.NDArray[np.float64]:
        return X.to_numpy(dtype=np.float64, na_value=np.nan)


def _label_steps(*steps: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    return make_pipeline(FunctionTransformer(_as_text, feature_names_out="one-to-one"), *steps)


def _mask(numbers: list[Any], labels: list[Any]) -> list[bool]:
    """Which columns of `_tree_pipeline` hold categories."""
    return [False] * len(numbers) + [True] * len(labels)


def _scaled(numbers: list[Any], labels: list[Any], model: Any) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=50, sparse_output=False)
    impute = SimpleImputer(add_indicator=True, keep_empty_features=True)
    scale = make_pipeline(impute, StandardScaler())
    encode = ColumnTransformer([("numbers", scale, numbers), ("labels", _label_steps(one_hot), labels)])
    return make_pipeline(encode, model)


def _tree_pipeline(numbers: list[Any], labels: list[Any], model: Any) -> Any:
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
    return make_pipeline(encode, model)

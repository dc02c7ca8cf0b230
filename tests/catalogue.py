"""Every public estimator, once, with settings that make it fit in a blink. Table tests run over this list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_wine
from sklearn.utils import get_tags

import nongauss


@dataclass(frozen=True)
class Entry:
    """One estimator: its public name, constructor arguments of a small fit, and data of its kind."""

    name: str
    small: dict[str, Any]
    data: Callable[[], tuple[np.ndarray, np.ndarray]]

    iterations: str = "max_iter"

    def said(self, estimator: Any, X: Any) -> np.ndarray:
        """What a fitted estimator says about rows: predictions, or features where it predicts nothing."""
        return estimator.predict(X) if hasattr(estimator, "predict") else estimator.transform(X)

    def make(self, **changes: Any) -> BaseEstimator:
        return getattr(nongauss, self.name)(**{**self.small, **changes})

    def longer(self, iterations: int) -> BaseEstimator:
        """With so many iterations at most, if it counts them."""
        if self.name.startswith("Auto"):
            return self.make()
        return self.make(**{self.iterations: iterations})


def diabetes_part(n_rows: int = 90, n_columns: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Real clinical data that ships with scikit-learn, cut to `(n_rows, n_columns)` and `(n_rows,)`."""
    X, y = load_diabetes(return_X_y=True)
    return X[:n_rows, :n_columns].copy(), y[:n_rows].copy()


def wine_alcohol() -> tuple[np.ndarray, np.ndarray]:
    """Real wines with the alcohol as target; no column has two values, which a mirror would turn round."""
    X, _ = wine_part(n_columns=6)
    return X[:, 1:].copy(), X[:, 0].copy()


def wine_part(n_rows: int = 90, n_columns: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Real wines of three growers, every second row: `(n_rows, n_columns)` and `(n_rows,)`."""
    X, y = load_wine(return_X_y=True)
    return X[::2][:n_rows, :n_columns].copy(), y[::2][:n_rows].copy()


def diabetes_grades() -> tuple[np.ndarray, np.ndarray]:
    """The clinical data with the target in four grades."""
    X, y = diabetes_part()
    return X, np.digitize(y, [80, 140, 220])


def mixed_frame(n_rows: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns of every kind, and a target that hangs on three of them."""
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(
        {
            "size": rng.randn(n_rows),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], n_rows)),
            "town": rng.choice(["Ulm", "Bern"], n_rows),
            "new": rng.rand(n_rows) > 0.5,
            "rooms": pd.array(rng.randint(1, 6, n_rows), dtype="Int64"),
        }
    )
    y = frame["size"] + 2.0 * (frame["colour"] == "red") + frame["rooms"].astype(float)
    return frame, y.to_numpy()


CATALOGUE = [
    Entry(
        "TGGMRegressor",
        {
            "hidden_layer_sizes": (6,),
            "posterior": "moments",
            "max_epochs": 15,
            "n_members": 2,
            "random_state": 0,
        },
        diabetes_part,
        "max_epochs",
    ),
    Entry(
        "TGGMClassifier",
        {
            "hidden_layer_sizes": (6,),
            "learning_rate": 0.03,
            "max_epochs": 15,
            "n_members": 2,
            "random_state": 0,
        },
        wine_part,
        "max_epochs",
    ),
    Entry("SparseGPRegressor", {"n_inducing": 20, "max_iter": 10, "random_state": 0}, diabetes_part),
    Entry("SparseGPClassifier", {"n_inducing": 12, "max_iter": 8, "random_state": 0}, wine_part),
    Entry("SparseGPOrdinalClassifier", {"n_inducing": 12, "max_iter": 8, "random_state": 0}, diabetes_grades),
    Entry(
        "AutoRegressor",
        {"candidates": ("constant", "linear"), "calibrate": False, "random_state": 0},
        diabetes_part,
    ),
    Entry("AutoClassifier", {"candidates": ("linear labels",), "random_state": 0}, wine_part),
    Entry("AutoImputer", {"candidates": ("rank_factor",), "random_state": 0}, wine_part),
    Entry("RankFactorAnalysis", {"n_factors": 2, "max_iter": 8, "random_state": 0}, wine_part),
    Entry("RankFactorClassifier", {"n_factors": 2, "max_iter": 8, "random_state": 0}, wine_part),
    Entry("RectangleMixture", {"n_clusters": 3, "n_init": 2, "max_iter": 20, "random_state": 0}, wine_part),
    Entry("Harmonium", {"n_components": 6, "max_epochs": 15, "random_state": 0}, wine_part, "max_epochs"),
    Entry(
        "HarmoniumClassifier",
        {"n_components": 12, "max_epochs": 20, "random_state": 0},
        wine_part,
        "max_epochs",
    ),
    Entry(
        "HarmoniumRegressor",
        {"n_components": 6, "max_epochs": 40, "random_state": 0},
        wine_alcohol,
        "max_epochs",
    ),
]

FOUND = Entry("Harmonium", {"max_epochs": 15, "random_state": 0}, wine_part, "max_epochs")
"""As by default: the number of features is found in the table, which takes longer."""


SUPERVISED = [entry for entry in CATALOGUE if is_classifier(entry.make()) or is_regressor(entry.make())]
CLASSIFIERS = [entry for entry in CATALOGUE if entry.name.endswith("Classifier")]
REGRESSORS = [entry for entry in CATALOGUE if entry.name.endswith("Regressor")]
SEVERAL_OUTPUTS = [entry for entry in REGRESSORS if get_tags(entry.make()).target_tags.multi_output]
OTHERS = [entry for entry in CATALOGUE if entry not in REGRESSORS]

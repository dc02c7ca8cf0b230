"""Every public estimator, once, with settings that make it fit in a blink. Table tests run over this list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import load_diabetes

import nongauss


@dataclass(frozen=True)
class Entry:
    """One estimator: its public name, constructor arguments of a small fit, and data of its kind."""

    name: str
    small: dict[str, Any]
    data: Callable[[], tuple[np.ndarray, np.ndarray]]

    def make(self, **changes: Any) -> BaseEstimator:
        return getattr(nongauss, self.name)(**{**self.small, **changes})


def diabetes_part(n_rows: int = 90, n_columns: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Real clinical data that ships with scikit-learn, cut to `(n_rows, n_columns)` and `(n_rows,)`."""
    X, y = load_diabetes(return_X_y=True)
    return X[:n_rows, :n_columns].copy(), y[:n_rows].copy()


CATALOGUE = [
    Entry(
        "TGGMRegressor",
        {"hidden_layer_sizes": (6,), "max_epochs": 15, "n_members": 2, "random_state": 0},
        diabetes_part,
    ),
]

REGRESSORS = [entry for entry in CATALOGUE if entry.name.endswith("Regressor")]

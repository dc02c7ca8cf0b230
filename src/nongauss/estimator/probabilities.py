"""What every classifier does with the probabilities of its classes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from nongauss.core.errors import InputError
from nongauss.estimator.explain import ExplainMixin


class ProbabilityClassifierMixin(ExplainMixin, ClassifierMixin):  # type: ignore[misc]
    """What follows from the probabilities of the classes: a class gives `predict_proba` and `classes_`."""

    classes_: NDArray[Any]

    @abstractmethod
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class, in the order of `classes_`: (N, C), rows sum to 1."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row: (N,)."""
        probabilities = self.predict_proba(X)
        chosen: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return chosen

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Log probability of each class: (N, C), finite."""
        return np.log(self.predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy: the share of rows whose label is predicted; grades may be numbers such as 1.5."""
        from sklearn.metrics import accuracy_score  # loads a tenth of scikit-learn

        predicted, labels = self.predict(X), y
        if self.classes_.dtype.kind in "iuf":
            if pd.isna(np.asarray(y)).any():
                raise InputError("y contains NaN or None; leave out the rows without a label.")
            place = pd.Index(self.classes_).get_indexer
            predicted, labels = place(predicted), place(_as_numbers(np.ravel(np.asarray(y))))
        return float(accuracy_score(labels, predicted, sample_weight=sample_weight))


def _as_numbers(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels (N,) as numbers, NaN for those that are none."""
    if labels.dtype.kind in "iuf":
        return labels
    return np.asarray(pd.to_numeric(pd.Series(labels, dtype=object), errors="coerce"), dtype=np.float64)

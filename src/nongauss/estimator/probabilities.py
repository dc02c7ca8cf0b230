"""What every classifier does with the probabilities of its classes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

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
        predicted, labels = self.predict(X), y
        if self.classes_.dtype.kind == "f" and np.mod(self.classes_, 1.0).any():
            place = pd.Index(self.classes_).get_indexer
            predicted, labels = place(predicted), place(np.ravel(np.asarray(y, dtype=np.float64)))
        return float(accuracy_score(labels, predicted, sample_weight=sample_weight))

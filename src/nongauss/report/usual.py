"""Pieces of the usual models: a table as scikit-learn takes it, folds, regressors that need a little more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone

from nongauss.report.residual_law import FloatArray
from nongauss.tables.frame import n_rows_of
from nongauss.tables.learn import as_source, learn

_MOST_ROWS_FOR_FOLDS = 20_000
_MOST_TREE_LABELS = 250


class TableColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The columns of any table as scikit-learn's models take them, decoded as the house decodes them.

    `view`: "scaled" for standardised numbers, 0/1 columns of labels and of gaps; "trees" for numbers as they
    are with NaN for gaps, and labels as codes; "none" for no column at all; "given" for the table as it is.
    """

    def __init__(self, view: str = "scaled") -> None:
        self.view = view

    def fit(self, X: Any, y: Any = None) -> TableColumns:
        """Learn kinds, scales and levels."""
        seen = self.view in ("scaled", "trees")
        self.encoder_ = learn(as_source(X), warn=False).encoder if seen else None
        return self

    def transform(self, X: Any) -> Any:
        """The matrix (N, D)."""
        if self.encoder_ is None:
            return X if self.view == "given" else np.zeros((n_rows_of(X), 1))
        if self.view == "scaled":
            return self.encoder_.as_scaled(X, warn=False)
        used = [i for i, code in enumerate(self.encoder_.columns) if code.role in ("numeric", "labels")]
        out = np.full(
            (n_rows_of(X), len(used) + 1), 0.0
        )  # a last column of zeros: never a table without columns
        for place, column in enumerate(self.encoder_.raw(X, warn=False, only=used)):
            cells = (
                column.values if column.codes is None else np.where(column.codes < 0, np.nan, column.codes)
            )
            out[:, place] = cells
        return out

    @property
    def is_label(self) -> list[bool]:
        """Which columns of the view for trees hold codes without an order, few enough for their splits."""
        if self.encoder_ is None:
            return [False]
        used = [code for code in self.encoder_.columns if code.role in ("numeric", "labels")]
        labels = [c.role == "labels" and not c.ranks and len(c.levels) <= _MOST_TREE_LABELS for c in used]
        return [*labels, False]


def inner_folds(n: int, n_folds: int) -> list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Rows to fit and rows left out: folds of a small table, one fifth of a large one."""
    order = np.random.default_rng(0).permutation(n)
    parts = np.array_split(order, max(2, min(n_folds, n)))
    kept = parts[:1] if n > _MOST_ROWS_FOR_FOLDS else parts
    return [(np.setdiff1d(order, part), np.sort(part)) for part in kept]


class LogScale(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor of log y; its prediction exp(f) is multiplied by the mean of y / exp(f) (Duan 1983)."""

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    def fit(self, X: FloatArray, y: FloatArray) -> LogScale:
        """Fit to log y."""
        z = np.log(y)
        self.regressor_ = clone(self.regressor).fit(X, z)
        self.range_ = float(z.min() - np.ptp(z) - 1.0), float(z.max() + np.ptp(z) + 1.0)
        self.factor_ = 1.0
        self.factor_ = float(y.sum() / self.predict(X).sum())
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """The expectation of y: (N,), not farther out than the range of log y is wide."""
        out: FloatArray = self.factor_ * np.exp(np.clip(self.regressor_.predict(X), *self.range_))
        return out


class PenalisedPoisson(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Poisson regression with a log link, its ridge penalty picked on a fifth of the rows."""

    def __init__(self, alphas: Sequence[float] = (1e-4, 1e-2, 1e-1, 1.0, 10.0)) -> None:
        self.alphas = alphas

    def fit(self, X: FloatArray, y: FloatArray, sample_weight: Any = None) -> PenalisedPoisson:
        """Pick the penalty, then fit to all rows."""
        from sklearn.linear_model import PoissonRegressor

        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if not y.any():
            self.model_, self.most_ = None, 0.0
            return self
        train, test = inner_folds(len(y), 5)[0]
        scores = []
        for alpha in self.alphas:
            model = PoissonRegressor(alpha=alpha, max_iter=300)
            chance = -np.inf
            if y[train].any():
                m = np.maximum(model.fit(X[train], y[train], weight[train]).predict(X[test]), 1e-12)
                chance = float((weight[test] * (y[test] * np.log(m) - m)).sum())
            scores.append(chance)
        best = self.alphas[int(np.argmax(scores))]
        self.model_ = PoissonRegressor(alpha=best, max_iter=1000).fit(X, y, weight)
        self.most_ = 10.0 * float(y.max())
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """The expected count: (N,), at most ten times the largest that was seen."""
        if self.model_ is None:
            return np.full(len(X), 1e-3)
        out: FloatArray = np.minimum(self.model_.predict(X), self.most_)
        return out

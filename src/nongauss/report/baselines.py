"""The models that ours must beat: scikit-learn's usual ones, for any table, each with an honest law."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    clone,
    is_classifier,
)
from sklearn.exceptions import ConvergenceWarning

from nongauss.core.errors import InputError
from nongauss.report.residual_law import (
    SCALES,
    AtomRows,
    FloatArray,
    Law,
    LawRows,
    best_law,
    candidates,
    scales_for,
)
from nongauss.report.usual import LogScale, PenalisedPoisson, TableColumns, inner_folds
from nongauss.tables.frame import take_rows

_FOLDS = 5
_TREE_FOLDS = 3
_FEWEST_FOR_LAW = 4
_FOREST_LEAF = 3
_MOST_ROWS_TO_CHOOSE = 1_000
_FEWEST_OF_CLASS = 10

#: Names of the baselines, as tables and sentences have them.
MEAN, SHARES, RIDGE, LOG_LINEAR, LOGISTIC = (
    "mean of the target",
    "class shares",
    "ridge regression",
    "log-linear regression",
    "logistic regression",
)
TREES, FOREST, NETWORK = "gradient-boosted trees", "random forest", "neural network"


def baselines(
    *,
    classify: bool = False,
    counts: bool = False,
    atoms: Sequence[float] = (),
    reach: tuple[float, float] | None = None,
    random_state: int | None = 0,
) -> dict[str, BaseEstimator]:
    """The usual models by name, from the one that looks at no column to boosted trees and a neural network.

    Regressors: the mean, ridge regression (of `counts` log-linear, Poisson regression), boosted trees, a
    random forest, a neural network; each predicts a distribution, the law of what its out-of-fold predictions
    missed (`residual_law`). `atoms` are single values that the target takes with a probability of their own,
    such as no claim at all; a classifier of the same sort predicts which of them, if any. `reach` are the
    lowest and the highest value that they are judged by, where that is known: a law of positive numbers has
    no mass below 0 if these are positive. Classifiers: the
    class shares, logistic regression, trees, forest, network, each sharpened or flattened by one factor that
    its out-of-fold probabilities call for.

    Columns are read as the house reads them. Settings are scikit-learn's own, but that the penalties of the
    linear regressions are picked on left-out rows, that boosted trees stop early, that leaves of a forest
    hold three rows, and that iterations suffice.
    """
    return _classifiers(random_state) if classify else _regressors(counts, tuple(atoms), reach, random_state)


def _regressors(
    counts: bool, atoms: tuple[float, ...], reach: tuple[float, float] | None, seed: int | None
) -> dict[str, BaseEstimator]:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.neural_network import MLPRegressor
    from sklearn.preprocessing import StandardScaler

    ridge = RidgeCV(alphas=np.logspace(-3, 5, 25))
    ways = {"identity": ridge, "log": LogScale(ridge), "logit": ridge}
    linear = {"counts": PenalisedPoisson()} if counts else ways
    trees = HistGradientBoostingRegressor(early_stopping=True, random_state=seed)
    poisson = clone(trees).set_params(loss="poisson")
    gamma = clone(trees).set_params(loss="gamma")
    tree_ways = {"counts": poisson} if counts else {"identity": trees, "log": gamma, "logit": trees}
    scaled = TransformedTargetRegressor(
        MLPRegressor(max_iter=1000, random_state=seed), transformer=StandardScaler()
    )
    network = dict.fromkeys(linear, scaled)
    forest = dict.fromkeys(linear, RandomForestRegressor(min_samples_leaf=_FOREST_LEAF, random_state=seed))
    classifiers = _classifiers(seed)
    how: dict[str, Any] = {"counts": counts, "atoms": atoms, "reach": reach}
    mean = dict.fromkeys(linear, DummyRegressor())
    return {
        MEAN: LawRegressor(mean, DummyClassifier(strategy="prior"), view="none", **how),
        LOG_LINEAR if counts else RIDGE: LawRegressor(linear, classifiers[LOGISTIC].classifier, **how),
        TREES: LawRegressor(
            tree_ways, classifiers[TREES].classifier, view="trees", n_folds=_TREE_FOLDS, **how
        ),
        FOREST: LawRegressor(
            forest, classifiers[FOREST].classifier, view="trees", n_folds=_TREE_FOLDS, **how
        ),
        NETWORK: LawRegressor(network, classifiers[NETWORK].classifier, **how),
    }


def _classifiers(seed: int | None) -> dict[str, Any]:
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    return {
        SHARES: TemperedClassifier(DummyClassifier(strategy="prior"), view="none"),
        LOGISTIC: TemperedClassifier(LogisticRegression(max_iter=1000)),
        TREES: TemperedClassifier(
            HistGradientBoostingClassifier(early_stopping=True, random_state=seed),
            view="trees",
            n_folds=_TREE_FOLDS,
        ),
        FOREST: TemperedClassifier(
            RandomForestClassifier(min_samples_leaf=_FOREST_LEAF, random_state=seed),
            view="trees",
            n_folds=_TREE_FOLDS,
        ),
        NETWORK: TemperedClassifier(MLPClassifier(max_iter=1000, random_state=seed)),
    }


def _ready(model: Any, columns: TableColumns, y: Any) -> Any:
    """A clone of a model, told which columns hold labels; it stops early only where each class allows it."""
    copy = clone(model)
    known = copy.get_params(deep=False)
    if columns.view == "trees" and "categorical_features" in known:
        copy.set_params(categorical_features=columns.is_label)
    if "early_stopping" in known and is_classifier(copy):
        counts = np.unique(np.asarray(y), return_counts=True)[1]
        # A tenth of the rows is set apart, which is to hold every class.
        copy.set_params(early_stopping=bool(known["early_stopping"] and counts.min() >= _FEWEST_OF_CLASS))
    return copy


def _fitted(model: Any, columns: TableColumns, matrix: Any, y: Any, weight: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        beside = {} if weight is None else {"sample_weight": weight}
        return _ready(model, columns, y).fit(matrix, y, **beside)


class LawRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Usual regressors and the law of what their out-of-fold predictions missed.

    Parameters
    ----------
    ways : regressors by the scale on which their residuals are taken ("identity", "log", "logit", or
        "counts"); those whose scale suits the target compete, by the log probability of rows that they were
        not fitted to.
    classifier : of the same sort, for `atoms`, values that have a probability of their own.
    view : how columns become a matrix, see `TableColumns`. counts : the target counts something.
    reach : the lowest and the highest value that the law is asked for, if known; see `baselines`.

    `fit` takes `exposure` (N,), the time or size that each count is of: then the rate is predicted, and the
    count is the rate times the exposure.
    """

    def __init__(
        self,
        ways: Mapping[str, Any],
        classifier: Any = None,
        *,
        view: str = "scaled",
        counts: bool = False,
        atoms: Sequence[float] = (),
        reach: tuple[float, float] | None = None,
        n_folds: int = _FOLDS,
    ) -> None:
        self.ways, self.classifier, self.view = ways, classifier, view
        self.counts, self.atoms, self.reach, self.n_folds = counts, atoms, reach, n_folds

    def fit(self, X: Any, y: Any, exposure: Any = None) -> LawRegressor:
        """Fit the regressors, choose among them, and learn the law of their residuals."""
        target = np.asarray(y, dtype=np.float64)
        self.columns_ = TableColumns(self.view).fit(X)
        matrix = self.columns_.transform(X)
        self.atoms_ = np.asarray(sorted(self.atoms), dtype=np.float64)
        which = (target[:, None] == self.atoms_) @ np.arange(1, len(self.atoms_) + 1)
        rest = which == 0
        if rest.sum() < _FEWEST_FOR_LAW:
            raise InputError(
                f"{int(rest.sum())} values other than {list(self.atoms)} are too few for a law of them."
            )
        self.which_ = _fitted(self.classifier, self.columns_, matrix, which) if not rest.all() else None
        weight = None if exposure is None else np.asarray(exposure, dtype=np.float64)[rest]
        self._fit_rest(take_rows(matrix, rest), target[rest], weight)
        return self

    def _fit_rest(self, matrix: Any, y: FloatArray, exposure: FloatArray | None) -> None:
        """The regressor and its law, of rows whose target is none of the atoms."""
        scales = ("counts",) if self.counts else scales_for(y)
        ways = {scale: self.ways[scale] for scale in scales if scale in self.ways}
        some = np.sort(np.random.default_rng(0).permutation(len(y))[:_MOST_ROWS_TO_CHOOSE])
        if len(ways) > 1:
            share = None if exposure is None else exposure[some]
            tried = {s: self._law(s, way, take_rows(matrix, some), y[some], share) for s, way in ways.items()}
            self.scale_ = max(tried, key=lambda scale: tried[scale][1])
            self.law_ = tried[self.scale_][0]
        else:
            (self.scale_,) = ways
        way = ways[self.scale_]
        if len(ways) == 1 or len(some) < len(y):
            self.law_, _ = self._law(self.scale_, way, matrix, y, exposure)
        self.regressor_ = self._regressor(way, matrix, y, exposure)

    def _regressor(self, way: Any, matrix: Any, y: FloatArray, exposure: FloatArray | None) -> Any:
        rate = y if exposure is None else y / exposure
        return _fitted(way, self.columns_, matrix, rate, exposure)

    def _law(
        self, scale: str, way: Any, matrix: Any, y: FloatArray, exposure: FloatArray | None
    ) -> tuple[Law, float]:
        """The law of the out-of-fold predictions, and its log probability of rows it was not fitted to."""
        seen, predicted = [], []
        for train, test in inner_folds(len(y), self.n_folds):
            shares = [None, None] if exposure is None else [exposure[train], exposure[test]]
            model = self._regressor(way, take_rows(matrix, train), y[train], shares[0])
            seen.append(y[test])
            predicted.append(
                np.asarray(model.predict(take_rows(matrix, test))).ravel()
                * (1.0 if shares[1] is None else shares[1])
            )
        bounded = len(self.atoms_) > 0
        if self.reach is not None and scale in SCALES:
            bounded |= bool(SCALES[scale].holds(np.asarray(self.reach)).all())
        options = candidates((scale,), self.counts, bounded=bounded)
        return best_law(options, np.concatenate(seen), np.concatenate(predicted))

    def predict_distribution(self, X: Any, exposure: Any = None) -> LawRows | AtomRows:
        """The predictive distribution of each row."""
        matrix = self.columns_.transform(X)
        mean = np.asarray(self.regressor_.predict(matrix), dtype=np.float64).ravel()
        rows = LawRows(self.law_, mean if exposure is None else mean * np.asarray(exposure, dtype=np.float64))
        if self.which_ is None:
            return rows
        chance = np.zeros((len(mean), len(self.atoms_) + 1))
        # Class 0, none of the atoms, has the last place, which is number -1.
        p = np.maximum(self.which_.predict_proba(matrix), 1e-12)
        chance[:, self.which_.classes_.astype(np.intp) - 1] = p / p.sum(axis=1, keepdims=True)
        return AtomRows(self.atoms_, chance, rows)

    def predict(self, X: Any, exposure: Any = None) -> FloatArray:
        """The expectation of each row: (N,)."""
        return self.predict_distribution(X, exposure).mean


class TemperedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A usual classifier whose probabilities are p^(1/T), renormalised, T what out-of-fold rows call for.

    `view`: how columns become a matrix, see `TableColumns`.
    """

    def __init__(self, classifier: Any, *, view: str = "scaled", n_folds: int = _FOLDS) -> None:
        self.classifier, self.view, self.n_folds = classifier, view, n_folds

    def fit(self, X: Any, y: Any) -> TemperedClassifier:
        """Fit the classifier and its temperature."""
        # The classifier gets numbers of classes: scikit-learn's take no grades such as 1.5 as labels.
        self.classes_, number = np.unique(np.asarray(y), return_inverse=True)
        self.columns_ = TableColumns(self.view).fit(X)
        matrix = self.columns_.transform(X)
        self.classifier_ = _fitted(self.classifier, self.columns_, matrix, number)
        self.temperature_ = 1.0 if self.view == "none" else self._temperature(matrix, number)
        return self

    def _temperature(self, matrix: Any, number: npt.NDArray[np.intp]) -> float:
        """The T under which the classes of rows left out are most likely."""
        logs, places = [], []
        for train, test in inner_folds(len(number), self.n_folds):
            if len(np.unique(number[train])) < len(self.classes_):
                continue
            model = _fitted(self.classifier, self.columns_, take_rows(matrix, train), number[train])
            logs.append(np.log(np.maximum(model.predict_proba(take_rows(matrix, test)), 1e-12)))
            places.append(number[test])
        if not logs:
            return 1.0
        log_p, place = np.concatenate(logs), np.concatenate(places)

        def loss(log_t: float) -> float:
            p = _tempered(log_p, float(np.exp(log_t)))
            return -float(np.log(p[np.arange(len(place)), place]).mean())

        return float(np.exp(minimize_scalar(loss, bounds=(-2.0, 3.0), method="bounded").x))

    def predict_proba(self, X: Any) -> FloatArray:
        """The probability of each class: (N, C)."""
        p = self.classifier_.predict_proba(self.columns_.transform(X))
        return p if self.temperature_ == 1.0 else _tempered(np.log(np.maximum(p, 1e-12)), self.temperature_)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class: (N,)."""
        labels: npt.NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels


def _tempered(log_p: FloatArray, temperature: float) -> FloatArray:
    """p^(1/T) / sum p^(1/T), from log p (N, C)."""
    out: FloatArray = softmax(log_p / temperature, axis=1)
    return out

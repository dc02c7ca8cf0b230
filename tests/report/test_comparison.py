from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import LinearSVC

from nongauss.core.errors import InputError
from nongauss.report.baselines import MEAN, LawRegressor, baselines
from nongauss.report.comparison import compare, comparison_text
from nongauss.report.scoring import fit_timed, score, with_law
from report.stand_in import Broken, StandIn, small_data


class Point(StandIn):
    """Predicts no distribution, and badly."""

    predict_distribution = property()

    def predict(self, X):
        return np.zeros(len(X))


def test_table_is_sorted_and_a_failure_keeps_its_reason():
    X, y = small_data()
    seen = []
    table = compare(
        {"broken": Broken(), "point": Point(), "good": StandIn()}, X, y, cv=3,
        progress=lambda *state: seen.append(state),
    )  # fmt: skip
    assert list(table.index) == ["good", "point", "broken"]
    assert table.attrs["sorted_by"] == "log_density"
    assert table.loc["broken", "reason"] == "fold 1: RuntimeError: no luck"
    assert table.loc["broken", ["rmse", "log_density", "seconds"]].isna().all()
    assert list(table["density"]) == ["own", "residuals", "own"]
    assert table.loc["good", "rmse"] == pytest.approx(0.3, rel=0.2)
    assert 0.8 < table.loc["good", "coverage_90"] <= 1
    assert seen[-1] == (9, 9, "")
    text = comparison_text(table)
    assert "broken failed: fold 1: RuntimeError: no luck" in text
    assert "Best first by log density" in text


def test_distances_from_the_best_are_taken_row_by_row():
    X, y = small_data(60)
    y = y + 20.0  # above 0 in either fold
    models = {"good": LawRegressor({"identity": LinearRegression()}), "blind": baselines()[MEAN]}
    table = compare(models, X, y, cv=2)
    assert table.loc["good", ["log_score_behind", "crps_behind", "crps_behind_se"]].tolist() == [0, 0, 0]
    logs, crps = {}, {}
    for name, model in models.items():
        for train, test in KFold(2, shuffle=True, random_state=0).split(X):
            law = clone(model).fit(X[train], y[train]).predict_distribution(X[test])
            logs.setdefault(name, []).append(law.log_prob(y[test]))
            crps.setdefault(name, []).append(law.crps(y[test]))
    for found, figure, sign in ((logs, "log_score_behind", 1), (crps, "crps_behind", -1)):
        gap = sign * (np.concatenate(found["good"]) - np.concatenate(found["blind"]))
        assert table.loc["blind", figure] == pytest.approx(gap.mean())
        error = np.sqrt(1.25) * gap.std(ddof=1) / np.sqrt(60)
        assert table.loc["blind", f"{figure}_se"] == pytest.approx(error)
    assert "nats behind" in comparison_text(table)
    assert table.loc["good", "crps"] < table.loc["blind", "crps"]
    assert table.loc["good", "interval_score_90"] < table.loc["blind", "interval_score_90"]


def test_standard_error_is_over_folds():
    X, y = small_data(60)
    table = compare({"a": StandIn()}, X, y, cv=3, random_state=1)
    errors = []
    for train, test in KFold(3, shuffle=True, random_state=1).split(X):
        errors.append(score(StandIn().fit(X[train], y[train]), X[test], y[test]).figures()["rmse"])
    assert table.loc["a", "rmse"] == pytest.approx(np.mean(errors))
    assert table.loc["a", "rmse_se"] == pytest.approx(np.std(errors, ddof=1) / np.sqrt(3))


def test_the_density_of_a_point_prediction_knows_only_the_training_rows():
    X, y = small_data(400)
    model, _ = fit_timed(with_law(LinearRegression()), X[:200], y[:200])
    figures = score(model, X[200:], y[200:]).figures()
    # Noise sd 0.3: the expected log density of the true normal is -log(0.3) - log(2 pi e) / 2.
    assert figures["log_density"] == pytest.approx(-np.log(0.3) - 0.5 * np.log(2 * np.pi * np.e), abs=0.1)
    assert figures["width_90"] == pytest.approx(2 * 1.645 * 0.3, rel=0.12)
    shifted = score(model, X[200:], y[200:] + 5).figures()
    assert shifted["width_90"] == figures["width_90"]


def test_bad_input():
    X, y = small_data(8)
    with pytest.raises(InputError, match="5 folds need at least 10 rows, got 8"):
        compare({"a": StandIn()}, X, y)
    with pytest.raises(InputError, match="empty"):
        compare({}, X, y)
    with pytest.raises(InputError, match="one target"):
        compare({"a": StandIn()}, X, np.stack([y, y], axis=1))
    with pytest.raises(InputError, match="at least 2"):
        compare({"a": StandIn()}, X, y, cv=1)
    with pytest.raises(InputError, match="mixes classifiers and regressors"):
        compare({"a": StandIn(), "b": LogisticRegression()}, X, y, cv=2)
    with pytest.raises(InputError, match="a class with at least 3 rows"):
        compare({"a": LogisticRegression()}, X, [0, 1, 2, 3, 0, 1, 2, 3], cv=3)


def graded(n=90):
    X, y = small_data(n)
    return X, np.array(["low", "mid", "high"])[np.digitize(y, [1.5, 4.0])]


@pytest.mark.parametrize("form", [list, np.array, pd.Series, lambda y: pd.Series(y, dtype="category")])
def test_classifiers_are_sorted_by_log_loss_on_stratified_folds(form):
    X, y = graded()
    models = {"shares": DummyClassifier(strategy="prior"), "svm": LinearSVC(), "good": LogisticRegression()}
    table = compare(models, X, form(y), cv=3, random_state=2)
    assert list(table.index) == ["good", "shares", "svm"]
    assert table.attrs["sorted_by"] == "log_loss"
    assert "no attribute 'predict_proba'" in table.loc["svm", "reason"]
    losses = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=2).split(X, y):
        model = LogisticRegression().fit(X[train], y[train])
        losses.append(log_loss(y[test], model.predict_proba(X[test])))
    assert table.loc["good", "log_loss"] == pytest.approx(np.mean(losses))
    shown = [name for name in table.columns if not name.endswith("_se")]
    figures = ["log_loss", "accuracy", "balanced_accuracy", "brier", "log_score_behind", "seconds"]
    assert shown == [*figures, "reason"]
    text = comparison_text(table)
    assert "Best first by log loss" in text
    assert "residuals" not in text


def test_levels_add_the_error_in_levels():
    X, y = graded()
    levels = ["low", "mid", "high"]
    table = compare({"shares": DummyClassifier(strategy="prior")}, X, y, cv=3, levels=levels)
    steps = np.abs(pd.Index(levels).get_indexer(y) - levels.index(max(levels, key=list(y).count)))
    assert table.loc["shares", "level_error"] == pytest.approx(steps.mean(), rel=0.05)
    assert "level error" in comparison_text(table)

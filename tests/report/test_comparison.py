from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from nongauss.core.contracts import InputError
from nongauss.report.comparison import baselines, compare, comparison_text, fit_and_score
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
    assert list(table["density"]) == ["own", "residual Gaussian", "own"]
    assert table.loc["good", "rmse"] == pytest.approx(0.3, rel=0.2)
    assert 0.8 < table.loc["good", "coverage_90"] <= 1
    assert seen[-1] == (9, 9, "")
    text = comparison_text(table)
    assert "broken failed: fold 1: RuntimeError: no luck" in text
    assert "Best first by log density" in text


def test_standard_error_is_over_folds():
    X, y = small_data(60)
    table = compare({"a": StandIn()}, X, y, cv=3, random_state=1)
    from sklearn.model_selection import KFold

    errors = []
    for train, test in KFold(3, shuffle=True, random_state=1).split(X):
        errors.append(fit_and_score(StandIn(), X[train], y[train], X[test], y[test])[1]["rmse"])
    assert table.loc["a", "rmse"] == pytest.approx(np.mean(errors))
    assert table.loc["a", "rmse_se"] == pytest.approx(np.std(errors, ddof=1) / np.sqrt(3))


def test_the_density_of_a_point_prediction_knows_only_the_training_rows():
    X, y = small_data(400)
    _, figures = fit_and_score(LinearRegression(), X[:200], y[:200], X[200:], y[200:])
    # Noise sd 0.3: the expected log density of the true normal is -log(0.3) - log(2 pi e) / 2.
    assert figures["log_density"] == pytest.approx(-np.log(0.3) - 0.5 * np.log(2 * np.pi * np.e), abs=0.1)
    assert figures["width_90"] == pytest.approx(2 * 1.645 * 0.3, rel=0.12)
    _, shifted = fit_and_score(LinearRegression(), X[:200], y[:200], X[200:], y[200:] + 5)
    assert shifted["width_90"] == figures["width_90"]


def test_baselines_take_labels_gaps_and_new_labels():
    rng = np.random.RandomState(0)
    n = 80
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "colour": rng.choice(["red", "blue"], size=n),
            "grade": pd.Categorical(rng.choice([1, 2, 3], size=n)),
            "yes": rng.rand(n) < 0.5,
            "whole": pd.array(rng.randint(0, 9, size=n), dtype="Int64"),
            "empty": np.nan,
            "day": pd.Timestamp("2026-01-01"),
        }
    )
    frame.loc[3, "x"] = np.nan
    frame.loc[[4, 5], "colour"] = None
    frame.loc[6, "whole"] = pd.NA
    y = np.where(frame["colour"] == "red", 3.0, 0.0) + frame["yes"] + 0.1 * rng.normal(size=n)
    frame.loc[n - 1, "colour"] = "green"  # unseen in the fit
    models = baselines(frame)
    models["neural network"].regressor[-1].set_params(max_iter=200)
    models["gradient-boosted trees"][-1].set_params(max_iter=20, min_samples_leaf=5)
    for name, model in models.items():
        prediction = model.fit(frame[: n // 2], y[: n // 2]).predict(frame[n // 2 :])
        assert np.mean((prediction - y[n // 2 :]) ** 2) < 0.5 * np.var(y), name


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

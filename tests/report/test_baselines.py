from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nongauss.report.baselines import baselines


@pytest.fixture(scope="module")
def table():
    """Labels, gaps, an empty column, a date, and in the last row a label that the first half lacks."""
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
    frame.loc[n - 1, "colour"] = "green"
    return frame, y, n // 2


def test_regressors_take_labels_gaps_and_new_labels(table):
    frame, y, half = table
    models = baselines(frame)
    models["neural network"].regressor[-1].set_params(max_iter=200)
    models["gradient-boosted trees"][-1].set_params(max_iter=20, min_samples_leaf=5)
    for name, model in models.items():
        prediction = model.fit(frame[:half], y[:half]).predict(frame[half:])
        assert np.mean((prediction - y[half:]) ** 2) < 0.5 * np.var(y), name


def test_classifiers_take_labels_gaps_and_new_labels(table):
    frame, y, half = table
    label = np.array(["low", "mid", "high"])[np.digitize(y, [0.5, 2.0])]
    models = baselines(frame, classify=True)
    models["gradient-boosted trees"][-1].set_params(max_iter=20, min_samples_leaf=5)
    shares = models.pop("class shares").fit(frame[:half], label[:half])
    np.testing.assert_allclose(
        shares.predict_proba(frame[half:])[0], [np.mean(label[:half] == name) for name in shares.classes_]
    )
    for name, model in models.items():
        model.fit(frame[:half], label[:half])
        assert np.mean(model.predict(frame[half:]) == label[half:]) > 0.8, name
        assert model.predict_proba(frame[half:]).shape == (half, 3)

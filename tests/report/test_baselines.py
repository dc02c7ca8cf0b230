from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import lognorm, poisson
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from nongauss.report.baselines import TemperedClassifier, baselines
from nongauss.report.judgement import JudgedRows, scored, usual_models


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


def quick(models):
    """The same with fewer iterations and smaller leaves, for few rows."""
    for name in ("gradient-boosted trees", "random forest", "neural network"):
        model = models[name]
        inner = [model.classifier, *getattr(model, "ways", {}).values()]
        for part in inner:
            known = part.get_params()
            wanted = {"max_iter": 20, "min_samples_leaf": 5} if name.startswith("gradient") else {}
            if "n_estimators" in known:
                wanted = {"n_estimators": 10}
            if "regressor__max_iter" in known:
                wanted = {"regressor__max_iter": 200}
            part.set_params(**wanted)
    return models


def test_regressors_take_labels_gaps_and_new_labels(table):
    frame, y, half = table
    for name, model in quick(baselines()).items():
        law = model.fit(frame[:half], y[:half]).predict_distribution(frame[half:])
        share = np.mean((law.mean - y[half:]) ** 2) / np.var(y)
        assert share < 0.5 or (name == "mean of the target" and share == pytest.approx(1, abs=0.1)), name
        lower, upper = law.interval(0.9).T
        assert 0.75 < np.mean((lower <= y[half:]) & (y[half:] <= upper)) <= 1, name


def test_classifiers_take_labels_gaps_and_new_labels(table):
    frame, y, half = table
    label = np.array(["low", "mid", "high"])[np.digitize(y, [0.5, 2.0])]
    models = quick(baselines(classify=True))
    shares = models.pop("class shares").fit(frame[:half], label[:half])
    np.testing.assert_allclose(
        shares.predict_proba(frame[half:])[0], [np.mean(label[:half] == name) for name in shares.classes_]
    )
    for name, model in models.items():
        model.fit(frame[:half], label[:half])
        assert np.mean(model.predict(frame[half:]) == label[half:]) > 0.8, name
        p = model.predict_proba(frame[half:])
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert p.shape == (half, 3)


def test_labels_with_fractions_are_as_good_as_text():
    x = np.random.RandomState(0).rand(60, 1)
    grade = np.round(2 * (1 + 2 * x[:, 0])) / 2
    models = [
        TemperedClassifier(LogisticRegression()).fit(x, y) for y in (grade, np.array([f"{g}" for g in grade]))
    ]
    np.testing.assert_array_equal(models[0].classes_, np.unique(grade))
    np.testing.assert_array_equal(*(model.predict_proba(x) for model in models))
    np.testing.assert_array_equal(models[0].predict(x), models[1].predict(x).astype(float))


def test_probabilities_that_are_too_sure_are_flattened():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(300, 40))
    label = (X[:, 0] + 2 * rng.normal(size=300) > 0).astype(int)
    loose = LogisticRegression(C=1e6, max_iter=2000)
    tempered = TemperedClassifier(loose).fit(X[:150], label[:150])
    assert tempered.temperature_ > 1.5
    plain = log_loss(label[150:], loose.fit(X[:150], label[:150]).predict_proba(X[150:]))
    assert log_loss(label[150:], tempered.predict_proba(X[150:])) < plain


def test_counts_zeros_and_exposure_have_laws_of_their_own():
    rng = np.random.RandomState(1)
    X, time = rng.normal(size=(1500, 2)), rng.uniform(0.2, 5.0, size=1500)
    mean = time * np.exp(0.7 * X[:, 0])
    y = rng.poisson(mean).astype(float)
    model = baselines(counts=True)["log-linear regression"].fit(X[:500], y[:500], exposure=time[:500])
    found = model.predict_distribution(X[500:], exposure=time[500:]).log_prob(y[500:])
    assert found.mean() == pytest.approx(poisson.logpmf(y, mean)[500:].mean(), abs=0.02)
    claims = np.where(rng.random(1500) < 0.9, 0.0, np.exp(1 + X[:, 0] + 0.5 * rng.normal(size=1500)))
    with np.errstate(divide="ignore"):
        truth = np.where(
            claims > 0, np.log(0.1) + lognorm.logpdf(claims, 0.5, scale=np.exp(1 + X[:, 0])), np.log(0.9)
        )
    models = baselines(atoms=(0.0,))
    fitted = {
        name: models[name].fit(X[:500], claims[:500]) for name in ("mean of the target", "ridge regression")
    }
    scores = {n: m.predict_distribution(X[500:]).log_prob(claims[500:]).mean() for n, m in fitted.items()}
    assert scores["ridge regression"] == pytest.approx(truth[500:].mean(), abs=0.03)
    assert scores["mean of the target"] < scores["ridge regression"] - 0.03
    assert fitted["ridge regression"].predict(X[500:]).mean() == pytest.approx(claims.mean(), rel=0.3)


def test_a_law_of_positive_numbers_has_no_mass_below_0_where_none_is_judged():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 1))
    y = np.exp(x[:, 0] + 0.5 * rng.normal(size=40))
    below = {}
    for reach in (None, (0.1, 9.0), (0.0, 9.0)):
        law = baselines(reach=reach)["ridge regression"].fit(x, y)
        assert law.scale_ == "log"
        below[reach] = law.predict_distribution(x).cdf(0.0)
    assert (below[None] > 0.001).all()
    assert (below[0.0, 9.0] == below[None]).all()
    assert (below[0.1, 9.0] == 0.0).all()


def test_a_judgement_bounds_the_laws_of_its_rivals_by_the_rows_it_is_made_on():
    x = np.linspace(-1.0, 1.0, 60)[:, None]
    y = np.exp(x[:, 0] + np.sin(40.0 * x[:, 0]))
    own = baselines()["ridge regression"].fit(x, y)
    for low, bounded in ((0.5, True), (-0.5, False)):
        rows = JudgedRows(x[:9], np.linspace(low, 3.0, 9))
        rivals, _ = usual_models(own, scored(own, rows), JudgedRows(x, y), seed=0)
        law = rivals["ridge regression"].fit(x, y)
        assert law.scale_ == "log"
        assert (law.predict_distribution(x).cdf(0.0) == 0.0).all() == bounded

"""What every estimator says of rows with gaps: honest, of one mind, and of its row alone."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import nongauss
from catalogue import CATALOGUE
from nongauss import SparseGPRegressor, TGGMRegressor
from nongauss.core.errors import NongaussWarning
from nongauss.estimator.model_file import manifest_of

REGRESSORS = {
    "tggm": lambda: TGGMRegressor((20,), n_members=2, max_epochs=60, random_state=0),
    "gaussian": lambda: SparseGPRegressor(n_scales=1, random_state=0),
    "student": lambda: SparseGPRegressor("student_t", n_inducing=30, max_iter=60, random_state=0),
}


def table(n, seed, gaps):
    rng = np.random.RandomState(seed)
    X = rng.randn(n, 3)
    y = 2 * X[:, 0] + 0.5 * X[:, 1] + 0.2 * rng.randn(n)
    X[rng.rand(n) < gaps, 0] = np.nan
    return X, y


@pytest.mark.filterwarnings("ignore:Cells are missing")
@pytest.mark.parametrize("gaps", [0.0, 0.25])
@pytest.mark.parametrize("name", REGRESSORS)
def test_intervals_of_rows_with_gaps_hold_what_they_claim(name, gaps):
    model = REGRESSORS[name]().fit(*table(300, 0, gaps))
    X, y = table(600, 1, 0.4)
    law = model.predict_distribution(X)
    alone = model.predict_distribution(X[:40])
    interval = law.interval(0.9)
    held = (y >= interval[:, 0]) & (y <= interval[:, 1])
    gap = np.isnan(X[:, 0])
    assert 0.8 < held[gap].mean() < 0.97
    assert 0.8 < held[~gap].mean() < 1.0
    width = interval[:, 1] - interval[:, 0]
    assert width[gap].mean() > 4 * width[~gap].mean()
    # of one mind, and of their row alone
    assert_allclose(alone.mean, law.mean[:40], rtol=1e-6, atol=1e-8)
    assert_allclose(alone.quantile(0.2), law.quantile(0.2)[:40], rtol=1e-5, atol=1e-6)
    mean, std = model.predict(X, return_std=True)
    assert_allclose(mean, law.mean, rtol=1e-10)
    assert_allclose(std, law.std, rtol=1e-10)
    assert_allclose(model.predict(X), mean, rtol=1e-9)
    assert_allclose(model.log_density(X, y), law.log_prob(y))
    draws = law.sample(4000, 0)
    assert_allclose(draws.mean(axis=1), mean, atol=0.2)
    complete = model.predict_distribution(X[~gap])
    assert_allclose(complete.quantile(0.1), law.quantile(0.1)[~gap], rtol=1e-6, atol=1e-8)


def test_a_row_without_any_cell_has_the_law_of_the_target():
    X, y = table(400, 0, 0.0)
    model = REGRESSORS["gaussian"]().fit(X, y)
    with pytest.warns(NongaussWarning, match="averaged over their possible values"):
        law = model.predict_distribution(np.full((1, 3), np.nan))
    assert law.mean[0] == pytest.approx(y.mean(), abs=0.5)
    assert law.std[0] == pytest.approx(y.std(), rel=0.2)


def test_a_saved_model_completes_rows_as_before(tmp_path):
    model = REGRESSORS["gaussian"]().fit(*table(120, 0, 0.2))
    X, _ = table(30, 1, 0.5)
    X[:3] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = model.predict_interval(X)
        nongauss.save(model, tmp_path / "model")
        assert_array_equal(nongauss.load(tmp_path / "model").predict_interval(X), before)
    assert model.holds_training_rows_


def test_portions_are_completed_too():
    X, y = table(200, 0, 0.3)
    model = TGGMRegressor((10,), n_members=2, random_state=0)
    for _ in range(40):
        model.partial_fit(X[:100], y[:100])
        model.partial_fit(X[100:], y[100:])
    T, t = table(400, 1, 0.5)
    gap = np.isnan(T[:, 0])
    error = (model.predict(T) - t) ** 2
    assert np.sqrt(error[~gap].mean()) < 1.0
    assert np.sqrt(error[gap].mean()) < 2.6


CLASSIFIERS = {
    "tggm": lambda: nongauss.TGGMClassifier((20,), n_members=2, max_epochs=60, random_state=0),
    "gp": lambda: nongauss.SparseGPClassifier(n_inducing=30, max_iter=40, random_state=0),
    "ordinal": lambda: nongauss.SparseGPOrdinalClassifier(n_inducing=30, max_iter=40, random_state=0),
    "ranks": lambda: nongauss.RankFactorClassifier(n_factors=3, max_iter=60, random_state=0),
    "values": lambda: nongauss.RankFactorClassifier(
        n_factors=3, observation="gaussian", inference="predictive", max_iter=60, random_state=0
    ),
    "harmonium": lambda: nongauss.HarmoniumClassifier(8, max_epochs=60, random_state=0),
    "real units": lambda: nongauss.HarmoniumClassifier(8, units="real", max_epochs=60, random_state=0),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes_of_rows_with_gaps_are_as_sure_as_they_may_be(name):
    X, y = table(400, 0, 0.0)
    model = CLASSIFIERS[name]().fit(X, y > 0)
    X, y = table(1500, 1, 0.5)
    gap = np.isnan(X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proba = model.predict_proba(X)
        chosen = model.predict(X)
        alone = model.predict_proba(X[:50])
    assert_allclose(proba.sum(axis=1), 1.0)
    assert_array_equal(chosen, model.classes_[proba.argmax(axis=1)])
    assert_allclose(alone, proba[:50], atol=1e-6)
    p, truth = proba[gap, 1], (y > 0)[gap]
    loss = -np.log(np.where(truth, p, 1 - p)).mean()
    # P(y > 0 | x1) is Phi(.5 x1 / 2.01)
    assert loss < 0.7
    for low, high in ((0.0, 0.4), (0.6, 1.0)):
        here = (p >= low) & (p < high)
        assert truth[here].mean() == pytest.approx(p[here].mean(), abs=0.13)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_a_file_that_keeps_rows_of_the_table_says_so(entry, tmp_path):
    model = entry.make().fit(*entry.data())
    nongauss.save(model, tmp_path / "model")
    told = manifest_of(tmp_path / "model")
    fitted = json.dumps(told)
    keeps = "tables.Donors" in fitted
    parts = (model, *getattr(model, "_models", ()))  # of a mixture of models, these
    assert keeps == any(getattr(part, "_donors", None) is not None for part in parts)
    assert told["holds_training_rows"] or not keeps


def test_a_classifier_of_harmoniums_says_that_its_file_holds_rows(tmp_path):
    X, y = table(120, 0, 0.1)
    model = CLASSIFIERS["harmonium"]()
    assert model.fit(X, y > 0).holds_training_rows_
    nongauss.save(model, tmp_path / "model")
    assert manifest_of(tmp_path / "model")["holds_training_rows"] is True
    assert nongauss.load(tmp_path / "model").holds_training_rows_
    wide = np.random.RandomState(0).rand(60, 101)  # too many columns for donors
    assert not model.fit(wide, wide[:, 0] > 0.5).holds_training_rows_


def labelled(n, seed, gaps):
    """A frame of a label and a number, y = effect(label) + number + N(0, .2^2), gaps in both."""
    rng = np.random.RandomState(seed)
    label, x = rng.choice(["a", "b", "c"], n), rng.randn(n)
    y = np.select([label == "a", label == "b"], [-2.0, 0.0], 2.5) + x + 0.2 * rng.randn(n)
    X = pd.DataFrame({"label": pd.Series(label, dtype=object), "x": x})
    X.loc[rng.rand(n) < gaps, "label"] = None
    X.loc[rng.rand(n) < gaps, "x"] = np.nan
    return X, y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_a_row_without_its_label_has_the_mixture_over_the_labels(gaps):
    model = SparseGPRegressor(n_scales=1, random_state=0).fit(*labelled(240, 0, gaps))
    X, y = labelled(600, 1, 0.3)
    law, gap = model.predict_distribution(X), X.isna()
    interval = law.interval(0.9)
    held = (y >= interval[:, 0]) & (y <= interval[:, 1])
    unlabelled = (gap["label"] & ~gap["x"]).to_numpy()
    assert 0.8 < held[unlabelled].mean() <= 1.0
    # the sd of the three effects, each as probable, and of the noise
    effect = np.sqrt(np.var([-2.0, 0.0, 2.5]) + 0.2**2)
    assert law.std[unlabelled].mean() == pytest.approx(effect, rel=0.15)
    centre = law.mean[unlabelled] - X["x"][unlabelled]
    assert centre.mean() == pytest.approx(0.5 / 3, abs=0.3)


@pytest.mark.filterwarnings("ignore")
def test_a_table_in_parts_is_completed_as_one_in_memory(tmp_path):
    X, y = labelled(150, 0, 0.2)
    for i in range(3):
        X.assign(y=y)[50 * i : 50 * (i + 1)].to_parquet(tmp_path / f"{i}.parquet")
    model = SparseGPRegressor(n_scales=1, n_inducing=20, max_iter=10, random_state=0)
    expected = model.fit(X, y).predict_interval(X[:40])
    found = model.fit(str(tmp_path / "*.parquet"), "y").predict_interval(X[:40])
    assert_allclose(found, expected, atol=1e-9)
    assert model.holds_training_rows_

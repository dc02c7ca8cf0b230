"""Labels: two, many, ordered; and inputs that break other libraries."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nongauss import SparseGPClassifier, SparseGPOrdinalClassifier, compare
from nongauss.core.errors import InputError
from sparse_gp.small import hard_tables

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SMALL = {"n_inducing": 20, "max_iter": 40, "random_state": 0}


def test_several_classes_on_real_data():
    X, y = load_iris(return_X_y=True)
    A, B, a, b = train_test_split(X, y, random_state=1, stratify=y)
    chances = SparseGPClassifier(**SMALL).fit(A, a).predict_proba(B)
    assert log_loss(b, chances) < 0.2
    assert_allclose(chances.sum(axis=1), 1.0, atol=1e-12)


def test_beats_logistic_regression_on_real_data():
    X, y = load_breast_cancer(return_X_y=True)
    A, B, a, b = train_test_split(X, y, random_state=1, stratify=y)
    ours = SparseGPClassifier(**SMALL).fit(A, a)
    plain = make_pipeline(StandardScaler(), LogisticRegression(C=1e6, max_iter=10_000)).fit(A, a)
    assert log_loss(b, ours.predict_proba(B)) < log_loss(b, plain.predict_proba(B))
    assert_allclose(ours.predict_proba(B).sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("expectation", ["quadrature", "piecewise", "monte_carlo"])
def test_ways_of_two_classes_agree(expectation):
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:150, :5]
    exact = SparseGPClassifier(**SMALL).fit(X, y[:150])
    other = SparseGPClassifier(**SMALL, expectation=expectation).fit(X, y[:150])
    assert_allclose(other.predict_proba(X), exact.predict_proba(X), atol=0.05)
    assert abs(other.bound_ - exact.bound_) < 0.02 * 150


@pytest.mark.gate
@pytest.mark.parametrize("expectation", ["one_vs_each", "tilted", "bohning"])
def test_softmax_bounds_lie_below_the_sampled_one(expectation):
    X, y = load_iris(return_X_y=True)
    exact = SparseGPClassifier(**SMALL).fit(X, y)
    other = SparseGPClassifier(**SMALL, expectation=expectation).fit(X, y)
    assert other.bound_ < exact.bound_ + 1.0
    assert other.score(X, y) > 0.9


def test_a_way_that_is_not_there_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match="one_vs_each"):
        SparseGPClassifier(expectation="piecewise").fit(X, y)


def test_32_separable_classes_stay_inside():
    rng = np.random.RandomState(0)
    X = np.concatenate([rng.randn(30, 2) - 20, rng.randn(30, 2) + 20])
    y = np.repeat(["low", "high"], 30)
    model = SparseGPClassifier(**SMALL).fit(X, y)
    chances = model.predict_proba(np.concatenate([X, 100 * X]))
    assert ((chances > 0) & (chances < 1)).all()
    assert model.score(X, y) == 1.0


def test_13_one_class_is_refused_by_name():
    with pytest.raises(ValueError, match="'a'"):
        SparseGPClassifier().fit(np.zeros((4, 1)), ["a"] * 4)


def test_a_rare_class():
    rng = np.random.RandomState(0)
    X = rng.randn(80, 2)
    y = np.where(np.arange(80) < 2, "rare", "usual")
    chances = SparseGPClassifier(**SMALL).fit(X, y).predict_proba(X)
    assert np.isfinite(chances).all()
    assert abs(chances[:, 0].mean() - 2 / 80) < 0.05


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore:.*so far from all other values")  # of 1,000 in one of the tables
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", [SparseGPClassifier, SparseGPOrdinalClassifier])
def test_stress(kind, n_classes):
    for X in hard_tables().values():
        y = np.arange(len(X)) % n_classes
        chances = kind(**SMALL | {"max_iter": 8}).fit(X, y).predict_proba(np.concatenate([X, 1e6 * X]))
        assert ((chances > 0) & (chances < 1)).all()
        assert_allclose(chances.sum(axis=1), 1.0, atol=1e-9)


def grades(n=60):
    rng = np.random.RandomState(0)
    x = rng.uniform(0, 1, (n, 1))
    return x, np.clip(np.round(4 * x[:, 0] + 0.3 * rng.randn(n)), 0, 4).astype(int)


def test_1_2_ordinal_rows_sum_to_one_near_and_far():
    X, y = grades()
    model = SparseGPOrdinalClassifier(**SMALL).fit(X, y)
    for rows in (X, 1e6 * X, -1e6 * X):
        assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0, atol=1e-9)
        assert np.isfinite(model.predict_log_proba(rows)).all()
    assert (np.diff(model.cut_points_) > 0).all()
    assert np.abs(model.predict(X) - y).mean() < 0.6


def test_2_a_middle_level_that_never_occurs():
    X, y = grades()
    levels = pd.Categorical.from_codes(np.where(y == 2, 1, y), ["e", "d", "c", "b", "a"], ordered=True)
    model = SparseGPOrdinalClassifier(**SMALL).fit(X, levels)
    assert_array_equal(model.classes_, ["e", "d", "c", "b", "a"])
    chances = model.predict_proba(X)
    assert_allclose(chances.sum(axis=1), 1.0, atol=1e-9)
    assert chances[:, 2].max() < 0.1


def test_ordinal_by_pieces():
    X, y = grades()
    exact = SparseGPOrdinalClassifier(**SMALL).fit(X, y)
    pieces = SparseGPOrdinalClassifier(**SMALL, expectation="piecewise").fit(X, y)
    assert_allclose(pieces.predict_proba(X), exact.predict_proba(X), atol=0.05)


def test_probabilities_of_several_classes_are_as_bold_as_rows_left_out_bear():
    """q of independent functions is timid: a power of the probabilities, from rows left out, mends it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 2))
    y = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0)
    model = SparseGPClassifier(n_inducing=20, random_state=0).fit(X[:80], y[:80])
    assert model.posterior_.likelihood.power > 1.2
    own = np.arange(80), y[80:]
    bold = np.log(model.predict_proba(X[80:])[own]).mean()
    model.posteriors_ = tuple(
        q._replace(likelihood=replace(q.likelihood, power=1.0)) for q in model.posteriors_
    )
    assert bold > np.log(model.predict_proba(X[80:])[own]).mean() + 0.03


def test_grades_may_be_surer_in_some_rows_than_in_others():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (160, 2))
    noise = np.where(X[:, 1] > 0, 1.5, 0.1) * rng.logistic(size=160)
    grades = np.digitize(3.0 * X[:, 0] + noise, [-1.5, 0.0, 1.5])
    model = SparseGPOrdinalClassifier(spread="varying", n_inducing=8, tol=0.1, random_state=0).fit(X, grades)
    most = model.predict_proba(np.array([[0.3, 0.8], [0.3, -0.8]])).max(axis=1)
    assert most[1] > most[0] + 0.2
    assert "spread matern52 variance" in model.kernel_params_


@pytest.mark.parametrize("make", [SparseGPClassifier, SparseGPOrdinalClassifier])
def test_labels_left_out_are_predicted_as_by_fits_without_them_and_models_compared(make):
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, (60, 1))
    y = np.digitize(2.0 * np.sin(2.0 * X[:, 0]) + rng.logistic(size=60), [-1.0, 1.0])
    weight = np.r_[np.ones(58), 2.0, 0.0]
    how = {"n_inducing": 8, "tol": 0.02, "random_state": 0}
    model = make(**how).fit(X, y, weight)
    assert model.loo_.shape == (60,)
    rows = np.arange(0, 58, 7)
    rest = [np.delete(np.arange(60), row) for row in rows]
    refits = [make(**how).fit(X[own], y[own], weight[own]) for own in rest]
    log_prob = [
        np.log(refit.predict_proba(X[[row]])[0, y[row]]) for refit, row in zip(refits, rows, strict=True)
    ]
    assert_allclose(model.loo_[rows], log_prob, atol=0.25)
    assert_allclose(model.loo_[rows].mean(), np.mean(log_prob), atol=0.05)
    flat = make(kernel="constant", **how).fit(X, y, weight)
    assert list(compare({"flat": flat, "smooth": model}).index) == ["smooth", "flat"]

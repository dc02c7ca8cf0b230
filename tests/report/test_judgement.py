"""The usual models beside one of ours: which they are, what they are fitted to, what gives a target away."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LogisticRegression

from nongauss.report import judgement
from nongauss.report.judgement import JudgedRows, judge, masses, pooled, scored
from nongauss.report.leak import leaking_columns, too_good
from nongauss.report.residual_law import AtomRows, LawRows, NegativeBinomialLaw
from report.stand_in import StandIn, small_data


class Fixed(RegressorMixin, BaseEstimator):
    """Predicts what it is made with."""

    def __init__(self, law):
        self.law = law

    def fit(self, X, y):
        return self

    def predict_distribution(self, X):
        return self.law(len(X))


def halves(X, y):
    n = len(y) // 2
    return JudgedRows(X[:n], y[:n]), JudgedRows(X[n:], y[n:])


def test_where_a_law_has_mass_the_usual_models_have_it_too():
    rng = np.random.RandomState(0)
    X, counts = rng.normal(size=(80, 2)), rng.poisson(3.0, 80).astype(float)
    train, test = halves(X, counts)
    found = judge(Fixed(lambda n: LawRows(NegativeBinomialLaw(1e8), np.full(n, 3.0))), train, test)
    assert list(found.rivals) == ["mean of the target", "log-linear regression"]
    assert found.rivals["mean of the target"].mass.min() > 0
    sums = np.where(rng.random(80) < 0.6, 0.0, rng.gamma(2.0, size=80))
    train, test = halves(X, sums)
    rest = StandIn()
    atoms = Fixed(lambda n: AtomRows(np.zeros(1), np.full((n, 2), 0.5), LawRows(Gamma(), np.ones(n))))
    found = judge(atoms, train, test)
    assert masses(found.scores, train.y) == (False, (0.0,))
    assert (found.rivals["ridge regression"].mass > 1e-6).tolist() == (test.y == 0).tolist()
    found = judge(rest, train, test)
    assert masses(found.scores, train.y) == (False, ())
    assert found.rivals["ridge regression"].mass.max() < 1e-9


class Gamma:
    def log_prob(self, y, m):
        return np.where(y > 0, -y, -np.inf)

    def cdf(self, y, m):
        return np.where(y > 0, 1 - np.exp(-np.maximum(y, 0)), 0.0)

    def quantile(self, level, m):
        return -np.log1p(-np.asarray(level)) * np.ones(len(m))


def test_trees_come_with_many_rows_and_huge_tables_are_sampled(monkeypatch):
    X, y = small_data(1000)
    train, test = halves(X, y)
    found = judge(StandIn(), train, test)
    assert list(found.rivals) == ["mean of the target", "ridge regression", "gradient-boosted trees"]
    assert found.notes == []
    assert list(found.figures()) == ["StandIn", *found.rivals]
    monkeypatch.setattr(judgement, "_MOST_CELLS", 600)
    monkeypatch.setattr(judgement, "_FEWEST_SAMPLED", 150)
    found = judge(StandIn(), train, test)
    assert "Ridge regression was fitted to 200 of the 500 rows." in found.notes
    monkeypatch.setattr(judgement, "_FEWEST_SAMPLED", 300)
    found = judge(StandIn(), train, test)
    assert list(found.rivals) == ["mean of the target"]
    assert "The table is too wide for ridge regression, which was left out." in found.notes


def test_a_usual_model_that_fails_is_said_and_left_out(monkeypatch):
    X, y = small_data(60)

    def broken(*_, **__):
        raise ValueError("no luck")

    monkeypatch.setattr("sklearn.linear_model.RidgeCV.fit", broken)
    found = judge(StandIn(), *halves(X, y))
    assert list(found.rivals) == ["mean of the target"]
    assert found.notes == ["Ridge regression could not be fitted: ValueError: no luck"]


def test_folds_are_pooled_in_their_order_and_their_classes_put_together():
    X, y = small_data(90)
    whole = JudgedRows(X, np.array(["low", "mid", "high"])[np.digitize(y, [1.5, 4.0])])
    parts = np.array_split(np.arange(90), 3)
    folds = [
        judge(LogisticRegression(), whole.take(np.setdiff1d(np.arange(90), p)), whole.take(p)) for p in parts
    ]
    found = pooled(folds)
    assert found.scores.y.tolist() == whole.y.tolist()
    np.testing.assert_allclose(np.sort(found.scores.log_score[:30]), np.sort(folds[0].scores.log_score))
    lone = scored(
        LogisticRegression().fit(X[:60], np.where(y[:60] > 2, "a", "b")), JudgedRows(X[60:], np.full(30, "c"))
    )
    assert lone.log_score.max() < -30  # a label that was no class


def test_densities_are_those_of_the_law():
    X, y = small_data(100)
    train, test = halves(X, y)
    found = judge(StandIn(), train, test)
    law = StandIn().fit(train.X, train.y).predict_distribution(test.X)
    np.testing.assert_allclose(found.scores.log_score, norm.logpdf(test.y, law.mean, law.std))


@pytest.mark.parametrize("classify", [False, True])
def test_a_column_that_gives_the_target_away_is_named(classify):
    rng = np.random.RandomState(0)
    y = rng.normal(size=400)
    target = np.where(y > 0, "yes", "no") if classify else y
    paid = np.where(y > 0, 1.0, 0.0) if classify else 3 * y + 1
    frame = pd.DataFrame({"a": rng.normal(size=400), "paid": paid, "part": y + rng.normal(size=400)})
    model = LogisticRegression() if classify else StandIn()
    found = judge(model, *halves(frame, target))
    assert too_good(found.scores, found.rivals[found.constant])
    assert leaking_columns(found.model, frame, target) == ["paid"]
    honest = judge(model, *halves(frame.drop(columns="paid"), target))
    assert not too_good(honest.scores, honest.rivals[honest.constant])
    assert leaking_columns(honest.model, frame.drop(columns="paid"), target) == []

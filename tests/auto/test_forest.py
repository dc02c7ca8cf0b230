"""A forest as arrays against scikit-learn's own trees."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeRegressor

from nongauss import AutoClassifier, AutoRegressor
from nongauss.auto import forest as module
from nongauss.auto.forest import grow
from nongauss.core.errors import InputError


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    monkeypatch.setattr(module, "N_TREES", 12)


def table(n=70):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.column_stack([X[:, 0] ** 2, rng.normal(size=n)]), rng.integers(1, 3, n).astype(float)


def test_weights_are_the_shares_of_the_leaves():
    X, targets, weight = table()
    made, W = grow(X, targets, weight, 4, 1)
    new = np.random.default_rng(1).normal(size=(9, 3))
    rng = np.random.default_rng(1)
    counts = rng.multinomial(int(weight.sum()), weight / weight.sum(), 12)
    seeds = rng.integers(0, 2**31, 12)
    expected, without, n_without = np.zeros((9, 70)), np.zeros((70, 70)), np.zeros(70)
    predicted = np.zeros((9, 2))
    for count, seed in zip(counts, seeds, strict=True):
        tree = DecisionTreeRegressor(min_samples_leaf=4, random_state=int(seed))
        tree.fit(X.astype(np.float32), targets, sample_weight=count)
        own = tree.apply(X)
        together = (tree.apply(new)[:, None] == own) * count
        expected += together / together.sum(axis=1, keepdims=True) / 12
        predicted += tree.predict(new) / 12
        inside = (own[:, None] == own) * count
        without += (inside / inside.sum(axis=1, keepdims=True)) * (count == 0)[:, None]
        n_without += count == 0
    assert_allclose(made.weights(new).toarray(), expected, atol=1e-6)
    assert_allclose(made.weights(new) @ targets, predicted, atol=1e-5)
    assert_allclose(W.toarray(), without / np.maximum(n_without, 1)[:, None], atol=1e-6)


def test_a_row_has_no_part_in_its_own_weights():
    X, targets, weight = table()
    made, W = grow(X, targets, weight, 2, 0)
    assert_array_equal(W.diagonal(), 0.0)
    total = np.asarray(W.sum(axis=1)).ravel()
    assert_allclose(total[total > 0], 1.0, atol=1e-5)
    assert (total > 0).mean() > 0.8
    assert made.n_rows == 70


def test_counts_and_amounts_with_zeros_have_a_forest_on_their_constant_law(monkeypatch):
    """Cells of a grid with probabilities of their own, which no smooth function has; a new fit has it too."""
    monkeypatch.setattr(module, "N_TREES", 40)
    rng = np.random.default_rng(6)
    X = rng.integers(0, 4, size=(400, 2)).astype(float)
    rates = rng.permutation(np.geomspace(0.3, 12.0, 16)).reshape(4, 4)
    rate = rates[X[:, 0].astype(int), X[:, 1].astype(int)]
    for y, name in (
        (rng.poisson(rate), "constant count"),
        (rng.gamma(3.0, rate) * (rng.random(400) < 0.6), "constant with zeros"),
    ):
        model = AutoRegressor(candidates=[name], random_state=0).fit(X, y.astype(float))
        assert max(model.weights_, key=model.weights_.get) == "forest"
        again = model.refit(X[:300], y[:300].astype(float))
        assert again.weights_ == model.weights_
        mean = again.predict(X[300:])
        truth = rate[300:] if name == "constant count" else 1.8 * rate[300:]
        assert np.corrcoef(mean, truth)[0, 1] > 0.9
        assert (again.predict_distribution(X[300:]).cdf(np.full(100, -0.5)) == 0.0).all()


@pytest.mark.parametrize(
    ("names", "judged"),
    [
        (["forest"], {"constant count", "forest"}),
        (["linear, local law", "forest"], {"constant", "linear", "linear, local law", "forest"}),
    ],
)
def test_laws_that_stand_on_others_may_be_named_as_the_leaderboard_has_them(names, judged):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = rng.poisson(np.exp(X[:, 0])).astype(float)
    model = AutoRegressor(candidates=names, random_state=0).fit(X, y)
    assert set(model.leaderboard_["candidate"]) == judged
    with pytest.raises(InputError, match="needs calibrate=True"):
        model.set_params(calibrate=False).fit(X, y)


@pytest.mark.parametrize("name", ["constant, local law", "forest, local law", "none, local law"])
def test_a_local_law_on_what_has_none_is_refused_with_those_that_have_one(name):
    X, y = np.arange(40.0)[:, None], np.random.default_rng(0).normal(size=40)
    with pytest.raises(InputError, match=f"no candidate '{name}'.*local laws stand on: linear, gp"):
        AutoRegressor(candidates=[name]).fit(X, y)


def test_forests_and_local_laws_are_among_the_names_of_an_error():
    X, y = np.arange(40.0)[:, None], np.random.default_rng(0).normal(size=40)
    with pytest.raises(InputError, match=r"there are: constant, .*, forest, \.\.\., local law\."):
        AutoRegressor(candidates=["none"]).fit(X, y)
    with pytest.raises(InputError, match=r"there are: constant, (?!.*forest)"):
        AutoRegressor(candidates=["none"], calibrate=False).fit(X, y)
    with pytest.raises(InputError, match=r"there are: constant labels, .*, forest labels\."):
        AutoClassifier(candidates=["none"]).fit(X, np.arange(40) % 3)


def test_a_forest_of_labels_may_be_named():
    X, y = load_iris(return_X_y=True)
    model = AutoClassifier(candidates=["forest labels"], random_state=0).fit(X[::3], y[::3])
    assert set(model.leaderboard_["candidate"]) == {"constant labels", "forest labels"}
    assert model.weights_["forest labels"] > 0.5

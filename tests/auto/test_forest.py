"""A forest as arrays against scikit-learn's own trees."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestRegressor

from nongauss.auto import forest as module
from nongauss.auto.forest import grow


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    monkeypatch.setattr(module, "N_TREES", 12)


def table(n=70):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.column_stack([X[:, 0] ** 2, rng.normal(size=n)]), rng.integers(1, 3, n).astype(float)


def test_weights_are_the_shares_of_the_leaves():
    X, targets, weight = table()
    made, _ = grow(X, targets, weight, 4, 1)
    trees = RandomForestRegressor(12, min_samples_leaf=4, random_state=1).fit(
        X, targets, sample_weight=weight
    )
    new = np.random.default_rng(1).normal(size=(9, 3))
    at, own = trees.apply(new), trees.apply(X)
    expected = np.zeros((9, 70))
    for t, drawn in enumerate(trees.estimators_samples_):
        count = np.bincount(drawn, minlength=70) * weight
        together = (at[:, t, None] == own[None, :, t]) * count
        expected += together / together.sum(axis=1, keepdims=True) / 12
    assert_allclose(made.weights(new).toarray(), expected, atol=1e-6)
    assert_allclose(made.weights(new) @ targets, trees.predict(new), atol=1e-5)


def test_a_row_has_no_part_in_its_own_weights():
    X, targets, weight = table()
    made, W = grow(X, targets, weight, 2, 0)
    assert_array_equal(W.diagonal(), 0.0)
    total = np.asarray(W.sum(axis=1)).ravel()
    assert_allclose(total[total > 0], 1.0, atol=1e-5)
    assert (total > 0).mean() > 0.95
    assert made.n_rows == 70

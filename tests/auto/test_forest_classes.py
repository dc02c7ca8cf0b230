"""The classes that a forest sees: the least probabilities, and what wide tables cost."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from nongauss.auto import forest_classes as module
from nongauss.auto.forest_classes import fit_forest_classes


def separated(n, n_columns=2):
    """Two classes with a gap between, so that all trees agree."""
    rng = np.random.default_rng(0)
    codes = np.arange(n) % 2
    X = rng.normal(size=(n, n_columns))
    X[:, 0] = codes + rng.uniform(-0.2, 0.2, n)
    return X, codes


def test_few_rows_leave_each_class_the_chance_of_one_that_they_did_not_show():
    n = 30
    X, codes = separated(n)
    found, left_out = fit_forest_classes(X, codes, 2, np.ones(n), 0, 1, 20)
    assert found.power > 2.0  # all rows say that the trees may be surer
    least = found.shares / (n + 1.0)
    at = found.probabilities(np.array([[0.0, 0.0], [1.0, 0.0]]))
    assert (at >= least).all()
    assert (left_out >= least).all()
    assert_allclose(at.sum(axis=1), 1.0)
    assert (at.argmax(axis=1) == [0, 1]).all()
    assert at.max(axis=1).min() > 0.97


def test_splits_of_wide_tables_look_at_a_few_times_the_root_of_their_columns(monkeypatch):
    looked = []
    own = module.grow

    def grow(X, targets, weight, leaf, seed, n_jobs, features, *rest):
        looked.append(features)
        return own(X, targets, weight, leaf, seed, n_jobs, features, *rest)

    monkeypatch.setattr(module, "grow", grow)
    for n_columns, expected in ((9, 0.5), (400, 0.25)):
        X, codes = separated(20, n_columns)
        fit_forest_classes(X, codes, 2, np.ones(20), 0, 1, 2)
        assert looked[-1] == expected

"""What is kept of a fit with its model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import nongauss
from nongauss.estimator.about import About, Marginal
from nongauss.estimator.model_file import manifest_of


@pytest.fixture
def fitted():
    X = np.random.RandomState(0).normal(size=(30, 3))
    return nongauss.SparseGPRegressor(n_inducing=4).fit(X, X[:, 0] + 0.3 * X[:, 1] * X[:, 2]), X


def test_it_goes_with_the_model_and_not_with_the_next_fit(fitted, tmp_path):
    model, X = fitted
    assert model.about_ is None
    model.about_ = About(
        target="y", figures={"ours": {"rmse": 1.5}}, marginal=Marginal.of(X[:, 0], labels=False)
    )
    nongauss.save(model, tmp_path / "m")
    assert manifest_of(tmp_path / "m")["package_version"] == nongauss.__version__
    again = nongauss.load(tmp_path / "m")
    assert (again.about_.target, again.about_.figures["ours"]["rmse"]) == ("y", 1.5)
    np.testing.assert_array_equal(again.about_.marginal.values, model.about_.marginal.values)
    nongauss.save(again, tmp_path / "n")  # what is known of it stays with it
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()
    assert clone(again).about_ is None
    assert again.fit(X, X[:, 0] + 0.3 * X[:, 1] * X[:, 2]).about_ is None


def test_the_law_of_numbers_is_that_of_their_quantiles():
    y = np.random.RandomState(0).lognormal(size=5000)
    law = Marginal.of(y, labels=False)
    assert len(law.values) == 200
    np.testing.assert_allclose(
        np.quantile(law.sample(), [0.1, 0.5, 0.9]), np.quantile(y, [0.1, 0.5, 0.9]), rtol=0.03
    )
    assert np.isin(law.values, y).all()  # counts stay counts
    assert len(Marginal.of(y[:10], labels=False).values) == 5
    assert len(Marginal.of(y[:1], labels=False).values) == 2


def test_the_law_of_labels_is_that_of_their_numbers():
    y = np.array(["b"] * 9000 + ["a"] * 999 + ["c"], dtype=object)
    sample = Marginal.of(y, labels=True).sample()
    values, counts = np.unique(sample, return_counts=True)
    assert values.tolist() == ["a", "b", "c"]
    assert counts.tolist() == [200, 1800, 1]

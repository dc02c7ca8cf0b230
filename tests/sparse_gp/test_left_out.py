"""What a Gaussian process says of a row without it, against doing without the row."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss import SparseGPClassifier, SparseGPRegressor
from nongauss.core.errors import NongaussWarning
from nongauss.sparse_gp.fit import posterior_at
from nongauss.sparse_gp.left_out import FittedRows, left_out_law, left_out_probabilities, n_parameters
from nongauss.sparse_gp.params import GPModel, GPParams
from nongauss.sparse_gp.updates import HyperObjective

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_it_foretells_what_new_rows_get():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, size=(240, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_t(3, size=240)
    model = SparseGPRegressor("student_t", n_inducing=30, random_state=0).fit(X[:120], y[:120])
    inner = left_out_law(model, X[:120], y[:120], np.ones(120)).log_prob(y[:120]).mean()
    seen = model.log_density(X[:120], y[:120]).mean()
    new = model.log_density(X[120:], y[120:]).mean()
    assert inner < seen
    assert abs(inner - new) < 0.2
    assert n_parameters(model) >= 3
    both = SimpleNamespace(posteriors_=model.posteriors_[:1] * 2, weights_=np.array([0.5, 0.5]))
    assert n_parameters(both) == len(model.posterior_.thetas[0]) + len(model.posterior_.psi)


def test_probabilities_of_labels_without_the_row():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 2))
    y = (X[:, 0] + 0.7 * rng.normal(size=90) > 0).astype(int) + (X[:, 1] > 0.8)
    model = SparseGPClassifier(n_inducing=25, random_state=0).fit(X, y)
    found = left_out_probabilities(model, X, y.astype(float), np.ones(90))
    assert_allclose(found.sum(axis=1), 1.0)
    own = np.arange(90), y
    assert np.log(found[own]).mean() < np.log(model.predict_proba(X)[own]).mean()


def test_rows_of_next_to_no_noise_are_foretold():
    """By the row's prediction and its variance there would be no digits left."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(280, 1))
    y = np.sin(2 * X[:, 0]) + 1e-3 * rng.normal(size=280)
    model = SparseGPRegressor(kernel="squared_exponential", random_state=0).fit(X[:80], y[:80])
    assert model.is_exact_
    assert abs(model.loo_.mean() - model.log_density(X[80:], y[80:]).mean()) < 0.5


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
def test_rows_with_gaps_are_predicted_without_their_target(likelihood):
    """As a fit without the row, of the same hyper-parameters, predicts them: over what the cells may be."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    f = X[:, 0] + X[:, 1]
    y = rng.poisson(np.exp(f)).astype(float) if likelihood == "poisson" else f + 0.1 * rng.normal(size=60)
    X[rng.random((60, 3)) < 0.2] = np.nan
    how = {"n_scales": 1, "n_inducing": 60, "hyper_parameters": "best", "random_state": 0}
    model = SparseGPRegressor(likelihood, **how).fit(X, y)
    law = left_out_law(model, X, y, np.ones(60))
    assert_allclose(law.log_prob(y), model.loo_)
    target = model._scaler.transform(y[:, None])
    rows = FittedRows.of(model, X, target, np.ones(60), np.zeros(60)).rows
    own, posterior = bare_model(model), model.posterior_
    for n in np.flatnonzero(np.isnan(X).any(axis=1))[:4]:
        others = rows.take(np.arange(60) != n)
        at = GPParams(posterior.thetas, posterior.psi, others.X)
        bound = HyperObjective(own, others, at, False, likelihood == "gaussian")
        bound(at.flat(False))
        alone = SparseGPRegressor(likelihood)
        alone.__dict__ = {**vars(model), "posteriors_": (posterior_at(bound, at),), "weights_": np.ones(1)}
        expected = alone.predict_distribution(X[n : n + 1])
        assert_allclose(law[[n]].mean, expected.mean, rtol=0.02, atol=0.02)
        assert_allclose(law[[n]].std, expected.std, rtol=0.02)


def test_a_target_beyond_the_limits_of_the_fit_leaves_where_it_was_taken_to_be():
    """The site that is taken out is that of the value which the fit has seen."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(150, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.laplace(size=150)
    y[:3] = [1e9, -1e9, 3e7]
    X[:3] = [[3.5], [-3.5], [0.7]]  # two by themselves, where their own targets alone tell f
    with pytest.warns(NongaussWarning, match="far out"):
        model = SparseGPRegressor("laplace", n_scales=1, n_inducing=30, random_state=0).fit(X, y)
    law = left_out_law(model, X, y, np.ones(150))
    seen = np.clip(y, *np.quantile(y[3:], [0.0, 1.0]))
    target = model._scaler.transform(seen[:, None])
    rows, own = FittedRows.of(model, X, target, np.ones(150), np.zeros(150)).rows, bare_model(model)
    at = GPParams(*model.posterior_[5:8])
    for n in range(3):
        bound = HyperObjective(own, rows.take(np.arange(150) != n), at, False, False)
        bound(at.flat(False))
        alone = SparseGPRegressor("laplace")
        alone.__dict__ = {**vars(model), "posteriors_": (posterior_at(bound, at),)}
        expected = alone.predict_distribution(X[n : n + 1])
        assert_allclose(law[[n]].mean, expected.mean, atol=0.02)
        assert_allclose(law[[n]].std, expected.std, rtol=0.02)


def test_rows_are_left_out_as_fitted_where_only_the_group_has_gaps():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    X[:, 1] = rng.integers(0, 4, size=60)
    X[rng.random(60) < 0.2, 1] = np.nan
    y = y + np.nan_to_num(X[:, 1])
    model = SparseGPRegressor(group=1, n_scales=1, n_inducing=60, random_state=0).fit(X, y)
    assert model.is_exact_
    target = model._scaler.transform(y[:, None])
    rows = FittedRows.of(model, X, target, np.ones(60), np.zeros(60)).rows.X
    apart = np.abs(rows[:, None] - np.asarray(model.posterior_.Z)[None]).max(axis=2)
    assert_allclose(apart.min(axis=1), 0.0, atol=1e-6)


def test_rows_with_gaps_are_as_probable_as_new_ones():
    """A cell was drawn given the target, which flatters the row where it stands in the fit."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(900, 2))
    y = X[:, 0] + 0.2 * rng.normal(size=900)
    X[rng.random((900, 2)) < 0.4] = np.nan
    train, test = slice(300), slice(300, None)
    model = SparseGPRegressor(n_scales=1, random_state=0).fit(X[train], y[train])
    assert abs(model.loo_.mean() - model.log_density(X[test], y[test]).mean()) < 0.12


def test_labels_of_rows_with_gaps():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=600) > 0).astype(int)
    X[rng.random((600, 2)) < 0.4] = np.nan
    train, test = slice(200), slice(200, None)
    model = SparseGPClassifier(n_inducing=30, random_state=0).fit(X[train], y[train])
    found = left_out_probabilities(model, X[train], y[train].astype(float), np.ones(200))
    inner = np.log(found[np.arange(200), y[train]]).mean()
    new = np.log(model.predict_proba(X[test])[np.arange(400), y[test]]).mean()
    assert abs(inner - new) < 0.12


def bare_model(model):
    """The fixed parts of a fitted model."""
    posterior = model.posterior_
    return GPModel(
        posterior.kernels, posterior.kernel_of, posterior.space, posterior.likelihood, posterior.offset
    )


@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial"])
@pytest.mark.parametrize("steps", [True, False])
def test_what_is_said_of_huge_counts_beside_zeros_is_no_worse_than_the_law_can_be(likelihood, steps):
    """Where a row alone tells f, the last digits of its count moved f by a million (-1e136 nats)."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (60, 1))
    y = np.where(X[:, 0] > 0.0, 1e12, 0.0) if steps else rng.poisson(1.0, 60).astype(float)
    y[:3] = 1e12
    model = SparseGPRegressor(likelihood, random_state=0).fit(X, y)
    assert np.isfinite(model.loo_).all()
    assert model.loo_.min() > -1e18

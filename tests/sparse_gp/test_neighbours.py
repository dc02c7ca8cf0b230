"""What neighbours tell beyond a sparse process: against scikit-learn's dense process, and for a user."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import nongauss
from nongauss import SparseGPRegressor
from nongauss.sparse_gp import config
from nongauss.sparse_gp.neighbours import N_NEAR, NearResiduals

RNG = np.random.default_rng(0)


def residuals(n=N_NEAR):
    X = RNG.normal(size=(n, 2))
    noise = RNG.choice([0.5, 1.0], n)
    return NearResiduals(X, RNG.normal(size=n), noise, np.array([2.0, 0.5]), 0.7, 3.0, 0.2)


def dense(of, X, kept):
    """Mean and variance / s^2 with noise by all rows that are kept."""
    kernel = ConstantKernel(of.ratio) * Matern(of.reach, nu=0.5)
    their = GaussianProcessRegressor(kernel, alpha=of.noise[kept], optimizer=None)
    mean, sd = their.fit(of.X[kept], of.residual[kept]).predict(X, return_std=True)
    return mean, sd**2 + 1.0


def test_as_many_neighbours_as_rows_are_the_dense_process():
    of, new = residuals(), RNG.normal(size=(7, 2))
    shift, more = of.at(new)
    mean, variance = dense(of, new * of.unit, slice(None))
    assert_allclose(shift, mean)
    assert_allclose(more, of.least * (variance - 1.0))
    far = of.at(np.full((1, 2), 1e9))  # the prior of the residual
    assert_allclose(far, [[0.0], [of.least * of.ratio]])


def test_a_training_row_tells_nothing_of_itself_though_another_lies_at_its_place():
    of = residuals(N_NEAR + 1)
    of = replace(of, X=np.concatenate([of.X[:1], of.X[:-1]]))  # rows 0 and 1 coincide
    shift, more = of.at(of.X / of.unit, own=of.residual)
    for row in (0, 1, 9):
        kept = np.arange(N_NEAR + 1) != row
        mean, variance = dense(of, of.X[row : row + 1], kept)
        assert_allclose(shift[row], mean[0])
        assert_allclose(more[row], of.least * (variance[0] - 1.0))


def rough(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 1))
    return X, np.sin(90 * X[:, 0]) + 0.2 * rng.normal(size=n)


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(config, "MOST_EXACT", 100)


HOW = {"n_inducing": 12, "max_iter": 25, "random_state": 0}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_near_tell_what_few_inducing_inputs_cannot(few_are_many, tmp_path):
    X, y = rough(400)
    train, test = slice(300), slice(300, None)
    model = SparseGPRegressor(**HOW).fit(X[train], y[train])
    law = model.predict_distribution(X[test])
    assert_allclose(model.predict(X[test]), law.mean)
    inside = np.abs(law.cdf(y[test]) - 0.5) < 0.45
    assert 0.82 < inside.mean() < 0.98
    assert np.sqrt(np.mean((law.mean - y[test]) ** 2)) < 0.35
    assert abs(model.loo_.mean() - law.log_prob(y[test]).mean()) < 0.15
    assert model.likelihood_params_["noise_variance"] < 0.1
    draws = model.posterior_draws(X[test], 200, random_state=0)
    assert_allclose(draws.mean(axis=1), law.mean, atol=0.12)
    assert model.holds_training_rows_
    nongauss.save(model, tmp_path / "model.nongauss")
    again = nongauss.load(tmp_path / "model.nongauss")
    assert_allclose(again.predict_distribution(X[test]).log_prob(y[test]), law.log_prob(y[test]))
    plain = SparseGPRegressor(n_scales=1, **HOW).fit(X[train], y[train])
    assert law.log_prob(y[test]).mean() > plain.log_density(X[test], y[test]).mean() + 0.3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_where_near_rows_tell_nothing_none_are_kept(few_are_many):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    model = SparseGPRegressor(**HOW).fit(X, X[:, 0] + rng.normal(size=200))
    assert model._near is None

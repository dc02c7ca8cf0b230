"""Draws of functions, what is said of rows left out, comparison, and draws of hyper-parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import nongauss
from nongauss import SparseGPClassifier, SparseGPOrdinalClassifier, SparseGPRegressor
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.sparse_gp import draws
from nongauss.sparse_gp.config import GPRecipe
from nongauss.sparse_gp.kernels import Space
from nongauss.sparse_gp.likelihoods import Gaussian, Poisson
from nongauss.sparse_gp.neighbours import NearResiduals
from nongauss.sparse_gp.params import GPModel

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, (40, 1))
Y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=40)
GRID = np.linspace(-2.5, 2.5, 30)[:, None]


@pytest.fixture(scope="module")
def model():
    return SparseGPRegressor(n_scales=1, tol=0.01, hyper_parameters="best", random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def unsure():
    return SparseGPRegressor(n_scales=1, tol=0.01, hyper_parameters="laplace", random_state=0).fit(X, Y)


def test_functions_are_drawn_from_the_exact_joint_posterior(model):
    posterior = model.posterior_
    kernel, theta, space = posterior.kernels[0], posterior.thetas[0], posterior.space
    encoded = model._encode(GRID)
    Kz = kernel.forward(theta, space, posterior.Z, encoded)[0]
    scale = float(model._scaler.scale[0])
    exact = scale**2 * (kernel.forward(theta, space, encoded, encoded)[0] - Kz.T @ posterior.W[0, 0] @ Kz)
    got = model.posterior_draws(GRID, 6000, 0)
    assert got.shape == (30, 6000)
    np.testing.assert_allclose(got.mean(axis=1), model.predict(GRID), atol=0.03)
    np.testing.assert_allclose(np.cov(got), exact, atol=0.03 * exact.diagonal().max())


def test_draws_of_targets_have_the_spread_that_is_predicted(model):
    got = model.posterior_draws(GRID, 4000, 0, with_noise=True)
    np.testing.assert_allclose(got.std(axis=1), model.predict(GRID, return_std=True)[1], rtol=0.06)


def test_many_rows_follow_from_some_of_them(model, monkeypatch):
    exact = model.posterior_draws(GRID, 3000, 0)
    monkeypatch.setattr(draws, "MOST_JOINT", 14)
    got = model.posterior_draws(GRID, 3000, 1)
    np.testing.assert_allclose(got.std(axis=1), exact.std(axis=1), rtol=0.1)
    assert np.abs(np.corrcoef(got) - np.corrcoef(exact)).mean() < 0.08


def test_what_neighbours_tell_is_drawn_from_the_joint_posterior_of_what_is_left():
    """Against the dense posterior of the second process; drawn alone, near rows had independent values."""
    own = np.random.default_rng(5)
    known, noise, new = np.sort(own.uniform(0, 4, 60))[:, None], own.uniform(0.2, 0.6, 60), GRID / 5.0 + 2.0
    unit, none = np.array([0.5]), np.zeros(1)
    near = NearResiduals(known * 0.5, own.normal(size=60), noise, unit, 0.1, 2.0, 0.3, none, np.ones(60))

    def cov(a, b):
        return 2.0 * np.exp(-0.5 * np.abs(a - b.T) / 0.1)

    solved = np.linalg.solve(cov(known, known) + np.diag(noise), cov(known, new))
    exact = 0.3 * (cov(new, new) - cov(new, known) @ solved)
    got = draws.near_draws(near, np.repeat(new, 2, axis=0), 20_000, own)
    np.testing.assert_array_equal(got[:, ::2], got[:, 1::2])
    np.testing.assert_allclose(got[:, ::2].mean(axis=0), solved.T @ near.residual, atol=0.03)
    np.testing.assert_allclose(np.cov(got[:, ::2].T), exact, atol=0.03 * exact.diagonal().max())


def test_equal_rows_have_equal_values_and_seeds_equal_draws(model):
    twice = model.posterior_draws(np.repeat(GRID[:3], 2, axis=0), 5, 7)
    np.testing.assert_array_equal(twice[::2], twice[1::2])
    np.testing.assert_array_equal(twice, model.posterior_draws(np.repeat(GRID[:3], 2, axis=0), 5, 7))


def test_draws_of_counts_and_of_rows_with_gaps_are_means():
    y = np.random.default_rng(1).poisson(np.exp(1.0 + Y))
    both = np.column_stack([X[:, 0], np.cos(X[:, 0])])
    model = SparseGPRegressor("hurdle_poisson", n_inducing=8, tol=0.1, random_state=0).fit(both, y)
    rows = np.array([[0.5, np.nan], [0.5, np.cos(0.5)]])
    with pytest.warns(NongaussWarning, match="Cells are missing"):
        got = model.posterior_draws(rows, 400, 0)
    assert (got > 0).all()
    with pytest.warns(NongaussWarning, match="Cells are missing"):
        np.testing.assert_allclose(got.mean(axis=1), model.predict(rows), rtol=0.2)


@pytest.mark.parametrize("kind", ["two", "three", "ordinal", "varying"])
def test_probabilities_are_drawn_as_functions_whose_mean_is_predicted(kind):
    y = np.digitize(Y, [0.0] if kind == "two" else [-0.5, 0.5])
    how = {"n_inducing": 8, "tol": 0.1, "random_state": 0}
    if kind in ("two", "three"):
        model = SparseGPClassifier(**how).fit(X, y)
    else:
        spread = "varying" if kind == "varying" else "constant"
        model = SparseGPOrdinalClassifier(spread=spread, **how).fit(X, y)
    got = model.posterior_draws(np.repeat(GRID, 2, axis=0), 2000, 0)
    assert got.shape == (60, len(model.classes_), 2000)
    np.testing.assert_array_equal(got[::2], got[1::2])
    np.testing.assert_array_equal(got, model.posterior_draws(np.repeat(GRID, 2, axis=0), 2000, 0))
    np.testing.assert_allclose(got.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(got[::2].mean(axis=2), model.predict_proba(GRID), atol=0.03)


def test_latent_functions_of_labels_are_drawn_from_the_exact_joint_posterior():
    model = SparseGPClassifier(n_inducing=8, tol=0.1, random_state=0).fit(X, Y > 0.0)
    posterior = model.posterior_
    kernel, theta, space = posterior.kernels[0], posterior.thetas[0], posterior.space
    encoded = model._encode(GRID)
    Kz = kernel.forward(theta, space, posterior.Z, encoded)[0]
    exact = kernel.forward(theta, space, encoded, encoded)[0] - Kz.T @ posterior.W[0, 0] @ Kz
    chance = model.posterior_draws(GRID, 6000, 0)[:, 1]
    f = np.log(chance) - np.log1p(-chance)
    np.testing.assert_allclose(np.cov(f), exact, atol=0.06 * exact.diagonal().max())


def test_left_out_rows_are_predicted_as_by_a_fit_without_them(model):
    assert model.loo_.shape == (40,)
    for row in (3, 17):
        rest = np.delete(np.arange(40), row)
        posterior = model.posterior_
        K = posterior.kernels[0].forward(posterior.thetas[0], posterior.space, *[model._encode(X)] * 2)[0]
        noise = np.exp(posterior.psi[0])
        scaled = (Y - model._scaler.centre[0]) / model._scaler.scale[0]
        solved = np.linalg.solve(K[np.ix_(rest, rest)] + noise * np.eye(39), K[rest, row])
        mean, variance = solved @ scaled[rest], K[row, row] - solved @ K[rest, row] + noise
        exact = -0.5 * (np.log(2 * np.pi * variance) + (scaled[row] - mean) ** 2 / variance)
        assert model.loo_[row] == pytest.approx(exact - np.log(abs(model._scaler.scale[0])), abs=1e-4)


@pytest.mark.parametrize("given", ["censoring", "truncation", "trials"])
def test_what_is_known_of_a_row_is_what_is_left_out(given):
    y, likelihood = np.exp(Y), "log_normal"
    beside = {"censoring": (y > 2.0).astype(int)} if given == "censoring" else {"truncation": 0.05}
    if given == "trials":
        y, likelihood, beside = np.random.default_rng(0).binomial(9, 0.4, 40), "binomial", {"trials": 9.0}
    y = np.minimum(y, 2.0) if given == "censoring" else y
    how = {"n_inducing": 5, "tol": 0.2, "hyper_parameters": "best", "random_state": 0}
    model = SparseGPRegressor(likelihood, **how).fit(X, y, **beside)
    assert np.isfinite(model.loo_).all()


def test_models_are_compared_by_rows_left_out(model):
    flat = SparseGPRegressor(kernel="constant", n_scales=1, tol=0.01, random_state=0).fit(X, Y)
    table = nongauss.compare({"flat": flat, "smooth": model})
    assert list(table.index) == ["smooth", "flat"]
    assert table["difference"].tolist()[0] == 0.0
    assert table.loc["flat", "difference"] < -2.0 * table.loc["flat", "difference_error"]
    assert table["weight"].sum() == pytest.approx(1.0)
    with pytest.raises(InputError, match=r"fitted to .* rows; fit them to the same rows"):
        nongauss.compare([model, SparseGPRegressor(tol=0.05, n_scales=1).fit(X[:30], Y[:30])])
    other = SparseGPRegressor(tol=0.05, n_scales=1).fit(X, Y[::-1])
    with pytest.raises(InputError, match="'0' and '1' were fitted to different y"):
        nongauss.compare([model, other])
    with pytest.raises(InputError, match="has no loo_"):
        nongauss.compare([object()])


def test_few_rows_are_averaged_over_what_they_leave_open_by_default(unsure):
    few = SparseGPRegressor(n_scales=1, tol=0.01, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(few.predict(GRID), unsure.predict(GRID))
    recipe, kernel = GPRecipe.of(few), few.posterior_.kernels[0]
    wide = Space(tuple(map(str, range(60))), tuple(range(60)))

    def model_of(likelihood, space):
        return GPModel((kernel,), (0,), space, likelihood, np.zeros(1))

    space = few.posterior_.space
    assert recipe.spreads(model_of(Gaussian(), space), 40)
    assert not recipe.spreads(model_of(Gaussian(), space), 100)
    assert not recipe.spreads(model_of(Gaussian(), wide), 40)
    assert not recipe.spreads(model_of(Poisson(), space), 40)
    assert replace(recipe, hyper_parameters="laplace").spreads(model_of(Poisson(), wide), 100)


def test_unsure_hyper_parameters_widen_predictions_and_have_their_curvature(model, unsure):
    assert len(unsure.posteriors_) == 5
    assert unsure.weights_.sum() == pytest.approx(1.0)
    far = np.array([[-2.4], [2.4]])
    assert (unsure.predict(far, return_std=True)[1] > 0.9 * model.predict(far, return_std=True)[1]).all()
    noise = unsure._hyper.covariance[-1, -1]
    assert 2.0 / 40 < noise < 6.0 / 40  # of the log of a variance from 40 rows, some of which f takes


def test_draws_of_hyper_parameters_are_handed_to_arviz(unsure, model, monkeypatch):
    import sys
    from types import SimpleNamespace

    fake = SimpleNamespace(from_dict=lambda **given: given)
    monkeypatch.setitem(sys.modules, "arviz", fake)
    given = unsure.to_arviz()["posterior"]
    assert set(given) == set(unsure.kernel_params_) | set(unsure.likelihood_params_)
    assert all(values.shape == (1, 500) for values in given.values())
    assert np.median(given["noise_variance"]) == pytest.approx(
        unsure.likelihood_params_["noise_variance"], rel=0.1
    )
    with pytest.raises(InputError, match="hyper_parameters='laplace'"):
        model.to_arviz()

"""What neighbours tell beyond a sparse process: against scikit-learn's dense process, and for a user."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import nongauss
from nongauss import SparseGPRegressor
from nongauss.sparse_gp import config
from nongauss.sparse_gp.cavity import row_numbers
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.neighbours import N_NEAR, Copies, NearResiduals, are_counts
from nongauss.sparse_gp.neighbours import residuals as residuals_of
from nongauss.sparse_gp.predict import GPAverage

RNG = np.random.default_rng(0)


def residuals(n=N_NEAR):
    X = RNG.normal(size=(n, 2))
    noise = RNG.choice([0.5, 1.0], n)
    unit, no_shift, weight = np.array([2.0, 0.5]), np.zeros(1), RNG.choice([1.0, 3.0], n)
    return NearResiduals(X, RNG.normal(size=n), noise, unit, 0.7, 3.0, 0.2, no_shift, weight)


def dense(of, X, kept):
    """Mean and variance / s^2 by all rows that are kept."""
    kernel = ConstantKernel(of.ratio) * Matern(of.length, nu=0.5)
    their = GaussianProcessRegressor(kernel, alpha=of.noise[kept], optimizer=None)
    mean, sd = their.fit(of.X[kept], of.residual[kept]).predict(X, return_std=True)
    return mean, sd**2


def test_as_many_neighbours_as_rows_are_the_dense_process():
    of, new = residuals(), RNG.normal(size=(7, 2))
    shift, more = of.at(new)
    mean, variance = dense(of, new * of.unit, slice(None))
    assert_allclose(shift, mean)
    assert_allclose(more, of.variance * variance)
    far = of.at(np.full((1, 2), 1e9))  # the prior of the residual
    assert_allclose(far, [[0.0], [of.variance * of.ratio]])


def test_a_training_row_tells_nothing_of_itself_though_another_lies_at_its_place():
    of = residuals(N_NEAR + 1)
    of = replace(of, X=np.concatenate([of.X[:1], of.X[:-1]]))  # rows 0 and 1 coincide
    every = np.arange(N_NEAR + 1)
    nothing = np.zeros(N_NEAR + 1)
    shift, more = of.at(of.X / of.unit, Copies(every, nothing, nothing))
    for row in (0, 1, 9):
        kept = np.arange(N_NEAR + 1) != row
        mean, variance = dense(of, of.X[row : row + 1], kept)
        assert_allclose(shift[row], mean[0])
        assert_allclose(more[row], of.variance * variance[0])


def test_each_of_many_rows_at_one_place_is_known_by_what_is_left_of_it():
    rng = np.random.default_rng(0)
    X, told = np.repeat(rng.normal(size=(3, 2)), 3 * N_NEAR, axis=0), rng.normal(size=9 * N_NEAR)
    order = rng.permutation(len(X))
    assert_array_equal(row_numbers(X, told, X[order], told[order] + 1e-9), order)
    assert_array_equal(row_numbers(X, told, X[:1] + 1e-3, told[:1]), [0])  # at no place of these


def test_of_copies_that_were_merged_one_is_left_out_and_the_others_tell():
    """At the row's place, and at another where it may be as its cells are missing."""
    of = residuals()
    row, weight, gap = int(np.argmax(of.weight)), of.weight.max(), 0.3
    left = Copies(np.full(2, row), np.full(2, weight - 1.0), np.full(2, gap))
    place = np.stack([of.X[row], of.X[row] + 0.4])
    shift, more = of.at(place / of.unit, left)
    noise, residual = of.noise.copy(), of.residual.copy()
    noise[row] *= weight / (weight - 1.0)
    residual[row] += gap
    without = replace(of, noise=noise, residual=residual)
    mean, variance = dense(without, place, slice(None))
    assert_allclose(shift, mean)
    assert_allclose(more, of.variance * variance)


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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("likelihood", ["gaussian", "poisson", "gamma", "student_t"])
def test_each_row_speaks_of_f_as_its_likelihood_does_near_the_posterior(likelihood):
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 1, (60, 1))
    y = rng.poisson(np.exp(1.0 + X[:, 0])) + (likelihood != "poisson") * 0.5
    model = SparseGPRegressor(likelihood, **HOW | {"n_scales": 1}).fit(X, y)
    posterior, weight = model.posterior_, rng.uniform(0.5, 2.0, 60)
    target = (y - model._scaler.centre[0]) / model._scaler.scale[0]
    rows = GPRows(model._as_rows(model._encoder.as_scaled(X)), target, weight, np.full(60, 0.1))
    residual, noise = residuals_of(GPAverage((posterior,), np.ones(1)), rows)
    m, v = (part[0, :, 0] for part in posterior.moments(rows.X))
    m = m + 0.1
    points, share = np.polynomial.hermite_e.hermegauss(60)
    step = 1e-3

    def expected(mean):
        f = mean[:, None] + np.sqrt(v)[:, None] * points
        log_prob = posterior.likelihood.log_prob(target[:, None], f[..., None], posterior.psi)
        return log_prob @ share / np.sqrt(2 * np.pi)

    slope = (expected(m + step) - expected(m - step)) / (2 * step)
    curve = (expected(m + step) - 2 * expected(m) + expected(m - step)) / step**2
    assert_allclose(residual * (1 / noise / weight), slope, rtol=1e-3, atol=1e-4)
    if likelihood in ("gaussian", "student_t"):
        assert_allclose(residual, target - m, rtol=1e-6, atol=1e-9)
    if likelihood != "student_t":  # whose log p is not concave
        assert_allclose(1 / noise / weight, -curve, rtol=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("likelihood", ["poisson", "laplace"])
def test_rates_and_noisy_values_are_told_by_near_rows(few_are_many, likelihood, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (1300, 1))
    f = 2.0 + np.sin(90 * X[:, 0])
    y = rng.poisson(np.exp(f)) if likelihood == "poisson" else f + rng.laplace(0, 0.2, len(f))
    test = slice(1000, None)
    model = SparseGPRegressor(likelihood, **HOW).fit(X[:1000], y[:1000])
    law = model.predict_distribution(X[test])
    truth = f[test] if likelihood == "laplace" else np.exp(f[test])
    assert np.corrcoef(law.mean, truth)[0, 1] > 0.95
    low, high = law.interval(0.9).T
    inside = (low <= y[test]) & (y[test] <= high)
    assert 0.84 < inside.mean() < 0.97
    assert abs(model.loo_.mean() - law.log_prob(y[test]).mean()) < 0.15
    assert model.holds_training_rows_
    nongauss.save(model, tmp_path / "model.nongauss")
    again = nongauss.load(tmp_path / "model.nongauss")
    assert_allclose(again.predict_distribution(X[test]).log_prob(y[test]), law.log_prob(y[test]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_counts_that_are_no_poisson_ones_keep_their_mean(few_are_many):
    """Visits of patients, mostly none: a wide log rate has the better density, and several times the mean."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (1300, 2))
    mean = np.exp(0.5 + X[:, 0])
    y = rng.poisson(mean * rng.gamma(0.2, 5.0, len(X)))
    model = SparseGPRegressor("poisson", **HOW).fit(X[:1000], y[:1000])
    assert 0.7 < model.predict(X[1000:]).mean() / mean[1000:].mean() < 1.4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_exposure_is_no_part_of_what_near_rows_tell(few_are_many):
    rng = np.random.default_rng(0)
    X, exposure = rng.uniform(0, 1, (1300, 1)), rng.choice([0.1, 10.0], 1300)
    rate = np.exp(1.0 + np.sin(90 * X[:, 0]))
    y = rng.poisson(rate * exposure)
    model = SparseGPRegressor("poisson", **HOW).fit(X[:1000], y[:1000], exposure=exposure[:1000])
    assert model._near is not None
    test = slice(1000, None)
    law = model.predict_distribution(X[test], exposure=exposure[test])
    assert np.corrcoef(np.log(law.mean / exposure[test]), np.log(rate[test]))[0, 1] > 0.9
    assert abs(model.loo_.mean() - law.log_prob(y[test]).mean()) < 0.3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_of_no_weight_tell_nothing_and_are_told(few_are_many):
    X, y = rough(400)
    weight = np.where(np.arange(400) < 300, 1.0, 0.0)
    whole = SparseGPRegressor(**HOW).fit(X, y, sample_weight=weight)
    kept = SparseGPRegressor(**HOW).fit(X[:300], y[:300])
    assert whole._near is not None
    assert_allclose(whole.predict(X), kept.predict(X))
    assert np.isfinite(whole.loo_).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("likelihood", ["gaussian", "student_t"])
def test_rows_that_come_again_are_told_by_their_copies(few_are_many, likelihood):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.sin(X[:, 0]) + 0.5 * rng.normal(size=400)
    train = np.concatenate([np.arange(300), np.arange(120)])
    test = np.concatenate([np.arange(120, 180), np.arange(300, 400)])
    model = SparseGPRegressor(likelihood, **HOW).fit(X[train], y[train])
    law = model.predict_distribution(X[test])
    inside = np.abs(law.cdf(y[test]) - 0.5) < 0.45
    model._near = None
    before = model.predict_distribution(X[test]).log_prob(y[test])
    assert law.log_prob(y[test]).mean() > before.mean() + 0.1
    assert inside.mean() > 0.8


def test_weights_are_counts_where_most_rows_are_there_once():
    assert are_counts(np.array([1.0, 1.0, 3.0, 1.0]))
    assert not are_counts(np.array([1.0, 1.0, 2.5, 1.0]))
    assert not are_counts(np.array([850.0, 900.0, 1.0]))


@pytest.mark.filterwarnings("ignore:.*Reached the largest number of iterations")
def test_what_looks_like_outliers_is_told_by_neighbours():
    """Of some cells of the plane, far above the others, a site of Student-t noise says next to nothing."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(900, 2))
    row, column = np.floor(8.0 * X).astype(int).T
    jump = 4.0 * (rng.uniform(size=(8, 8)) < 0.12)[row, column]
    y = np.sin(3.0 * X[:, 0]) + jump + 0.1 * rng.standard_t(3, 900)
    model = SparseGPRegressor("student_t", n_inducing=10, max_iter=30, random_state=0).fit(X[:600], y[:600])
    law = model.predict_distribution(X[600:])
    error = np.sqrt(np.mean((law.mean - y[600:]) ** 2))
    assert model._near is not None
    assert error < 0.65 * y.std()  # .95 where rows speak by their sites alone
    assert law.log_prob(y[600:]).mean() > -1.3

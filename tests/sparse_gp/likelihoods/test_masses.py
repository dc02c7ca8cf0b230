"""Targets with masses: sums of the models that they are made of, exact laws, recovery, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import expit

import nongauss
from nongauss import SparseGPRegressor
from nongauss.core.errors import InputError
from nongauss.prob.quadrature import gauss_hermite
from nongauss.sparse_gp.kernels import parse
from nongauss.sparse_gp.likelihoods import (
    REGRESSION,
    Bernoulli,
    Beta,
    Gamma,
    HurdleGamma,
    ZeroInflatedNegativeBinomial,
    ZeroInflatedPoisson,
)
from nongauss.sparse_gp.params import GPModel, KernelBlocks, first_sites
from nongauss.sparse_gp.updates import converge_q
from sparse_gp.small import SPACE, params, rows


def test_the_bound_of_a_hurdle_is_the_sum_of_two_models():
    """One of whether y is 0, on all rows, and one of the size, on the others; with their own kernels."""
    data = rows(60)
    rng = np.random.default_rng(0)
    zero = rng.random(60) < expit(data.X[:, 0])
    data = data._replace(y=np.where(zero, 0.0, rng.gamma(3.0, np.exp(data.X[:, 1]))))
    kernels = (parse("matern52"), parse("matern32"))
    psi = np.array([np.log(3.0)])
    both = GPModel(kernels, (0, 1), SPACE, HurdleGamma(), np.array([0.7, -0.4]))
    at = params(both, psi, data.X[:9])

    def converged(own, theta, own_rows, own_psi):
        blocks = KernelBlocks(own, at._replace(thetas=theta, psi=own_psi), own_rows)
        return converge_q(blocks, first_sites(own, own_rows, own_psi), 1e-12, 200)

    q = converged(both, at.thetas, data, psi)
    gate = GPModel(kernels[1:], (0,), SPACE, Bernoulli(), np.array([-0.4]))
    size = GPModel(kernels[:1], (0,), SPACE, Gamma(), np.array([0.7]))
    one = converged(gate, at.thetas[1:], data._replace(y=zero.astype(float)), np.zeros(0))
    other = converged(size, at.thetas[:1], data.take(np.flatnonzero(~zero)), psi)
    assert_allclose(q.bound, one.bound + other.bound, rtol=1e-9)
    assert_allclose(q.latents[0].alpha, other.latents[0].alpha, rtol=1e-4, atol=1e-6)
    assert_allclose(q.latents[1].alpha, one.latents[0].alpha, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("likelihood", [ZeroInflatedPoisson(), ZeroInflatedNegativeBinomial()])
@pytest.mark.parametrize("sd", [0.05, 0.4, 1.5, 4.0])
def test_expectations_over_two_functions_match_a_grid(likelihood, sd):
    psi = np.log([2.0])[: len(likelihood.param_names)]
    y = np.array([0.0, 0.0, 0.0, 1.0, 7.0])
    mean = np.array([[0.0, -1.0], [2.5, 0.5], [-3.0, -6.0], [0.3, 1.0], [2.0, -1.0]])
    variance = np.tile([sd**2, 0.8], (5, 1))
    z = np.linspace(-9.0, 9.0, 901)
    weight = np.exp(-0.5 * z * z) / np.exp(-0.5 * z * z).sum()
    f = np.stack(np.meshgrid(z * sd, z * np.sqrt(0.8), indexing="ij"), axis=-1)
    exact = [
        weight @ likelihood.log_prob(np.array(t), m + f, psi) @ weight for t, m in zip(y, mean, strict=True)
    ]
    assert_allclose(likelihood.expected_log_prob(y, mean, variance, psi).value, exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["hurdle_gamma", "hurdle_log_normal", "zero_one_beta"])
def test_densities_and_masses_integrate_to_one(name):
    likelihood = REGRESSION[name]()
    psi = np.array([np.log(4.0)])
    f = np.array([0.3, -0.4, 0.8])[: likelihood.n_latent]
    y = (
        np.linspace(1e-9, 1.0 - 1e-9, 400_001)
        if name == "zero_one_beta"
        else np.geomspace(1e-12, 1e6, 400_001)
    )
    density = np.exp(likelihood.log_prob(y, np.broadcast_to(f, (len(y), len(f))), psi))
    masses = np.exp(
        likelihood.log_prob(np.array(likelihood.masses), np.tile(f, (len(likelihood.masses), 1)), psi)
    )
    assert_allclose(np.trapezoid(density, y) + masses.sum(), 1.0, atol=1e-5)
    assert_allclose(masses.sum(), expit(f[1]))


@pytest.mark.parametrize("name", ["zero_inflated_poisson", "zero_inflated_negative_binomial"])
def test_probabilities_of_counts_sum_to_one(name):
    likelihood = REGRESSION[name]()
    psi = np.log([2.0])[: len(likelihood.param_names)]
    k = np.arange(3000.0)
    mass = np.exp(likelihood.log_prob(k, np.broadcast_to([1.0, -0.4], (3000, 2)), psi))
    assert_allclose(mass.sum(), 1.0)
    assert mass[0] > expit(-0.4)


def test_a_law_is_the_average_over_both_functions():
    """By draws of f, and then of y."""
    likelihood, psi = HurdleGamma(), np.array([np.log(3.0)])
    mean, variance = np.array([[[0.5, -0.3], [-1.0, 2.0]]]), np.array([[[0.2, 0.6], [0.5, 1.5]]])
    law = likelihood.predictive(mean, variance, psi, scale=2.0)
    rng = np.random.default_rng(0)
    f = mean[0] + np.sqrt(variance[0]) * rng.normal(size=(400_000, 2, 2))
    size = 2.0 * rng.gamma(3.0, np.exp(f[..., 0]) / 3.0)
    y = np.where(rng.random(size.shape) < expit(f[..., 1]), 0.0, size)
    assert_allclose(law.mean, y.mean(axis=0), rtol=0.02)
    assert_allclose(law.std, y.std(axis=0), rtol=0.02)
    for point in (0.0, 0.5, 2.0):
        assert_allclose(law.cdf(point), (y <= point).mean(axis=0), atol=4e-3)
    assert_allclose(np.exp(law.log_prob(0.0)), (y == 0).mean(axis=0), atol=4e-3)
    near = (np.abs(y - 1.0) < 0.05).mean(axis=0) / 0.1
    assert_allclose(np.exp(law.log_prob(1.0)), near, rtol=0.04)
    assert law.quantile(0.5)[1] == 0.0
    assert_allclose(law.quantile(0.5)[0], np.median(y[:, 0]), atol=0.02)


def simulated(name, n, seed):
    """Inputs (n, 2), targets of a law, and their true log density, functions smooth in the inputs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    share = expit(X[:, 1] - 0.5 * X[:, 0])
    at = rng.random(n) < share
    if name == "zero_one_beta":
        mu = expit(f)
        law, one = stats.beta(10 * mu, 10 * (1 - mu)), rng.random(n) < mu
        values, chosen = one.astype(float), np.where(one, np.log(mu), np.log1p(-mu))
    elif name.startswith("hurdle"):
        law = (
            stats.gamma(3, scale=np.exp(f) / 3)
            if name == "hurdle_gamma"
            else stats.lognorm(0.4, scale=np.exp(f))
        )
        values, chosen = np.zeros(n), np.zeros(n)
    else:
        rate = np.exp(1 + f)
        law = stats.poisson(rate) if name == "zero_inflated_poisson" else stats.nbinom(3, 3 / (3 + rate))
        y = np.where(at, 0, law.rvs(random_state=rng)).astype(float)
        return X, y, np.log(share * (y == 0) + (1 - share) * law.pmf(y))
    y = np.where(at, values, law.rvs(random_state=rng))
    return X, y, np.where(at, np.log(share) + chosen, np.log1p(-share) + law.logpdf(y))


LAWS = ["hurdle_gamma", "hurdle_log_normal", "zero_one_beta", "zero_inflated_poisson"]
LAWS += ["zero_inflated_negative_binomial"]


LONGER = ("zero_one_beta", "zero_inflated_negative_binomial")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.gate] if name in LONGER else []) for name in LAWS]
)
def test_a_simulated_law_is_recovered(name):
    """Within .03 nats of the truth at 500 rows (.045 for three functions), with the right share of masses."""
    X, y, _ = simulated(name, 500, 0)
    at, target, truth = simulated(name, 1000, 1)
    model = SparseGPRegressor(name, n_inducing=40, random_state=0).fit(X, y)
    assert model.converged_
    law = model.predict_distribution(at)
    assert np.mean(truth - law.log_prob(target)) < (0.045 if name == "zero_one_beta" else 0.03)
    many = simulated(name, 100_000, 2)[1]
    zero = np.mean(many == 0)
    assert abs(np.mean(law.cdf(0.0)) - zero) < 0.04
    assert abs(np.mean(law.mean) - many.mean()) < 0.1 * many.std()
    assert np.mean((target >= law.quantile(0.05)) & (target <= law.quantile(0.95))) > 0.88


@pytest.mark.parametrize("name", LAWS)
def test_it_is_saved_and_weighted(name, tmp_path):
    X, y, _ = simulated(name, 120, 0)
    weight = np.random.default_rng(0).integers(0, 3, 120)

    def made():
        return SparseGPRegressor(name, n_inducing=8, max_iter=5, random_state=0)

    with pytest.warns(match="largest number"):
        model = made().fit(X, y, sample_weight=weight)
    nongauss.save(model, tmp_path / "m")
    again = nongauss.load(tmp_path / "m").predict_distribution(X)
    law = model.predict_distribution(X)
    for value in (0.0, y[y > 0].min()):
        assert_array_equal(again.log_prob(value), law.log_prob(value))
    with pytest.warns(match="largest number"):
        repeated = made().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(repeated.predict(X), model.predict(X), rtol=1e-6)
    assert set(model.likelihood_params_) == set(REGRESSION[name]().param_names)
    assert any(key.startswith(("mass ", "zero ")) for key in model.kernel_params_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_units_do_not_matter():
    X, y, _ = simulated("hurdle_gamma", 100, 0)
    one = SparseGPRegressor("hurdle_gamma", n_inducing=10, max_iter=10, random_state=0).fit(X, y)
    other = SparseGPRegressor("hurdle_gamma", n_inducing=10, max_iter=10, random_state=0).fit(X, 1024 * y)
    assert_allclose(other.predict_interval(X), 1024 * one.predict_interval(X), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_exposure_multiplies_the_rate_alone():
    rng = np.random.default_rng(0)
    X, hours = rng.uniform(-1, 1, (150, 1)), rng.uniform(0.5, 8, 150)
    y = np.where(rng.random(150) < 0.3, 0, rng.poisson(hours * np.exp(X[:, 0])))
    model = SparseGPRegressor("zero_inflated_poisson", n_inducing=8, max_iter=20, random_state=0)
    model.fit(X, y, exposure=hours)
    one, four = (model.predict_distribution(X[:5], exposure=np.full(5, t)) for t in (1.0, 4.0))
    assert_allclose(four.mean / one.mean, 4.0)


def test_tables_in_parts(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y, _ = simulated("hurdle_gamma", 200, 0)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    frame[:90].to_parquet(tmp_path / "0.parquet")
    frame[90:].to_parquet(tmp_path / "1.parquet")
    here = SparseGPRegressor("hurdle_gamma", n_inducing=10, max_iter=60, random_state=0).fit(
        frame[["a", "b"]], y
    )
    there = SparseGPRegressor("hurdle_gamma", n_inducing=10, max_iter=60, random_state=0).fit(tmp_path, "y")
    table = frame[["a", "b"]]
    assert_allclose(there.predict(table), here.predict(table), rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "y", "message"),
    [
        ("gamma", [1.0, 2.0, 3.0, 0.0], "gamma likelihood needs y above 0, got 0 in row 3.*'hurdle_gamma'"),
        ("exponential", [1.0, 0.0, 3.0, 0.0], "needs y above 0, got 0 in row 1.*'hurdle_gamma'"),
        ("log_normal", [1.0, 0.0, 3.0, 0.5], "'hurdle_gamma' or 'hurdle_log_normal'"),
        ("beta", [0.2, 1.0, 0.3, 0.5], "strictly between 0 and 1, got 1 in row 1.*'zero_one_beta'"),
        ("beta", [0.2, 40.0, 0.3, 0.5], "got 40 in row 1 .* divided by 100"),
        ("poisson", [0.0, 1.5, 3.0, 1.0], "whole number of at least 0, got 1.5 in row 1"),
        ("poisson", [0.0, -2.0, 3.0, 1.0], "got -2 in row 1 .* 'discretised'"),
        ("hurdle_gamma", [0.0, 1.0, -3.0, 1.0], "needs y that is 0 or above 0, got -3 in row 2"),
        ("zero_one_beta", [0.0, 1.0, 0.3, 1.2], "0 or 1 or strictly between 0 and 1, got 1.2 in row 3"),
        ("discretised", [0.0, 1.0, 0.3, 1.2], "needs y that is a whole number, got 0.3 in row 2"),
        ("hurdle_gamma", [0.0, 0.0, 0.0, 0.0], "Every y is 0: the hurdle_gamma likelihood has no row"),
        ("zero_one_beta", [0.0, 1.0, 0.0, 1.0], "Every y is 0 or 1: .* by a classifier"),
        ("zero_inflated_poisson", [0.0, 0.0, 0.0, 0.0], "Every y is 0"),
    ],
)
@pytest.mark.filterwarnings("ignore:The target is constant")
def test_a_target_without_room_is_told_of_a_likelihood_that_has_it(name, y, message):
    with pytest.raises(InputError, match=message):
        SparseGPRegressor(name).fit(np.arange(4.0)[:, None], y)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_single_row_beside_the_masses_is_enough(name):
    y = np.zeros(30)
    y[7] = 0.5 if name == "zero_one_beta" else 2.0
    model = SparseGPRegressor(name, n_inducing=5, max_iter=20, random_state=0).fit(
        np.arange(30.0)[:, None], y
    )
    law = model.predict_distribution(np.arange(30.0)[:, None])
    assert np.isfinite(law.log_prob(y)).all()
    assert np.mean(law.cdf(0.0)) > 0.8


def test_a_mixture_of_modes_is_refused():
    X, y, _ = simulated("hurdle_gamma", 60, 0)
    with pytest.raises(InputError, match="posterior='mixture' is not for the hurdle_gamma likelihood"):
        SparseGPRegressor("hurdle_gamma", posterior="mixture").fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_shares_keep_their_digits_near_the_ends():
    """A share of 1 - 1e-12 is one in 32 bits, whose log density is infinite."""
    rng = np.random.default_rng(0)
    y = np.append(rng.beta(2, 5, 60), [1 - 1e-12, 1e-12])
    X = rng.random((62, 1))
    model = SparseGPRegressor("beta", n_inducing=8, max_iter=30, random_state=0).fit(X, y)
    assert abs(model.predict(X).mean() - y.mean()) < 0.1
    assert isinstance(model.posterior_.likelihood, Beta)
    assert np.isfinite(model.bound_)


@pytest.mark.parametrize("likelihood", [ZeroInflatedPoisson(), ZeroInflatedNegativeBinomial()])
def test_a_zero_among_huge_counts_is_of_the_inflation(likelihood):
    """Of rates up to e^400 it has E log s(f_2): a rate's own probability of 0 takes no part."""
    psi = np.zeros(len(likelihood.bounds()))
    rate = np.array([40.0, 100.0, 250.0, 400.0])
    mean = np.stack([rate, np.full(4, -1.0)], axis=1)
    got = likelihood.own_expectation(np.zeros(4), mean, np.full((4, 2), 0.5), psi, with_params=True)
    x, weight = gauss_hermite(60)
    f = -1.0 + np.sqrt(0.5) * x
    share = 1.0 / (1.0 + np.exp(-f))
    assert_allclose(got.value, weight @ np.log(share), rtol=1e-8)
    assert_allclose(got.d_mean[:, 1], weight @ (1.0 - share), rtol=1e-8)
    assert_allclose(got.d_variance[:, 1], -0.5 * weight @ (share * (1.0 - share)), rtol=1e-7)
    for part in (got.d_mean[:, 0], got.d_variance[:, 0]):
        assert_allclose(part, 0.0, atol=1e-12)


def test_counts_of_a_million_with_zeros_are_fitted():
    """The log density of a row is about that of its Poisson law, and the bound below 0, as of any counts."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.where(rng.random(120) < 0.2, 0, rng.poisson(1e6 * np.exp(np.sin(X[:, 0]))))
    model = SparseGPRegressor("zero_inflated_poisson", random_state=0).fit(X, y)
    assert model.bound_ < 0.0
    assert model.log_density(X, y).mean() > -9.0

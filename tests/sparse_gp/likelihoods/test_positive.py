"""Likelihoods of positive targets and shares: densities against SciPy, domains, limits, predictions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

from nongauss import SparseGPRegressor
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.sparse_gp.likelihoods import Beta, Exponential, Gamma, ZeroOneBeta
from nongauss.sparse_gp.likelihoods.share import expected_shares, trigamma

F = np.array([[0.3], [-2.0], [3.0]])


def test_densities_match_scipy():
    y, mean = np.array([0.2, 1e-3, 60.0]), np.exp(F[:, 0])
    got = Exponential().log_prob(y, F, np.zeros(0))
    np.testing.assert_allclose(got, stats.expon(scale=mean).logpdf(y), rtol=1e-12)
    got = Gamma().log_prob(y, F, np.array([np.log(3.5)]))
    np.testing.assert_allclose(got, stats.gamma(3.5, scale=mean / 3.5).logpdf(y), rtol=1e-12)
    y, mean = np.array([0.2, 1e-3, 0.9999]), special.expit(F[:, 0])
    got = Beta().log_prob(y, F, np.array([np.log(12.0)]))
    np.testing.assert_allclose(got, stats.beta(12 * mean, 12 * (1 - mean)).logpdf(y), rtol=1e-11)


def test_gamma_of_shape_one_is_exponential():
    y, mean, variance = np.array([0.0003, 2.0]), np.array([[0.1], [1.0]]), np.array([[0.2], [3.0]])
    one = Gamma().expected_log_prob(y, mean, variance, np.zeros(1))
    other = Exponential().expected_log_prob(y, mean, variance, np.zeros(0))
    for part, same in zip(one[:3], other[:3], strict=True):
        np.testing.assert_allclose(part, same, rtol=1e-13)


@pytest.mark.parametrize(
    ("likelihood", "y", "rule"),
    [
        (Exponential(), [2.0, 0.0, -3.0], r"exponential likelihood needs y above 0, got 0 in row 1"),
        (Gamma(), [2.0, 0.0, -3.0], r"gamma likelihood needs y above 0, got 0 in row 1"),
        (Beta(), [0.5, 0.2, 1.0], r"beta likelihood needs y strictly between 0 and 1, got 1 in row 2"),
        (Beta(), [0.0, 0.2, 1.0], r"got 0 in row 0"),
    ],
)
def test_targets_outside_the_domain_are_named(likelihood, y, rule):
    with pytest.raises(InputError, match=rule):
        likelihood.check(np.array(y))


def test_first_parameters_follow_the_data():
    rng = np.random.default_rng(0)
    y, weight = rng.gamma(8.0, 3.0 / 8.0, 4000), np.ones(4000)
    offset, psi = Gamma().start(y, weight)
    assert np.exp(offset[0]) == pytest.approx(3.0, rel=0.05)
    assert np.exp(psi[0]) == pytest.approx(16.0, rel=0.1)  # twice what the rows have without their inputs
    offset, psi = Beta().start(rng.beta(3.0, 9.0, 4000), weight)
    assert special.expit(offset[0]) == pytest.approx(0.25, rel=0.05)
    assert np.exp(psi[0]) == pytest.approx(24.0, rel=0.1)


@pytest.mark.parametrize("p", [0.1, 10.0, 1e5])
@pytest.mark.parametrize("mean", [-40.0, -3.0, 0.0, 8.0])
@pytest.mark.parametrize("sd", [0.0, 0.1, 0.349, 0.351, 2.0, 30.0])
def test_shares_match_dense_integration_on_both_sides_of_the_switch(p, mean, sd):
    x = np.linspace(-12, 12, 48_001)
    weight = stats.norm.pdf(x) / stats.norm.pdf(x).sum()
    f = mean + sd * x
    share, rest = special.expit(f), special.expit(-f)
    a, b = 1 + p * share, 1 + p * rest
    slope = share * rest
    pull = p * (special.digamma(a) - special.digamma(b))
    exact = [
        weight @ (special.gammaln(a) + special.gammaln(b) - special.gammaln(1 + p)),
        weight @ (slope * pull),
        weight
        @ (slope * (rest - share) * pull + (p * slope) ** 2 * (special.zeta(2, a) + special.zeta(2, b))),
        weight @ (slope * (rest - share)),
        weight @ (p * (share * special.digamma(a) + rest * special.digamma(b) - special.digamma(1 + p))),
    ]
    got = expected_shares(p, np.array([mean]), np.array([sd**2]))[:, 0]
    np.testing.assert_allclose(got, exact, rtol=1e-9, atol=1e-9 * (1 + p))


def test_trigamma_matches_scipy():
    x = np.concatenate([np.linspace(1.0, 20.0, 2000), np.logspace(1, 8, 200)])
    np.testing.assert_allclose(trigamma(x), special.polygamma(1, x), rtol=1e-11)


@pytest.mark.parametrize(("likelihood", "psi"), [(Exponential(), []), (Gamma(), [np.log(4.0)])])
def test_predictions_come_in_the_units_of_the_target(likelihood, psi):
    mean, variance = np.array([[0.1], [-1.0]]), np.array([[0.2], [1.5]])
    shape = np.exp(psi[0]) if psi else 1.0
    at = likelihood.predictive(mean, variance, np.array(psi), scale=50.0)
    first = 50.0 * np.exp(mean + variance / 2)[:, 0]
    np.testing.assert_allclose(at.mean, first, rtol=1e-12)
    second = first**2 * np.exp(variance[:, 0]) * (1 + 1 / shape)
    np.testing.assert_allclose(at.variance, second - first**2, rtol=1e-10)


def test_the_mean_of_a_share_is_the_expected_logistic():
    mean, variance = np.array([[0.4], [-3.0]]), np.array([[0.5], [4.0]])
    x = np.linspace(-12, 12, 4001)
    weight = stats.norm.pdf(x) / stats.norm.pdf(x).sum()
    at = Beta().predictive(mean, variance, np.array([np.log(9.0)]))
    np.testing.assert_allclose(at.mean, special.expit(mean + np.sqrt(variance) * x) @ weight, rtol=1e-6)


@pytest.mark.parametrize("likelihood", [Exponential(), Gamma(), Beta()], ids=lambda x: x.name)
def test_a_mixture_of_latent_normals_is_averaged(likelihood):
    rng = np.random.default_rng(1)
    mean, variance, y = rng.normal(size=(2, 3, 1)), rng.uniform(0.1, 1, (2, 3, 1)), rng.uniform(0.1, 0.9, 3)
    psi = np.zeros(len(likelihood.param_names))
    both = likelihood.predictive(mean, variance, psi)
    parts = [likelihood.predictive(m, v, psi) for m, v in zip(mean, variance, strict=True)]
    np.testing.assert_allclose(
        np.exp(both.log_prob(y)), np.mean([np.exp(p.log_prob(y)) for p in parts], axis=0), rtol=1e-6
    )


def nearly_constant(spread, middle=1000.0):
    """Inputs, and targets that vary by a share `spread`, without a trend."""
    rng = np.random.default_rng(0)
    return rng.random((150, 1)), middle * (1 + spread * rng.normal(size=150))


@pytest.mark.parametrize(("name", "middle"), [("gamma", 1000.0), ("log_normal", 1000.0), ("beta", 0.5)])
@pytest.mark.parametrize("spread", [0.01, 1e-4])
def test_a_target_that_hardly_varies_has_its_own_spread(name, middle, spread):
    X, y = nearly_constant(spread, middle)
    model = SparseGPRegressor(name, n_inducing=15, random_state=0).fit(X, y)
    assert_allclose(model.predict_distribution(X).std.mean(), y.std(), rtol=0.15)


def test_a_spread_beyond_what_a_likelihood_can_say_is_told():
    X, y = nearly_constant(1e-6, 0.5)
    with pytest.warns(NongaussWarning, match="precision of the beta likelihood is at its limit"):
        SparseGPRegressor("beta", n_inducing=5, random_state=0).fit(X, y)


def test_log_normal_is_the_exact_process_of_the_logarithm():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 1))
    z = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=60)
    log = SparseGPRegressor("gaussian", random_state=0).fit(X, z)
    model = SparseGPRegressor("log_normal", random_state=0).fit(X, 7.0 * np.exp(z))
    assert model.is_exact_
    found = np.log(model.predict_quantiles(X, [0.1, 0.5, 0.9]) / 7.0)
    assert_allclose(found, log.predict_quantiles(X, [0.1, 0.5, 0.9]), atol=2e-3)
    noise = log.likelihood_params_["noise_variance"]
    assert_allclose(model.likelihood_params_["noise_variance_of_log"], noise, rtol=1e-2)
    y = 7.0 * np.exp(z)
    assert_allclose(model.log_density(X, y), log.log_density(X, z) - np.log(y), atol=1e-2)


@pytest.mark.parametrize("middle", [-12.0, 0.0, 12.0])
def test_draws_of_shares_are_shares_however_near_the_ends(middle):
    law = Beta().predictive(np.full((3, 1), middle), np.full((3, 1), 64.0), np.array([np.log(0.5)]))
    draws = law.sample(2000, 0)
    assert (draws > 0.0).all()
    assert (draws < 1.0).all()
    assert np.isfinite(law.log_prob(draws.reshape(3, -1)[:, 0])).all()


def test_draws_of_shares_with_masses_hold_as_many_zeros_as_the_law():
    likelihood = ZeroOneBeta()
    n_latent, psi = likelihood.n_latent, np.full(len(likelihood.param_names), np.log(0.5))
    law = likelihood.predictive(np.full((1, n_latent), -1.0), np.full((1, n_latent), 36.0), psi)
    zeros = (law.sample(20000, 0) == 0.0).mean()
    assert_allclose(zeros, law.cdf(np.zeros(1))[0], atol=0.015)

"""Every predictive distribution against dense integration over f."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit, logsumexp

from nongauss.sparse_gp.likelihoods import HeteroscedasticGaussian
from predictive import laws

M, V = np.array([-0.5, 0.3, 1.2]), np.array([0.05, 0.5, 1.5])
Z = np.linspace(-10, 10, 20_001)
W = np.exp(-0.5 * Z**2) / np.exp(-0.5 * Z**2).sum()

FAMILIES = {
    "gaussian": (laws.gaussian(), lambda f: stats.norm(f, np.sqrt(0.3))),
    "laplace": (laws.laplace(), lambda f: stats.laplace(f, 0.4)),
    "student_t": (laws.student_t(), lambda f: stats.t(3.5, f, 0.4)),
    "exponential": (laws.exponential, lambda f: stats.expon(scale=np.exp(f))),
    "gamma": (laws.gamma(20.0), lambda f: stats.gamma(20.0, scale=np.exp(f) / 20)),
    "beta": (laws.beta(9.0), lambda f: stats.beta(9 * expit(f), 9 * expit(-f))),
    "poisson": (laws.poisson, lambda f: stats.poisson(np.exp(f))),
    "negative_binomial": (laws.negative_binomial(2.5), lambda f: stats.nbinom(2.5, 2.5 / (2.5 + np.exp(f)))),
}
every = pytest.mark.parametrize("name", FAMILIES)


def made(name):
    ours, conditional = FAMILIES[name]
    return ours(M, V), [conditional(m + np.sqrt(v) * Z) for m, v in zip(M, V, strict=True)]


def points(name):
    return {"beta": [0.1, 0.5, 0.93], "poisson": [0, 2, 11], "negative_binomial": [0, 2, 11]}.get(
        name, [0.2, 0.9, 4.0]
    )


@every
def test_density_and_distribution_function(name):
    ours, theirs = made(name)
    for y in points(name):
        density = [(c.logpmf(y) if hasattr(c.dist, "pmf") else c.logpdf(y)) for c in theirs]
        assert_allclose(ours.log_prob(y), [logsumexp(d, b=W) for d in density], atol=2e-6)
        assert_allclose(ours.cdf(y), [c.cdf(y) @ W for c in theirs], atol=2e-6)


@every
def test_moments(name):
    ours, theirs = made(name)
    means = [c.mean() @ W for c in theirs]
    assert_allclose(ours.mean, means, rtol=1e-6)
    second = [(c.var() + c.mean() ** 2) @ W for c in theirs]
    assert_allclose(ours.variance, np.array(second) - np.square(means), rtol=1e-6)


@every
def test_quantiles_invert_the_distribution_function(name):
    ours, _ = made(name)
    levels = np.array([1e-4, 0.05, 0.5, 0.95, 0.9999])
    found = ours.quantile(levels)
    assert found.shape == (3, 5)
    assert (np.diff(found, axis=1) >= 0).all()
    for j, level in enumerate(levels):
        if "poisson" in name or "binomial" in name:
            assert (ours.cdf(found[:, j]) >= level).all()
            assert (ours.cdf(found[:, j] - 1) < level).all()
        else:
            inside = found[:, j] < 1 if name == "beta" else slice(None)  # a share may round to 1
            assert_allclose(ours.cdf(found[:, j])[inside], level, atol=1e-7)


@every
def test_draws_have_the_moments_and_repeat(name):
    ours, _ = made(name)
    draws = ours.sample(40_000, random_state=0)
    assert_allclose(draws.mean(axis=1), ours.mean, atol=6 * ours.std.max() / 200)
    assert (ours.sample(5, random_state=3) == ours.sample(5, random_state=3)).all()


@every
def test_far_out_the_log_density_is_finite(name):
    ours, _ = made(name)
    far = {"beta": 1 - 1e-9, "poisson": 500.0, "negative_binomial": 500.0}.get(name, 60.0)
    assert np.isfinite(ours.log_prob(far)).all()


@every
def test_a_mixture_of_two_normals_is_the_average(name):
    ours = FAMILIES[name][0]
    both = ours(np.stack([M, M + 1]), np.stack([V, V]))
    one, other = ours(M, V), ours(M + 1, V)
    y = points(name)[1]
    assert_allclose(both.log_prob(y), np.logaddexp(one.log_prob(y), other.log_prob(y)) - np.log(2), atol=1e-6)
    assert_allclose(both.mean, 0.5 * (one.mean + other.mean))


@pytest.mark.parametrize("name", ["gaussian", "laplace", "student_t"])
def test_units_and_mirrors(name):
    def make(**units):
        return getattr(laws, name)(**units)(M, V)

    plain, moved = make(), make(centre=5.0, scale=-2.0)
    assert_allclose(moved.mean, 5 - 2 * plain.mean)
    assert_allclose(moved.variance, 4 * plain.variance)
    assert_allclose(moved.log_prob(5 - 2 * 0.7), plain.log_prob(0.7) - np.log(2))
    assert_allclose(moved.cdf(5 - 2 * 0.7), 1 - plain.cdf(0.7), atol=1e-9)
    assert_allclose(moved.quantile(0.1), 5 - 2 * plain.quantile(0.9), atol=1e-6)


def test_heteroscedastic():
    mean, variance = np.stack([M, M - 1], axis=1), np.stack([V, 0.3 * V], axis=1)
    ours = HeteroscedasticGaussian().predictive(mean, variance, np.zeros(0))
    sizes = np.exp(2 * (mean[:, 1:] + np.sqrt(variance[:, 1:]) * Z))
    exact = logsumexp(stats.norm.logpdf(0.4, M[:, None], np.sqrt(V[:, None] + sizes)), b=W, axis=1)
    assert_allclose(ours.log_prob(0.4), exact, atol=1e-6)
    assert_allclose(ours.variance, V + sizes @ W, rtol=1e-6)


def test_large_counts():
    ours = laws.poisson(np.array([np.log(1e6)]), np.array([1e-8]))
    assert_allclose(ours.mean, 1e6, rtol=1e-6)
    low, high = ours.interval(0.9)[0]
    assert_allclose([low, high], stats.poisson(1e6).interval(0.9), atol=30)

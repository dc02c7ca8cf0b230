"""The law of y by integration over f, for likelihoods that only these tests have."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from nongauss.predictive.law import GridDistribution, LatentDistribution, gaussian_noise_mixture

M, V = np.array([-0.5, 0.3, 1.2]), np.array([0.05, 0.5, 1.5])
PSI = np.log([0.6])


class Normal:
    """y ~ N(f, e^{2 psi}): its law is known, N(m, v + e^{2 psi})."""

    support = "real"

    def at(self, rows):
        return self

    def log_prob(self, y, f, psi):
        return stats.norm.logpdf(y, f[..., 0], np.exp(psi[0]))

    def cdf(self, y, f, psi):
        return stats.norm.cdf(y, f[..., 0], np.exp(psi[0]))

    def draw(self, f, psi, rng):
        return rng.normal(f[..., 0], np.exp(psi[0]))

    def moments(self, mean, variance, psi):
        return mean[..., 0], variance[..., 0] + np.exp(2 * psi[0])

    def sharpness(self, mean, sd, psi):
        return np.full(mean.shape[:-1], np.exp(-psi[0]))


class LogNormal(Normal):
    """log y ~ N(f, e^{2 psi}): a positive target."""

    support = "positive"

    def log_prob(self, y, f, psi):
        return super().log_prob(np.log(y), f, psi) - np.log(y)

    def cdf(self, y, f, psi):
        return super().cdf(np.log(y), f, psi)

    def draw(self, f, psi, rng):
        return np.exp(super().draw(f, psi, rng))

    def moments(self, mean, variance, psi):
        m, v = super().moments(mean, variance, psi)
        return np.exp(m + v / 2), np.expm1(v) * np.exp(2 * m + v)


def laws():
    sd = np.sqrt(V + 0.36)
    yield LatentDistribution(Normal(), PSI, M, V), stats.norm(M, sd)
    yield LatentDistribution(Normal(), PSI, M, V, centre=5.0, scale=2.0), stats.norm(5 + 2 * M, 2 * sd)
    yield LatentDistribution(Normal(), PSI, M, V, centre=5.0, scale=-2.0), stats.norm(5 - 2 * M, 2 * sd)
    yield LatentDistribution(LogNormal(), PSI, M, V, scale=3.0), stats.lognorm(sd, scale=3 * np.exp(M))


@pytest.mark.parametrize(("ours", "exact"), laws(), ids=["plain", "units", "mirrored", "positive"])
def test_a_likelihood_that_says_five_things_has_a_law_in_any_unit(ours, exact):
    y = exact.mean() + 0.3 * exact.std()
    assert_allclose(ours.log_prob(y), exact.logpdf(y), atol=1e-6)
    assert_allclose(ours.cdf(y), exact.cdf(y), atol=1e-6)
    assert_allclose(ours.mean, exact.mean())
    assert_allclose(ours.variance, exact.var())
    assert_allclose(ours.quantile([0.1, 0.7]), np.stack([exact.ppf(0.1), exact.ppf(0.7)], axis=1), rtol=1e-5)
    assert_allclose(np.median(ours.sample(40_000, random_state=0), axis=1), exact.median(), rtol=0.05)


def test_two_latent_components_are_averaged():
    both = LatentDistribution(Normal(), PSI, np.stack([M, M + 1]), np.stack([V, V]))
    one, other = (LatentDistribution(Normal(), PSI, m, V) for m in (M, M + 1))
    assert_allclose(both.log_prob(0.4), np.logaddexp(one.log_prob(0.4), other.log_prob(0.4)) - np.log(2))
    assert_allclose(both.mean, M + 0.5)
    assert_allclose(both.variance, V + 0.36 + 0.25)


def test_log_prob_alone_is_enough_on_a_grid():
    ours = GridDistribution(lambda y, f: stats.norm.logpdf(y, f, 0.6), "real", M, V)
    exact = stats.norm(M, np.sqrt(V + 0.36))
    assert_allclose(ours.log_prob(0.4), exact.logpdf(0.4), atol=1e-3)
    assert_allclose(ours.interval(0.9), np.stack(exact.interval(0.9), axis=1), atol=5e-3)


def test_noise_of_two_sizes_is_a_mixture_of_two_gaussians():
    noise = np.array([0.1, 4.0])
    ours = gaussian_noise_mixture(
        M, V, lambda rows: noise, np.log([0.75, 0.25]), 0.75 * 0.1 + 0.25 * 4, centre=1.0, scale=2.0
    )
    y = 1.7
    exact = [stats.norm.pdf(y, 1 + 2 * M, 2 * np.sqrt(V + size)) for size in noise]
    assert_allclose(ours.log_prob(y), np.log(0.75 * exact[0] + 0.25 * exact[1]))
    assert_allclose(ours.variance, 4 * (V + 1.075))

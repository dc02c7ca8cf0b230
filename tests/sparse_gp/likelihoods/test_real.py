"""Likelihoods of real targets: densities against SciPy; narrow peaks, kinks, two functions; predictions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, special, stats

from nongauss.prob.quadrature import gauss_hermite
from nongauss.sparse_gp.likelihoods import Gaussian, HeteroscedasticGaussian, Laplace, StudentT
from nongauss.sparse_gp.likelihoods.base import weighted_median
from nongauss.sparse_gp.likelihoods.heavy_tailed import expected_log_tail

Y, F = np.array([-3.0, 0.1, 40.0]), np.array([[0.3], [-1.0], [2.0]])
ONE = [
    (Gaussian(), [np.log(0.3)], lambda f: stats.norm(f, np.sqrt(0.3))),
    (Laplace(), [np.log(0.4)], lambda f: stats.laplace(f, 0.4)),
    (StudentT(), [np.log(0.2), np.log(3.5)], lambda f: stats.t(3.5, f, 0.2)),
]
TWO = (HeteroscedasticGaussian(), [], None)


@pytest.mark.parametrize(("likelihood", "psi", "noise"), ONE, ids=lambda x: getattr(x, "name", ""))
def test_densities_match_scipy(likelihood, psi, noise):
    got = likelihood.log_prob(Y, F, np.array(psi))
    np.testing.assert_allclose(got, noise(F[:, 0]).logpdf(Y), rtol=1e-12)


def test_the_second_function_is_the_log_standard_deviation():
    f = np.array([[0.3, -1.0], [-1.0, 0.5], [2.0, 2.0]])
    got = HeteroscedasticGaussian().log_prob(Y, f, np.zeros(0))
    np.testing.assert_allclose(got, stats.norm(f[:, 0], np.exp(f[:, 1])).logpdf(Y), rtol=1e-12)


@pytest.mark.parametrize("variance", [1e-6, 0.01, 1.0])
def test_varying_noise_matches_integration_over_both_functions(variance):
    x, weight = gauss_hermite(60)
    both = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)
    mean, spread = np.array([0.4, -0.8]), variance * np.array([1.0, 0.5])
    likelihood = HeteroscedasticGaussian()
    values = likelihood.log_prob(np.array(1.5), mean + np.sqrt(spread) * both, np.zeros(0))
    got = likelihood.expected_log_prob(np.array([1.5]), mean[None], spread[None], np.zeros(0)).value[0]
    assert got == pytest.approx(weight @ values @ weight, rel=1e-10)


@pytest.mark.parametrize("variance", [1e-8, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize("mean", [-3.0, 0.0, 0.2, 5.0])
def test_laplace_matches_quadrature_around_its_kink(mean, variance):
    b, y, sd = 0.05, 0.2, np.sqrt(variance)

    def integrand(x):
        return stats.norm.pdf(x) * (-np.log(2 * b) - abs(y - mean - sd * x) / b)

    kink = float(np.clip((y - mean) / sd, -40, 40))
    edges = np.unique([-40.0, kink, *np.clip([-8.0, 0.0, 8.0], -40, 40), 40.0])
    exact = sum(integrate.quad(integrand, *pair, epsabs=1e-12)[0] for pair in pairwise(edges))
    got = (
        Laplace()
        .expected_log_prob(np.array([y]), np.array([[mean]]), np.array([[variance]]), np.array([np.log(b)]))
        .value
    )
    assert got[0] == pytest.approx(exact, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("square", [0.0, 1e-6, 1.0, 1e4, 1e9])
@pytest.mark.parametrize("spread", [0.0, 1e-6, 0.1, 10.0, 1e4, 1e9])
def test_the_tail_of_student_t_is_accurate_at_every_width(square, spread):
    """Panels of Gauss-Legendre points that grow away from the peak at z = 0, over 13 sds."""
    got = [part[0] for part in expected_log_tail(np.array([square]), np.array([spread]))]
    m, sd = np.sqrt(square), np.sqrt(spread)
    if spread == 0.0:
        exact = np.log1p(square), 1 / (1 + square), (1 - square) / (1 + square) ** 2
    else:
        far = np.geomspace(1e-3, 1e6, 600)
        edges = np.concatenate([-far[::-1], far, m + sd * np.linspace(-13, 13, 600)])
        edges = np.unique(edges[(edges >= m - 13 * sd) & (edges <= m + 13 * sd)])
        x, w = np.polynomial.legendre.leggauss(10)
        half = 0.5 * np.diff(edges)[:, None]
        z = edges[:-1, None] + half * (1 + x)
        mass = half * w * stats.norm.pdf(z, m, sd)
        # d/dm^2 = E[z / (1 + z^2)] / m; written for m = 0 too: E[z (z - m)] = v E[derivative]
        curve = (mass * (1 - z * z) / (1 + z * z) ** 2).sum()
        slope = (mass * z / (1 + z * z)).sum() / m if m > 0 else curve
        exact = (mass * np.log1p(z * z)).sum(), slope, curve
    np.testing.assert_allclose(got, exact, rtol=1e-8, atol=5e-9)


def test_student_t_tends_to_the_gaussian():
    psi = np.array([np.log(0.5), np.log(1e7)])
    y, mean, variance = np.array([0.3, -2.0]), np.array([[0.0], [1.0]]), np.array([[0.1], [2.0]])
    got = StudentT().expected_log_prob(y, mean, variance, psi)
    exact = Gaussian().expected_log_prob(y, mean, variance, np.array([np.log(0.25)]))
    np.testing.assert_allclose(got.d_mean, exact.d_mean, rtol=1e-4)
    np.testing.assert_allclose(got.d_variance, exact.d_variance, rtol=1e-4)


def test_an_outlier_pulls_little():
    y, one = np.array([1.0, 100.0]), np.ones((2, 1))
    psi = np.array([np.log(0.3), np.log(4.0)])
    near, far = StudentT().expected_log_prob(y, 0 * one, 0.01 * one, psi).d_mean[:, 0]
    assert 0 < far < 0.05 * near
    near, far = Laplace().expected_log_prob(y, 0 * one, 0.01 * one, psi[:1]).d_mean[:, 0]
    assert near == pytest.approx(far)


@pytest.mark.parametrize(("df", "near"), [(2.05, 1e-6), (3.5, 1e-5), (8.0, 1e-3), (20.0, 0.05)])
@pytest.mark.parametrize("sd", [1e-6, 0.7])
def test_an_absurd_outlier_is_as_likely_as_the_tail_of_student_t_says(df, near, sd):
    """Against quadrature over f, up to a billion scales away; not as a Gaussian says."""
    f, weight = gauss_hermite(200)
    y = 0.4 * np.array([1.0, 10.0, 1e3, 1e6, 1e9])
    one, noise = np.ones((len(y), 1)), stats.t(df, sd * f, 0.4)
    law = StudentT().predictive(0.0 * one, sd**2 * one, np.log([0.4, df]))
    with np.errstate(divide="ignore"):
        weight = np.log(weight)
    density, tail = (
        special.logsumexp(part(y[:, None]) + weight, axis=1) for part in (noise.logpdf, noise.logsf)
    )
    np.testing.assert_allclose(law.log_prob(y), density, atol=near)
    np.testing.assert_allclose(np.log(law.survival(y)), tail, atol=near)
    np.testing.assert_allclose(np.log(law.cdf(-y)), tail, atol=near)
    np.testing.assert_allclose(law.cdf(y), -np.expm1(tail), rtol=1e-7)


def test_an_absurd_outlier_of_laplace_noise_has_an_exponential_tail():
    y, b, v = np.array([100.0, 1e6, 1e9]), 0.4, 0.5
    law = Laplace().predictive(np.zeros((3, 1)), np.full((3, 1), v), np.log([b]))
    np.testing.assert_allclose(law.log_prob(y), v / (2 * b * b) - y / b - np.log(2 * b), rtol=1e-14)


@pytest.mark.parametrize(("likelihood", "psi", "noise"), [*ONE, TWO], ids=lambda x: getattr(x, "name", ""))
@pytest.mark.parametrize("scale", [2.0, -5.0])
def test_predictions_come_in_the_units_of_the_target(likelihood, psi, noise, scale):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(4, likelihood.n_latent)) * 0.3
    variance = rng.uniform(0.05, 0.3, mean.shape)
    plain = likelihood.predictive(mean, variance, np.array(psi))
    moved = likelihood.predictive(mean, variance, np.array(psi), centre=7.0, scale=scale)
    np.testing.assert_allclose(moved.mean, 7.0 + scale * plain.mean, rtol=1e-12)
    np.testing.assert_allclose(moved.std, abs(scale) * plain.std, rtol=1e-12)
    y = rng.normal(size=4)
    np.testing.assert_allclose(
        moved.log_prob(7.0 + scale * y), plain.log_prob(y) - np.log(abs(scale)), rtol=1e-9
    )
    np.testing.assert_allclose(plain.mean, mean[:, 0], rtol=1e-12)
    if noise is not None:
        np.testing.assert_allclose(plain.variance, variance[:, 0] + noise(0.0).var(), rtol=1e-9)


@pytest.mark.parametrize(("likelihood", "psi", "noise"), [*ONE, TWO], ids=lambda x: getattr(x, "name", ""))
def test_a_mixture_of_latent_normals_is_averaged(likelihood, psi, noise):
    rng = np.random.default_rng(1)
    mean, variance = (
        rng.normal(size=(2, 3, likelihood.n_latent)),
        rng.uniform(0.1, 1, (2, 3, likelihood.n_latent)),
    )
    y = rng.normal(size=3)
    both = likelihood.predictive(mean, variance, np.array(psi))
    parts = [likelihood.predictive(m, v, np.array(psi)) for m, v in zip(mean, variance, strict=True)]
    np.testing.assert_allclose(both.mean, np.mean([p.mean for p in parts], axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        np.exp(both.log_prob(y)), np.mean([np.exp(p.log_prob(y)) for p in parts], axis=0), rtol=1e-9
    )


def test_the_median_counts_weights_and_ignores_outliers():
    assert weighted_median(np.array([5.0, 1.0, 1e9]), np.ones(3)) == 5.0
    assert weighted_median(np.array([5.0, 1.0, 2.0, 1e9]), np.ones(4)) == 3.5
    assert weighted_median(np.array([5.0, 1.0, 1e9]), np.array([1.0, 4.0, 1.0])) == 1.0
    assert weighted_median(np.array([4.0]), np.array([0.1])) == 4.0

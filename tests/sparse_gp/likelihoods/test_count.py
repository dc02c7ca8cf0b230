"""Likelihoods of counts: probabilities against SciPy, domains, huge and missing counts, predictions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nongauss.core.errors import InputError
from nongauss.sparse_gp.likelihoods import NegativeBinomial, Poisson

Y, F = np.array([0.0, 3.0, 1e5]), np.array([[-0.5], [1.5], [11.0]])


def test_probabilities_match_scipy():
    rate = np.exp(F[:, 0])
    got = Poisson().log_prob(Y, F, np.zeros(0))
    np.testing.assert_allclose(got, stats.poisson(rate).logpmf(Y), rtol=1e-9)
    for r in (0.1, 3.0, 400.0):
        got = NegativeBinomial().log_prob(Y, F, np.array([np.log(r)]))
        np.testing.assert_allclose(got, stats.nbinom(r, r / (r + rate)).logpmf(Y), rtol=1e-9)


def test_negative_binomial_tends_to_poisson():
    y, mean, variance = np.array([0.0, 4.0]), np.array([[-1.0], [1.2]]), np.array([[0.3], [1.5]])
    got = NegativeBinomial().expected_log_prob(y, mean, variance, np.array([np.log(1e8)]))
    exact = Poisson().expected_log_prob(y, mean, variance, np.zeros(0))
    for part, same in zip(got[:3], exact[:3], strict=True):
        np.testing.assert_allclose(part, same, rtol=1e-5)


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial()], ids=lambda x: x.name)
@pytest.mark.parametrize(("bad", "shown"), [(1.5, "1.5"), (-1.0, "-1")])
def test_targets_that_are_no_counts_are_named(likelihood, bad, shown):
    rule = rf"{likelihood.name} likelihood needs y that is a whole number of at least 0, got {shown} in row 2"
    with pytest.raises(InputError, match=rule):
        likelihood.check(np.array([0.0, 7.0, bad, -9.0]))


def test_no_counts_at_all_give_a_small_positive_rate():
    for likelihood in (Poisson(), NegativeBinomial()):
        offset, psi = likelihood.start(np.zeros(50), np.ones(50))
        assert np.exp(offset[0]) == pytest.approx(0.01)
        at = likelihood.expected_log_prob(np.zeros(50), np.tile(offset, (50, 1)), np.ones((50, 1)), psi)
        assert np.isfinite(at.value).all()


def test_huge_counts_start_where_they_are():
    y = np.array([9.9e4, 1.01e5])
    offset, _ = Poisson().start(y, np.ones(2))
    mean, variance = Poisson().first_moments(y, np.tile(offset, (2, 1)))
    at = Poisson().expected_log_prob(y, mean, variance, np.zeros(0))
    np.testing.assert_allclose(-2 * at.d_variance[:, 0], y, rtol=1e-4)  # the site's precision
    assert np.all(np.abs(at.d_mean[:, 0]) < 1.5)


def test_first_dispersion_follows_the_data():
    rng = np.random.default_rng(0)
    counts = rng.negative_binomial(2.0, 2.0 / (2.0 + 6.0), 20_000).astype(float)
    offset, psi = NegativeBinomial().start(counts, np.ones(len(counts)))
    assert np.exp(offset[0]) == pytest.approx(6.0, rel=0.05)
    assert np.exp(psi[0]) == pytest.approx(4.0, rel=0.1)  # twice what the rows have without their inputs


@pytest.mark.parametrize(("likelihood", "psi"), [(Poisson(), []), (NegativeBinomial(), [np.log(3.0)])])
def test_predictions_are_counts_with_the_exact_moments(likelihood, psi):
    mean, variance = np.array([[0.1], [2.0]]), np.array([[0.2], [0.5]])
    at = likelihood.predictive(mean, variance, np.array(psi))
    first = np.exp(mean + variance / 2)[:, 0]
    extra = 1.0 + 1.0 / np.exp(psi[0]) if psi else 1.0
    second = first + first**2 * np.exp(variance[:, 0]) * extra
    np.testing.assert_allclose(at.mean, first, rtol=1e-12)
    np.testing.assert_allclose(at.variance, second - first**2, rtol=1e-10)
    assert at.log_prob(np.array([1.5, -1.0])).tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize(("likelihood", "psi"), [(Poisson(), []), (NegativeBinomial(), [np.log(3.0)])])
def test_a_mixture_of_latent_normals_is_averaged(likelihood, psi):
    rng = np.random.default_rng(1)
    mean, variance, y = rng.normal(size=(2, 3, 1)), rng.uniform(0.1, 1, (2, 3, 1)), np.array([0.0, 1.0, 4.0])
    both = likelihood.predictive(mean, variance, np.array(psi))
    parts = [likelihood.predictive(m, v, np.array(psi)) for m, v in zip(mean, variance, strict=True)]
    np.testing.assert_allclose(
        np.exp(both.log_prob(y)), np.mean([np.exp(p.log_prob(y)) for p in parts], axis=0), rtol=1e-6
    )


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial()], ids=lambda x: x.name)
def test_moments_of_an_absurdly_unsure_rate_are_numbers(likelihood):
    psi = np.zeros(len(likelihood.bounds()))
    for mean, variance in ((0.0, 1.0), (-800.0, 800.0), (600.0, 5000.0)):
        first, second = likelihood.moments(np.full((1, 1), mean), np.full((1, 1), variance), psi)
        assert np.isfinite(first).all()
        assert np.isfinite(second).all()
    rate, over = np.exp(0.5), np.expm1(1.0) + (np.exp(1.0) if len(psi) else 0.0)
    first, second = likelihood.moments(np.zeros((1, 1)), np.ones((1, 1)), psi)
    np.testing.assert_allclose([first[0], second[0]], [rate, rate + rate**2 * over])

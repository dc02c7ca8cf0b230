"""Likelihoods of labels: probabilities that sum to 1 everywhere, ordered classes, bounds of the softmax."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from nongauss.core.errors import InputError
from nongauss.sparse_gp.likelihoods import Bernoulli, Multinomial, Ordinal

NONE = np.zeros(0)


def expected(function, mean, variance):
    """E function(f) by the trapezoid rule."""
    x = np.linspace(-12, 12, 8001)
    weight = stats.norm.pdf(x) / stats.norm.pdf(x).sum()
    return function(mean + np.sqrt(variance) * x) @ weight


def test_bernoulli_probabilities_are_expected_logistic_values():
    mean, variance = np.array([[-2.0], [0.3], [700.0]]), np.array([[0.2], [30.0], [1.0]])
    got = Bernoulli().probabilities(mean, variance, NONE)
    for row in range(2):
        assert got[row, 1] == pytest.approx(expected(special.expit, mean[row, 0], variance[row, 0]), abs=1e-9)
    assert np.isfinite(np.log(got)).all()
    np.testing.assert_allclose(got.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("n_pieces", [3, 8, 20])
def test_more_pieces_are_a_tighter_bound(n_pieces):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200).astype(float)
    mean, variance = rng.normal(0, 3, (200, 1)), rng.gamma(1.0, 2.0, (200, 1))
    exact = Bernoulli().expected_log_prob(y, mean, variance, NONE).value
    coarse = (
        Bernoulli(expectation="piecewise", n_pieces=n_pieces).expected_log_prob(y, mean, variance, NONE).value
    )
    error = {3: 0.0510015, 8: 0.00275530, 20: 0.000142143}[n_pieces]
    assert np.all((exact - coarse >= -1e-9) & (exact - coarse <= error + 1e-9))


@pytest.mark.parametrize("n_pieces", [1, 21])
def test_pieces_that_are_not_there_are_refused(n_pieces):
    with pytest.raises(InputError, match=f"n_pieces must be a whole number from 2 to 20, got {n_pieces}"):
        Bernoulli(n_pieces=n_pieces)


@pytest.mark.parametrize(
    ("likelihood", "y", "got"),
    [
        (Bernoulli(), [0.0, 1.0, -1.0], "0 to 1, got -1 in row 2"),
        (Multinomial(n_classes=3), [0.0, 1.5], "0 to 2, got 1.5 in row 1"),
        (Ordinal(n_classes=4), [4.0, 1.0], "0 to 3, got 4 in row 0"),
    ],
)
def test_labels_beyond_the_classes_are_named(likelihood, y, got):
    with pytest.raises(InputError, match=f"{likelihood.name} likelihood needs y .* from {got}"):
        likelihood.check(np.array(y))


def test_multinomial_log_prob_is_the_log_softmax():
    f = np.random.default_rng(0).normal(size=(4, 3)) * 300
    y = np.array([0.0, 1.0, 2.0, 0.0])
    exact = special.log_softmax(f, axis=1)[np.arange(4), y.astype(int)]
    np.testing.assert_allclose(Multinomial(n_classes=3).log_prob(y, f, NONE), exact, rtol=1e-12)


@pytest.mark.parametrize("way", [way for way in Multinomial.own_rules if way != "monte_carlo"])
def test_bounds_of_the_softmax_lie_below_and_know_their_derivatives(way):
    rng = np.random.default_rng(0)
    likelihood = Multinomial(n_classes=4, expectation=way)
    y = rng.integers(0, 4, 50).astype(float)
    mean, variance = rng.normal(size=(50, 4)), rng.uniform(0.05, 0.8, (50, 4))
    draws = mean[:, None] + np.sqrt(variance)[:, None] * rng.standard_normal((50, 20_000, 4))
    logs = likelihood.log_prob(y[:, None], draws, NONE)
    at = likelihood.expected_log_prob(y, mean, variance, NONE)
    assert np.all(at.value <= logs.mean(axis=1) + 4 * logs.std(axis=1) / np.sqrt(20_000))
    step = 1e-5
    for l, unit in enumerate(np.eye(4)):
        up, down = (
            likelihood.expected_log_prob(y, mean + s * unit, variance, NONE).value for s in (step, -step)
        )
        np.testing.assert_allclose(at.d_mean[:, l], (up - down) / (2 * step), atol=1e-6)
        up, down = (
            likelihood.expected_log_prob(y, mean, variance + s * unit, NONE).value for s in (step, -step)
        )
        np.testing.assert_allclose(at.d_variance[:, l], (up - down) / (2 * step), atol=1e-6)


def test_multinomial_of_two_classes_is_bernoulli():
    y, mean, variance = (
        np.array([0.0, 1.0]),
        np.array([[0.4, -1.0], [2.0, 0.1]]),
        np.array([[0.3, 0.4], [1.0, 2.0]]),
    )
    at = Multinomial(n_classes=2, expectation="one_vs_each").expected_log_prob(y, mean, variance, NONE)
    gap, spread = mean[:, 1:] - mean[:, :1], variance.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(at.value, Bernoulli().expected_log_prob(y, gap, spread, NONE).value, rtol=1e-9)
    got = Multinomial(n_classes=2).probabilities(mean, variance, NONE)
    np.testing.assert_allclose(got, Bernoulli().probabilities(gap, spread, NONE), atol=2e-3)


def test_ordinal_log_prob_is_a_difference_of_cumulative_logistics():
    likelihood, psi = Ordinal(n_classes=5), np.array([-1.5, 0.1, -3.0, 0.7])
    edges = np.r_[-np.inf, likelihood.cuts(psi), np.inf]
    y, f = np.arange(5.0), np.linspace(-4, 4, 9)
    exact = np.log(np.diff(special.expit(edges - f[:, None]), axis=1))
    np.testing.assert_allclose(likelihood.log_prob(y, f[:, None, None], psi), exact, rtol=1e-9)


def test_ordinal_log_prob_is_finite_far_out():
    likelihood, psi = Ordinal(n_classes=4), np.array([-1.0, -9.0, 2.0])
    y, f = np.arange(4.0), np.array([-1e3, -40.0, 0.0, 40.0, 1e3])
    assert np.isfinite(likelihood.log_prob(y, f[:, None, None], psi)).all()
    for variance in (1e-8, 1.0, 1e3):
        probabilities = likelihood.probabilities(f[:, None], np.full((5, 1), variance), psi)
        assert np.isfinite(np.log(probabilities)).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)


def test_ordinal_probabilities_match_integration_in_both_tails():
    likelihood, psi = Ordinal(n_classes=4), np.array([-1.0, 0.3, -4.0])
    for mean, variance in ((-12.0, 0.5), (0.2, 2.0), (15.0, 1.0), (0.0, 50.0)):
        got = likelihood.probabilities(np.array([[mean]]), np.array([[variance]]), psi)[0]

        def values(f):
            return np.exp(likelihood.log_prob(np.arange(4.0)[:, None], f[:, None], psi))

        np.testing.assert_allclose(got, expected(values, mean, variance), rtol=1e-6, atol=1e-13)


def test_a_middle_class_that_nobody_has_seen_keeps_a_place():
    y = np.repeat([0.0, 1.0, 3.0, 4.0], 15)
    likelihood = Ordinal(n_classes=5)
    offset, psi = likelihood.start(y, np.ones(60))
    at = likelihood.expected_log_prob(y, np.tile(offset, (60, 1)), np.ones((60, 1)), psi, with_params=True)
    assert all(np.isfinite(part).all() for part in at)
    probabilities = likelihood.probabilities(np.zeros((1, 1)), np.ones((1, 1)), psi)[0]
    assert 0 < probabilities[2] < 0.05
    assert np.all(np.diff(likelihood.cuts(np.array([0.0, -9.0, -9.0, -9.0]))) >= 1e-3)


def test_first_cut_points_reproduce_the_shares():
    y = np.repeat([0.0, 1.0, 2.0], [100, 300, 600])
    likelihood = Ordinal(n_classes=3)
    _, psi = likelihood.start(y, np.ones(1000))
    shares = np.exp(likelihood.log_prob(np.arange(3.0), np.zeros((3, 1)), psi))
    np.testing.assert_allclose(shares, [0.1, 0.3, 0.6], atol=2e-3)


@pytest.mark.parametrize(
    ("likelihood", "psi"),
    [(Bernoulli(), []), (Multinomial(n_classes=3), []), (Ordinal(n_classes=3), [-0.5, 0.2])],
    ids=["bernoulli", "multinomial", "ordinal"],
)
def test_a_mixture_of_latent_normals_is_averaged(likelihood, psi):
    rng = np.random.default_rng(1)
    shape = (2, 7, likelihood.n_latent)
    mean, variance = rng.normal(size=shape), rng.uniform(0.1, 1, shape)
    both = likelihood.probabilities(mean, variance, np.array(psi))
    parts = [likelihood.probabilities(m, v, np.array(psi)) for m, v in zip(mean, variance, strict=True)]
    np.testing.assert_allclose(both, np.mean(parts, axis=0), rtol=1e-12)
    np.testing.assert_allclose(both.sum(axis=1), 1.0, atol=1e-12)

"""The probit integral against draws, a fine rule and closed forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import log_ndtr, ndtr

from nongauss.core.device import double_precision
from nongauss.prob import probit


@pytest.fixture(autouse=True)
def _float64():
    with double_precision():
        yield


log_probabilities = jax.jit(probit.log_probabilities, static_argnames="n_points")


def fine(mean, sd):
    """The same integrals by a trapezoid rule with 20,000 points on a range of its own for each class."""
    out = []
    for own in range(len(mean)):
        t = np.linspace(mean[own] - 12 * sd[own], mean[own] + 12 * sd[own], 20_000)
        others = np.prod(
            [ndtr((t - m) / s) for k, (m, s) in enumerate(zip(mean, sd, strict=True)) if k != own], 0
        )
        out.append(others @ stats.norm.pdf(t, mean[own], sd[own]) * (t[1] - t[0]))
    return np.array(out)


@pytest.mark.parametrize(("n_points", "limit"), [(24, 1e-6), (64, 1e-8)])
def test_against_a_fine_rule(n_points, limit):
    rng = np.random.default_rng(0)
    for n_classes in (3, 5, 20):
        mean, sd = 2.0 * rng.normal(size=n_classes), np.exp(rng.uniform(-0.5, 0.5, n_classes))
        got = np.exp(log_probabilities(mean, sd**2, n_points=n_points))
        assert_allclose(got, fine(mean, sd), atol=limit)
        assert_allclose(got.sum(), 1.0, rtol=1e-12)


def test_against_draws():
    mean, variance = np.array([0.3, -0.2, 1.0, 0.1]), np.array([1.0, 3.0, 0.5, 2.0])
    draws = np.random.default_rng(0).normal(mean, np.sqrt(variance), (400_000, 4)).argmax(axis=1)
    shares = np.bincount(draws) / len(draws)
    assert_allclose(np.exp(log_probabilities(mean, variance)), shares, atol=5 * 0.5 / np.sqrt(len(draws)))


def test_two_classes_are_one_output():
    mean, variance = np.array([-1.3]), np.array([2.0])
    at = -1.3 / np.sqrt(2.0)
    assert_allclose(log_probabilities(mean, variance), [log_ndtr(-at), log_ndtr(at)], rtol=1e-13)


def test_far_classes_stay_finite_and_keep_their_slope():
    mean = np.array([30.0, 0.0, -30.0])
    value, slope = jax.jit(jax.value_and_grad(lambda m: probit.log_probabilities(m, jnp.ones(3))[2]))(mean)
    assert np.isfinite(value)
    assert value < -600.0
    assert slope[0] < 0.0 < slope[2]


def test_the_slope_is_that_of_the_integral():
    mean, variance = np.array([0.3, -0.2, 1.0]), np.array([1.0, 3.0, 0.5])
    slopes = jax.jit(jax.jacobian(probit.log_probabilities, argnums=(0, 1)))(mean, variance)
    for slope, at in zip(slopes, (0, 1), strict=True):
        for k in range(3):
            ends = []
            for sign in (1.0, -1.0):
                moved = [mean.copy(), variance.copy()]
                moved[at][k] += sign * 1e-5
                ends.append(np.log(fine(moved[0], np.sqrt(moved[1]))))
            assert_allclose(slope[:, k], (ends[0] - ends[1]) / 2e-5, atol=2e-5)

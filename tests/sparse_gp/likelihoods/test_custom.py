"""A likelihood that is one function: the same answers as ours where we have it, and clear errors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gammaln

from nongauss.core.errors import InputError
from nongauss.core.records import is_persistable
from nongauss.sparse_gp.likelihoods import Beta, Custom, Gaussian, Poisson

NONE = np.zeros(0)


def poisson(y, f):
    return y * f - np.exp(f) - gammaln(y + 1)


def gaussian(y, f):
    return -0.5 * (np.log(2 * np.pi * 0.1) + (y - f) ** 2 / 0.1)


def beta(y, f):
    return Beta().log_prob(y, f[..., None], np.array([np.log(8.0)]))


@pytest.mark.parametrize("variance", [1e-10, 1e-4, 0.1, 1.0])
@pytest.mark.parametrize("function", [poisson, gaussian])
def test_values_alone_give_the_derivatives(function, variance):
    y = np.array([0.0, 3.0, 60.0])
    mean = np.array([[-1.0], [1.0], [4.0]])
    spread = np.full_like(mean, variance)
    got = Custom(function).expected_log_prob(y, mean, spread, NONE)
    ours, psi = (Poisson(), NONE) if function is poisson else (Gaussian(), np.array([np.log(0.1)]))
    exact = ours.expected_log_prob(y, mean, spread, psi)
    np.testing.assert_allclose(got.value, exact.value, rtol=1e-6)
    np.testing.assert_allclose(got.d_mean, exact.d_mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(got.d_variance, exact.d_variance, rtol=1e-4)


def test_a_function_of_jax_works_too():
    y, mean, variance = np.array([2.0]), np.array([[0.3]]), np.array([[0.2]])
    with jax.enable_x64(True):
        got = Custom(lambda y, f: -jnp.cosh(f - y)).expected_log_prob(y, mean, variance, NONE)
    exact = Custom(lambda y, f: -np.cosh(f - y)).expected_log_prob(y, mean, variance, NONE)
    for part, same in zip(got, exact, strict=True):
        np.testing.assert_allclose(part, same, rtol=1e-9)


def test_the_first_constant_is_the_most_probable():
    y = np.array([2.0, 3.0, 4.0])
    offset, psi = Custom(gaussian).start(y, np.array([1.0, 1.0, 2.0]))
    assert offset[0] == pytest.approx(3.25, abs=0.01)
    assert psi.shape == (0,)


@pytest.mark.parametrize(
    ("support", "y", "rule"),
    [
        ("real", [0.0, np.nan], "that is finite, got nan in row 1"),
        ("positive", [1.0, 0.0], "above 0, got 0 in row 1"),
        ("unit", [0.5, 1.0], "strictly between 0 and 1, got 1 in row 1"),
        ("count", [1.0, 2.5], "whole number of at least 0, got 2.5 in row 1"),
    ],
)
def test_the_support_is_checked(support, y, rule):
    with pytest.raises(InputError, match=rule):
        Custom(gaussian, support).check(np.array(y))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda y, f: np.zeros(3), r"must give one number for each f: .* it gave \(3,\)"),
        (lambda y, f: np.where(f > 0, np.nan, 0.0), r"number or -inf, got nan at y = 2 and f = 0\.1"),
        (lambda y, f: np.where(f == 0, np.inf, 0.0), r"number or -inf, got inf at y = 2 and f = 0"),
        (lambda y, f: np.where(f < 0, -np.inf, 0.0 * y), r"finite near f = 0, got -inf at y = 2 in row 0"),
    ],
)
def test_a_function_that_will_not_do_is_told_why(function, message):
    with pytest.raises(InputError, match=message):
        Custom(function).check(np.array([2.0, 3.0]))


def test_an_impossible_f_is_a_very_low_bound_and_no_error():
    likelihood = Custom(lambda y, f: np.where(f < 0, -np.inf, -f + 0.0 * y), "positive")
    at = likelihood.expected_log_prob(np.array([1.0]), np.array([[0.1]]), np.array([[1.0]]), NONE)
    assert np.isfinite(at.value).all()
    assert at.value[0] < -1e90
    assert at.d_mean[0, 0] > 0


def test_an_unknown_support_is_named():
    with pytest.raises(
        InputError, match="support must be one of 'real', 'positive', 'unit', 'count', got 'odd'"
    ):
        Custom(gaussian, "odd")


def test_a_function_cannot_be_saved():
    assert not is_persistable(Custom)


@pytest.mark.parametrize(("support", "y"), [("real", 1e300), ("positive", 1e300), ("count", 1e200)])
def test_a_value_of_the_support_is_never_impossible(support, y):
    law = Custom(gaussian, support).predictive(np.zeros((1, 1)), np.ones((1, 1)), NONE)
    assert -np.inf < law.log_prob(y)[0] < -1e200


def test_low_counts_are_exact():
    """Geometric counts with a heavy tail: mean and distribution function against sums over f."""

    def geometric(y, f):
        return -f - (y + 1) * np.log1p(np.exp(-f))

    law = Custom(geometric, "count").predictive(np.array([[1.0]]), np.array([[2.25]]), NONE)
    z = np.linspace(-9, 9, 2001)
    weight, rate = np.exp(-0.5 * z * z) / np.exp(-0.5 * z * z).sum(), np.exp(1.0 + 1.5 * z)
    assert law.cdf(0.0)[0] == pytest.approx(weight @ (1 / (1 + rate)), rel=1e-4)
    assert law.cdf(7.0)[0] == pytest.approx(weight @ (1 - (rate / (1 + rate)) ** 8), rel=1e-4)
    assert law.mean[0] == pytest.approx(weight @ rate, rel=1e-2)


@pytest.mark.parametrize(
    ("function", "support", "y", "ours", "psi"),
    [
        (gaussian, "real", [0.3, -1.0], Gaussian(), [np.log(0.1)]),
        (poisson, "count", [0.0, 5.0], Poisson(), []),
        (beta, "unit", [0.2, 0.9], Beta(), [np.log(8.0)]),
    ],
    ids=["gaussian", "poisson", "beta"],
)
def test_predictions_match_ours(function, support, y, ours, psi):
    mean, variance = np.array([[0.1], [0.8]]), np.array([[0.2], [0.5]])
    got = Custom(function, support).predictive(mean, variance, NONE)
    exact = ours.predictive(mean, variance, np.array(psi))
    np.testing.assert_allclose(got.mean, exact.mean, rtol=1e-3)
    np.testing.assert_allclose(got.log_prob(np.array(y)), exact.log_prob(np.array(y)), rtol=1e-3)

"""Logs of tails and intervals against exact arithmetic."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.prob.tails import log1mexp, log_beta_tails, log_between, log_gamma_tails, log_normal_interval


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(60):
        yield


@pytest.mark.parametrize(
    ("a", "x"), [(0.3, 1e-40), (0.3, 0.7), (0.3, 1200.0), (5.0, 2000.0), (200.0, 1e-3), (200.0, 3000.0)]
)
def test_both_tails_of_a_gamma_distribution(a, x):
    low, high = log_gamma_tails(a, np.array(x))
    below, above = (mpmath.gammainc(a, *ends, regularized=True) for ends in ((0, x), (x, mpmath.inf)))
    assert_allclose([low, high], [float(mpmath.log(below)), float(mpmath.log(above))], rtol=1e-7, atol=1e-13)


@pytest.mark.parametrize(
    ("a", "b", "y"), [(2.0, 3.0, 1e-200), (500.0, 3.0, 1e-3), (3.0, 500.0, 0.9), (2.0, 3.0, 0.4)]
)
def test_both_tails_of_a_beta_distribution(a, b, y):
    low, high = log_beta_tails(a, b, y)
    below = mpmath.betainc(a, b, 0, y, regularized=True)
    above = mpmath.betainc(b, a, 0, 1 - mpmath.mpf(y), regularized=True)
    assert_allclose([low, high], [float(mpmath.log(below)), float(mpmath.log(above))], rtol=1e-3, atol=1e-13)


@pytest.mark.parametrize(
    ("a", "b"), [(30.0, 31.0), (-31.0, -30.0), (-1e-9, 1e-9), (-0.5, 0.7), (5.0, 5.0 + 1e-7), (-1e3, 1e3)]
)
def test_an_interval_of_a_normal_distribution(a, b):
    with mpmath.workdps(300):
        exact = mpmath.log((mpmath.erfc(a / mpmath.sqrt(2)) - mpmath.erfc(b / mpmath.sqrt(2))) / 2)
    assert_allclose(log_normal_interval(a, b), float(exact), rtol=1e-8, atol=1e-13)


def test_intervals_without_an_end():
    inf = np.inf
    assert_allclose(log_normal_interval([-inf, 0.0, -inf], [0.0, inf, inf]), [-np.log(2), -np.log(2), 0.0])


def test_the_difference_is_taken_where_both_are_small():
    """Of an exponential distribution, whose upper tail is e^-x, far out and near 0."""
    a, b = np.array([1e-9, 0.5, 60.0]), np.array([2e-9, 0.7, 61.0])
    found = log_between((np.log(-np.expm1(-a)), np.log(-np.expm1(-b))), (-a, -b))
    assert_allclose(found, -a + np.log(-np.expm1(a - b)), rtol=1e-7)


def test_a_small_difference_from_one():
    x = np.array([-1e-20, -1e-3, -1.0, -50.0])
    exact = [float(mpmath.log(1 - mpmath.exp(mpmath.mpf(own)))) for own in x]
    assert_allclose(log1mexp(x), exact, rtol=1e-12)
    assert log1mexp(0.0) == -np.inf

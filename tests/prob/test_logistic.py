import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import expit

from nongauss.prob.logistic import expected_log1pexp, expected_sigmoid, log1pexp

GRID = [
    (m, v) for m in (-60.0, -8.0, -1.0, 0.0, 0.3, 5.0, 50.0) for v in (0.1, 1.49, 1.51, 3.0, 10.0, 100.0, 1e4)
]


def expectation(function, m, v):
    sd = np.sqrt(v)

    def integrand(f):
        return function(f) * np.exp(-0.5 * ((f - m) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))

    inside = sorted({p for p in (0.0, m - sd, m, m + sd) if m - 12 * sd < p < m + 12 * sd})
    return quad(integrand, m - 12 * sd, m + 12 * sd, points=inside, limit=500, epsabs=1e-13, epsrel=1e-12)[0]


@pytest.mark.parametrize(("m", "v"), GRID)
def test_expectations_against_adaptive_integration(m, v):
    value, by_mean, by_variance = expected_log1pexp(m, v)
    assert_allclose(value, expectation(lambda f: np.logaddexp(0, f), m, v), atol=1e-9)
    assert_allclose(by_mean, expectation(expit, m, v), atol=1e-9)
    assert_allclose(by_variance, 0.5 * expectation(lambda f: expit(f) * expit(-f), m, v), atol=1e-9)


def test_derivatives_are_those_of_the_value():
    m, v = np.linspace(-6, 6, 9)[:, None], np.array([0.01, 1.0, 4.0, 30.0])
    step = 1e-5
    by_mean = (expected_log1pexp(m + step, v)[0] - expected_log1pexp(m - step, v)[0]) / (2 * step)
    by_variance = (expected_log1pexp(m, v * (1 + step))[0] - expected_log1pexp(m, v * (1 - step))[0]) / (
        2 * step * v
    )
    assert_allclose(expected_log1pexp(m, v)[1], by_mean, atol=1e-8)
    assert_allclose(expected_log1pexp(m, v)[2], by_variance, atol=1e-7)


def test_far_out_it_is_max_of_f_and_0():
    assert_allclose(log1pexp([-1e3, 0.0, 1e3]), [0.0, np.log(2), 1e3])
    assert_allclose(expected_log1pexp([-1e3, 1e3], [1.0, 1e-12])[0], [0.0, 1e3], atol=1e-12)


def test_probabilities_are_positive_and_complementary():
    m = np.linspace(-1e3, 1e3, 201)
    for v in (1e-8, 1.0, 1e4):
        low, high = expected_sigmoid(-m, v), expected_sigmoid(m, v)
        assert ((low > 0) & (high > 0)).all()
        assert_allclose(low + high, 1.0, atol=1e-12)
    assert_allclose(expected_sigmoid(-30.0, 1e-9), expit(-30.0), rtol=1e-6)


def test_many_rows_go_in_blocks():
    m = np.linspace(-3, 3, 40_000)
    v = np.where(np.arange(len(m)) % 2, 0.5, 5.0)
    some = slice(16_380, 16_390)
    assert_allclose(expected_log1pexp(m, v)[0][some], expected_log1pexp(m[some], v[some])[0], rtol=1e-14)

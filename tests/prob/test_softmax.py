import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from nongauss.prob.logistic import expected_log1pexp
from nongauss.prob.softmax import SOFTMAX, expected_softmax, jensen, tilted

RNG = np.random.default_rng(0)
MEAN, VARIANCE = RNG.normal(size=(6, 4)), RNG.uniform(0.1, 2.0, (6, 4))
Y = np.array([0, 1, 2, 3, 0, 1])
BOUNDS = [name for name in SOFTMAX if name != "monte_carlo"]


def sampled(mean, variance, y, n=200_000):
    f = mean[:, None] + np.sqrt(variance)[:, None] * np.random.default_rng(1).normal(
        size=(len(y), n, mean.shape[1])
    )
    logs = log_softmax(f, axis=2)[np.arange(len(y)), :, y]
    return logs.mean(axis=1), logs.std(axis=1) / np.sqrt(n)


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_lie_below(name):
    exact, error = sampled(MEAN, VARIANCE, Y)
    assert (SOFTMAX[name](Y, MEAN, VARIANCE)[0] < exact + 4 * error).all()


def test_monte_carlo_is_close():
    exact, _ = sampled(MEAN, VARIANCE, Y)
    assert_allclose(SOFTMAX["monte_carlo"](Y, MEAN, VARIANCE)[0], exact, atol=0.02)


@pytest.mark.parametrize("name", BOUNDS)
def test_derivatives_of_the_bounds(name):
    function, step = SOFTMAX[name], 1e-5
    _, by_mean, by_variance = function(Y, MEAN, VARIANCE)
    for c in range(4):
        shift = step * (np.arange(4) == c)
        up, down = (function(Y, MEAN + s * shift, VARIANCE)[0] for s in (1, -1))
        assert_allclose(by_mean[:, c], (up - down) / (2 * step), atol=1e-6)
        up, down = (function(Y, MEAN, VARIANCE + s * shift)[0] for s in (1, -1))
        assert_allclose(by_variance[:, c], (up - down) / (2 * step), atol=1e-6)


def test_bonnet_and_price_in_monte_carlo():
    """Derivatives by the mean are those of the value; by the variance they agree within the draws' error."""
    function, step = SOFTMAX["monte_carlo"], 1e-5
    _, by_mean, by_variance = function(Y, MEAN, VARIANCE)
    for c in range(4):
        shift = step * (np.arange(4) == c)
        up, down = (function(Y, MEAN + s * shift, VARIANCE)[0] for s in (1, -1))
        assert_allclose(by_mean[:, c], (up - down) / (2 * step), atol=1e-6)
        up, down = (function(Y, MEAN, VARIANCE + s * shift)[0] for s in (1, -1))
        assert_allclose(by_variance[:, c], (up - down) / (2 * step), atol=0.02)
    assert (by_variance <= 0).all()


@pytest.mark.parametrize("name", SOFTMAX)
def test_a_common_shift_changes_nothing_and_far_out_it_is_finite(name):
    if name != "bouchard":  # a sum of logistic terms
        shifted = SOFTMAX[name](Y, MEAN + 3.0, VARIANCE)[0]
        assert_allclose(shifted, SOFTMAX[name](Y, MEAN, VARIANCE)[0], atol=1e-9)
    for part in SOFTMAX[name](Y, 1e3 * MEAN, VARIANCE):
        assert np.isfinite(part).all()


def test_one_vs_each_is_exact_for_two_classes():
    m, v, y = MEAN[:, :2], VARIANCE[:, :2], Y % 2
    sign = np.where(y == 0, 1.0, -1.0)
    exact = -expected_log1pexp(sign * (m[:, 1] - m[:, 0]), v.sum(axis=1))[0]
    assert_allclose(SOFTMAX["one_vs_each"](y, m, v)[0], exact)


def test_without_variance_all_but_two_are_exact():
    tiny = np.full_like(MEAN, 1e-12)
    expected = log_softmax(MEAN, axis=1)[np.arange(6), Y]
    for name in ("monte_carlo", "jensen", "tilted", "bohning"):
        assert_allclose(SOFTMAX[name](Y, MEAN, tiny)[0], expected, atol=1e-6)


def test_probabilities():
    chances = expected_softmax(MEAN, VARIANCE)
    assert_allclose(chances.sum(axis=1), 1.0, atol=1e-12)
    f = MEAN[:, None] + np.sqrt(VARIANCE)[:, None] * np.random.default_rng(1).normal(size=(6, 200_000, 4))
    assert_allclose(chances, softmax(f, axis=2).mean(axis=1), atol=3e-3)
    extreme = expected_softmax(1e3 * MEAN, VARIANCE)
    assert (extreme > 0).all()
    mixture = expected_softmax(np.stack([MEAN, -MEAN]), np.stack([VARIANCE, VARIANCE]))
    assert_allclose(mixture, 0.5 * (chances + expected_softmax(-MEAN, VARIANCE)), atol=1e-12)


def test_the_tilted_bound_is_at_its_best_where_variances_are_large():
    """a <- (a + p) / 2 oscillated there: up to 2.35 nats too low, and a derivative that was none."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 12)
    mean, variance = 2.0 * rng.normal(size=(12, 4)), np.exp(rng.uniform(0.0, np.log(60.0), (12, 4)))
    value, by_mean, by_variance = tilted(y, mean, variance)
    assert (value >= jensen(y, mean, variance)[0] - 1e-9).all()
    for n in (0, 7):
        own = np.arange(12) == n

        def loss(a, n=n):
            return 0.5 * (a * a) @ variance[n] + logsumexp(mean[n] + (0.5 - a) * variance[n])

        best = minimize(loss, np.full(4, 0.25), tol=1e-12).fun
        assert_allclose(value[n], mean[n, y[n]] - best, atol=1e-6)
        for c in range(4):
            shift = 1e-5 * own[:, None] * (np.arange(4) == c)
            slope = (tilted(y, mean + shift, variance)[0] - tilted(y, mean - shift, variance)[0])[n] / 2e-5
            assert_allclose(by_mean[n, c], slope, atol=1e-5)
            slope = (tilted(y, mean, variance + shift)[0] - tilted(y, mean, variance - shift)[0])[n] / 2e-5
            assert_allclose(by_variance[n, c], slope, atol=1e-5)

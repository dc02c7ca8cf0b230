import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from nongauss.prob.mixture_entropy import jensen_entropy, pairwise_entropy


def true_entropy(mean, log_sd):
    """One dimension, on a grid."""
    x = np.linspace(mean.min() - 12 * np.exp(log_sd.max()), mean.max() + 12 * np.exp(log_sd.max()), 200_001)
    z = (x[:, None] - mean[:, 0]) / np.exp(log_sd)
    log_p = logsumexp(-0.5 * z * z - log_sd, axis=1) - 0.5 * math.log(2 * math.pi) - math.log(len(mean))
    return -float((np.exp(log_p) * log_p).sum() * (x[1] - x[0]))


def normal_entropy(size, log_sd):
    return size * (0.5 * math.log(2 * math.pi * math.e) + log_sd)


def test_one_component():
    mean, log_sd = np.ones((1, 7)), np.array([0.3])
    assert_allclose(pairwise_entropy(mean, log_sd)[0], normal_entropy(7, 0.3))
    assert_allclose(normal_entropy(7, 0.3) - jensen_entropy(mean, log_sd), 7 * 0.5 * (1 - math.log(2)))


@pytest.mark.parametrize("gap", [0.0, 0.5, 1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("other", [0.0, 1.0])
def test_both_are_bounds(gap, other):
    mean, log_sd = np.array([[0.0], [gap], [-2 * gap]]), np.array([0.0, other, 0.0])
    true = true_entropy(mean, log_sd)
    assert pairwise_entropy(mean, log_sd)[0] <= true + 1e-9
    assert jensen_entropy(mean, log_sd) <= true + 1e-9


def test_exact_where_components_coincide_or_part():
    log_sd = np.zeros(2)
    assert_allclose(pairwise_entropy(np.zeros((2, 1)), log_sd)[0], normal_entropy(1, 0.0))
    apart = np.array([[0.0], [30.0]])
    assert_allclose(pairwise_entropy(apart, log_sd)[0], normal_entropy(1, 0.0) + math.log(2))


def test_jensen_with_its_constant_is_no_bound():
    mean, log_sd = np.array([[0.0], [6.0]]), np.zeros(2)
    assert jensen_entropy(mean, log_sd) + 0.5 * (1 - math.log(2)) > true_entropy(mean, log_sd) + 1e-4


def test_derivatives():
    rng = np.random.default_rng(0)
    mean, log_sd = rng.normal(size=(3, 4)), 0.3 * rng.normal(size=3)
    _, by_mean, by_sd = pairwise_entropy(mean, log_sd)
    for k in range(3):
        for d in range(4):
            step = np.zeros((3, 4))
            step[k, d] = 1e-5
            high, low = pairwise_entropy(mean + step, log_sd)[0], pairwise_entropy(mean - step, log_sd)[0]
            assert_allclose(by_mean[k, d], (high - low) / 2e-5, atol=1e-8)
        step = np.zeros(3)
        step[k] = 1e-5
        high, low = pairwise_entropy(mean, log_sd + step)[0], pairwise_entropy(mean, log_sd - step)[0]
        assert_allclose(by_sd[k], (high - low) / 2e-5, atol=1e-8)

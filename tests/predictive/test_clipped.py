"""Laws with limits, against the normal law's closed forms."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from tests.auto.test_local_law import gaussian

from nongauss.predictive.clipped import ClippedDistribution
from nongauss.predictive.recalibrated import RecalibratedDistribution, recalibrated

M, S = np.array([0.0, 1.0, 3.0]), np.array([1.0, 0.5, 2.0])


def test_what_lies_beyond_is_at_the_limit():
    law = ClippedDistribution(gaussian(M, S), -0.5, 1.0)
    assert law.atoms == (-0.5, 1.0)
    assert_allclose(law.log_prob(1.0), norm.logsf(1.0, M, S))
    assert_allclose(law.log_prob(-0.5), norm.logcdf(-0.5, M, S))
    assert_allclose(law.log_prob(0.3), norm.logpdf(0.3, M, S))
    assert_array_equal(law.log_prob(1.1), np.full(3, -np.inf))
    assert_array_equal(law.cdf(1.0), np.ones(3))
    assert_array_equal(law.survival(1.0), np.zeros(3))
    assert_allclose(law.cdf(0.3) + law.survival(0.3), 1.0)
    assert_array_equal(law.cdf(-0.6), np.zeros(3))
    assert_allclose(law.quantile([0.2, 0.999]), np.clip(gaussian(M, S).quantile([0.2, 0.999]), -0.5, 1.0))
    draws = law.sample(20_000, 0)
    assert_allclose(draws.mean(axis=1), law.mean, atol=0.02)
    assert_allclose(law[[2, 0]].mean, law.mean[[2, 0]])


def test_moments_are_those_of_a_limited_normal():
    """E min(Y, c) = m F(c) - s^2 f(c) + c (1 - F(c))."""
    law = ClippedDistribution(gaussian(M, S), -np.inf, 1.0)
    f, F = norm.pdf(1.0, M, S), norm.cdf(1.0, M, S)
    mean = M * F - S**2 * f + 1.0 - F
    assert_allclose(law.mean, mean, atol=2e-3)
    square = (M**2 + S**2) * F - S**2 * f * (M + 1.0) + 1.0 - F
    assert_allclose(law.variance, square - mean**2, atol=5e-3)


def test_a_law_of_the_scores_goes_through_the_limits():
    """What is recalibrated as a law with limits is the recalibrated law with the same limits."""
    base, scores = gaussian(M, S), gaussian(np.full(3, 0.4), np.full(3, 0.6))
    limited = ClippedDistribution(base, -np.inf, 1.0)
    law, general = recalibrated(limited, scores), RecalibratedDistribution(limited, scores)
    for y in (-1.0, 0.5, 1.0):
        assert_allclose(law.log_prob(y), general.log_prob(y), atol=1e-9)
        assert_allclose(law.cdf(y), general.cdf(y), atol=1e-9)
    assert_allclose(law.quantile([0.05, 0.6, 0.99]), general.quantile([0.05, 0.6, 0.99]), atol=1e-8)
    assert_allclose(law.mean, general.mean, atol=0.02)
    assert_allclose(law.log_prob(1.0), norm.logsf((1.0 - M) / S, 0.4, 0.6))

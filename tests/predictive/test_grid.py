import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln

from nongauss.predictive.law import GridDistribution
from predictive import laws

M, V = np.array([-0.5, 1.0]), np.array([0.1, 0.6])


def beta(y, f):
    a, b = 9 / (1 + np.exp(-f)), 9 / (1 + np.exp(f))
    return (a - 1) * np.log(y) + (b - 1) * np.log1p(-y) + gammaln(9.0) - gammaln(a) - gammaln(b)


CASES = {
    "real": (lambda y, f: -np.abs(y - f) / 0.4 - np.log(0.8), laws.laplace()(M, V), 0.3),
    "positive": (lambda y, f: -f - y * np.exp(-f), laws.exponential(M, V), 0.8),
    "unit": (beta, laws.beta(9.0)(M, V), 0.4),
    "count": (lambda y, f: y * f - np.exp(f) - gammaln(y + 1), laws.poisson(M, V), 2.0),
}


@pytest.mark.parametrize("support", CASES)
def test_a_known_likelihood_given_as_a_function(support):
    function, known, y = CASES[support]
    ours = GridDistribution(function, support, M, V)
    assert_allclose(ours.mean, known.mean, rtol=2e-3)
    assert_allclose(ours.variance, known.variance, rtol=2e-2)
    assert_allclose(ours.cdf(y), known.cdf(y), atol=2e-3)
    assert_allclose(ours.log_prob(y), known.log_prob(y), atol=0.02)
    assert_allclose(ours.quantile([0.05, 0.5, 0.95]), known.quantile([0.05, 0.5, 0.95]), rtol=5e-3, atol=5e-3)
    draws = ours.sample(20_000, random_state=0)
    assert_allclose(draws.mean(axis=1), known.mean, atol=6 * known.std.max() / 140)

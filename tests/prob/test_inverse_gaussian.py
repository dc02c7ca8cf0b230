import numpy as np
import pytest
from scipy.stats import invgauss, kstest

from nongauss.prob import inverse_gaussian


@pytest.mark.parametrize("inverse_mean", [1e-3, 0.5, 30.0])
def test_draws_follow_the_distribution(inverse_mean):
    rng = np.random.default_rng(0)
    draws = inverse_gaussian.draw(rng, np.full(20_000, inverse_mean))
    mean = 1.0 / inverse_mean
    assert kstest(draws, lambda x: invgauss.cdf(x, mean)).pvalue > 1e-3
    # lambda = 1 / draw has mean 1 + |u|; four standard errors
    inverse = 1.0 / draws
    assert abs(inverse.mean() - 1.0 - inverse_mean) < 4.0 * inverse.std() / np.sqrt(len(draws))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_hinge_exactly_at_its_edge_gives_positive_finite_draws(dtype):
    draws = inverse_gaussian.draw(np.random.default_rng(0), np.array([0.0, -1e-30, 1e8] * 1000, dtype))
    assert draws.dtype == dtype
    assert np.isfinite(draws).all()
    assert (draws > 0).all()

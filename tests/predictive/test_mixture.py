import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from nongauss.predictive.mixture import mixture_cdf, mixture_quantile

LEVELS = [1e-300, 1e-12, 1e-3, 0.05, 0.3, 0.5, 0.7, 0.95, 1 - 1e-3, 1 - 1e-12]


def rows_of(*components):
    """One row from (weight, mean, sd) triples."""
    weights, means, sds = np.array(components, dtype=float).T
    return weights[None], means[None], sds[None]


MIXTURES = {
    "one": rows_of((1.0, 3.0, 2.0)),
    "overlapping": rows_of((0.3, -1.0, 0.5), (0.7, 1.0, 2.0)),
    "far apart": rows_of((0.3, -1e6, 1.0), (0.7, 1e6, 1.0)),
    "spike in a plain": rows_of((0.5, 0.0, 1.0), (0.5, 0.2, 1e-8)),
    "scales apart": rows_of((0.25, 0.0, 1e-5), (0.25, 1.0, 1.0), (0.5, 1e3, 1e4)),
    "empty component": rows_of((0.0, 1e9, 1e-3), (0.4, 0.0, 1.0), (0.6, 1.0, 1.0)),
}


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("q", LEVELS)
@pytest.mark.parametrize("start", [0.0, -1e9])
def test_the_quantile_inverts_the_distribution_function_in_both_tails(name, q, start):
    weights, means, sds = MIXTURES[name]
    x = mixture_quantile(q, weights, means, sds, np.array([start]))
    lower = np.sum(weights * stats.norm.cdf(x[:, None], means, sds))
    upper = np.sum(weights * stats.norm.sf(x[:, None], means, sds))
    # what one rounding of x changes in the probability is beyond any solver
    density = np.sum(weights * stats.norm.pdf(x[:, None], means, sds))
    rounding = 2 * np.spacing(abs(x[0])) * density
    if q <= 0.5:
        assert abs(lower - q) <= 1e-12 * q + rounding
    else:
        assert abs(upper - (1 - q)) <= 1e-12 * (1 - q) + rounding


def test_one_component_is_scipy_s_normal_and_the_ends_are_infinite():
    weights, means, sds = np.ones((3, 1)), np.array([[0.0], [5.0], [-1e6]]), np.array([[1.0], [1e-6], [3.0]])
    start = np.zeros(3)
    for q in LEVELS:
        expected = stats.norm.ppf(q, means[:, 0], sds[:, 0])
        np.testing.assert_allclose(mixture_quantile(q, weights, means, sds, start), expected, rtol=1e-14)
    assert np.all(mixture_quantile(0.0, weights, means, sds, start) == -np.inf)
    assert np.all(mixture_quantile(1.0, weights, means, sds, start) == np.inf)


def test_the_middle_of_a_symmetric_gap_is_found():
    weights, means, sds = rows_of((0.5, -50.0, 1.0), (0.5, 50.0, 1.0))
    x = mixture_quantile(0.5, weights, means, sds, np.array([3.0]))
    assert mixture_cdf(x, weights, means, sds)[0] == pytest.approx(0.5, abs=1e-13)
    assert abs(x[0]) < 50


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31), spread=st.floats(-3, 3), q=st.floats(1e-9, 1 - 1e-9))
def test_many_rows_at_once_are_each_row_alone(seed, spread, q):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(6, 0.3), size=9)
    means = rng.normal(size=(9, 6)) * 10**spread
    sds = 10 ** rng.uniform(-4, 2, size=(9, 6))
    together = mixture_quantile(q, weights, means, sds, np.zeros(9))
    np.testing.assert_allclose(mixture_cdf(together, weights, means, sds), q, rtol=1e-9, atol=1e-11)
    row = slice(4, 5)
    alone = mixture_quantile(q, weights[row], means[row], sds[row], np.zeros(1))
    np.testing.assert_array_equal(alone, together[row])

"""The table on the host beside the closed forms for JAX, which are exact to rounding."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nongauss.core.device import double_precision
from nongauss.prob import normal
from nongauss.prob.normal_table import cut_moments, located, log_mills_difference

EDGES = [0.0, -1e-9, -40.0, -40.1, 15.99, 16.0, 300.0, -3e3, -1e6]


@pytest.mark.parametrize(("kind", "exact"), [(np.float32, 3e-6), (np.float64, 1e-10)])
def test_moments_and_the_log_of_mills_ratio(kind, exact):
    """Relative errors in and beyond the table; absolute ones where a moment vanishes far above."""
    rng = np.random.default_rng(0)
    a = np.concatenate([rng.uniform(-60.0, 20.0, 4000), rng.normal(0.0, 2.0, 2000), EDGES]).astype(kind)
    step = rng.normal(0.0, 3.0, len(a)).astype(kind)
    b = a + step
    with double_precision():
        wide = jnp.asarray(a, jnp.float64)
        _, mean, variance = normal.unit_moments(wide)
        expected = map(np.asarray, (mean, variance, normal.third_moment(wide)))
        difference = np.asarray(normal.log_mills_difference(wide, jnp.asarray(b, jnp.float64) - wide))
    for found, answer in zip(cut_moments(located(a)), expected, strict=True):
        assert found.dtype == kind
        np.testing.assert_allclose(found, answer, rtol=exact, atol=0.2 * exact * (a > 0.0).max())
    found = log_mills_difference(located(a), located(b), b - a)
    np.testing.assert_allclose(found, difference, rtol=10.0 * exact, atol=10.0 * exact)


def test_numbers_of_any_size_have_moments():
    with np.errstate(all="raise", under="ignore"):
        mean, variance, third = cut_moments(located(np.array([1e200, -1e200, -1e300, 1e300])))
    np.testing.assert_allclose(mean, [1e200, 1e-200, 1e-300, 1e300])
    np.testing.assert_allclose(variance, [1.0, 0.0, 0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(third, 0.0, atol=1e-12)


def test_nan_stays_nan_and_infinity_is_far():
    with np.errstate(all="raise"):
        mean, variance, third = cut_moments(located(np.array([np.nan, 0.0])))
    with np.errstate(invalid="ignore"):
        far = cut_moments(located(np.array([np.inf, 0.0]))).mean
    assert np.isnan([mean[0], variance[0], third[0]]).all()
    assert far[0] == np.inf
    np.testing.assert_allclose([mean[1], far[1]], np.sqrt(2.0 / np.pi))


def test_an_empty_array_stays_empty():
    assert cut_moments(located(np.zeros((0, 3)))).mean.shape == (0, 3)

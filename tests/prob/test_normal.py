"""Normal tails against references of 50 digits, and their derivatives, in both precisions."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from nongauss.prob import normal

TABLE = Path(__file__).parents[1] / "reference" / "truncnorm.json"
REFERENCE = json.loads(TABLE.read_text(encoding="utf-8"))
A = np.array(REFERENCE["a"])
# Rounding a^2 moves phi(a) by a^2 eps / 2, and right of zero hazard and log_cdf follow phi.
CONDITION = 1.0 + np.where(A > 0, 0.5 * A * A, 0.0)


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    with jax.enable_x64(request.param == np.float64):
        yield request.param


def relative_error(value, name):
    """Largest |value / reference - 1| over the condition number. Underflow counts as absolute error."""
    exact = np.array(REFERENCE[name])
    got = np.asarray(value, np.float64)
    assert np.isfinite(got).all()
    scale = np.where(np.abs(exact) > 100 * float(np.finfo(value.dtype).tiny), np.abs(exact), 1.0)
    return np.max(np.abs(got - exact) / scale / CONDITION)


def test_hazard_and_log_cdf_match_the_reference_in_both_tails(dtype):
    a = jnp.asarray(A, dtype)
    eps = np.finfo(dtype).eps
    hazard, log_cdf = normal.hazard(a), normal.log_cdf(a)
    assert hazard.dtype == log_cdf.dtype == dtype
    assert relative_error(hazard, "hazard") < 4 * eps
    assert relative_error(log_cdf, "log_cdf") < 16 * eps


def test_unit_moments_match_the_reference_and_stay_positive(dtype):
    _, mean, variance = normal.unit_moments(jnp.asarray(A, dtype))
    eps = np.finfo(dtype).eps
    assert np.all((mean > 0) & (variance > 0) & (variance <= 1))
    assert relative_error(mean, "mean") < 6 * eps
    assert relative_error(variance, "variance") < 16 * eps


def slope_of(function, x):
    """The derivative of an elementwise function."""
    return jax.jvp(function, (x,), (jnp.ones_like(x),))[1]


def test_derivatives_are_exact_and_finite(dtype):
    def values(x):
        return (normal.log_cdf(x), *normal.unit_moments(x))

    a = jnp.asarray(A, dtype)
    slopes = jax.jit(lambda x: slope_of(values, x))(a)
    curvatures = jax.jit(lambda x: slope_of(lambda y: slope_of(values, y), x))(a)
    eps = np.finfo(dtype).eps
    assert relative_error(slopes[0], "hazard") < 4 * eps
    assert relative_error(slopes[2], "variance") < 16 * eps
    assert relative_error(slopes[3], "third") < 64 * eps
    # hazard' = -hazard * mean, also where "a + hazard" would cancel; the same number is log_cdf''
    product = np.array(REFERENCE["hazard"]) * np.array(REFERENCE["mean"])
    for slope in (slopes[1], curvatures[0]):
        np.testing.assert_allclose(slope[A < 3], -product[A < 3], rtol=16 * eps)
    assert all(np.isfinite(value).all() for value in (*slopes, *curvatures))


def test_formulas_join_at_zero(dtype):
    a = jnp.asarray([-1e-6, 0.0, 1e-6], dtype)
    for value in (*normal.unit_moments(a), normal.log_cdf(a)):
        assert np.ptp(np.asarray(value)) < 3e-6
    assert float(normal.hazard(a)[1]) == pytest.approx(np.sqrt(2 / np.pi), rel=1e-6)
    assert float(normal.log_cdf(0)) == pytest.approx(-np.log(2), rel=1e-6)


def test_log_pdf_matches_scipy(dtype):
    x = np.array([-3.0, 0.0, 2.5])
    value = normal.log_pdf(jnp.asarray(x, dtype), 0.5, 2.0)
    assert value.dtype == dtype
    np.testing.assert_allclose(value, stats.norm.logpdf(x, 0.5, 2.0), rtol=8 * np.finfo(dtype).eps)

"""The truncated normal against 50-digit references, quadrature and its identities, in both precisions."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from nongauss.prob import truncnorm

TABLE = Path(__file__).parents[1] / "reference" / "truncnorm.json"
REFERENCE = json.loads(TABLE.read_text(encoding="utf-8"))
A = np.array(REFERENCE["a"])


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    with jax.enable_x64(request.param == np.float64):
        yield request.param


@pytest.mark.parametrize("sd", [1.0, 0.125, 8.0])  # powers of two: mu / sd is exactly the tabled a
def test_moments_match_the_reference_at_every_scale(dtype, sd):
    eps = np.finfo(dtype).eps
    mean, variance = truncnorm.moments(jnp.asarray(A * sd, dtype), jnp.asarray(sd, dtype))
    assert mean.dtype == variance.dtype == dtype
    assert np.all((mean > 0) & (variance > 0) & (variance <= sd**2))
    np.testing.assert_allclose(mean, sd * np.array(REFERENCE["mean"]), rtol=8 * eps)
    np.testing.assert_allclose(variance, sd**2 * np.array(REFERENCE["variance"]), rtol=16 * eps)


def test_the_half_normal_has_its_known_moments():
    assert float(truncnorm.mean(0.0, 1.0)) == pytest.approx(0.797885, abs=1e-6)
    assert float(truncnorm.variance(0.0, 1.0)) == pytest.approx(1 - 2 / np.pi, rel=1e-6)


def test_gradient_of_the_mean_is_the_variance(dtype):
    eps = np.finfo(dtype).eps
    sd = 2.0
    mu = jnp.asarray(A * sd, dtype)
    by_mu, by_sd = jax.jit(jax.grad(lambda m, s: truncnorm.mean(m, s).sum(), (0, 1)))(
        mu, jnp.full_like(mu, sd)
    )
    np.testing.assert_allclose(by_mu, truncnorm.variance(mu, jnp.asarray(sd, dtype)) / sd**2, rtol=2 * eps)
    # far right the derivative falls like phi(a), whose condition is a^2
    limit = np.where(A < 5, 1.0, 1 + 0.5 * A * A) * 64 * eps
    exact = np.array(REFERENCE["mean_by_sd"])
    assert np.all(np.abs(by_sd - exact) <= limit * np.abs(exact) + float(np.finfo(dtype).tiny))


def test_gradients_match_central_differences():
    def values(mu, sd):
        return (*truncnorm.moments(mu, sd), truncnorm.log_partition(mu, sd), truncnorm.entropy(mu, sd))

    with jax.enable_x64(True):
        mu, sd = jnp.asarray([-30.0, -3.0, 0.0, 2.0]), jnp.asarray([0.7, 1.3, 1.0, 0.9])
        function = jax.jit(lambda mu, sd: jnp.stack(values(mu, sd)))
        gradient = jax.jit(lambda *tangent: jax.jvp(function, (mu, sd), tangent)[1])
        step, one, zero = 1e-5, jnp.ones_like(mu), jnp.zeros_like(mu)
        by_mu = (function(mu + step, sd) - function(mu - step, sd)) / (2 * step)
        by_sd = (function(mu, sd + step) - function(mu, sd - step)) / (2 * step)
        np.testing.assert_allclose(gradient(one, zero), by_mu, rtol=2e-7)
        np.testing.assert_allclose(gradient(zero, one), by_sd, rtol=2e-7)


def test_every_reverse_gradient_is_finite_in_the_working_range(dtype):
    def total(mu, sd):
        moments = truncnorm.moments(mu, sd)
        x, u = jnp.full_like(mu, 0.5), jnp.full_like(mu, 0.25)
        others = truncnorm.log_partition(mu, sd), truncnorm.entropy(mu, sd), truncnorm.log_pdf(x, mu, sd)
        return sum(value.sum() for value in (*moments, *others, truncnorm.quantile(u, mu, sd)))

    a = np.concatenate([-np.logspace(-6, 4, 41), [0.0], np.logspace(-6, 4, 41)])
    gradients = jax.jit(jax.grad(total, (0, 1)))(jnp.asarray(a, dtype), jnp.ones(a.shape, dtype))
    assert np.isfinite(gradients).all()


def test_entropy_and_log_partition_match_the_reference(dtype):
    eps = np.finfo(dtype).eps
    mu, sd = jnp.asarray(2 * A, dtype), jnp.asarray(2.0, dtype)
    np.testing.assert_allclose(
        truncnorm.entropy(mu, sd), np.log(2) + np.array(REFERENCE["entropy"]), rtol=8 * eps, atol=8 * eps
    )
    left = A < 3
    np.testing.assert_allclose(
        np.asarray(truncnorm.log_partition(mu, sd))[left], np.array(REFERENCE["log_cdf"])[left], rtol=16 * eps
    )


@pytest.mark.parametrize("mu", [-50.0, -3.0, 0.0, 2.0])
def test_log_pdf_integrates_to_one_with_the_stated_moments_and_entropy(mu):
    sd = 1.5
    with jax.enable_x64(True):
        mean, variance = (float(x) for x in truncnorm.moments(mu, sd))
        x = np.linspace(0.0, mean + 45 * np.sqrt(variance), 40_001)
        log_pdf = np.asarray(truncnorm.log_pdf(jnp.asarray(x), mu, sd))
        entropy = float(truncnorm.entropy(mu, sd))
        assert float(truncnorm.log_pdf(-0.1, mu, sd)) == -np.inf
    pdf = np.exp(log_pdf)
    expected = [1.0, mean, variance, entropy]
    integrands = [pdf, x * pdf, (x - mean) ** 2 * pdf, -log_pdf * pdf]
    np.testing.assert_allclose([integrate.simpson(f, x=x) for f in integrands], expected, rtol=1e-9)


def test_quantile_matches_the_reference(dtype):
    table = REFERENCE["quantile"]
    u, a = np.meshgrid(table["u"], table["a"], indexing="ij")
    x = truncnorm.quantile(jnp.asarray(u, dtype), jnp.asarray(a, dtype), jnp.asarray(1.0, dtype))
    exact = np.array(table["x"])
    error = np.abs(np.asarray(x, np.float64) - exact)
    eps = np.finfo(dtype).eps
    assert x.dtype == dtype
    # the left tail is relatively accurate; the body is accurate to rounding of its unit scale
    assert np.all(error <= np.where(a < -1, 4e3 * eps * exact, 8 * eps * np.maximum(exact, 1.0)))
    # from u = 5 percent on it is relatively accurate everywhere
    assert np.all((error <= 64 * eps * exact)[u > 0.04])


def test_quantile_is_increasing_and_has_its_end_points(dtype):
    a = jnp.asarray([[-1e4, -40.0, -2.0, -0.5, 0.0, 3.0, 9.0]], dtype)
    u = jnp.linspace(0.0, 1.0, 1001, dtype=dtype)[:, None]
    x = np.asarray(truncnorm.quantile(u, a, 1.0))
    assert np.all(x[0] == 0)
    assert np.all(x[-1] == np.inf)
    assert np.all(np.diff(x[:-1], axis=0) > 0)


def test_quantile_gradient_is_the_reparametrisation_gradient():
    with jax.enable_x64(True):
        quantile = jax.jit(truncnorm.quantile)
        gradient = jax.jit(jax.grad(quantile, (0, 1, 2)))
        for point in np.array([(0.3, -20.0, 0.5), (0.9, -0.4, 1.0), (0.6, 2.0, 0.7)]):
            step = 1e-5
            shifts = step * np.eye(3)
            numeric = [(quantile(*(point + d)) - quantile(*(point - d))) / (2 * step) for d in shifts]
            np.testing.assert_allclose(gradient(*point), numeric, rtol=1e-6)


def test_sample_follows_the_distribution(dtype):
    mu, sd = jnp.asarray([-8.0, 0.3], dtype), jnp.asarray([2.0, 0.5], dtype)
    draws = np.asarray(truncnorm.sample(jax.random.key(3), mu, sd, (2000, 2)))
    assert draws.dtype == dtype
    assert np.all(draws >= 0)
    for column, (m, s) in enumerate([(-8.0, 2.0), (0.3, 0.5)]):
        exact = stats.truncnorm(-m / s, np.inf, loc=m, scale=s)
        assert stats.kstest(draws[:, column], exact.cdf).pvalue > 1e-3

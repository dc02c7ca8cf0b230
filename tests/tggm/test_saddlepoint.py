"""The cumulant function and the density from it, against integrals over the units and finite differences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

from nongauss.core.device import double_precision
from nongauss.prob.normal import log_mills_difference
from nongauss.tggm import objective, saddlepoint
from tggm.small import closed_form_log_likelihood, finite_differences, member, one_unit, row

exact_log_likelihood = jax.jit(objective.exact_log_likelihood)


@pytest.fixture(autouse=True)
def _float64():
    with double_precision():
        yield


def terms_of(params, x):
    c, sd = params.W0 @ x + params.b0, np.exp(params.log_sd0)
    parts = c / sd, params.W1[0] * sd, params.b1[0], np.exp(2.0 * params.log_sd1[0])
    return saddlepoint.CumulantTerms(*map(jnp.asarray, parts))


def cumulants_by_integration(params, x, t):
    """log E[exp(t y)] by quadrature over each unit, and its first three derivatives by tilted moments."""
    c, sd = params.W0 @ x + params.b0, np.exp(params.log_sd0)
    noise = np.exp(2.0 * params.log_sd1[0])
    total = np.array([t * params.b1[0] + 0.5 * noise * t**2, params.b1[0] + noise * t, noise, 0.0])
    nodes, weights = np.polynomial.legendre.leggauss(400)
    for location, width, w in zip(c, sd, params.W1[0], strict=True):
        tilted = location + t * w * width**2  # where the integrand has its mass
        low, high = max(0.0, tilted - 12.0 * width), max(tilted, 0.0) + 12.0 * width
        h = low + 0.5 * (high - low) * (nodes + 1.0)
        logs = stats.norm.logpdf(h, location, width) - special.log_ndtr(location / width) + t * w * h
        mass = 0.5 * (high - low) * weights * np.exp(logs)
        mean = mass @ h / mass.sum()
        spread, third = (mass @ (h - mean) ** power / mass.sum() for power in (2, 3))
        total += [np.log(mass.sum()), w * mean, w**2 * spread, w**3 * third]
    return total


@pytest.mark.parametrize("n_hidden", [1, 2, 3])
def test_the_cumulant_function_and_its_derivatives_are_those_of_the_model(n_hidden):
    params = member(n_hidden, n_hidden)
    x, _ = row(n_hidden, params)
    terms = terms_of(params, x)
    for t in (-3.0, -0.4, 0.0, 1.7):
        first, second, third = saddlepoint.slopes(terms, jnp.asarray(t))
        value = saddlepoint.cumulant(terms, jnp.asarray(t)) + t * terms.constant
        got = [float(part) for part in (value, first + terms.constant, second, third)]
        assert_allclose(got, cumulants_by_integration(params, x, t), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 3e-6)])
def test_mills_ratios_are_exact_from_minus_to_plus_forty(dtype, rtol):
    a = np.concatenate([np.linspace(-40.0, 40.0, 161), [-40.0, 40.0, 1e-3]]).astype(dtype)
    step = np.resize(np.array([0.3, -0.3, 2.0, -2.0, 1e-3], dtype), len(a))

    def log_mills(z):
        z = z.astype(np.float64)
        upper = np.log(special.erfcx(-np.minimum(z, 0.0) / np.sqrt(2.0)) * np.sqrt(0.5 * np.pi))
        return np.where(z < 0, upper, 0.5 * z**2 + special.log_ndtr(z) + 0.5 * np.log(2.0 * np.pi))

    b = a.astype(np.float64) + step.astype(np.float64)
    exact = log_mills(b) - log_mills(a)
    assert_allclose(log_mills_difference(jnp.asarray(a), jnp.asarray(step)), exact, rtol=rtol, atol=rtol)
    slope = jax.vmap(jax.grad(log_mills_difference, argnums=1))(jnp.asarray(a), jnp.asarray(step))
    r = np.exp(-0.5 * b**2 - 0.5 * np.log(2.0 * np.pi) - special.log_ndtr(b))
    near = b > -6.0  # below, b + r(b) loses digits in the reference
    assert_allclose(np.asarray(slope)[near], (b + r)[near], rtol=30 * rtol, atol=rtol)
    assert np.isfinite(slope).all()
    assert (np.asarray(slope) > 0).all()


def made_terms(seed, n_hidden, ratio, sign=False):
    """Random drives and weights; the noise has `ratio` times the variance of the units."""
    rng = np.random.default_rng(seed)
    a, q = rng.normal(-0.5, 2.0, n_hidden), rng.normal(size=n_hidden) / np.sqrt(n_hidden)
    terms = saddlepoint.CumulantTerms(*map(jnp.asarray, (a, abs(q) if sign else q, 0.3, 0.0)))
    hidden = saddlepoint.slopes(terms, jnp.zeros(()))[1]
    return terms._replace(noise=ratio * hidden)


@pytest.mark.parametrize(("n_hidden", "ratio", "limit"), [(50, 0.1, 1e-3), (5, 1.0, 1e-2), (1, 1.0, 0.5)])
def test_few_steps_find_the_saddlepoint(n_hidden, ratio, limit):
    z = jnp.array([-20.0, -5.0, -2.0, -0.5, 0.0, 1.0, 3.0, 6.0, 20.0])
    find = jax.jit(jax.vmap(saddlepoint.saddlepoint, in_axes=(None, 0)))
    find_slopes = jax.jit(jax.vmap(saddlepoint.slopes, in_axes=(None, 0)))
    for seed in range(6):
        terms = made_terms(seed, n_hidden, ratio, sign=seed % 2 == 0)
        mean, variance, _ = saddlepoint.slopes(terms, jnp.zeros(()))
        y = terms.constant + mean + z * jnp.sqrt(variance)
        first, second, _ = find_slopes(terms, find(terms, y))
        assert np.abs((y - terms.constant - first) / np.sqrt(second)).max() < limit


def test_one_gaussian_unit_leaves_a_gaussian():
    """A unit far from its cut: the saddlepoint's density is exact, normaliser and all."""
    params = one_unit(30.0, 1.0, 0.5, 0.7, b1=-14.0)
    for y in (-1.0, 1.0, 4.0):
        found = exact_log_likelihood(params, np.ones(1), np.array([y]))
        assert_allclose(found, stats.norm.logpdf(y, 1.0, np.hypot(0.5, 0.7)), rtol=1e-10)


@pytest.mark.parametrize(("n_hidden", "n_outputs"), [(1, 1), (2, 1), (2, 2)])
def test_the_density_is_near_the_exact_one(n_hidden, n_outputs):
    for seed in range(4):
        params = member(seed, n_hidden, n_outputs)
        x, y = row(seed, params)
        exact = closed_form_log_likelihood(params, x, y)
        assert_allclose(exact_log_likelihood(params, x, y), exact, atol=0.1 * n_outputs)


def test_one_output_is_the_case_of_several():
    for seed in range(3):
        params = member(seed, 4)
        x, y = row(seed, params)
        c, sd = params.W0 @ x + params.b0, np.exp(params.log_sd0)
        joint = saddlepoint.JointTerms(c / sd, params.W1 * sd, params.b1, np.exp(2.0 * params.log_sd1))
        several = saddlepoint.log_density_of_several(joint, jnp.asarray(y))
        assert_allclose(exact_log_likelihood(params, x, y), several, atol=1e-5)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_the_gradient_is_that_of_finite_differences(n_outputs):
    params = member(3, 3, n_outputs)
    x, y = row(3, params)
    slope = jax.jit(jax.grad(objective.exact_log_likelihood))(params, x, y)
    numeric = finite_differences(lambda moved: exact_log_likelihood(moved, x, y), params)
    for got, expected in zip(jax.tree.leaves(slope), jax.tree.leaves(numeric), strict=True):
        assert_allclose(got, expected, rtol=2e-3, atol=2e-4)

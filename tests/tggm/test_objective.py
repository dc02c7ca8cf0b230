"""The objectives against quadrature over the hidden units, and against each other."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from nongauss.core.device import double_precision, replace
from nongauss.tggm import mean_field as mf
from nongauss.tggm import objective
from tggm.small import (
    CONFIG,
    NUMBER,
    closed_form_log_likelihood,
    deep_member,
    exact_log_likelihood,
    for_labels,
    mean_field,
    mean_field_bound,
    member,
    one_unit,
    row,
)


@pytest.fixture(autouse=True)
def _float64():
    with double_precision():
        yield


moment_log_likelihood = jax.jit(objective.moment_log_likelihood, static_argnames="n_classes")
plug_in_log_likelihood = jax.jit(objective.plug_in_log_likelihood, static_argnames="n_classes")
predictive_log_likelihood = jax.jit(objective.predictive_log_likelihood, static_argnames="config")
output_moments = jax.jit(objective.output_moments, static_argnames="spread")


def posterior_and_bound(params, x, y, n_sweeps=60):
    q = mean_field(params, x, y, n_sweeps)
    return q, float(mean_field_bound(params, q, x, y))


@pytest.mark.parametrize(
    ("seed", "n_hidden", "n_outputs"),
    [
        pytest.param(0, 1, 1, marks=pytest.mark.gate),
        pytest.param(1, 1, 2, marks=pytest.mark.gate),
        pytest.param(2, 2, 1, marks=pytest.mark.gate),
        (3, 2, 2),
    ],
)
def test_eq_4_and_the_bound_below_it(seed, n_hidden, n_outputs):
    params = member(seed, n_hidden, n_outputs)
    x, y = row(seed, params)
    exact = exact_log_likelihood(params, x, y)
    assert_allclose(closed_form_log_likelihood(params, x, y), exact, rtol=1e-8)
    _, bound = posterior_and_bound(params, x, y)
    if n_hidden == 1:  # one unit: its posterior is a truncated normal, so the bound is tight
        assert_allclose(bound, exact, atol=1e-9)
    else:
        assert bound < exact - 1e-6
        assert bound > exact - 0.5


@pytest.mark.gate
def test_the_bound_is_below_for_many_models_and_any_posterior():
    for seed in range(12):
        params = member(seed, 2, 1 + seed % 2, strength=2.0)
        x, y = row(seed, params)
        exact = closed_form_log_likelihood(params, x, y)
        q, bound = posterior_and_bound(params, x, y)
        poor = mf.factorised_at(NUMBER, params, q.location + 0.7, y)
        assert float(mean_field_bound(params, poor, x, y)) < bound <= exact + 1e-9


def test_the_bound_is_exact_when_units_do_not_meet():
    params = member(4, 2, 2)
    params = params._replace(W1=np.array([[1.2, -0.6], [0.5, 1.0]]), log_sd1=np.log([0.4, 0.4]))
    assert (params.W1.T @ params.W1)[0, 1] == pytest.approx(-0.22)
    orthogonal = params._replace(W1=np.array([[1.2, -0.5], [0.6, 1.0]]))
    x, y = row(4, params)
    _, bound = posterior_and_bound(params, x, y)
    assert bound < exact_log_likelihood(params, x, y) - 1e-5
    _, bound = posterior_and_bound(orthogonal, x, y)
    assert_allclose(bound, exact_log_likelihood(orthogonal, x, y), atol=1e-9)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_moments_are_those_of_the_model(n_outputs):
    params = member(6, 4, n_outputs)
    x, y = row(6, params)
    c, sd = params.W0 @ x + params.b0, np.exp(params.log_sd0)
    unit = stats.truncnorm(-c / sd, np.inf, loc=c, scale=sd)
    mean = params.W1 @ unit.mean() + params.b1
    noise = np.exp(2.0 * params.log_sd1)
    covariance = params.W1 @ np.diag(unit.var()) @ params.W1.T + np.diag(noise)
    exact = stats.multivariate_normal.logpdf(y, mean, covariance)
    assert_allclose(float(moment_log_likelihood(params, x, y)), exact, rtol=1e-10)
    plug_in = stats.norm.logpdf(y, mean, np.sqrt(noise)).sum()
    assert_allclose(float(plug_in_log_likelihood(params, x, y)), plug_in, rtol=1e-10)


def test_skew_normal_example():
    """c = 0, s0^2 = W1^2 = s1^2 = 1/2 and so y ~ SN(0, sqrt(3)/2, 1/sqrt 2), with mean 0.5 sqrt(2/pi)."""
    params = one_unit(0.0, np.sqrt(0.5), np.sqrt(0.5), np.sqrt(0.5))
    x = np.ones(1)
    mean, hidden_mean, hidden_variance = output_moments(params, x)
    assert_allclose(mean, [0.5 * np.sqrt(2.0 / np.pi)], rtol=1e-14)
    assert_allclose(hidden_mean, np.sqrt([1.0 / np.pi]), rtol=1e-14)
    assert_allclose(hidden_variance, [0.5 * (1.0 - 2.0 / np.pi)], rtol=1e-13)
    skewed = stats.skewnorm(1.0 / np.sqrt(2.0), 0.0, np.sqrt(3.0) / 2.0)
    assert_allclose(mean[0], skewed.mean(), rtol=1e-12)
    for y in (-1.3, 0.2, 2.5):
        assert_allclose(closed_form_log_likelihood(params, x, np.array([y])), skewed.logpdf(y), rtol=1e-9)
        assert_allclose(posterior_and_bound(params, x, np.array([y]))[1], skewed.logpdf(y), rtol=1e-9)


def test_without_truncation_the_model_is_linear():
    params = member(7, 3, 2)
    params = params._replace(b0=np.full(3, 50.0))
    x, y = row(7, params)
    mean = params.W1 @ (params.W0 @ x + params.b0) + params.b1
    covariance = params.W1 @ np.diag(np.exp(2 * params.log_sd0)) @ params.W1.T
    covariance += np.diag(np.exp(2 * params.log_sd1))
    exact = stats.multivariate_normal.logpdf(mean + y, mean, covariance)
    assert_allclose(float(moment_log_likelihood(params, x, mean + y)), exact, rtol=1e-10)
    precision = np.diag(np.exp(-2 * params.log_sd0))
    precision += params.W1.T @ np.diag(np.exp(-2 * params.log_sd1)) @ params.W1
    loss = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
    _, bound = posterior_and_bound(params, x, mean + y)
    assert_allclose(bound, exact - loss, rtol=1e-8)  # a factorised Gaussian misses exactly that much


def test_two_layers_by_moments_are_near_the_exact_ones():
    """Layers of one unit, eq. 39 by quadrature: the assumed normal is right to a tenth of a spread."""
    for seed in range(4):
        params = deep_member(seed, (1, 1), strength=0.8)
        x, _ = row(seed, params)
        layer, t = params.deeper[0], np.linspace(0.0, 12.0, 1201)
        first = stats.norm.pdf(t, params.W0 @ x + params.b0, np.exp(params.log_sd0))
        second = stats.norm.pdf(t[None], layer.W[0, 0] * t[:, None] + layer.b, np.exp(layer.log_sd))
        mass = first @ second / np.sum(first @ second)
        mean = mass @ t
        sd = np.sqrt(mass @ t**2 - mean**2)
        _, got, variance = output_moments(params, x)
        assert abs(got[0] - mean) < 0.1 * sd
        assert abs(np.sqrt(variance[0]) / sd - 1.0) < 0.1


@pytest.mark.parametrize("n_outputs", [1, pytest.param(4, marks=pytest.mark.gate)])
def test_labels_by_moments_against_draws_of_the_gaussian(n_outputs):
    params = for_labels(member(6, 5, n_outputs))
    x, _ = row(6, params)
    mean, _, hidden = output_moments(params, x)
    for density, variance in (
        (moment_log_likelihood, params.W1**2 @ hidden + 1.0),
        (plug_in_log_likelihood, np.ones(n_outputs)),
    ):
        z = np.random.default_rng(0).normal(mean, np.sqrt(variance), (200_000, n_outputs))
        label = z.argmax(axis=1) if n_outputs > 1 else (z[:, 0] > 0).astype(int)
        n_classes = max(2, n_outputs)
        shares = np.bincount(label, minlength=n_classes) / len(label)
        got = [
            np.exp(density(params, x, np.array([float(c)]), n_classes=n_classes)) for c in range(n_classes)
        ]
        assert_allclose(got, shares, atol=0.006)


def test_the_judge_of_a_method_is_its_predictive_density():
    params = member(8)
    x, y = row(8, params)
    for method, density in [
        ("ml", moment_log_likelihood),
        ("bp", plug_in_log_likelihood),
    ]:
        got = predictive_log_likelihood(params, config=replace(CONFIG, method=method), x=x, y=y)
        assert float(got) == float(density(params, x, y))


def test_precision_follows_the_arguments():
    params = member(9, 2, 2)
    x, y = row(9, params)
    _, bound = posterior_and_bound(params, x, y)
    assert moment_log_likelihood(params, x, y).dtype == np.float64
    with jax.enable_x64(False):
        low = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), params)
        q = mean_field(low, x.astype(np.float32), y.astype(np.float32), 60)
        rough = mean_field_bound(low, q, x.astype(np.float32), y.astype(np.float32))
    assert rough.dtype == np.float32
    assert_allclose(float(rough), bound, rtol=1e-5)

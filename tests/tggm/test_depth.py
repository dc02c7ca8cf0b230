"""What each way says of the last layer of a deep model, by brute force on one unit above another."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, stats
from scipy.special import log_ndtr

from nongauss.core.device import double_precision, replace
from nongauss.tggm import mean_field as mf
from nongauss.tggm import objective, predict, updates
from nongauss.tggm.predict import Ensemble
from tggm.small import CONFIG, deep_member, ensemble_of

DEEP = replace(CONFIG, layers=(1, 1), posterior="mean_field")


@pytest.fixture(autouse=True)
def _float64():
    with double_precision():
        yield


def joint(params, x, n_points=600):
    """A grid of (h1, h2) and the probabilities of eq. 39 on it: the normal of both, cut at 0 once for all."""
    c, s1 = (params.W0 @ x + params.b0)[0], np.exp(params.log_sd0[0])
    above = params.deeper[0]
    s2 = np.exp(above.log_sd[0])
    first = np.linspace(0.0, max(c, 0.0) + 9.0 * s1, n_points)
    top = max(above.W[0, 0] * first.max() + above.b[0], 0.0) + 9.0 * s2
    second = np.linspace(0.0, top, n_points)
    logs = stats.norm.logpdf(first[:, None], c, s1)
    logs = logs + stats.norm.logpdf(second[None, :], above.W[0, 0] * first[:, None] + above.b[0], s2)
    mass = np.exp(logs - logs.max())
    return first, second, logs, mass / mass.sum()


def nearest_product(params, x):
    """Locations and sds of the product of two cut normals with the least divergence to eq. 39: (2,) each."""
    c, s1 = (params.W0 @ x + params.b0)[0], np.exp(params.log_sd0[0])
    above = params.deeper[0]
    w, b, s2 = above.W[0, 0], above.b[0], np.exp(above.log_sd[0])

    def divergence(numbers):
        location, sd = numbers[:2], np.exp(numbers[2:])
        a = location / sd
        r = np.exp(-0.5 * a * a - 0.5 * np.log(2.0 * np.pi) - log_ndtr(a))
        m, v = location + sd * r, sd**2 * (1.0 - a * r - r * r)
        entropy = np.log(sd) + log_ndtr(a) + 0.5 * (v + (m - location) ** 2) / sd**2
        energy = ((m[0] - c) ** 2 + v[0]) / s1**2 + ((m[1] - w * m[0] - b) ** 2 + v[1] + w * w * v[0]) / s2**2
        return 0.5 * energy - entropy.sum()

    start = np.array([max(c, 0.1), 0.5, np.log(s1), np.log(s2)])
    best = optimize.minimize(divergence, start, method="BFGS", options={"gtol": 1e-9}).x
    return best[:2], np.exp(best[2:])


@pytest.mark.gate
@pytest.mark.parametrize("seed", range(3))
def test_mean_field_predicts_by_the_prior_that_it_trains(seed):
    """The nearest product of cut normals, by another optimiser, and the one that the bound is made of."""
    params = deep_member(seed, (1, 1))
    x, y = np.array([0.4, -0.7]), np.array([0.3])
    location, sd = jax.jit(partial(objective.last_layer, prior="mean_field"))(params, x=x)
    locations, sds = nearest_product(params, x)
    assert_allclose([location[0], sd[0]], [locations[1], sds[1]], rtol=1e-3, atol=1e-4)
    trained = mf.phases(params, x, y, 0, 60)[1]
    assert_allclose([location[0], sd[0]], [trained.location[1], trained.sd[1]], rtol=1e-3, atol=1e-4)
    made = Ensemble(ensemble_of(params), DEEP, np.ones(1), 1.0, np.zeros(1), np.ones(1))
    mean, variance = predict.member_moments_of(made.params, DEEP, x[None])
    a = -locations[1] / sds[1]
    unit = stats.truncnorm(a, np.inf, locations[1], sds[1])
    w, noise = params.W1[0, 0], np.exp(2.0 * params.log_sd1[0])
    assert_allclose(mean[0, 0, 0], w * unit.mean() + params.b1[0], rtol=1e-3, atol=1e-4)
    assert_allclose(variance[0, 0, 0], w**2 * unit.var() + noise, rtol=1e-3)
    judged = objective.predictive_log_likelihood(params, DEEP, x, y)
    assert_allclose(judged, stats.norm.logpdf(y[0], mean[0, 0, 0], np.sqrt(variance[0, 0, 0])), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_moments_pass_up_a_normal_and_do_not_look_back(seed):
    """Exact for its own law, a normal below that is cut above; eq. 39 also looks back on the layer below."""
    params = deep_member(seed, (1, 1))
    x = np.array([0.4, -0.7])
    c, s1 = (params.W0 @ x + params.b0)[0], np.exp(params.log_sd0[0])
    below = stats.truncnorm(-c / s1, np.inf, c, s1)
    above = params.deeper[0]
    centre = above.W[0, 0] * below.mean() + above.b[0]
    spread = np.hypot(np.exp(above.log_sd[0]), above.W[0, 0] * below.std())
    location, sd = jax.jit(partial(objective.last_layer, prior="moments"))(params, x=x)
    assert_allclose([location[0], sd[0]], [centre, spread], rtol=1e-9)
    _, second, _, mass = joint(params, x)
    exact = mass.sum(axis=0) @ second
    passed_up = stats.truncnorm(-centre / spread, np.inf, centre, spread).mean()
    factorised = stats.truncnorm(*_cut(*nearest_product(params, x))).mean()
    assert abs(passed_up - exact) < 0.2 * exact
    assert abs(factorised - exact) < 0.5 * exact


def _cut(locations, sds):
    return -locations[1] / sds[1], np.inf, locations[1], sds[1]


def test_deep_mean_field_is_judged_with_the_inflation_that_calibration_gives():
    params = ensemble_of(deep_member(0, (1, 1)))
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(1, 16, 2)), 3.0 * rng.normal(size=(1, 16, 1))
    mean, variance = predict.member_moments_of(params, DEEP, X[0])
    off = (Y[0] - mean[0])[:, 0]
    factor = np.clip(np.mean(off**2 / variance[0, :, 0]), *updates.INFLATIONS_IN_DEPTH)
    expected = stats.norm.logpdf(off, 0.0, np.sqrt(factor * variance[0, :, 0])).mean()
    assert_allclose(updates.held_out_score(params, DEEP, X, Y, np.ones((1, 16)))[0], expected, rtol=1e-6)

"""Moments from the distribution function alone, against those that are known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.predictive import laws

from nongauss.predictive import combined, distribution
from nongauss.predictive.clipped import ClippedDistribution
from nongauss.predictive.combined import mixture
from nongauss.predictive.composed import LogNormalDistribution
from nongauss.predictive.mixture import GaussianMixtureDistribution, standard_normal
from nongauss.predictive.moments import moments_by_cdf
from nongauss.predictive.recalibrated import RecalibratedDistribution
from nongauss.sparse_gp import likelihoods


def mixed(weights, means, sds):
    """Mixtures of Gaussians, one a row."""
    weights, means, sds = np.broadcast_arrays(*map(np.atleast_2d, (weights, means, sds)))
    mean = (weights * means).sum(axis=1, keepdims=True)
    variance = (weights * (sds**2 + (means - mean) ** 2)).sum(axis=1, keepdims=True)
    return GaussianMixtureDistribution(
        mean, variance, lambda r: (np.log(weights[r]), means[r][..., None], sds[r][..., None]), squeeze=True
    )


RNG = np.random.default_rng(0)
LAWS = {
    "normal": mixed([1.0], [3.0], [0.1]),
    "far apart": mixed([0.5, 0.5], [-5.0, 5.0], [0.3, 0.3]),
    "skewed": mixed([0.9, 0.08, 0.02], [0.0, 2.0, 6.0], [0.3, 1.0, 3.0]),
    "narrow in wide": mixed([0.2, 0.8], [0.5, 0.0], [0.01, 1.0]),
    "many": mixed(
        RNG.dirichlet(np.ones(10), 20), 3 * RNG.normal(size=(20, 10)), RNG.uniform(0.05, 1.0, (20, 10))
    ),
    "heavy tails": mixed([0.97, 0.03], [0.0, 0.0], [1.0, 10.0]),
    "log-normal": LogNormalDistribution(mixed([1.0], [0.0], [1.0])),
    "gamma": laws.gamma(0.5)(np.array([0.2, 1.0]), np.array([0.05, 0.4])),
    "beta": laws.beta(0.5)(np.array([-2.0, 1.0]), np.array([0.05, 0.4])),
}


@pytest.mark.parametrize("name", LAWS)
def test_they_are_those_of_the_law(name):
    law = LAWS[name]
    mean, variance = moments_by_cdf(law)
    assert_allclose((mean - law.mean) / law.std, 0.0, atol=2e-3)
    assert_allclose(np.sqrt(variance), law.std, rtol=3e-3)


def test_limits_and_values_with_a_probability_are_met():
    normal = mixed([1.0], [0.0], [1.0])
    folded = ClippedDistribution(normal, 0.0, np.inf)
    mean, variance = moments_by_cdf(folded)
    assert_allclose(mean, 1 / np.sqrt(2 * np.pi), rtol=2e-3)
    assert_allclose(variance, 0.5 - 1 / (2 * np.pi), rtol=2e-3)
    often_zero = mixture([folded, mixed([1.0], [4.0], [0.5])], [0.6, 0.4])
    mean, _ = moments_by_cdf(often_zero)
    assert_allclose(mean, 0.6 / np.sqrt(2 * np.pi) + 1.6, rtol=1e-3)


def test_rows_are_worked_on_in_blocks(monkeypatch):
    law = mixture([LAWS["many"], ClippedDistribution(LAWS["many"], -1.0, np.inf)], [0.3, 0.7])
    whole, quantiles = moments_by_cdf(law), law.quantile([0.1, 0.8])
    for module in (distribution, combined):
        monkeypatch.setattr(module, "MOST_ROWS", 7)
    assert_array_equal(moments_by_cdf(law), whole)
    assert_allclose(law.quantile([0.1, 0.8]), quantiles, rtol=1e-12)


@pytest.mark.parametrize("level", [1e-11, 1e-6, 0.3, 0.5, 0.999, 1 - 1e-9])
def test_quantiles_of_mixtures_are_where_the_distribution_function_says(level):
    """Also beyond the reach, and where the place is large beside the width."""
    far = mixture([mixed([1.0], [1e6], [1e-2]), laws.student_t()(np.array([1e6]), np.array([1e-4]))])
    near_0 = np.array([-1.0, 0.5]), np.array([0.1, 0.3])
    for law in (far, mixture([laws.gamma(2.0)(*near_0), laws.beta(8.0)(*near_0)], [0.2, 0.8])):
        q = law.quantile(level)
        tail = law.cdf(q) if level < 0.5 else law.survival(q)
        assert_allclose(tail, min(level, 1 - level), rtol=1e-4 if level < 1e-9 else 1e-6)


@pytest.mark.parametrize("df", [2.3, 3.5, 10.0])
def test_ends_far_out_in_heavy_tails_leave_the_middle_as_it_is(df):
    base = laws.law(likelihoods.StudentT, 0.4, df)(np.array([0.0, 1.0]), np.array([0.05, 0.2]))
    law = RecalibratedDistribution(base, standard_normal(2))
    assert_allclose(law.std, base.std, rtol=0.01)
    assert_allclose(law.mean, base.mean, atol=0.01 * base.std.min())

"""Means that a few far targets, or e^f far from all rows, would ruin."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from tests.predictive import laws

from nongauss import AutoRegressor
from nongauss.auto.figures import largest_mass, supported_range, usable_moments
from nongauss.core.errors import NongaussWarning
from nongauss.predictive.combined import mixture
from nongauss.predictive.composed import LogNormalDistribution
from nongauss.predictive.mixture import GaussianMixtureDistribution


def gaussian(means, sds):
    """One Gaussian a row."""
    mean, sd = np.array(means, float)[:, None], np.array(sds, float)[:, None]

    def components(rows):
        return np.zeros((len(rows), 1)), mean[rows, :, None], sd[rows, :, None]

    return GaussianMixtureDistribution(mean, sd**2, components, squeeze=True, n_components=1)


pytestmark = pytest.mark.usefixtures("few_trees")


def test_a_mean_beyond_its_own_law_and_the_targets_is_the_median():
    law = LogNormalDistribution(gaussian(np.log([20.0, 1.0, 9.0]), [6.0, 0.1, 0.1]))
    with pytest.warns(NongaussWarning, match="In 1 of 3 rows"):
        mean, std = usable_moments(law, 0.0, 5.0)
    assert_allclose(mean[0], 20.0, rtol=1e-6)
    assert_allclose(std[0], 10.0 * (np.exp(6.0 * norm.ppf(0.84)) - np.exp(6.0 * norm.ppf(0.16))), rtol=1e-6)
    assert_array_equal(mean[1:], law.mean[1:])
    assert_array_equal(std[1:], law.std[1:])


def test_what_few_targets_support_counts_as_the_end_of_what_most_do():
    """Of .998 N(0, 1) + .002 N(1e9, 1e18) what is beyond (-6, 6) counts as that: .002 (6 or -6)."""
    own, far = gaussian([0.0, 0.0], [1.0, 1.0]), gaussian([1e9, 1e9], [1e9, 1e9])
    law = mixture([own, far], [0.998, 0.002])
    with pytest.warns(NongaussWarning, match="In 2 of 2 rows the mean rests on"):
        mean, std = usable_moments(law, -2.0, 2.0)
    assert_allclose(mean, 0.002 * 6.0 * (norm.cdf(1.0) - norm.cdf(-1.0)), atol=3e-3)
    assert_allclose(std, np.sqrt(0.998 + 0.002 * 36.0), atol=5e-3)


def test_a_law_that_goes_on_beyond_the_targets_keeps_its_mean():
    law = gaussian([0.0, 40.0], [1.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean, _ = usable_moments(law, -2.0, 2.0)
    assert_array_equal(mean, [0.0, 40.0])


def test_what_a_law_holds_likely_beyond_few_targets_keeps_its_mean():
    """.85 N(10, 1) + .15 N(100, 25) after two such targets among hundreds near 10."""
    law = mixture([gaussian([10.0], [1.0]), gaussian([100.0], [5.0])], [0.85, 0.15])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean, std = usable_moments(law, 8.0, 12.0)
    assert_allclose(mean, 23.5)
    assert_allclose(std, np.sqrt(0.85 + 0.15 * 25.0 + 0.15 * 0.85 * 90.0**2))


@pytest.mark.parametrize(("n_far", "expected"), [(2, 0.8 * 3.0 + 0.2 * 18.0), (3, 0.8 * 3.0 + 0.2 * 1e6)])
def test_what_two_targets_tell_supports_no_mean_unless_it_is_half_of_a_law(n_far, expected):
    """.8 Poisson(3) + .2 Poisson(1e6) of a row beside up to two targets of 1e6 is as if these were 18."""
    y = np.append(np.arange(100.0) % 10.0, np.full(n_far, 1e6))
    low, high = supported_range(y, np.ones(len(y)))
    assert (low, high) == (0.0, 9.0 if n_far < 3 else 1e6)
    own, far = (laws.poisson(np.full(2, np.log(rate)), np.zeros(2)) for rate in (3.0, 1e6))
    mass = largest_mass(y, np.ones(len(y)), low, high)
    with warnings.catch_warnings(action="ignore"):
        mean, _ = usable_moments(mixture([own, far], [0.8, 0.2]), low, high, mass)
    assert_allclose(mean, expected, rtol=0.01)


def test_amounts_with_zeros_and_a_far_one_keep_their_means():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(120, 3))
    truth = np.where(rng.random(120) < 0.3, 0.0, np.exp(0.5 * X[:, 0] + 0.3 * rng.normal(size=120)))
    y = truth.copy()
    y[5] = 1e9
    model = AutoRegressor(candidates=["constant with zeros"], random_state=0).fit(X, y)
    with pytest.warns(NongaussWarning, match="far from nearly all training targets"):
        error = np.abs(model.predict(X) - truth)[y == truth]
    assert error.max() < 5.0
    assert error.mean() < 0.5


def test_counts_are_doubted_too():
    own, far = (laws.poisson(np.full(2, np.log(rate)), np.zeros(2)) for rate in (3.0, 1e6))
    with pytest.warns(NongaussWarning, match="In 2 of 2 rows"):
        mean, _ = usable_moments(mixture([own, far], [0.99, 0.01]), 0.0, 9.0)
    assert_allclose(mean, 0.99 * 3.0 + 0.01 * 18.0, atol=0.03)


def test_rare_amounts_that_enough_rows_have_support_a_mean():
    """Every 25th of 200 amounts is 30 times as large, or every hundredth of 2,000: that is the law."""
    amounts = np.exp(np.random.default_rng(0).normal(4.0, 0.3, 2000))
    for n, every in ((200, 25), (2000, 100)):
        y = np.where(np.arange(n) % every == 0, 30.0 * amounts[:n], amounts[:n])
        low, high = supported_range(y, np.ones(n))
        assert low == np.sort(y)[2]
        assert high == np.sort(y)[-3] > 900.0


def test_ends_are_looked_for_among_other_values():
    """Where all but a few targets have one value, fewer are alone."""
    y = np.where(np.arange(200) % 100 == 0, 1e5, 0.0)
    assert supported_range(y, np.ones(200)) == (0.0, 1e5)
    assert supported_range(np.append(y, 1e9), np.ones(201)) == (0.0, 1e5)


def test_rows_of_weight_count_as_often():
    y = np.append(np.arange(100.0), 1e9)
    assert supported_range(y, np.ones(101)) == (2.0, 98.0)
    assert supported_range(y, np.append(np.ones(100), 20.0)) == (2.0, 1e9)
    assert supported_range(y[-4:], np.ones(4)) == (97.0, 1e9)


@pytest.mark.parametrize("far", [[1e9], [-1e12], [1e9, 1e9]])
def test_a_few_far_targets_do_not_ruin_the_mean(far):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80 * len(far), 3))
    truth = X[:, 0] + 0.3 * rng.normal(size=len(X))
    y = truth.copy()
    y[: len(far)] = far
    model = AutoRegressor(candidates=["constant", "gp laplace"], random_state=0).fit(X, y)
    with pytest.warns(NongaussWarning, match="far from nearly all training targets"):
        mean, std = model.predict(X[len(far) :], return_std=True)
    with warnings.catch_warnings(action="ignore"):
        told = model.explain(X[5:6], background=X[6:9])["mean"].to_numpy()
    assert np.sqrt(((mean - truth[len(far) :]) ** 2).mean()) < 0.5
    assert np.median(std) < 1.5  # of some 2 % of the law at a limit of 7
    assert np.abs(told).max() < 4.0

"""Quantiles of counts at many levels: each is the smallest number that is enough, and costs little."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, ndtr
from scipy.stats import nbinom, poisson
from tests.predictive import laws
from tests.predictive.test_recalibrated import TWO, gaussians

from nongauss.predictive.combined import mixture
from nongauss.predictive.counts import ascending_counts
from nongauss.predictive.law import LatentDistribution
from nongauss.predictive.recalibrated import RecalibratedDistribution
from nongauss.sparse_gp.likelihoods import NegativeBinomial

LEVELS = np.array([0.5, 1e-6, 0.999999, 0.0, 0.9, 0.5, 0.05])
INNER = LEVELS[LEVELS > 0.0]


def test_each_number_is_the_smallest_that_is_enough():
    rates = np.array([0.01, 3.0, 170.0, 1e7])
    levels = np.linspace(1e-6, 1.0 - 1e-6, 40)

    def cdf(y, rows):
        return poisson.cdf(y, rates[rows])

    first = poisson.ppf(levels[0], rates)
    found = ascending_counts(cdf, np.tile(levels, (4, 1)), first)
    assert (poisson.cdf(found, rates[:, None]) >= levels).all()
    assert (poisson.cdf(found - 1.0, rates[:, None]) < levels).all()
    at_most = ascending_counts(cdf, np.tile(levels, (4, 1)), np.minimum(first, 2.0), np.full(4, 2.0))
    assert_array_equal(at_most, np.minimum(found, 2.0))


@pytest.mark.parametrize("is_constant", [False, True])
def test_levels_in_any_order_are_those_of_a_law_without_spread(is_constant):
    log_mean = np.full(5, 2.0) if is_constant else np.linspace(-3.0, 9.0, 5)
    law = NegativeBinomial().predictive(log_mean[:, None], np.full((5, 1), 1e-16), np.array([np.log(0.7)]))
    expected = nbinom.ppf(INNER[None], 0.7, expit(np.log(0.7) - log_mean)[:, None])
    found = law.quantile(LEVELS)
    assert_array_equal(found[:, LEVELS == 0.0], 0.0)
    assert_array_equal(found[:, LEVELS > 0.0], expected)


def of_scores_twice(base):
    inner = RecalibratedDistribution(base, gaussians(*TWO, len(base)))
    return RecalibratedDistribution(inner, gaussians([1.0], [0.2], [1.1], len(base)))


def test_a_law_of_scores_has_the_smallest_numbers_that_are_enough():
    law = of_scores_twice(laws.negative_binomial(0.7)(np.linspace(-2.0, 6.0, 6), np.full(6, 0.1)))
    found = law.quantile(INNER)
    assert_array_equal(found[:, 0], law.quantile(0.5))
    for level, y in zip(INNER, found.T, strict=True):
        assert (law.cdf(y) >= level - 1e-12).all()
        assert ((law.cdf(y - 1.0) < level + 1e-12) | (y == 0.0)).all()


@pytest.mark.parametrize("is_constant", [False, True])
def test_moments_of_scores_on_scores_ask_a_count_s_law_a_few_hundred_times(monkeypatch, is_constant):
    """By the rows that its distribution function is asked for; once for all where these have one law."""
    mean = np.full(10, 2.0) if is_constant else np.linspace(1.5, 2.5, 10)
    law = of_scores_twice(laws.negative_binomial(0.3)(mean, np.full(10, 0.01)))
    asked = []
    own = LatentDistribution._cdf_of_each
    monkeypatch.setattr(
        LatentDistribution, "_cdf_of_each", lambda self, y, rows: asked.append(len(y)) or own(self, y, rows)
    )
    assert np.isfinite(law.mean).all()
    assert sum(asked) < (700 if is_constant else 6000)


MANY = np.arange(3000.0)
WIDE = ([0.6, 0.4], [0.0, -0.5], [1.0, 2.0])


@pytest.mark.parametrize("make", [laws.poisson, laws.negative_binomial(5.0), laws.negative_binomial(0.7)])
def test_moments_of_scores_are_sums_over_all_whole_numbers(make):
    mean, spread = np.array([-2.0, 0.5, 1.5]), np.array([0.01, 0.1, 0.1])
    law = RecalibratedDistribution(make(mean, spread), gaussians(*WIDE, 3))
    tolerance = 1e-7 if law.quantile(1.0 - 1e-12).max() < 500 else 2e-3  # of groups of numbers
    for n in range(3):
        same = make(np.full(len(MANY), mean[n]), np.full(len(MANY), spread[n]))
        mass = np.diff(RecalibratedDistribution(same, gaussians(*WIDE, len(MANY))).cdf(MANY), prepend=0.0)
        expected = MANY @ mass
        assert_allclose(law.mean[n], expected, rtol=tolerance)
        assert_allclose(law.variance[n], (MANY - expected) ** 2 @ mass, rtol=10.0 * tolerance)


def test_moments_and_draws_of_few_counts_ask_for_each_of_them_once(monkeypatch):
    """By the numbers that a count's law is asked for: some ten rows of a mean near 3, ten draws each."""
    law = RecalibratedDistribution(laws.poisson(np.linspace(0.5, 1.5, 10), np.full(10, 0.01)), SAME_WIDE)
    asked = []
    own = LatentDistribution._cdf_of_each
    monkeypatch.setattr(
        LatentDistribution, "_cdf_of_each", lambda self, y, rows: asked.append(len(y)) or own(self, y, rows)
    )
    assert np.isfinite(law.mean).all()
    n_of_moments = sum(asked)
    assert n_of_moments < 600
    law.sample(10, random_state=0)
    assert sum(asked) - n_of_moments < 300


SAME_WIDE = gaussians([1.0], [0.1], [1.1], 10)


def test_draws_of_counts_are_the_smallest_numbers_whose_score_is_drawn():
    base = laws.negative_binomial(0.7)(np.linspace(-1.0, 6.0, 10), np.full(10, 0.1))
    z = SAME_WIDE.sample(40, random_state=3)
    drawn = RecalibratedDistribution(base, SAME_WIDE).sample(40, random_state=3)
    for score, y in zip(z.T, drawn.T, strict=True):
        assert (base.cdf(y) >= ndtr(score) - 1e-12).all()
        assert ((base.cdf(y - 1.0) < ndtr(score) + 1e-12) | (y == 0.0)).all()


def test_a_law_without_an_end_has_draws_and_moments():
    """One in a million counts is e^900 times as large: the tail of its law is beyond all numbers."""
    near, far = (laws.negative_binomial(0.1)(np.full(3, m), np.full(3, 0.01)) for m in (1.0, 900.0))
    base = mixture([near, far], [1.0 - 1e-6, 1e-6])
    assert np.isinf(base.quantile(1.0 - 1e-7)).any()
    law = RecalibratedDistribution(base, gaussians([1.0], [0.0], [1.1], 3))
    assert not np.isnan(law.mean).any()
    assert (law.sample(20, random_state=0) >= 0.0).all()

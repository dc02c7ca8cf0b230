"""Laws of numbers so large or small that not all are told apart, as a count of 1e7 among threes asks for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gamma

from nongauss.predictive.combined import mixture
from nongauss.predictive.crps import _run_rule
from nongauss.predictive.mixture import standard_normal
from nongauss.predictive.recalibrated import recalibrated
from nongauss.sparse_gp.likelihoods import Gamma, NegativeBinomial


def counts(log_mean: float):
    """A negative binomial law of shape 1 about e^f with f of a small variance."""
    return NegativeBinomial().predictive(np.full((2, 1), log_mean), np.full((2, 1), 1e-6), np.zeros(1))


def unchanged(base):
    """The same law by way of its normal scores."""
    return recalibrated(base, standard_normal(len(base)))


@pytest.mark.parametrize("change", [lambda law: mixture([law, counts(44.0)], [0.9999999, 1e-7]), unchanged])
def test_quantiles_end_where_whole_numbers_are_no_longer_told_apart(change):
    base = counts(45.0)  # e^45 = 3.5e19, beside 9e15 from which on only every second is there
    assert_allclose(change(base).quantile([0.5, 0.9]), base.quantile([0.5, 0.9]), rtol=1e-6)


def test_crps_of_wide_counts_ends_and_is_that_of_the_exponential_law():
    """A geometric law of a large mean m is exponential: CRPS(y) = y + 2 m e^(-y/m) - 3 m / 2."""
    for log_mean in (20.0, 28.0):
        y = 0.3 * np.exp(log_mean) * np.ones(2)
        expected = (0.3 + 2.0 * np.exp(-0.3) - 1.5) * np.exp(log_mean)
        assert_allclose(counts(log_mean).crps(np.rint(y)), expected, rtol=1e-5)


@pytest.mark.parametrize("doublings", [15, 17])
def test_the_rule_of_a_long_run_sums_what_is_smooth(doublings):
    fine, _ = _run_rule(doublings)
    size = 8 * 2.0**doublings
    sums = np.exp(-np.arange(size) / size).sum()
    assert_allclose(fine @ np.exp(-np.arange(9) / 8.0), sums, rtol=1e-6)


def test_a_quantile_below_the_least_number_is_none_worth_telling():
    """Of a gamma law of shape k, P(Y < y) = (k y)^k / Gamma(k + 1) of small y: at 1e-9 y < e^-300."""
    law = Gamma().predictive(np.zeros((2, 1)), np.full((2, 1), 1e-6), np.log([0.02]))
    low, middle = law.quantile([1e-9, 0.5]).T
    assert_allclose(low, 0.0, atol=1e-100)
    assert_allclose(np.log(middle), np.log(0.5 * gamma(1.02)) / 0.02 - np.log(0.02), rtol=1e-3)

"""Calibration by rows left out: what is wrong is mended, what is right is left alone, and it stays a law."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from scipy.stats import norm, poisson
from tests.auto.test_local_law import gaussian
from tests.predictive import laws

from nongauss.auto.calibration import LabelCalibration, fit_labels, fit_scores, no_calibration
from nongauss.predictive.composed import LogNormalDistribution


def test_a_law_that_is_right_is_left_alone():
    rng = np.random.default_rng(0)
    for n in (100, 1000):
        assert fit_scores(gaussian(np.zeros(n), np.ones(n)), rng.normal(size=n), np.ones(n)) is None
    assert fit_scores(gaussian(np.zeros(20), np.ones(20)), 3 * rng.normal(size=20), np.ones(20)) is None


def test_too_narrow_and_shifted_laws_are_mended():
    rng = np.random.default_rng(1)
    y, new = 0.3 + 1.6 * rng.normal(size=(2, 800))
    found = fit_scores(gaussian(np.zeros(800), np.ones(800)), y, np.ones(800))
    base = gaussian(np.zeros(800), np.ones(800))
    law = found.law(base)
    truth = norm.logpdf(new, 0.3, 1.6).mean()
    assert law.log_prob(new).mean() > truth - 0.03 > base.log_prob(new).mean() + 0.1
    low, high = law.interval(0.9).T
    assert 0.87 < ((low <= new) & (new <= high)).mean() < 0.93


def test_positive_numbers_and_counts_stay_what_they_are():
    rng = np.random.default_rng(2)
    n = 600
    base = LogNormalDistribution(gaussian(np.zeros(n), np.ones(n)))
    y = np.exp(2.0 * rng.normal(size=n))
    law = fit_scores(base, y, np.ones(n)).law(base)
    assert (law.quantile(0.01) > 0).all()
    assert law.log_prob(y).mean() > base.log_prob(y).mean() + 0.1
    counts = laws.poisson(np.full(n, 1.0), np.full(n, 0.01))
    y = poisson(np.exp(1.0 + rng.normal(size=n))).rvs(random_state=rng).astype(float)
    law = fit_scores(counts, y, np.ones(n)).law(counts)
    assert law.is_discrete
    assert law.log_prob(y).mean() > counts.log_prob(y).mean() + 0.1
    assert_allclose(sum(np.exp(law.log_prob(k)[0]) for k in range(60)), 1.0, atol=1e-6)


@pytest.fixture(scope="module")
def told():
    """Logits of three classes (N, 3), and labels that follow their softmax."""
    rng = np.random.default_rng(3)
    logits = 1.5 * rng.normal(size=(1500, 3))
    codes = np.array([rng.choice(3, p=p) for p in softmax(logits, axis=1)])
    return logits, codes


def test_labels_are_calibrated_by_the_form_that_is_needed(told):
    logits, codes = told
    one = np.ones(len(codes))
    assert fit_labels(softmax(logits, axis=1), codes, one).form == "none"
    sharp = fit_labels(softmax(2.0 * logits, axis=1), codes, one)
    assert sharp.form == "temperature"
    assert_allclose(sharp.temperature, 2.0, rtol=0.15)
    apart = logits + np.array([1.0, 0.0, -1.0])
    moved = fit_labels(softmax(apart, axis=1), codes, one)
    assert moved.form == "offsets"
    confused = np.array([[1.0, 0.8, -0.8], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    mixed = logits @ np.linalg.inv(confused).T
    found = fit_labels(softmax(mixed, axis=1), codes, one)
    assert found.form == "matrix"
    for made, given in ((sharp, 2 * logits), (moved, apart), (found, mixed)):
        P = made(softmax(given, axis=1))
        assert_allclose(P.sum(axis=1), 1.0)
        assert np.abs(P - softmax(logits, axis=1)).mean() < 0.03


def test_weight_two_is_the_row_twice_and_nothing_is_nothing(told):
    logits, codes = told[0][:200], told[1][:200]
    P = softmax(3.0 * logits, axis=1)
    twice = fit_labels(np.tile(P, (2, 1)), np.tile(codes, 2), np.ones(400))
    heavy = fit_labels(P, codes, np.full(200, 2.0))
    assert_allclose(twice.temperature, heavy.temperature, rtol=1e-4)
    assert_array_equal(no_calibration(3)(P), P)
    assert isinstance(heavy, LabelCalibration)

"""Tests of held-out rows against SciPy's and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, ttest_rel

from nongauss.report.evidence import (
    Dependence,
    blocks,
    chance_band,
    class_shares,
    confidence,
    difference,
    interval_coverage,
)

ALONE = Dependence()


def test_the_paired_test_is_scipys():
    rng = np.random.default_rng(0)
    for shift in (0.0, 0.05, 0.5, -0.3):
        a, b = rng.normal(size=(2, 40))
        found = difference(a + shift, b, ALONE, baseline="b")
        expected = ttest_rel(a + shift, b)
        assert found.p_value == pytest.approx(expected.pvalue)
        assert found.mean / found.se == pytest.approx(expected.statistic)
        assert found.sign == (np.sign(expected.statistic) if expected.pvalue <= 0.05 else 0)
        low, high = expected.confidence_interval(0.95)
        assert found.reach == pytest.approx((high - low) / 2)


def test_groups_count_as_what_they_are():
    rng = np.random.default_rng(1)
    each = rng.normal(size=30)
    groups = np.repeat(np.arange(30), 8)
    se, df = Dependence(groups).of_mean(np.repeat(each, 8))
    alone, _ = ALONE.of_mean(each)
    assert (se, df) == (pytest.approx(alone), 29)
    hits = np.repeat(rng.random(30) < 0.7, 8).astype(float)
    assert Dependence(groups).effective(hits) == pytest.approx(30, rel=0.1)
    assert ALONE.effective(hits) == 240
    many, _ = Dependence(None, several=True).of_mean(each)
    assert many == pytest.approx(math.sqrt(1.25) * alone)
    np.testing.assert_array_equal(blocks(6, 3), [0, 0, 1, 1, 2, 2])
    assert len(np.unique(blocks(5, 12))) == 5


def test_equal_scores_are_no_difference_and_impossible_ones_are_worse():
    a = np.random.default_rng(0).normal(size=20)
    assert difference(a, a.copy(), ALONE, baseline="b").sign == 0
    assert difference(a, a + 1e-15, ALONE, baseline="b").sign == 0
    found = difference(np.where(np.arange(20) == 3, -np.inf, a), a, ALONE, baseline="b")
    assert (found.sign, found.impossible) == (-1, 1)
    found = difference(a, np.where(np.arange(20) == 3, -np.inf, a), ALONE, baseline="b")
    assert found.sign == 0  # one row says little
    assert found.mean == pytest.approx((a[3] + 745.0) / 20)
    assert difference(a + 0.01, a, ALONE, baseline="b", margin=0.02).sign == 0
    assert difference(a + 0.01, a, ALONE, baseline="b").sign == 1
    assert difference(a[:1] + 1, a[:1], ALONE, baseline="b").sign == 0  # one row


def test_noise_is_called_a_difference_as_often_as_the_level_says():
    rng = np.random.default_rng(2)
    wrong = sum(difference(*rng.normal(size=(2, 25)), ALONE, baseline="b").sign != 0 for _ in range(2000))
    assert 70 < wrong < 135  # 5 % of 2000


def test_coverage_and_its_band():
    assert chance_band(0.9, 100, 0.05) == tuple(np.array(binom.interval(0.95, 100, 0.9)) / 100)
    rng = np.random.default_rng(3)
    inside = [all(c.sign == 0 for c in interval_coverage(rng.random(80), ALONE)) for _ in range(1000)]
    assert 0.94 < np.mean(inside) < 0.995
    narrow = interval_coverage(np.clip(0.5 + 2.5 * (rng.random(300) - 0.5), 0, 1), ALONE)
    assert [c.sign for c in narrow] == [-1, -1, -1]
    wide = interval_coverage(0.5 + 0.5 * (rng.random(300) - 0.5), ALONE)
    assert [c.sign for c in wide] == [1, 1, 1]
    assert narrow[2].level == 0.9
    np.testing.assert_allclose(narrow[0].held, 0.5 / 2.5, atol=0.07)


def test_right_probabilities_are_found_right_and_sharpened_ones_too_sure():
    rng = np.random.default_rng(4)
    right = []
    for _ in range(400):
        p = rng.dirichlet(np.ones(3), size=150)
        place = (rng.random(150)[:, None] > p.cumsum(axis=1)).sum(axis=1)
        right.append(confidence(p, place, ALONE).sign == 0)
    assert np.mean(right) > 0.95
    sure = p**3 / (p**3).sum(axis=1, keepdims=True)
    assert confidence(sure, place, ALONE).sign == -1
    assert confidence(p**0.3 / (p**0.3).sum(axis=1, keepdims=True), place, ALONE).sign == 1
    assert [c.sign for c in class_shares(p, place, ALONE)] == [0, 0, 0]
    assert class_shares(p, np.zeros(150, dtype=int), ALONE)[0].sign == 1

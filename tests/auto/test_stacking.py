"""Shares of laws against a search over all of them."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import norm

from nongauss.auto.stacking import stacked


def test_shares_are_the_best_of_a_grid():
    rng = np.random.default_rng(0)
    law = rng.choice(3, 900, p=[0.5, 0.2, 0.3])
    y = rng.normal(np.array([0.0, 4.0, -5.0])[law])
    weight = rng.integers(1, 4, 900).astype(float)
    density = np.stack([norm.logpdf(y, m) for m in (0.0, 4.0, -5.0)])
    share = stacked(density, weight)
    grid = [
        (a, b, 1 - a - b) for a in np.linspace(0, 1, 101) for b in np.linspace(0, 1 - a, 101) if a + b <= 1
    ]
    with np.errstate(divide="ignore"):
        scores = [weight @ logsumexp(density + np.log(np.maximum(s, 1e-300))[:, None], axis=0) for s in grid]
    assert_allclose(share, grid[int(np.argmax(scores))], atol=0.011)
    assert weight @ logsumexp(density + np.log(share)[:, None], axis=0) >= max(scores) - 1e-6


def test_a_law_that_adds_nothing_gets_nothing():
    y = np.random.default_rng(1).normal(size=400)
    density = np.stack([norm.logpdf(y, 0.0, s) for s in (1.0, 1.02, 0.97, 3.0)] + [norm.logpdf(y, 0.05)])
    share = stacked(density, np.ones(400))
    assert (share > 0).sum() == 1
    assert share.sum() == 1.0


def test_a_small_share_saves_rows_that_the_best_finds_impossible():
    rng = np.random.default_rng(2)
    y = np.concatenate([rng.normal(size=190), rng.normal(0, 20, 10)])
    share = stacked(np.stack([norm.logpdf(y), norm.logpdf(y, 0, 20)]), np.ones(200))
    assert 0.01 < share[1] < 0.15


def test_a_row_that_is_impossible_under_one_law_or_all_is_no_obstacle():
    density = np.array([[0.0, -1.0, -np.inf, -np.inf], [-1.0, -1.0, -2.0, -np.inf], [-np.inf] * 4])
    share = stacked(density, np.ones(4))
    assert np.isfinite(share).all()
    assert share[1] > 0
    assert share[2] == 0


def test_weight_is_repetition():
    rng = np.random.default_rng(3)
    density = rng.normal(size=(3, 50))
    weight = rng.integers(0, 4, 50).astype(float)
    repeated = np.repeat(density, weight.astype(int), axis=1)
    assert_allclose(stacked(density, weight), stacked(repeated, np.ones(repeated.shape[1])), atol=1e-6)

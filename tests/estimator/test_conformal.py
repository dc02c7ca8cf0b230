"""Intervals with a guarantee: their coverage by simulation, by group, of counts, and what cannot be given."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import poisson

import nongauss
from nongauss.core.errors import InputError
from nongauss.estimator.conformal import scored
from nongauss.predictive.composed import RoundedDistribution
from nongauss.predictive.mixture import GaussianMixtureDistribution


def gaussian(mean, sd):
    """N(mean, sd^2) of each row, (N,) each; (N, P) for P outputs."""
    mean, sd = np.asarray(mean, float), np.asarray(sd, float)
    squeeze = mean.ndim == 1
    m, s = (v[:, None] if squeeze else v for v in (mean, sd))

    def components(rows):
        return np.zeros((len(rows), 1)), m[rows, None], s[rows, None]

    return GaussianMixtureDistribution(m, s**2, components, squeeze=squeeze, n_components=1)


def growing_noise(rng, x):
    return x + np.exp(2 * x) * rng.normal(size=len(x))


def heavy_tails(rng, x):
    return x + rng.standard_t(1.5, size=len(x))


def skewed(rng, x):
    return np.exp(x + rng.normal(size=len(x)))


@pytest.mark.parametrize("draw", [growing_noise, heavy_tails, skewed])
@pytest.mark.parametrize("n", [100, 300, 1000])
def test_coverage_is_at_least_what_was_asked_whatever_the_model(draw, n):
    """The model is N(x, 0.7^2), which is wrong. Theory: .8 to .8 + 1 / (n + 1); the error is below .008."""
    rng = np.random.default_rng(n)
    inside = []
    for _ in range(40):
        x = rng.uniform(-1, 1, n + 200)
        y = draw(rng, x)
        law = lambda of: gaussian(of, np.full(len(of), 0.7))  # noqa: E731
        low, high = scored(law(x[:n]), y[:n]).interval(law(x[n:]), 0.8, None).T
        inside.append(((low <= y[n:]) & (y[n:] <= high)).mean())
    assert 0.8 - 0.025 < np.mean(inside) < 0.8 + 1 / (n + 1) + 0.025


def test_each_group_is_covered():
    rng = np.random.default_rng(0)
    whole, grouped = [], []
    for _ in range(40):
        group = np.where(rng.random(600) < 0.2, "loud", "calm")
        y = np.where(group == "loud", 5.0, 0.5) * rng.normal(size=600)
        old, new = slice(0, 500), slice(500, 600)
        law = lambda n: gaussian(np.zeros(n), np.full(n, 2.0))  # noqa: E731
        scores = scored(law(500), y[old], groups=group[old])
        loud = group[new] == "loud"
        for groups, into in ((None, whole), (group[new], grouped)):
            low, high = scores.interval(law(100), 0.9, groups).T
            into.append(((low <= y[new]) & (y[new] <= high))[loud].mean())
    assert np.mean(whole) < 0.75
    assert 0.88 < np.mean(grouped) < 0.94


def test_counts_are_covered_and_the_row_that_sets_the_interval_is_inside():
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(40):
        y = poisson(3.0).rvs(size=160, random_state=rng).astype(float)
        law = lambda n: RoundedDistribution(gaussian(np.full(n, 4.0), np.full(n, 1.0)))  # noqa: E731
        scores = scored(law(120), y[:120])
        low, high = scores.interval(law(40), 0.9, None).T
        inside.append(((low <= y[120:]) & (y[120:] <= high)).mean())
        low, high = scores.interval(law(120), 0.9, None).T
        assert ((low <= y[:120]) & (y[:120] <= high)).sum() >= 0.9 * 121
    assert np.mean(inside) > 0.89


def test_the_interval_is_the_central_one_that_holds_the_row_of_that_rank():
    y = np.arange(1.0, 20.0)  # 19 rows; of 20 the 18th smallest score has 0.9
    scores = scored(gaussian(np.zeros(19), np.ones(19)), y / 10)
    low, high = scores.interval(gaussian([0.0, 5.0], [1.0, 2.0]), 0.9, None).T
    assert_allclose(high, [1.8, 5.0 + 2 * 1.8], rtol=1e-8)
    assert_allclose(low, [-1.8, 5.0 - 2 * 1.8], rtol=1e-8)
    twice = scored(gaussian(np.zeros(19), np.ones(19)), y / 10, weight=np.full(19, 2.0))
    assert_allclose(twice.interval(gaussian([0.0], [1.0]), 0.9, None)[0, 1], 1.8, rtol=1e-8)


def test_each_output_has_its_own():
    rng = np.random.default_rng(2)
    Y = rng.normal(size=(400, 2)) * [1.0, 10.0]
    found = scored(gaussian(np.zeros((400, 2)), np.ones((400, 2))), Y).interval(
        gaussian(np.zeros((3, 2)), np.ones((3, 2))), 0.5, None
    )
    assert found.shape == (3, 2, 2)
    assert_allclose(found[0, 1], 0.674 * np.array([1.0, 10.0]), rtol=0.2)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + rng.normal(size=120)
    model = nongauss.SparseGPRegressor(kernel="linear", n_inducing=5, random_state=0)
    return model.fit(X[:60], y[:60]), X[60:], y[60:]


def test_an_estimator_keeps_scores_in_its_file_and_fit_drops_them(fitted, tmp_path):
    model, X, y = fitted
    with pytest.raises(InputError, match=r"kept no scores.*conformalize\(X, y\)"):
        model.predict_interval(X, guarantee="conformal")
    assert model.conformalize(X, y, groups=np.arange(60) % 2) is model
    one = model.predict_interval(X, 0.8, "conformal", groups=np.arange(60) % 2)
    assert one.shape == (60, 2)
    assert 0.75 < ((one[:, 0] <= y) & (y <= one[:, 1])).mean() <= 1.0
    nongauss.save(model, tmp_path / "m")
    again = nongauss.load(tmp_path / "m")
    assert_array_equal(again.predict_interval(X, 0.8, guarantee="conformal", groups=np.arange(60) % 2), one)
    model.fit(X, y)
    with pytest.raises(InputError, match="kept no scores"):
        model.predict_interval(X, guarantee="conformal")


def test_what_cannot_be_guaranteed_is_said(fitted):
    model, X, y = fitted
    model.conformalize(X[:12], y[:12])
    with pytest.raises(InputError, match=r"0.95 needs 19 scored rows at least: there are 12;"):
        model.predict_interval(X, 0.95, guarantee="conformal")
    with pytest.raises(InputError, match="have no groups"):
        model.predict_interval(X, guarantee="conformal", groups=np.zeros(60))
    with pytest.raises(InputError, match="groups go with"):
        model.predict_interval(X, groups=np.zeros(60))
    with pytest.raises(InputError, match="'none' or 'conformal'"):
        model.predict_interval(X, guarantee="exact")
    model.conformalize(X, y, groups=["a"] * 58 + ["b"] * 2)
    with pytest.raises(InputError, match="in group 'b'"):
        model.predict_interval(X[:1], guarantee="conformal", groups=["b"])
    with pytest.raises(InputError, match="row 0, 'c', has no scored rows"):
        model.predict_interval(X[:1], guarantee="conformal", groups=["c"])
    with pytest.raises(InputError, match="got 1 for 60 rows"):
        model.conformalize(X, y, groups=["a"])


def test_rows_that_the_law_finds_impossible_widen_it_as_far_as_they_lie():
    far = scored(gaussian(np.zeros(20), np.ones(20)), np.full(20, 50.0))
    assert_allclose(far.interval(gaussian([0.0], [1.0]), 0.9, None), [[-50.0, 50.0]], rtol=1e-6)
    assert_allclose(far.interval(gaussian([1.0], [2.0]), 0.9, None), [[-99.0, 101.0]], rtol=1e-6)
    counts = scored(RoundedDistribution(gaussian(np.full(20, 3.0), np.full(20, 0.1))), np.full(20, 9.0))
    assert_array_equal(
        counts.interval(RoundedDistribution(gaussian([3.0], [0.1])), 0.9, None), [[-4.0, 10.0]]
    )

"""The tabulated law against the Fourier integral of the characteristic function, and against itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

from nongauss.core.device import replace
from nongauss.tggm import exact_law, tails
from nongauss.tggm.predict import Ensemble
from tggm.small import CONFIG, ensemble_of, member, one_unit

EXACT = replace(CONFIG, posterior="exact")


def ensemble(*members, inflation=1.0, skewness=1.0, centre=0.0, scale=1.0, factor=tails.MODEL_TAILS):
    one = [np.full(1, number) for number in (inflation, centre, scale)]
    return Ensemble(ensemble_of(*members), EXACT, one[0], skewness, one[1], one[2], factor)


def by_fourier(params, x, y):
    """p(y|x) and P(Y <= y|x) of one output from exp K(iu), the latter by Gil-Pelaez."""
    c, sd = params.W0 @ x + params.b0, np.exp(params.log_sd0)
    a, q, noise = c / sd, params.W1[0] * sd, np.exp(params.log_sd1[0])
    u = np.linspace(0.0, 9.0 / noise, 6001)
    exponent = 1j * u * params.b1[0] - 0.5 * (noise * u) ** 2
    for one, way in zip(a, q, strict=True):
        s = 1j * u * way
        exponent = exponent + s * one + 0.5 * s * s + special.log_ndtr(one + s) - special.log_ndtr(one)
    turned = np.exp(exponent[None, :] - 1j * u[None, :] * y[:, None])
    density = np.trapezoid(turned.real, u, axis=1) / np.pi
    mean = np.trapezoid(density * y, y) if len(y) > 100 else None
    inner = turned.imag[:, 1:] / u[1:]
    at_zero = (mean if mean is not None else 0.0) - y
    below = 0.5 - np.trapezoid(np.column_stack([at_zero, inner]), u, axis=1) / np.pi
    return density, below


# units of a kind, and the largest errors: of the distribution function, and the mean one of the log density
@pytest.mark.parametrize(
    ("n_hidden", "strength", "limit", "lost"),
    [(1, 1.0, 0.012, 4e-3), (3, 1.0, 0.01, 2e-3), (30, 0.3, 1e-3, 1e-4)],
)
def test_the_law_is_near_that_of_the_characteristic_function(n_hidden, strength, limit, lost):
    x = np.array([0.3, -0.2])
    for seed in range(3):
        params = member(seed, n_hidden, strength=strength, noise=0.4)
        law = exact_law.SaddlepointDistribution(ensemble(params), np.repeat(x[None], 400, axis=0))
        y = law.mean[0] + law.std[0] * np.linspace(-7.0, 9.0, 400)
        density, below = by_fourier(params, x, y)
        assert np.abs(law.cdf(y) - below).max() < limit
        seen = density > 1e-12
        divergence = np.trapezoid((density * (np.log(np.abs(density)) - law.log_prob(y)))[seen], y[seen])
        assert 0.0 <= divergence + 1e-5 < lost


def test_density_is_normalised_and_near_the_slope_of_the_distribution_function():
    params = one_unit(-1.0, 1.0, 1.0, 0.3)
    law = exact_law.SaddlepointDistribution(ensemble(params), np.ones((3000, 1)))
    y = law.mean[0] + law.std[0] * np.linspace(-9.0, 14.0, 3000)
    density = np.exp(law.log_prob(y))
    assert_allclose(np.trapezoid(density, y), 1.0, atol=2e-3)
    below = law.cdf(y)
    assert (np.diff(below) >= -1e-12).all()
    assert np.abs(np.cumsum(density) * (y[1] - y[0]) - below).max() < 0.03


def test_far_from_their_cut_units_are_gaussian():
    """Exact there: density, distribution function and quantiles of a normal, far beyond the table too."""
    params = one_unit(30.0, 1.0, 0.5, 0.7, b1=-14.0)
    law = exact_law.SaddlepointDistribution(ensemble(params, centre=2.0, scale=-3.0), np.ones((5, 1)))
    normal = stats.norm(2.0 - 3.0, 3.0 * np.hypot(0.5, 0.7))
    y = normal.mean() + normal.std() * np.array([-15.0, -2.0, 0.0, 1.3, 15.0])
    assert_allclose(law.log_prob(y), normal.logpdf(y), rtol=1e-6, atol=1e-6)
    assert_allclose(law.cdf(y), normal.cdf(y), atol=1e-7)
    levels = np.array([0.001, 0.3, 0.5, 0.95])
    assert_allclose(law.quantile(levels)[0], normal.ppf(levels), rtol=1e-5)
    assert_allclose(law.quantile([0.0, 1.0])[0], [-np.inf, np.inf])


def test_mean_variance_quantiles_and_draws_are_of_one_law():
    members = [member(seed, 4) for seed in range(2)]
    factor = tails.averaged(np.array([0.0, 3.0, 1.0, 0.0, 0.0]))
    made = ensemble(*members, inflation=1.3, skewness=0.5, centre=1.0, scale=2.0, factor=factor)
    made = made._replace(spread_kept=0.5)
    X = np.random.default_rng(0).normal(size=(3, 2))
    law = exact_law.law_of(made, X, squeeze=True)
    mean, variance = made.moments(X)
    assert_allclose(law.mean, mean[:, 0], rtol=1e-10)
    assert_allclose(law.variance, variance[:, 0], rtol=1e-10)
    levels = np.array([0.02, 0.4, 0.9])
    for level, places in zip(levels, law.quantile(levels).T, strict=True):
        assert_allclose(law.cdf(places), level, atol=1e-7)
    draws = law.sample(20_000, random_state=0)
    assert_allclose(draws.mean(axis=1), law.mean, atol=0.06)
    assert_allclose(draws.std(axis=1), law.std, rtol=0.06)
    assert_allclose((draws <= law.quantile(0.4)[:, None]).mean(axis=1), 0.4, atol=0.015)
    some = law[[2, 0]]
    assert_allclose(some.quantile(0.3), law.quantile(0.3)[[2, 0]], rtol=1e-12)


def test_rows_asked_at_many_points_are_tabulated_once(monkeypatch):
    n_tabulated = []
    plain = exact_law.tables

    def counted(made, rows, skewness):
        n_tabulated.append(len(rows))
        return plain(made, rows, skewness)

    law = exact_law.SaddlepointDistribution(
        ensemble(member(0, 4), member(1, 4)), np.random.default_rng(0).normal(size=(6, 2))
    )
    points = np.linspace(-2.0, 3.0, 9)
    one = np.stack([law.cdf(np.full(6, point)) for point in points], axis=1)
    monkeypatch.setattr(exact_law, "tables", counted)
    every = law[np.repeat(np.arange(6), 9)].cdf(np.tile(points, 6)).reshape(6, 9)
    assert n_tabulated == [6]
    assert_allclose(every, one, rtol=1e-9)

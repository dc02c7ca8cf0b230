"""Laws of residuals against the truth that made the data, and against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, kstest, lognorm, nbinom, norm, poisson

from nongauss.report.residual_law import (
    AtomRows,
    LawRows,
    NegativeBinomialLaw,
    RoundedLaw,
    best_law,
    candidates,
    negative_binomial,
    scales_for,
)
from nongauss.report.residuals import kernel_residuals, normal_residuals

RNG = np.random.RandomState


def law_of(y, m, scales=("identity",), counts=False):
    return best_law(candidates(scales, counts), y, m)[0]


@pytest.mark.parametrize("fitted", [normal_residuals, kernel_residuals])
def test_residuals_are_a_law_with_a_density_and_quantiles_that_agree(fitted):
    law = fitted(RNG(0).gamma(2.0, size=80))
    at = np.array([-1.0, 0.3, 1.5, 4.0, 9.0])
    for e, below in zip(at, law.cdf(at), strict=True):
        mass = quad(lambda x: np.exp(law.log_prob(np.array([x]))[0]), -30, e, limit=400)[0]
        # What lies below -30 is the wide law's alone, of weight 1 / 81.
        assert mass + law.cdf(np.array([-30.0]))[0] == pytest.approx(below, abs=2e-6)
    np.testing.assert_allclose(
        law.cdf(law.quantile(np.array([0.05, 0.5, 0.95]))), [0.05, 0.5, 0.95], atol=1e-3
    )


@pytest.mark.parametrize(
    ("scales", "back", "true"),
    [
        (("identity",), lambda z: z, lambda y, f: norm.logpdf(y, f, 0.5)),
        (("identity", "log"), np.exp, lambda y, f: lognorm.logpdf(y, 0.5, scale=np.exp(f))),
    ],
)
def test_the_law_comes_close_to_the_one_that_made_the_rows(scales, back, true):
    rng = RNG(1)
    f = rng.normal(size=2400)
    y = back(f + 0.5 * rng.normal(size=2400))
    law = law_of(y[:400], back(f[:400]), scales)
    new = slice(400, None)
    found = law.log_prob(y[new], back(f[new]))
    assert found.mean() == pytest.approx(true(y[new], f[new]).mean(), abs=0.02)
    assert kstest(law.cdf(y[new], back(f[new])), "uniform").pvalue > 0.01


def test_a_skewed_law_is_found_and_a_normal_one_stays_normal():
    rng = RNG(2)
    zero = np.zeros(600)
    skewed = law_of(rng.gamma(1.0, size=600) - 1.0, zero)
    assert len(skewed.residuals.centres) > 1
    fresh = rng.gamma(1.0, size=4000) - 1.0
    gain = skewed.log_prob(fresh, np.zeros(4000)).mean() - norm.logpdf(fresh).mean()
    assert gain > 0.8 * (gamma.logpdf(fresh + 1.0, 1.0).mean() - norm.logpdf(fresh).mean()) - 0.1
    assert len(law_of(rng.normal(size=600), zero).residuals.centres) == 1


@pytest.mark.parametrize("scale", ["log", "logit"])
def test_targets_beyond_the_support_are_unlikely_and_not_impossible(scale):
    y = RNG(5).beta(4.0, 3.0, size=40)
    law, m = candidates((scale,), counts=False)[0](y, np.full(40, 0.6)), np.full(7, 0.6)
    at = np.array([-2.0, -0.01, 0.3, 0.6, 0.9, 1.1, 3.0])
    slope = (law.cdf(at + 1e-5, m) - law.cdf(at - 1e-5, m)) / 2e-5
    np.testing.assert_allclose(np.exp(law.log_prob(at, m)), slope, rtol=1e-5)
    assert np.isfinite(law.log_prob(np.array([0.0, 1.0]), m[:2])).all()
    high = 1e9 if scale == "logit" else 1e300
    np.testing.assert_allclose(law.cdf(np.array([-1e9, high]), m[:2]), [0.0, 1.0], atol=1e-4)
    assert 0.0 < law.cdf(np.array([-0.01]), m[:1])[0] < 1.0 / 41.0
    levels = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(law.cdf(law.quantile(levels, m[:1]), m[:3]), levels, atol=1e-3)
    known = candidates((scale,), counts=False, bounded=True)[0](y, np.full(40, 0.6))
    assert known.log_prob(np.array([-1.0]), m[:1])[0] == -np.inf
    assert known.cdf(np.array([-1.0]), m[:1])[0] == 0.0


def test_an_outlier_costs_a_finite_number_of_nats():
    law = law_of(RNG(3).normal(size=100), np.zeros(100))
    assert -25 < law.log_prob(np.array([1e3]), np.zeros(1))[0] < -15


def test_counts_are_scipys_and_their_dispersion_is_found():
    rng = RNG(4)
    m = np.exp(rng.normal(size=3000))
    y = rng.negative_binomial(2.0, 2.0 / (2.0 + m)).astype(float)
    law = negative_binomial(y, m)
    assert law.r == pytest.approx(2.0, rel=0.15)
    np.testing.assert_allclose(law.cdf(y, m), nbinom.cdf(y, law.r, law.r / (law.r + m)))
    loose = NegativeBinomialLaw(1e8)
    np.testing.assert_allclose(loose.log_prob(y, m), poisson.logpmf(y, m), atol=1e-5)
    assert isinstance(law_of(y, m, ("counts",), counts=True), NegativeBinomialLaw)
    narrow = np.round(30 + rng.normal(size=500))  # far less dispersed than Poisson
    rounded = law_of(narrow, np.full(500, 30.0), ("counts",), counts=True)
    assert isinstance(rounded, RoundedLaw)
    whole = np.arange(0.0, 80.0)
    assert np.exp(rounded.log_prob(whole, np.full(80, 30.0))).sum() == pytest.approx(1.0, abs=0.01)
    assert rounded.log_prob(np.array([29.5]), np.array([30.0]))[0] == -np.inf


def test_scales_suit_the_values():
    assert scales_for(np.array([-1.0, 2.0])) == ("identity",)
    assert scales_for(np.array([0.5, 2.0])) == ("identity", "log")
    assert scales_for(np.array([0.5, 0.9])) == ("identity", "logit")


def test_rows_with_atoms_are_a_law_with_masses():
    rest = LawRows(
        best_law(candidates(("log",), False, bounded=True), np.exp(RNG(5).normal(size=300)), np.ones(300))[0],
        np.array([1.0, 2.0, 3.0]),
    )
    chance = np.array([[0.9, 0.1], [0.5, 0.5], [0.0, 1.0]])
    rows = AtomRows(np.array([0.0]), chance, rest)
    np.testing.assert_allclose(np.exp(rows.log_prob(0.0)), chance[:, 0])
    np.testing.assert_allclose(rows.log_prob(1.5)[:2], rest.log_prob(1.5)[:2] + np.log(chance[:2, 1]))
    np.testing.assert_allclose(rows.cdf(0.0), chance[:, 0])
    np.testing.assert_allclose(rows.mean, chance[:, 1] * rest.mean)
    lower, median = rows.quantile([0.05, 0.5]).T
    np.testing.assert_allclose(lower[:2], 0.0)
    assert median[0] == 0.0
    np.testing.assert_allclose(rows.cdf(rows.quantile(0.97)), 0.97, atol=1e-3)
    both = AtomRows(
        np.array([0.0, 1.0]),
        np.array([[0.2, 0.3, 0.5]]),
        LawRows(law_of(RNG(6).uniform(0.01, 0.99, 300), np.full(300, 0.5), ("logit",)), np.array([0.5])),
    )
    assert both.quantile(0.1)[0] == 0.0
    assert both.quantile(0.9)[0] == 1.0
    assert both.cdf(both.quantile(0.45))[0] == pytest.approx(0.45, abs=1e-3)

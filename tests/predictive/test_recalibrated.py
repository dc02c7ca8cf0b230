"""Laws of the normal score on bases of any support: densities, masses, moments and quantiles otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import trapezoid
from scipy.special import ndtri
from scipy.stats import norm
from tests.predictive import laws

from nongauss.predictive.combined import mixture
from nongauss.predictive.composed import PointMassDistribution, RoundedDistribution
from nongauss.predictive.mixture import GaussianMixtureDistribution, standard_normal
from nongauss.predictive.recalibrated import RecalibratedDistribution, recalibrated
from nongauss.predictive.scores import score_interval

N = 3
MEAN, SPREAD = np.array([0.2, -0.5, 1.0]), np.array([0.05, 0.2, 0.4])


def gaussians(weights, means, sds, n=N):
    """The same mixture of Gaussians in each of n rows."""
    weights, means, sds = (np.asarray(part, float) for part in (weights, means, sds))
    mean = weights @ means
    variance = weights @ (sds**2 + (means - mean) ** 2)

    def components(rows):
        of = lambda part: np.tile(part, (len(rows), 1))  # noqa: E731
        return of(np.log(weights)), of(means)[..., None], of(sds)[..., None]

    return GaussianMixtureDistribution(
        np.full((n, 1), mean), np.full((n, 1), variance), components, squeeze=True, n_components=len(weights)
    )


TWO = ([0.5, 0.4, 0.1], [-1.0, 1.2, 0.0], [0.3, 0.4, 1.0])
MADE = {
    "laplace": laws.laplace(),
    "student t": laws.student_t(),
    "gamma": laws.gamma(2.0),
    "beta": laws.beta(8.0),
    "mixture": lambda m, v: mixture([laws.gaussian()(m, v), laws.gaussian()(m + 1.0, v)], [0.3, 0.7]),
}
BASES = {name: make(MEAN, SPREAD) for name, make in MADE.items()}
COUNTED = {
    "poisson": laws.poisson,
    "negative binomial": laws.negative_binomial(2.0),
    "rounded": lambda m, v: RoundedDistribution(gaussians([1.0], [200.0], [20.0], len(m))),
}
COUNTS = {name: make(MEAN, SPREAD) for name, make in COUNTED.items()}


@pytest.mark.parametrize("name", MADE)
def test_density_distribution_function_and_moments_agree(name):
    base = BASES[name]
    law = recalibrated(base, gaussians(*TWO))
    assert isinstance(law, RecalibratedDistribution)
    # points even in probability and in y, so that both humps and both tails are met
    by_score = base.quantile(norm.cdf(np.linspace(-4.5, 4.5, 101)))[1]
    grid = np.unique(np.concatenate([by_score, np.linspace(by_score[0], by_score[-1], 300)]))
    n = len(grid)
    many = recalibrated(MADE[name](np.full(n, MEAN[1]), np.full(n, SPREAD[1])), gaussians(*TWO, n))
    density = np.exp(many.log_prob(grid))
    assert_allclose(trapezoid(density, grid), 1.0, atol=3e-3)
    mean = trapezoid(density * grid, grid)
    sd = np.sqrt(trapezoid(density * (grid - mean) ** 2, grid))
    if name != "student t":
        assert_allclose(law.mean[1], mean, atol=0.01 * sd)
        assert_allclose(law.std[1], sd, rtol=0.01)
    levels = np.array([0.01, 0.5, 0.999])
    q = law.quantile(levels)
    for j, level in enumerate(levels):
        assert_allclose(law.cdf(q[:, j]), level, atol=1e-8)
        assert_allclose(law.survival(q[:, j]), 1 - level, atol=1e-8)
    step = 1e-5 * base.std
    slope = (law.cdf(q[:, 1] + step) - law.cdf(q[:, 1] - step)) / (2 * step)
    assert_allclose(np.exp(law.log_prob(q[:, 1])), slope, rtol=1e-3)


@pytest.mark.parametrize("name", COUNTED)
def test_counts_have_the_differences_of_the_score_s_law(name):
    base = COUNTS[name]
    law = recalibrated(base, gaussians(*TWO))
    assert law.is_discrete
    k = np.arange(int(base.quantile(1 - 1e-7)[1]) + 20.0)
    n = len(k)
    many = recalibrated(COUNTED[name](np.full(n, MEAN[1]), np.full(n, SPREAD[1])), gaussians(*TWO, n))
    mass = np.exp(many.log_prob(k))
    assert_allclose(mass.sum(), 1.0, atol=1e-6)
    assert_allclose(np.cumsum(mass), many.cdf(k), atol=1e-9)
    mean = (k * mass).sum()
    sd = np.sqrt(((k - mean) ** 2 * mass).sum())
    assert_allclose(law.mean[1], mean, atol=2e-3 * sd)
    assert_allclose(law.std[1], sd, rtol=5e-3)
    for level in (0.05, 0.5, 0.95):
        assert law.quantile(level)[1] == (np.cumsum(mass) >= level - 1e-12).argmax()
    draws = law.sample(4000, 0)
    assert_allclose(draws.mean(axis=1)[1], mean, atol=0.07 * sd)
    assert (draws == np.round(draws)).all()


def test_a_value_with_a_probability_of_its_own_keeps_one():
    base = mixture([PointMassDistribution(0.0, N), laws.gamma(2.0)(MEAN, SPREAD)], [0.3, 0.7])
    law = recalibrated(base, gaussians(*TWO))
    assert law.atoms == (0.0,)
    expected = sum(w * norm.cdf((ndtri(0.3) - m) / s) for w, m, s in zip(*TWO, strict=True))
    assert_allclose(np.exp(law.log_prob(0.0)), expected, rtol=1e-9)
    assert_allclose(law.cdf(0.0), expected, rtol=1e-9)
    assert_array_equal(law.quantile(0.9 * expected), np.zeros(N))
    upper = law.quantile(0.8)
    assert_allclose(law.cdf(upper), 0.8, atol=1e-8)
    draws = law.sample(6000, 1)
    assert_allclose((draws == 0).mean(axis=1), expected, atol=0.025)
    assert_allclose(law.mean, draws.mean(axis=1), atol=0.05 * law.std.max())


def test_a_standard_normal_score_leaves_the_law_as_it_is():
    for name, base in {**BASES, **COUNTS}.items():
        law = recalibrated(base, standard_normal(N))
        at = base.quantile([0.02, 0.6, 0.99])
        assert_allclose(law.quantile([0.02, 0.6, 0.99]), at, rtol=1e-6, err_msg=name)
        for j in range(3):
            assert_allclose(law.log_prob(at[:, j]), base.log_prob(at[:, j]), atol=1e-6, err_msg=name)
        if name != "student t":
            assert_allclose(law.mean, base.mean, atol=2e-3 * base.std.max(), err_msg=name)
            assert_allclose(law.std, base.std, rtol=4e-3, err_msg=name)


def test_one_gaussian_a_row_stays_a_mixture_of_gaussians():
    base = gaussians([1.0], [3.0], [2.0])
    law = recalibrated(base, gaussians(*TWO))
    assert isinstance(law, GaussianMixtureDistribution)
    general = RecalibratedDistribution(base, gaussians(*TWO))
    for y in (-20.0, -1.0, 3.0, 5.5, 30.0):
        assert_allclose(law.log_prob(y), general.log_prob(y), atol=1e-9)
        assert_allclose(law.cdf(y), general.cdf(y), rtol=1e-9)
        assert_allclose(law.survival(y), general.survival(y), rtol=1e-9)
    assert_allclose(law.quantile([0.01, 0.7]), general.quantile([0.01, 0.7]), rtol=1e-8)
    assert_allclose(law.mean, general.mean, atol=1e-3 * law.std.min())
    assert_allclose(law.variance, general.variance, rtol=2e-3)


def test_far_out_the_tail_is_the_base_s_with_the_mass_that_the_score_has_there():
    base = BASES["laplace"]
    law = recalibrated(base, gaussians([0.9, 0.1], [0.0, 0.0], [0.5, 1.0]))
    far = base.quantile(1 - 1e-13) + np.array([5.0, 50.0, 500.0])[:, None]
    for y in far:
        assert_allclose(law.log_prob(y), base.log_prob(y) + np.log(0.1), atol=1e-3)


def test_scores_are_those_of_the_tail_that_is_small():
    base = gaussians([1.0], [0.0], [1.0])
    at = score_interval(base, np.array([-15.0, 0.3, 15.0]))
    assert_allclose(at.high, [-15.0, 0.3, 15.0])
    assert not at.jumps.any()

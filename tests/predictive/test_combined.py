"""Mixtures of laws against densities and distribution functions of SciPy that are added up by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad
from tests.predictive import laws

from nongauss.core.errors import InputError
from nongauss.predictive.combined import by_rows, mixture
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.mixture import GaussianMixtureDistribution

MEAN, VARIANCE = np.array([-1.0, 0.4, 2.0]), np.array([0.3, 0.05, 1.2])
SHARES = np.array([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
LEVELS = np.array([0.0, 0.03, 0.5, 0.9, 1.0])


def gaussians(mean, sd, share=None):
    """Mixtures of C Gaussians a row, from means and sds (N, C)."""
    share = np.full(mean.shape, 1.0 / mean.shape[1]) if share is None else share
    middle = (share * mean).sum(axis=1)
    variance = (share * (sd**2 + mean**2)).sum(axis=1) - middle**2

    def components(rows):
        with np.errstate(divide="ignore"):
            return np.log(share[rows]), mean[rows, :, None], sd[rows, :, None]

    return GaussianMixtureDistribution(middle[:, None], variance[:, None], components, squeeze=True)


class Hurdle(PredictiveDistribution):
    """0 with probability p, else log-normal: a law with a mass, for each row."""

    atoms = (0.0,)

    def __init__(self, p, sigma):
        self.p, self.law = p, stats.lognorm(sigma)

    def __len__(self):
        return len(self.p)

    def _take(self, rows):
        return Hurdle(self.p[rows], self.law.args[0])

    @property
    def mean(self):
        return (1 - self.p) * self.law.mean()

    @property
    def variance(self):
        return (1 - self.p) * (self.law.var() + self.law.mean() ** 2) - self.mean**2

    def cdf(self, y):
        return np.where(np.asarray(y) < 0, 0.0, self.p + (1 - self.p) * self.law.cdf(y))

    def log_prob(self, y):
        return np.where(y == 0, np.log(self.p), np.log1p(-self.p) + self.law.logpdf(np.maximum(y, 1e-300)))

    def quantile(self, q):
        rest = (np.atleast_1d(q) - self.p[:, None]) / (1 - self.p[:, None])
        found = np.where(rest <= 0, 0.0, self.law.ppf(np.clip(rest, 0, 1)))
        return found if np.ndim(q) else found[:, 0]

    def sample(self, n=1, random_state=None):
        rng = np.random.default_rng(random_state)
        drawn = self.law.rvs((len(self), n), random_state=rng)
        return np.where(rng.random((len(self), n)) < self.p[:, None], 0.0, drawn)


def parts_of(name):
    if name == "student and laplace":
        return [laws.student_t()(MEAN, VARIANCE), laws.laplace(centre=1.0, scale=2.0)(MEAN, VARIANCE)]
    if name == "gaussian and student":
        return [laws.gaussian()(MEAN, VARIANCE), laws.student_t(scale=-0.5)(MEAN, VARIANCE)]
    if name == "positive":
        return [laws.gamma(2.0)(MEAN, VARIANCE), laws.exponential(MEAN + 1, VARIANCE)]
    return [laws.poisson(MEAN, VARIANCE), laws.negative_binomial(0.7)(MEAN + 1, VARIANCE)]


NAMES = ["student and laplace", "gaussian and student", "positive", "counts"]


@pytest.mark.parametrize("name", NAMES)
def test_a_mixture_adds_up_densities_masses_and_moments(name):
    parts = parts_of(name)
    mixed = mixture(parts, SHARES)
    y = np.array([0.0, 3.0, 1.0]) if mixed.is_discrete else np.array([0.3, 2.0, 1.7])
    by_hand = sum(w * np.exp(part.log_prob(y)) for w, part in zip(SHARES.T, parts, strict=True))
    assert_allclose(np.exp(mixed.log_prob(y)), by_hand, rtol=1e-12)
    by_hand = sum(w * part.cdf(y) for w, part in zip(SHARES.T, parts, strict=True))
    assert_allclose(mixed.cdf(y), by_hand, rtol=1e-12)
    mean = sum(w * part.mean for w, part in zip(SHARES.T, parts, strict=True))
    second = sum(w * (part.variance + part.mean**2) for w, part in zip(SHARES.T, parts, strict=True))
    assert_allclose(mixed.mean, mean)
    assert_allclose(mixed.variance, second - mean**2)
    assert_allclose(mixed.cdf(1.0), mixed.cdf(np.ones(3)))


@pytest.mark.parametrize("name", NAMES)
def test_quantiles_invert_the_distribution_function_and_draws_follow_it(name):
    mixed = mixture(parts_of(name), SHARES)
    quantiles = mixed.quantile(LEVELS)
    assert quantiles.shape == (3, 5)
    for level, at in zip(LEVELS[1:-1], quantiles.T[1:-1], strict=True):
        if mixed.is_discrete:
            assert_array_equal(at, np.round(at))
            assert (mixed.cdf(at) >= level - 1e-12).all()
            assert (mixed.cdf(np.maximum(at - 1, 0)) < level)[at > 0].all()
        else:
            assert_allclose(mixed.cdf(at), level, atol=1e-9)
    assert_array_equal(mixed.quantile(0.5), mixed.quantile([0.5])[:, 0])
    assert_allclose(mixed.interval(0.8), mixed.quantile([0.1, 0.9]), rtol=1e-12)
    draws = mixed.sample(20_000, 3)
    assert_array_equal(draws, mixed.sample(20_000, 3))
    assert mixed.sample(0, 1).shape == (3, 0)
    for at in quantiles.T[1:-1]:
        assert_allclose((draws <= at[:, None]).mean(axis=1), mixed.cdf(at), atol=0.012)
    assert (np.abs(draws.mean(axis=1) - mixed.mean) < 6 * mixed.std / np.sqrt(20_000)).all()


def test_the_density_of_a_mixture_integrates_to_one():
    mixed = mixture([laws.student_t()(MEAN[:1], VARIANCE[:1]), laws.laplace()(MEAN[:1] + 3, VARIANCE[:1])])
    assert quad(lambda y: float(np.exp(mixed.log_prob(y))[0]), -60, 60, limit=400)[0] == pytest.approx(
        1, abs=1e-4
    )


def test_gaussian_mixtures_stay_gaussian_mixtures_also_from_the_rows_of_one_part():
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=(6, 2)), rng.uniform(0.1, 2.0, (6, 2))
    other = rng.normal(size=(3, 1)), rng.uniform(0.1, 2.0, (3, 1))
    shares = rng.dirichlet([1, 1, 1], 3)  # two laws from the six rows, one from the three
    mixed = mixture([gaussians(mean, sd), gaussians(*other)], shares, 3)
    assert isinstance(mixed, GaussianMixtureDistribution)
    flat = gaussians(
        np.hstack([mean[:3], mean[3:], other[0]]),
        np.hstack([sd[:3], sd[3:], other[1]]),
        np.hstack([np.repeat(shares[:, :2] / 2, 2, axis=1), shares[:, 2:]]),
    )
    for say in ("mean", "variance"):
        assert_allclose(getattr(mixed, say), getattr(flat, say))
    y = rng.normal(size=3)
    assert_allclose(mixed.log_prob(y), flat.log_prob(y))
    assert_allclose(mixed.quantile([0.1, 0.7]), flat.quantile([0.1, 0.7]))
    generic = mixture([laws.gaussian()(MEAN, VARIANCE), laws.student_t()(MEAN, VARIANCE)], [1.0, 0.0])
    assert_allclose(generic.quantile(0.2), laws.gaussian()(MEAN, VARIANCE).quantile(0.2), rtol=1e-8)


def test_a_mass_stays_a_mass_beside_a_density():
    p = np.array([0.3, 0.6])
    parts = [Hurdle(p, 0.5), laws.gamma(2.0)(np.zeros(2), np.full(2, 0.1))]
    mixed = mixture(parts, [0.5, 0.5])
    assert mixed.atoms == (0.0,)
    assert_allclose(mixed.log_prob(0.0), np.log(0.5 * p))
    y = np.array([0.7, 1.4])
    assert_allclose(mixed.log_prob(y), np.log(0.5 * sum(np.exp(part.log_prob(y)) for part in parts)))
    assert_array_equal(mixed.quantile([0.1, 0.14])[0], [0, 0])
    assert mixed.quantile(0.151)[0] > 0
    assert_array_equal(mixed.quantile(0.29)[1], 0)
    at = mixed.quantile([0.4, 0.95])
    assert_allclose(np.stack([mixed.cdf(at[:, 0]), mixed.cdf(at[:, 1])], 1), [[0.4, 0.95]] * 2, atol=1e-9)
    assert_allclose((mixed.sample(20_000, 0) == 0).mean(axis=1), 0.5 * p, atol=0.012)


def test_rows_of_several_laws_keep_their_own():
    parts = [laws.student_t()(MEAN[:2], VARIANCE[:2]), laws.gaussian()(MEAN[2:], VARIANCE[2:])]
    rows = [np.array([2, 0]), np.array([1])]
    law = by_rows(parts, rows)
    assert len(law) == 3
    y = np.array([0.1, 0.2, 0.3])
    assert_array_equal(law.mean, [parts[0].mean[1], parts[1].mean[0], parts[0].mean[0]])
    assert_array_equal(law.variance[[2, 0]], parts[0].variance)
    assert_array_equal(law.log_prob(y)[[2, 0]], parts[0].log_prob(y[[2, 0]]))
    assert_array_equal(law.cdf(y)[[1]], parts[1].cdf(y[[1]]))
    assert_array_equal(law.quantile([0.2, 0.6])[[2, 0]], parts[0].quantile([0.2, 0.6]))
    assert law.sample(4, 0).shape == (3, 4)
    assert by_rows(parts[:1], rows[:1]) is parts[0]


def test_what_does_not_go_together_is_refused():
    real, counts = laws.student_t()(MEAN, VARIANCE), laws.poisson(MEAN, VARIANCE)
    with pytest.raises(InputError, match="counts"):
        mixture([real, counts])
    with pytest.raises(InputError, match="counts"):
        by_rows([real, counts], [np.arange(3), np.arange(3, 6)])
    with pytest.raises(InputError, match="same 3"):
        mixture([real, laws.student_t()(MEAN[:2], VARIANCE[:2])])
    with pytest.raises(InputError, match="sum to 1"):
        mixture([real, real], [0.5, 0.6])
    with pytest.raises(InputError, match="shape"):
        mixture([real, real]).log_prob(np.zeros(2))

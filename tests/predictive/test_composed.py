"""Log-normal and rounded laws and point masses, against SciPy and sums over whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from nongauss.core.errors import InputError
from nongauss.predictive.combined import mixture
from nongauss.predictive.composed import LogNormalDistribution, PointMassDistribution, RoundedDistribution
from nongauss.predictive.law import gaussian_noise_mixture

MEAN, VARIANCE = np.array([0.3, 2.4, -7.0, 1e6]), np.array([0.01, 0.5, 3.0, 100.0])
NOISE, SHARES = np.array([0.04, 0.3]), np.log([0.7, 0.3])


def inner(mean=MEAN, variance=VARIANCE):
    """A mixture of two normals a row."""
    return gaussian_noise_mixture(mean, variance, lambda rows: NOISE, SHARES, np.exp(SHARES) @ NOISE)


def components(n):
    """(share, mean, sd) of row n."""
    return [(np.exp(s), MEAN[n], np.sqrt(VARIANCE[n] + v)) for s, v in zip(SHARES, NOISE, strict=True)]


@pytest.mark.parametrize("n", range(4))
def test_a_rounded_law_is_the_sum_over_whole_numbers(n):
    law = RoundedDistribution(inner())
    k = np.round(MEAN[n]) + np.arange(-130.0, 131.0)
    mass = sum(
        w * (stats.norm.cdf(k + 0.5, m, s) - stats.norm.cdf(k - 0.5, m, s)) for w, m, s in components(n)
    )
    assert_allclose(mass.sum(), 1.0, rtol=1e-12)
    found = np.array([law.log_prob(value)[n] for value in k])
    assert_allclose(np.exp(found), mass, atol=1e-15)
    mean = MEAN[n] + mass @ (k - MEAN[n])
    assert_allclose(law.mean[n], mean, rtol=1e-12)
    assert_allclose(law.variance[n], mass @ (k - mean) ** 2, rtol=1e-9)
    for level in (0.05, 0.5, 0.95):
        at = law.quantile(level)[n]
        assert law.cdf(at)[n] >= level > law.cdf(at - 1.0)[n]
    assert_allclose(law.cdf(k[100] + 0.9)[n], mass[:101].sum(), atol=1e-12)


def test_a_rounded_law_far_out_keeps_its_digits():
    law = RoundedDistribution(
        gaussian_noise_mixture(np.zeros(1), np.ones(1), lambda r: np.zeros(1), np.zeros(1), 0.0)
    )
    assert_allclose(law.log_prob(30.0), stats.norm.logsf(29.5), rtol=1e-6)
    assert_allclose(law.log_prob(-30.0), stats.norm.logsf(29.5), rtol=1e-6)
    assert law.log_prob(0.5) == -np.inf
    assert law.is_discrete


def test_a_log_normal_law_is_scipys():
    law = LogNormalDistribution(inner(MEAN[:3], VARIANCE[:3]))
    y = np.array([1.2, 8.0, 1e-3])
    for n in range(3):
        laws = [(w, stats.lognorm(s=s, scale=np.exp(m))) for w, m, s in components(n)]
        assert_allclose(law.log_prob(y)[n], np.log(sum(w * own.pdf(y[n]) for w, own in laws)))
        assert_allclose(law.cdf(y)[n], sum(w * own.cdf(y[n]) for w, own in laws))
        mean = sum(w * own.mean() for w, own in laws)
        assert_allclose(law.mean[n], mean)
        second = sum(w * (own.var() + own.mean() ** 2) for w, own in laws)
        assert_allclose(law.variance[n], second - mean**2)
    assert_allclose(law.cdf(law.quantile(0.3)), 0.3)
    assert_array_equal(law.log_prob(0.0), -np.inf)
    assert_array_equal(law.cdf(-1.0), 0.0)
    assert (law.sample(5, random_state=0) > 0).all()
    with pytest.raises(InputError, match="expected"):
        law.cdf([1.0, 2.0])


def test_a_law_with_a_mass_is_flat_there():
    law = mixture(
        [PointMassDistribution(0.0, 3), LogNormalDistribution(inner(MEAN[:3], VARIANCE[:3]))],
        [[0.3, 0.7], [0.0, 1.0], [1.0, 0.0]],
    )
    assert_allclose(law.cdf(0.0), [0.3, 0.0, 1.0])
    assert_allclose(law.cdf(-1e-9), 0.0)
    assert_allclose(law.log_prob(0.0), [np.log(0.3), -np.inf, 0.0])
    assert_array_equal(law.quantile([0.1, 0.29])[0], 0.0)
    assert_array_equal(law.quantile([0.1, 0.9])[2], 0.0)
    above = law.quantile([0.31, 0.5, 0.99])[:2]
    assert (above > 0).all()
    for j, level in enumerate((0.31, 0.5, 0.99)):
        assert_allclose(law.cdf(np.append(above[:, j], 0.0))[:2], level, rtol=1e-6)
    draws = law.sample(4000, random_state=0)
    assert_allclose((draws == 0).mean(axis=1), [0.3, 0.0, 1.0], atol=0.03)
    rest = LogNormalDistribution(inner(MEAN[:3], VARIANCE[:3]))
    assert_allclose(law.mean, np.array([0.7, 1.0, 0.0]) * rest.mean)
    second = 0.7 * (rest.variance + rest.mean**2)[0]
    assert_allclose(law.variance[0], second - law.mean[0] ** 2)


def test_a_point_mass_alone():
    law = PointMassDistribution(2.0, 3)
    assert_array_equal(law.cdf([1.9, 2.0, 2.1]), [0.0, 1.0, 1.0])
    assert_array_equal(law.log_prob([1.9, 2.0, 2.1]), [-np.inf, 0.0, -np.inf])
    assert law.quantile([0.1, 0.9]).shape == (3, 2)
    assert law.sample(4).shape == (3, 4)
    assert law.std.tolist() == [0.0, 0.0, 0.0]
    assert law.atoms == (2.0,)
    assert PointMassDistribution(2.0, 3, discrete=True).atoms == ()

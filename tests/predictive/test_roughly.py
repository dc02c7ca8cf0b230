"""Rough laws, whose moments are averaged over many rows: near those of the laws, and fewer Gaussians."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.predictive import laws
from tests.predictive.test_recalibrated import BASES, COUNTS, MEAN, SPREAD, gaussians

from nongauss.predictive.clipped import ClippedDistribution
from nongauss.predictive.combined import by_rows, mixture
from nongauss.predictive.merged import N_MERGED, merged
from nongauss.predictive.mixture import GaussianMixtureDistribution
from nongauss.predictive.recalibrated import recalibrated

NORMAL = np.random.default_rng(0).normal(size=200)
CENTRES = 0.9 * NORMAL + 0.2 * NORMAL**2


def kernels(n=3):
    """A law of 200 Gaussians in each row, with far ones."""
    return gaussians(np.full(200, 1 / 200), CENTRES, np.full(200, 0.1), n)


def test_merged_gaussians_keep_mean_and_variance_and_most_of_the_shape():
    law, few = kernels(), merged(kernels())
    assert few.n_components == N_MERGED
    log_weights, means, sds = few._components(np.arange(3))
    weights = np.exp(log_weights)
    mean = (weights * means[:, :, 0]).sum(axis=1)
    assert_allclose(weights.sum(axis=1), 1.0)
    assert_allclose(mean, law.mean)
    square = (weights * (sds[:, :, 0] ** 2 + means[:, :, 0] ** 2)).sum(axis=1)
    assert_allclose(square - mean**2, law.variance)
    for y in np.linspace(-8.0, 8.0, 33):
        assert np.abs(few.cdf(np.full(3, y)) - law.cdf(np.full(3, y))).max() < 0.03
    assert merged(few) is few


def test_a_group_without_mass_counts_for_nothing():
    log_weights = np.log(np.array([1.0 - 1e-3, *np.full(39, 1e-3 / 39)]))[None]
    means, sds = np.arange(40.0)[None, :, None], np.ones((1, 40, 1))
    mean = np.exp(log_weights) @ np.arange(40.0)
    law = GaussianMixtureDistribution(
        mean[:, None],
        np.array([[2.0]]),
        lambda rows: (log_weights[rows], means[rows], sds[rows]),
        squeeze=True,
        n_components=40,
    )
    weight, centre, _ = merged(law)._components(np.arange(1))
    assert_allclose((np.exp(weight) * centre[:, :, 0]).sum(axis=1), mean)


SHAPED = {name: recalibrated(base, kernels()) for name, base in {**BASES, **COUNTS}.items()}
MADE = {
    **SHAPED,
    "two levels": recalibrated(mixture([SHAPED["laplace"], SHAPED["student t"]], [0.4, 0.6]), kernels()),
    "mixture": mixture([SHAPED["laplace"], laws.gaussian()(MEAN, SPREAD)], [0.4, 0.6]),
    "rows": by_rows([SHAPED["laplace"], SHAPED["gamma"]], [np.array([0, 2, 4]), np.array([1, 3, 5])]),
    "clipped": ClippedDistribution(SHAPED["laplace"], -0.5, 1.5),
}


@pytest.mark.parametrize("name", MADE)
def test_rough_moments_are_near_the_moments(name):
    law = MADE[name]
    rough = law.roughly()
    sd = np.sqrt(law.variance)
    assert np.abs((rough.mean - law.mean) / sd).max() < 0.02
    assert np.abs(np.sqrt(rough.variance) / sd - 1.0).max() < 0.02
    own = np.array([1, 0])
    assert_allclose(rough._take(own).mean, rough.mean[own], rtol=1e-12)


def test_a_law_whose_moments_are_closed_is_its_own_rough_one():
    law = laws.gamma(2.0)(MEAN, SPREAD)
    assert law.roughly() is law

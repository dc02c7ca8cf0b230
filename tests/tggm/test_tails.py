"""The factor of squared deviations makes Student's t, and follows the rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from nongauss.tggm import tails
from nongauss.tggm.calibration import _worth_of_skewness, calibrated
from tggm.small import CONFIG, ensemble_of, one_unit


@pytest.mark.parametrize("degrees", [10.0, 6.0, 4.0, 3.0])
def test_the_mixture_is_students_t_of_variance_one(degrees):
    found = np.full(len(tails.DEGREES), -np.inf)
    found[tails.DEGREES.index(degrees)] = 0.0
    factor = tails.averaged(found)
    assert factor.degrees == degrees
    assert_allclose(factor.weights @ factor.variances, 1.0)
    y = np.linspace(-12.0, 12.0, 97)
    mixed = (factor.weights * stats.norm.pdf(y[:, None], 0.0, np.sqrt(factor.variances))).sum(axis=1)
    student = stats.t(degrees, scale=np.sqrt((degrees - 2.0) / degrees)).logpdf(y)
    assert np.abs(np.log(mixed) - student)[np.abs(y) < 4.0].max() < (0.03 if degrees > 3.0 else 0.08)
    assert np.abs(np.log(mixed) - student).max() < 0.5


def rows(draw, n_rows=1000):
    """Two members alike, nearly Gaussian, and rows that are drawn about their mean."""
    params = ensemble_of(*[one_unit(30.0, 1.0, 0.5, 1.0, b1=-15.0) for _ in range(2)])
    Y = draw(np.random.default_rng(0), (2, n_rows, 1)) * np.sqrt(1.25)
    return params, (np.ones((2, n_rows, 1)), Y, np.ones((2, n_rows)))


def test_held_out_rows_choose_the_tails():
    params, held = rows(lambda rng, shape: rng.normal(size=shape))
    plain = calibrated(params, CONFIG, held).ensemble.tails
    assert plain.degrees == np.inf
    params, held = rows(lambda rng, shape: rng.standard_t(4, size=shape) / np.sqrt(2.0))
    heavy = calibrated(params, CONFIG, held).ensemble
    assert heavy.tails.degrees in (3.0, 4.0, 6.0)
    mean, variance = heavy.moments(np.ones((1, 1)))
    log_weights, means, sds = heavy.components(np.ones((1, 1)))
    weights = np.exp(log_weights)[..., None]
    assert_allclose((weights * means).sum(axis=1), mean, atol=1e-12)
    assert_allclose((weights * (sds**2 + (means - mean) ** 2)).sum(axis=1), variance, rtol=1e-10)


def test_few_rows_leave_some_probability_to_heavy_tails():
    params, held = rows(lambda rng, shape: rng.normal(size=shape), n_rows=60)
    factor = calibrated(params, CONFIG, held).ensemble.tails
    assert factor.weights[factor.variances > 5.0].sum() > 1e-5


def test_what_skewness_may_be_worth_is_enough_for_known_laws():
    """Nats between a law and the Gaussian of its mean and variance, from SciPy's entropies."""
    for law in (stats.gamma(1.5), stats.lognorm(0.7), stats.weibull_min(1.5), stats.gamma(8.0)):
        nats = stats.norm(0.0, law.std()).entropy() - law.entropy()
        error = law.rvs((2, 20_000), random_state=np.random.default_rng(1))
        assert nats < _worth_of_skewness(error, np.ones(error.shape)) < 2.0 * nats
    normal = np.random.default_rng(2).normal(size=(2, 20_000))
    weight = np.ones(normal.shape)
    assert _worth_of_skewness(normal, weight) < 1e-3
    assert_allclose(_worth_of_skewness(normal, weight), stats.skew(normal.ravel()) ** 2 / 6.0, rtol=0.2)
    normal[:, ::4000] = 30.0  # few far rows are no skewed noise
    assert _worth_of_skewness(normal, weight) < 2e-3
    assert _worth_of_skewness(np.ones((2, 5)), np.ones((2, 5))) == 0.0

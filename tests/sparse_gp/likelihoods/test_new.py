"""A likelihood is one class and one place in `REGRESSION`: all else follows, and agrees with SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats
from scipy.special import gamma

import nongauss
from nongauss import SparseGPRegressor
from nongauss.core.records import persistable
from nongauss.estimator.base import StrOptions
from nongauss.predictive.law import LatentDistribution
from nongauss.sparse_gp import likelihoods
from nongauss.sparse_gp.likelihoods import (
    REGRESSION,
    Beta,
    Gamma,
    Gaussian,
    Laplace,
    NegativeBinomial,
    Poisson,
    StudentT,
)
from nongauss.sparse_gp.likelihoods.base import Likelihood


@persistable("tests.Weibull")
class Weibull(Likelihood):
    """y Weibull with scale e^f; psi = (log k), k its shape."""

    name = "weibull"
    support = "positive"
    target = "scaled"
    param_names = ("shape",)

    def log_prob(self, y, f, psi):
        k, z = np.exp(psi[0]), np.log(y) - f[..., 0]
        return psi[0] - np.log(y) + k * z - np.exp(k * z)

    def cdf(self, y, f, psi):
        return -np.expm1(-((y * np.exp(-f[..., 0])) ** np.exp(psi[0])))

    def draw(self, f, psi, rng):
        return np.exp(f[..., 0]) * rng.weibull(np.exp(psi[0]), f.shape[:-1])

    def conditional_moments(self, f, psi):
        k, scale = np.exp(psi[0]), np.exp(f[..., 0])
        first, second = gamma(1 + 1 / k), gamma(1 + 2 / k)
        return scale * first, scale**2 * (second - first**2)


PSI = np.array([np.log(1.7)])
MEAN, VARIANCE = np.array([[0.3], [-1.2]]), np.array([[0.4], [1.1]])


def by_quad(function, m, v):
    """E function(f), f ~ N(m, v), by adaptive quadrature."""
    sd = np.sqrt(v)
    return integrate.quad(
        lambda f: function(f) * stats.norm.pdf(f, m, sd), m - 9 * sd, m + 9 * sd, limit=200
    )[0]


@pytest.mark.gate
def test_its_law_is_the_integral_of_scipys():
    at = Weibull().predictive(MEAN, VARIANCE, PSI, scale=3.0)
    y = np.array([2.0, 0.7])
    every = [(n, m, v) for n, (m, v) in enumerate(zip(MEAN[:, 0], VARIANCE[:, 0], strict=True))]

    def of(f):
        return stats.weibull_min(1.7, scale=3.0 * np.exp(f))

    density = [by_quad(lambda f, n=n: of(f).pdf(y[n]), m, v) for n, m, v in every]
    below = [by_quad(lambda f, n=n: of(f).cdf(y[n]), m, v) for n, m, v in every]
    mean = [by_quad(lambda f: of(f).mean(), m, v) for _, m, v in every]
    second = [by_quad(lambda f: of(f).var() + of(f).mean() ** 2, m, v) for _, m, v in every]
    assert_allclose(np.exp(at.log_prob(y)), density, rtol=1e-7)
    assert_allclose(at.cdf(y), below, rtol=1e-7)
    assert_allclose(at.mean, mean, rtol=1e-7)
    assert_allclose(at.variance, second - np.square(mean), rtol=1e-6)
    assert_allclose(at.cdf(at.quantile(0.3)), 0.3, rtol=1e-6)
    assert_allclose(at.sample(40_000, random_state=0).mean(axis=1), mean, rtol=0.03)


def test_its_expectations_are_those_of_the_closed_form():
    """E log p = log k + (k - 1) log y - k m - y^k e^{-k m + k^2 v / 2}."""
    k, y = 1.7, np.array([0.5, 2.0])
    at = Weibull().expected_log_prob(y, MEAN, VARIANCE, PSI, with_params=True)
    tail = y**k * np.exp(-k * MEAN[:, 0] + 0.5 * k**2 * VARIANCE[:, 0])
    assert_allclose(at.value, np.log(k) + (k - 1) * np.log(y) - k * MEAN[:, 0] - tail, rtol=1e-6)
    assert_allclose(at.d_mean[:, 0], -k + k * tail, rtol=1e-6)
    assert_allclose(at.d_variance[:, 0], -0.5 * k**2 * tail, rtol=1e-6)
    by_k = 1 + k * (np.log(y) - MEAN[:, 0]) - k * tail * (np.log(y) - MEAN[:, 0] + k * VARIANCE[:, 0])
    assert_allclose(at.d_params[:, 0], by_k, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_is_fitted_by_its_name_and_saved(monkeypatch, tmp_path):
    monkeypatch.setitem(REGRESSION, Weibull.name, Weibull)
    allowed = [StrOptions(set(REGRESSION))]  # as the class has it where REGRESSION names the likelihood
    monkeypatch.setitem(SparseGPRegressor._parameter_constraints, "likelihood", allowed)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (150, 1))
    y = 5.0 * np.exp(np.sin(2 * X[:, 0])) * rng.weibull(2.5, 150)
    model = SparseGPRegressor("weibull", n_inducing=12, max_iter=40, random_state=0).fit(X, y)
    assert 1.8 < model.likelihood_params_["shape"] < 3.5
    truth = 5.0 * np.exp(np.sin(2 * X[:, 0])) * gamma(1 + 1 / 2.5)
    assert np.abs(np.log(model.predict(X) / truth)).mean() < 0.15
    with pytest.raises(nongauss.core.errors.InputError, match="weibull likelihood needs y above 0"):
        model.fit(X, y - 100.0)
    model.fit(X, y)
    nongauss.save(model, tmp_path / "m")
    assert_allclose(nongauss.load(tmp_path / "m").predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("likelihood", "psi"),
    [
        (Gaussian(), [np.log(0.3)]),
        (Laplace(), [np.log(0.4)]),
        (StudentT(), [np.log(0.3), np.log(5.0)]),
        (Gamma(), [np.log(4.0)]),
        (likelihoods.Weibull(), [np.log(1.7)]),
        (Beta(), [np.log(9.0)]),
        (Poisson(), []),
        (NegativeBinomial(), [np.log(3.0)]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_closed_forms_agree_with_the_generic_law(likelihood, psi):
    psi, y = np.array(psi), np.array([0.6, 0.2]) if likelihood.support != "count" else np.array([2.0, 0.0])
    own = likelihood.predictive(MEAN, VARIANCE, psi)
    law = LatentDistribution(likelihood, psi, MEAN[:, 0], VARIANCE[:, 0])
    limit = 0.02 if likelihood.name == "laplace" else 2e-4  # a kink costs the trapezoid rule its accuracy
    assert_allclose(own.log_prob(y), law.log_prob(y), rtol=limit, atol=limit)
    assert_allclose(own.cdf(y), law.cdf(y), rtol=limit)
    assert_allclose([own.mean, own.variance], [law.mean, law.variance], rtol=1e-6)
    draws = likelihood.draw(np.full((200_000, 1), 0.4), psi, np.random.default_rng(0))
    assert_allclose((draws <= y[0]).mean(), likelihood.cdf(y[0], np.array([0.4]), psi), atol=0.005)
    told = Likelihood.sharpness(likelihood, MEAN, np.sqrt(VARIANCE), psi)
    assert (told > 0.2 * likelihood.sharpness(MEAN, np.sqrt(VARIANCE), psi)).all()

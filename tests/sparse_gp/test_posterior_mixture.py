import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes

from nongauss import SparseGPRegressor
from nongauss.optimise.course import Run
from nongauss.sparse_gp import params as blocks_module
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.fit import fit_model, posterior_at
from nongauss.sparse_gp.likelihoods import Custom, HeteroscedasticGaussian, Poisson
from nongauss.sparse_gp.posterior_mixture import MixtureBound, MixtureComponents, modes
from nongauss.sparse_gp.updates import HyperObjective
from sparse_gp.small import differences, model, params, recipe, rows

COUNTS = rows(40)._replace(y=np.random.default_rng(0).poisson(2.0, 40).astype(float))


def converged(likelihood=None, n_kernels=1, data=COUNTS):
    own = model(likelihood or Poisson(), n_kernels=n_kernels)
    psi = own.likelihood.start(data.y, data.weight)[1]
    at = params(own, psi, data.X[:6])
    bound = HyperObjective(own, data, at, True, False)
    return bound, at, *bound.converged(at, 1e-12, 100)


@pytest.mark.parametrize("n_components", [1, 3])
def test_components_that_coincide_are_the_single_gaussian(n_components):
    _, _, blocks, q = converged()
    mixture = MixtureBound(blocks, q, n_components)
    value, gradient, _ = mixture(mixture.components.flat())
    assert_allclose(value, q.bound)
    assert_allclose(gradient, 0.0, atol=1e-5)
    alpha, W = mixture.factors(mixture.components)
    for c in range(n_components):
        assert_allclose(alpha[c, 0], q.latents[0].alpha, atol=1e-10)
        assert_allclose(W[c, 0], q.latents[0].W, atol=1e-10)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(("likelihood", "n_kernels"), [(Poisson(), 1), (HeteroscedasticGaussian(), 2)])
def test_gradient(monkeypatch, kept, likelihood, n_kernels):
    if not kept:
        monkeypatch.setattr(blocks_module, "KEPT_NUMBERS", 0)
        monkeypatch.setattr(blocks_module, "BLOCK_NUMBERS", 100)
    _, _, blocks, q = converged(likelihood, n_kernels)
    bound = MixtureBound(blocks, q, 2)
    rng = np.random.default_rng(0)
    flat = 0.4 * rng.normal(size=bound.components.flat().size)
    expected = differences(lambda x: bound(x)[0], flat)
    assert_allclose(bound(flat)[1], expected, atol=1e-5)


def test_its_factors_predict_its_moments():
    bound, at, blocks, q = converged()
    mixture = MixtureBound(blocks, q, 2)
    rng = np.random.default_rng(0)
    some = MixtureComponents(rng.normal(size=(2, 1, 6)), np.array([0.2, -0.3]))
    alpha, W = mixture.factors(some)
    own = posterior_at(bound, at)._replace(alpha=alpha, W=W)
    mean, variance, _ = mixture._moments(some)
    moments = own.moments(COUNTS.X)
    assert_allclose(moments[0], mean, atol=1e-8)
    assert_allclose(moments[1], variance, atol=1e-7)


def test_a_concave_likelihood_has_one_mode():
    _, _, blocks, q = converged()
    bound = MixtureBound(blocks, q, 3)
    assert np.abs(modes(bound, 0)).max() < 0.5


def either_sign(y, f):
    """y is f or -f, with noise of 0.5: the posterior of f has two modes."""
    return np.logaddexp(-2.0 * (y - f) ** 2, -2.0 * (y + f) ** 2) - 0.5 * math.log(2 * math.pi)


def both_signs(n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = rng.choice([-1.0, 1.0], n) * (1.5 + 0.3 * np.cos(X[:, 0])) + 0.5 * rng.normal(size=n)
    return GPRows(X, y, np.ones(n), np.zeros(n))


def test_two_modes_are_found():
    """q of one Gaussian has to choose a sign; of two components each takes one."""
    data, own = both_signs(), model(Custom(function=either_sign), offset=np.array([0.1]))
    (_, one, *_), (_, two, both, *_) = (
        fit_model(own, data, np.zeros(0), recipe(10, 100, n_components=C), 0, Run()) for C in (1, 2)
    )
    assert 0.4 < two.trace[-1]["bound"] - one.trace[-1]["bound"] < math.log(2)
    assert two.n_iter > one.n_iter
    mean = both.moments(data.X)[0][..., 0]
    assert mean[0].min() > 1.0
    assert mean[1].max() < -1.0
    assert_allclose(both.mean(data.X)[:, 0], mean.mean(axis=0))


@pytest.mark.parametrize("likelihood", ["student_t", "gaussian"])
def test_a_user_gets_no_less_than_with_one(likelihood):
    X, y = load_diabetes(return_X_y=True)
    one, two = (
        SparseGPRegressor(likelihood, n_scales=1, n_inducing=8, posterior=form, tol=0.1, random_state=0).fit(
            X[:100], y[:100]
        )
        for form in ("gaussian", "mixture")
    )
    assert two.bound_ >= one.bound_ - 1e-6
    assert_allclose(two.predict(X[100:]), one.predict(X[100:]), rtol=0.02)
    assert_allclose(two.predict_interval(X[100:110]), one.predict_interval(X[100:110]), rtol=0.05)

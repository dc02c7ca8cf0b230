import numpy as np
from numpy.testing import assert_allclose

from nongauss.sparse_gp import params as stored
from nongauss.sparse_gp.fit import posterior_at
from nongauss.sparse_gp.likelihoods import HeteroscedasticGaussian
from nongauss.sparse_gp.predict import GPPosterior
from nongauss.sparse_gp.updates import HyperObjective
from sparse_gp.small import model, params, rows


def fitted(likelihood=None, n_kernels=1):
    data, own = rows(30), model(likelihood, n_kernels=n_kernels)
    psi = own.likelihood.start(data.y, data.weight)[1]
    at = params(own, psi, data.X[:8])
    return posterior_at(HyperObjective(own, data, at, True, False), at), data


def test_mean_alone_is_the_mean_of_the_moments():
    for parts in (fitted(), fitted(HeteroscedasticGaussian(), 2)):
        own, data = parts
        mean, variance = own.moments(data.X)
        assert_allclose(own.mean(data.X), mean[0])
        assert (variance > 0).all()


def test_blocks_change_nothing(monkeypatch):
    own, data = fitted()
    expected = own.moments(data.X)
    monkeypatch.setattr(stored, "BLOCK_NUMBERS", 17)
    assert_allclose(own.moments(data.X), expected)


def test_far_from_the_data_it_is_the_prior():
    own, _ = fitted()
    mean, variance = own.moments(np.full((1, 2), 1e4))
    assert_allclose(mean, 0.0, atol=1e-12)
    assert_allclose(variance, np.exp(own.thetas[0][0]))


def test_readable_parameters_are_named_and_have_a_lengthscale_a_column():
    own = model(kernel="matern52 + matern52(a)")
    at = params(own, [0.0], np.zeros((1, 2)))
    q = GPPosterior(*own, *at, np.zeros((1, 1, 1)), np.zeros((1, 1, 1, 1)))
    named, scales = q.readable()
    assert set(scales) == {"a", "b"}
    both = [named["matern52 lengthscale a"], named["matern52 lengthscale a (2)"]]
    assert min(both) < scales["a"] < max(both)

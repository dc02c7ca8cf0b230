import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from nongauss.sparse_gp import params as module
from nongauss.sparse_gp.likelihoods import Bernoulli, Gaussian, Poisson, StudentT
from nongauss.sparse_gp.objective import log_prior
from nongauss.sparse_gp.params import KernelBlocks, box, start
from sparse_gp.small import differences, model, params, rows


def test_flat_and_back():
    own = params(model(), [0.3], np.arange(6.0).reshape(3, 2))
    again = own.like(own.flat(with_inputs=True))
    assert_array_equal(again.Z, own.Z)
    assert_array_equal(again.thetas[0], own.thetas[0])
    fixed = own.like(own.flat(with_inputs=False))
    assert_array_equal(fixed.Z, own.Z)


def test_a_box_for_every_number():
    own = model(StudentT())
    first = start(own, np.zeros(2), np.zeros((4, 2)))
    assert len(box(own, 8)) == len(first.flat(with_inputs=True))


def test_prior_is_highest_at_the_start_and_has_its_derivative():
    own = model(StudentT())
    at = params(own, [0.1, 0.2], np.zeros((1, 2)))
    _, by_thetas, by_psi = log_prior(own, at)

    def value(flat):
        return log_prior(own, at.like(flat))[0]

    assert_allclose([*by_thetas[0], *by_psi], differences(value, at.flat(with_inputs=False)), atol=1e-8)
    assert log_prior(own, start(own, at.psi, at.Z))[0] > log_prior(own, at)[0]


def test_latent_functions_and_rows():
    assert model(Bernoulli()).latents_of(0) == [0]
    assert len(rows(10).take(slice(0, 4)).y) == 4


def test_the_variance_is_freer_where_f_is_not_on_the_scale_of_the_target():
    def drop(likelihood):
        own = model(likelihood)
        first = start(own, np.zeros(2), np.zeros((1, 2)))
        theta = first.thetas[0] + [3.0, 0.0, 0.0]
        return log_prior(own, first._replace(thetas=(theta,)))[0] - log_prior(own, first)[0]

    assert_allclose([drop(StudentT()), drop(Bernoulli())], [-2.0, -0.5])


def test_sums_keep_their_digits_where_noise_is_small(monkeypatch):
    monkeypatch.setattr(module, "WHITE_NUMBERS", 0)
    data = rows(40)

    def is_white(likelihood, psi):
        own = model(likelihood)
        return KernelBlocks(own, params(own, psi, data.X[:5]), data).is_white

    assert is_white(Gaussian(), [np.log(1e-6)])
    assert not is_white(Gaussian(), [np.log(0.1)])
    assert is_white(StudentT(), [np.log(1e-3), 2.0])
    assert not is_white(StudentT(), [np.log(0.3), 2.0])
    assert not is_white(Poisson(), [])

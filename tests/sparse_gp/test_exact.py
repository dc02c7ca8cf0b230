"""An inducing input at every row: scikit-learn's exact Gaussian process is the reference."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from nongauss.sparse_gp.inducing import KernelBlocks
from nongauss.sparse_gp.objective import exact_evidence
from nongauss.sparse_gp.params import first_sites
from nongauss.sparse_gp.updates import HyperObjective, converge_q
from sparse_gp.small import differences, model, params, rows


def reference(at, data):
    noise = np.exp(at.psi[0])
    kernel = ConstantKernel(np.exp(at.thetas[0][0])) * Matern(np.exp(at.thetas[0][1:]), nu=2.5)
    return GaussianProcessRegressor(kernel + WhiteKernel(noise), optimizer=None, alpha=0).fit(data.X, data.y)


def test_evidence_and_predictions_are_those_of_scikit_learn():
    data, own = rows(40, weighted=False), model()
    at = params(own, [np.log(0.05)], data.X)
    theirs = reference(at, data)
    assert_allclose(exact_evidence(own, at, data).value, theirs.log_marginal_likelihood_value_, rtol=1e-10)
    new = np.random.default_rng(1).normal(size=(7, 2))
    mean, std = theirs.predict(new, return_std=True)
    ours = posterior_at(HyperObjective(own, data, at, False, True), at).moments(new)
    assert_allclose(ours[0][0, :, 0], mean, rtol=1e-8)
    assert_allclose(ours[1][0, :, 0] + 0.05, std**2, rtol=1e-8)


def test_the_sparse_bound_with_every_row_inducing_is_the_evidence():
    data, own = rows(30), model()
    at = params(own, [np.log(0.05)], data.X)
    q = converge_q(KernelBlocks(own, at, data), first_sites(own, data, at.psi), 0.0)
    assert_allclose(q.bound, exact_evidence(own, at, data).value, atol=1e-5)


def test_the_bound_grows_with_the_inducing_inputs_to_the_evidence():
    data, own = rows(30), model()
    bounds = []
    for size in (3, 8, 15, 30):
        at = params(own, [np.log(0.05)], data.X[:size])
        bounds.append(converge_q(KernelBlocks(own, at, data), first_sites(own, data, at.psi), 0.0).bound)
    assert (np.diff(bounds) > 0).all()
    assert bounds[-1] <= exact_evidence(own, at, data).value + 1e-6


def test_derivatives_with_weights_and_white_noise():
    data, own = rows(20), model(kernel="matern52 + white + linear(a)")
    at = params(own, [np.log(0.1)], data.X)
    out = exact_evidence(own, at, data)
    expected = differences(
        lambda flat: exact_evidence(own, at.like(flat), data).value, at.flat(with_inputs=False)
    )
    assert_allclose([*out.by_theta, *out.by_psi], expected, atol=1e-5)


def test_a_weight_of_two_is_the_row_twice():
    data, own = rows(15), model()
    twice = data.take(np.repeat(np.arange(15), data.weight.astype(int)))._replace(
        weight=np.ones(int(data.weight.sum()))
    )
    one = exact_evidence(own, params(own, [np.log(0.1)], data.X), data).value
    other = exact_evidence(own, params(own, [np.log(0.1)], twice.X), twice).value
    assert_allclose(one, other, rtol=1e-9)

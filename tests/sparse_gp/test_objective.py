"""The pieces of the bound against dense formulas, the exact evidence against scikit-learn."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from nongauss import SparseGPRegressor
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.fit import posterior_at
from nongauss.sparse_gp.objective import exact_evidence, latent, latent_moments, spread_factor, weighted_gram
from nongauss.sparse_gp.params import JITTER, GPParams, KernelBlocks, basis, first_sites, inducing
from nongauss.sparse_gp.updates import HyperObjective, converge_q
from sparse_gp.small import SPACE, differences, model, params, rows


@pytest.fixture
def setting():
    own, data = model(), rows(25)
    at = params(own, [np.log(0.1)], data.X[:6])
    kernel, theta = own.kernels[0], at.thetas[0]
    return (
        kernel,
        theta,
        at.Z,
        data,
        basis(kernel, theta, SPACE, at.Z, data.X),
        inducing(kernel, theta, SPACE, at.Z),
    )


def test_inverse_factor(setting):
    kernel, theta, Z, _, _, inner = setting
    Kz = kernel.forward(theta, SPACE, Z, Z)[0]
    L = np.linalg.inv(inner.inverse)
    assert_allclose(L @ L.T, Kz + JITTER * Kz[0, 0] * np.eye(len(Z)), atol=1e-10)


def test_gram_with_and_without_negative_weights(setting):
    K = setting[4].K
    beta = np.linspace(0.1, 2, K.shape[1])
    assert_allclose(weighted_gram(K, beta), (K * beta) @ K.T)
    assert_allclose(weighted_gram(K, beta - 1), (K * (beta - 1)) @ K.T)


def test_moments_are_those_of_the_dense_posterior_of_the_approximate_prior(setting):
    """With q optimal for Gaussian sites: mean and covariance of u given pseudo-observations, section 2.1."""
    kernel, theta, Z, data, outer, inner = setting
    beta, lam = np.full(25, 4.0), data.y * 4.0
    q = latent(inner.inverse, weighted_gram(outer.K, beta), outer.K @ lam)
    mean, variance, _ = latent_moments(outer, q.alpha, q.W)
    Kz = kernel.forward(theta, SPACE, Z, Z)[0] + JITTER * np.exp(theta[0]) * np.eye(len(Z))
    A = np.linalg.solve(Kz, outer.K).T
    C = np.linalg.inv(np.linalg.inv(Kz) + (A.T * beta) @ A)
    m = C @ A.T @ lam
    assert_allclose(mean, A @ m, atol=1e-7)
    expected = outer.diagonal - np.einsum("nm,mn->n", A, outer.K) + np.einsum("nm,mk,nk->n", A, C, A)
    assert_allclose(variance, expected, atol=1e-7)
    divergence = 0.5 * (
        np.trace(np.linalg.solve(Kz, C))
        + m @ np.linalg.solve(Kz, m)
        - len(Z)
        + np.linalg.slogdet(Kz)[1]
        - np.linalg.slogdet(C)[1]
    )
    assert_allclose(q.divergence, divergence, rtol=1e-6)


def test_without_data_q_is_the_prior(setting):
    *_, outer, inner = setting
    size = len(inner.inverse)
    q = latent(inner.inverse, np.zeros((size, size)), np.zeros(size))
    mean, variance, _ = latent_moments(outer, q.alpha, q.W)
    assert_allclose(q.divergence, 0.0, atol=1e-12)
    assert_allclose(mean, 0.0)
    assert_allclose(variance, outer.diagonal)
    assert_allclose(spread_factor(inner.inverse, np.eye(size)), 0.0, atol=1e-12)


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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rate", [1e5, 1e7])
def test_large_counts_have_a_posterior(rate):
    """A precision of 1e7 a row at inputs that lie close: rounding alone makes S^-1 indefinite."""
    rng = np.random.default_rng(3)
    X = rng.random((60, 1))
    y = rng.poisson(rate, 60)
    law = SparseGPRegressor("poisson", max_iter=30, random_state=0).fit(X, y).predict_distribution(X)
    assert_allclose(law.mean.mean(), rate, rtol=1e-2)
    assert 0.7 < law.std.mean() / np.sqrt(rate) < 1.4


def test_a_posterior_that_rounding_has_broken_is_still_one():
    """Eigenvalues of S^-1 below 1 can only be rounding where no site is negative."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.random((30, 1)), axis=0)
    K = np.exp(-0.5 * (X - X.T) ** 2)
    inverse = np.linalg.inv(np.linalg.cholesky(K + 1e-10 * np.eye(30)))
    gram = 1e9 * K @ K
    with pytest.raises(np.linalg.LinAlgError):
        latent(inverse, gram, K @ np.ones(30))
    q = latent(inverse, gram, K @ np.ones(30), is_positive=True)
    assert np.linalg.eigvalsh(q.precision).min() > 0.999
    assert_allclose(q.precision @ q.covariance, np.eye(30), atol=1e-3)
    assert np.isfinite(q.divergence)


def test_of_next_to_no_noise_the_bound_and_its_slope_have_their_digits():
    """Against the collapsed bound (Titsias 2009) of the same matrices by arithmetic of 40 digits."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 2))
    data = GPRows(X, np.sin(2 * X[:, 0]) + 1e-3 * rng.normal(size=40), np.ones(40), np.zeros(40))
    own, theta, psi = model(kernel="squared_exponential"), np.array([1.0, 0.5, 0.5]), np.log([1e-6])
    at, kernel = GPParams((theta,), psi, X[:20]), own.kernels[0]
    K, Kz = (kernel.forward(theta, SPACE, at.Z, places)[0] for places in (X, at.Z))
    diagonal = kernel.diagonal(theta, SPACE, X)
    Kz = Kz + JITTER * diagonal[0] * np.eye(20)
    with mp.workdps(40):
        wide, y = mp.matrix(K.tolist()), mp.matrix(data.y.tolist())
        Q = wide.T * mp.inverse(mp.matrix(Kz.tolist())) * wide
        covariance = Q + mp.mpf(float(np.exp(psi[0]))) * mp.eye(40)
        root = mp.cholesky(covariance)
        log_det = 2 * sum(mp.log(root[n, n]) for n in range(40))
        square = (y.T * mp.inverse(covariance) * y)[0]
        left = sum(mp.mpf(float(diagonal[n])) - Q[n, n] for n in range(40)) / mp.mpf(float(np.exp(psi[0])))
        expected = float(-0.5 * (40 * mp.log(2 * mp.pi) + log_det + square + left))
    bound = HyperObjective(own, data, at, False, False)
    assert_allclose(bound(at.flat(False))[2], expected, atol=1e-5)
    slope = bound(at.flat(False))[1]
    assert_allclose(slope, differences(lambda x: bound(x)[0], at.flat(False), 1e-4), rtol=1e-4)

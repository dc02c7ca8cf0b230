"""The pieces of the bound against dense formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.sparse_gp.inducing import JITTER, basis, inducing
from nongauss.sparse_gp.objective import latent, spread_factor, weighted_gram
from sparse_gp.small import SPACE, model, params, rows


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

"""q without a row: against doing without the row, in more digits where there are too few of them."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.sparse_gp.cavity import ExactCavities, ExactRows, SparseCavities, left_out_moments
from nongauss.sparse_gp.fit import posterior_at
from nongauss.sparse_gp.likelihoods import Poisson
from nongauss.sparse_gp.objective import bound_at
from nongauss.sparse_gp.params import GaussianSites, KernelBlocks
from nongauss.sparse_gp.predict import FittedGP
from nongauss.sparse_gp.stacking import left_out
from nongauss.sparse_gp.updates import HyperObjective
from sparse_gp.small import model, params, rows


def test_with_gaussian_noise_it_is_what_the_average_takes():
    data, own = rows(14, weighted=False), model(offset=np.array([0.2]))
    at = params(own, [np.log(0.05)], data.X[:5])
    posterior = posterior_at(HyperObjective(own, data, at, False, False), at)
    expected = left_out(FittedGP(own, None, posterior), data)
    moments = left_out_moments(posterior, data)
    law = own.likelihood.predictive(*moments, posterior.psi)
    assert_allclose(law.log_prob(data.y), expected, rtol=1e-5)


def counts():
    """Sixteen rows of counts, a process for them, and its parameters with six inducing inputs."""
    data, own = rows(16), model(Poisson())
    data = data._replace(y=np.random.default_rng(0).poisson(2.0, 16).astype(float))
    return data, own, params(own, [], data.X[:6])


def bound_without(n, own, at, data, sites):
    """The bound and q by all sites but that of row n."""
    kept = (np.arange(len(data.y)) != n)[:, None]
    return bound_at(KernelBlocks(own, at, data), GaussianSites(sites.linear * kept, sites.precision * kept))


def test_with_counts_it_is_q_without_the_row_s_site():
    data, own, at = counts()
    bound = HyperObjective(own, data, at, False, False)
    blocks, q = bound.at_rest(at)
    posterior = posterior_at(bound, at)
    mean, variance = left_out_moments(posterior, data)
    for n in (0, 3, 11):
        without = bound_without(n, own, at, data, q.sites)
        [(_, [basis])] = list(blocks)
        assert_allclose(mean[0, n, 0], own.offset[0] + without.centred[n, 0], atol=2e-3)
        expected = basis.diagonal[n] - basis.K[:, n] @ without.latents[0].W @ basis.K[:, n]
        assert_allclose(variance[0, n, 0], expected, rtol=5e-3)


def test_without_a_row_no_more_is_open_than_in_the_prior():
    """Also where q(u) is not at the fixed point of its sites, so that a site is more than q says."""
    data, own, at = counts()
    posterior = posterior_at(HyperObjective(own, data, at, False, False), at)
    astray = posterior._replace(offset=posterior.offset + 6.0)
    mean, variance = left_out_moments(astray, data)
    prior = own.kernels[0].diagonal(at.thetas[0], own.space, data.X)
    assert (variance[0, :, 0] <= prior * (1 + 1e-9)).all()
    assert np.abs(mean).max() < 1e5


def test_counts_are_told_at_other_places_by_q_without_their_sites():
    data, own, at = counts()
    bound = HyperObjective(own, data, at, False, False)
    _, q = bound.at_rest(at)
    cavities = SparseCavities.of(posterior_at(bound, at), data)
    place = data.X + np.random.default_rng(1).normal(0.0, 0.3, data.X.shape)
    mean, variance = cavities.at(np.tile(place, (2, 1)), np.tile(np.arange(16), 2))
    for n in (0, 3, 11):
        without = bound_without(n, own, at, data, q.sites)
        K, _ = own.kernels[0].forward(at.thetas[0], own.space, at.Z, place[n : n + 1])
        prior = own.kernels[0].diagonal(at.thetas[0], own.space, place[n : n + 1])
        latent = without.latents[0]
        assert_allclose(mean[0, [n, n + 16], 0], own.offset[0] + K[:, 0] @ latent.alpha, atol=2e-3)
        expected = np.repeat(prior - K[:, 0] @ latent.W @ K[:, 0], 2)
        assert_allclose(variance[0, [n, n + 16], 0], expected, rtol=5e-3)


def dense(own, at, data, weight, n, place):
    """Mean and variance of f at a place from all rows, row n with so much weight left, in 60 digits."""
    kernel, theta = own.kernels[0], at.thetas[0]
    K = mpmath.matrix(kernel.forward(theta, own.space, data.X, data.X)[0].tolist())
    k = mpmath.matrix(kernel.forward(theta, own.space, data.X, place[None])[0][:, 0].tolist())
    prior = float(kernel.diagonal(theta, own.space, place[None])[0])
    rest = data.weight.copy()
    rest[n] -= weight
    kept = np.flatnonzero(rest > 0)
    total = mpmath.matrix(len(kept), len(kept))
    for i, a in enumerate(kept):
        for j, b in enumerate(kept):
            total[i, j] = K[int(a), int(b)] + (mpmath.exp(at.psi[0]) / rest[a] if i == j else 0)
    own_k = mpmath.matrix([k[int(a)] for a in kept])
    y = mpmath.matrix([mpmath.mpf(float(data.y[a])) - mpmath.mpf(float(own.offset[0])) for a in kept])
    both = mpmath.lu_solve(total, own_k)
    mean = own.offset[0] + float(mpmath.fdot(both, y))
    return mean, float(prior - mpmath.fdot(both, own_k))


@pytest.mark.parametrize("noise", [0.05, 1e-6])
@pytest.mark.parametrize("kernel", ["matern52", "squared_exponential"])
def test_rows_of_an_exact_process_keep_their_digits_where_there_is_next_to_no_noise(noise, kernel):
    """Whole rows, one of two copies that were merged, a row of no weight, and places beside the rows."""
    data, own = rows(24), model(kernel=kernel, offset=np.array([0.2]))
    data = data._replace(y=np.sin(data.X[:, 0]))
    at = params(own, [np.log(noise)], data.X)
    posterior = posterior_at(HyperObjective(own, data, at, False, True), at)
    weight = np.minimum(data.weight, np.arange(24) % 3)
    order = np.random.default_rng(0).permutation(24)
    some = data.take(order)._replace(weight=weight[order])
    cavities = ExactCavities.of(posterior, ExactRows(*data[1:]), some)
    in_place = cavities.at(some.X, np.arange(24))
    place = some.X + 0.2
    beside = cavities.at(place, np.arange(24))
    with mpmath.workdps(60):
        for n in range(8):
            row = int(order[n])
            for (mean, variance), where in ((in_place, some.X[n]), (beside, place[n])):
                expected = dense(own, at, data, float(weight[row]), row, where)
                assert_allclose(mean[0, n, 0], expected[0], rtol=1e-3 * noise, atol=0.01 * np.sqrt(noise))
                assert_allclose(variance[0, n, 0] + noise, expected[1] + noise, rtol=2e-3)

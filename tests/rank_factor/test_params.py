import numpy as np
from numpy.testing import assert_allclose

from nongauss.rank_factor.params import cholesky_draw, outer, pack, pack_twice, solve, unpack
from rank_factor.small import random_normal


def test_packed_products_are_traces():
    rng = np.random.default_rng(0)
    S, T = random_normal(rng, 4, 3).second, random_normal(rng, 4, 3).second
    assert_allclose((pack(S) * pack_twice(T)).sum(-1), np.trace(S @ T, axis1=1, axis2=2))
    assert_allclose(unpack(pack(S), 3), S)
    v = rng.standard_normal((5, 3))
    assert_allclose(outer(v), pack(v[:, :, None] * v[:, None, :]))


def test_draws_have_the_moments_of_the_normals():
    rng = np.random.default_rng(0)
    precision, linear = random_normal(rng, 2, 3, width=1.0).second, rng.standard_normal((2, 3))
    q = solve(precision, linear)
    assert_allclose(q.mean, np.linalg.solve(precision, linear[..., None])[..., 0])
    n = 20_000
    draws = cholesky_draw(rng, np.tile(precision, (n, 1, 1, 1)), np.tile(linear, (n, 1, 1)))
    for k in range(2):
        sd = np.sqrt(np.diag(q.covariance[k]))
        assert (np.abs(draws[:, k].mean(0) - q.mean[k]) < 5 * sd / np.sqrt(n)).all()
        assert_allclose(np.cov(draws[:, k].T), q.covariance[k], atol=0.05 * sd.max() ** 2)

import numpy as np
from numpy.testing import assert_allclose

from nongauss.rank_factor import params
from nongauss.rank_factor.data import RankRows
from nongauss.rank_factor.params import cholesky_draw, outer, pack, pack_twice, solve, unpack
from rank_factor.small import problem, random_normal, ranked, table


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


def test_components_are_those_of_an_exact_decomposition():
    X, _ = table(50)
    X = (X - X.mean(0)) / X.std(0)
    factors, loadings = params.components(np.random.default_rng(0), X, np.ones(50), 3)
    u, s, vt = np.linalg.svd(X, full_matrices=False)
    assert_allclose(factors @ loadings.T, (u[:, :3] * s[:3]) @ vt[:3], atol=1e-6)
    assert_allclose((factors**2).mean(axis=0), 1.0)


def test_mid_ranks_are_standardised_and_a_missing_cell_is_zero():
    X, _ = table(50)
    X[4, 1] = np.nan
    out = params.standardised_ranks(ranked(X), np.ones(50))
    present = ~np.isnan(X)
    assert out[4, 1] == 0
    for i in range(6):
        assert_allclose([out[present[:, i], i].mean(), out[present[:, i], i].std()], [0, 1], atol=1e-12)
    assert_allclose(params.standardised_ranks(RankRows(None, X), np.ones(50))[4, 1], 0.0)


def test_more_factors_than_columns_are_legal():
    state, *_ = problem()
    assert state.A.mean.shape == (6, 2)
    factors, _ = params.components(np.random.default_rng(0), np.ones((5, 2)), np.ones(5), 4)
    assert np.isfinite(factors).all()

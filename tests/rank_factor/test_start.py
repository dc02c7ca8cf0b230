import numpy as np
from numpy.testing import assert_allclose

from nongauss.rank_factor import start
from nongauss.rank_factor.rank_likelihood import Rows
from rank_factor.small import problem, ranked, table


def test_components_are_those_of_an_exact_decomposition():
    X, _ = table(50)
    X = (X - X.mean(0)) / X.std(0)
    factors, loadings = start.components(np.random.default_rng(0), X, np.ones(50), 3)
    u, s, vt = np.linalg.svd(X, full_matrices=False)
    assert_allclose(factors @ loadings.T, (u[:, :3] * s[:3]) @ vt[:3], atol=1e-6)
    assert_allclose((factors**2).mean(axis=0), 1.0)


def test_mid_ranks_are_standardised_and_a_missing_cell_is_zero():
    X, _ = table(50)
    X[4, 1] = np.nan
    out = start.standard(ranked(X), np.ones(50))
    present = ~np.isnan(X)
    assert out[4, 1] == 0
    for i in range(6):
        assert_allclose([out[present[:, i], i].mean(), out[present[:, i], i].std()], [0, 1], atol=1e-12)
    assert_allclose(start.standard(Rows(None, X), np.ones(50))[4, 1], 0.0)


def test_more_factors_than_columns_are_legal():
    state, *_ = problem()
    assert state.A.mean.shape == (6, 2)
    factors, _ = start.components(np.random.default_rng(0), np.ones((5, 2)), np.ones(5), 4)
    assert np.isfinite(factors).all()

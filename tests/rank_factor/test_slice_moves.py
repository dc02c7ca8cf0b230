import numpy as np
from numpy.testing import assert_allclose

from nongauss.rank_factor.config import RankConfig
from nongauss.rank_factor.data import RankRows, neighbours_of
from nongauss.rank_factor.params import Experts, NeighbourScores, first_shrinkage, point
from nongauss.rank_factor.rank_likelihood import moments_of_draw
from nongauss.rank_factor.slice_moves import log_likelihood_of, slice_move

N = 3000


def test_rows_have_their_posterior_by_quadrature():
    """One factor, a rank between two levels and a label: moments of equal rows against a grid."""
    rng = np.random.default_rng(0)
    codes = np.full((N, 1), 1, np.uint8)
    rows = RankRows(neighbours_of(codes, np.array([3])), None, codes)
    table = np.array([[-0.5, 0.2, 0.9]])
    loadings = moments_of_draw(np.array([[2.0]]), NeighbourScores(table, table, np.ones(1)), np.float64)
    experts = Experts(point(np.array([[[1.5, -0.3]]])), first_shrinkage((1, 1)), None)
    config = RankConfig(1, n_outputs=1, cut=False)
    seen = np.ones((N, 1)), np.ones((N, 1))
    likelihood = log_likelihood_of(loadings, rows, experts, seen, config)
    z, prior = np.zeros((N, 1)), (np.full(N, 0.7), np.full((N, 1), 0.4))
    for _ in range(12):
        z = slice_move(rng, z, prior, likelihood)
    grid = np.linspace(-6.0, 6.0, 4001)
    hinges = (1.0 - 0.5 - 2.0 * grid, 1.0 + 2.0 * grid - 0.9, 1.0 - (1.5 * grid - 0.3))
    log_density = 0.4 * grid - 0.35 * grid**2 - 2.0 * sum(np.maximum(u, 0.0) for u in hinges)
    share = np.exp(log_density - log_density.max())
    share /= share.sum()
    mean, second = share @ grid, share @ grid**2
    sd = np.sqrt(second - mean**2)
    assert_allclose(z.mean(), mean, atol=4.0 * sd / np.sqrt(N))
    assert_allclose(z.std(), sd, rtol=0.06)

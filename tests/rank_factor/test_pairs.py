import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.rank_factor import pairs
from nongauss.rank_factor.levels import NONE
from nongauss.rank_factor.params import Config, Normal
from nongauss.rank_factor.shrinkage import Prior, Shrinkage
from nongauss.rank_factor.updates import SLAB
from nongauss.rank_factor.ways import Draw, Expect, point
from rank_factor.small import problem, random_normal, second_differences


def test_pairs_join_adjacent_values_and_each_row_of_equal_ones_has_a_partner():
    codes = np.array([[0, NONE], [1, 0], [1, 0], [2, 1], [1, 0]], np.uint8)
    found = pairs.find_pairs(codes)
    first = {(l, h) for i, l, h in zip(found.column, found.low, found.high, strict=True) if i == 0}
    assert first == {(0, 1), (0, 2), (0, 4), (1, 3), (2, 3), (4, 3)}
    assert len(found.touching[0]) == 3
    assert len(pairs.find_pairs(np.zeros((3, 2), np.uint8)).column) == 0


def test_conditionals_are_those_of_the_joint_density():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (6, 3)).astype(np.uint8)
    found = pairs.find_pairs(codes)
    g, A, z = rng.uniform(0.1, 2, len(found.column)), rng.standard_normal((3, 2)), rng.standard_normal((6, 2))

    def log_joint(A: np.ndarray, z: np.ndarray) -> float:
        u = 3.0 - (A[found.column] * (z[found.high] - z[found.low])).sum(axis=1)
        return -(0.5 * g * u * u + u).sum()

    P, b = pairs.loading_system(point(z), found, g, 3, 3.0)
    expected = second_differences(
        lambda a: log_joint(np.where(np.arange(3)[:, None] == 1, a, A), z), A[1], h=0.1
    )
    assert_allclose(P[1], expected[0], atol=1e-6)
    assert_allclose(b[1], expected[1], atol=1e-6)
    P, b = pairs.row_system(4, z, point(A), found, g, 3.0)
    expected = second_differences(
        lambda v: log_joint(A, np.where(np.arange(6)[:, None] == 4, v, z)), z[4], h=0.1
    )
    assert_allclose(P, expected[0], atol=1e-6)
    assert_allclose(b, expected[1], atol=1e-6)


def test_the_second_moment_of_a_gap_against_draws():
    rng = np.random.default_rng(0)
    A, z = random_normal(rng, 1, 2), random_normal(rng, 2, 2)
    found = pairs.find_pairs(np.array([[0], [1]], np.uint8))
    u, variance = pairs.gaps(A, z, found, Config(2, eps=1.5))
    n = 200_000
    a, low, high = (
        rng.multivariate_normal(m, C, n)
        for m, C in ((A.mean[0], A.covariance[0]), (z.mean[0], z.covariance[0]), (z.mean[1], z.covariance[1]))
    )
    draws = 1.5 - (a * (high - low)).sum(axis=1)
    assert_allclose(u[0] ** 2 + variance[0], (draws**2).mean(), rtol=0.02)


@pytest.mark.parametrize("settings", [{}, {"n_outputs": 1, "cut": False}], ids=["factors", "classifier"])
def test_the_bound_never_falls(settings):
    state, rows, labels, config = problem(None, 25, neighbours="pairwise", eps=5.0, **settings)
    found = pairs.find_pairs(rows.codes)
    bounds = []
    for _ in range(60):
        state, info = pairs.sweep(state, found, labels, config, Expect())
        bounds.append(info["bound"])
    assert np.diff(bounds).min() > -1e-7 * abs(bounds[-1])
    assert bounds[-1] > bounds[0]


def test_draws_agree_with_weighted_draws_of_the_prior():
    """The joint distribution by another route: N = 4, D = 2, K = 1, prior draws weighted by the hinges."""
    rng = np.random.default_rng(0)
    codes = np.array([[0, 1], [1, 0], [2, 2], [3, 3]], np.uint8)
    found, config = pairs.find_pairs(codes), Config(1, neighbours="pairwise", eps=0.5)
    prior, n = Prior(), 100_000
    t = rng.gamma(0.5, 1.0, n)
    phi = rng.gamma(0.5, 1.0, n) / t
    xi = rng.gamma(0.5, 1.0, (n, 2)) / (rng.gamma(0.5, 1.0, (n, 2)) / phi[:, None])
    A, z = np.sqrt(xi) * rng.standard_normal((n, 2)), rng.standard_normal((n, 4))
    u = config.eps - A[:, found.column] * (z[:, found.high] - z[:, found.low])
    log_weight = -2.0 * np.maximum(u, 0.0).sum(axis=1) - 0.5 * SLAB * (A**2).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())

    def watched(A: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.stack(
            [np.abs(A[..., 0]), A[..., 0] * A[..., 1], z[..., 3] ** 2, A[..., 0] * (z[..., 3] - z[..., 0])]
        )

    exact = watched(A, z)
    mean = (exact * weight).sum(axis=1) / weight.sum()
    error = np.sqrt((((exact - mean[:, None]) * weight) ** 2).sum(axis=1)) / weight.sum()
    state, _, labels, _ = problem(None, 25, neighbours="pairwise")
    state = state._replace(
        A=Normal(np.ones((2, 1)), np.zeros((2, 1, 1))),
        z=Normal(np.zeros((4, 1)), np.zeros((4, 1, 1))),
        shrink=Shrinkage(np.ones((2, 1)), np.ones((2, 1)), np.ones(1), 1.0),
    )
    labels = labels._replace(y=np.zeros((4, 0)), weight=np.ones(4))
    way, draws = Draw(np.random.default_rng(1)), []
    for _ in range(1500):
        state, _ = pairs.sweep(state, found, labels, config._replace(prior=prior), way)
        draws.append(watched(state.A.mean[:, 0], state.z.mean[:, 0]))
    batches = np.array(draws[500:]).reshape(20, 50, 4).mean(axis=1)
    spread = np.sqrt(error**2 + batches.var(axis=0, ddof=1) / 20)
    assert (np.abs(batches.mean(axis=0) - mean) / spread < 4.0).all()

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.rank_factor import pairs
from nongauss.rank_factor.config import OFFSET_PRECISION, SLAB, RankConfig
from nongauss.rank_factor.data import NONE, RankRows, neighbours_of
from nongauss.rank_factor.inference import Gibbs
from nongauss.rank_factor.params import WeightedLabels, point
from nongauss.rank_factor.start import first_state
from rank_factor.small import random_normal, second_differences


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
    P, b = pairs.joint_system(A, found, g, 6, 3.0)
    expected = second_differences(lambda v: log_joint(A, v.reshape(6, 2)), z.ravel(), h=0.1)
    assert_allclose(P.reshape(12, 12), expected[0], atol=1e-6)
    assert_allclose(b.ravel(), expected[1], atol=1e-6)


def test_the_second_moment_of_a_gap_against_draws():
    rng = np.random.default_rng(0)
    A, z = random_normal(rng, 1, 2), random_normal(rng, 2, 2)
    found = pairs.find_pairs(np.array([[0], [1]], np.uint8))
    u, variance = pairs.gaps(A, z, found, RankConfig(2, eps=1.5))
    n = 200_000
    a, low, high = (
        rng.multivariate_normal(m, C, n)
        for m, C in ((A.mean[0], A.covariance[0]), (z.mean[0], z.covariance[0]), (z.mean[1], z.covariance[1]))
    )
    draws = 1.5 - (a * (high - low)).sum(axis=1)
    assert_allclose(u[0] ** 2 + variance[0], (draws**2).mean(), rtol=0.02)


def shrunk(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """Coefficients (n, size) of one column of the horseshoe, from its hierarchy."""
    phi = rng.gamma(0.5, 1.0, (n, 1)) / rng.gamma(0.5, 1.0, (n, 1))
    xi = rng.gamma(0.5, 1.0, (n, size)) / (rng.gamma(0.5, 1.0, (n, size)) / phi)
    return np.sqrt(xi) * rng.standard_normal((n, size))


def of_the_prior(rng: np.random.Generator, n: int, T: int) -> tuple[np.ndarray, ...]:
    """Draws for N = 4, D = 2, K = 1: A, z, each row's expert; and of T > 1 experts psi, share and beta."""
    A, z, t = shrunk(rng, n, 2), rng.standard_normal((n, 4)), np.zeros((n, 4), int)
    psi, share, beta = np.ones((n, 2)), np.ones(n), np.zeros((n, 2, 2))
    if T > 1:
        share = rng.beta(1.0, rng.gamma(1.0, 1.0, n))
        t = (rng.random((n, 4)) > share[:, None]).astype(int)
        psi, centre = rng.gamma(1.0, 1.0, (n, 2)), rng.standard_normal((n, 2))
        z = np.take_along_axis(centre, t, 1) + z / np.sqrt(np.take_along_axis(psi, t, 1))
        hyper = rng.gamma(0.5, 1.0, (n, 1))  # the scales of both experts have it in common
        xi = rng.gamma(0.5, 1.0, (n, 2)) * rng.gamma(0.5, 1.0, (n, 2)) / hyper / rng.gamma(0.5, 1.0, (n, 2))
        beta[..., 0] = np.sqrt(xi) * rng.standard_normal((n, 2))
        beta[..., 1] = rng.standard_normal((n, 2)) / np.sqrt(OFFSET_PRECISION)
    return A, z, t, psi, share, beta


def watched(A, z, psi, share, beta) -> np.ndarray:
    """Bounded numbers, a sign flip of the factor leaves them: (8, ...)."""
    size, slope = np.abs(A[..., 0]), np.abs(beta[..., 0, 0])
    return np.stack(
        [
            size, A[..., 0] * A[..., 1], z[..., 3] ** 2, A[..., 0] * (z[..., 3] - z[..., 0]),
            psi[..., 0] / (1.0 + psi[..., 0]), share, slope / (1.0 + slope), np.tanh(0.1 * beta[..., 0, 1]),
        ]
    )  # fmt: skip


@pytest.mark.gate
@pytest.mark.parametrize("T", [1, 2], ids=["factors", "mixture"])
def test_draws_agree_with_weighted_draws_of_the_prior(T):
    """The joint distribution by another route: prior draws weighted by the hinges of ranks and labels."""
    rng, n, y = np.random.default_rng(0), 100_000, np.array([-1.0, 1.0, -1.0, 1.0])
    codes = np.array([[0, 1], [1, 0], [2, 2], [3, 3]], np.uint8)
    config = RankConfig(1, neighbours="pairwise", eps=0.5, n_experts=T, n_outputs=int(T > 1), cut=False)
    found = pairs.find_pairs(codes)
    A, z, t, *rest = of_the_prior(rng, n, T)
    u = config.eps - A[:, found.column] * (z[:, found.high] - z[:, found.low])
    log_weight = -2.0 * np.maximum(u, 0.0).sum(axis=1) - 0.5 * SLAB * (A**2).sum(axis=1)
    if T > 1:
        chosen = np.take_along_axis(rest[2], t[:, :, None], axis=1)
        u = 1.0 - y * (chosen[..., 0] * z + chosen[..., 1])
        log_weight -= 2.0 * np.maximum(u, 0.0).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    exact = watched(A, z, *rest)
    mean = (exact * weight).sum(axis=1) / weight.sum()
    error = np.sqrt((((exact - mean[:, None]) * weight) ** 2).sum(axis=1)) / weight.sum()

    rows = RankRows(neighbours_of(codes, np.array([4, 4])), None, codes)
    labels = WeightedLabels(y[:, None] if T > 1 else np.zeros((4, 0)), np.ones(4))
    state, inference, draws = first_state(rng, rows, labels, config), Gibbs(np.random.default_rng(1)), []
    for _ in range(1300):
        state, _ = pairs.sweep(state, found, labels, config, inference)
        gate, beta = state.experts.gate, state.experts.beta.mean
        own = (np.ones(2), 1.0, np.zeros((2, 2)))
        if gate is not None:
            own = gate.precision, np.exp(gate.log_share[0]), beta[:, 0]
        draws.append(watched(state.A.mean[:, 0], state.z.mean[:, 0], *own))
    batches = np.array(draws[300:]).reshape(20, 50, 8).mean(axis=1)
    spread = np.sqrt(error**2 + batches.var(axis=0, ddof=1) / 20) + 1e-12
    z_scores = (batches.mean(axis=0) - mean) / spread
    assert (np.abs(z_scores) < 4.0).all(), z_scores

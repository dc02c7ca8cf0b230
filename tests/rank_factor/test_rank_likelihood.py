import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from nongauss.rank_factor import data, objective, rank_likelihood
from nongauss.rank_factor.config import RankConfig
from nongauss.rank_factor.data import NONE, Neighbours, RankRows
from nongauss.rank_factor.params import NeighbourScores, Normal, pack
from rank_factor.small import problem, random_normal, ranked, second_differences, table


@pytest.mark.parametrize("u", [-3.0, -0.2, 0.4, 2.5])
def test_a_hinge_is_a_mixture_of_normals(u):
    """Polson and Scott (2011)."""

    def mixed(root: float) -> float:  # lambda = root^2 takes the pole at 0 away
        return 2.0 * np.exp(-((u + root**2) ** 2) / (2.0 * root**2)) / np.sqrt(2.0 * np.pi)

    assert_allclose(quad(mixed, 0.0, np.inf)[0], np.exp(-2.0 * max(u, 0.0)), rtol=1e-8)


def cells() -> tuple[np.ndarray, np.ndarray, Neighbours]:
    score, table = np.array([[0.3, -1.0, 2.0, 0.1]]), np.array([[-1.0, 0.2, 1.5]] * 4)
    lower = np.array([[0, NONE, 1, NONE]], np.uint8)
    upper = np.array([[2, 1, NONE, NONE]], np.uint8)
    return score, table, Neighbours(lower, upper)


def test_the_quadratic_is_the_log_density_given_the_weights():
    score, table, near = cells()
    at = rank_likelihood.hinges(score, table, table, near, 0.7)
    assert_allclose(at.lower[0, 0], 0.7 - 1.0 - 0.3)
    assert_allclose(at.upper[0, 0], 0.7 + 0.3 - 1.5)
    g = rank_likelihood.expected_weights(at, (np.full((1, 4), 0.2),) * 2, 1e-3)
    precision, linear = rank_likelihood.quadratic(at, g, score)

    def log_density(w: np.ndarray) -> np.ndarray:
        here = rank_likelihood.hinges(w, table, table, near, 0.7)
        lower = np.where(here.has_lower, -0.5 * g[0] * here.lower**2 - here.lower, 0.0)
        return lower + np.where(here.has_upper, -0.5 * g[1] * here.upper**2 - here.upper, 0.0)

    h = 1e-3
    assert_allclose(linear, (log_density(np.full((1, 4), h)) - log_density(np.full((1, 4), -h))) / (2 * h))
    mid = log_density(np.zeros((1, 4)))
    second = log_density(np.full((1, 4), h)) + log_density(np.full((1, 4), -h)) - 2 * mid
    assert_allclose(precision, -second / h**2, atol=1e-6)


def test_a_cell_without_neighbours_says_nothing():
    score, table, near = cells()
    at = rank_likelihood.hinges(score, table, table, near, 1.0)
    zero = (np.zeros((1, 4)),) * 2
    g = rank_likelihood.expected_weights(at, zero, 1e-3)
    precision, linear = rank_likelihood.quadratic(at, g, score)
    assert precision[0, 3] == linear[0, 3] == 0
    drawn = rank_likelihood.drawn_weights(np.random.default_rng(0), at)
    assert drawn[0][0, 3] == drawn[1][0, 3] == 0
    lost = sum(objective.rank_loss(u, zero[0], has)[0] for u, has in at.sides)
    assert_allclose(lost, 2 * np.maximum([at.lower[0, [0, 2]], at.upper[0, :2]], 0).sum())


def test_variance_of_a_hinge_against_draws():
    rng = np.random.default_rng(0)
    A, z, means = random_normal(rng, 2, 3), random_normal(rng, 2, 3), rng.standard_normal((2, 4, 3))
    rows = ranked(np.array([[1.0, 4.0], [2.0, 3.0]]))
    loadings = rank_likelihood.moments_of(A, rank_likelihood.level_scores(A, means), np.float64)
    variance = rank_likelihood._hinge_variances(z, loadings, rows.cells)
    n = 100_000
    a = rng.multivariate_normal(A.mean[0], A.covariance[0], n)
    row = rng.multivariate_normal(z.mean[0], z.covariance[0], n)
    u = (a * (row - means[0, rows.cells.upper[0, 0]])).sum(axis=1)
    assert_allclose(variance[1][0, 0], u.var(), rtol=0.02)


def test_the_loadings_system_is_the_log_joint_given_the_weights():
    """Second differences of the level rule's augmented log density in one column's loadings."""
    state, rows, labels, config = problem()
    loadings = rank_likelihood.moments_of(state.A, state.scale, np.float64)
    at = rank_likelihood.expected_quadratics(state.z, loadings, rows, config)
    point = Normal(state.z.mean, np.zeros_like(state.z.covariance))
    sums = rank_likelihood.cell_sums(at, point, rows, labels.weight, state.scale.lower.shape[1])
    means = rank_likelihood.level_means(sums)
    P, b = rank_likelihood.level_system(sums, means, config.eps)
    i, z, code = 2, state.z.mean, rows.codes[:, 2]

    def log_joint(a: np.ndarray) -> float:
        total = 0.0
        for n in range(len(z)):
            for side, g, sign in (
                (rows.cells.lower, at.weights[0], -1),
                (rows.cells.upper, at.weights[1], 1),
            ):
                if g[n, i] > 0:
                    u = config.eps - sign * a @ (means[i, side[n, i]] - z[n])
                    total -= 0.5 * g[n, i] * u * u + u
        return total

    assert code.max() == 4
    expected = second_differences(log_joint, np.zeros(2), h=0.1)
    assert_allclose(P[i], expected[0], rtol=1e-6, atol=1e-6)
    assert_allclose(b[i], expected[1], rtol=1e-6, atol=1e-6)


def test_blocks_of_rows_give_the_same_sums(monkeypatch):
    state, rows, labels, config = problem()
    loadings = rank_likelihood.moments_of(state.A, state.scale, np.float64)

    def total() -> rank_likelihood.CellSums:
        parts = []
        for part in rows.blocks():
            z = Normal(state.z.mean[part], state.z.covariance[part])
            block = rows.take(part)
            at = rank_likelihood.expected_quadratics(z, loadings, block, config)
            parts.append(rank_likelihood.cell_sums(at, z, block, labels.weight[part], 5))
        return rank_likelihood.CellSums(*map(sum, zip(*parts, strict=True)))

    whole = total()
    monkeypatch.setattr(data, "BLOCK", 50)
    for a, b in zip(whole, total(), strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_missing_values_and_missing_ranks_drop_out():
    X, _ = table(20)
    X[0, :5] = np.nan
    X[1] = np.nan
    A = random_normal(np.random.default_rng(0), 6, 2)
    scale = NeighbourScores(np.zeros((6, 0)), np.zeros((6, 0)), np.ones(6))
    z = Normal(np.zeros((20, 2)), np.tile(np.eye(2), (20, 1, 1)))
    loadings = rank_likelihood.moments_of(A, scale, np.float64)
    at = rank_likelihood.expected_quadratics(z, loadings, RankRows(None, X), RankConfig(2, "gaussian"))
    precision, linear = rank_likelihood.z_system(at, loadings)
    assert_allclose(precision[0], A.second[5])
    assert_allclose(linear[1], 0.0)
    assert_allclose(at.precision[1], 0.0)


def test_known_loadings_are_a_q_without_width():
    state, rows, _, config = problem()
    point = Normal(state.A.mean, np.zeros_like(state.A.covariance))
    wide, narrow = (
        rank_likelihood.moments_of(point, state.scale, float),
        rank_likelihood.moments_of_draw(state.A.mean, state.scale, float),
    )
    for name in ("precision", "linear", "loss"):
        a, b = (
            getattr(rank_likelihood.expected_quadratics(state.z, t, rows, config), name)
            for t in (wide, narrow)
        )
        assert_allclose(a, b)
    assert_allclose(narrow.second, pack(point.second))


def test_extremes_are_those_of_all_lower_and_all_higher_rows():
    score = np.array([[1.0], [5.0], [2.0], [4.0]])
    lower, upper = rank_likelihood.extreme_scores(score, np.array([[0], [0], [1], [2]], np.uint8), 3)
    assert_allclose(lower[0], [5, 5, 5])
    assert_allclose(upper[0], [1, 2, 4])

import numpy as np
from numpy.testing import assert_allclose

from nongauss.rank_factor import rank_likelihood as cells
from nongauss.rank_factor.params import Config, Normal, pack
from nongauss.rank_factor.rank_likelihood import Rows, Scale
from nongauss.rank_factor.updates import level_scale
from rank_factor.small import problem, random_normal, ranked, second_differences, table


def test_variance_of_a_hinge_against_draws():
    rng = np.random.default_rng(0)
    A, z, means = random_normal(rng, 2, 3), random_normal(rng, 2, 3), rng.standard_normal((2, 4, 3))
    rows = ranked(np.array([[1.0, 4.0], [2.0, 3.0]]))
    terms = cells.terms_of(A, level_scale(A, means), np.float64)
    variance = cells._hinge_variances(z, terms, rows.cells)
    n = 100_000
    a = rng.multivariate_normal(A.mean[0], A.covariance[0], n)
    row = rng.multivariate_normal(z.mean[0], z.covariance[0], n)
    u = (a * (row - means[0, rows.cells.upper[0, 0]])).sum(axis=1)
    assert_allclose(variance[1][0, 0], u.var(), rtol=0.02)


def test_the_loadings_system_is_the_log_joint_given_the_weights():
    """Second differences of the level rule's augmented log density in one column's loadings."""
    state, rows, labels, config = problem()
    terms = cells.terms_of(state.A, state.scale, np.float64)
    at = cells.expected_sites(state.z, terms, rows, config)
    point = Normal(state.z.mean, np.zeros_like(state.z.covariance))
    sums = cells.cell_sums(at, point, rows, labels.weight, state.scale.lower.shape[1])
    means = cells.level_means(sums)
    P, b = cells.level_system(sums, means, config.eps)
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
    terms = cells.terms_of(state.A, state.scale, np.float64)

    def total() -> cells.CellSums:
        parts = []
        for part in rows.blocks():
            z = Normal(state.z.mean[part], state.z.covariance[part])
            block = rows.take(part)
            at = cells.expected_sites(z, terms, block, config)
            parts.append(cells.cell_sums(at, z, block, labels.weight[part], 5))
        return cells.CellSums(*map(sum, zip(*parts, strict=True)))

    whole = total()
    monkeypatch.setattr(cells, "BLOCK", 50)
    for a, b in zip(whole, total(), strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_missing_values_and_missing_ranks_drop_out():
    X, _ = table(20)
    X[0, :5] = np.nan
    X[1] = np.nan
    A = random_normal(np.random.default_rng(0), 6, 2)
    scale = Scale(np.zeros((6, 0)), np.zeros((6, 0)), np.ones(6))
    z = Normal(np.zeros((20, 2)), np.tile(np.eye(2), (20, 1, 1)))
    terms = cells.terms_of(A, scale, np.float64)
    at = cells.expected_sites(z, terms, Rows(None, X), Config(2, "gaussian"))
    precision, linear = cells.z_system(at, terms)
    assert_allclose(precision[0], A.second[5])
    assert_allclose(linear[1], 0.0)
    assert_allclose(at.precision[1], 0.0)


def test_known_loadings_are_a_q_without_width():
    state, rows, _, config = problem()
    point = Normal(state.A.mean, np.zeros_like(state.A.covariance))
    wide, narrow = (
        cells.terms_of(point, state.scale, float),
        cells.terms_of_draw(state.A.mean, state.scale, float),
    )
    for name in ("precision", "linear", "loss"):
        a, b = (getattr(cells.expected_sites(state.z, t, rows, config), name) for t in (wide, narrow))
        assert_allclose(a, b)
    assert_allclose(narrow.second, pack(point.second))


def test_extremes_are_those_of_all_lower_and_all_higher_rows():
    score = np.array([[1.0], [5.0], [2.0], [4.0]])
    lower, upper = cells.extreme_scores(score, np.array([[0], [0], [1], [2]], np.uint8), 3)
    assert_allclose(lower[0], [5, 5, 5])
    assert_allclose(upper[0], [1, 2, 4])

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.rank_factor import objective, pairs
from nongauss.rank_factor.config import RankConfig, ShrinkagePrior
from nongauss.rank_factor.data import NONE, RankRows
from nongauss.rank_factor.inference import VariationalBayes, expected_shrinkage
from nongauss.rank_factor.params import Normal, WeightedLabels, first_shrinkage
from nongauss.rank_factor.start import first_state
from nongauss.rank_factor.updates import sweep
from rank_factor.small import problem, random_normal, table


def divergence(q: Normal) -> np.ndarray:
    """KL(q(z_n) || N(0, I)) of each row, as it is printed."""
    return np.array(
        [
            0.5 * (np.trace(V) + m @ m - len(m) - np.linalg.slogdet(V)[1])
            for m, V in zip(q.mean, q.covariance, strict=True)
        ]
    )


def expected_exponent(u: float, variance: float) -> float:
    return u + np.sqrt(u**2 + variance)


def test_a_sweep_by_levels_reports_the_bound_of_cells_and_factors():
    state, rows, labels, config = problem(n_rows=20)
    state, _ = sweep(state, rows, labels, config, VariationalBayes())
    weight = np.linspace(0.5, 2.0, 20)
    loss = np.zeros(20)
    for n, i in np.ndindex(rows.shape):
        a, S, z, V = state.A.mean[i], state.A.covariance[i], state.z.mean[n], state.z.covariance[n]
        for side, sign in ((rows.cells.lower[n, i], 1.0), (rows.cells.upper[n, i], -1.0)):
            if side != NONE:
                D = z - state.scale.means[i, side]
                variance = a @ V @ a + np.trace(S @ V) + D @ S @ D
                loss[n] += expected_exponent(config.eps - sign * a @ D, variance)
    after, info = sweep(state, rows, labels._replace(weight=weight), config, VariationalBayes())
    assert_allclose(info["bound"], -weight @ (loss + divergence(after.z)), rtol=1e-10)


def test_a_sweep_over_values_reports_the_bound_of_cells_and_factors():
    X, _ = table(15)
    X = X / X.std(axis=0)
    X[2, 3] = np.nan
    config, labels = RankConfig(2, "gaussian"), WeightedLabels(np.zeros((15, 0)), np.ones(15))
    state = first_state(np.random.default_rng(0), RankRows(None, X), labels, config)
    loss = 0.0
    for n, i in zip(*np.nonzero(~np.isnan(X)), strict=True):
        second = state.A.second[i] * state.z.second[n]
        square = X[n, i] ** 2 - 2.0 * X[n, i] * state.A.mean[i] @ state.z.mean[n] + second.sum()
        loss += square / state.scale.noise[i] + np.log(state.scale.noise[i])
    after, info = sweep(state, RankRows(None, X), labels, config, VariationalBayes())
    assert_allclose(info["bound"], -loss - divergence(after.z).sum(), rtol=1e-10)


def test_a_sweep_over_pairs_reports_all_terms():
    state, rows, labels, config = problem(None, 12, neighbours="pairwise", eps=5.0, n_outputs=1, cut=False)
    config = config._replace(prior=ShrinkagePrior(0.7, 0.4, slab=2.5, offset_precision=0.3))
    found = pairs.find_pairs(rows.codes)
    after, info = pairs.sweep(state, found, labels, config, VariationalBayes())
    A, z, beta = after.A, after.z, after.experts.beta
    total = -divergence(z).sum()
    for i, low, high in zip(found.column, found.low, found.high, strict=True):
        D, V = z.mean[high] - z.mean[low], z.covariance[high] + z.covariance[low]
        a, S = A.mean[i], A.covariance[i]
        total -= expected_exponent(config.eps - a @ D, a @ V @ a + np.trace(S @ V) + D @ S @ D)
    for n, y in enumerate(labels.y[:, 0]):
        one, b = np.append(z.mean[n], 1.0), beta.mean[0, 0]
        V = np.zeros((3, 3))
        V[:2, :2] = z.covariance[n]
        second = np.outer(one, one) + V
        total -= expected_exponent(1.0 - y * b @ one, np.sum(beta.second[0, 0] * second) - (b @ one) ** 2)
    for q in (A.covariance, beta.covariance[0]):
        total += sum(0.5 * np.linalg.slogdet(2.0 * np.pi * np.e * S)[1] for S in q)
    squares = np.einsum("dkk->dk", A.second)
    total -= 0.5 * config.prior.slab * squares.sum()
    total += objective.shrinkage_bound(state.shrink, squares, config.prior)
    squares = np.einsum("kk->k", beta.second[0, 0])
    total -= 0.5 * config.prior.offset_precision * squares[2]
    total += objective.shrinkage_bound(state.experts.shrink, squares[:2, None], config.prior)
    assert_allclose(info["bound"], total, rtol=1e-10)


@pytest.mark.parametrize("settings", [{}, {"n_outputs": 1, "cut": False}], ids=["factors", "classifier"])
def test_the_bound_of_pairs_never_falls(settings):
    state, rows, labels, config = problem(None, 25, neighbours="pairwise", eps=5.0, **settings)
    found = pairs.find_pairs(rows.codes)
    bounds = []
    for _ in range(60):
        state, info = pairs.sweep(state, found, labels, config, VariationalBayes())
        bounds.append(info["bound"])
    assert np.diff(bounds).min() > -1e-7 * abs(bounds[-1])
    assert bounds[-1] > bounds[0]


def test_the_bound_of_the_shrinkage_never_falls():
    rng = np.random.default_rng(1)
    square = rng.standard_normal((20, 3)) ** 2 * [1.0, 0.1, 1e-4]
    for prior in (ShrinkagePrior(), ShrinkagePrior(1.5, 0.5)):
        now = first_shrinkage((20, 3))
        bounds = []
        for _ in range(30):
            bounds.append(objective.shrinkage_bound(now, square, prior))
            now = expected_shrinkage(now, square, prior)
        assert np.diff(bounds).min() > -1e-9 * abs(bounds[0])


@pytest.mark.parametrize("c", [0.1, 1.0, 4.0])
def test_the_bound_of_the_shrinkage_is_under_the_log_density_of_a_coefficient(c):
    rng, n = np.random.default_rng(0), 400_000
    now, square = first_shrinkage((1, 1)), np.array([[c * c]])
    for _ in range(50):
        now = expected_shrinkage(now, square, ShrinkagePrior())
    phi = rng.gamma(0.5, 1.0, n) / rng.gamma(0.5, 1.0, n)
    xi = rng.gamma(0.5, 1.0, n) * phi / np.maximum(rng.gamma(0.5, 1.0, n), 1e-300)
    with np.errstate(divide="ignore", over="ignore"):
        exact = np.log(np.mean(np.exp(-0.5 * c * c / xi) / np.sqrt(2.0 * np.pi * xi)))
    bound = objective.shrinkage_bound(now, square, ShrinkagePrior())
    assert exact - 1.5 < bound < exact


def test_known_values_have_no_entropy_and_their_density_counts():
    q = random_normal(np.random.default_rng(0), 4, 2)
    known = Normal(q.mean, np.zeros((4, 2, 2)))
    assert objective.normal_entropy(known) == 0.0
    assert_allclose(objective.factor_divergence(known, np.ones(4)), 0.5 * (q.mean**2).sum())

"""The level rule as one density: its draws against a page of code that writes the density down."""

import numpy as np
from numpy.testing import assert_allclose

from nongauss.rank_factor.data import NONE, RankRows, neighbours_of
from nongauss.rank_factor.inference import Gibbs
from nongauss.rank_factor.level_density import joint_level_system
from nongauss.rank_factor.params import Normal
from nongauss.rank_factor.rank_likelihood import level_scores, mean_by_level
from nongauss.rank_factor.updates import sweep
from rank_factor.small import problem, second_differences


def gaps(z: np.ndarray, codes: np.ndarray, A: np.ndarray, eps: float):
    """Row, column, side (0 lower, 1 upper) and u of each hinge, one after the other."""
    for i, code in enumerate(codes.T):
        for n, level in enumerate(code):
            for side, (step, sign) in enumerate(((-1, 1.0), (1, -1.0))):
                there = np.flatnonzero(code == int(level) + step)
                if level != NONE and len(there):
                    yield n, i, side, eps - sign * A[i] @ (z[n] - z[there].mean(axis=0))


def test_the_system_of_all_factors_is_that_of_the_density():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (6, 3)).astype(np.uint8)
    codes[2, 1] = NONE
    codes[:3, 2], codes[3:, 2] = 0, 1
    A, z, eps = rng.standard_normal((3, 2)), rng.standard_normal((6, 2)), 0.7
    g = np.zeros((2, 6, 3))
    for n, i, side, _ in gaps(z, codes, A, eps):
        g[side, n, i] = rng.uniform(0.1, 2.0)

    def log_density(v: np.ndarray) -> float:
        return -sum(0.5 * g[side, n, i] * u * u + u for n, i, side, u in gaps(v.reshape(6, 2), codes, A, eps))

    P, b = joint_level_system(A, codes, (g[0], g[1]), eps)
    expected = second_differences(log_density, z.ravel(), h=0.1)
    assert_allclose(P.reshape(12, 12), expected[0], atol=1e-6)
    assert_allclose(b.ravel(), expected[1], atol=1e-6)


def test_scores_of_levels_are_those_of_the_factors_after_a_drawn_sweep():
    for settings in ({}, {"n_outputs": 1, "cut": False}, {"n_outputs": 1, "cut": False, "n_experts": 2}):
        state, rows, labels, config = problem(4, 30, **settings)
        inference = Gibbs(np.random.default_rng(0))
        for _ in range(3):
            state, _ = sweep(state, rows, labels, config, inference)
        means = mean_by_level(rows.codes, state.z.mean, labels.weight, 4)
        assert_allclose(state.scale.means, means)
        assert_allclose(state.scale.lower, level_scores(Normal(state.A.mean, None), means).lower)
        assert_allclose((state.z.mean**2).mean(), 1.0)


def test_chains_agree_on_what_no_rotation_changes():
    """Of sizes of loadings and scores of rows; by rows one after the other it is 1.1 to 1.3."""
    from nongauss.rank_factor.chains import split_rhat

    seen = []
    for seed in range(4):
        state, rows, labels, config = problem(8, 60)
        inference = Gibbs(np.random.default_rng(seed))
        told = []
        for _ in range(250):
            state, _ = sweep(state, rows, labels, config, inference)
            told.append(np.append((state.A.mean**2).sum(axis=1), state.z.mean[:6] @ state.A.mean[0]))
        seen.append(told[50:])
    r_hat = [split_rhat(part) for part in np.array(seen).transpose(2, 0, 1)]
    assert max(r_hat) < 1.05


def rows_of(codes: np.ndarray) -> RankRows:
    """Training rows with these levels."""
    counts = np.array([len(np.unique(column[column != NONE])) for column in codes.T])
    return RankRows(neighbours_of(codes, counts), None, codes)

"""The normal law of rows with gaps beside closed forms and large samples."""

import numpy as np
import pytest

from nongauss.prob.normal_gaps import covariance_of_gaps, given_known, learn_law, told_by_law

C = np.array([[1.0, 0.7, 0.2], [0.7, 2.0, -0.4], [0.2, -0.4, 0.5]])


def rows(n_rows, seed=0):
    return np.random.default_rng(seed).standard_normal((n_rows, 3)) @ np.linalg.cholesky(C).T + [
        1.0,
        0.0,
        -2.0,
    ]


def test_without_gaps_it_is_the_mean_and_covariance_of_the_rows():
    w = rows(50)
    level, found = covariance_of_gaps(w, np.ones(w.shape, bool), np.ones(50), w.mean(axis=0), 1)
    assert level == pytest.approx(w.mean(axis=0))
    assert found == pytest.approx(np.cov(w.T, bias=True) + 1e-3 * np.eye(3))


def test_a_lost_cell_has_the_conditional_law():
    known = np.array([[True, False, True]])
    left, V = given_known(np.array([[2.0, 0.0, 1.0]]), known, np.zeros(3), C)
    B = np.linalg.solve(C[np.ix_([0, 2], [0, 2])], C[[0, 2], 1])
    assert left[0, 1] == pytest.approx(B @ [2.0, 1.0])
    assert V[0, 1, 1] == pytest.approx(C[1, 1] - B @ C[[0, 2], 1])


def test_draws_of_mean_and_covariance_are_as_unsure_as_rows_without_gaps_leave_them():
    """Of n rows the mean has the variance C / n, a variance c the variance 2 c^2 / n."""
    laws = [learn_law(rows(400, seed), np.ones(400), 5, seed) for seed in range(40)]
    means = np.concatenate([law.means - law.mean for law in laws])
    assert np.cov(means.T) * 400 == pytest.approx(C, abs=0.25)
    second = np.concatenate([law.covariances[:, 1, 1] - law.covariance[1, 1] for law in laws])
    assert second.std() == pytest.approx(C[1, 1] * np.sqrt(2 / 400), rel=0.1)


def test_weight_two_is_the_row_twice():
    w = np.where(np.random.default_rng(1).random((60, 3)) < 0.3, np.nan, rows(60))
    once, twice = learn_law(w, np.full(60, 2.0), 9, 0), learn_law(np.vstack([w, w]), np.ones(120), 9, 0)
    assert once.covariance == pytest.approx(twice.covariance)


def test_draws_of_a_lost_cell_spread_by_its_law_and_by_what_is_not_known_of_the_law():
    w = np.where(np.random.default_rng(1).random((200, 3)) < 0.3, np.nan, rows(200))
    law = learn_law(w, np.ones(200), 20, 0)
    new = np.tile([[3.0, np.nan, np.nan]], (500, 1))
    noise = [np.random.default_rng(s).standard_normal(new.shape) for s in range(20)]
    told = told_by_law(law, new, noise)
    assert told.drawn[:, :, 0] == pytest.approx(3.0)
    assert told.drawn[:, :, 1].std() == pytest.approx(told.sd[0, 1], rel=0.15)
    assert told.drawn[:, :, 1].mean(axis=1).std() > 3 * told.sd[0, 1] / np.sqrt(500)

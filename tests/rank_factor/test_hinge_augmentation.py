import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from nongauss.rank_factor import hinge_augmentation as sites
from nongauss.rank_factor.levels import NONE, Neighbours


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
    at = sites.hinges(score, table, table, near, 0.7)
    assert_allclose(at.lower[0, 0], 0.7 - 1.0 - 0.3)
    assert_allclose(at.upper[0, 0], 0.7 + 0.3 - 1.5)
    g = sites.weights(at, (np.full((1, 4), 0.2),) * 2, 1e-3)
    precision, linear = sites.quadratic(at, g, score)

    def log_density(w: np.ndarray) -> np.ndarray:
        here = sites.hinges(w, table, table, near, 0.7)
        lower = np.where(here.has_lower, -0.5 * g[0] * here.lower**2 - here.lower, 0.0)
        return lower + np.where(here.has_upper, -0.5 * g[1] * here.upper**2 - here.upper, 0.0)

    h = 1e-3
    assert_allclose(linear, (log_density(np.full((1, 4), h)) - log_density(np.full((1, 4), -h))) / (2 * h))
    mid = log_density(np.zeros((1, 4)))
    second = log_density(np.full((1, 4), h)) + log_density(np.full((1, 4), -h)) - 2 * mid
    assert_allclose(precision, -second / h**2, atol=1e-6)


def test_a_cell_without_neighbours_says_nothing():
    score, table, near = cells()
    at = sites.hinges(score, table, table, near, 1.0)
    zero = (np.zeros((1, 4)),) * 2
    precision, linear = sites.quadratic(at, sites.weights(at, zero, 1e-3), score)
    assert precision[0, 3] == linear[0, 3] == 0
    drawn = sites.drawn_weights(np.random.default_rng(0), at)
    assert drawn[0][0, 3] == drawn[1][0, 3] == 0
    assert_allclose(sites.loss(at, zero)[0], 2 * np.maximum([at.lower[0, [0, 2]], at.upper[0, :2]], 0).sum())

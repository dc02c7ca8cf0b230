import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.prob.quadrature import gauss_hermite, gauss_panels, quasi_normal


@pytest.mark.parametrize(("power", "moment"), [(0, 1), (1, 0), (2, 1), (4, 3), (6, 15), (10, 945)])
def test_gauss_hermite_has_the_moments_of_the_normal(power, moment):
    points, weights = gauss_hermite(20)
    assert_allclose(points**power @ weights, moment, atol=1e-9, rtol=1e-10)


@pytest.mark.parametrize("dimension", [1, 3, 10, 20])
def test_quasi_normal_points_have_exact_second_moments(dimension):
    points = quasi_normal(32, dimension)
    assert len(points) >= max(32, 4 * dimension)
    assert_allclose(points.mean(axis=0), 0.0, atol=1e-14)
    assert_allclose(points.T @ points / len(points), np.eye(dimension), atol=1e-12)
    assert_allclose(np.einsum("si,sj,sk->ijk", points, points, points), 0.0, atol=1e-10)


def test_many_quasi_normal_points_are_normal():
    points = quasi_normal(4096, 2)
    assert_allclose((points**4).mean(axis=0), 3.0, rtol=0.02)
    assert_allclose((points[:, 0] < 1).mean(), 0.8413, atol=2e-3)


def test_panels_integrate_smooth_functions():
    points, weights = gauss_panels((0.0, 1.0, 3.0), 8)
    assert_allclose(np.exp(points) @ weights, np.exp(3) - 1, rtol=1e-12)


def test_nobody_can_change_the_shared_arrays():
    with pytest.raises(ValueError, match="read-only"):
        quasi_normal(8)[0] = 1.0

"""Moves of coefficients: their densities by finite differences, and what they leave by quadrature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.rank_factor.config import ShrinkagePrior
from nongauss.rank_factor.machine_moves import (
    hierarchy_density,
    label_likelihood,
    moved_machines,
    scaled_slopes,
    slopes_density,
)
from nongauss.rank_factor.params import Experts, Shrinkage, WeightedLabels, point

K, M = 2, 2


def a_table(n_rows: int = 12, seed: int = 0):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n_rows, K))
    y = np.where(rng.random((n_rows, M)) < 0.5, -1.0, 1.0)
    return z, np.ones((n_rows, 1)), WeightedLabels(y, rng.uniform(0.5, 2.0, n_rows))


def a_shrinkage(seed: int = 1) -> Shrinkage:
    rng = np.random.default_rng(seed)
    return Shrinkage(*(rng.uniform(0.5, 2.0, shape) for shape in ((K, M), (K, M), (M,))), 1.3)


def log_posterior(beta, shrink, r, s, z, labels):
    """Of each machine: the hinges, and the hierarchy as it is written."""
    xi, eta, phi = 1.0 / shrink.precision, shrink.rate, shrink.scale
    terms = -0.5 * beta[:, :-1].T ** 2 / xi - 0.5 * np.log(xi)
    terms += (r - 1.0) * np.log(xi) + r * np.log(eta) - eta * xi
    terms += (s - 1.0) * np.log(eta) + s * np.log(phi) - phi * eta
    own = -0.5 * np.log(phi) - shrink.hyper * phi
    f = z @ beta[:, :-1].T + beta[:, -1]
    loss = (labels.weight[:, None] * np.maximum(1.0 - labels.y * f, 0.0)).sum(axis=0)
    return terms.sum(axis=0) + own - 2.0 * loss


@pytest.mark.parametrize("t", [0.4, -0.8])
@pytest.mark.parametrize(("r", "s"), [(0.5, 0.5), (1.0, 0.3)])
def test_densities_are_the_posterior_times_the_volume(t, r, s):
    z, shares, labels = a_table()
    shrink, beta = a_shrinkage(), np.random.default_rng(2).standard_normal((M, K + 1))
    likelihood = label_likelihood(z, shares, labels, M)
    own = np.full(M, t)
    before = log_posterior(beta, shrink, r, s, z, labels)

    moved = scaled_slopes(beta, own)
    expected = log_posterior(moved, shrink, r, s, z, labels) - before + K * t
    density = slopes_density(beta, shrink, likelihood)
    assert_allclose(density(own) - density(0.0 * own), expected)

    c2 = np.exp(2.0 * t)
    with_it = Shrinkage(shrink.precision / c2, shrink.rate / c2, shrink.scale * c2, shrink.hyper)
    volume = K * t + 2 * K * t - 2 * K * t + 2 * t  # of slopes, of xi, of eta, of phi
    expected = log_posterior(moved, with_it, r, s, z, labels) - before + volume
    density = hierarchy_density(beta, shrink, likelihood)
    assert_allclose(density(own) - density(0.0 * own), expected)


def test_the_moves_leave_the_posterior_of_coefficients_as_it_is():
    """Means of |slope| / (1 + |slope|) and of a positive slope, by quadrature.

    The moves keep xi / phi and xi eta; where these are 1 and phi = c^2 the slope is c u, u ~ N(0, 1), and
    the density of log c is c e^(-c^2).
    """
    z = np.array([[0.3], [1.2], [-0.4], [0.8], [-1.0]])
    y = np.array([[1.0], [1.0], [-1.0], [-1.0], [-1.0]])
    labels, shares = WeightedLabels(y, np.ones(5)), np.ones((5, 1))
    shrink, prior = (
        Shrinkage(*(np.ones(n) for n in ((1, 1), (1, 1), 1)), 1.0),
        ShrinkagePrior(offset_precision=1.0),
    )
    u, log_c, offset = np.linspace(-5.0, 5.0, 100), np.linspace(-9.0, 1.5, 100), np.linspace(-5.0, 5.0, 50)
    c = np.exp(log_c)
    b = u[:, None] * c
    loss = sum(
        np.maximum(1.0 - t * (b[..., None] * x + offset), 0.0) for x, t in zip(z[:, 0], y[:, 0], strict=True)
    )
    p = np.exp(-0.5 * u[:, None] ** 2) * c * np.exp(-(c**2))
    p = p * np.exp(-2.0 * loss - 0.5 * offset**2).sum(axis=2)
    expected = [(p * g).sum() / p.sum() for g in (np.abs(b) / (1 + np.abs(b)), b > 0)]
    rng, experts = np.random.default_rng(0), Experts(point(np.array([[[3.0, 0.5]]])), shrink, None)
    found = []
    for _ in range(500):
        experts = moved_machines(rng, experts, z, shares, labels, prior)
        slope = experts.beta.mean[0, 0, 0]
        found.append((abs(slope) / (1 + abs(slope)), slope > 0))
    assert_allclose(np.mean(found[20:], axis=0), expected, atol=0.03)

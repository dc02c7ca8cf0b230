"""The objective against brute force, finite differences and limits that are known."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.rectangle import objective as o
from nongauss.rectangle.objective import log_density, log_prior
from nongauss.rectangle.params import RectangleParams, SoftBoxes, box_prior
from rectangle.small import boxes, rows, structure


def plain_inside(data, box, slope, s, k):
    """G by its definition: a product of logistic functions, missing cells left out."""
    g = lambda u: 1 / (1 + np.exp(-slope * u))  # noqa: E731
    sides = g(data.X - box.lower[s, k]) * g(box.upper[s, k] - data.X)
    inside = np.nanprod(sides, axis=1)
    codes = data.X_labels.codes[:, 0]
    return inside * np.where(codes < 0, 1.0, g(box.sets[s, k])[codes])


@pytest.mark.parametrize("slope", [1.0, 5.0])
def test_inside_is_a_product_of_logistic_functions(slope):
    data, box = rows(), boxes()
    G = np.exp(o.log_inside(o.slope_powers(data, slope), box))
    for s, k in itertools.product(range(2), range(3)):
        expected = plain_inside(data, box, slope, s, k)
        nothing = np.isnan(data.X).all(axis=1) & (data.X_labels.codes[:, 0] < 0)
        assert_allclose(G[s, k, ~nothing], expected[~nothing], rtol=1e-9)
        assert_allclose(G[s, k, nothing], 1 - o.LEAST)


def test_a_steep_rectangle_is_the_indicator_of_its_box():
    data, box = rows(gaps=False), boxes()
    G = np.exp(o.log_inside(o.slope_powers(data, 20.0), box._replace(sets=np.full_like(box.sets, 9.0))))
    for s, k in itertools.product(range(2), range(3)):
        depth = np.minimum(data.X - box.lower[s, k], box.upper[s, k] - data.X).min(axis=1)
        clear = np.abs(depth) > 0.5
        assert_allclose(G[s, k, clear], depth[clear] > 0, atol=1e-4)


def test_the_e_step_and_the_objective_equal_brute_force():
    """Every assignment of every row, by the definition of the constraint: inside its own, outside the
    others."""
    data, box, look = rows(12), boxes(), structure()
    at, prior = o.slope_powers(data, 3.0), box_prior(3, 2, 3, ())
    log_G, log_p = o.log_inside(at, box), log_density(data, look, "student_t")[0]
    joint = np.empty((2, 3, 12))
    for k in range(3):
        signs = np.array([log_G[:, j] if j == k else np.log1p(-np.exp(log_G[:, j])) for j in range(3)])
        joint[:, k] = np.exp(signs.sum(axis=0) + log_p[:, k]) / 3
    assert_allclose(o.posterior(log_G, log_p), joint / joint.sum(axis=1, keepdims=True), rtol=1e-7)
    total = np.log(joint.sum(axis=1)) @ data.weight
    problem = o.EMProblem(data, at, prior, "student_t")
    total += o.log_box_prior(box, prior)[0].sum(axis=1) + log_prior(data, look, "student_t")
    assert_allclose(o.objective(problem, RectangleParams(box, look)), total, rtol=1e-9)


def test_the_gradient_equals_finite_differences():
    data, prior = rows(), box_prior(3, 2, 3, ())
    at, flat = o.slope_powers(data, 4.0), boxes().flat()
    share = np.random.default_rng(0).dirichlet(np.ones(3), (2, len(data))).transpose(0, 2, 1)
    value, gradient = o.expected(at, SoftBoxes.of(flat, 2), share, prior)
    assert value.shape == (2, 3)
    numeric = np.empty_like(flat)
    for place in np.ndindex(flat.shape):
        step = np.zeros_like(flat)
        step[place] = 1e-6
        up, down = (o.expected(at, SoftBoxes.of(flat + sign * step, 2), share, prior)[0] for sign in (1, -1))
        numeric[place] = (up - down).sum() / 2e-6
    assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-5)


def test_blocks_of_rows_change_nothing(monkeypatch):
    data, box, prior = rows(300), boxes(), box_prior(3, 2, 3, ())
    at = o.slope_powers(data, 5.0)
    share = np.full((2, 3, 300), 1 / 3)
    whole = o.expected(at, box, share, prior)
    monkeypatch.setattr(o, "_BLOCK", 1)
    for one, other in zip(whole, o.expected(at, box, share, prior), strict=True):
        assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_gross_values_overflow_nowhere():
    data = rows(gaps=False)
    data.X[0] = 1e9
    wide = SoftBoxes(np.full((1, 2, 2), -16.0), np.full((1, 2, 2), 16.0), np.zeros((1, 2, 3)))
    at = o.slope_powers(data, 20.0)
    value, gradient = o.expected(at, wide, np.full((1, 2, 40), 0.5), box_prior(2, 2, 3, ()))
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize(("P", "kind"), [(3, "full"), (o.ALL_AT_ONCE + 6, "full"), (5, "diagonal")])
def test_the_root_of_a_covariance_is_the_inverse_of_its_factor(P, kind):
    A = np.random.default_rng(0).normal(size=(2, 3, P, 2 * P))
    scatter = A @ np.swapaxes(A, -1, -2) / P
    scatter = scatter * np.eye(P) if kind == "diagonal" else scatter
    root, log_det = o._root(scatter, kind)
    assert_allclose(
        root @ scatter @ np.swapaxes(root, -1, -2), np.broadcast_to(np.eye(P), scatter.shape), atol=1e-9
    )
    assert_allclose(root, np.tril(root), atol=1e-12)
    assert_allclose(log_det, np.linalg.slogdet(scatter)[1])

"""Mean field against plain coordinate ascent, exact expectations and the paper's matrices (corrected)."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import ndtr

from nongauss.core.device import double_precision
from nongauss.tggm import mean_field as mf
from tggm.small import (
    NUMBER,
    closed_form_log_likelihood,
    deep_member,
    finite_differences,
    for_labels,
    half_normal,
    mean_field_bound,
    member,
    row,
)

LABEL = mf.posterior_phase(3)


@pytest.fixture(autouse=True)
def _float64():
    with double_precision():
        yield


def matrices(phase, params, x, y):
    """P (K, K) and gamma (K,) of the quadratic energy, from its values at sums of one or two unit vectors."""
    n_units = sum(len(layer.b) for layer in params.hidden) + (phase.seen == "label") * len(params.b1)
    eye = np.eye(n_units)
    points = np.concatenate([0.0 * eye[:1], eye, *(eye + unit for unit in eye)])
    zero, one, two = np.split(np.asarray(energies(phase, params, points, x, y)), [1, 1 + n_units])
    P = two.reshape(eye.shape) - one[:, None] - one[None, :] + zero
    return P, 0.5 * np.diag(P) - (one - zero)


def coordinate_ascent(phase, params, x, y, n_cycles=200):
    """Plain cycles of eq. 20 to 22 (32, 42) in NumPy: the factors after each cycle."""
    P, gamma = matrices(phase, params, x, y)
    cut = np.asarray(phase.truncated(params, y))
    sd = 1.0 / np.sqrt(np.diag(P))
    location, means, variances = np.zeros(len(gamma)), np.ones(len(gamma)), sd**2
    history = []
    for _ in range(n_cycles):
        for k in range(len(gamma)):
            location[k] = (gamma[k] - P[k] @ means + P[k, k] * means[k]) / P[k, k]
            means[k], variances[k] = half_normal(location[k], sd[k]) if cut[k] else (location[k], sd[k] ** 2)
        history.append(np.stack([location, sd, means, variances]))
    return history


@partial(jax.jit, static_argnames="phase")
def bounds_of(phase, params, history, x, y):
    """The bound of each of the factors (T, 4, K)."""
    return jax.vmap(lambda one: mf.bound(phase, params, mf.FactorisedPosterior(*one), x, y))(history)


@partial(jax.jit, static_argnames="phase")
def settled(phase, params, first, x, y):
    """What Newton's method arrives at, and how far its locations are from the best ones, in sds."""
    q = mf.solve(phase, params, first, x, y, 60)
    gap = mf.best_locations(phase, params, q.mean, x, y) - q.location
    return q, gap * q.variance / q.sd**3


solve = jax.jit(mf.solve, static_argnames="phase")
bound = jax.jit(mf.bound, static_argnames="phase")
phases = jax.jit(mf.phases, static_argnums=(3, 4))
jitted_row_bound = jax.jit(mf.row_bound, static_argnames=("n_classes", "n_sweeps"))


# units, outputs, size of weights (noise sd 0.5): some are coupled far more strongly than by their prior
CASES = [
    (NUMBER, member, 5, 3, 1.0),
    pytest.param(NUMBER, member, 20, 1, 1.0, marks=pytest.mark.gate),
    pytest.param(NUMBER, member, 5, 1, 12.0, marks=pytest.mark.gate),
    pytest.param(NUMBER, deep_member, (3, 4, 2), 3, 1.5, marks=pytest.mark.gate),
    pytest.param(mf.PRIOR, deep_member, (3, 4, 2), 3, 1.5, marks=pytest.mark.gate),
    pytest.param(LABEL, member, 5, 1, 2.0, marks=pytest.mark.gate),
    pytest.param(LABEL, deep_member, (4, 3), 3, 1.0, marks=pytest.mark.gate),
]


@pytest.mark.parametrize(("phase", "make", "units", "n_outputs", "strength"), CASES)
def test_newton_reaches_the_limit_of_coordinate_ascent(phase, make, units, n_outputs, strength):
    for seed in range(2):
        params = make(seed, units, n_outputs, strength=strength)
        x, y = row(seed, params)
        if phase.seen == "label":
            params, y = for_labels(params), np.array([float(seed)])
        history = coordinate_ascent(phase, params, x, y)
        expected = mf.FactorisedPosterior(*history[-1])
        got, gap = settled(phase, params, np.zeros_like(expected.location), x, y)
        *bounds, reached = np.asarray(bounds_of(phase, params, np.array([*history, np.array(got)]), x, y))
        assert np.diff(bounds).min() > -1e-9 * abs(bounds[-1])
        assert reached > bounds[-1] - 1e-6
        assert (np.abs(gap) <= 1.1 * mf.SETTLED).all()
        if bounds[-1] - bounds[-50] < 1e-9:  # plain ascent has arrived as well
            assert_allclose(reached, bounds[-1], atol=1e-6)
            assert_allclose(got.mean, expected.mean, atol=2e-3 * got.sd.max())


def test_a_sweep_never_lowers_the_bound_and_few_are_enough():
    params = member(1, 8, 2, strength=4.0)
    x, y = row(1, params)
    first = mf.first_locations(NUMBER, params, x)
    found = [mean_field_bound(params, solve(NUMBER, params, first, x, y, n), x, y) for n in range(25)]
    bounds = np.array(found, float)
    assert np.diff(bounds).min() > -1e-8
    assert bounds[-1] - bounds[12] < 0.1
    assert bounds[-1] - bounds[0] > 10.0


@pytest.mark.parametrize("own", [0, 2])
def test_blocks_of_the_deep_posterior_of_a_label(own):
    """Eq. 44 and 45 with the square T_c, and unit noise where the paper has s_0^2."""
    params = for_labels(deep_member(0, (3, 2), 4))
    x, y = row(0, params)[0], np.array([float(own)])
    T = -np.eye(4)
    T[:, own] = 1.0
    assert_allclose(T @ T, np.eye(4))  # an involution: s = T z and z = T s
    a, b = np.exp(-2 * params.log_sd0), np.exp(-2 * params.deeper[0].log_sd)
    W, bias, W1, b1 = params.deeper[0].W, params.deeper[0].b, params.W1, params.b1
    expected = np.block(
        [
            [np.diag(a) + W.T @ np.diag(b) @ W, -W.T @ np.diag(b), np.zeros((3, 4))],
            [-np.diag(b) @ W, np.diag(b) + W1.T @ W1, -W1.T @ T],
            [np.zeros((4, 3)), -T.T @ W1, T.T @ T],
        ]
    )
    c = params.W0 @ x + params.b0
    P, gamma = matrices(LABEL, params, x, y)
    assert_allclose(P, expected, atol=1e-12)
    assert_allclose(
        gamma, np.concatenate([a * c - W.T @ (b * bias), b * bias - W1.T @ b1, T.T @ b1]), atol=1e-12
    )
    assert_allclose(sum(LABEL.diagonal(params, y)), np.diag(expected), rtol=1e-12)
    assert np.flatnonzero(~np.asarray(LABEL.truncated(params, y))).tolist() == [5 + own]


def grid_of(params, n_points=120):
    """Gauss-Legendre points (R, 2) and weights (R,) over the two units of a model with layers (1, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(n_points)
    top = np.array([9.0, 14.0])
    one = [0.5 * t * (nodes + 1.0) for t in top]
    points = np.stack(np.meshgrid(*one, indexing="ij"), axis=-1).reshape(-1, 2)
    return points, np.outer(0.5 * top[0] * weights, 0.5 * top[1] * weights).ravel()


@partial(jax.jit, static_argnames="phase")
def energies(phase, params, points, x, y):
    return jax.vmap(lambda v: phase.energy(params, v, x, y))(points)


def exact_deep(params, x, y):
    """log p(y|x) and the two exact distributions over the grid, of the model that the paper's eq. 39 is."""
    points, weights = grid_of(params)
    logs, shares = [], []
    for phase in (NUMBER, mf.PRIOR):
        mass = weights * np.exp(-np.asarray(energies(phase, params, points, x, y)))
        logs.append(np.log(mass.sum()) + float(phase.log_normaliser(params)))
        shares.append(mass / mass.sum())
    return logs[0] - logs[1], points, shares


@pytest.mark.gate
def test_deep_gradient_with_exact_expectations():
    """Eq. 33 to 38: finite differences of the exact log likelihood are two expectations of energy slopes."""
    params = deep_member(3, (1, 1), 1)
    x, y = row(3, params)
    _, points, shares = exact_deep(params, x, y)

    def surrogate(changed):
        values = [
            phase.log_normaliser(changed) - share @ energies(phase, changed, points, x, y)
            for phase, share in zip((NUMBER, mf.PRIOR), shares, strict=True)
        ]
        return values[0] - values[1]

    gradient = jax.jit(jax.grad(surrogate))(params)
    slopes = finite_differences(lambda p: exact_deep(p, x, y)[0], params)
    for got, slope in zip(jax.tree.leaves(gradient), jax.tree.leaves(slopes), strict=True):
        assert_allclose(got, slope, atol=2e-8, rtol=1e-7)
    prior_phase = jax.jit(jax.grad(lambda p: shares[1] @ energies(mf.PRIOR, p, points, x, y)))(params)
    assert abs(float(prior_phase.deeper[0].W[0, 0])) > 1e-2  # no small matter: it may not be dropped


@pytest.mark.gate
def test_both_phases_of_depth_are_bounds():
    params = deep_member(3, (1, 1), 1)
    x, y = row(3, params)
    q, prior = phases(params, x, y, 0, 60)
    points, weights = grid_of(params)
    bounds = []
    for phase, found in ((NUMBER, q), (mf.PRIOR, prior)):
        exact = np.log(weights @ np.exp(-np.asarray(energies(phase, params, points, x, y))))
        bounds.append(float(bound(phase, params, found, x, y)))
        assert 1e-4 < exact + float(phase.log_normaliser(params)) - bounds[-1] < 0.5
    assert_allclose(jitted_row_bound(params, x, y, 0, 60), bounds[0] - bounds[1], rtol=1e-10)


@pytest.mark.gate
def test_a_layer_that_hears_nothing_is_a_model_of_one_layer():
    params = deep_member(1, (3, 2), 2)
    layer = params.deeper[0]._replace(W=np.zeros((2, 3)))
    x, y = row(1, params)
    alone = params._replace(W0=np.zeros((2, 2)), b0=layer.b, log_sd0=layer.log_sd, deeper=())
    deep = params._replace(deeper=(layer,))
    bounds = [jitted_row_bound(model, x, y, 0, 60) for model in (alone, deep)]
    assert_allclose(bounds[1], bounds[0], rtol=1e-9)


@pytest.mark.gate
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_bound_of_a_label_is_below_its_probability(n_classes):
    """One unit: P(class) is an integral over it of a probit, by quadrature."""
    params = for_labels(member(2, 1, 1 if n_classes == 2 else 3, strength=0.5))
    x = row(2, params)[0]
    nodes, weights = np.polynomial.legendre.leggauss(200)
    h = 5.0 * (nodes + 1.0)
    c, sd = (params.W0 @ x + params.b0)[0], np.exp(params.log_sd0)[0]
    mass = 5.0 * weights * stats.norm.pdf(h, c, sd) / ndtr(c / sd)
    z = h[:, None] * params.W1[:, 0] + params.b1
    shared = 0.0 if n_classes == 2 else 0.5 * np.log(3.0)  # what factorising the scores alone costs at most
    total = 0.0
    for own in range(n_classes):
        exact = np.log(mass @ exact_probit(z, own))
        got = float(jitted_row_bound(params, x, np.array([float(own)]), n_classes, 60))
        assert exact - shared - 0.25 < got < exact + 1e-9
        total += np.exp(exact)
    assert_allclose(total, 1.0, rtol=1e-8)


def exact_probit(z, own):
    """P(class) at unit noise for outputs z (R, P)."""
    if z.shape[1] == 1:
        return ndtr(z[:, 0] * (2 * own - 1))
    t = np.linspace(-9, 9, 400)
    others = [k for k in range(z.shape[1]) if k != own]
    inside = np.prod([ndtr(t + (z[:, own] - z[:, k])[:, None]) for k in others], axis=0)
    return inside @ stats.norm.pdf(t) * (t[1] - t[0])


@pytest.mark.gate
def test_mean_field_is_the_exact_em_gradient_for_one_unit():
    params = member(12, 1, 2)
    x, y = row(12, params)
    gradient = jax.jit(jax.grad(mf.row_bound), static_argnums=(3, 4))(params, x, y, 0, 60)
    slopes = finite_differences(lambda p: closed_form_log_likelihood(p, x, y), params)
    for got, slope in zip(jax.tree.leaves(gradient), jax.tree.leaves(slopes), strict=True):
        assert_allclose(got, slope, rtol=1e-5, atol=1e-8)

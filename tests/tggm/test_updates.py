"""The gradients against the paper's formulas (corrected), one step, the judgement of an epoch."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.core.device import double_precision, replace
from nongauss.optimise.minibatch import PaddedRows
from nongauss.tables.sparse import SparseRows
from nongauss.tggm import updates
from nongauss.tggm.config import TrainingRecipe
from nongauss.tggm.data import filled
from nongauss.tggm.params import WEIGHT_PRECISION, NetworkParams, first_state, unravelled
from tggm.small import (
    CONFIG,
    ensemble_of,
    finite_differences,
    half_normal,
    mean_field,
    member,
    row,
)

MEAN_FIELD = replace(CONFIG, posterior="mean_field")
BP = replace(CONFIG, method="bp")
CONFIGS = [
    pytest.param(MEAN_FIELD, id="mean_field", marks=pytest.mark.gate),
    pytest.param(BP, id="bp"),
    pytest.param(CONFIG, id="moments"),
]
RECIPE = TrainingRecipe(2, None, 0.1, None, n_iter_no_change=2, tol=0.0, validation_fraction=0.0)


@pytest.fixture(autouse=True)
def _float64():
    with double_precision():
        yield


def em_gradient(params, q, x, y):
    """dQ/d(parameters) of section 3 for one row, signs and factors corrected."""
    s0, s1 = np.exp(2.0 * params.log_sd0), np.exp(2.0 * params.log_sd1)
    prior, _ = half_normal(params.W0 @ x + params.b0, np.sqrt(s0))
    mean, second = np.asarray(q.mean), np.outer(q.mean, q.mean) + np.diag(q.variance)
    pull = (mean - prior) / s0
    return {
        "W0": np.outer(pull, x),
        "b0": pull,
        "W1": (np.outer(y - params.b1, mean) - params.W1 @ second) / s1[:, None],
        "b1": (y - params.W1 @ mean - params.b1) / s1,
    }


def bp_gradient(params, x, y):
    """Minus the gradient of the squared error of section 3.2 (the sign that the paper's eq. 17, 18 need)."""
    s0, s1 = np.exp(2.0 * params.log_sd0), np.exp(2.0 * params.log_sd1)
    G, V = half_normal(params.W0 @ x + params.b0, np.sqrt(s0))
    error = params.W1 @ G + params.b1 - y
    pull = -(params.W1.T @ (error / s1)) * V / s0
    return {"W0": np.outer(pull, x), "b0": pull, "W1": -np.outer(error / s1, G), "b1": -error / s1}


@partial(jax.jit, static_argnames="config")
def value_and_gradient(params, config, x, y):
    return jax.value_and_grad(partial(updates.row_objective, config=config, x=x, y=y))(params)


@pytest.mark.parametrize("n_outputs", [pytest.param(1, marks=pytest.mark.gate), 3])
@pytest.mark.parametrize("config", CONFIGS)
def test_gradient_of_the_fit(config, n_outputs):
    params = member(11, 4, n_outputs)
    x, y = row(11, params)
    _, gradient = value_and_gradient(params, config, x, y)
    slopes = finite_differences(lambda p: value_and_gradient(p, config, x, y)[0], params)
    for got, slope in zip(jax.tree.leaves(gradient), jax.tree.leaves(slopes), strict=True):
        assert_allclose(got, slope, atol=2e-5, rtol=1e-5)
    if config is CONFIG:
        return
    q = mean_field(params, x, y, CONFIG.n_sweeps)
    printed = bp_gradient(params, x, y) if config is BP else em_gradient(params, q, x, y)
    for name, expected in printed.items():
        assert_allclose(getattr(gradient, name), expected, rtol=1e-8, atol=1e-10)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(7, 2)), rng.normal(size=(7, 1)), np.array([0, 1, -1, -1, 0, 1, -1], np.int32)
    return PaddedRows(data, np.array([1.0, 2.0, 1.0, 0.5, 3.0, 1.0, 0.0]), np.int32(7))


@pytest.mark.parametrize("config", CONFIGS)
def test_local_sums_the_rows_that_a_member_may_see(config, rows):
    members = [member(seed, 4) for seed in (0, 1)]
    sums = jax.jit(updates.GradientSums(config))(jax.random.key(0), ensemble_of(*members), rows)
    totals = []
    for number, params in enumerate(members):
        parts = [
            (w, value_and_gradient(params, config, x, y))
            for x, y, f, w in zip(*rows.data, rows.weight, strict=True)
            if f != number
        ]
        totals.append(sum(w * float(bound) for w, (bound, _) in parts))
        for name in NetworkParams._fields[:6]:
            expected = sum(w * np.asarray(getattr(slope, name)) for w, (_, slope) in parts)
            assert_allclose(getattr(sums["gradient"], name)[number], expected, rtol=1e-9, atol=1e-12)
    assert_allclose(float(sums["bound"]), np.mean(totals), rtol=1e-12)


def made_state(params, **changes):
    total = np.full(params.b0.shape[0], 10.0)
    return replace(first_state(params, total, 100.0, RECIPE, CONFIG), **changes)


def test_update_climbs_and_leaves_fixed_variances():
    params = ensemble_of(member(0, 3), member(1, 3))
    config = replace(CONFIG, hidden_variance=0.3)
    gradient = jax.tree.map(np.ones_like, params)
    state, info = jax.jit(updates.GradientAscent(config))(
        made_state(params), {"gradient": gradient}, np.float64(2.0)
    )
    assert info == {}
    assert int(state.step) == 1
    assert_allclose(state.params.log_sd0, 0.5 * np.log(0.3), rtol=1e-12)
    for name in ("W0", "b0", "W1", "b1", "log_sd1"):  # the first step of Adam has the length of the rate
        assert_allclose(getattr(state.params, name) - getattr(params, name), 0.1, rtol=1e-3)


def test_update_shortens_a_wild_gradient_and_shrinks_weights():
    params = ensemble_of(member(0, 3), member(1, 3))
    wild = jax.tree.map(lambda leaf: np.zeros_like(leaf), params)
    wild.b1[0] = 1e9
    state, _ = jax.jit(updates.GradientAscent(CONFIG))(
        made_state(params), {"gradient": wild}, np.float64(1.0)
    )
    mean = unravelled(state.optimiser.mu, params)
    first, second = np.asarray(mean.b1[:, 0])
    assert_allclose(first, 0.1 * updates.LARGEST_GRADIENT, rtol=1e-6)
    assert second == 0.0
    prior = -WEIGHT_PRECISION / 10.0 * params.W0[1]
    assert_allclose(mean.W0[1], 0.1 * prior, rtol=1e-6)


def test_decay_is_half_a_cosine():
    shares = np.array([0.0, 0.5, 1.0, 2.0])
    assert_allclose(jax.vmap(updates.decay)(shares), [1.0, 0.505, 0.01, 0.01], rtol=1e-12)


judge = jax.jit(updates.HeldOutJudge(CONFIG))


def held_for_two():
    """Rows for each of two members, enough to judge a member by its own, some of them padding."""
    rng, n = np.random.default_rng(0), updates.FEWEST_TO_JUDGE + 2
    weight = np.ones((2, n))
    weight[0, -1] = weight[1, -2:] = 0.0
    weight[1, 0] = 2.0
    held = rng.normal(size=(2, n, 2)), rng.normal(size=(2, n, 1)), weight
    return PaddedRows(None, np.ones(1), np.int32(1), held)


def test_judge_keeps_each_members_best_and_stops_when_all_are_idle():
    good, bad = member(0, 4), member(0, 4)._replace(b1=np.full(1, 9.0))
    rows = held_for_two()
    state, info = judge(jax.random.key(0), made_state(ensemble_of(good, bad)), rows)
    score = np.asarray(state.best_score)
    expected = [
        np.average(
            [float(value_and_gradient(p, CONFIG, x, y)[0]) for x, y in zip(X, Y, strict=True)], weights=w
        )
        for p, X, Y, w in zip((good, bad), *rows.held_out, strict=True)
    ]
    assert_allclose(score, expected, rtol=1e-9)
    assert_allclose(info["held_out"], np.mean(expected), rtol=1e-9)
    stops = [bool(info["stop"])]
    state, info = judge(jax.random.key(0), replace(state, params=ensemble_of(bad, good)), rows)
    assert_allclose(state.best.b1[:, 0], [good.b1[0], good.b1[0]])  # the first keeps, the second improves
    assert state.best_epoch.tolist() == [1, 2]
    for _ in range(2):
        stops.append(bool(info["stop"]))
        state, info = judge(jax.random.key(0), state, rows)
    stops.append(bool(info["stop"]))
    assert stops == [False, False, False, True]  # the patience is two epochs after the last improvement


def test_judge_without_held_out_rows_takes_the_last_state():
    params = ensemble_of(member(0, 3))
    before = made_state(ensemble_of(member(1, 3)))
    state, info = updates.HeldOutJudge(CONFIG)(
        jax.random.key(0), replace(before, params=params), PaddedRows(None, None, None)
    )
    assert info == {}
    assert state.best is params
    assert state.epoch == 1


def test_a_score_that_is_no_number_is_never_the_best():
    broken = member(0, 4)._replace(b1=np.full(1, np.nan))
    state, _ = judge(jax.random.key(0), made_state(ensemble_of(broken, member(0, 4))), held_for_two())
    assert state.best_epoch.tolist() == [0, 1]


@pytest.mark.gate
def test_sparse_held_out_rows_are_never_dense_all_at_once():
    rng = np.random.default_rng(0)
    params = ensemble_of(*(member(seed, 3, n_inputs=2000) for seed in (0, 1)))
    X = SparseRows(rng.integers(0, 2000, (2, 320, 4)), rng.normal(size=(2, 320, 4)))
    rows = rng.normal(size=(2, 320, 1)), rng.uniform(size=(2, 320))
    dense = np.stack([filled(SparseRows(*part), 2000) for part in zip(*X, strict=True)])
    score = jax.jit(updates.held_out_score, static_argnums=1)
    made = score.lower(params, CONFIG, X, *rows).compile()
    assert_allclose(made(params, X, *rows), score(params, CONFIG, dense, *rows), rtol=1e-12)
    assert made.memory_analysis().temp_size_in_bytes < dense.nbytes / 4

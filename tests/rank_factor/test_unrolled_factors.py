import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.core.device import double_precision
from nongauss.optimise.course import Run, Status
from nongauss.rank_factor import predict, unrolled_factors
from nongauss.rank_factor.config import RankConfig, RankRecipe
from nongauss.rank_factor.data import NONE, RankRows
from rank_factor.small import problem


def test_the_steps_settle_on_the_mode_of_the_row():
    """More steps lead where the gradient of the row's own loss vanishes, which is written out here."""
    state, rows, _, config = problem(n_outputs=1)
    draw = unrolled_factors.draw_of(unrolled_factors.first_params(state), config)._replace(steps=300)
    z = predict.factors(draw, rows, config, np.float64).mean
    score, slope = z @ draw.A.T, np.zeros(rows.shape)
    for side, sign in ((rows.cells.lower, -1.0), (rows.cells.upper, 1.0)):
        has = side != NONE
        near = draw.lower[np.arange(6), np.where(has, side, 0)]
        u = sign * (score - near) + 1.0  # loss sqrt(u^2 + SOFT^2) + u
        slope += has * sign * (u / np.sqrt(u**2 + predict.SOFT**2) + 1.0)
    assert_allclose(slope @ draw.A + z, 0.0, atol=1e-6)


@pytest.mark.gate
def test_the_derivative_of_a_solution_is_that_of_the_inverse():
    with double_precision():
        rng = np.random.default_rng(0)
        packed = jnp.asarray(np.array([[2.0, 0.3, 1.0]]))
        linear = jnp.asarray(rng.standard_normal((1, 2)))

        def plain(packed: jax.Array, linear: jax.Array) -> jax.Array:
            P = jnp.array([[packed[0, 0], packed[0, 1]], [packed[0, 1], packed[0, 2]]]) + jnp.eye(2)
            return (jnp.linalg.solve(P, linear[0]) ** 2).sum()

        def own(packed: jax.Array, linear: jax.Array) -> jax.Array:
            return (unrolled_factors._solve(packed, linear) ** 2).sum()

        ours, theirs = (jax.jit(jax.grad(f, argnums=(0, 1)))(packed, linear) for f in (own, plain))
        for a, b in zip(ours, theirs, strict=True):
            assert_allclose(a, b, rtol=1e-8)


@pytest.mark.gate
def test_predictions_on_the_host_are_those_of_training():
    state, rows, _, config = problem(n_outputs=1)
    params = unrolled_factors.first_params(state)
    draw = unrolled_factors.draw_of(params, config)
    z = predict.factors(draw, rows, config, np.float64)

    @jax.jit
    def compiled(params, lower, upper):
        near = unrolled_factors.rank_cells(params.table, lower, upper)
        z = unrolled_factors.factors(params.A, near, 1.0)
        return z, unrolled_factors.decisions(params, z)

    theirs = compiled(params, *rows.cells)
    assert_allclose(z.mean, theirs[0], atol=1e-5)
    assert_allclose(predict.decisions(draw, z), theirs[1], atol=2e-5)


def test_values_with_gaps_have_factors_too():
    state, *_ = problem()
    values = np.random.default_rng(0).standard_normal((5, 6))
    values[0] = np.nan
    draw = unrolled_factors.draw_of(unrolled_factors.first_params(state), RankConfig(2, "gaussian"))
    z = predict.factors(draw, RankRows(None, values), RankConfig(2, "gaussian"), np.float64)
    assert_allclose(z.mean[0], 0.0)
    assert np.isfinite(z.mean).all()


@pytest.mark.gate
def test_training_lowers_its_loss_and_completes_its_schedule():
    state, rows, labels, config = problem(n_outputs=1, n_experts=2)
    recipe = RankRecipe("predictive", 60, 0.0, 0, 1, 1, 0.01)
    result, draw = unrolled_factors.train(state, rows, labels, config, recipe, Run(), recipe.max_iter)
    bounds = [row["bound"] for row in result.trace]
    assert result.status is Status.COMPLETED
    assert np.mean(bounds[-5:]) > bounds[0]
    f = predict.decisions(draw, predict.factors(draw, rows, config, np.float64))
    assert (np.sign(f) == labels.y).mean() > 0.8

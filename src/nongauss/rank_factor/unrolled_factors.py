r"""Training for prediction: a row's factors are a few re-weighted steps from its cells alone.

The label's hinge is differentiated through those steps, so that training factors are what a new row will
have: a label cannot be absorbed by the factors of its own row. Beyond the paper; see NOTATION.md.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from nongauss.core.device import key_from_seed, record, replace
from nongauss.core.records import value
from nongauss.optimise import loop
from nongauss.optimise.compiled import compiled
from nongauss.optimise.course import FitResult, Rule, Run
from nongauss.optimise.minibatch import Epoch, PaddedRows, pad_rows
from nongauss.rank_factor.config import RankConfig, RankRecipe
from nongauss.rank_factor.data import RankRows
from nongauss.rank_factor.params import Gate, RankState, WeightedLabels
from nongauss.rank_factor.predict import SOFT, PosteriorDraw

N_FREE, N_STEPS = 2, 2
"""Re-weighted steps from z = 0; the label is differentiated through the second kind only."""
RANK_WEIGHT, LABEL_WEIGHT = 1.0, 3.0
"""Weight of a cell's mean loss, and of a label's."""
PULL = 1e-3
"""Weight decay of loadings and coefficients."""
MEMORY = 0.9
"""Decay of the moving average of the levels' mean scores."""


class UnrolledParams(NamedTuple):
    """Loadings A (D, K), mean score of each level `table` (D, Q), noise precision (D,); experts and gate.

    beta (T, C, K + 1); centre (T, K), log_precision (T,), log_share (T,). `table` and `noise` do not follow a
    gradient: the first is a moving average, the second stays.
    """

    A: Any
    table: Any
    noise: Any
    beta: Any
    centre: Any
    log_precision: Any
    log_share: Any


class NeighbourCells(NamedTuple):
    """For cells (B, D): scores of the lower and the upper neighbour, and 1 where there is one, else 0."""

    lower: jax.Array
    upper: jax.Array
    has_lower: jax.Array
    has_upper: jax.Array


def rank_cells(table: jax.Array, lower: jax.Array, upper: jax.Array) -> NeighbourCells:
    """The neighbours' mean scores, from their levels; 255 is none."""
    n_columns, n_levels = table.shape
    base = (jnp.arange(n_columns) * n_levels)[None, :]
    flat = table.reshape(-1)
    has = lower < n_levels, upper < n_levels
    at = [
        flat[base + jnp.where(ok, index, 0).astype(jnp.int32)]
        for ok, index in zip(has, (lower, upper), strict=True)
    ]
    return NeighbourCells(at[0], at[1], has[0].astype(flat.dtype), has[1].astype(flat.dtype))


def factors(A: jax.Array, cells: NeighbourCells, eps: float) -> jax.Array:
    """Factors (B, K) from ranks alone: a few re-weighted least-squares steps from zero."""
    squares = _squares(A)
    step = partial(_rank_step, cells=cells, eps=eps)
    held = jax.lax.stop_gradient((A, squares))
    start = jnp.zeros((cells.lower.shape[0], A.shape[1]), A.dtype)
    z = jax.lax.fori_loop(0, N_FREE, lambda _, z: step(*held, z), start)
    for _ in range(N_STEPS):
        z = step(A, squares, z)
    found: jax.Array = z
    return found


def _rank_step(
    A: jax.Array, squares: jax.Array, z: jax.Array, cells: NeighbourCells, eps: float
) -> jax.Array:
    """One re-weighted least-squares step of each row; in NumPy it is `predict._unrolled`."""
    score = z @ A.T
    lower = cells.lower + eps - score
    upper = score + eps - cells.upper
    g_lower = cells.has_lower * jax.lax.rsqrt(lower**2 + SOFT**2)
    g_upper = cells.has_upper * jax.lax.rsqrt(upper**2 + SOFT**2)
    linear = g_lower * (cells.lower + eps) + g_upper * (cells.upper - eps)
    linear = linear + cells.has_lower - cells.has_upper
    return _solve((g_lower + g_upper) @ squares, linear @ A)


def _squares(A: jax.Array) -> jax.Array:
    """a a' of each column, upper triangle: (D, J)."""
    rows, columns = np.triu_indices(A.shape[1])
    return A[:, rows] * A[:, columns]


def _solve(packed: jax.Array, linear: jax.Array) -> jax.Array:
    """Solution of (I + P) z = linear, P (B, J) packed: one factorisation serves the derivative too."""
    K = linear.shape[1]
    rows, columns = np.triu_indices(K)
    place = np.zeros((K, K), np.int32)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    precision = packed[:, place.ravel()].reshape(-1, K, K) + jnp.eye(K)[None]
    factor = jnp.linalg.cholesky(jax.lax.stop_gradient(precision))

    def solve(_: Any, b: jax.Array) -> jax.Array:
        """L'^-1 L^-1 b with the factor L of the precision, which is not differentiated."""
        half = jax.lax.linalg.triangular_solve(factor, b[..., None], left_side=True, lower=True)
        return jax.lax.linalg.triangular_solve(factor, half, left_side=True, lower=True, transpose_a=True)[
            ..., 0
        ]

    def product(z: jax.Array) -> jax.Array:
        """(I + P) z of each row, which is."""
        return jnp.einsum("bkl,bl->bk", precision, z)

    found: jax.Array = jax.lax.custom_linear_solve(product, linear, solve, symmetric=True)
    return found


def value_factors(A: jax.Array, noise: jax.Array, values: jax.Array, present: jax.Array) -> jax.Array:
    """Factors (B, K) from values: exact, no steps."""
    weight = present * noise[None]
    return _solve(weight @ _squares(A), (weight * values) @ A)


def decisions(params: UnrolledParams, z: jax.Array) -> jax.Array:
    """Decision values (B, C): experts by their shares, which depend on z."""
    full = jnp.concatenate([z, jnp.ones_like(z[:, :1])], axis=1)
    each = jnp.einsum("bk,tck->btc", full, params.beta)
    if params.beta.shape[0] == 1:
        return each[:, 0]
    away = ((z[:, None, :] - params.centre[None]) ** 2).sum(-1)
    shares = jax.nn.softmax(params.log_share[None] - 0.5 * jnp.exp(params.log_precision)[None] * away, axis=1)
    return jnp.einsum("bt,btc->bc", shares, each)


@record
class UnrolledState:
    """What the next batch needs."""

    params: UnrolledParams
    optimiser: Any
    step: jax.Array
    n_steps: jax.Array
    total: jax.Array


@value
class PredictiveLoss:
    """Sums over a batch: the objective and its gradient, and the levels' scores.

    `batch.data` is (lower, upper, code (B, D) uint8, y (B, C)), or (values, present (B, D), y).
    """

    eps: float
    is_rank: bool

    def __call__(self, key: jax.Array, params: UnrolledParams, batch: PaddedRows) -> dict[str, Any]:
        """Statistics of one batch; nothing here is random."""
        y = batch.data[-1]

        def gain(moving: UnrolledParams) -> tuple[jax.Array, Any]:
            """Minus the weighted loss of the batch, and the scores by which levels move."""
            if self.is_rank:
                cells = rank_cells(params.table, *batch.data[:2])
                z = factors(moving.A, cells, self.eps)
                score = z @ moving.A.T
                lower = cells.has_lower * jax.nn.relu(cells.lower + self.eps - score)
                upper = cells.has_upper * jax.nn.relu(score + self.eps - cells.upper)
                cell = 2.0 * (lower + upper).mean(axis=1)
            else:
                values, present = batch.data[:2]
                z = value_factors(moving.A, params.noise, values, present)
                score = z @ moving.A.T
                cell = (0.5 * params.noise[None] * present * (values - score) ** 2).mean(axis=1)
            label = 2.0 * jax.nn.relu(1.0 - y * decisions(moving, z)).sum(axis=1)
            return -jnp.sum(batch.weight * (RANK_WEIGHT * cell + LABEL_WEIGHT * label)), score

        (bound, score), gradient = jax.value_and_grad(gain, has_aux=True)(params)
        stats = {"bound": bound, "gradient": gradient}
        if self.is_rank:
            stats["mass"], stats["score"] = _by_level(
                batch.data[2], score, batch.weight, params.table.shape[1]
            )
        return stats


def _by_level(
    code: jax.Array, score: jax.Array, weight: jax.Array, n_levels: int
) -> tuple[jax.Array, jax.Array]:
    """Weight and weighted score of each level: (D, Q) each; missing cells fall into a bin that is dropped."""
    n_columns = code.shape[1]
    bins = (jnp.arange(n_columns) * (n_levels + 1))[None, :] + jnp.minimum(code, n_levels).astype(jnp.int32)
    heavy = jnp.broadcast_to(weight[:, None], score.shape)
    both = jnp.stack([heavy, heavy * score], axis=2).reshape(-1, 2)
    sums = jax.ops.segment_sum(both, bins.ravel(), n_columns * (n_levels + 1))
    mass, total = sums.reshape(n_columns, n_levels + 1, 2)[:, :n_levels].transpose(2, 0, 1)
    return mass, total


@value
class CosineAdam:
    """One step of Adam with a step size that decays along a half cosine."""

    learning_rate: float

    def __call__(
        self, state: UnrolledState, stats: Any, scale: jax.Array
    ) -> tuple[UnrolledState, dict[str, jax.Array]]:
        """The state after the step; `scale * gradient` estimates the sum over all rows."""
        params = state.params
        share = scale / state.total
        loss = jax.tree.map(lambda leaf: -leaf * share, stats["gradient"])
        loss = loss._replace(A=loss.A + PULL * params.A, beta=loss.beta + PULL * params.beta)
        loss = loss._replace(table=jnp.zeros_like(params.table), noise=jnp.zeros_like(params.noise))
        direction, moved = optimiser().update(loss, state.optimiser)
        done = jnp.clip(state.step / state.n_steps, 0.0, 1.0)
        rate = self.learning_rate * (0.01 + 0.99 * 0.5 * (1.0 + jnp.cos(jnp.pi * done)))
        new = jax.tree.map(lambda leaf, step: leaf - rate * step, params, direction)
        if "mass" in stats:
            mean = stats["score"] / jnp.maximum(stats["mass"], 1e-6)
            table = jnp.where(stats["mass"] > 0, MEMORY * params.table + (1.0 - MEMORY) * mean, params.table)
            new = new._replace(table=table)
        return replace(state, params=new, optimiser=moved, step=state.step + 1), {}


def optimiser() -> optax.GradientTransformation:
    """Adam's direction, without a step size."""
    return optax.scale_by_adam()


def first_state(params: UnrolledParams, total: float, n_steps: float) -> UnrolledState:
    """The state before the first batch."""
    shapes = jax.eval_shape(optimiser().init, params)
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
    host: Any = np
    return UnrolledState(params, zeros, host.float32(0), host.float32(n_steps), host.float32(total))


MOST_IN_BATCH = 256
N_UPDATES = 500
"""Steps of the optimiser in a whole schedule, whatever the number of rows."""


def epochs_of(n_rows: int, share: float) -> int:
    """Epochs of a table of N rows that hold a share of the steps of a whole schedule."""
    n_batches = -(-n_rows // min(MOST_IN_BATCH, n_rows))
    return max(1, round(share * N_UPDATES / n_batches))


def train(
    state: RankState,
    rows: RankRows,
    labels: WeightedLabels,
    config: RankConfig,
    recipe: RankRecipe,
    run: Run,
    n_epochs: int,
) -> tuple[FitResult, PosteriorDraw]:
    """The optimiser's result and what predicts, by a schedule of so many epochs."""
    n_rows = len(labels.weight)
    batch = min(MOST_IN_BATCH, n_rows)
    n_batches = -(-n_rows // batch)
    weight = (labels.weight / labels.weight.mean()).astype(np.float32)
    loss = PredictiveLoss(float(config.eps), rows.cells is not None)
    first = first_state(first_params(state), float(weight.sum()), float(n_epochs * n_batches))
    step = Epoch(loss, CosineAdam(recipe.learning_rate), batch)
    result = loop.run(
        compiled(step, pad_rows(batch_data(rows, labels), weight)),
        first,
        run,
        Rule(n_epochs),
        name="training for prediction",
        key=key_from_seed(recipe.seed),
    )
    return result, draw_of(jax.tree.map(np.asarray, result.state.params), config)


def batch_data(rows: RankRows, labels: WeightedLabels) -> tuple[Any, ...]:
    """What `PredictiveLoss` takes of rows: neighbours, levels, labels; or values, which are there, labels."""
    y = labels.y.astype(np.float32)
    if rows.cells is not None:
        return (*rows.cells, rows.codes, y)
    assert rows.values is not None
    present = ~np.isnan(rows.values)
    return np.nan_to_num(rows.values).astype(np.float32), present.astype(np.float32), y


def first_params(state: RankState) -> UnrolledParams:
    """Loadings, levels and experts of a variational state, in 32 bits.

    Several experts start alike, as their average, under a wide gate: they part where it pays. Those of the
    sweeps, each fitted to rows of its own, stayed apart: .967 right on rows left out of MNIST's threes and
    fives, .980 from a common start.
    """
    beta, gate = state.experts.beta.mean, state.experts.gate
    T, _, K1 = beta.shape
    centre = np.zeros((T, K1 - 1))
    if gate is not None:
        share = np.exp(gate.log_share)
        beta = np.broadcast_to(np.tensordot(share / share.sum(), beta, 1), beta.shape)
        centre = gate.mean
    whole = (state.A.mean, state.scale.lower, 1.0 / state.scale.noise, beta, centre, np.zeros(T), np.zeros(T))
    return UnrolledParams(*(np.asarray(part, np.float32) for part in whole))


def draw_of(params: UnrolledParams, config: RankConfig) -> PosteriorDraw:
    """The trained parameters as what predicts."""
    A, table, noise, beta, centre, log_precision, log_share = (np.asarray(p, np.float64) for p in params)
    gate = None
    if config.n_experts > 1:  # the trained log share holds the logarithm of the precision as well
        zero = np.zeros(len(centre))
        gate = Gate(centre, zero, np.exp(log_precision), zero, log_share, 1.0)
    n_steps = N_FREE + N_STEPS
    return PosteriorDraw(A, None, table, table, noise, None, beta, None, gate, n_steps)

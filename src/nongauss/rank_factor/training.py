"""Runs the training for prediction: from a variational state to loadings and experts that predict best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from nongauss.core.device import key_from_seed
from nongauss.optimise import compiled as loop
from nongauss.optimise.minibatch import GradientStep, pad_rows
from nongauss.optimise.result import Callback, FitResult, Status
from nongauss.rank_factor import unrolled_factors as predictive
from nongauss.rank_factor.params import Config
from nongauss.rank_factor.predict import Draw
from nongauss.rank_factor.rank_likelihood import Rows
from nongauss.rank_factor.svm_mixture import Gate
from nongauss.rank_factor.updates import Labels, State

MOST_IN_BATCH = 256
N_UPDATES = 500
"""Steps of the optimiser in a whole schedule, whatever the number of rows."""


def train(
    state: State, rows: Rows, labels: Labels, config: Config, seed: int, max_iter: int, learning_rate: float,
    callbacks: Sequence[Callback], verbose: int,
) -> tuple[FitResult, Draw]:  # fmt: skip
    """The optimiser's result and what predicts. At most `max_iter` epochs, fewer if the schedule is over."""
    n_rows = len(labels.weight)
    batch = min(MOST_IN_BATCH, n_rows)
    n_batches = -(-n_rows // batch)
    n_epochs = min(max_iter, max(1, round(N_UPDATES / n_batches)))
    data: tuple[Any, ...]
    y = labels.y.astype(np.float32)
    if rows.cells is not None:
        data = (*rows.cells, rows.codes, y)
    else:
        assert rows.values is not None
        present = ~np.isnan(rows.values)
        data = (np.nan_to_num(rows.values).astype(np.float32), present.astype(np.float32), y)
    weight = (labels.weight / labels.weight.mean()).astype(np.float32)
    step = GradientStep(
        predictive.Local(float(config.eps), rows.cells is not None), predictive.Update(learning_rate), batch
    )
    first = predictive.first_state(first_params(state), float(weight.sum()), float(n_epochs * n_batches))
    result = loop.run(
        step, key_from_seed(seed), first, pad_rows(data, weight), max_iter=n_epochs,
        callbacks=tuple(callbacks), verbose=verbose,
    )  # fmt: skip
    if result.status is Status.MAX_ITER:
        result = FitResult(result.state, result.trace, Status.COMPLETED, result.n_iter)
    return result, draw_of(jax.tree.map(np.asarray, result.state.params), config)


def first_params(state: State) -> predictive.Params:
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
    return predictive.Params(*(np.asarray(part, np.float32) for part in whole))


def draw_of(params: predictive.Params, config: Config) -> Draw:
    """The trained parameters as what predicts."""
    A, table, noise, beta, centre, log_precision, log_share = (np.asarray(p, np.float64) for p in params)
    gate = None
    if config.n_experts > 1:  # the trained log share holds the logarithm of the precision as well
        gate = Gate(
            centre, np.zeros(len(centre)), np.exp(log_precision), np.zeros(len(centre)), log_share, 1.0
        )
    n_steps = predictive.N_FREE + predictive.N_STEPS
    return Draw(A, None, table, table, noise, None, beta, None, gate, n_steps)

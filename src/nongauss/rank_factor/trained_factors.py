"""Training for prediction: the whole schedule, or fewer steps where held-out rows clearly ask for them.

A few hundred rows of several classes are overfitted by the whole schedule: its log-loss lies further above
that of the true probabilities than after a twenty-fifth of the steps.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nongauss.optimise.course import Run, Status
from nongauss.rank_factor import unrolled_factors
from nongauss.rank_factor.calibration import Numbers, calibrate, chosen_rows, folds_of
from nongauss.rank_factor.data import FloatArray
from nongauss.rank_factor.params import WeightedLabels
from nongauss.rank_factor.predict import OutputCalibration, decisions, factors
from nongauss.rank_factor.start import FactorOutcome, Problem, cell_type, first_state, sweep_of, warm

SHARES = (1.0, 0.2, 0.04)
"""Of the steps of a whole schedule, which rows held out choose from."""


def fit(problem: Problem, run: Run) -> tuple[FactorOutcome, OutputCalibration]:
    """Train, with the steps and the calibration that rows held out ask for."""
    found = trained(problem, run)
    _, labels, _, recipe = problem
    n_rows = len(labels.weight)
    folds = folds_of(chosen_rows(n_rows, recipe.seed), n_rows)
    chosen = np.concatenate(folds)
    y, weight = labels.y[chosen], labels.weight[chosen]
    is_whole = found.result.status is Status.COMPLETED
    curves, losses = [], []
    shares = [share for share in SHARES if share == 1.0 or (is_whole and _is_shorter(problem, share))]
    for share in shares:
        name = "held out" if share == 1.0 else f"held out, {share:g} of the steps,"
        runs = [Run(checkpoint=run.within(f"{name} {number}").checkpoint) for number in range(len(folds))]
        f = np.concatenate(
            [_held_out(problem, fold, own, share) for fold, own in zip(folds, runs, strict=True)]
        )
        curves.append(calibrate(f, y, weight))
        losses.append(_losses(curves[-1].probabilities(f), y))
    best = fewest_steps(np.array(losses), weight)
    if best:
        found = trained(problem, Run(checkpoint=run.within("fewer steps").checkpoint), shares[best])
    return found, curves[best]


def trained(problem: Problem, run: Run, share: float = 1.0) -> FactorOutcome:
    """A few sweeps of variational Bayes, then training for prediction by a share of the whole schedule."""
    rows, labels, config, recipe = problem
    rng = np.random.default_rng(recipe.seed)
    first = first_state(rng, rows, labels, config)
    state = warm(rng, sweep_of(problem), first, cell_type(rows))
    n_epochs = min(recipe.max_iter, unrolled_factors.epochs_of(len(labels.weight), share))
    result, draw = unrolled_factors.train(state, rows, labels, config, recipe, run, n_epochs)
    return FactorOutcome(replace(result, state=state), [draw])


def _is_shorter(problem: Problem, share: float) -> bool:
    """Are fewer steps fewer epochs than those of the fit?"""
    n_rows = len(problem.labels.weight)
    whole = min(problem.recipe.max_iter, unrolled_factors.epochs_of(n_rows, 1.0))
    return unrolled_factors.epochs_of(n_rows, share) < whole


def _held_out(problem: Problem, chosen: Numbers, run: Run, share: float) -> FloatArray:
    """Decision values (V, C) of the chosen rows by training on the others."""
    rows, labels, config, _ = problem
    kept = np.delete(np.arange(len(labels.weight)), chosen)
    part = kept if len(kept) else chosen
    others = WeightedLabels(labels.y[part], labels.weight[part])
    draw = trained(problem._replace(rows=rows.take(part), labels=others), run, share).draws[0]
    return decisions(draw, factors(draw, rows.take(chosen), config, cell_type(rows)))


def _losses(p: FloatArray, y: FloatArray) -> FloatArray:
    """Log-loss of each row (V,) by probabilities (V, C) and labels -1, 1."""
    told = np.where(y > 0, p, 1.0 - p) if y.shape[1] == 1 else np.where(y > 0, p, 0.0).sum(axis=1)[:, None]
    found: FloatArray = -np.log(np.maximum(told[:, 0], 1e-12))
    return found


def fewest_steps(losses: FloatArray, weight: FloatArray) -> int:
    """Which schedule to take, of losses (S, V) of rows: the first unless another is better by more than a
    standard error."""
    share = weight / weight.sum()
    best = int((losses @ share).argmin())
    gain = losses[0] - losses[best]
    mean = float(share @ gain)
    error = float(np.sqrt(share**2 @ (gain - mean) ** 2))
    return best if mean > error else 0

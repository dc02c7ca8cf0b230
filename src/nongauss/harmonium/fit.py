"""Recipes of a fit: contrastive divergence with Adam or L-BFGS, and the chain graph that finds the number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from nongauss.harmonium import chain_graph as chain
from nongauss.harmonium.contrastive_divergence import (
    LEAST_STEPS,
    SUPERVISED,
    UNSUPERVISED,
    Everywhere,
    Learner,
    Rates,
    Recipe,
    batch_size,
    contract,
    n_epochs,
)
from nongauss.harmonium.exponential_families import Array, Layout, dense, respond, totals_of
from nongauss.harmonium.objective import contrastive_free_energy
from nongauss.harmonium.params import Params, Rows
from nongauss.harmonium.updates import contrast, drive_of, filled, hinge
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.lbfgs import ascend
from nongauss.optimise.loop import run_epochs
from nongauss.optimise.result import Callback, FitResult, Status

CHAIN_EPOCHS = 400
"""Most iterations of the chain graph; it mostly settles much earlier."""

PATIENCE = 5
"""Epochs without a gain on held-out rows after which an early-stopping fit ends."""

STICK_ROUNDS = 10
"""Climbs by L-BFGS between which the sticks follow."""

SOFTNESS = 0.1
"""Of the hinge that L-BFGS climbs: all classes tie at the start, where the hinge itself has no gradient."""

MOST_CELLS = 2**22
"""The chain graph finds the number of features on so many cells at most: a sample of the rows."""


class Effort(NamedTuple):
    """Cells times units of an iteration of the chain graph; units that it tries in vain to do without."""

    work: float
    trials: int


THOROUGH, QUICK = Effort(8e8, 3), Effort(1.2e8, 1)
"""The chain graph as a model of its own, and where it only counts."""

FIRST_WORK, FEWEST_STEPS = 5e9, 60
"""Cells times units, and steps at least, of the contrastive divergence that the chain graph starts from."""


def learn(
    layout: Layout,
    rows: Rows,
    recipe: Recipe,
    *,
    everywhere: Everywhere | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
) -> FitResult:
    """The globally normalised model, with or without classes. The result's state is (Params, Prior).

    Where the rows are in parts, `everywhere` has them all; then none is held out, and mini-batches alone do.
    """
    rates = SUPERVISED if recipe.heeds_labels else UNSUPERVISED
    epochs = n_epochs(recipe, len(rows.weight) if everywhere is None else everywhere.n_rows)
    watching: dict[str, Any] = {"callbacks": callbacks, "checkpoint": checkpoint, "verbose": verbose}
    with threadpool_limits(limits=1, user_api="blas"):
        if recipe.held_out and recipe.method != "lbfgs" and len(rows.weight) > 1:
            return _watched(layout, rows, recipe, rates, watching)
        learner = Learner(layout, rows, recipe, rates, epochs, everywhere)
        if recipe.method == "lbfgs":
            return _by_lbfgs(learner, epochs, watching)
        result = run_epochs(learner, epochs, **watching)
        return replace(result, state=learner.learned())


def _watched(
    layout: Layout, rows: Rows, recipe: Recipe, rates: Rates, watching: Mapping[str, Any]
) -> FitResult:
    """Epochs until held-out rows no longer gain; the best epoch is the result."""
    order = np.random.default_rng(recipe.seed).permutation(len(rows.weight))
    cut = min(len(order) - 1, max(1, round(recipe.held_out * len(order))))
    held, kept = rows.take(np.sort(order[:cut])), rows.take(np.sort(order[cut:]))
    epochs = n_epochs(recipe, len(kept.weight))
    judged = _Judged(Learner(layout, kept, recipe, rates, epochs), held)
    result = run_epochs(judged, epochs, **watching)
    stopped = result.status is Status.CONVERGED
    return replace(result, state=judged.best, status=Status.EARLY_STOPPED if stopped else result.status)


class _Judged:
    """A learner whose epochs are judged by held-out rows; the best is remembered."""

    def __init__(self, learner: Learner, held: Rows) -> None:
        self.learner, self.held = learner, held
        self.score, self.number, self.best = -np.inf, 0, learner.learned()

    def epoch(self, number: int) -> Mapping[str, float]:
        """All rows once; then the others tell whether it is time to stop."""
        info, score = self.learner.epoch(number), self.learner.score(self.held)
        if score > self.score:
            self.score, self.number, self.best = score, number, self.learner.learned()
        return {**info, "held_out": score, "stop": float(number - self.number >= PATIENCE)}

    def snapshot(self) -> Any:
        """Where it is."""
        return self.learner.snapshot(), self.score, self.number, self.best

    def restore(self, at: Any) -> None:
        """Be there."""
        learner, self.score, self.number, self.best = at
        self.learner.restore(learner)


def _by_lbfgs(learner: Learner, max_iter: int, watching: Mapping[str, Any]) -> FitResult:
    """Full batch: minus CF1, the hinge and the votes' prior, climbed by L-BFGS as in the paper.

    Sticks follow the use of the units between rounds of such climbs.
    """
    objective = _FullBatch(learner)
    flat = np.concatenate([part.ravel() for part in learner.moving()]).astype(np.float64)
    n_rounds = min(STICK_ROUNDS, max_iter) if learner.recipe.has_sticks else 1
    result = None
    for steps in np.diff(np.linspace(0, max_iter, n_rounds + 1).astype(int)):
        if result is not None:
            learner.set_sticks(objective.use(flat))
        result = ascend(
            objective, flat, [(None, None)] * len(flat), max_iter=int(steps),
            tol=1e-4 * learner.rows.weight.sum(), former=result, **watching,
        )  # fmt: skip
        flat = result.state
        if result.status in (Status.STOPPED, Status.NONFINITE):
            break
    assert result is not None
    best = Params(*(np.asarray(part, dtype=np.float32) for part in objective.params_of(flat)))
    return FitResult((best, learner.prior), result.trace, result.status, result.n_iter)


class _FullBatch:
    """Value and gradient at a flat vector of parameters, q0 and q1 held fixed in the gradient."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.shapes = [part.shape for part in learner.moving()]
        self.scale = np.ones(len(learner.params.scale))

    def params_of(self, flat: Array) -> Params:
        """The vector as parameters, which are normalisable: see `contract`."""
        cuts = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        W, eta, beta, votes, intercept = (
            part.reshape(shape) for part, shape in zip(np.split(flat, cuts), self.shapes, strict=True)
        )
        if self.learner.recipe.units == "real":
            W = W.copy()
            contract(W, self.learner.layout)
        return Params(W, eta, beta, self.scale, votes, intercept)

    def use(self, flat: Array) -> Array:
        """Share of the rows that have each unit, (K,)."""
        rows, prior = self.learner.rows, self.learner.prior.log_odds.astype(np.float64)
        params = self.params_of(flat)
        x = self.learner.whole(params, prior, rows)
        on = respond(self.learner.recipe.units, drive_of(params, x), prior).on
        used: Array = rows.weight @ on / rows.weight.sum()
        return used

    def __call__(self, flat: Array) -> tuple[float, Array, float]:
        """(objective, gradient, objective)."""
        rows, recipe, layout = self.learner.rows, self.learner.recipe, self.learner.layout
        params, prior = self.params_of(flat), self.learner.prior.log_odds.astype(np.float64)
        N, weight = rows.weight.sum(), rows.weight / rows.weight.sum()
        x = self.learner.whole(params, prior, rows)
        at = contrast(params, recipe.units, layout, prior, x, weight)
        whole = dense(x, np.float32).astype(np.float64)
        totals = totals_of(layout, whole)
        each = contrastive_free_energy(params, recipe.units, layout, prior, whole, totals)
        value = -float(weight @ each) - 0.5 * float((params.votes**2).sum()) / N
        by_votes, by_intercept = -params.votes / N, np.zeros_like(params.intercept)
        by_weights, by_bias = at.weights, at.hidden_bias
        if recipe.heeds_labels:
            assert rows.labels is not None
            labels = hinge(
                params, recipe.units, prior, x, weight, rows.labels, recipe.margin, softness=SOFTNESS
            )
            value -= recipe.C * labels.loss
            by_weights = by_weights + recipe.C * labels.weights
            by_bias = by_bias + recipe.C * labels.hidden_bias
            by_votes = by_votes + recipe.C * labels.votes
            by_intercept = recipe.C * labels.intercept
        gradient = (by_weights, at.visible_bias, by_bias, by_votes, by_intercept)
        flat_gradient = np.concatenate([part.ravel() for part in gradient]).astype(np.float64)
        return N * value, N * flat_gradient, N * value


def find_features(
    layout: Layout,
    rows: Rows,
    recipe: Recipe,
    prunes: bool,
    effort: Effort = THOROUGH,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
) -> FitResult:
    """The chain graph, from features of a short fit by persistent contrastive divergence.

    Persistent chains matter: from features of plain contrastive divergence 53 units stayed where 20 are true.
    The result's state is a `chain.Chain`.
    """
    rows = sample(rows, recipe.seed)
    first = _first(recipe, rows, effort.work if prunes else np.inf)
    with threadpool_limits(limits=1, user_api="blas"):
        free = UNSUPERVISED._replace(ridge=0.0, overlap=0.0)
        learner = Learner(layout, rows, first, free, n_epochs(first, len(rows.weight)))
        for number in range(n_epochs(first, len(rows.weight))):
            learner.epoch(number)
        params, prior = learner.learned()
        x = dense(rows.X, np.float32)
        if rows.missing is not None:
            x = filled(params, recipe.units, layout, prior.log_odds, x, rows.missing, learner.usual)
        on = respond(recipe.units, drive_of(params, x), prior.log_odds).on
        state = chain.begin(layout, rows, params, on, recipe.alpha)
        fitted = chain.ChainFit(layout, rows, state, recipe.alpha, effort.trials if prunes else 0)
        epochs = recipe.max_epochs or CHAIN_EPOCHS
        result = run_epochs(fitted, epochs, callbacks=callbacks, checkpoint=checkpoint, verbose=verbose)
        return replace(result, state=fitted.result())


def _first(recipe: Recipe, rows: Rows, work: float) -> Recipe:
    """The recipe of the features to start from: fewer units and steps where rows are many or wide."""
    n_rows, D = rows.X.shape
    batch = batch_size(recipe, n_rows)
    K = min(recipe.n_components, max(1, int(min(work / (n_rows * D), 1e9))))
    steps = max(FEWEST_STEPS, min(LEAST_STEPS, int(FIRST_WORK / (batch * D * K))))
    epochs = max(1, steps * batch // n_rows)
    return recipe._replace(n_components=K, n_classes=0, has_sticks=False, max_epochs=epochs, method="pcd")


def has_room(n_rows: int, n_columns: int) -> bool:
    """Would the chain graph learn from all rows, or at least from as many as there are columns?"""
    most = MOST_CELLS // n_columns
    return n_rows <= most or n_columns <= most


def sample(rows: Rows, seed: int) -> Rows:
    """All rows, or as many as the chain graph has room for."""
    most = max(1, MOST_CELLS // rows.X.shape[1])
    if len(rows.weight) <= most:
        return rows
    return rows.take(np.sort(np.random.default_rng(seed).choice(len(rows.weight), most, replace=False)))

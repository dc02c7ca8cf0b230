"""The order in which a fit is run: contrastive divergence, or the chain graph, which finds the number too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from threadpoolctl import threadpool_limits

from nongauss.harmonium.chain_graph import ACTIVE, ChainLearner, ChainState, start_chain
from nongauss.harmonium.config import (
    CHAIN_EPOCHS,
    FEWEST_STEPS,
    FIRST_WORK,
    LEAST_STEPS,
    MOST_CELLS,
    QUICK,
    STICK_ROUNDS,
    SUPERVISED,
    THOROUGH,
    UNSUPERVISED,
    WIDEST,
    ChainEffort,
    HarmoniumRecipe,
    LearningRates,
)
from nongauss.harmonium.contrastive_divergence import (
    ContrastiveLearner,
    EarlyStoppingLearner,
    batch_size,
    dropout_share,
    heeds_labels,
    n_epochs,
)
from nongauss.harmonium.data import RowSource, VisibleRows, mean_totals
from nongauss.harmonium.exponential_families import Layout, dense, respond
from nongauss.harmonium.full_batch import FullBatchObjective
from nongauss.harmonium.params import HarmoniumParams
from nongauss.harmonium.predict import NO_FILLER, Filler, Machine
from nongauss.harmonium.updates import filled_by_mean_field, preactivation, with_dropout
from nongauss.optimise import loop
from nongauss.optimise.course import NOBODY, FitResult, Rule, Run, Status
from nongauss.optimise.lbfgs import PATIENCE, lbfgs
from nongauss.optimise.loop import in_place

LEARNING, COUNTING = "contrastive divergence", "chain graph"
"""Names of the two loops of a fit in its checkpoint."""


def fit_global(
    layout: Layout,
    rows: VisibleRows,
    recipe: HarmoniumRecipe,
    run: Run,
    *,
    all_rows: RowSource | None = None,
    filler: Filler = NO_FILLER,
    name: str = LEARNING,
) -> tuple[FitResult, Machine]:
    """The globally normalised model, with or without labels. `all_rows` and `name`: see `learn`."""
    result = learn(layout, rows, recipe, run, all_rows=all_rows, name=name)
    params, prior = (type(part)(*(np.asarray(each, np.float64) for each in part)) for part in result.state)
    totals = mean_totals(layout, rows)
    return result, Machine(params, prior, layout, recipe.units, "global", totals, filler)


def fit_chain(
    layout: Layout, rows: VisibleRows, recipe: HarmoniumRecipe, run: Run, *, prunes: bool
) -> tuple[FitResult, Machine]:
    """The chain graph, a `ChainState` as the result's state. `prunes`: units that do not pay are removed."""
    result = find_features(layout, rows, recipe, run, prunes=prunes)
    state: ChainState = result.state
    totals = mean_totals(layout, rows)
    return result, Machine(state.params, state.prior, layout, "binary", "chain", totals, NO_FILLER)


def count_features(
    layout: Layout, rows: VisibleRows, recipe: HarmoniumRecipe, run: Run
) -> tuple[int, tuple[str, ...]]:
    """How many features the columns call for, at least one a class, and why it does without others.

    They are counted to the end, however few epochs the classes are to be learned in, or KeyboardInterrupt.
    Nobody is told of the iterations; the checkpoint keeps them.
    """
    n_scores, unwatched = recipe.n_scores, Run(checkpoint=run.checkpoint)
    recipe = recipe._replace(max_epochs=None, n_scores=0, C=0.0, dropout=0.0)
    result = find_features(layout, rows, recipe, unwatched, prunes=True, effort=QUICK)
    if result.status is Status.STOPPED:
        raise KeyboardInterrupt
    chain: ChainState = result.state
    n_found = max(n_scores, chain.params.n_components)
    reasons = tuple(reason for reason in chain.reasons if reason != ACTIVE)
    return n_found, reasons[: max(0, len(chain.reasons) - n_found)]


def class_temperature(machine: Machine, rows: VisibleRows, recipe: HarmoniumRecipe) -> float:
    """The temperature that makes labels of training rows, with cells left out as in learning, most likely.

    Cells that are left out stand in for rows that were not trained on. One row more is of any class (Platt
    2000), so that no class is certain where all rows are right.
    """
    rng = np.random.default_rng(recipe.seed)
    share = max(dropout_share(recipe, rows), 0.1)
    f = machine.scores(with_dropout(rng, rows.X, share), rows.missing)
    weight = rows.weight / rows.weight.sum()
    own, any_class = (np.arange(len(f)), rows.labels), 1.0 / (1.0 + rows.weight.sum())

    def loss(log_temperature: float) -> float:
        """Minus the log probability of the labels, nats a row, one of N + 1 rows being of any class."""
        log_p = log_softmax(f / np.exp(log_temperature), axis=1)
        return -float(weight @ ((1.0 - any_class) * log_p[own] + any_class * log_p.mean(axis=1)))

    best = minimize_scalar(loss, bounds=(-WIDEST, WIDEST), method="bounded")
    return float(np.exp(best.x))


def learn(
    layout: Layout,
    rows: VisibleRows,
    recipe: HarmoniumRecipe,
    run: Run = NOBODY,
    *,
    all_rows: RowSource | None = None,
    name: str = LEARNING,
) -> FitResult:
    """The globally normalised model, with or without labels. The result's state is (params, prior).

    Where `rows` are a sample of the table, `all_rows` has the others too; then none is held out for early
    stopping, and mini-batches are the only method. `name`: of the loop, in a checkpoint.
    """
    rates = SUPERVISED if heeds_labels(recipe) else UNSUPERVISED
    epochs = n_epochs(recipe, len(rows.weight) if all_rows is None else all_rows.n_rows)
    with threadpool_limits(limits=1, user_api="blas"):
        if recipe.validation_fraction and recipe.method != "lbfgs" and len(rows.weight) > 1:
            return _learn_with_early_stopping(layout, rows, recipe, rates, run, name)
        learner = ContrastiveLearner(layout, rows, recipe, rates, epochs, all_rows)
        if recipe.method == "lbfgs":
            return _learn_by_lbfgs(learner, epochs, run, name)
        result = loop.run(in_place(learner), None, run, Rule(epochs), name=name)
        return replace(result, state=learner.learned())


def _learn_with_early_stopping(
    layout: Layout,
    rows: VisibleRows,
    recipe: HarmoniumRecipe,
    rates: LearningRates,
    run: Run,
    name: str,
) -> FitResult:
    """Epochs until held-out rows no longer gain; the best epoch is the result."""
    order = np.random.default_rng(recipe.seed).permutation(len(rows.weight))
    cut = min(len(order) - 1, max(1, round(recipe.validation_fraction * len(order))))
    held, kept = rows.take(np.sort(order[:cut])), rows.take(np.sort(order[cut:]))
    epochs = n_epochs(recipe, len(kept.weight))
    judged = EarlyStoppingLearner(ContrastiveLearner(layout, kept, recipe, rates, epochs), held)
    result = loop.run(in_place(judged), None, run, Rule(epochs), name=name)
    stopped = result.status is Status.CONVERGED
    return replace(result, state=judged.best, status=Status.EARLY_STOPPED if stopped else result.status)


def _learn_by_lbfgs(learner: ContrastiveLearner, max_iter: int, run: Run, name: str) -> FitResult:
    """Full batch: minus CF1, the hinge and the votes' prior, climbed by L-BFGS as in the paper.

    Sticks follow the use of the units between rounds of such climbs.
    """
    objective = FullBatchObjective(learner)
    flat = np.concatenate([part.ravel() for part in learner.moving()]).astype(np.float64)
    n_rounds = min(STICK_ROUNDS, max_iter) if learner.recipe.has_sticks or learner.recipe.has_beta else 1
    result = None
    least = 1e-4 * learner.rows.weight.sum()
    for number, steps in enumerate(np.diff(np.linspace(0, max_iter, n_rounds + 1).astype(int))):
        if result is not None:
            learner.set_sticks(objective.use(flat))
        climb = lbfgs(objective, [(None, None)] * len(flat))
        rule = Rule(int(steps), lambda _: least, PATIENCE)
        result = loop.run(
            climb, flat, run, rule, name=f"{name}, round {number}", former=result, expected=max_iter
        )
        flat = result.state
        if result.status in (Status.STOPPED, Status.NONFINITE):
            break
    assert result is not None
    best = HarmoniumParams(*(np.asarray(part, dtype=np.float32) for part in objective.params_of(flat)))
    return FitResult((best, learner.prior), result.trace, result.status, result.n_iter)


def find_features(
    layout: Layout,
    rows: VisibleRows,
    recipe: HarmoniumRecipe,
    run: Run = NOBODY,
    *,
    prunes: bool,
    effort: ChainEffort = THOROUGH,
) -> FitResult:
    """The chain graph, from features of a short fit by persistent contrastive divergence.

    Persistent chains matter: from features of plain contrastive divergence 53 units stayed where 20 are true.
    The result's state is a `ChainState`.
    """
    rows = chain_sample(rows, recipe.seed)
    first = _first_recipe(recipe, rows, effort.work if prunes else np.inf)
    with threadpool_limits(limits=1, user_api="blas"):
        free = UNSUPERVISED._replace(ridge=0.0, overlap=0.0)
        epochs = n_epochs(first, len(rows.weight))
        learner = ContrastiveLearner(layout, rows, first, free, epochs)
        loop.run(in_place(learner), None, NOBODY, Rule(epochs), name="start of the chain graph")
        params, prior = learner.learned()
        x = dense(rows.X, np.float32)
        if rows.missing is not None:
            x = filled_by_mean_field(
                params, recipe.units, layout, prior.log_odds, x, rows.missing, learner.mean_totals
            )
        on = respond(recipe.units, preactivation(params, x), prior.log_odds).on
        state = start_chain(layout, rows, params, on, recipe.alpha)
        trials = effort.trials if prunes else 0
        fitted = ChainLearner(layout, rows, state, recipe.alpha, trials, recipe.has_beta)
        rule = Rule(recipe.max_epochs or CHAIN_EPOCHS)
        result = loop.run(in_place(fitted), None, run, rule, name=COUNTING)
        return replace(result, state=fitted.result())


def _first_recipe(recipe: HarmoniumRecipe, rows: VisibleRows, work: float) -> HarmoniumRecipe:
    """The recipe of the features to start from: fewer units and steps where rows are many or wide."""
    n_rows, D = rows.X.shape
    batch = batch_size(recipe, n_rows)
    K = min(recipe.n_components, max(1, int(min(work / (n_rows * D), 1e9))))
    steps = max(FEWEST_STEPS, min(LEAST_STEPS, int(FIRST_WORK / (batch * D * K))))
    epochs = max(1, steps * batch // n_rows)
    return recipe._replace(
        n_components=K,
        n_scores=0,
        has_sticks=False,
        prior="auto",
        noise="fixed",
        max_epochs=epochs,
        method="pcd",
    )


def has_room(n_rows: int, n_columns: int) -> bool:
    """Would the chain graph learn from all rows, or at least from as many as there are columns?"""
    most = MOST_CELLS // n_columns
    return n_rows <= most or n_columns <= most


def chain_sample(rows: VisibleRows, seed: int) -> VisibleRows:
    """All rows, or as many as the chain graph has room for."""
    most = max(1, MOST_CELLS // rows.X.shape[1])
    if len(rows.weight) <= most:
        return rows
    return rows.take(np.sort(np.random.default_rng(seed).choice(len(rows.weight), most, replace=False)))

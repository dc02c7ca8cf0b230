"""Recipes of a fit: contrastive divergence with Adam or L-BFGS, and the chain graph that finds the number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from nongauss.core.contracts import Callback, FitResult
from nongauss.harmonium import chain, sticks
from nongauss.harmonium.objective import contrastive_free_energy
from nongauss.harmonium.params import Params, Prior, Rows, activity, start
from nongauss.harmonium.units import ALWAYS_ON, Array, Layout, mean_of, respond, totals_of
from nongauss.harmonium.updates import (
    Adam,
    Contrast,
    advance,
    contrast,
    drive_of,
    dropped,
    filled,
    margin,
)
from nongauss.inference.epochs import run_epochs
from nongauss.inference.quasi_newton import ascend

LEAST_EPOCHS, LEAST_STEPS = 12, 600
"""By default so many epochs, or more until there were so many steps."""

CHAIN_EPOCHS = 200
"""Most iterations of the chain graph; it mostly settles much earlier."""

MOST_CELLS = 2**22
"""The chain graph finds the number of features on so many cells at most: a sample of the rows."""

THOROUGH, QUICK = 8e8, 1.2e8
"""Cells times units of an iteration of the chain graph: as a model of its own, and where it only counts."""

FIRST_WORK, FEWEST_STEPS = 5e9, 60
"""Cells times units, and steps at least, of the contrastive divergence that the chain graph starts from."""

LARGEST_SCALE = 3.0
"""Scales of real columns stay below this while they are learned by contrastive divergence."""


class Rates(NamedTuple):
    """Step size and start. A unit's drive moves by about `step` (of weights) a step, whatever the columns."""

    step: float
    drive: float
    hidden_bias: float


UNSUPERVISED = Rates(step=0.09, drive=0.9, hidden_bias=-2.0)
SUPERVISED = Rates(step=0.027, drive=0.09, hidden_bias=0.0)
VOTE_STEP = 1e-2
BIAS_STEP = 1e-2
DECAYED = 0.05
"""The last step is this share of the first; sizes fall in a straight line."""

CONTRAST_SHARE = 0.25
"""With labels, contrastive divergence sees this share of each batch: the same error, 2.5 times faster."""

CHAINS = 64
STICKS_EVERY = 10


class Recipe(NamedTuple):
    """How a model is fitted; see the parameters of `Harmonium` and `HarmoniumClassifier`."""

    n_components: int
    units: str
    method: str
    max_epochs: int | None
    batch_size: int
    has_sticks: bool
    alpha: float
    accurate: bool
    C: float
    dropout: float | None
    n_classes: int
    seed: int


def n_epochs(recipe: Recipe, n_rows: int) -> int:
    """Epochs of the schedule."""
    if recipe.max_epochs is not None:
        return recipe.max_epochs
    n_batches = -(-n_rows // batch_size(recipe, n_rows))
    return max(LEAST_EPOCHS, -(-LEAST_STEPS // n_batches))


def batch_size(recipe: Recipe, n_rows: int) -> int:
    """Rows of a batch: at least four batches an epoch where there are rows for it."""
    return max(1, min(recipe.batch_size, max(16, n_rows // 4)))


def dropout_share(recipe: Recipe, rows: Rows) -> float:
    """Share of cells left out on the way to the classes: near one half where rows are long, else little."""
    if recipe.dropout is not None:
        return recipe.dropout
    long = activity(rows)
    return 0.5 * long / (long + 10.0)


class Learner:
    """Mini-batches with Adam. `epoch` changes the arrays in place; `snapshot` copies them."""

    def __init__(self, layout: Layout, rows: Rows, recipe: Recipe, rates: Rates, n_epochs: int) -> None:
        self.layout, self.rows, self.recipe, self.rates = layout, rows, recipe, rates
        self.rng = np.random.default_rng(recipe.seed)
        self.params = start(
            self.rng, layout, rows, recipe.n_components, rates.drive, rates.hidden_bias, recipe.n_classes
        )
        on = 0.0 if recipe.units == "binary" else ALWAYS_ON
        self.prior = Prior(np.full(recipe.n_components, on, np.float32), np.zeros((0, 2)))
        self.use = np.zeros(recipe.n_components)
        self.adam = Adam(self._moving())
        self.batch = batch_size(recipe, len(rows.weight))
        self.n_batches = -(-len(rows.weight) // self.batch)
        self.n_steps, self.done = n_epochs * self.n_batches, 0
        self.weight_step = rates.step / np.sqrt(activity(rows))
        self.dropout = dropout_share(recipe, rows) if recipe.n_classes else 0.0
        chosen = self.rng.integers(0, len(rows.weight), CHAINS)
        self.chains = _dense(rows.X[chosen]) if recipe.method == "pcd" else None

    def _moving(self) -> tuple[Array, ...]:
        params = self.params
        return params.weights, params.visible_bias, params.hidden_bias, params.votes, params.intercept

    def snapshot(self) -> tuple[Params, Prior]:
        """A copy of what has been learned."""
        return Params(*(np.array(part) for part in self.params)), self.prior

    def epoch(self, number: int) -> Mapping[str, float]:
        """All rows once, in random order."""
        order = self.rng.permutation(len(self.rows.weight))
        total = {"contrastive_free_energy": self._free_energy(order[: self.batch])}
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for at in range(0, len(order), self.batch):
                for name, value in self._step(order[at : at + self.batch]).items():
                    total[name] = total.get(name, 0.0) + value / self.n_batches
        free_energy = total["contrastive_free_energy"] + self.recipe.C * total.get("hinge", 0.0)
        total["bound"] = -float(self.rows.weight.sum()) * free_energy
        return total

    def _step(self, chosen: Array) -> dict[str, float]:
        params, recipe, prior = self.params, self.recipe, self.prior.log_odds
        batch = self.rows.take(chosen)
        x = batch.X if not self._has_scales() else batch.X * params.scale
        if batch.missing is not None:
            x = filled(params, recipe.units, self.layout, prior, x, batch.missing).astype(np.float32)
        n = max(1, int(len(chosen) * CONTRAST_SHARE)) if recipe.n_classes else len(chosen)
        weight = _shares(batch.weight[:n])
        at = contrast(params, recipe.units, self.layout, prior, x[:n], weight, **self._negative(x[:n]))
        gradient = [at.weights, at.visible_bias, at.hidden_bias, np.zeros(0), np.zeros(0)]
        info = {}
        if recipe.n_classes:
            info["hinge"] = self._labels(gradient, x, batch)
        self._move(tuple(gradient))
        if self._has_scales():
            self._rescale(_dense(x[:n]), weight)
        self._update_sticks(at)
        return info

    def _free_energy(self, chosen: Array) -> float:
        """CF1 a row, of one batch before the epoch."""
        batch = self.rows.take(chosen)
        x = _dense(batch.X) * self.params.scale
        prior = self.prior.log_odds
        if batch.missing is not None:
            x = filled(self.params, self.recipe.units, self.layout, prior, x, batch.missing)
        totals = totals_of(self.layout, x)
        each = contrastive_free_energy(self.params, self.recipe.units, self.layout, prior, x, totals)
        return float(_shares(batch.weight) @ each)

    def _negative(self, x: Any) -> dict[str, Any]:
        """What the negative phase starts from, by method."""
        if self.recipe.method == "mean_field":
            return {}
        if self.chains is not None:
            totals = totals_of(self.layout, _dense(x))
            totals = totals[self.rng.integers(0, len(totals), len(self.chains))]
            self.chains = advance(
                self.rng,
                self.params,
                self.recipe.units,
                self.layout,
                self.prior.log_odds,
                self.chains,
                totals,
            )
        return {"rng": self.rng, "chains": self.chains}

    def _labels(self, gradient: list[Array], x: Any, batch: Rows) -> float:
        """Add the classes' share to the gradient; returns the hinge loss a row."""
        params, recipe = self.params, self.recipe
        seen = dropped(self.rng, x, self.dropout) if self.dropout else x
        weight = _shares(batch.weight)
        assert batch.labels is not None
        at = margin(params, recipe.units, self.prior.log_odds, seen, weight, batch.labels)
        C = np.float32(recipe.C)
        gradient[0] += C * at.weights
        gradient[2] = gradient[2] + C * at.hidden_bias
        gradient[3] = C * at.votes - params.votes / np.float32(self.rows.weight.sum())
        gradient[4] = C * at.intercept
        return at.loss

    def _move(self, gradients: tuple[Array, ...]) -> None:
        left = 1.0 - (1.0 - DECAYED) * self.done / max(self.n_steps, 1)
        self.done += 1
        bias = min(BIAS_STEP, self.weight_step)
        rates = (self.weight_step, bias, bias, VOTE_STEP, VOTE_STEP)
        self.adam.step(self._moving(), gradients, tuple(rate * left for rate in rates))
        if self.recipe.units == "real":
            contract(self.params.weights, self.layout)

    def _has_scales(self) -> bool:
        return not self.recipe.n_classes and any(block.kind == "real" for block in self.layout)

    def _rescale(self, x: Array, weight: Array) -> None:
        """Move scales of real columns towards a noise of variance 1."""
        params = self.params
        h = respond(self.recipe.units, drive_of(params, x), self.prior.log_odds).mean
        a = h @ params.weights.T + params.visible_bias
        left = x - mean_of(self.layout, a, totals_of(self.layout, x))
        factor = np.ones(len(params.scale), np.float32)
        for block in self.layout:
            if block.kind == "real":
                at = block.place
                variance = np.clip(weight @ (left[:, at] ** 2), 0.5, 2.0)
                factor[at] = np.minimum(variance**-0.02, LARGEST_SCALE / params.scale[at])
        for part in (params.scale, params.visible_bias):
            part *= factor
        params.weights[:] *= factor[:, None]

    def _update_sticks(self, at: Contrast) -> None:
        if not self.recipe.has_sticks:
            return
        rate = max(1.0 / self.done, 1.0 / (10.0 * self.n_batches))
        self.use += rate * (at.on - self.use)
        if self.done % STICKS_EVERY == 0:
            order = np.argsort(-self.use, kind="stable")
            N = float(self.rows.weight.sum())
            odds, gamma = sticks.log_odds(N * self.use[order], N, self.recipe.alpha, self.recipe.accurate)
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            self.prior = Prior(odds[place].astype(np.float32), gamma[place])


def contract(weights: Array, layout: Layout) -> None:
    """Real visible beside real hidden units: keep the norm of their weights below 1, or Z is infinite."""
    real = [block.place for block in layout if block.kind == "real"]
    if real:
        norm = np.sqrt(np.linalg.eigvalsh(sum(weights[at].T @ weights[at] for at in real))[-1])
        if norm > 0.95:
            for at in real:
                weights[at] *= 0.95 / norm


def _shares(weight: Array) -> Array:
    return (weight / weight.sum()).astype(np.float32)


def _dense(X: Any) -> Array:
    out: Array = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return out.astype(np.float32)


def learn(
    layout: Layout, rows: Rows, recipe: Recipe, *, callbacks: Sequence[Callback] = (), verbose: int = 0
) -> FitResult:
    """The globally normalised model, with or without classes. The result's state is (Params, Prior)."""
    rates = SUPERVISED if recipe.n_classes else UNSUPERVISED
    epochs = n_epochs(recipe, len(rows.weight))
    with threadpool_limits(limits=1, user_api="blas"):
        learner = Learner(layout, rows, recipe, rates, epochs)
        if recipe.method == "lbfgs":
            return _by_lbfgs(learner, epochs, callbacks, verbose)
        return run_epochs(learner.epoch, learner.snapshot, epochs, callbacks=callbacks, verbose=verbose)


def _by_lbfgs(learner: Learner, max_iter: int, callbacks: Sequence[Callback], verbose: int) -> FitResult:
    """Full batch: minus CF1, the hinge and the votes' prior, climbed by L-BFGS as in the paper."""
    rows, recipe, layout = learner.rows, learner.recipe, learner.layout
    prior, weight = learner.prior.log_odds.astype(np.float64), rows.weight / rows.weight.sum()
    shapes = [part.shape for part in learner._moving()]
    cuts = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    scale = np.ones(len(learner.params.scale))

    def params_of(flat: Array) -> Params:
        W, eta, beta, votes, intercept = (
            part.reshape(shape) for part, shape in zip(np.split(flat, cuts), shapes, strict=True)
        )
        return Params(W, eta, beta, scale, votes, intercept)

    def objective(flat: Array) -> tuple[float, Array, Mapping[str, float]]:
        params = params_of(flat)
        x = (
            rows.X
            if rows.missing is None
            else filled(params, recipe.units, layout, prior, rows.X, rows.missing)
        )
        at = contrast(params, recipe.units, layout, prior, x, weight)
        dense = _dense(x).astype(np.float64)
        totals = totals_of(layout, dense)
        each = contrastive_free_energy(params, recipe.units, layout, prior, dense, totals)
        value, gradient = -float(weight @ each), [at.weights, at.visible_bias, at.hidden_bias]
        N = rows.weight.sum()
        votes = [-params.votes / N, np.zeros_like(params.intercept)]
        if rows.labels is not None:
            labels = margin(params, recipe.units, prior, x, weight, rows.labels)
            value -= recipe.C * labels.loss + 0.5 * float((params.votes**2).sum()) / N
            gradient[0] = gradient[0] + recipe.C * labels.weights
            gradient[2] = gradient[2] + recipe.C * labels.hidden_bias
            votes = [votes[0] + recipe.C * labels.votes, recipe.C * labels.intercept]
        flatten = np.concatenate([part.ravel() for part in (*gradient, *votes)]).astype(np.float64)
        return N * value, N * flatten, {"bound": N * value}

    first = np.concatenate([part.ravel() for part in learner._moving()]).astype(np.float64)
    result = ascend(
        objective, first, [(None, None)] * len(first), max_iter=max_iter, tol=1e-4 * rows.weight.sum(),
        callbacks=callbacks, verbose=verbose,
    )  # fmt: skip
    best = Params(*(np.asarray(part, dtype=np.float32) for part in params_of(result.state)))
    return FitResult((best, learner.prior), result.trace, result.status, result.n_iter)


def find_features(
    layout: Layout,
    rows: Rows,
    recipe: Recipe,
    prunes: bool,
    work: float = THOROUGH,
    *,
    callbacks: Sequence[Callback] = (),
    verbose: int = 0,
) -> FitResult:
    """The chain graph, from features of a short fit by persistent contrastive divergence.

    Persistent chains matter: from features of plain contrastive divergence 53 units stayed where 20 are true.
    The result's state is a `chain.Chain`.
    """
    rows = sample(rows, recipe.seed)
    n_rows, D = rows.X.shape
    batch = batch_size(recipe, n_rows)
    K = min(recipe.n_components, max(1, int(work / (n_rows * D)))) if prunes else recipe.n_components
    steps = max(FEWEST_STEPS, min(LEAST_STEPS, int(FIRST_WORK / (batch * D * K))))
    first = recipe._replace(
        n_components=K,
        n_classes=0,
        has_sticks=False,
        max_epochs=max(1, steps * batch // n_rows),
        method="pcd",
    )
    with threadpool_limits(limits=1, user_api="blas"):
        learner = Learner(layout, rows, first, UNSUPERVISED, n_epochs(first, len(rows.weight)))
        for number in range(n_epochs(first, len(rows.weight))):
            learner.epoch(number)
        params, prior = learner.snapshot()
        x = _dense(rows.X) * params.scale
        if rows.missing is not None:
            x = filled(params, recipe.units, layout, prior.log_odds, x, rows.missing)
        on = respond(recipe.units, drive_of(params, x), prior.log_odds).on
        fitted = chain.ChainFit(
            layout, rows, chain.begin(layout, rows, params, on, recipe.alpha), recipe.alpha, prunes
        )
        return run_epochs(
            fitted.step,
            lambda: fitted.state,
            recipe.max_epochs or CHAIN_EPOCHS,
            callbacks=callbacks,
            verbose=verbose,
        )


def sample(rows: Rows, seed: int) -> Rows:
    """All rows, or as many as the chain graph has room for."""
    most = max(1, MOST_CELLS // rows.X.shape[1])
    if len(rows.weight) <= most:
        return rows
    return rows.take(np.sort(np.random.default_rng(seed).choice(len(rows.weight), most, replace=False)))

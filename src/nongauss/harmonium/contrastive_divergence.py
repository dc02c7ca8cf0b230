"""Learning of the globally normalised model by contrastive divergence of mini-batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from nongauss.core.seeds import generator_at, generator_state
from nongauss.harmonium.config import (
    BIAS_STEP,
    CHAINS,
    CONTRAST_SHARE,
    CROWDED,
    DECAYED,
    EVERY,
    HIDDEN,
    LARGEST_SCALE,
    LEAST_EPOCHS,
    LEAST_EPOCHS_OF_LABELS,
    LEAST_STEPS,
    LIGHTEST,
    MANY_ROWS,
    MOST_RIDGE,
    MOST_SPREAD,
    MOST_VOTE_STEP,
    NOISE_STEP,
    PATIENCE,
    RIDGE_GROWTH,
    VOTE_STEP,
    HarmoniumRecipe,
    LearningRates,
)
from nongauss.harmonium.data import RowSource, VisibleRows, column_means, mean_square, mean_totals, scaled
from nongauss.harmonium.exponential_families import ALWAYS_ON, Array, Layout, dense, totals_of
from nongauss.harmonium.objective import VoteLoss, contrastive_free_energy
from nongauss.harmonium.params import FeaturePrior, HarmoniumParams, start
from nongauss.harmonium.persistent_chains import PersistentChains
from nongauss.harmonium.updates import (
    Adam,
    Contrast,
    beta_log_odds,
    contrast,
    filled_by_mean_field,
    stick_log_odds,
    vote_gradient,
    with_dropout,
    with_hidden_views,
)
from nongauss.tables.source import Stream, itself


def heeds_labels(recipe: HarmoniumRecipe) -> bool:
    """Do labels have a say in the features? With C = 0 they do not."""
    return recipe.n_scores > 0 and recipe.C > 0.0


def n_epochs(recipe: HarmoniumRecipe, n_rows: int) -> int:
    """Epochs of the schedule."""
    if recipe.max_epochs is not None:
        return recipe.max_epochs
    n_batches = -(-n_rows // batch_size(recipe, n_rows))
    least = LEAST_EPOCHS_OF_LABELS if heeds_labels(recipe) else LEAST_EPOCHS
    return max(least, -(-LEAST_STEPS // n_batches))


def batch_size(recipe: HarmoniumRecipe, n_rows: int) -> int:
    """Rows of a batch: at least four batches an epoch where there are rows for it."""
    return max(1, min(recipe.batch_size, max(16, n_rows // 4)))


def dropout_share(recipe: HarmoniumRecipe, rows: VisibleRows) -> float:
    """Share of cells left out on the way to the classes: near one half where rows are long, else little."""
    if recipe.dropout is not None:
        return recipe.dropout
    long = mean_square(rows)
    return 0.5 * long / (long + 10.0)


LARGEST_NORM = 0.95
"""Norm of the weights between real units of both layers, which is below 1 wherever Z is finite."""


def keep_normalisable(weights: Array, layout: Layout) -> None:
    """Shrink weights (D, K) of real visible units beside real hidden ones to a norm below 1, in place.

    At a norm |W| >= 1 the integral of exp(x' W h - |x|^2 / 2 - |h|^2 / 2), so Z, is infinite.
    """
    real = real_columns(layout, len(weights))
    if real.any():
        norm = np.sqrt(np.linalg.eigvalsh(weights[real].T @ weights[real])[-1])
        if norm > LARGEST_NORM:
            weights[real] *= LARGEST_NORM / norm


def real_columns(layout: Layout, n_columns: int) -> Array:
    """Which of the visible units are real: (D,)."""
    out = np.zeros(n_columns, dtype=np.bool_)
    for block in layout:
        out[block.place] = block.kind == "real"
    return out


def _shares(weight: Array) -> Array:
    """Weights (B,) as shares whose sum is 1, float32."""
    shares: Array = (weight / weight.sum()).astype(np.float32)
    return shares


class ContrastiveLearner:
    """Mini-batches with Adam. `epoch` changes the arrays in place; `snapshot` and `learned` copy them.

    `rows` are in memory. Where they are a sample of the table, `all_rows` has the others too.
    """

    def __init__(
        self,
        layout: Layout,
        rows: VisibleRows,
        recipe: HarmoniumRecipe,
        rates: LearningRates,
        n_epochs: int,
        all_rows: RowSource | None = None,
    ) -> None:
        self.layout, self.rows, self.recipe, self.rates = layout, rows, recipe, rates
        self.heeds_labels = heeds_labels(recipe)
        self.rng = np.random.default_rng(recipe.seed)
        self.all_rows = all_rows or RowSource(Stream([rows]), len(rows.weight), float(rows.weight.sum()))
        n_rows, self.total = self.all_rows.n_rows, self.all_rows.weight
        few = max(1.0, float(np.sqrt(MANY_ROWS / n_rows)))
        spread = min(rates.spread * few, MOST_SPREAD)
        sizes = recipe.n_scores, recipe.raw_features
        self.params = start(self.rng, layout, rows, recipe.n_components, spread, rates.hidden_bias, *sizes)
        self.loss = VoteLoss(recipe.margin, recipe.epsilon)
        on = 0.0 if recipe.units == "binary" else ALWAYS_ON
        self.prior = FeaturePrior(np.full(recipe.n_components, on, np.float32), np.zeros((0, 2)))
        self.use, self.used = np.zeros(recipe.n_components), 0.0
        self.adam = Adam(self.moving())
        self.batch = batch_size(recipe, n_rows)
        self.n_batches = -(-n_rows // self.batch)
        self.n_steps, self.done = n_epochs * self.n_batches, 0
        self.weight_step = rates.step / np.sqrt(mean_square(rows))
        self.real = real_columns(layout, rows.X.shape[1])
        self.learns_noise = recipe.noise == "learn" and bool(self.real.any())
        self.ridge, self.overlap = self._restraint()
        self.vote_step = min(VOTE_STEP * few, MOST_VOTE_STEP)
        self.raw_step = self.vote_step / np.sqrt(mean_square(rows))
        self.dropout = dropout_share(recipe, rows) if self.heeds_labels else 0.0
        self.means = column_means(rows).astype(np.float32)
        self.mean_totals = mean_totals(layout, rows)
        chosen = self.rng.integers(0, len(rows.weight), CHAINS)
        self.chains = None
        if recipe.method == "pcd":
            self.chains = PersistentChains(dense(rows.X[chosen], np.float32), self.means, self.params)

    def _restraint(self) -> tuple[float, float]:
        """The ridge, and the price of overlap, that a fit begins with.

        Real units have neither: they do not saturate, and their sizes tell them apart. Persistent chains have
        no ridge: what they climb is the likelihood, which features that are certain do not harm.
        """
        if self.recipe.units == "real":
            return 0.0, 0.0
        overlap = self.rates.overlap / self.total
        if self.heeds_labels:
            overlap /= max(self.recipe.n_scores - 1, 1)
        return 0.0 if self.recipe.method == "pcd" else self.rates.ridge, overlap

    def moving(self) -> tuple[Array, ...]:
        """The arrays that Adam moves: weights, visible and hidden bias, votes, intercept, raw votes."""
        params = self.params
        by_labels = params.votes, params.intercept, params.raw
        return params.weights, params.visible_bias, params.hidden_bias, *by_labels

    @property
    def estimate(self) -> HarmoniumParams:
        """What has been learned so far: of persistent chains the mean of the last steps."""
        return self.params if self.chains is None else HarmoniumParams(*self.chains.mean)

    def learned(self) -> tuple[HarmoniumParams, FeaturePrior]:
        """A copy of what has been learned."""
        return HarmoniumParams(*(np.array(part) for part in self.estimate)), self.prior

    def snapshot(self) -> Any:
        """A copy of all that an epoch depends on."""
        sizes = self.use, self.used, self.done, self.ridge
        chains = () if self.chains is None else self.chains.memory
        return deepcopy((self.params, self.prior, self.adam.memory, sizes, chains, generator_state(self.rng)))

    def restore(self, at: Any) -> None:
        """Go on from what `snapshot` returned."""
        self.params, self.prior, self.adam.memory, sizes, chains, rng = deepcopy(at)
        self.use, self.used, self.done, self.ridge = sizes
        if self.chains is not None:
            self.chains.memory = chains
        self.rng = generator_at(rng)

    def epoch(self, number: int) -> Mapping[str, float]:
        """One pass over all rows in random order: the trace's numbers, averaged over its batches."""
        total: dict[str, float] = {}
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for rows in self._blocks():
                if not len(rows.weight):
                    continue
                order = self.rng.permutation(len(rows.weight))
                if not total:
                    total["contrastive_free_energy"] = self._free_energy(rows.take(order[: self.batch]))
                for at in range(0, len(order), self.batch):
                    for name, value in self._step(rows.take(order[at : at + self.batch])).items():
                        total[name] = total.get(name, 0.0) + value / self.n_batches
        free_energy = total["contrastive_free_energy"] + self.recipe.C * total.get("hinge", 0.0)
        total["bound"] = -self.total * free_energy
        return total

    def _blocks(self) -> Iterator[VisibleRows]:
        """All rows once, those in memory as one block."""
        if self.all_rows.source.n_parts == 1:
            return self.all_rows.source.each(itself)
        return self.all_rows.source.blocks(self.rng)

    def _step(self, batch: VisibleRows) -> dict[str, float]:
        """Move the parameters along the gradient of one batch; returns the labels' loss where they count."""
        params, recipe, log_odds = self.params, self.recipe, self.prior.log_odds
        x = self.complete(params, log_odds, batch)
        n = max(1, int(len(batch.weight) * CONTRAST_SHARE)) if self.heeds_labels else len(batch.weight)
        weight = self._batch_shares(batch.weight[:n])
        overlap = 0.0 if self.heeds_labels else self._overlap_price()
        negative = self._negative_phase(x[:n])
        at = contrast(
            params,
            recipe.units,
            self.layout,
            log_odds,
            x[:n],
            weight,
            ridge=self.ridge,
            overlap=overlap,
            with_scale=self.learns_noise,
            **negative,
        )
        gradient = [at.weights, at.visible_bias, at.hidden_bias]
        gradient += [np.zeros_like(part) for part in (params.votes, params.intercept, params.raw)]
        info = {}
        if self.heeds_labels:
            info["hinge"] = self._add_votes(gradient, x, batch)
        if self.chains is not None and recipe.units == "binary":
            self.chains.see(at.on / weight.sum())
        self._move(tuple(gradient))
        if self.done % EVERY == 0 and at.saturated > CROWDED:
            self.ridge = max(self.ridge, min(RIDGE_GROWTH * self.ridge, MOST_RIDGE))
        self._update_scales(at, float(weight.sum()))
        self._update_sticks(at, float(weight.sum()))
        if self.chains is not None:
            self.chains.average(self.params)
        return info

    def _batch_shares(self, weight: Array) -> Array:
        """Weights of a batch (B,) as shares, whose sum is 1 if its rows are as heavy as the average one."""
        share = weight / (len(weight) * self.total / self.all_rows.n_rows)
        return np.maximum(share, LIGHTEST).astype(np.float32)

    def complete(self, params: HarmoniumParams, log_odds: Array, rows: VisibleRows) -> Any:
        """The cells of rows (B, D), scaled, missing ones at their mean-field expectation."""
        X = scaled(rows.X, params.scale) if self.learns_noise else rows.X
        if rows.missing is None:
            return X
        units, layout = self.recipe.units, self.layout
        return filled_by_mean_field(params, units, layout, log_odds, X, rows.missing, self.mean_totals)

    def score(self, rows: VisibleRows) -> float:
        """Score of held-out rows, larger is better: minus the loss of labels, where a fit learns from these.

        Else minus the contrastive free energy, nats a row.
        """
        if not self.heeds_labels:
            return -self._free_energy(rows)
        log_odds, weight, params = self.prior.log_odds, _shares(rows.weight), self.estimate
        x = self.complete(params, log_odds, rows)
        assert rows.labels is not None
        units, loss = self.recipe.units, self.loss
        return -vote_gradient(params, units, log_odds, x, weight, rows.labels, loss).loss

    def _free_energy(self, batch: VisibleRows) -> float:
        """CF1 a row, nats."""
        log_odds, params = self.prior.log_odds, self.estimate
        x = dense(self.complete(params, log_odds, batch), np.float32)
        totals = totals_of(self.layout, x)
        each = contrastive_free_energy(params, self.recipe.units, self.layout, log_odds, x, totals)
        if self.learns_noise:  # the base measure of scaled cells, log s - x^2 / 2, moves with the scale
            each = each - (np.log(params.scale) - 0.5 * x * x)[:, self.real].sum(axis=1)
        return float(_shares(batch.weight) @ each)

    def _negative_phase(self, x: Any) -> dict[str, Any]:
        """The negative phase as arguments of `contrast`: by means, draws, or persistent chains."""
        if self.recipe.method == "mean_field":
            return {}
        if self.chains is None:
            return {"rng": self.rng}
        log_odds, units = self.prior.log_odds, self.recipe.units
        totals = totals_of(self.layout, x)
        return {"chains": self.chains.sweep(self.rng, self.params, units, self.layout, log_odds, totals)}

    def _add_votes(self, gradient: list[Array], x: Any, batch: VisibleRows) -> float:
        """Add C times the gradient of the labels' loss, and the votes' prior; returns the loss a row."""
        params, recipe = self.params, self.recipe
        seen = with_hidden_views(self.rng, self.layout, x, HIDDEN, self.means)
        seen = with_dropout(self.rng, seen, self.dropout) if self.dropout else seen
        weight = self._batch_shares(batch.weight)
        assert batch.labels is not None
        log_odds, overlap = self.prior.log_odds, self._overlap_price()
        loss = self.loss
        at = vote_gradient(params, recipe.units, log_odds, seen, weight, batch.labels, loss, overlap)
        C = np.float32(recipe.C)
        gradient[0] += C * at.weights
        gradient[2] = gradient[2] + C * at.hidden_bias
        gradient[3] = C * at.votes - params.votes / np.float32(self.total)
        gradient[4] = C * at.intercept
        gradient[5] = C * at.raw - params.raw / np.float32(self.total)
        return at.loss

    def _overlap_price(self) -> float:
        """What overlap of units costs at this step: it rises from 0 with the square of the steps."""
        return self.overlap * (self.done / max(self.n_steps, 1)) ** 2

    def _step_left(self) -> float:
        """The share of the first step that is left: it falls in a straight line, to `DECAYED`."""
        return 1.0 - (1.0 - DECAYED) * self.done / max(self.n_steps, 1)

    def _move(self, gradients: tuple[Array, ...]) -> None:
        """One step of Adam, each kind of parameter by its own step size."""
        left = self._step_left()
        self.done += 1
        bias = min(BIAS_STEP, self.weight_step)
        rates = (self.weight_step, bias, bias, self.vote_step, self.vote_step, self.raw_step)
        steps = tuple(rate * left for rate in rates)
        if self.chains is None:
            self.adam.step(self.moving(), gradients, steps)
        else:
            self.chains.step(self.adam, self.params, self.moving(), gradients, steps)
        if self.recipe.units == "real":
            keep_normalisable(self.params.weights, self.layout)

    def _update_scales(self, at: Contrast, counts: float) -> None:
        """Move the scales of real columns, 1 / sigma_1, up the likelihood, where they are learned."""
        if at.scale is None:
            return
        step = NOISE_STEP * self._step_left() * np.clip(at.scale[self.real] / counts, -1.0, 1.0)
        scale = self.params.scale
        scale[self.real] = np.clip(scale[self.real] * np.exp(step), 1.0 / LARGEST_SCALE, LARGEST_SCALE)

    def _update_sticks(self, at: Contrast, counts: float) -> None:
        """Follow the use of the units in batches by a running mean; `counts` is what the batch counts for."""
        if not (self.recipe.has_sticks or self.recipe.has_beta):
            return
        self.used += counts
        rate = min(counts * max(1.0 / self.used, 1.0 / (10.0 * self.n_batches)), 1.0)
        self.use += rate * (at.on / counts - self.use)
        if self.done % EVERY == 0:
            self.set_sticks(self.use)

    def set_sticks(self, use: Array) -> None:
        """Set the prior to that of sticks, or betas, whose units are on in a share `use` (K,) of the rows."""
        order = np.argsort(-use, kind="stable")
        N = self.total
        if self.recipe.has_beta:
            odds, gamma = beta_log_odds(N * use, N, self.recipe.alpha)
            self.prior = FeaturePrior(odds.astype(np.float32), gamma)
            return
        odds, gamma = stick_log_odds(
            N * use[order], N, self.recipe.alpha, self.recipe.stick_expectation == "accurate"
        )
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        self.prior = FeaturePrior(odds[place].astype(np.float32), gamma[place])


class EarlyStoppingLearner:
    """A learner whose epochs are judged by held-out rows. `best`: what it had learned by the best epoch."""

    def __init__(self, learner: ContrastiveLearner, held: VisibleRows) -> None:
        self.learner, self.held = learner, held
        self.score, self.number, self.best = -np.inf, 0, learner.learned()

    def epoch(self, number: int) -> Mapping[str, float]:
        """An epoch of the learner; "stop" is 1 once held-out rows have not gained for `PATIENCE` epochs."""
        info, score = self.learner.epoch(number), self.learner.score(self.held)
        if score > self.score:
            self.score, self.number, self.best = score, number, self.learner.learned()
        return {**info, "held_out": score, "stop": float(number - self.number >= PATIENCE)}

    def snapshot(self) -> Any:
        """A copy of all that an epoch depends on."""
        return self.learner.snapshot(), self.score, self.number, self.best

    def restore(self, at: Any) -> None:
        """Go on from what `snapshot` returned."""
        learner, self.score, self.number, self.best = at
        self.learner.restore(learner)

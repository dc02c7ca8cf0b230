"""Mini-batches by contrastive divergence with Adam: the recipe as data, and one epoch of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from nongauss.core.seeds import generator_at, generator_state
from nongauss.harmonium import stick_breaking as sticks
from nongauss.harmonium.exponential_families import ALWAYS_ON, Array, Layout, dense, totals_of
from nongauss.harmonium.objective import contrastive_free_energy
from nongauss.harmonium.params import Params, Prior, Rows, activity, column_means, start, usual_totals
from nongauss.harmonium.updates import (
    Adam,
    Contrast,
    advance,
    contrast,
    dropped,
    filled,
    hidden_views,
    hinge,
)
from nongauss.tables.source import Source, Stream, itself

LEAST_EPOCHS, LEAST_STEPS = 12, 600
"""By default so many epochs, or more until there were so many steps."""


class Rates(NamedTuple):
    """Step size, start, and what restrains the weights.

    A unit's drive moves by about `step` (of weights) a step, whatever the columns. `ridge` (a row) keeps
    units from saturating, `overlap` (over all rows) from all saying the same: part of the loss with
    labels. It is shared out between the directions in which the votes of classes can differ, and rises
    from 0 with the square of the steps: units start alike and have to learn first.
    """

    step: float
    drive: float
    hidden_bias: float
    ridge: float
    overlap: float


UNSUPERVISED = Rates(step=0.09, drive=0.9, hidden_bias=-2.0, ridge=0.03, overlap=500.0)
SUPERVISED = Rates(step=0.027, drive=0.3, hidden_bias=0.0, ridge=0.03, overlap=300.0)
RIDGE_GROWTH, MOST_RIDGE, CROWDED = 1.1, 0.3, 0.7
"""While 70 % of the activations are saturated, the ridge grows by a tenth every ten steps, up to .3."""

VOTE_STEP, MOST_VOTE_STEP, MOST_DRIVE, MANY_ROWS = 3e-3, 1e-2, 0.9, 1e4
"""Step size of the votes with so many rows or more, and with few: small sets want larger votes than texts.

They also want a larger start, or all units learn the same; on texts it stays as noise in rare words.
"""

BIAS_STEP = 1e-2
DECAYED = 0.05
"""The last step is this share of the first; sizes fall in a straight line."""

CONTRAST_SHARE = 0.25
"""With labels, contrastive divergence sees this share of each batch: the same error, 2.5 times faster."""

HIDDEN = 0.5
"""With several views, this share of a batch hides one of them, drawn at random, from the classes."""

LIGHTEST = 1e-30
"""Rows lighter than this, against the average, count as this: within float32."""

CHAINS = 64
EVERY = 10


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
    margin: float
    dropout: float | None
    held_out: float
    n_classes: int
    seed: int

    @property
    def heeds_labels(self) -> bool:
        """Do labels have a say in the features? With C = 0 they do not."""
        return self.n_classes > 0 and self.C > 0.0


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


class Everywhere(NamedTuple):
    """All rows wherever they are, in parts that are `Rows`; their number, total weight and checksum."""

    source: Source
    n_rows: int
    weight: float
    checksum: int = 0


class Learner:
    """Mini-batches with Adam. `epoch` changes the arrays in place; `snapshot` and `learned` copy them.

    Where the rows are in parts, `everywhere` has them all, and `rows` is a sample.
    """

    def __init__(
        self,
        layout: Layout,
        rows: Rows,
        recipe: Recipe,
        rates: Rates,
        n_epochs: int,
        everywhere: Everywhere | None = None,
    ) -> None:
        self.layout, self.rows, self.recipe, self.rates = layout, rows, recipe, rates
        self.rng = np.random.default_rng(recipe.seed)
        self.everywhere = everywhere or Everywhere(Stream([rows]), len(rows.weight), float(rows.weight.sum()))
        n_rows, self.total = self.everywhere.n_rows, self.everywhere.weight
        few = max(1.0, float(np.sqrt(MANY_ROWS / n_rows)))
        drive = min(rates.drive * few, MOST_DRIVE)
        self.params = start(
            self.rng, layout, rows, recipe.n_components, drive, rates.hidden_bias, recipe.n_classes
        )
        on = 0.0 if recipe.units == "binary" else ALWAYS_ON
        self.prior = Prior(np.full(recipe.n_components, on, np.float32), np.zeros((0, 2)))
        self.use, self.used = np.zeros(recipe.n_components), 0.0
        self.adam = Adam(self.moving())
        self.batch = batch_size(recipe, n_rows)
        self.n_batches = -(-n_rows // self.batch)
        self.n_steps, self.done = n_epochs * self.n_batches, 0
        self.weight_step = rates.step / np.sqrt(activity(rows))
        self.ridge = rates.ridge
        self.overlap = rates.overlap / self.total
        if recipe.heeds_labels:
            self.overlap /= max(recipe.n_classes - 1, 1)
        if recipe.units == "real":  # they do not saturate, and their sizes tell them apart
            self.ridge = self.overlap = 0.0
        self.vote_step = min(VOTE_STEP * few, MOST_VOTE_STEP)
        self.dropout = dropout_share(recipe, rows) if recipe.heeds_labels else 0.0
        self.means = column_means(rows).astype(np.float32)
        self.usual = usual_totals(layout, rows)
        chosen = self.rng.integers(0, len(rows.weight), CHAINS)
        self.chains = dense(rows.X[chosen], np.float32) if recipe.method == "pcd" else None

    def moving(self) -> tuple[Array, ...]:
        """The arrays that Adam moves: weights, visible and hidden bias, votes, intercept."""
        params = self.params
        return params.weights, params.visible_bias, params.hidden_bias, params.votes, params.intercept

    def learned(self) -> tuple[Params, Prior]:
        """A copy of what has been learned."""
        return Params(*(np.array(part) for part in self.params)), self.prior

    def snapshot(self) -> Any:
        """A copy of all that an epoch depends on."""
        sizes = self.use, self.used, self.done, self.ridge, self.chains
        return deepcopy((self.params, self.prior, self.adam.memory, sizes, generator_state(self.rng)))

    def restore(self, at: Any) -> None:
        """Be there."""
        self.params, self.prior, self.adam.memory, sizes, rng = deepcopy(at)
        self.use, self.used, self.done, self.ridge, self.chains = sizes
        self.rng = generator_at(rng)

    def epoch(self, number: int) -> Mapping[str, float]:
        """All rows once, in random order."""
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

    def _blocks(self) -> Iterator[Rows]:
        """All rows once; those in memory are one block."""
        if self.everywhere.source.n_parts == 1:
            return self.everywhere.source.each(itself)
        return self.everywhere.source.blocks(self.rng)

    def _step(self, batch: Rows) -> dict[str, float]:
        params, recipe, prior = self.params, self.recipe, self.prior.log_odds
        x = self.whole(params, prior, batch)
        n = max(1, int(len(batch.weight) * CONTRAST_SHARE)) if recipe.heeds_labels else len(batch.weight)
        weight = self._counts(batch.weight[:n])
        at = contrast(
            params, recipe.units, self.layout, prior, x[:n], weight, ridge=self.ridge,
            overlap=0.0 if recipe.heeds_labels else self._price(), **self._negative(x[:n]),
        )  # fmt: skip
        gradient = [at.weights, at.visible_bias, at.hidden_bias]
        gradient += [np.zeros_like(params.votes), np.zeros_like(params.intercept)]
        info = {}
        if recipe.heeds_labels:
            info["hinge"] = self._labels(gradient, x, batch)
        self._move(tuple(gradient))
        if self.done % EVERY == 0 and at.saturated > CROWDED:
            self.ridge = max(self.ridge, min(RIDGE_GROWTH * self.ridge, MOST_RIDGE))
        self._update_sticks(at, float(weight.sum()))
        return info

    def _counts(self, weight: Array) -> Array:
        """Shares of some rows (B,), whose sum is 1 if they are as heavy as rows are on average."""
        share = weight / (len(weight) * self.total / self.everywhere.n_rows)
        return np.maximum(share, LIGHTEST).astype(np.float32)

    def whole(self, params: Params, prior: Array, rows: Rows) -> Any:
        """Rows whose gaps, if they have some, are filled by mean field."""
        if rows.missing is None:
            return rows.X
        return filled(params, self.recipe.units, self.layout, prior, rows.X, rows.missing, self.usual)

    def score(self, rows: Rows) -> float:
        """How well rows that were held out fare, nats or margin a row: minus CF1, or minus the hinge."""
        if not self.recipe.heeds_labels:
            return -self._free_energy(rows)
        x = self.whole(self.params, self.prior.log_odds, rows)
        assert rows.labels is not None
        weight = _shares(rows.weight)
        at = hinge(
            self.params, self.recipe.units, self.prior.log_odds, x, weight, rows.labels, self.recipe.margin
        )
        return -at.loss

    def _free_energy(self, batch: Rows) -> float:
        """CF1 a row."""
        prior = self.prior.log_odds
        x = dense(self.whole(self.params, prior, batch), np.float32)
        totals = totals_of(self.layout, x)
        each = contrastive_free_energy(self.params, self.recipe.units, self.layout, prior, x, totals)
        return float(_shares(batch.weight) @ each)

    def _negative(self, x: Any) -> dict[str, Any]:
        """What the negative phase starts from, by method."""
        if self.recipe.method == "mean_field":
            return {}
        if self.chains is not None:
            totals = totals_of(self.layout, dense(x, np.float32))
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
        seen = hidden_views(self.rng, self.layout, x, HIDDEN, self.means)
        seen = dropped(self.rng, seen, self.dropout) if self.dropout else seen
        weight = self._counts(batch.weight)
        assert batch.labels is not None
        at = hinge(
            params, recipe.units, self.prior.log_odds, seen, weight, batch.labels, recipe.margin,
            self._price(),
        )  # fmt: skip
        C = np.float32(recipe.C)
        gradient[0] += C * at.weights
        gradient[2] = gradient[2] + C * at.hidden_bias
        gradient[3] = C * at.votes - params.votes / np.float32(self.total)
        gradient[4] = C * at.intercept
        return at.loss

    def _price(self) -> float:
        """What overlap costs at this step."""
        return self.overlap * (self.done / max(self.n_steps, 1)) ** 2

    def _move(self, gradients: tuple[Array, ...]) -> None:
        left = 1.0 - (1.0 - DECAYED) * self.done / max(self.n_steps, 1)
        self.done += 1
        bias = min(BIAS_STEP, self.weight_step)
        rates = (self.weight_step, bias, bias, self.vote_step, self.vote_step)
        self.adam.step(self.moving(), gradients, tuple(rate * left for rate in rates))
        if self.recipe.units == "real":
            contract(self.params.weights, self.layout)

    def _update_sticks(self, at: Contrast, counts: float) -> None:
        if not self.recipe.has_sticks:
            return
        self.used += counts
        rate = min(counts * max(1.0 / self.used, 1.0 / (10.0 * self.n_batches)), 1.0)
        self.use += rate * (at.on / counts - self.use)
        if self.done % EVERY == 0:
            self.set_sticks(self.use)

    def set_sticks(self, use: Array) -> None:
        """The prior of units that a share `use` (K,) of the rows has."""
        order = np.argsort(-use, kind="stable")
        N = self.total
        odds, gamma = sticks.log_odds(N * use[order], N, self.recipe.alpha, self.recipe.accurate)
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

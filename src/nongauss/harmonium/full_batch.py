"""The globally normalised model learned from all rows at once: an objective for L-BFGS, as in the paper."""

from __future__ import annotations

import numpy as np

from nongauss.harmonium.config import SOFTNESS
from nongauss.harmonium.contrastive_divergence import ContrastiveLearner, keep_normalisable
from nongauss.harmonium.exponential_families import Array, dense, respond, totals_of
from nongauss.harmonium.objective import VoteLoss, contrastive_free_energy
from nongauss.harmonium.params import HarmoniumParams
from nongauss.harmonium.updates import contrast, preactivation, vote_gradient


class FullBatchObjective:
    """N (-CF1 - C loss) - |votes|^2 / 2 of all rows and its gradient, at parameters as one flat vector.

    q0 and q1 are held fixed in the gradient, as in the paper; the loss of labels is softened.
    """

    def __init__(self, learner: ContrastiveLearner) -> None:
        self.learner = learner
        self.shapes = [part.shape for part in learner.moving()]
        self.scale = np.ones(len(learner.params.scale))

    def params_of(self, flat: Array) -> HarmoniumParams:
        """The vector as parameters, which are normalisable: see `keep_normalisable`."""
        cuts = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        W, eta, beta, votes, intercept, raw = (
            part.reshape(shape) for part, shape in zip(np.split(flat, cuts), self.shapes, strict=True)
        )
        if self.learner.recipe.units == "real":
            W = W.copy()
            keep_normalisable(W, self.learner.layout)
        return HarmoniumParams(W, eta, beta, self.scale, votes, intercept, raw)

    def use(self, flat: Array) -> Array:
        """Share of the rows that have each unit, (K,)."""
        rows, log_odds = self.learner.rows, self.learner.prior.log_odds.astype(np.float64)
        params = self.params_of(flat)
        x = self.learner.complete(params, log_odds, rows)
        on = respond(self.learner.recipe.units, preactivation(params, x), log_odds).on
        used: Array = rows.weight @ on / rows.weight.sum()
        return used

    def __call__(self, flat: Array) -> tuple[float, Array, float]:
        """(objective, its gradient, the objective again as the bound of the trace)."""
        rows, recipe, layout = self.learner.rows, self.learner.recipe, self.learner.layout
        params, log_odds = self.params_of(flat), self.learner.prior.log_odds.astype(np.float64)
        N, weight = rows.weight.sum(), rows.weight / rows.weight.sum()
        x = self.learner.complete(params, log_odds, rows)
        at = contrast(params, recipe.units, layout, log_odds, x, weight)
        whole = dense(x, np.float32).astype(np.float64)
        totals = totals_of(layout, whole)
        each = contrastive_free_energy(params, recipe.units, layout, log_odds, whole, totals)
        value = -float(weight @ each) - 0.5 * float((params.votes**2).sum() + (params.raw**2).sum()) / N
        by_votes, by_intercept, by_raw = -params.votes / N, np.zeros_like(params.intercept), -params.raw / N
        by_weights, by_bias = at.weights, at.hidden_bias
        if self.learner.heeds_labels:
            assert rows.labels is not None
            loss = VoteLoss(recipe.margin, recipe.epsilon, SOFTNESS)
            labels = vote_gradient(params, recipe.units, log_odds, x, weight, rows.labels, loss)
            value -= recipe.C * labels.loss
            by_weights = by_weights + recipe.C * labels.weights
            by_bias = by_bias + recipe.C * labels.hidden_bias
            by_votes = by_votes + recipe.C * labels.votes
            by_intercept, by_raw = recipe.C * labels.intercept, by_raw + recipe.C * labels.raw
        gradient = (by_weights, at.visible_bias, by_bias, by_votes, by_intercept, by_raw)
        flat_gradient = np.concatenate([part.ravel() for part in gradient]).astype(np.float64)
        return N * value, N * flat_gradient, N * value

"""What is estimated: weights between the layers, biases, scales of real columns, votes of the classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import logit

from nongauss.core.records import persistable
from nongauss.core.schema import refuse_huge
from nongauss.harmonium.data import VisibleRows, column_means, mean_square
from nongauss.harmonium.exponential_families import Array, Layout

SHARE = 1e-4
"""Shares of ones closer to 0 or 1 than this count as this when biases start."""


@persistable("harmonium.Params", "nongauss.harmonium.params:Params")
class HarmoniumParams(NamedTuple):
    """Weights W (D, K), biases eta (D,) and beta (K,), scale (D,), votes (C, K), intercept (C,), raw (C, D).

    `scale` multiplies encoded real columns so that their noise has variance 1; it is 1 for the others, and
    for all in the globally normalised model unless the noise is learned there. Without labels
    C is 0, of numbers it is 1. `raw` are votes of the visible units themselves; without any it has no
    columns.
    """

    weights: Float[np.ndarray, "D K"]
    visible_bias: Float[np.ndarray, " D"]
    hidden_bias: Float[np.ndarray, " K"]
    scale: Float[np.ndarray, " D"]
    votes: Float[np.ndarray, "C K"]
    intercept: Float[np.ndarray, " C"]
    raw: Float[np.ndarray, "rows columns"] = np.zeros((0, 0))

    def check_fields(self) -> None:
        """Raises ValueError for parameters that no fit has."""
        refuse_huge(self)

    @property
    def n_components(self) -> int:
        """Number K of hidden units."""
        return int(self.weights.shape[1])

    def keep(self, units: Array) -> HarmoniumParams:
        """The parameters with only these hidden units, in this order."""
        return self._replace(
            weights=self.weights[:, units],
            hidden_bias=self.hidden_bias[units],
            votes=self.votes[:, units],
        )


@persistable("harmonium.Prior", "nongauss.harmonium.params:Prior")
class FeaturePrior(NamedTuple):
    """Prior log odds of each hidden unit to be on, (K,), and gamma (K, 2) of the sticks, if there are any."""

    log_odds: Float[np.ndarray, " K"]
    gamma: Float[np.ndarray, "sticks 2"]


def start_biases(layout: Layout, rows: VisibleRows) -> Array:
    """Visible biases at which the model without hidden units has the means of the data: (D,)."""
    means = column_means(rows)
    out = means.copy()
    for block in layout:
        part = means[block.place]
        if block.kind == "binary":
            out[block.place] = logit(np.clip(part, SHARE, 1 - SHARE))
        elif block.kind == "counts":
            out[block.place] = np.log(np.maximum(part, SHARE * max(float(part.sum()), SHARE) / len(part)))
    return out


def start(
    rng: np.random.Generator,
    layout: Layout,
    rows: VisibleRows,
    n_components: int,
    spread: float,
    hidden_bias: float,
    n_scores: int,
    has_raw: bool = False,
) -> HarmoniumParams:
    """Normal weights, with which a hidden unit's preactivation has standard deviation `spread`; no votes."""
    D = rows.X.shape[1]
    weights = rng.standard_normal((D, n_components)) * (spread / np.sqrt(mean_square(rows)))
    return HarmoniumParams(
        weights.astype(np.float32),
        start_biases(layout, rows).astype(np.float32),
        np.full(n_components, hidden_bias, np.float32),
        np.ones(D, np.float32),
        np.zeros((n_scores, n_components), np.float32),
        np.zeros(n_scores, np.float32),
        np.zeros((n_scores, D if has_raw else 0), np.float32),
    )

"""What a user chooses of the rank factors: parameters, settings of a model, of a fit."""

from __future__ import annotations

import numbers
from typing import Annotated, NamedTuple

from nongauss.core.records import persistable
from nongauss.estimator.base import Interval

MOST_LEVELS = 254
"""Most levels of a column: a level's number takes 8 bits, and one number says that there is none."""

LevelCount = Annotated[int, Interval(numbers.Integral, 2, MOST_LEVELS, closed="both")]

MOST_FACTORS, MOST_FACTORS_OF_FEW, FEW_ROWS = 20, 10, 100
"""For n_factors="auto": the most factors, and the most where rows are fewer than so many."""
MARGIN, MARGIN_OF_PAIRS = 1.0, 10.0
"""For epsilon="auto": the margin of a rank, and that of the rules "pairwise" and "extremes".

Chains over pairs have the first, too: at the second they stay in the mode where they start.
"""
ITERATIONS = {"vb": 100, "gibbs": 1000, "predictive": 500}
"""For max_iter="auto": sweeps or epochs by the kind of inference."""

SLAB, NOISE_SHAPE, NOISE_RATE, OFFSET_PRECISION = 1.0, 1.0, 0.1, 0.01
"""Defaults of the priors: see `ShrinkagePrior`."""


@persistable("rank_factor.Prior", "nongauss.rank_factor.shrinkage:Prior")
class ShrinkagePrior(NamedTuple):
    """Shapes r of the local variances and s of their rates, near a shrinkage factor of 1 and of 0; the rest.

    `slab`: precision of a second, normal prior of loadings of ranks, whose scale no order of values tells.
    noise_shape, noise_rate: gamma prior of the inverse noise variance of a standardised column.
    `offset_precision`: of an expert's offset, which is not shrunk.
    """

    r: float = 0.5
    s: float = 0.5
    slab: float = SLAB
    noise_shape: float = NOISE_SHAPE
    noise_rate: float = NOISE_RATE
    offset_precision: float = OFFSET_PRECISION


@persistable("rank_factor.Config", "nongauss.rank_factor.params:Config")
class RankConfig(NamedTuple):
    """Settings of a model: K factors, T experts, C outputs of the classifier (0: no labels), and its rules.

    `eps`: the margin of a rank, an inverse temperature (see NOTATION.md). `prior`: shapes of the shrinkage.
    `cut`: the classifier learns from factors that have not seen the labels.
    """

    n_factors: int
    observation: str = "rank"
    neighbours: str = "level"
    eps: float = 1.0
    n_experts: int = 1
    n_outputs: int = 0
    cut: bool = True
    prior: ShrinkagePrior = ShrinkagePrior()

    @property
    def is_level(self) -> bool:
        """Are the neighbours of a cell the means of levels?"""
        return self.observation == "rank" and self.neighbours == "level"

    @property
    def is_pairwise(self) -> bool:
        """Is the likelihood one density over pairs of rows?"""
        return self.observation == "rank" and self.neighbours == "pairwise"


class RankRecipe(NamedTuple):
    """How a fit is run: "vb", "gibbs" or "predictive"; at most `max_iter` sweeps (of a chain, or epochs).

    `tol` is relative to the bound; `n_draws` are kept of all chains; `learning_rate` is that of "predictive".
    """

    inference: str
    max_iter: int
    tol: float
    seed: int
    n_chains: int
    n_draws: int
    learning_rate: float = 0.0

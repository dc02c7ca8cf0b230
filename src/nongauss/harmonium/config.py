"""What a user chooses of a harmonium, and defaults: the recipe of a fit, rates."""

from __future__ import annotations

from typing import NamedTuple

LARGEST_TRUNCATION = 200
MOST_SAMPLED = 50_000
"""Distinct rows of a table in parts that are in memory; what epochs do not learn is learned from them."""

# ------------------------------------------------------------- what a fit is


class HarmoniumRecipe(NamedTuple):
    """How a model is fitted; see the parameters of `Harmonium`, `HarmoniumClassifier`, `HarmoniumRegressor`.

    `validation_fraction` is 0 without early stopping, `dropout` None where the rows decide. `n_scores`: what
    is learned with the columns, a score of each class, one of a number, none without labels. `epsilon`: half
    the width of the tube of a number, in standard deviations; None of classes.
    """

    n_components: int
    units: str
    method: str
    max_epochs: int | None
    batch_size: int
    has_sticks: bool
    alpha: float
    stick_expectation: str
    validation_fraction: float
    seed: int
    n_scores: int = 0
    C: float = 0.0
    margin: float = 1.0
    dropout: float | None = 0.0
    epsilon: float | None = None
    raw_features: bool = False
    prior: str = "auto"
    noise: str = "fixed"

    @property
    def has_beta(self) -> bool:
        """Has each of a finite number of features a beta prior of its own?"""
        return self.prior == "beta"


class ChainEffort(NamedTuple):
    """What the chain graph may take: `work`, cells times units of an iteration; `trials`, units that it tries
    in vain to do without before it ends."""

    work: float
    trials: int


THOROUGH, QUICK = ChainEffort(8e8, 3), ChainEffort(1.2e8, 1)
"""The chain graph as a model of its own, and where it only counts features."""

CHAIN_EPOCHS = 400
"""Most iterations of the chain graph; it mostly settles much earlier."""

MOST_CELLS = 2**22
"""The chain graph finds the number of features on so many cells at most: a sample of the rows."""

FIRST_SCALE, GROWTH, LARGEST_SCALE = 3.0, 1.03, 20.0
"""Real columns are scaled up at most so much, growing by iteration: noise of 1/20 of the standard deviation.

At once, many units could explain every row and leave no noise; then none is idle.
"""

# ------------------------------------------------------------- the schedule

LEAST_EPOCHS, LEAST_EPOCHS_OF_LABELS, LEAST_STEPS = 12, 24, 600
"""By default so many epochs, with labels the second number, or more until there were so many steps."""

FIRST_WORK, FEWEST_STEPS = 5e9, 60
"""Cells times units, and steps at least, of the contrastive divergence that the chain graph starts from."""

PATIENCE = 5
"""Epochs without a gain on held-out rows after which an early-stopping fit ends."""

STICK_ROUNDS = 10
"""Climbs by L-BFGS between which the sticks follow."""

# ------------------------------------------------------------- rates


class LearningRates(NamedTuple):
    """Step size, start, and what restrains the weights.

    A hidden unit's preactivation moves by about `step` (of weights) a step, whatever the columns, and starts
    with standard deviation `spread`. `ridge` (a row) keeps units from saturating, `overlap` (over all rows)
    from all saying the same: part of the loss with labels. It is shared out between the directions in which
    the votes of classes can differ, and rises from 0 with the square of the steps: units start alike and have
    to learn first.
    """

    step: float
    spread: float
    hidden_bias: float
    ridge: float
    overlap: float


UNSUPERVISED = LearningRates(step=0.09, spread=0.9, hidden_bias=-2.0, ridge=0.03, overlap=500.0)
SUPERVISED = LearningRates(step=0.027, spread=0.3, hidden_bias=0.0, ridge=0.03, overlap=300.0)
RIDGE_GROWTH, MOST_RIDGE, CROWDED = 1.1, 0.3, 0.7
"""While 70 % of the activations are saturated, the ridge grows by a tenth every ten steps, up to .3."""

VOTE_STEP, MOST_VOTE_STEP, MOST_SPREAD, MANY_ROWS = 3e-3, 1e-2, 0.9, 1e4
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

SOFTNESS = 0.1
"""Softness of the hinge that L-BFGS climbs: all classes tie at the start, where a hinge has no gradient."""

LIGHTEST = 1e-30
"""Rows lighter than this, against the average, count as this: within float32."""

NOISE_STEP = 0.05
"""Step size of the logarithm of a real column's scale, which falls as the others do."""

CHAINS, EVERY = 64, 10
"""Number of persistent chains; steps between two updates of ridge and sticks."""

CENTRE_STEP, AVERAGED = 0.01, 0.1
"""How far the centre of hidden units follows a batch; share of the steps whose mean is what is learned."""

WIDEST = 4.0
"""Log temperatures of class probabilities are sought within this of 0."""

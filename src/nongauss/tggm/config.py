"""What a user chooses: the legal values of the parameters, and the settings that they become."""

from __future__ import annotations

import math
import numbers
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np

from nongauss.core.errors import InputError
from nongauss.core.records import persistable, value
from nongauss.estimator.base import Interval

LayerSizes = Annotated[
    tuple[int, ...] | int, "array-like", Interval(numbers.Integral, 1, None, closed="left")
]

ChosenLayerSizes = LayerSizes | Literal["auto"]
"""Units of each hidden layer, or "auto": held-out rows choose between the layers `PLAIN` and `DEEP` below."""

Skip = Literal["linear", "auto"] | None
"""Of a model whose outputs may have a linear term of the inputs beside the units."""

HAS_SKIP = {None: False, "linear": True, "auto": None}
"""Each of these as `NetworkConfig` has it: None is left to held-out rows."""

PLAIN, DEEP = (50,), (50, 50)
"""Layers that are tried where their sizes are left to the fit."""

LEAST_BATCH, MOST_BATCH = 32, 256
"""Rows of a batch whose size is left to the fit: a fiftieth of all rows within these."""

STEPS = (4000, 12_000)
"""Fewest and most optimiser steps of a fit whose number of epochs is left to it."""

ROWS_SEEN = 1_024_000
"""Rows an "auto" fit looks at: steps = ROWS_SEEN / batch size, held within `STEPS` (small batches need more
steps)."""

EPOCHS = (15, 1000)
"""Fewest and most epochs of such a fit, whatever its steps."""

WORD_DROPOUT = 0.5
"""Share of the filled cells of a sparse row that a training step leaves out: no single word decides."""

DENSE_DROPOUT = ((300, 0.4), (20, 0.2))
"""The same of a dense table of labels: from so many encoded columns on, this share."""


PAPER_RATE, PAPER_EPOCHS = 1e-3, 40
"""Step size, within the paper's [1e-4, 5e-3], and epochs, those of the protocol that its Table 1 follows."""

PAPER_BATCHES = {False: (50, 100), True: (200, 500)}
"""Rows of a batch, of numbers and of labels: of a table of up to, and of more than, `PAPER_MANY` rows."""

PAPER_MANY = 20_000

PAPER_VARIANCE = {"ml": 0.5, "bp": 0.01}
"""The fixed hidden variance by method; that of the noise of numbers is 0.5."""


@persistable("tggm.Config", "nongauss.tggm.params:Config")
@value
class NetworkConfig:
    """The settings that a compiled step depends on.

    `layers`: M of each hidden layer, empty where held-out rows choose. `method`: "ml" or "bp"; `posterior`:
    "moments", "exact" or "mean_field" (of `ml`); `n_sweeps`: sweeps of the last. `hidden_variance`,
    `noise_variance`: a number fixes it, None learns it.
    `n_classes`: 0 if the targets are numbers; labels have one output if there are two, else one a class.
    `dropout`: share of the cells that a training step leaves out, None where the table decides.
    `directions`: of each input 1 where outputs may only rise with it, -1 fall, 0 either; empty where all are
    free. `n_heads`: truncated-Gaussian outputs that a number is a mixture of, None where held-out rows
    choose. `preset`: "paper" for its start values, its optimiser and no prior of the weights, else "".
    `skip`: is there a linear term of the inputs beside the units, None where held-out rows choose.
    """

    layers: tuple[int, ...]
    method: str
    posterior: str
    n_sweeps: int
    hidden_variance: float | None
    noise_variance: float | None
    n_classes: int = 0
    dropout: float | None = 0.0
    directions: tuple[int, ...] = ()
    n_heads: int | None = 1
    preset: str = ""
    skip: bool | None = False

    @property
    def prior(self) -> str:
        """How the last layer depends on x: "means" or "moments" go up layer by layer, or "mean_field"."""
        if self.method == "bp":
            return "means"
        return "mean_field" if self.posterior == "mean_field" and len(self.layers) > 1 else "moments"


@value
class TrainingRecipe:
    """How an ensemble is trained; see the parameters of `TGGMRegressor`.

    `batch_size` and `max_epochs` are None where they are left to the fit; `validation_fraction` is 0 where
    no row is held out. `batches`: rows of a batch of smaller and of larger tables, where these are given.
    """

    n_members: int
    batch_size: int | None
    learning_rate: float
    max_epochs: int | None
    n_iter_no_change: int
    tol: float
    validation_fraction: float
    batches: tuple[int, int] | None = None

    def rows_a_batch(self, n_rows: int) -> int:
        """Rows in a batch. By default a fiftieth of the rows, between 32 and 256."""
        asked = self.batch_size
        if self.batches is not None:
            asked = self.batches[n_rows > PAPER_MANY]
        size = max(LEAST_BATCH, min(MOST_BATCH, n_rows // 50)) if asked is None else asked
        return min(size, max(n_rows, 1))

    def n_epochs(self, n_rows: int) -> int:
        """Epochs. By default as many as make `ROWS_SEEN` rows and `STEPS` steps, within `EPOCHS`."""
        if self.max_epochs is not None:
            return self.max_epochs
        size = self.rows_a_batch(n_rows)
        steps = np.clip(ROWS_SEEN / size, *STEPS)
        return int(np.clip(math.ceil(steps * size / n_rows), *EPOCHS))


def layers_of(sizes: Any) -> tuple[int, ...]:
    """The number of units of each hidden layer, of which a single number is the only one; none of "auto".

    Raises InputError for `hidden_layer_sizes` that are no whole numbers above 0.
    """
    if isinstance(sizes, str) and sizes == "auto":
        return ()
    layers = (sizes,) if isinstance(sizes, numbers.Integral) else tuple(sizes)
    if not layers or not all(isinstance(size, numbers.Integral) and int(size) >= 1 for size in layers):
        raise InputError(
            f"hidden_layer_sizes must hold a whole number of units for each hidden layer, got {sizes!r}; "
            "pass for example (50,) or (200, 200)."
        )
    return tuple(map(int, layers))


def as_in_the_paper(
    config: NetworkConfig, recipe: TrainingRecipe, are_labels: bool
) -> tuple[NetworkConfig, TrainingRecipe]:
    """The settings of the paper's section 5 for these layers and this method.

    One member, all rows in training, fixed variances, mean field with 10 cycles (of labels 30). What the
    paper does not say: `NOTATION.md`.
    """
    config = replace(
        config,
        posterior="mean_field" if config.method == "ml" else "moments",
        n_sweeps=30 if are_labels else 10,
        hidden_variance=PAPER_VARIANCE[config.method],
        noise_variance=1.0 if are_labels else 0.5,
        n_heads=1,
        dropout=0.0,
        preset="paper",
        skip=False,
    )
    recipe = replace(
        recipe,
        n_members=1,
        batch_size=None,
        learning_rate=PAPER_RATE,
        max_epochs=PAPER_EPOCHS,
        validation_fraction=0.0,
        batches=PAPER_BATCHES[are_labels],
    )
    return config, recipe

"""What a user chooses: the legal values of the parameters, and the settings that they become."""

from __future__ import annotations

import math
import numbers
from typing import Annotated, Any

import numpy as np

from nongauss.core.errors import InputError
from nongauss.core.records import persistable, value
from nongauss.estimator.base import Interval

LayerSizes = Annotated[
    tuple[int, ...] | int, "array-like", Interval(numbers.Integral, 1, None, closed="left")
]

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


@persistable("tggm.Config", "nongauss.tggm.params:Config")
@value
class NetworkConfig:
    """The settings that a compiled step depends on.

    `layers`: M of each hidden layer. `method`: "ml" or "bp"; `posterior`: "moments" or "mean_field" (of
    `ml`); `n_sweeps`: its sweeps. `hidden_variance`, `noise_variance`: a number fixes it, None learns it.
    `n_classes`: 0 if the targets are numbers; labels have one output if there are two, else one a class.
    `dropout`: share of the filled cells of a sparse row that a training step leaves out. `directions`: of
    each input 1 where outputs may only rise with it, -1 fall, 0 either; empty where all are free.
    """

    layers: tuple[int, ...]
    method: str
    posterior: str
    n_sweeps: int
    hidden_variance: float | None
    noise_variance: float | None
    n_classes: int = 0
    dropout: float = 0.0
    directions: tuple[int, ...] = ()

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
    no row is held out.
    """

    n_members: int
    batch_size: int | None
    learning_rate: float
    max_epochs: int | None
    n_iter_no_change: int
    tol: float
    validation_fraction: float

    def rows_a_batch(self, n_rows: int) -> int:
        """Rows in a batch. By default a fiftieth of the rows, between 32 and 256."""
        asked = self.batch_size
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
    """The number of units of each hidden layer, of which a single number is the only one.

    Raises InputError for `hidden_layer_sizes` that are no whole numbers above 0.
    """
    layers = (sizes,) if isinstance(sizes, numbers.Integral) else tuple(sizes)
    if not layers or not all(isinstance(size, numbers.Integral) and int(size) >= 1 for size in layers):
        raise InputError(
            f"hidden_layer_sizes must hold a whole number of units for each hidden layer, got {sizes!r}; "
            "pass for example (50,) or (200, 200)."
        )
    return tuple(map(int, layers))

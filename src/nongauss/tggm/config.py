"""What a user chooses: the legal values of the parameters, and the settings that they become."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from nongauss.core.errors import InputError
from nongauss.core.records import persistable, value
from nongauss.estimator.base import Interval, StrOptions

CONSTRAINTS: dict[str, list[Any]] = {
    "hidden_layer_sizes": ["array-like", Interval(numbers.Integral, 1, None, closed="left")],
    "method": [StrOptions({"ml", "bp"})],
    "posterior": [StrOptions({"moments", "mean_field"})],
    "hidden_variance": [StrOptions({"learn"}), Interval(numbers.Real, 0, None, closed="neither")],
    "n_sweeps": [Interval(numbers.Integral, 1, None, closed="left")],
    "n_members": [Interval(numbers.Integral, 1, None, closed="left")],
    "batch_size": [StrOptions({"auto"}), Interval(numbers.Integral, 1, None, closed="left")],
    "learning_rate": [Interval(numbers.Real, 0, None, closed="neither")],
    "max_epochs": [Interval(numbers.Integral, 1, None, closed="left")],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(numbers.Real, 0, 1, closed="neither")],
    "n_iter_no_change": [Interval(numbers.Integral, 1, None, closed="left")],
    "tol": [Interval(numbers.Real, 0, None, closed="left")],
    "callbacks": ["array-like", None],
    "checkpoint": [str, os.PathLike, None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
}

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
    `dropout`: share of the filled cells of a sparse row that a training step leaves out.
    """

    layers: tuple[int, ...]
    method: str
    posterior: str
    n_sweeps: int
    hidden_variance: float | None
    noise_variance: float | None
    n_classes: int = 0
    dropout: float = 0.0


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
    patience: int
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


def settings_of(
    chosen: Mapping[str, Any], noise_variance: float | None
) -> tuple[NetworkConfig, TrainingRecipe]:
    """The settings for checked parameters of an estimator, by their names.

    Raises InputError for `hidden_layer_sizes` that are no whole numbers above 0.
    """
    config = NetworkConfig(
        layers=_layers_of(chosen["hidden_layer_sizes"]),
        method=chosen["method"],
        posterior=chosen["posterior"],
        n_sweeps=int(chosen["n_sweeps"]),
        hidden_variance=None if chosen["hidden_variance"] == "learn" else float(chosen["hidden_variance"]),
        noise_variance=noise_variance,
    )
    recipe = TrainingRecipe(
        n_members=int(chosen["n_members"]),
        batch_size=None if chosen["batch_size"] == "auto" else int(chosen["batch_size"]),
        learning_rate=float(chosen["learning_rate"]),
        max_epochs=None if chosen["max_epochs"] == "auto" else int(chosen["max_epochs"]),
        patience=int(chosen["n_iter_no_change"]),
        tol=float(chosen["tol"]),
        validation_fraction=float(chosen["validation_fraction"]) if chosen["early_stopping"] else 0.0,
    )
    return config, recipe


def _layers_of(sizes: Any) -> tuple[int, ...]:
    """The number of units of each hidden layer, of which a single number is the only one."""
    layers = (sizes,) if isinstance(sizes, numbers.Integral) else tuple(sizes)
    if not layers or not all(isinstance(size, numbers.Integral) and int(size) >= 1 for size in layers):
        raise InputError(
            f"hidden_layer_sizes must hold a whole number of units for each hidden layer, got {sizes!r}; "
            "pass for example (50,) or (200, 200)."
        )
    return tuple(map(int, layers))

"""What the estimators of the family share: parameters, their checks, checkpoints."""

from __future__ import annotations

import numbers
import os
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.estimator.base import TableEstimator
from nongauss.estimator.parameters import Interval, StrOptions, check_parameters
from nongauss.optimise.checkpoint import Checkpoint, ended, opened
from nongauss.optimise.result import FitResult, Status
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.parted import is_parted, sample
from nongauss.tables.rows import canonical_rows
from nongauss.tables.source import Source
from nongauss.tables.sparse import SparseRows, joined, parted
from nongauss.tggm import fit as recipe_of
from nongauss.tggm import parts
from nongauss.tggm.fit import Data, Recipe
from nongauss.tggm.params import Config
from nongauss.tggm.predict import Ensemble

FloatArray = NDArray[np.float64]

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


class TGGM(TableEstimator):
    """Base of the family: a subclass reads its target, and has these parameters among its own."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS
    hidden_layer_sizes: tuple[int, ...] | int
    method: str
    posterior: str
    hidden_variance: str | float
    n_sweeps: int
    n_members: int
    batch_size: str | int
    learning_rate: float
    max_epochs: int | str
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    checkpoint: str | os.PathLike[str] | None
    random_state: Any

    def _settings(self, noise_variance: float | None) -> tuple[Config, Recipe]:
        """The checked parameters, as the mathematics wants them."""
        check_parameters(self)
        sizes = self.hidden_layer_sizes
        layers = (sizes,) if isinstance(sizes, numbers.Integral) else tuple(sizes)  # type: ignore[arg-type]
        if not layers or not all(isinstance(size, numbers.Integral) and size >= 1 for size in layers):
            raise InputError(
                f"hidden_layer_sizes must hold a whole number of units for each hidden layer, got {sizes!r}; "
                "pass for example (50,) or (200, 200)."
            )
        config = Config(
            layers=tuple(map(int, layers)),
            method=self.method,
            posterior=self.posterior,
            n_sweeps=int(self.n_sweeps),
            hidden_variance=None if self.hidden_variance == "learn" else float(self.hidden_variance),
            noise_variance=noise_variance,
        )
        recipe = Recipe(
            n_members=int(self.n_members),
            batch_size=None if self.batch_size == "auto" else int(self.batch_size),
            learning_rate=float(self.learning_rate),
            max_epochs=None if self.max_epochs == "auto" else int(self.max_epochs),
            patience=int(self.n_iter_no_change),
            tol=float(self.tol),
            validation_fraction=float(self.validation_fraction) if self.early_stopping else 0.0,
        )
        return config, recipe

    def _train(
        self, seed: int, data: Data, config: Config, recipe: Recipe, encoder: TableEncoder
    ) -> tuple[FitResult, Ensemble]:
        """The whole fit, with its checkpoint."""
        seed, checkpoint = self._opened(seed, data, encoder)
        result, ensemble = recipe_of.fit(seed, data, config, recipe, **self._watching(checkpoint))
        ended(checkpoint, result.status)
        return result, ensemble

    def _train_parts(
        self, seed: int, rows: Source, config: Config, recipe: Recipe, encoder: TableEncoder
    ) -> tuple[Data, FitResult, Ensemble]:
        """The same for a source of `Encoded` rows; also the sample of them that is in memory."""
        first = sample(rows, parts.MOST_SAMPLED)
        data = Data(*first.rows)
        if first.are_all:
            return data, *self._train(seed, data, config, recipe, encoder)
        seed, checkpoint = self._opened(seed, data, encoder, first.checksum)
        result, ensemble = parts.fit(seed, rows, first, config, recipe, **self._watching(checkpoint))
        ended(checkpoint, result.status)
        return data, result, ensemble

    def _opened(self, seed: int, data: Data, *others: Any) -> tuple[int, Checkpoint | None]:
        """Where a fit to these rows, which `others` tell apart as well, is kept."""
        arrays = (data.X, data.Y, data.weight)
        settings = self._settings_that_matter()
        return opened(self.checkpoint, seed, self.random_state, arrays, settings, *others)

    @staticmethod
    def _check_portion(X: Any) -> None:
        """Raises InputError where `partial_fit` is given a table in parts."""
        if is_parted(X):
            raise InputError(
                f"partial_fit takes a portion of the rows in memory, got a {type(X).__name__}; "
                "call fit, which reads tables in parts."
            )

    def _former_result(self) -> FitResult | None:
        """What `partial_fit` goes on from: the last result, if there is one."""
        if getattr(self, "_former", None) is None:
            return None
        trace: list[Any] = self.trace_.to_dict("records")
        return FitResult(self._former, trace, Status.COMPLETED, self.n_iter_)


def canonical(
    encoded: FloatArray | SparseRows, target: FloatArray, weight: FloatArray, n_columns: int | None = None
) -> Data:
    """Canonical rows of encoded inputs (N, D), dense or sparse, and targets (N, P)."""
    if isinstance(encoded, SparseRows):
        rows = canonical_rows(joined(encoded), target, weight)
        return Data(parted(rows.X), rows.Y, rows.weight, n_columns)
    rows = canonical_rows(encoded, target, weight)
    return Data(rows.X, rows.Y, rows.weight)

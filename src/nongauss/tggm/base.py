"""What the estimators of the family share: from a table's rows to members, and what is kept of a fit."""

from __future__ import annotations

import inspect
import os
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from sklearn.base import is_classifier

from nongauss.core.errors import InputError
from nongauss.estimator.base import TableEstimator, check_parameters, settings_of
from nongauss.optimise.course import FitResult, Status
from nongauss.optimise.loop import close_checkpoint, open_checkpoint
from nongauss.tables.completion import Donors, completed_rows
from nongauss.tables.learn import check_in_memory
from nongauss.tables.rows import rounded
from nongauss.tables.screen import KeepColumns
from nongauss.tables.source import Encoded, Source, sample
from nongauss.tables.sparse import SparseRows
from nongauss.tggm import fit
from nongauss.tggm.config import (
    HAS_SKIP,
    PLAIN,
    NetworkConfig,
    Skip,
    TrainingRecipe,
    as_in_the_paper,
    layers_of,
)
from nongauss.tggm.data import MOST_SAMPLED, NetworkRows
from nongauss.tggm.params import NetworkParams
from nongauss.tggm.predict import Ensemble

_SET_BY_PRESET = (
    "posterior",
    "n_heads",
    "skip",
    "dropout",
    "splines",
    "hidden_variance",
    "noise_variance",
    "n_sweeps",
    "n_members",
    "batch_size",
    "learning_rate",
    "max_epochs",
    "early_stopping",
)

FARTHEST = 1e100
"""Rows are taken to be no farther out than this, in sds of a column: squares of their means are doubles."""


class TGGM(TableEstimator):
    """Base of the family: a subclass says how it reads a table, and has these parameters among its own."""

    hidden_layer_sizes: tuple[int, ...] | int | str
    preset: Literal["paper"] | None
    skip: Skip
    early_stopping: bool
    validation_fraction: float
    checkpoint: str | os.PathLike[str] | None
    random_state: Any
    keep_columns: KeepColumns
    ensemble_: Ensemble
    _momenta: fit.Momenta | None = None

    def _as_rows(self, encoded: Any) -> Any:
        if isinstance(encoded, SparseRows):
            return SparseRows(encoded.index, np.clip(encoded.value, -FARTHEST, FARTHEST))
        return np.clip(encoded, -FARTHEST, FARTHEST)

    def check_loaded(self) -> None:
        """Raises ValueError for the weights of other columns."""
        self.ensemble_.check_columns(len(self._encoder.encoded_names))

    @property
    def params_(self) -> NetworkParams:
        """Weights of all members on the standardised scale, arrays with a leading member axis."""
        return self.ensemble_.params

    @abstractmethod
    def _fixed_noise_variance(self) -> float | None:
        """The noise's variance on the standardised scale; None learns it."""

    @abstractmethod
    def _read_table(
        self, X: Any, y: Any, sample_weight: Any, keep: KeepColumns, levels: Any = None
    ) -> tuple[Any, Source]:
        """How to read tables such as this one, and its rows as a source of `Encoded`. Changes nothing yet.

        `keep`: see `tables.screen`. `levels`: classes of which some may not occur. Raises InputError.
        """

    @abstractmethod
    def _known_reading(self) -> Any:
        """How the model reads tables."""

    @abstractmethod
    def _more_rows(self, X: Any, y: Any, sample_weight: Any) -> NetworkRows:
        """Canonical rows of another table in memory, as the model reads it."""

    @abstractmethod
    def _keep(self, reading: Any, ensemble: Ensemble) -> None:
        """Set all that a prediction needs, at once: a fit that fails before leaves the former model whole."""

    def _settings(self) -> tuple[NetworkConfig, TrainingRecipe]:
        """The parameters, checked, as the mathematics wants them. Raises ValueError."""
        check_parameters(self)
        layers, noise = layers_of(self.hidden_layer_sizes), self._fixed_noise_variance()
        held_out = float(self.validation_fraction) if self.early_stopping else 0.0
        config = settings_of(
            NetworkConfig,
            self,
            layers=layers,
            noise_variance=noise,
            preset="",
            skip=HAS_SKIP[self.skip],
        )
        recipe = settings_of(TrainingRecipe, self, validation_fraction=held_out)
        if self.preset is None:
            return config, recipe
        self._check_as_in_the_paper()
        return as_in_the_paper(config, recipe, is_classifier(self))

    def _check_as_in_the_paper(self) -> None:
        """Raises InputError for a parameter that `preset="paper"` would set to something else."""
        defaults = inspect.signature(type(self)).parameters
        for name in _SET_BY_PRESET:
            if name in defaults and getattr(self, name) != defaults[name].default:
                raise InputError(
                    f"preset='paper' sets {name}, but {name}={getattr(self, name)!r} was given; "
                    "leave it out, or pass preset=None."
                )

    def _trained(self, X: Any, y: Any, sample_weight: Any) -> tuple[FitResult, NetworkRows]:
        """The whole fit, with its checkpoint. Also the rows, or the sample of them that is in memory."""
        config, recipe = self._settings()
        seed = self._key_seed(self.random_state)
        reading, rows = self._read_table(X, y, sample_weight, self.keep_columns)
        rows = completed_rows(reading.encoder, rows)
        first = sample(rows, MOST_SAMPLED)
        reading = reading.told_by(first.rows)
        data = reading.rows(first.rows)
        seed, checkpoint = open_checkpoint(
            self.checkpoint,
            seed,
            self.random_state,
            (data.X, data.Y, data.weight),
            self._settings_that_matter(),
            reading.encoder,
            *(() if first.is_all else (first.checksum,)),
        )
        run = self._run(checkpoint)
        all_rows = None if first.is_all else rows.map(reading.inputs)
        result, ensemble = fit.fit(seed, data, reading.completed(config), recipe, all_rows, run)
        close_checkpoint(checkpoint, result.status)
        self._keep(reading, ensemble)
        self._momenta = None
        self._keep_donors(Donors.of(reading.encoder, first.rows))
        return result, data

    def _trained_further(self, X: Any, y: Any, sample_weight: Any, levels: Any = None) -> FitResult:
        """One more epoch over these rows; the calibration stays. The first call learns how to read tables."""
        config, recipe = self._settings()
        check_in_memory(X, "partial_fit")
        seed = self._key_seed(self.random_state)
        former = self._former_result()
        if config.posterior == "auto":  # chosen by a fit, which alone holds rows out
            config = replace(config, posterior=self.ensemble_.config.posterior if former else "moments")
        if config.n_heads is None:
            config = replace(config, n_heads=self.ensemble_.config.n_heads if former else 1)
        if not config.layers:
            config = replace(config, layers=self.ensemble_.config.layers if former else PLAIN)
        if config.skip is None:
            config = replace(config, skip=former is not None and self.ensemble_.config.skip)
        if former is None:
            reading, rows = self._read_table(X, y, sample_weight, "all", levels)
            first = sample(completed_rows(reading.encoder, rows), None)
            reading = reading.told_by(first.rows)
            data, donors = reading.rows(first.rows), Donors.of(reading.encoder, first.rows)
        else:
            reading = self._known_reading()
            data = reading.inputs(self._more_rows(X, y, sample_weight))
            donors = getattr(self, "_donors", None)
        result, ensemble = fit.go_on(seed, data, reading.completed(config), recipe, former)
        if former is not None:
            names = ("inflation", "skewness", "tails", "spread_kept")
            ensemble = ensemble._replace(**{name: getattr(self.ensemble_, name) for name in names})
        self._keep(reading, ensemble)
        self._momenta = fit.momenta_of(result.state)
        self._keep_donors(donors)
        return result

    def _filled(self, encoded: Any, Y: Float[np.ndarray, "N P"]) -> Any:
        """Encoded rows of a portion, whose gaps are drawn given their targets."""
        if self._donors is None:
            return encoded
        return self._donors.completed(Encoded(rounded(encoded), rounded(Y), np.ones(len(Y)))).X

    def _former_result(self) -> FitResult | None:
        """What `partial_fit` goes on from: the last result, if there is one.

        What the optimiser remembers is kept by `partial_fit` alone: a fit that has come to its end leaves its
        parameters, once, and a first further epoch begins with new averages.
        """
        if not hasattr(self, "ensemble_"):
            return None
        trace: list[Any] = self.trace_.to_dict("records")
        former = fit.former_state(self.ensemble_.params, getattr(self, "_momenta", None))
        return FitResult(former, trace, Status.COMPLETED, self.n_iter_)

    def _keep_ensemble(self, encoder: Any, ensemble: Ensemble) -> None:
        """Set what all estimators of the family have."""
        self._keep_encoder(encoder)
        self.ensemble_ = ensemble
        self.skip_ = "linear" if ensemble.config.skip else None

"""What all estimators of the family share: how a fit is run and what is kept of it."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nongauss.core.errors import InputError
from nongauss.estimator.arviz_draws import N_SAMPLED, inference_data
from nongauss.estimator.base import TableEstimator, check_parameters
from nongauss.optimise.course import FitResult
from nongauss.optimise.loop import close_checkpoint, open_checkpoint
from nongauss.sparse_gp.cavity import ExactRows
from nongauss.sparse_gp.config import FEW_INDUCING, GPRecipe
from nongauss.sparse_gp.data import FARTHEST, ReadTarget, ScreenTarget, read_table, with_a_column
from nongauss.sparse_gp.fit import fit
from nongauss.sparse_gp.group_effects import (
    check_label_columns,
    effects,
    group_code,
    names_of,
    place_of,
    with_labels,
)
from nongauss.sparse_gp.hyper_draws import HyperParameters
from nongauss.sparse_gp.kernels import NO_LABEL, FloatArray
from nongauss.sparse_gp.likelihoods import Likelihood
from nongauss.sparse_gp.neighbours import MOST_COLUMNS, NearResiduals, near_residuals
from nongauss.sparse_gp.params import most_rows, shares_a_row
from nongauss.sparse_gp.predict import GPPosterior
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.learn import Learned, as_source
from nongauss.tables.screen import KeepColumns, screened
from nongauss.tables.source import Encode, Source


class SparseGP(TableEstimator):
    """Base of the sparse Gaussian processes: a subclass reads its target and has these parameters."""

    _by_class: ClassVar[bool] = False
    """Are targets classes without an order?"""
    _has_one_lengthscale: ClassVar[bool] = False
    """Do all columns share one length-scale?"""
    checkpoint: str | os.PathLike[str] | None
    group: str | int | None
    keep_columns: KeepColumns
    random_state: Any
    posteriors_: tuple[GPPosterior, ...]
    _near: NearResiduals | None = None
    _exact_rows: ExactRows | None = None
    weights_: FloatArray
    _target_mark: str | None = None
    """Whose leave-one-out densities `loo_` are; see `mark_of_target`."""

    def check_loaded(self) -> None:
        """Raises ValueError where posteriors, their shares and the columns do not fit each other."""
        n_columns, same_of = len(self._encoder.encoded_names), {len(p.offset) for p in self.posteriors_}
        fits = all(posterior.Z.shape[1] == n_columns for posterior in self.posteriors_)
        if not fits or len(same_of) != 1 or len(self.weights_) != len(self.posteriors_):
            raise ValueError("posteriors, their shares and the columns do not fit each other")
        n_classes = getattr(self.posterior_.likelihood, "n_classes", 0)
        if self._near is not None and len(self._near.unit) != n_columns:
            raise ValueError("rows of neighbours and the columns do not fit each other")
        if self._exact_rows is not None and len(self._exact_rows.y) != len(self.posterior_.Z):
            raise ValueError("targets and inducing inputs do not fit each other")
        if hasattr(self, "classes_") and n_classes and len(self.classes_) != n_classes:
            raise ValueError(f"{len(self.classes_)} classes, and a likelihood of {n_classes}")

    def begin_at(self, former: Any) -> Self:
        """Let the next fit begin where that of `former`, of the same settings and alike rows, has ended."""
        self._begin_at = former.posteriors_
        return self

    @property
    def posterior_(self) -> GPPosterior:
        """The posterior with the greatest share: the only one, but for averages (`posteriors_`)."""
        return self.posteriors_[0]

    def to_arviz(self) -> Any:
        """Draws of the hyper-parameters as `arviz.InferenceData`: 500 from their Laplace approximation.

        For the model with the greatest weight, fitted with `hyper_parameters="laplace"`; a variable for
        each of `kernel_params_` and `likelihood_params_`, in the same units. Raises InputError without
        arviz.
        """
        check_is_fitted(self, "encoded_names_")
        hyper: HyperParameters | None = getattr(self, "_hyper", None)
        if hyper is None:
            raise InputError(
                "to_arviz needs to know how sure the hyper-parameters are; fit a regressor with "
                "hyper_parameters='laplace'."
            )
        draws = hyper.draws(N_SAMPLED, np.random.default_rng(0))
        n_psi, likelihood = len(self.posterior_.psi), self.posterior_.likelihood
        split = draws.shape[1] - n_psi
        variables = {name: np.exp(draws[:, k]) for k, name in enumerate(hyper.names[:split])}
        scaler = getattr(self, "_scaler", None)
        size = abs(float(scaler.scale[0])) if scaler is not None else 1.0
        own = [likelihood.readable(psi, size) for psi in draws[:, split:]]
        variables |= {name: np.array([each[name] for each in own]) for name in own[0]}
        return inference_data({name: values[None] for name, values in variables.items()}, {}, {})

    def _recipe(self, n_components: int = 1) -> GPRecipe:
        """The settings, checked. Raises InputError."""
        check_parameters(self)
        return GPRecipe.of(self, n_components)

    def _read(self, X: Any, y: Any, weight: Any, recipe: GPRecipe, **beside: Any) -> Source:
        """The table as a source of parts, in which numbers of label columns are labels. Raises InputError."""
        name = type(self).__name__
        source = as_source(X, y, weight, estimator_name=name, **beside)
        columns = recipe.label_columns
        return source.map(with_labels, columns, name) if columns else source

    def _fit(
        self,
        source: Source,
        learned: Learned,
        read: ReadTarget,
        likelihood: Likelihood,
        recipe: GPRecipe,
        seed: int,
        scale: float = 1.0,
    ) -> FitResult:
        """Fit and keep what came of it; the caller adds its own and then records the result.

        In that order a warning that is an error leaves a whole model.
        """
        encoder = self._screened(learned, source, read)
        check_label_columns(recipe.kernel, encoder)
        code = None if recipe.group is None else group_code(encoder, recipe.group)
        most = most_read(recipe, likelihood, len(encoder.encoded_names))
        table = read_table(source, encoder, read, type(self).__name__, most)
        space = table.space.as_one if self._has_one_lengthscale else table.space
        table = table._replace(group="" if code is None else str(code.name), space=space)
        likelihood = likelihood.adapted(table.rows.y, table.rows.weight, scale)
        told = (self._settings_that_matter(), encoder, likelihood, table.checksum)
        seed, checkpoint = open_checkpoint(self.checkpoint, seed, self.random_state, tuple(table.rows), *told)
        former = self.__dict__.pop("_begin_at", ())
        result, average, main = fit(table, likelihood, recipe, seed, self._run(checkpoint), former)
        self._keep_encoder(encoder)
        self._keep_known_rows(source, encoder)
        self.posteriors_, self.weights_ = average
        asks = table.everywhere is None and recipe.asks_neighbours(likelihood, len(table.rows.y))
        self._near = near_residuals(average, table.rows) if asks else None
        self.is_exact_ = main.is_exact(table.rows)
        self._exact_rows = ExactRows(*table.rows[1:]) if self.is_exact_ else None
        holds_rows = self._near is not None or shares_a_row(main.posterior.Z, table.rows.X)
        self._keep_donors(table.donors, holds_rows)
        self.kernel_params_, scales = main.posterior.readable()
        shared = main.model.space is not table.space and main.model.space == table.space.as_one
        self.lengthscales_ = dict.fromkeys(table.space.names, *scales.values()) if shared else scales
        self.bound_ = main.bound
        unit = scale if likelihood.mean_is_latent else 1.0
        self.group_effects_ = None if code is None else effects(*average, code, unit)
        self._hyper = main.spread.at if main.spread else None
        close_checkpoint(checkpoint, result.status)
        return result

    def _screened(self, learned: Learned, source: Source, read: ReadTarget) -> TableEncoder:
        """How the columns are encoded that are looked at. Warns where others are left out; InputError."""
        encode = Encode(learned.encoder, ScreenTarget(read), type(self).__name__)
        keep = self.keep_columns
        if self.group is not None and not (isinstance(keep, str) and keep == "all"):
            group = place_of(learned.encoder, self.group)
            keep = [*(() if isinstance(keep, str) else keep), names_of(learned.encoder)[group]]
        return screened(learned, source, encode, keep, labels=self._by_class).encoder

    def _with_gaps(self, new: Any) -> tuple[FloatArray, Any]:
        """A group that is missing or was not seen is none of those that were: nothing stands in for it."""
        encoded, missing = super()._with_gaps(new)
        if self.group is not None:
            code = group_code(self._encoder, self.group)
            column = self.posterior_.space.names.index(str(code.name))
            mine = [at for at, own in enumerate(self.posterior_.space.group) if own == column]
            encoded[np.ix_(missing[:, column], mine)] = NO_LABEL if code.is_pair else 0.0
            missing[:, column] = False
        return encoded, missing

    def _became(self) -> dict[str, Any]:
        n_inducing = {"n_inducing": len(self.posteriors_[0].Z)} if self.n_inducing == "auto" else {}
        return super()._became() | n_inducing

    def _as_rows(self, encoded: Any) -> Any:
        return np.clip(with_a_column(encoded), -FARTHEST, FARTHEST)


def most_read(recipe: GPRecipe, likelihood: Likelihood, n_columns: int) -> int:
    """Rows of so many encoded columns that are kept in memory; where near rows may tell, as with few M."""
    most, many = most_rows(recipe.most_inducing(likelihood)), most_rows(FEW_INDUCING)
    near = recipe.asks_neighbours(likelihood, many) and n_columns <= MOST_COLUMNS
    return max(most, many) if near and recipe.n_components == 1 else most

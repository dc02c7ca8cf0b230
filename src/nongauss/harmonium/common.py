"""What the two estimators share: parameters, from a table to a machine, and all that reads the machine."""

from __future__ import annotations

import numbers
import os
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.estimator.base import NongaussEstimator
from nongauss.estimator.parameters import Interval, StrOptions, check_parameters
from nongauss.harmonium import summaries as readable
from nongauss.harmonium.ais import log_likelihood
from nongauss.harmonium.chain_graph import ACTIVE, Chain
from nongauss.harmonium.coding import decode, encode
from nongauss.harmonium.columns import Coder, coder_of, fit_coder
from nongauss.harmonium.contrastive_divergence import Everywhere, Recipe
from nongauss.harmonium.exponential_families import dense, saturated_share
from nongauss.harmonium.fit import Effort, find_features, learn
from nongauss.harmonium.impute import NO_FILLER, Filler
from nongauss.harmonium.params import Rows, column_spreads, usual_totals
from nongauss.harmonium.predict import Machine
from nongauss.optimise.checkpoint import Checkpoint, opened
from nongauss.optimise.result import FitResult
from nongauss.tables.frame import as_pandas
from nongauss.tables.labels import LabelCoder
from nongauss.tables.parquet import Encoded, Part, n_rows_of
from nongauss.tables.parted import by_parts, describe, labels_of, naming, open_parts, sample
from nongauss.tables.rows import canonical_rows, canonical_sparse, validate_weight
from nongauss.tables.summary import weight_of

FloatArray = NDArray[np.float64]

CONSTRAINTS: dict[str, list[Any]] = {
    "n_components": [StrOptions({"infinite"}), Interval(numbers.Integral, 1, None, closed="left")],
    "truncation": [StrOptions({"auto"}), Interval(numbers.Integral, 1, None, closed="left")],
    "units": [StrOptions({"binary", "real"})],
    "views": [dict, None],
    "method": [StrOptions({"cd", "mean_field", "pcd", "lbfgs"})],
    "alpha": [Interval(numbers.Real, 0, None, closed="neither")],
    "stick_expectation": [StrOptions({"accurate", "multinomial"})],
    "batch_size": [Interval(numbers.Integral, 1, None, closed="left")],
    "max_epochs": [Interval(numbers.Integral, 1, None, closed="left"), None],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(numbers.Real, 0, 1, closed="neither")],
    "callbacks": ["array-like", None],
    "checkpoint": [str, os.PathLike, None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
}

LARGEST_TRUNCATION = 200
MOST_SAMPLED = 50_000
"""Distinct rows of a table in parts that are in memory; what epochs do not learn is learned from them."""

GAP = np.float32(3e38)
"""Stands for a missing cell while rows are put in order."""


class Reading(NamedTuple):
    """A table in parts: its units, the first rows of it, its classes, and all rows if those are not all."""

    coder: Coder
    rows: Rows
    classes: LabelCoder | None
    everywhere: Everywhere | None


class HarmoniumBase(TransformerMixin, NongaussEstimator):
    """Base of the harmoniums: a subclass says what it learns and stores the parameters."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS
    n_components: Any
    truncation: Any
    units: str
    views: Any
    method: str
    alpha: float
    stick_expectation: str
    batch_size: int
    max_epochs: int | None
    early_stopping: bool
    validation_fraction: float
    checkpoint: str | os.PathLike[str] | None
    random_state: Any

    def _check(self) -> None:
        check_parameters(self)

    def _read(self, X: Any, weight: Any) -> tuple[Coder, Any, FloatArray]:
        """Learn the units from the rows that count, encode all: (coder, table, weight)."""
        frame = None if sp.issparse(X) else as_pandas(X)
        X = X if frame is None else frame
        if not hasattr(X, "shape") and not isinstance(X, list | tuple):
            X = np.asarray(X)
        weight = validate_weight(weight, X.shape[0] if getattr(X, "shape", ()) else len(X))
        counted = weight > 0
        chosen = X
        if not counted.all():
            chosen = (
                X.loc[counted] if hasattr(X, "loc") else (X if hasattr(X, "shape") else np.array(X))[counted]
            )
        return fit_coder(chosen, weight[counted], self.views, type(self).__name__), X, weight

    def _rows(self, coder: Coder, X: Any, weight: FloatArray, labels: FloatArray | None) -> tuple[Rows, Any]:
        """Encoded rows in canonical order, and for each original row its number there (-1: weight 0)."""
        encoded, missing = encode(coder, X, type(self).__name__)
        own = np.zeros((len(weight), 0)) if labels is None else labels[:, None]
        if sp.issparse(encoded):
            cells, Y, merged, order = canonical_sparse(encoded, own, weight)
            gaps = None
        else:
            marked = encoded if missing is None else np.where(missing, GAP, encoded)
            rows = canonical_rows(marked, own, weight)
            cells, Y, merged, order = rows.X, rows.Y, rows.weight, rows.order
            gaps = None if missing is None else cells == GAP
            cells = cells if gaps is None else np.where(gaps, np.float32(0), cells)
        numbers_ = None if labels is None else Y[:, 0].astype(np.int64)
        return Rows(cells, gaps, merged, numbers_), order

    def _read_parts(self, X: Any, y: Any, weight: Any) -> Reading:
        """The same of a table in parts: the first rows in memory, and all of them where they are."""
        name = type(self).__name__
        if self.method == "lbfgs" or self.early_stopping:
            raise InputError(
                f"method='lbfgs' and early_stopping of {name} take tables in memory; leave them out for one "
                "in parts."
            )
        source = open_parts(X, y, weight)
        summary, labels = describe(source, name, None if y is None else partial(labels_of, name))
        coder, classes = coder_of(summary, self.views), None if labels is None else labels.coder(name)
        gaps = any(column.gaps for column in summary.columns)
        encoded = source.map(EncodeUnits(coder, classes, name))
        first = sample(encoded, MOST_SAMPLED)
        everywhere = None
        if not first.are_all:
            n_rows = encoded.sum(_n_rows)
            everywhere = Everywhere(
                encoded.map(_as_rows, gaps), int(n_rows), summary.counted.weight, first.checksum
            )
        return Reading(coder, _as_rows(first.rows, gaps), classes, everywhere)

    def _recipe(self, n_components: int, seed: int, **changes: Any) -> Recipe:
        recipe = Recipe(
            n_components=n_components,
            units=self.units,
            method=self.method,
            max_epochs=None if self.max_epochs is None else int(self.max_epochs),
            batch_size=int(self.batch_size),
            has_sticks=self.n_components == "infinite",
            alpha=float(self.alpha),
            accurate=self.stick_expectation == "accurate",
            C=0.0,
            margin=1.0,
            dropout=0.0,
            held_out=float(self.validation_fraction) if self.early_stopping else 0.0,
            n_classes=0,
            seed=seed,
        )
        return recipe._replace(**changes)

    def _n_units(self, n_visible: int) -> int:
        """Hidden units that a fit starts with."""
        if self.n_components != "infinite":
            return int(self.n_components)
        if self.truncation != "auto":
            return int(self.truncation)
        return min(LARGEST_TRUNCATION, max(10, n_visible))

    def _opened(
        self, seed: int, coder: Coder, rows: Rows, everywhere: Everywhere | None
    ) -> tuple[int, Checkpoint | None]:
        """Where a fit to these rows is kept, and the seed that it began with."""
        X = rows.X.tocsr() if sp.issparse(rows.X) else rows.X
        cells = (X.data, X.indices, X.indptr) if sp.issparse(X) else X
        told = self._settings_that_matter(), coder, everywhere and everywhere[1:]
        arrays = (cells, rows.missing, rows.weight, rows.labels)
        return opened(self.checkpoint, seed, self.random_state, arrays, *told)

    def _by_chain(
        self, coder: Coder, rows: Rows, recipe: Recipe, effort: Effort, checkpoint: Checkpoint | None
    ) -> tuple[FitResult, Machine, tuple[str, ...]]:
        prunes = self.n_components == "infinite"
        result = find_features(coder.layout, rows, recipe, prunes, effort, **self._watching(checkpoint))
        state: Chain = result.state
        totals = usual_totals(coder.layout, rows)
        machine = Machine(state.params, state.prior, coder.layout, "binary", "chain", totals, NO_FILLER)
        return result, machine, state.reasons

    def _by_contrast(
        self,
        coder: Coder,
        rows: Rows,
        recipe: Recipe,
        everywhere: Everywhere | None,
        checkpoint: Checkpoint | None,
        filler: Filler = NO_FILLER,
    ) -> tuple[FitResult, Machine]:
        watching = self._watching(checkpoint)
        result = learn(coder.layout, rows, recipe, everywhere=everywhere, **watching)
        params, prior = (
            type(part)(*(np.asarray(each, np.float64) for each in part)) for part in result.state
        )
        totals = usual_totals(coder.layout, rows)
        return result, Machine(params, prior, coder.layout, self.units, "global", totals, filler)

    def _keep(
        self, coder: Coder, machine: Machine, rows: Rows, reasons: tuple[str, ...] | None
    ) -> FloatArray:
        """Set everything that can be read off the fit; returns the activations of `rows`."""
        self._coder, self.machine_ = coder, machine
        self.n_features_in_ = coder.n_features
        if coder.feature_names is not None:
            self.feature_names_in_ = np.array(coder.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.encoded_names_ = coder.encoded_names
        hidden = machine.hidden(rows.X, rows.missing)
        if reasons is None:
            reasons = readable.status_of(hidden, rows.weight, machine.units)
        self.component_status_ = reasons
        self.n_active_ = sum(status == ACTIVE for status in self.component_status_)
        self.components_ = np.array(machine.params.weights.T, dtype=np.float64)
        self.visible_std_ = column_spreads(rows)
        self.use_ = rows.weight / rows.weight.sum() @ hidden
        if machine.reading == "global" and self.units == "binary":
            self._warn_if_saturated(saturated_share(hidden, rows.weight))
        return hidden

    def _warn_if_saturated(self, share: float) -> None:
        if share > readable.SATURATED:
            warnings.warn(
                f"{100 * share:.0f} % of the activations are outside [.02, .98], so that the features hardly "
                "tell rows apart by degree; lower max_epochs, or take fewer components.",
                NongaussWarning,
                stacklevel=4,
            )

    def _encoded(self, X: Any) -> tuple[Any, Any]:
        check_is_fitted(self, "machine_")
        return encode(self._coder, X, type(self).__name__)

    @by_parts
    def transform(self, X: Any) -> FloatArray:
        """Mean of each hidden unit given the row, (N, K): if binary, the probability to have the feature.

        Missing cells, or whole views, are integrated out by mean field; by a classifier, which has learned
        with cells and views left out, they are taken for what the other cells let expect.
        """
        return self._hidden(X)

    def _hidden(self, X: Any) -> FloatArray:
        encoded, missing = self._encoded(X)
        return self.machine_.hidden(encoded, missing)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> FloatArray:
        """`fit`, then `transform` of the same rows."""
        return self.fit(X, y, **fit_params).transform(X)

    def inverse_transform(self, H: Any) -> FloatArray:
        """Expected table (N, columns) given hidden means (N, K), in the units of the columns.

        Probabilities for columns of 0 and 1, expected counts; for label columns the number of the likeliest
        level (see `encoded_names_`); columns that were ignored have their one value, or NaN.
        """
        check_is_fitted(self, "machine_")
        H = np.asarray(H, dtype=np.float64)
        if H.ndim != 2 or H.shape[1] != len(self.components_):
            raise InputError(
                f"H has shape {H.shape}, expected (rows, {len(self.components_)}); "
                "pass what transform returned."
            )
        return decode(self._coder, self.machine_.visible(H))

    def predict_view(self, X: Any, view: str) -> FloatArray:
        """The columns of one view (N, its columns) from the other views; its own cells in X do not matter."""
        check_is_fitted(self, "machine_")
        places = self._coder.views
        if view not in places:
            raise InputError(f"There is no view {view!r}; there are: {', '.join(map(repr, places))}.")
        encoded, missing = self._encoded(X)
        encoded = dense(encoded)
        missing = np.zeros(encoded.shape, dtype=np.bool_) if missing is None else missing
        for block in self._coder.layout:
            if block.view == view:
                missing[:, block.place] = True
        hidden = self.machine_.hidden(np.where(missing, np.float32(0), encoded), missing)
        return self.inverse_transform(hidden)[:, list(places[view])]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of `transform`: harmonium0, harmonium1, ..."""
        check_is_fitted(self, "machine_")
        return np.array([f"harmonium{k}" for k in range(len(self.components_))], dtype=object)

    def top_features(self, k: int = 8) -> list[list[str]]:
        """For each hidden unit the names of the k columns (or levels) that it raises most, in order."""
        check_is_fitted(self, "machine_")
        return readable.top(self.machine_.params.weights, self.visible_std_, self.encoded_names_, k)

    def top_rows(self, X: Any, k: int = 8) -> NDArray[np.intp]:
        """For each hidden unit the numbers of the k rows of X that have it most, (K, k)."""
        return np.argsort(-np.asarray(self.transform(X)), axis=0, kind="stable")[:k].T

    def describe(self) -> str:
        """How many features are in use and why others are not; of each its mean, class and columns."""
        classes = getattr(self, "class_means_", None)
        most = None if classes is None else [str(self.classes_[c]) for c in classes.argmax(axis=0)]
        return readable.described(self.component_status_, self.use_, self.top_features(5), most)

    def score_samples(self, X: Any, n_chains: int = 200, n_steps: int = 1000) -> FloatArray:
        """Log likelihood of rows without gaps, nats (N,), by annealed importance sampling; binary units only.

        In the chain reading by importance sampling row by row.

        Real columns count by the density of their encoded (standardised) values, counts given their sum.
        Raises InputError.
        """
        encoded, missing = self._encoded(X)
        if missing is not None:
            raise InputError(
                "score_samples takes rows without missing cells; drop those rows, or fill the cells."
            )
        rng = np.random.default_rng(self._key_seed(self.random_state))
        return log_likelihood(self.machine_, encoded, rng, n_chains, n_steps)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags


@dataclass(frozen=True)
class EncodeUnits:
    """A `Part` as `Encoded` rows of visible units, gaps marked, labels as the target."""

    coder: Coder
    classes: LabelCoder | None
    name: str

    def __call__(self, part: Part) -> Encoded:
        """The rows. Raises InputError naming the part."""
        found: Encoded = naming(part, partial(self._rows, part))
        return found

    def _rows(self, part: Part) -> Encoded:
        n_rows, n_labels = n_rows_of(part.X), int(self.classes is not None)
        if not n_rows:
            nothing = np.zeros((0, len(self.coder.units)), np.float32)
            return Encoded(nothing, nothing[:, :n_labels], np.zeros(0))
        weight = weight_of(part)
        X, missing = encode(self.coder, part.X, self.name)
        Y = np.zeros((n_rows, 0))
        if self.classes is not None:
            Y = self.classes.encode(part.y, n_rows, self.name, weight)[:, None]
        X = X if missing is None else np.where(missing, GAP, X)
        kept = weight > 0
        return Encoded(X[kept] + np.float32(0), Y[kept].astype(np.float32), weight[kept])


def _as_rows(part: Encoded, gaps: bool) -> Rows:
    """Encoded rows as the mathematics takes them. `gaps`: does any part of the table have some?"""
    missing = part.X == GAP if gaps else None
    X = part.X if missing is None else np.where(missing, np.float32(0), part.X)
    return Rows(X, missing, part.weight, part.Y[:, 0].astype(np.int64) if part.Y.shape[1] else None)


def _n_rows(part: Encoded) -> int:
    return len(part.weight)

"""`HarmoniumBase`: what all harmoniums say of a fit, of rows, and of their features."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import TransformerMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.estimator.base import (
    NongaussEstimator,
    settings_of,
    takes_any_cells,
)
from nongauss.estimator.by_parts import by_parts
from nongauss.harmonium.ais import log_likelihood
from nongauss.harmonium.chain_graph import ACTIVE, ChainState
from nongauss.harmonium.config import LARGEST_TRUNCATION, HarmoniumRecipe
from nongauss.harmonium.data import (
    HarmoniumTable,
    VisibleRows,
    column_spreads,
    decode,
    encode,
    read_table,
)
from nongauss.harmonium.exponential_families import dense, saturated_share
from nongauss.harmonium.linked_columns import n_linked_columns
from nongauss.harmonium.predict import SATURATED, Machine, component_status, description, top_columns
from nongauss.harmonium.visible_units import UnitCoder
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.loop import open_checkpoint

FloatArray = NDArray[np.float64]


class HarmoniumBase(TransformerMixin, NongaussEstimator):  # type: ignore[misc]
    """What all harmoniums say of a fit; a subclass says what it learns and stores the parameters."""

    n_components: Any
    truncation: Any
    units: str
    views: Any
    method: str
    early_stopping: bool
    validation_fraction: float
    checkpoint: str | os.PathLike[str] | None
    random_state: Any
    machine_: Machine
    component_status_: tuple[str, ...]
    _coder: UnitCoder

    def _read(self, X: Any, y: Any, weight: Any, labels: str) -> HarmoniumTable:
        """The table of a fit. Raises InputError, also for a table in parts where the method takes none."""
        return read_table(
            X,
            y,
            weight,
            views=self.views,
            labels=labels,
            in_memory=self.method == "lbfgs" or bool(self.early_stopping),
            estimator_name=type(self).__name__,
        )

    def _recipe(self, n_visible: int, seed: int, n_scores: int = 0) -> HarmoniumRecipe:
        """The recipe of a fit to rows of `n_visible` units."""
        n_components = self.n_components
        if n_components == "infinite":
            is_auto = self.truncation == "auto"
            n_components = min(LARGEST_TRUNCATION, max(10, n_visible)) if is_auto else self.truncation
        return settings_of(
            HarmoniumRecipe,
            self,
            n_components=int(n_components),
            has_sticks=self.n_components == "infinite",
            validation_fraction=float(self.validation_fraction) if self.early_stopping else 0.0,
            n_scores=n_scores,
            seed=seed,
        )

    def _opened(self, seed: int, table: HarmoniumTable) -> tuple[int, Checkpoint | None]:
        """The seed that a fit to this table began with, and where it is kept."""
        rows, all_rows = table.rows, table.all_rows
        X = rows.X.tocsr() if sp.issparse(rows.X) else rows.X
        cells = (X.data, X.indices, X.indptr) if sp.issparse(X) else X
        told = self._settings_that_matter(), table.coder, all_rows and all_rows[1:]
        arrays = (cells, rows.missing, rows.weight, rows.labels)
        return open_checkpoint(self.checkpoint, seed, self.random_state, arrays, *told)

    def _keep(
        self, coder: UnitCoder, machine: Machine, rows: VisibleRows, chain: ChainState | None
    ) -> FloatArray:
        """Set the attributes that follow from a fit to `rows`; returns their hidden means (N, K).

        `chain` knows why units are not in use; None where their activations tell.
        """
        self._coder, self.machine_ = coder, machine
        self.n_features_in_ = coder.n_features
        if coder.feature_names is not None:
            self.feature_names_in_ = np.array(coder.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.encoded_names_ = coder.encoded_names
        hidden = machine.hidden(rows.X, rows.missing)
        if chain is None:
            self.component_status_ = component_status(hidden, rows.weight, machine.units)
        else:
            linked = n_linked_columns(machine.params.weights, machine.layout, rows, hidden, coder.owners)
            self.component_status_ = chain.with_lone(linked < 2).reasons
        self.n_active_ = sum(status == ACTIVE for status in self.component_status_)
        if not self.n_active_ and coder.n_features > 1:
            self._warn_of_no_feature()
        self.components_ = machine.params.weights.T.astype(np.float64) * coder.directions
        self.visible_std_ = column_spreads(rows)
        self.use_ = rows.weight / rows.weight.sum() @ hidden
        if machine.reading == "global" and self.units == "binary" and self.method != "pcd":
            self._warn_if_saturated(saturated_share(hidden, rows.weight))
        return hidden

    def _warn_of_no_feature(self) -> None:
        """Warn that the fit has no feature in use."""
        warnings.warn(
            "No feature is in use (n_active_ is 0), so that nothing is learned of how columns go together; "
            "leave out columns that only name rows, or give more rows.",
            NongaussWarning,
            stacklevel=5,
        )

    def _warn_if_saturated(self, share: float) -> None:
        """Warn if a large share of the activations of the training rows is next to 0 or 1."""
        if share > SATURATED:
            warnings.warn(
                f"{100 * share:.0f} % of the activations are outside [.02, .98], so that the features hardly "
                "tell rows apart by degree; lower max_epochs, or take fewer components.",
                NongaussWarning,
                stacklevel=4,
            )

    def check_loaded(self) -> None:
        """Raises ValueError where the machine, its columns and its classes do not fit each other."""
        machine, units = self.machine_, len(self._coder.units)
        (D, K), raw = machine.params.weights.shape, machine.params.raw
        n_classes = len(machine.params.votes) if is_classifier(self) else 0
        ends = [0, *(block.stop for block in machine.layout)]
        fits = D == units == ends[-1] and [block.start for block in machine.layout] == ends[:-1]
        fits = fits and len(machine.prior.log_odds) == K and len(machine.filler.means) in (0, D)
        fits = fits and machine.layout == self._coder.layout
        fits = fits and (not raw.size or raw.shape == (len(machine.params.votes), D))
        if not fits or (n_classes and len(getattr(self, "classes_", ())) != n_classes):
            raise ValueError("a machine that is not of these columns and classes")
        names, means = self.encoded_names_, getattr(self, "class_means_", np.zeros((n_classes, K)))
        fits = len(names) == D and all(isinstance(name, str) for name in names)
        fits = fits and np.shape(self.visible_std_) == (D,) and np.shape(self.use_) == (K,)
        fits = fits and np.shape(getattr(self, "components_", machine.params.weights.T)) == (K, D)
        fits = fits and len(self.component_status_) >= K  # those that were dropped are told of, too
        if not fits or means.shape != (n_classes, K):
            raise ValueError("what is told of features that are not those of the machine")
        for unit in self._coder.units:
            if bool(unit.label) != (self._coder.table.columns[unit.column].role == "labels"):
                raise ValueError("units that are not of these columns")

    def _encoded(self, X: Any) -> tuple[Any, Any]:
        """New rows as visible units, and which of them are missing. Raises NotFittedError, InputError."""
        check_is_fitted(self, "machine_")
        return encode(self._coder, X, type(self).__name__)

    @by_parts
    def transform(self, X: Any) -> FloatArray:
        """Mean of each hidden unit given the row, (N, K): if binary, the probability to have the feature.

        Missing cells, or whole views, are integrated out, by mean field with over ten features; by a
        classifier, which has learned with cells and views left out, they are taken for what the other cells
        let expect.
        """
        return self._hidden(X)

    def _hidden(self, X: Any) -> FloatArray:
        """Mean of each hidden unit given the rows of a table in memory, (N, K)."""
        encoded, missing = self._encoded(X)
        return self.machine_.hidden(encoded, missing)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> FloatArray:
        """`fit`, then `transform` of the same rows."""
        features: FloatArray = self.fit(X, y, **fit_params).transform(X)
        return features

    def inverse_transform(self, H: Any) -> FloatArray:
        """Expected table (N, columns) given hidden means (N, K), in the units of the columns.

        Probabilities for columns of 0 and 1, expected counts; for label columns the number of the likeliest
        level (see `encoded_names_`); for dates the days since the first; columns that were ignored have
        their one value, or NaN.
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
        expected = self.machine_.expected(np.where(missing, np.float32(0), encoded), missing)
        return decode(self._coder, expected)[:, list(places[view])]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of `transform`: harmonium0, harmonium1, ..."""
        check_is_fitted(self, "machine_")
        return np.array([f"harmonium{k}" for k in range(len(self.components_))], dtype=object)

    def top_features(self, k: int = 8) -> list[list[str]]:
        """For each hidden unit the names of the k columns (or levels) that it raises most, in order."""
        check_is_fitted(self, "machine_")
        return top_columns(self.components_.T, self.visible_std_, self.encoded_names_, k)

    def top_rows(self, X: Any, k: int = 8) -> NDArray[np.intp]:
        """For each hidden unit the numbers of the k rows of X that have it most, (K, k)."""
        return np.argsort(-np.asarray(self.transform(X)), axis=0, kind="stable")[:k].T

    def describe(self) -> str:
        """How many features are in use and why others are not; of each its mean, class and columns."""
        classes = getattr(self, "class_means_", None)
        most = None if classes is None else [str(self.classes_[c]) for c in classes.argmax(axis=0)]
        return description(self.component_status_, self.use_, self.top_features(5), most)

    def score_samples(self, X: Any, n_chains: int = 200, n_steps: int = 1000) -> FloatArray:
        """Log likelihood of what is known of each row, nats (N,); binary units only.

        Missing cells are integrated out. Up to ten features are summed, which is exact. With more, it comes
        from annealing with `n_chains` chains of `n_steps` steps, and for the chain graph and rows with gaps
        from `n_chains` draws of the features of each row.

        Real columns count by the density of their encoded (standardised) values, counts given their sum,
        three labels or more by a binary unit each, as if several could be at once.
        Raises InputError.
        """
        encoded, missing = self._encoded(X)
        rng = np.random.default_rng(self._key_seed(self.random_state))
        return log_likelihood(self.machine_, encoded, rng, n_chains, n_steps, missing, self.use_)

    def __sklearn_tags__(self) -> Any:
        tags = takes_any_cells(super().__sklearn_tags__())
        tags.input_tags.sparse = True
        return tags

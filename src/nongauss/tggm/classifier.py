"""`TGGMClassifier`, what a user calls for labels. Wiring, as in `estimator.py`."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from nongauss.core.errors import InputError
from nongauss.estimator.base import (
    Callbacks,
    CheckpointPath,
    Columns,
    Dropout,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    RandomState,
    Share,
    Verbosity,
)
from nongauss.estimator.by_parts import by_parts
from nongauss.estimator.known_rows import known_rows
from nongauss.estimator.probabilities import ProbabilityClassifierMixin
from nongauss.tables.labels import LabelCoder, LabelSummary, class_target, labels_of
from nongauss.tables.learn import as_source, learn
from nongauss.tables.rows import validate_weight
from nongauss.tables.screen import KeepColumns, screened
from nongauss.tables.source import Encode, Encoded, Source, itself
from nongauss.tables.sparse import SparseEncoder, SparseRows
from nongauss.tggm.base import TGGM
from nongauss.tggm.config import LayerSizes, Skip
from nongauss.tggm.data import LARGEST, LabelReading, NetworkRows, canonical
from nongauss.tggm.predict import Ensemble


class TGGMClassifier(ProbabilityClassifierMixin, TGGM):
    r"""Nonlinear classification with calibrated probabilities: a truncated-Gaussian graphical model.

    The model has layers of non-negative hidden units between the inputs and one output z for each class,

    $$ p(h | x) \propto \prod_l N(h_l; W_l h_{l-1} + b_l, \mathrm{diag}(s_l^2)) \; 1[h \ge 0], \qquad
       z \sim N(W h_L + b, I), \qquad y = \mathrm{argmax}_k \, z_k, $$

    a multinomial probit. Two classes have one output, whose sign decides. The hidden units are integrated
    out, in the fit and in the probabilities, so that their variance makes the probabilities of uncertain
    rows less extreme. The model is an ensemble whose members hold out different rows. Missing cells and
    text columns are handled; a sparse matrix stays sparse and is made dense batch by batch.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default (100,)
        Number M of hidden units in each hidden layer, from the inputs up.
    method : {"ml", "bp"}, default "ml"
        "ml" maximises the likelihood; "bp" is back-propagation: only E[z|x] is used, the variance of the
        hidden units is ignored.
    posterior : {"moments", "mean_field"}, default "moments"
        How "ml" treats the hidden units. "mean_field" is the EM gradient of the paper; "moments" takes z
        as Gaussian with its mean and variance given x, which needs no sweeps and predicts better.
    decision : {"probability", "mean_output"}, default "probability"
        `predict` takes the most probable class, or the paper's argmax_k E[z_k|x].
    class_weight : "balanced", dict or None, default None
        Factors by which weights of rows are multiplied, by class; "balanced" gives each class the same
        total.
    skip : "linear", "auto" or None, default None
        "linear" adds a linear term of the inputs to each output, beside the hidden units; "auto" keeps it
        where held-out rows prefer it (`skip_`), for one more fit.
    dropout : "auto" or float, default "auto"
        Share of the cells that each training step leaves out, so that no single column decides (0 <=
        dropout < 1). "auto": a half of the non-zero cells of a sparse matrix; of other tables two fifths from
        300 encoded columns on, a fifth from 20, none of fewer.
    preset : "paper" or None, default None
        "paper" sets what the paper's section 5 describes: one member, mean field, fixed variances, RMSProp,
        starting values N(0, 0.01), its batches and cycles, 40 epochs; `hidden_layer_sizes` and `method` are
        still yours to choose.
    hidden_variance : "learn" or float > 0, default "learn"
        Variance of the hidden units.
    n_sweeps : int, default 30
        Maximum number of sweeps of the mean-field posterior in each step; it stops earlier when it has
        converged.
    n_members : int, default 3
        Members of the ensemble.
    keep_columns, batch_size, early_stopping, validation_fraction, tol, callbacks, checkpoint, random_state, \
verbose :
        See `TGGMRegressor`.
    learning_rate : float, default 0.003
        First step size of the optimiser; it decays along a half cosine over `max_epochs`.
    max_epochs : "auto" or int, default "auto"
        Passes over the rows, "auto": 15 to 1000 that make 4,000 steps, of batches below 256 rows up to
        12,000.
    n_iter_no_change : int, default 200
        Epochs without a better held-out log-likelihood after which a fit stops.

    Attributes
    ----------
    classes_ : ndarray (C,), in order
    skip_ : "linear" or None, what `skip` became
    params_, ensemble_, encoded_names_, kept_columns_, n_iter_, converged_, stop_reason_, trace_ :
        See `TGGMRegressor`.

    Raises
    ------
    ValueError
        For parameters, tables or targets that cannot be used; one sentence with the remedy.

    References
    ----------
    Su, Liao, Chen and Carin, Nonlinear Statistical Learning with Truncated Gaussian Graphical Models,
    ICML 2016: eq. 23 and section 4.1 (labels), 4.2 (depth), supplement A and B.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nongauss import TGGMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TGGMClassifier((20,), max_epochs=20, random_state=0).fit(X, y)
    >>> model.predict_proba(X[:3]).shape
    (3, 3)
    """

    _shrink: Float[np.ndarray, " D"] | None

    def __init__(
        self,
        hidden_layer_sizes: LayerSizes = (100,),
        *,
        method: Literal["ml", "bp"] = "ml",
        preset: Literal["paper"] | None = None,
        posterior: Literal["moments", "mean_field"] = "moments",
        decision: Literal["probability", "mean_output"] = "probability",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        skip: Skip = None,
        dropout: Dropout = "auto",
        hidden_variance: PositiveFloat | Literal["learn"] = "learn",
        n_sweeps: PositiveInt = 30,
        keep_columns: Columns = "auto",
        n_members: PositiveInt = 3,
        batch_size: PositiveInt | Literal["auto"] = "auto",
        learning_rate: PositiveFloat = 0.003,
        max_epochs: PositiveInt | Literal["auto"] = "auto",
        early_stopping: bool = True,
        validation_fraction: Share = 0.1,
        n_iter_no_change: PositiveInt = 200,
        tol: NonNegativeFloat = 1e-4,
        callbacks: Callbacks = None,
        checkpoint: CheckpointPath = None,
        random_state: RandomState = None,
        verbose: Verbosity = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.method, self.posterior = method, posterior
        self.decision, self.skip, self.dropout = decision, skip, dropout
        self.class_weight, self.preset, self.hidden_variance = class_weight, preset, hidden_variance
        self.n_sweeps, self.n_members = n_sweeps, n_members
        self.keep_columns = keep_columns
        self.batch_size, self.learning_rate = batch_size, learning_rate
        self.max_epochs, self.early_stopping = max_epochs, early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol, self.callbacks, self.checkpoint = tol, callbacks, checkpoint
        self.random_state, self.verbose = random_state, verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a table X (N, D), which may be sparse or in parts (see `docs/scale.md`), and labels y (N,).

        A row of weight 2 counts as the row twice, one of weight 0 is not there; the order of rows is
        irrelevant. Raises ValueError.
        """
        result, _ = self._trained(X, y, sample_weight)
        self._record_fit(result)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """One more epoch over these rows, after `fit`, after itself, or from the start.

        The first call (of either) fixes the encoding and the classes, of which `classes` may name ones that
        do not occur yet. No rows are held out and nothing stops early. Raises ValueError, also for
        `class_weight="balanced"`, which a portion cannot tell.
        """
        if isinstance(self.class_weight, str):
            raise InputError(
                "class_weight='balanced' needs all rows, and partial_fit sees a portion; "
                "give a factor for each class, such as {0: 1.0, 1: 5.0}."
            )
        if hasattr(self, "ensemble_"):
            self._check_known(classes)
        self._record_fit(self._trained_further(X, y, sample_weight, classes))
        return self

    @by_parts
    def predict(self, X: Any) -> np.ndarray:
        """The class of each row by the rule that `decision` names: (N,)."""
        if self.decision == "probability":
            return super().predict(X)
        outputs = self._over_gaps(X, lambda rows: self.ensemble_.classes(rows)[1])
        if outputs.shape[1] == 1:
            outputs = np.concatenate([-outputs, outputs], axis=1)
        chosen: np.ndarray = self.classes_[outputs.argmax(axis=1)]
        return chosen

    @by_parts
    def predict_proba(self, X: Any) -> Float64[np.ndarray, "N C"]:
        """Probability of each class, in the order of `classes_`: (N, C), rows sum to 1."""
        found: Float64[np.ndarray, "N C"] = self._over_gaps(X, lambda rows: self.ensemble_.classes(rows)[0])
        return found

    def _fixed_noise_variance(self) -> float:
        return 1.0

    def _read_table(
        self, X: Any, y: Any, sample_weight: Any, keep: KeepColumns, levels: Any = None
    ) -> tuple[LabelReading, Source]:
        name = type(self).__name__
        X = csr_array(X) if issparse(X) else X
        source = as_source(X, y, sample_weight, estimator_name=name, accept_sparse=True)
        if issparse(X):
            (part,) = source.each(itself)
            encoder: Any = SparseEncoder.fit(part.X.matrix, part.weight, name)
            labels, shrink = labels_of(name, part, part.weight), None
            coder = self._coder_of(labels, levels)
        else:
            learned = learn(source, name, partial(labels_of, name))
            labels = learned.target
            coder = self._coder_of(labels, levels)
            encode = Encode(learned.encoder, partial(class_target, coder, name), name)
            learned = screened(learned, source, encode, keep, labels=True)
            encoder, shrink = learned.encoder, LARGEST / np.maximum(learned.extremes, LARGEST)
        reading = LabelReading(encoder, shrink, coder, known_rows(source, encoder, name))
        rows = source.map(Encode(encoder, partial(class_target, coder, name), name, shrink))
        if self.class_weight is not None:
            classes = reading.coder.classes
            mass = np.array([labels.mass[labels.labels == label].sum() for label in classes])
            rows = rows.map(_weighted, self._class_factors(classes, mass))
        return reading, rows

    def _coder_of(self, labels: LabelSummary, levels: Any) -> LabelCoder:
        """The classes of a table in their order, or those that `levels` name. Raises InputError."""
        name = type(self).__name__
        if levels is None:
            coder = labels.coder(name)
        else:
            coder = LabelCoder.fit(labels.labels, labels.mass, name, levels=levels)
        return LabelCoder(np.sort(coder.classes))

    def _known_reading(self) -> LabelReading:
        return LabelReading(self._encoder, self._shrink, self._coder, self._known_rows)

    def _more_rows(self, X: Any, y: Any, sample_weight: Any) -> NetworkRows:
        encoded = self._encode(X)
        weight = validate_weight(sample_weight, len(encoded))
        return self._rows(self._known_reading(), encoded, y, weight)

    def _rows(
        self,
        reading: LabelReading,
        encoded: Float[np.ndarray, "N D"] | SparseRows,
        y: Any,
        weight: Float64[np.ndarray, " N"],
    ) -> NetworkRows:
        """Canonical rows, weights times the factors of their classes."""
        numbers_ = reading.coder.encode(y, len(encoded), type(self).__name__, weight)
        classes, own = reading.coder.classes, numbers_.astype(int)
        mass = np.bincount(own, weights=weight, minlength=len(classes)).astype(np.float64)
        weight = weight * self._class_factors(classes, mass)[own]
        n_columns = reading.encoder.n_features if reading.shrink is None else None
        encoded = self._filled(encoded, numbers_[:, None])
        return canonical(encoded, numbers_[:, None], weight, n_columns)

    def _check_known(self, classes: Any) -> None:
        """Raises InputError where a later call of `partial_fit` names other classes than the first."""
        if classes is not None and set(np.asarray(classes).tolist()) != set(self.classes_.tolist()):
            raise InputError(
                f"classes are {np.asarray(classes).tolist()[:10]}, but the first call fixed "
                f"{self.classes_.tolist()[:10]}; pass the same or none, or call fit."
            )

    def _class_factors(
        self, classes: np.ndarray, mass: Float64[np.ndarray, " C"]
    ) -> Float64[np.ndarray, " C"]:
        """The factor of each class, from the weight of its rows. Raises InputError for an unknown class."""
        if self.class_weight is None:
            return np.ones(len(classes))
        if isinstance(self.class_weight, str):
            return np.where(mass > 0, mass.sum() / (len(classes) * np.where(mass > 0, mass, 1.0)), 0.0)
        factors = np.ones(len(classes))
        for label, factor in self.class_weight.items():
            place = np.flatnonzero(classes == label)
            is_number = isinstance(factor, numbers.Real) and np.isfinite(factor) and factor >= 0
            if len(place) != 1 or not is_number:
                raise InputError(
                    f"class_weight gives {factor!r} to the class {label!r}; name classes of y "
                    f"({classes.tolist()[:10]}) and weights that are finite and at least 0."
                )
            factors[place] = factor
        if not (factors * mass).any():
            raise InputError("class_weight leaves no row; give a class that occurs a weight above 0.")
        return factors

    def _new_rows(self, X: Any) -> Any:
        X = super()._new_rows(X)
        return X.toarray() if self._shrink is not None and issparse(X) else X

    def _as_rows(self, encoded: Any) -> Any:
        return super()._as_rows(encoded if self._shrink is None else encoded * self._shrink)

    def check_loaded(self) -> None:
        """Raises ValueError for the weights or classes of another fit."""
        super().check_loaded()
        same = np.array_equal(self.classes_, self._coder.classes)
        width = len(self._encoder.encoded_names)
        if not same or (self._shrink is not None and len(self._shrink) != width):
            raise ValueError("classes or scales of another fit")

    def _keep(self, reading: LabelReading, ensemble: Ensemble) -> None:
        _, self._shrink, self._coder, self._known_rows = reading
        self._keep_ensemble(reading.encoder, ensemble)
        self.classes_ = reading.coder.classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _weighted(part: Encoded, factors: Float64[np.ndarray, " C"]) -> Encoded:
    """The rows of a part whose weight, times the factor of their class, is above 0."""
    weight = part.weight * factors[part.Y[:, 0].astype(int)]
    kept = weight > 0
    return Encoded(part.X[kept], part.Y[kept], weight[kept])

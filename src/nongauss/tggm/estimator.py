"""`TGGMRegressor`: numbers as targets. Wiring: tables to rows, members to laws."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.estimator.base import (
    Callbacks,
    CheckpointPath,
    Columns,
    DistributionRegressorMixin,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    RandomState,
    Share,
    StrOptions,
    Verbosity,
)
from nongauss.estimator.known_rows import known_rows
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.tables.learn import as_source, learn
from nongauss.tables.rows import validate_weight
from nongauss.tables.screen import KeepColumns, screened
from nongauss.tables.source import Encode, Source
from nongauss.tables.target import scaled_target, target_of, validate_target, warn_if_constant, warn_if_far
from nongauss.tggm.base import TGGM
from nongauss.tggm.config import ChosenLayerSizes, Skip
from nongauss.tggm.data import NetworkRows, RegressionReading, canonical
from nongauss.tggm.exact_law import law_of
from nongauss.tggm.params import SMALLEST_LOG_SD
from nongauss.tggm.predict import Ensemble
from nongauss.tggm.splines import SplineColumns

Splines = Annotated[SplineColumns, StrOptions({"auto"}), "array-like", None]


class TGGMRegressor(DistributionRegressorMixin, MultiOutputMixin, RegressorMixin, TGGM):  # type: ignore[misc]
    r"""Nonlinear regression with skewed, input-dependent noise: a truncated-Gaussian graphical model.

    The model has layers of non-negative hidden units between inputs and outputs; with one layer,

    $$ p(y, h | x) = N(y; W_1 h + b_1, \mathrm{diag}(s_1^2)) \; N_T(h; W_0 x + b_0, \mathrm{diag}(s_0^2)), $$

    with N_T the normal truncated to h >= 0. E[y|x] is a network of soft rectifiers; because the units are
    random, the variance and the skewness of y change with x. The model is an ensemble. Each member holds
    out some rows, which protects from overfitting and calibrates the intervals. Columns and targets may
    have any units; missing cells and text columns are handled.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int or "auto", default "auto"
        Number M of hidden units in each hidden layer, from the inputs up. "auto" is (50,), or from 3,000
        different rows on (50, 50) if held-out rows prefer it; without held-out rows, by "mean_field" and with
        `monotone` it is (50,).
    method : {"ml", "bp"}, default "ml"
        "ml" maximises the likelihood; "bp" fits the mean by back-propagation with Gaussian noise about it.
    posterior : {"auto", "moments", "exact", "mean_field"}, default "auto"
        How "ml" treats the hidden units. "moments" replaces p(y|x) by the Gaussian with its exact mean and
        covariance; "exact" integrates the units out by a saddlepoint approximation from their cumulant
        generating function, for skewed noise; "auto" fits by moments, continues by "exact" if held-out
        errors are skewed, and keeps the better one. "mean_field" is the EM gradient of the paper,
        which predicts less well.
    n_heads : int or "auto", default "auto"
        Number of outputs of which y is a mixture, with weights that depend on the hidden units: for several
        modes, and variances that depend on x. "auto" is 1, or with `posterior="auto"` 3 if held-out rows
        prefer it.
    skip : "linear", "auto" or None, default None
        "linear" adds a linear term of the inputs beside the hidden units; "auto" keeps it where held-out rows
        prefer it (`skip_`), for one more fit.
    preset : "paper" or None, default None
        "paper" sets what the paper's section 5 describes: one member, mean field, fixed variances, RMSProp,
        starting values N(0, 0.01), its batches and cycles, 40 epochs; `hidden_layer_sizes` and `method` are
        still yours to choose.
    hidden_variance, noise_variance : "learn" or float > 0, default "learn"
        Variance of the hidden units, and of the noise as a share of the target's variance.
    n_sweeps : int, default 10
        Maximum number of sweeps of the mean-field posterior in each step; it stops earlier when it has
        converged.
    keep_columns : see `SparseGPRegressor`; `partial_fit` keeps all
    monotone : dict or None, default None
        Numeric columns with which the mean may only rise (1) or fall (-1), by name, or by number for
        arrays, such as {"age": 1}. The constraint is exact; it needs one hidden layer and one output.
    splines : "auto", list of columns or None, default "auto"
        Numeric columns that also enter as linear splines, because y has several turning points along them
        (the hour of a day). "auto" takes the columns for which there is evidence, `spline_columns_`.
    n_members : int, default 5
        Members of the ensemble.
    batch_size : "auto" (a fiftieth of the rows, between 32 and 256) or int, default "auto"
    learning_rate : float, default 0.01
        First step size of the optimiser; it decays along a half cosine over `max_epochs`.
    max_epochs : int, default 400
        Passes over the rows.
    early_stopping : bool, default True
        Hold out `validation_fraction` of the rows from each member (different rows for each), keep its best
        epoch (below 25 such rows a member, the epoch that is best for all), stop when no member has improved
        for `n_iter_no_change` epochs, and calibrate the variance.
        With fewer than 20 distinct rows, all are used for training, and intervals are far too narrow.
    validation_fraction : float in (0, 1), default 0.1
        At most 1 / n_members, because each member holds out different rows.
    n_iter_no_change : int, default 100
        Of further fits of "auto" the same share ends them as they have of the epochs: half, with two layers
        three tenths.
    tol : float, default 1e-4
        Smallest gain of the held-out log-likelihood (nats a row) that counts as an improvement.
    callbacks : list of callables, default None
        Each is called with a `Progress` from time to time; the fit stops if one returns True.
    checkpoint : path, default None
        A file from which an interrupted fit resumes, see `SparseGPRegressor`.
    random_state, verbose : as in scikit-learn

    Attributes
    ----------
    params_ : NetworkParams
        Weights of all members on the standardised scale, arrays with a leading member axis.
    posterior_, n_heads_, hidden_layer_sizes_ : str, int, tuple
        The values chosen for `posterior`, `n_heads` and `hidden_layer_sizes`.
    noise_variance_ : ndarray (P,), or one number a head
        Noise variance s_1^2, squared target units: the members' mean, times the inflation.
    ensemble_ : Ensemble
        Everything needed for prediction; `ensemble_.inflation` is the factor by which the variances were
        corrected on held-out rows, `ensemble_.skewness` the share of the skewed shape that was kept (0 is
        Gaussian), `ensemble_.tails.degrees` the degrees of freedom of the Student t that fits these rows
        best.
    kept_columns_ : see `SparseGPRegressor`.
    encoded_names_ : tuple of str
        The encoded columns that the weights belong to; those of splines (`ensemble_.splines`) come last.
    spline_columns_ : tuple of str
        The columns that also enter as splines.
    n_iter_, converged_, stop_reason_, trace_ : how the fit went; the trace has the objective (nats over the
        training rows, standardised, weights by about their mean) and `held_out` (nats a row).

    Raises
    ------
    ValueError
        For parameters, tables or targets that cannot be used; one sentence with the remedy.

    References
    ----------
    Su, Liao, Chen and Carin, Nonlinear Statistical Learning with Truncated Gaussian Graphical Models,
    ICML 2016: eq. 1 to 7 (model), 8 to 22 ("ml"), section 3.2 ("bp").

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nongauss import TGGMRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TGGMRegressor(max_epochs=20, random_state=0).fit(X, y)
    >>> model.predict_interval(X[:3], coverage=0.9).shape
    (3, 2)
    """

    def __init__(
        self,
        hidden_layer_sizes: ChosenLayerSizes = "auto",
        *,
        method: Literal["ml", "bp"] = "ml",
        preset: Literal["paper"] | None = None,
        posterior: Literal["auto", "moments", "exact", "mean_field"] = "auto",
        n_heads: PositiveInt | Literal["auto"] = "auto",
        skip: Skip = None,
        hidden_variance: PositiveFloat | Literal["learn"] = "learn",
        noise_variance: PositiveFloat | Literal["learn"] = "learn",
        n_sweeps: PositiveInt = 10,
        keep_columns: Columns = "auto",
        monotone: Mapping[Any, int] | None = None,
        splines: Splines = "auto",
        n_members: PositiveInt = 5,
        batch_size: PositiveInt | Literal["auto"] = "auto",
        learning_rate: PositiveFloat = 0.01,
        max_epochs: PositiveInt = 400,
        early_stopping: bool = True,
        validation_fraction: Share = 0.1,
        n_iter_no_change: PositiveInt = 100,
        tol: NonNegativeFloat = 1e-4,
        callbacks: Callbacks = None,
        checkpoint: CheckpointPath = None,
        random_state: RandomState = None,
        verbose: Verbosity = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.method, self.posterior, self.n_heads = method, posterior, n_heads
        self.skip, self.preset, self.hidden_variance = skip, preset, hidden_variance
        self.noise_variance = noise_variance
        self.n_sweeps, self.n_members = n_sweeps, n_members
        self.keep_columns, self.monotone, self.splines = keep_columns, monotone, splines
        self.batch_size, self.learning_rate = batch_size, learning_rate
        self.max_epochs = max_epochs
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.n_iter_no_change, self.tol = n_iter_no_change, tol
        self.callbacks, self.checkpoint = callbacks, checkpoint
        self.random_state, self.verbose = random_state, verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a table X (N, D) and targets y (N,) or (N, P), or to a table in parts (see `docs/scale.md`).

        A row of weight 2 counts as the row twice, one of weight 0 is not there; the order of rows is
        irrelevant. Warns if the target is constant or the fit did not end well. Raises ValueError.
        """
        result, data = self._trained(X, y, sample_weight)
        self._note_a_noise_floor(data)
        self._record_fit(result)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """One more epoch over these rows, after `fit`, after itself, or from the start.

        The first call (of either) fixes the encoding, the scaling and the shapes. No rows are held out: the
        calibration stays what it was, and nothing stops early. Raises ValueError.
        """
        self._record_fit(self._trained_further(X, y, sample_weight))
        return self

    def predict_distribution(self, X: Any) -> PredictiveDistribution:
        """The predictive distribution of each row, averaged over the values that missing cells may have."""
        check_is_fitted(self)
        say = partial(law_of, self.ensemble_, squeeze=self._squeeze)
        law: PredictiveDistribution = self._over_gaps(X, say)
        return law

    def _fixed_noise_variance(self) -> float | None:
        return None if self.noise_variance == "learn" else float(self.noise_variance)

    def _read_table(
        self, X: Any, y: Any, sample_weight: Any, keep: KeepColumns, levels: Any = None
    ) -> tuple[RegressionReading, Source]:
        name = type(self).__name__
        source = as_source(X, y, sample_weight, estimator_name=name)
        learned = learn(source, name, partial(target_of, name))
        scaler = learned.target.scaler()
        warn_if_constant(scaler, stacklevel=5)
        warn_if_far(learned.target, stacklevel=5)
        read, n = partial(scaled_target, scaler, name), len(scaler.centre)
        encoder = screened(learned, source, Encode(learned.encoder, read, name, n_targets=n), keep).encoder
        known = known_rows(source, encoder, name)
        squeeze, asked = learned.target.dims == 1, None if self.preset else self.splines
        reading = RegressionReading(encoder, scaler, squeeze, known, self.monotone, asked)
        return reading, source.map(Encode(encoder, read, name, n_targets=n))

    def _known_reading(self) -> RegressionReading:
        return RegressionReading(
            self._encoder,
            self._scaler,
            self._squeeze,
            self._known_rows,
            self.monotone,
            splines=self.ensemble_.splines,
        )

    def _more_rows(self, X: Any, y: Any, sample_weight: Any) -> NetworkRows:
        encoded = self._encode(X)
        Y, _ = validate_target(y, len(encoded), type(self).__name__)
        if Y.shape[1] != len(self._scaler.centre):
            raise InputError(
                f"y has {Y.shape[1]} outputs, but the first call of partial_fit had "
                f"{len(self._scaler.centre)}; pass the same outputs, or call fit."
            )
        Y = self._scaler.transform(Y)
        return canonical(self._filled(encoded, Y), Y, validate_weight(sample_weight, len(encoded)))

    def _note_a_noise_floor(self, data: NetworkRows) -> None:
        """Warn where nothing is left to chance: at the floor, the hidden units may still carry a spread."""
        floor = np.exp(SMALLEST_LOG_SD)
        if self.noise_variance != "learn" or np.exp(self.params_.log_sd1).min() > 1.01 * floor:
            return
        _, variance = self.ensemble_.moments(data.X[:: max(1, len(data.X) // 1000)].astype(np.float64))
        if (np.sqrt(np.median(variance, axis=0)) / np.abs(self.ensemble_.scale)).min() < 10.0 * floor:
            warnings.warn(
                "The noise has reached its floor, 1e-4 of the target's standard deviation: the inputs seem "
                "to determine the target without noise, so read the intervals with care.",
                NongaussWarning,
                stacklevel=3,
            )

    def _keep(self, reading: RegressionReading, ensemble: Ensemble) -> None:
        _, self._scaler, self._squeeze, self._known_rows, *_ = reading
        ensemble = ensemble._replace(splines=reading.splines)
        self.spline_columns_ = reading.splines.columns(reading.encoder.encoded_names)
        centre, scale = self._scaler.centre, self._scaler.scale
        self._keep_ensemble(reading.encoder, ensemble._replace(centre=centre, scale=scale))
        self.posterior_, self.n_heads_ = ensemble.config.posterior, ensemble.config.n_heads or 1
        self.hidden_layer_sizes_ = ensemble.config.layers
        noise = np.exp(2.0 * np.asarray(ensemble.params.log_sd1, np.float64))
        self.noise_variance_ = ensemble.inflation * noise.mean(axis=0) * scale**2

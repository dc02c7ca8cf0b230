"""`HarmoniumRegressor`, what a user calls for features that tell a number."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from nongauss.core.errors import NongaussWarning
from nongauss.estimator.base import (
    Callbacks,
    CheckpointPath,
    DistributionRegressorMixin,
    Dropout,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    RandomState,
    Share,
    Verbosity,
)
from nongauss.harmonium.base import FloatArray
from nongauss.harmonium.clipped_scale import few_far
from nongauss.harmonium.data import HarmoniumTable
from nongauss.harmonium.left_out import LeftOutErrors, left_out_errors
from nongauss.harmonium.supervised import SupervisedHarmonium
from nongauss.optimise.course import Status
from nongauss.optimise.loop import close_checkpoint
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.tables.target import TargetScaler, warn_if_constant


class HarmoniumRegressor(DistributionRegressorMixin, RegressorMixin, SupervisedHarmonium):  # type: ignore[misc]
    r"""Regression on latent features that are learned with a large margin: a tube about the prediction.

    A harmonium (see `Harmonium`) whose feature means E[z | x] feed a linear regression; both are learned
    together: contrastive divergence of the columns plus C times the loss max(0, |y - f| - epsilon) of each
    row, which ignores small errors and grows linearly with large ones, so that outliers have little
    influence. The predictive distribution of y about the prediction is that of held-out errors.

    Parameters
    ----------
    n_components : "infinite" or int, default "infinite"
        Number of features; "infinite": see `reading`.
    C : float, default 300.0
        Weight of the loss of a row, in standard deviations of y, against one nat of its contrastive free
        energy. 0: the target is ignored.
    epsilon : float, default 0.1
        Half the width of the tube within which errors cost nothing, in standard deviations of y.
    dropout : "auto" or float, default "auto"
        Share of the cells that are hidden from the regression in each step; see `HarmoniumClassifier`.
    raw_features : bool, default False
        Use the columns beside the features, in one large-margin regression on both.
    reading, truncation, units, views, method, alpha, stick_expectation, batch_size, max_epochs,
    early_stopping, validation_fraction, callbacks, checkpoint, random_state, verbose
        See `HarmoniumClassifier`.

    Attributes
    ----------
    errors_ : LeftOutErrors
        Calibration line and distribution of held-out errors: from five folds, or with over 2,000 rows from
        one fifth.
    raw_votes_ : ndarray (1, D), or (1, 0) without `raw_features`
        Contribution of each column, standardised as in `encoded_names_`, to the score; above 0 if the score
        rises with the column.
    n_active_, component_status_, components_, machine_, n_iter_, converged_, stop_reason_, trace_ :
        See `Harmonium`.

    Raises
    ------
    ValueError
        For parameters, tables or targets that cannot be used; one sentence with the remedy.

    References
    ----------
    Chen, Zhu, Sun and Zhang, IEEE Trans. Neural Networks and Learning Systems 25 (2014). Zhu, Ahmed and
    Xing, JMLR 13 (2012), for the tube on latent features. Smola and Schoelkopf, Statistics and Computing 14
    (2004).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nongauss import HarmoniumRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = HarmoniumRegressor(n_components=8, max_epochs=20, random_state=0).fit(X, y)
    >>> model.predict_interval(X[:3], coverage=0.9).shape
    (3, 2)
    """

    errors_: LeftOutErrors
    _scaler: TargetScaler

    def __init__(
        self,
        n_components: PositiveInt | Literal["infinite"] = "infinite",
        *,
        C: NonNegativeFloat = 300.0,
        epsilon: NonNegativeFloat = 0.1,
        dropout: Dropout = "auto",
        raw_features: bool = False,
        reading: Literal["auto", "global"] = "auto",
        truncation: PositiveInt | Literal["auto"] = "auto",
        units: Literal["binary", "real"] = "binary",
        views: Annotated[Mapping[str, Any], dict] | None = None,
        method: Literal["cd", "mean_field", "pcd", "lbfgs"] = "cd",
        alpha: PositiveFloat = 1.0,
        stick_expectation: Literal["accurate", "multinomial"] = "accurate",
        batch_size: PositiveInt = 256,
        max_epochs: PositiveInt | None = None,
        early_stopping: bool = False,
        validation_fraction: Share = 0.1,
        callbacks: Callbacks = None,
        checkpoint: CheckpointPath = None,
        random_state: RandomState = None,
        verbose: Verbosity = 0,
    ) -> None:
        self.n_components = n_components
        self.C, self.epsilon, self.dropout = C, epsilon, dropout
        self.raw_features, self.reading = raw_features, reading
        self.truncation, self.units = truncation, units
        self.views = views
        self.method = method
        self.alpha = alpha
        self.stick_expectation = stick_expectation
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a table X (N, columns), dense, sparse or in parts (see `docs/scale.md`), and numbers y (N,).

        A row with weight 2 counts as the same row twice, a row with weight 0 as left out. Warns if the
        target is constant or has one or two values far from all others, or the fit did not end well. Raises
        ValueError.
        """
        table = self._checked_table(X, y, sample_weight, "numbers")
        assert isinstance(table.target, TargetScaler)
        warn_if_constant(table.target, stacklevel=3)
        self._scaler = table.target
        self._warn_of_far(table)
        learned = self._learned(table, X, y, sample_weight, 1)
        recipe = learned.recipe
        if learned.result.status is Status.STOPPED:
            recipe = recipe._replace(max_epochs=max(1, learned.result.n_iter))
        machine = learned.machine
        self.errors_ = left_out_errors(
            machine.layout, learned.rows, learned.given, recipe, machine.filler, learned.run
        )
        close_checkpoint(learned.checkpoint, learned.result.status)
        self._record_fit(learned.result)
        return self

    def _warn_of_far(self, table: HarmoniumTable) -> None:
        """Warn of targets that tell nothing of the errors of the others, at the line that called `fit`."""
        assert table.rows.labels is not None
        far = few_far(table.rows.labels.astype(np.float64), table.rows.weight)
        if far.any():
            one = self._scaler.inverse_mean(table.rows.labels[far, None].astype(np.float64)).min()
            warnings.warn(
                f"{int(far.sum())} of the targets, such as {one:.6g}, are so far from the others that the "
                "spread of the errors is judged without them, and values as far have little probability; "
                "correct them, or drop their rows.",
                NongaussWarning,
                stacklevel=3,
            )

    def predict_distribution(self, X: Any) -> PredictiveDistribution:
        """The predictive distribution of each row, averaged over the values that missing cells may have."""
        law: PredictiveDistribution = self._over_cells(X, self._law, lambda each: each.mean(axis=0))
        return law

    def _law(self, f: FloatArray) -> PredictiveDistribution:
        """The laws of rows with these scores (N, 1)."""
        return self.errors_.law(f[:, 0], float(self._scaler.centre[0]), float(self._scaler.scale[0]))

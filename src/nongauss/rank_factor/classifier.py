"""`RankFactorClassifier`, what a user calls."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nongauss.core.errors import InputError
from nongauss.estimator.base import (
    Callbacks,
    CheckpointPath,
    Interval,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    RandomState,
    Verbosity,
)
from nongauss.estimator.by_parts import by_parts
from nongauss.estimator.gaps import over_gaps
from nongauss.estimator.known_rows import rows_to_compare
from nongauss.estimator.probabilities import ProbabilityClassifierMixin
from nongauss.rank_factor.base import RankFactors
from nongauss.rank_factor.config import LevelCount
from nongauss.rank_factor.data import FloatArray
from nongauss.tables.completion import Donors, donor_columns


class RankFactorClassifier(ProbabilityClassifierMixin, RankFactors):
    r"""Classification on sparse factors that depend only on the order of each column's values.

    The factors of `RankFactorAnalysis` with a Bayesian support vector machine on top, exp(-2 [1 - y
    beta'z]_+) (the paper's R-L; `observation="gaussian"`: G-L), or a Dirichlet-process mixture of such
    machines (`classifier="mixture"`: R-NL, G-NL). Several classes are handled one against the rest, with
    common factors. A new row's factors come from its ranks against the training values, without a label;
    predictions do not change under any increasing transform of any column.

    Parameters
    ----------
    n_factors, observation, neighbours, n_levels, epsilon, shrinkage, slab, noise_prior, n_chains, n_draws,
    tol, callbacks, checkpoint, max_rows, random_state, verbose
        See `RankFactorAnalysis`.
    classifier : {"linear", "mixture"}, default "linear"
    inference : {"vb", "gibbs", "predictive"}, default "vb"
        "predictive": the factors of a row are computed from its cells by a few unrolled steps, and the loss
        of the label is differentiated through them; the most accurate, without a posterior. To calibrate
        its probabilities, training is repeated without a fifth of the rows: once, or below 1,000 rows up to
        five times.
    n_experts : int, default 10
        Maximum number of machines in the mixture.
    cut : "auto" or bool, default "auto"
        True: the classifier learns from factors that are estimated without the label, as for a new row.
        False: the joint posterior of the paper, in which the label influences the factors of training rows,
        but not of new ones. "auto": True except for "gibbs".
    offset_precision : float > 0, default 0.01
        Prior precision of a machine's offset, which is not shrunk.
    learning_rate : float, default 0.01
        First step size of "predictive".
    max_iter : "auto" or int, default "auto"
        Maximum number of sweeps, or epochs of "predictive" (a schedule of 500 steps, or of 100 or
        20 if these clearly predict held-out rows better).

    Attributes
    ----------
    classes_ : ndarray (C,)
    coef_ : ndarray (C, K), intercept_ : ndarray (C,)
        Posterior mean coefficients of the linear machine (of the mixture: of the average expert). One row for
        two classes.
    loadings_, n_active_, draws_, chain_, r_hat_, effective_draws_, n_iter_, converged_, stop_reason_,
    trace_ :
        See `RankFactorAnalysis`.

    References
    ----------
    Yuan et al., ICML 2015 (see `RankFactorAnalysis`); Polson and Scott, Bayesian Analysis 6 (2011).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from nongauss import RankFactorClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = RankFactorClassifier(n_factors=3, random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    def __init__(
        self,
        n_factors: PositiveInt | Literal["auto"] = "auto",
        *,
        observation: Literal["rank", "gaussian"] = "rank",
        classifier: Literal["linear", "mixture"] = "linear",
        inference: Literal["vb", "gibbs", "predictive"] = "vb",
        neighbours: Literal["level", "pairwise", "extremes"] = "level",
        n_levels: LevelCount = 8,
        n_experts: PositiveInt = 10,
        epsilon: PositiveFloat | Literal["auto"] = "auto",
        shrinkage: Annotated[tuple[float, float], "array-like"] = (0.5, 0.5),
        slab: PositiveFloat = 1.0,
        noise_prior: Annotated[tuple[float, float], "array-like"] = (1.0, 0.1),
        offset_precision: PositiveFloat = 0.01,
        cut: bool | Literal["auto"] = "auto",
        learning_rate: PositiveFloat = 0.01,
        n_chains: PositiveInt = 2,
        n_draws: PositiveInt = 50,
        max_iter: PositiveInt | Literal["auto"] = "auto",
        tol: NonNegativeFloat = 3e-3,
        callbacks: Callbacks = None,
        checkpoint: CheckpointPath = None,
        max_rows: Annotated[int, Interval(numbers.Integral, 2, None, closed="left")] | None = None,
        random_state: RandomState = None,
        verbose: Verbosity = 0,
    ) -> None:
        self.n_factors = n_factors
        self.observation, self.classifier, self.inference = observation, classifier, inference
        self.neighbours, self.n_levels = neighbours, n_levels
        self.n_experts, self.epsilon = n_experts, epsilon
        self.shrinkage, self.slab = shrinkage, slab
        self.noise_prior, self.offset_precision = noise_prior, offset_precision
        self.cut, self.learning_rate = cut, learning_rate
        self.n_chains, self.n_draws = n_chains, n_draws
        self.max_iter, self.tol = max_iter, tol
        self.callbacks, self.checkpoint = callbacks, checkpoint
        self.max_rows = max_rows
        self.random_state, self.verbose = random_state, verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a table X (N, D) and labels y (N,). Weight 2 counts as the row twice, 0 as left out.

        Weights below 1e-12 times the largest are raised to that value, weights above 1e12 lowered to 1e12.

        Raises InputError for a table, labels, weights or a parameter that cannot be used.
        """
        self._check()
        raw = self._read(X, y, sample_weight, labels=True)
        assert raw.classes is not None
        n_classes = len(raw.classes)
        settings = {
            "n_experts": int(self.n_experts) if self.classifier == "mixture" else 1,
            "n_outputs": 1 if n_classes == 2 else n_classes,
            "cut": self.inference != "gibbs" if self.cut == "auto" else bool(self.cut),
        }
        self._known_rows = None
        result = self._fit(raw, settings)
        view = "rank_names" if self.observation == "rank" else "one_hot_names"
        donors = Donors.of_cells(donor_columns(raw.encoder, view), raw.cells, raw.numbers, raw.weight)
        self._known_rows = rows_to_compare(X, y, sample_weight, type(self).__name__)
        self._keep_donors(donors, self.holds_training_rows_)
        self.classes_ = raw.classes
        self._record_fit(result)
        return self

    def check_loaded(self) -> None:
        """Raises ValueError where classes, coefficients and calibration do not fit each other."""
        super().check_loaded()
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        calibration = self._calibration
        same = self.draws_[0].beta.shape[1] == n_outputs
        if not same or (calibration is not None and len(calibration.slope) != n_outputs):
            raise ValueError("classes that are not those of the coefficients")

    @by_parts
    def decision_function(self, X: Any) -> FloatArray:
        """Log odds of the second class (N,), or of each class against the rest (N, C)."""
        p = self._each(X)
        odds = np.log(p) - np.log1p(-p)
        return odds[:, 0] if len(self.classes_) == 2 else odds

    @by_parts
    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row: (N,)."""
        return super().predict(X)

    @by_parts
    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, in the order of `classes_`: (N, C), rows sum to 1.

        The mean of calibrated decision values over the draws of the posterior.
        """
        p = self._each(X)
        if len(self.classes_) == 2:
            return np.concatenate([1.0 - p, p], axis=1)
        found: FloatArray = p / p.sum(axis=1, keepdims=True)
        return found

    def _each(self, X: Any) -> FloatArray:
        """Probability of the second class (N, 1), or of each class (N, C), with the sum 1."""
        cells = self._raw(X)
        donors = getattr(self, "_donors", None)
        if donors is None:
            return self._fitted.probabilities(cells)
        known, missing = np.nan_to_num(cells), donors.missing_of(cells)
        found: FloatArray = over_gaps(donors, known, missing, self._fitted.probabilities)
        return found

    @property
    def coef_(self) -> FloatArray:
        """Mean coefficients of the factors, over draws and experts: (C, K)."""
        found: FloatArray = np.mean([draw.beta[..., :-1].mean(axis=0) for draw in self._fitted.draws], axis=0)
        return found

    @property
    def intercept_(self) -> FloatArray:
        """Mean offsets: (C,)."""
        found: FloatArray = np.mean([draw.beta[..., -1].mean(axis=0) for draw in self._fitted.draws], axis=0)
        return found

    def coefficient_intervals(self, coverage: float = 0.9) -> FloatArray:
        """Intervals of the linear machine's coefficients: (C, K, 2); of a mixture: (T, C, K, 2).

        They are computed as in `loading_intervals`, and raise the same errors.
        """
        out = self._intervals(
            lambda draw: draw.beta[..., :-1], lambda spread: spread.coefficients[..., :-1], coverage
        )
        return out[0] if len(out) == 1 else out

    def coefficients(self, coverage: float = 0.9) -> pd.DataFrame:
        """The linear machine's coefficients by factor (and class): mean, lower and upper end."""
        bounds = self.coefficient_intervals(coverage)
        if bounds.ndim == 4:
            raise InputError("A mixture has coefficients for each expert; use `coefficient_intervals`.")
        names = self._output_names()["output"]
        index = pd.MultiIndex.from_product([names, self.get_feature_names_out()], names=["class", "factor"])
        values = {"mean": self.coef_, "lower": bounds[..., 0], "upper": bounds[..., 1]}
        return pd.DataFrame({key: value.ravel() for key, value in values.items()}, index=index)

    def _output_names(self) -> dict[str, Sequence[Any]]:
        """The classes that outputs stand for, by the name of their axis."""
        return {"output": list(self.classes_[1:] if len(self.classes_) == 2 else self.classes_)}

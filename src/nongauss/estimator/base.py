"""The face that all estimators share: parameters as declared, how a fit is recorded, shorthands.

The only file that touches scikit-learn's private words for constraints of parameters.
"""

from __future__ import annotations

import numbers
import os
import types
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.seeds import key_seed
from nongauss.estimator.about import About
from nongauss.estimator.by_parts import by_parts
from nongauss.estimator.conformal import ConformalScores, guaranteed, scored
from nongauss.estimator.explain import ExplainMixin
from nongauss.estimator.gaps import labelled_as, over_gaps
from nongauss.estimator.known_rows import known_rows
from nongauss.estimator.told import ToldMixin
from nongauss.optimise.course import COLUMNS, FitResult, Run, Status
from nongauss.tables.completion import Donors
from nongauss.tables.screen import KeepColumns

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from numpy.typing import ArrayLike

    from nongauss.predictive.distribution import FloatArray, PredictiveDistribution
    from nongauss.tables.source import Source

from sklearn.utils._param_validation import (
    Hidden,
    Interval,
    InvalidParameterError,
    Options,
    StrOptions,
    validate_parameter_constraints,
)

__all__ = [
    "Hidden",
    "Interval",
    "InvalidParameterError",
    "Options",
    "StrOptions",
    "check_parameters",
    "validate_parameter_constraints",
]

T = TypeVar("T")

PositiveInt = Annotated[int, Interval(numbers.Integral, 1, None, closed="left")]
PositiveFloat = Annotated[float, Interval(numbers.Real, 0, None, closed="neither")]
NonNegativeFloat = Annotated[float, Interval(numbers.Real, 0, None, closed="left")]
Share = Annotated[float, Interval(numbers.Real, 0, 1, closed="neither")]
Dropout = Annotated[float, Interval(numbers.Real, 0, 1, closed="left")] | Literal["auto"]
Callbacks = Annotated[Sequence[Callable[..., Any]] | None, "array-like", None]
Columns = Annotated[KeepColumns, StrOptions({"auto", "all"}), "array-like"]
CheckpointPath = Annotated[str | os.PathLike[str] | None, str, os.PathLike, None]
RandomState = Annotated[Any, "random_state", np.random.Generator]
Verbosity = Annotated[int, "verbose"]
"""Types of parameters, each with what scikit-learn is told of them: see `constraints_of`."""


def constraints_of(init: Callable[..., None]) -> dict[str, list[Any]]:
    """What scikit-learn is told of an estimator's parameters, from their types in its `__init__`.

    A `Literal` is a choice of words, an `Annotated` type says all itself, a union allows what any part does.
    """
    hints = get_type_hints(init, include_extras=True)
    return {name: _constraints(hint) for name, hint in hints.items() if name != "return"}


def _constraints(hint: Any) -> list[Any]:
    """The constraints of one type, any of which may hold."""
    origin = get_origin(hint)
    if origin is Annotated:
        return list(hint.__metadata__)
    if origin is Literal:
        return [StrOptions(set(get_args(hint)))]
    if origin in (Union, types.UnionType):
        return [constraint for part in get_args(hint) for constraint in _constraints(part)]
    told = {bool: "boolean", int: numbers.Integral, float: numbers.Real}
    if hint in told:
        return [told[hint]]
    return [None] if hint is type(None) else [origin or hint]


def settings_of(record: Callable[..., T], estimator: Any, **derived: Any) -> T:
    """A record of the settings of a fit: `derived`, and its other fields from parameters of their names.

    Numbers become Python's own. A word such as "auto", where the field is a number or None, becomes None:
    it is left to the fit. Fields that are neither derived nor parameters keep their defaults.
    """
    chosen = estimator.get_params(deep=False)
    hints = get_type_hints(record)
    own = {name: _setting(hints[name], chosen[name]) for name in hints if name in chosen}
    return record(**(own | derived))


def _setting(hint: Any, chosen: Any) -> Any:
    """A parameter's value as a field of this type holds it."""
    kinds = get_args(hint) or (hint,)
    if isinstance(chosen, str):
        return None if str not in kinds and type(None) in kinds else chosen
    if isinstance(chosen, numbers.Integral) and int in kinds:
        return int(chosen)
    return float(chosen) if isinstance(chosen, numbers.Real) and float in kinds else chosen


def check_parameters(estimator: Any) -> None:
    """Check an estimator's own parameters against its `_parameter_constraints`.

    Parameters of nested estimators are theirs to check. Raises `InvalidParameterError` (a ValueError
    and a TypeError) that names the class, the parameter, what is allowed and what was got.
    """
    validate_parameter_constraints(
        estimator._parameter_constraints,
        estimator.get_params(deep=False),
        caller_name=type(estimator).__name__,
    )


_WARNINGS: dict[Status, type[Warning]] = {
    Status.MAX_ITER: ConvergenceWarning,
    Status.NONFINITE: NongaussWarning,
    Status.BOUND_DECREASED: NongaussWarning,
    Status.STALLED: NongaussWarning,
    Status.NO_BETTER: NongaussWarning,
    Status.STOPPED: NongaussWarning,
}


class NongaussEstimator(ToldMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of every estimator: scikit-learn's, plus the record of how a fit went.

    A subclass states its parameters, their types and defaults in `__init__`, stores them there unchanged and
    ends `fit` with `_record_fit`. What the types do not allow is refused: see `constraints_of`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    n_iter_: int
    converged_: bool
    stop_reason_: str
    trace_: pd.DataFrame
    callbacks: Any
    verbose: int
    holds_training_rows_: bool = False
    """Whether rows of the training table, as encoded, are part of the model and so of its file."""
    _not_saved: ClassVar[frozenset[str]] = frozenset()
    """Attributes of a fit that no file holds."""
    about_: About | None = None
    """What is known of the fit beyond the model, where `nongauss fit` made it; saved with the model."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls) and "_parameter_constraints" not in vars(cls):
            cls._parameter_constraints = constraints_of(cls.__init__)

    def _record_fit(self, result: FitResult) -> None:
        """Set `n_iter_`, `converged_`, `stop_reason_` and `trace_` from `result`, and warn if it matters.

        Warns `ConvergenceWarning` when the iterations ran out, `NongaussWarning` when the fit broke off.
        """
        for of_another_fit in ("about_", "_conformal_scores"):
            self.__dict__.pop(of_another_fit, None)
        self.n_iter_ = int(result.n_iter)
        self.converged_ = result.status.converged
        self.stop_reason_ = result.status.value
        self.trace_ = trace_table(result.trace)
        category = _WARNINGS.get(result.status)
        if category is not None:
            message = f"{type(self).__name__} after {self.n_iter_} iterations: {result.status.value}"
            warnings.warn(message, category, stacklevel=3)

    def check_loaded(self) -> None:
        """Raises ValueError where what a file has of a fit does not fit together; a family adds its own."""

    def _keep_donors(self, donors: Donors | None, holds_rows_anyway: bool = False) -> None:
        """Keep training rows whose cells stand in for missing ones of new rows; say so."""
        self._donors = donors
        known = getattr(self, "_known_rows", None)
        self.holds_training_rows_ = holds_rows_anyway or donors is not None or known is not None

    def _settings_that_matter(self) -> dict[str, Any]:
        """The parameters that make a fit what it is: not who watches it, where it is kept, or its seed."""
        beside = ("callbacks", "checkpoint", "random_state", "verbose")
        return {name: value for name, value in self.get_params(deep=False).items() if name not in beside}

    def _became(self) -> dict[str, Any]:
        """What the fit took for parameters that leave the choice to it, by their names, where it is known."""
        values = self.get_params(deep=False).items()
        left = [name for name, value in values if isinstance(value, str) and value in ("auto", "learn")]
        return {name: getattr(self, f"{name}_") for name in left if hasattr(self, f"{name}_")}

    def _run(self, checkpoint: Any) -> Run:
        """Who watches a fit, and where it is kept."""
        return Run(tuple(self.callbacks or ()), checkpoint, int(self.verbose))

    @staticmethod
    def _key_seed(random_state: Any) -> int:
        """The integer from which a fit makes its one key; see `key_seed`."""
        return key_seed(random_state)


class TableEstimator(NongaussEstimator):
    """An estimator that encodes a user's table inside: labels, gaps, any units, columns by name.

    `fit` ends with `_keep_encoder` and then `_record_fit`; predictions begin with `_encode`.
    """

    n_features_in_: int
    encoded_names_: tuple[str, ...]
    kept_columns_: tuple[str, ...] | None = None
    """The columns of a wide table that are looked at, None where all are; see `tables.screen`."""
    _donors: Donors | None = None

    def _keep_encoder(self, encoder: Any) -> None:
        """Set what scikit-learn wants to know about the columns, from a `TableEncoder`."""
        self._encoder = encoder
        self.kept_columns_ = getattr(encoder, "kept_names", None)  # a sparse table has none
        self.n_features_in_ = encoder.n_features
        if encoder.feature_names is not None:
            self.feature_names_in_ = np.array(encoder.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.encoded_names_ = encoder.encoded_names

    def _keep_known_rows(self, source: Source, encoder: Any) -> None:
        """Keep training rows that new ones are compared with; none of a sparse table."""
        self._known_rows = known_rows(source, encoder, type(self).__name__)

    def _encode(self, X: Any) -> FloatArray:
        """New rows as `fit` encoded its own, gaps filled by the mean: (N, D).

        Raises NotFittedError, InputError.
        """
        new = self._new_rows(X)
        encoded = self._encoder.as_scaled(new, estimator_name=type(self).__name__)
        rows: FloatArray = self._as_rows(encoded)
        return rows

    def _over_gaps(self, X: Any, say: Callable[..., Any], *beside: Any) -> Any:
        """`say(rows, *beside)` of new rows; where cells are missing, over what these may be.

        `say` gives a law, or an array with one entry a row: of a row with gaps, the mixture of its laws, or
        the mean, over completions by cells of training rows. `beside`: arrays (N, ...). See `gaps`.
        """
        donors = getattr(self, "_donors", None)
        if donors is None:
            return labelled_as(X, say(self._encode(X), *beside))
        new = self._new_rows(X)
        encoded, missing = self._with_gaps(new)
        return labelled_as(X, over_gaps(donors, self._as_rows(encoded), missing, say, beside))

    def _with_gaps(self, new: Any) -> tuple[FloatArray, Any]:
        """New rows encoded (N, D), and which cells are missing, by the input columns in use (N, B)."""
        found: tuple[FloatArray, Any] = self._encoder.as_scaled_with_gaps(new, type(self).__name__)
        return found

    def _new_rows(self, X: Any) -> Any:
        """New rows as the encoder takes them. Raises NotFittedError."""
        check_is_fitted(self, "encoded_names_")
        return X

    def _as_rows(self, encoded: Any) -> Any:
        """Encoded rows as the mathematics takes them: (N, D)."""
        return encoded

    def __sklearn_tags__(self) -> Any:
        return takes_any_cells(super().__sklearn_tags__())


def takes_any_cells(tags: Any) -> Any:
    """scikit-learn's tags of an estimator, which now say that it takes text, categories and gaps."""
    tags.input_tags.allow_nan = True
    tags.input_tags.string = True
    tags.input_tags.categorical = True
    return tags


def trace_table(trace: list[dict[str, float]]) -> pd.DataFrame:
    """A fit's trace as a table, one row an iteration: iteration, bound, objective, seconds, whatever else.

    `objective` is what the fit maximises: the bound, or that with log priors and penalties.
    """
    import pandas as pd

    others = dict.fromkeys(name for row in trace for name in row if name not in COLUMNS)
    trace = [{"objective": row["bound"]} | row for row in trace]
    table = pd.DataFrame(trace, columns=[*COLUMNS, *others])
    return table.astype({"iteration": np.int64} | dict.fromkeys(COLUMNS[1:], np.float64))


class DistributionRegressorMixin(ExplainMixin):
    """Shorthands for a regressor that has `predict_distribution(X)`; all results in the target's units.

    N rows, P outputs; the output axis is absent where `fit` was given a one-dimensional target.
    """

    _conformal_scores: ConformalScores | None = None

    @abstractmethod
    def predict_distribution(self, X: Any) -> PredictiveDistribution:
        """The predictive distribution of each row of `X`."""

    @by_parts
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of y for each row, original units: (N,) or (N, P). With `return_std`, also its sd."""
        law = self.predict_distribution(X)
        return (law.mean, law.std) if return_std else law.mean

    def _moments(self, law: PredictiveDistribution) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each row, (N,) each, as they are predicted and explained."""
        return law.mean, law.std

    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.9,
        guarantee: Literal["none", "conformal"] = "none",
        groups: ArrayLike | None = None,
    ) -> FloatArray:
        """Central interval that holds `coverage` of the predictive mass: (N, 2) or (N, 2, P).

        With `guarantee="conformal"` its level is adjusted on the rows given to `conformalize`: the target
        of a new row that is exchangeable with these lies in it with a probability of at least `coverage`,
        whatever the model; with `groups` (N,), the group of each row, also within each group. Raises
        InputError if no scores were kept, or too few for this coverage.
        """
        law = self.predict_distribution(X)
        if guarantee == "conformal":
            return guaranteed(self, law, coverage, groups, self._conformal_scores)
        if guarantee != "none":
            raise InputError(f"guarantee must be 'none' or 'conformal': got {guarantee!r}.")
        if groups is not None:
            raise InputError("groups go with guarantee='conformal'; without it leave them out.")
        return law.interval(coverage)

    def conformalize(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Calibrate conformal intervals on rows that were not used in `fit`, for `guarantee="conformal"`.

        `X`, `y`: such rows with their targets, at least 9 for a coverage of 0.9; `groups` (N,): the group
        of each row, if coverage is to hold within each group. A new call replaces the previous rows; `fit`
        drops them. The model then holds a score for each row, but not the row. Raises InputError.
        """
        self._conformal_scores = scored(self.predict_distribution(X), y, groups=groups)
        return self

    def predict_quantiles(self, X: Any, q: ArrayLike) -> FloatArray:
        """Quantiles at the levels `q` (Q,): (N, Q) or (N, Q, P); for one number `q`, (N,) or (N, P)."""
        return self.predict_distribution(X).quantile(q)

    def log_density(self, X: Any, y: ArrayLike) -> FloatArray:
        """Log predictive density of each row's target, joint over outputs: (N,)."""
        return self.predict_distribution(X).log_prob(y)

    def sample_y(self, X: Any, n: int = 1, random_state: Any = None) -> FloatArray:
        """`n` draws from each row's predictive distribution: (N, n) or (N, n, P)."""
        return self.predict_distribution(X).sample(n, random_state)

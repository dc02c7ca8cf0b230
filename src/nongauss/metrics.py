"""Scores of predictive distributions, quantiles and intervals, as functions and as scikit-learn scorers.

`crps`, `pinball` and `interval_score` are in the units of the target and the lower the better; `log_score` is
in nats a row, the higher the better; `coverage` is a share that should be what was asked for. All are proper
but the last: no other law than the one believed in is expected to score better (Gneiting and Raftery, Journal
of the American Statistical Association 102, 2007).

Each takes y (N,), or (N, P) for P outputs, and gives one number: the mean over rows, weighted by
`sample_weight` (N,), and over outputs and levels, which count equally. With `mean=False` it gives the score
of each row instead, in the shape that its docstring says. The scorers ask a fitted regressor for its
`predict_distribution`, and are signed so that more is better, as `cross_val_score` and `GridSearchCV` want.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.metadata_routing import MetadataRequest

from nongauss.core.errors import InputError
from nongauss.predictive.distribution import (
    FloatArray,
    PredictiveDistribution,
    checked_coverage,
    checked_levels,
    checked_target,
)

__all__ = [
    "Scorer",
    "coverage",
    "coverage_scorer",
    "crps",
    "crps_scorer",
    "interval_score",
    "interval_score_scorer",
    "log_score",
    "log_score_scorer",
    "pinball",
    "pinball_scorer",
]

_DECILES = tuple(np.arange(1, 10) / 10.0)


def crps(
    y_true: npt.ArrayLike,
    distribution: PredictiveDistribution,
    *,
    sample_weight: npt.ArrayLike | None = None,
    mean: bool = True,
) -> Any:
    """Continuous ranked probability score, integral of (F(x) - 1[y <= x])^2 dx: float, or (N,) or (N, P).

    Twice the mean pinball loss over all levels; the absolute error if the distribution is a single value.
    Valid for counts, for distributions with point masses and for mixtures; see
    `PredictiveDistribution.crps` for how it is computed. Several outputs are scored separately. Raises
    InputError.
    """
    return _mean(_law(distribution).crps(y_true), sample_weight, mean)


def log_score(
    y_true: npt.ArrayLike,
    distribution: PredictiveDistribution,
    *,
    sample_weight: npt.ArrayLike | None = None,
    mean: bool = True,
) -> Any:
    """Log density at y in nats (log probability for point masses), joint over outputs: float, or (N,).

    Raises InputError.
    """
    return _mean(_law(distribution).log_prob(y_true), sample_weight, mean)


def pinball(
    y_true: npt.ArrayLike,
    quantiles: PredictiveDistribution | npt.ArrayLike,
    q: npt.ArrayLike = _DECILES,
    *,
    sample_weight: npt.ArrayLike | None = None,
    mean: bool = True,
) -> Any:
    """Pinball loss of quantiles x at levels q, (1[y < x] - q) (x - y): float, or (N, Q) or (N, Q, P).

    `quantiles`: a distribution, or an array (N, Q) or (N, Q, P) of quantiles at the levels `q` (Q,). For a
    single number `q` the axis of levels is absent throughout. Raises InputError.
    """
    levels = checked_levels(q)
    if isinstance(quantiles, PredictiveDistribution):
        x = quantiles.quantile(levels)
        y = checked_target(y_true, quantiles.mean.shape)
    else:
        y = _numbers(y_true, "y_true")
        x = _numbers(quantiles, "quantiles")
    expected = (len(y), *levels.shape, *y.shape[1:])
    if x.shape != expected:
        raise InputError(
            f"quantiles must have shape {expected} for y of shape {y.shape} and levels of shape "
            f"{levels.shape}: got {x.shape}."
        )
    if levels.ndim:
        y = y[:, None]
        levels = levels.reshape(-1, *(1,) * (x.ndim - 2))
    return _mean(np.where(y < x, 1.0 - levels, -levels) * (x - y), sample_weight, mean)


def interval_score(
    y_true: npt.ArrayLike,
    interval: PredictiveDistribution | tuple[npt.ArrayLike, npt.ArrayLike] | npt.ArrayLike,
    coverage: float = 0.9,
    *,
    sample_weight: npt.ArrayLike | None = None,
    mean: bool = True,
) -> Any:
    """Interval score: width plus 2 / (1 - coverage) times the distance of y from it: float, (N,) or (N, P).

    `interval`: a distribution, a tuple (lower, upper), or an array (N, 2) or (N, 2, P); `coverage` is its
    nominal coverage. Raises InputError.
    """
    tail = 1.0 - checked_coverage(coverage)
    y, lower, upper = _ends(y_true, interval, coverage)
    outside = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return _mean(upper - lower + 2.0 / tail * outside, sample_weight, mean)


def coverage(
    y_true: npt.ArrayLike,
    interval: PredictiveDistribution | tuple[npt.ArrayLike, npt.ArrayLike] | npt.ArrayLike,
    coverage: float = 0.9,
    *,
    sample_weight: npt.ArrayLike | None = None,
    mean: bool = True,
) -> Any:
    """Share of rows in a central interval, ends included: float, or 1 and 0 in (N,) or (N, P).

    `interval` as in `interval_score`. For distributions with point masses, a correct interval covers more
    than `coverage`, because its ends are included. Raises InputError.
    """
    y, lower, upper = _ends(y_true, interval, checked_coverage(coverage))
    return _mean(((lower <= y) & (y <= upper)).astype(np.float64), sample_weight, mean)


class Scorer:
    """A scikit-learn scorer: a score of a regressor's `predict_distribution`, higher is better.

    It also scores a pipeline that ends in such a regressor, and a fitted search over either.

    `Scorer("interval_score", coverage=0.8)` passes options to that function; `crps_scorer`,
    `log_score_scorer`, `pinball_scorer`, `interval_score_scorer` and `coverage_scorer` use the defaults.
    The score for "coverage" is minus the distance of the share from `coverage`.
    """

    def __init__(self, name: str, **options: Any) -> None:
        if name not in _SCORES:
            raise InputError(f"There is no score {name!r}; there are {', '.join(_SCORES)}.")
        self.name, self.options = name, options
        self._sample_weight: bool | str | None = None

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """The score of a fitted regressor on rows X and targets y. Raises InputError."""
        function, sign = _SCORES[self.name]
        law = self._predicted(estimator, X)
        found = float(function(y, law, **self.options, sample_weight=sample_weight))
        if self.name == "coverage":
            return -abs(found - float(self.options.get("coverage", 0.9)))
        return sign * found

    def _predicted(self, estimator: Any, X: Any) -> PredictiveDistribution:
        """The law of the rows X by a regressor, by a pipeline that ends in one, or by a search's best one."""
        if hasattr(estimator, "best_estimator_"):
            return self._predicted(estimator.best_estimator_, X)
        if hasattr(estimator, "steps"):
            return self._predicted(estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X)
        if not hasattr(estimator, "predict_distribution"):
            raise InputError(
                f"{type(estimator).__name__} has no predict_distribution, which the score {self.name!r} is "
                "of; take a regressor of nongauss, or a score of point predictions."
            )
        law: PredictiveDistribution = estimator.predict_distribution(X)
        return law

    def get_metadata_routing(self) -> MetadataRequest:
        """The request of `sample_weight` for scikit-learn's metadata routing, once it is set."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._sample_weight)
        return request

    def set_score_request(self, *, sample_weight: bool | str | None = True) -> Scorer:
        """This score with weights of rows (True, or the name that they are passed by) or without (False).

        For scikit-learn's metadata routing. A score of which nothing was asked refuses weights (None).
        """
        out = Scorer(self.name, **self.options)
        out._sample_weight = sample_weight
        return out

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"Scorer({self.name!r}{options})"


_SCORES: dict[str, tuple[Callable[..., Any], float]] = {
    "crps": (crps, -1.0),
    "log_score": (log_score, 1.0),
    "pinball": (pinball, -1.0),
    "interval_score": (interval_score, -1.0),
    "coverage": (coverage, 1.0),
}

crps_scorer = Scorer("crps")
log_score_scorer = Scorer("log_score")
pinball_scorer = Scorer("pinball")
interval_score_scorer = Scorer("interval_score")
coverage_scorer = Scorer("coverage")


def checked_weight(sample_weight: npt.ArrayLike | None, n_rows: int) -> FloatArray:
    """Weights of rows (N,), ones where none are given. Raises InputError."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise InputError(f"`sample_weight` must have shape ({n_rows},), got {weight.shape}.")
    if not np.isfinite(weight).all() or (weight < 0).any() or weight.sum() == 0:
        raise InputError("`sample_weight` must be finite, not negative, and not zero for every row.")
    return weight


def split_interval(
    interval: tuple[npt.ArrayLike, npt.ArrayLike] | npt.ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends, from a tuple of two arrays or from one array (N, 2) or (N, 2, P)."""
    if isinstance(interval, tuple) and len(interval) == 2:
        return np.asarray(interval[0], dtype=np.float64), np.asarray(interval[1], dtype=np.float64)
    array = np.asarray(interval, dtype=np.float64)
    if array.ndim < 2 or array.shape[1] != 2:
        raise InputError(
            f"`interval` must be a tuple (lower, upper) or an array of shape (N, 2), got shape {array.shape}."
        )
    return array[:, 0], array[:, 1]


def _ends(y_true: npt.ArrayLike, interval: Any, coverage: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Targets, lower and upper ends, of one shape, (N,) or (N, P)."""
    if isinstance(interval, PredictiveDistribution):
        y = checked_target(y_true, interval.mean.shape)
        return y, *split_interval(interval.interval(coverage))
    y = _numbers(y_true, "y_true")
    lower, upper = (_numbers(end, "interval") for end in split_interval(interval))
    if lower.shape != y.shape or upper.shape != y.shape:
        raise InputError(
            f"`interval` must have ends of the shape of `y_true`, {y.shape}: got {lower.shape} and "
            f"{upper.shape}."
        )
    if (lower > upper).any():
        row = int(np.argwhere(lower > upper)[0, 0])
        raise InputError(f"`interval` has a lower end above the upper one in row {row}.")
    return y, lower, upper


def _numbers(values: npt.ArrayLike, name: str) -> FloatArray:
    """An array of numbers without gaps, with a row at least. Raises InputError."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"`{name}` must hold numbers only: {error}.") from error
    if array.ndim == 0 or len(array) == 0:
        raise InputError(f"`{name}` must have one entry a row, and a row at least: got shape {array.shape}.")
    if np.isnan(array).any():
        row = int(np.argwhere(np.isnan(array))[0, 0])
        raise InputError(f"`{name}` has a missing value in row {row}; leave that row out.")
    return array


def _law(distribution: Any) -> PredictiveDistribution:
    """The law that is scored. Raises InputError."""
    if not isinstance(distribution, PredictiveDistribution):
        raise InputError(
            f"This is a score of a predictive distribution: got {type(distribution).__name__}; pass what "
            "predict_distribution(X) gives."
        )
    return distribution


def _mean(score: FloatArray, sample_weight: npt.ArrayLike | None, mean: bool) -> Any:
    """The mean over rows by their weights and over all else, or the scores as they are."""
    weight = checked_weight(sample_weight, len(score))
    if not mean:
        return score
    if len(score) == 0:
        raise InputError("There is no row to score; give at least one.")
    counted = weight > 0.0  # an infinite score of a row without weight is none
    by_row = score.reshape(len(score), -1).mean(axis=1)
    return float(np.average(by_row[counted], weights=weight[counted]))

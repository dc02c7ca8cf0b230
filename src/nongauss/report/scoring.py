"""Models fitted to some rows and judged on others: what each held-out row says, and their figures."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from nongauss.core.threads import threads_for
from nongauss.metrics import interval_score, split_interval
from nongauss.optimise.course import Status
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.report.metrics import (
    FloatArray,
    classification_metrics,
    even_places,
    pit_and_mass,
    regression_metrics,
    tail_chance,
)

MOST_CRPS = 1_000
"""Rows of which the continuous ranked probability score is taken: it costs more than a log score."""

_SMALLEST_CHANCE = np.finfo(np.float64).eps


@dataclass(frozen=True)
class NumberScores:
    """What predictions of numbers say of held-out rows, (N,) each: units of the target, log scores in nats.

    `log_score` is the log density (log probability where the law has mass) at y, `mass` the probability of y
    alone; `pit` as `pit_values`. A row of which only limits are known has the log probability between them,
    the PIT value of a random place there, and for its `nearest` the value there that is nearest to the mean;
    it is not `exact`. Both are None where every row is. `crps`: see `nongauss.metrics.crps`, NaN in rows
    that are not exact and, of many rows, in some; None of laws that have none. `tail`: see `tail_chance`;
    None where no law has mass, of which it is 2 min(PIT, 1 - PIT).
    """

    y: FloatArray
    mean: FloatArray
    log_score: FloatArray
    lower: FloatArray
    upper: FloatArray
    pit: FloatArray
    mass: FloatArray
    nearest: FloatArray | None = None
    exact: npt.NDArray[np.bool_] | None = None
    crps: FloatArray | None = None
    tail: FloatArray | None = None

    @property
    def chance(self) -> FloatArray:
        """Probability of a value at least as far out as the one observed, see `tail_chance`: (N,)."""
        return 2.0 * np.minimum(self.pit, 1.0 - self.pit) if self.tail is None else self.tail

    @property
    def interval_score(self) -> FloatArray:
        """Score of the 90 % interval, units of the target, lower is better: (N,), NaN of rows not exact."""
        found = interval_score(self.y, (self.lower, self.upper), 0.9, mean=False)
        out: FloatArray = found if self.exact is None else np.where(self.exact, found, np.nan)
        return out

    @property
    def reach(self) -> tuple[float, float]:
        """The lowest and the highest target."""
        return float(self.y.min()), float(self.y.max())

    @property
    def error(self) -> FloatArray:
        """Squared errors: (N,)."""
        return ((self.y if self.nearest is None else self.nearest) - self.mean) ** 2

    def figures(self, seconds: float | None = None, levels: Any = None) -> dict[str, float]:
        """See `regression_metrics`: log density and coverage are of all rows, others of the exact ones.

        Coverage is the share of PIT values in the central 90 %: values at the ends of an interval that have
        mass count in part, as in the verdict.
        """
        exact = np.ones(len(self.y), dtype=np.bool_) if self.exact is None else self.exact
        inside = float((np.abs(2.0 * self.pit - 1.0) <= 0.9 + 1e-12).mean())
        of_all = {"n_rows": float(len(exact)), "log_density": float(self.log_score.mean())}
        of_all["coverage_90"] = inside
        if not exact.any():
            return of_all
        y, mean, lower, upper = (v[exact] for v in (self.y, self.mean, self.lower, self.upper))
        crps = None if self.crps is None else self.crps[exact]
        found = regression_metrics(y, mean, self.log_score[exact], (lower, upper), seconds, crps=crps)
        return found | of_all


@dataclass(frozen=True)
class LabelScores:
    """What predictions of labels say of held-out rows: labels (N,), `probabilities` (N, C) of `classes`."""

    y: npt.NDArray[Any]
    predicted: npt.NDArray[Any]
    probabilities: FloatArray
    classes: npt.NDArray[Any]

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """The place of each label among the classes, -1 for one that is none of them: (N,)."""
        places: npt.NDArray[np.intp] = pd.Index(self.classes).get_indexer(pd.Index(self.y))
        return places

    @property
    def log_score(self) -> FloatArray:
        """Log probability that was given to the label observed: (N,)."""
        place = self.places
        chance = np.where(place < 0, 0.0, self.probabilities[np.arange(len(place)), place])
        out: FloatArray = np.log(np.maximum(chance, _SMALLEST_CHANCE))
        return out

    @property
    def error(self) -> FloatArray:
        """1 where another label was predicted, else 0: (N,)."""
        out: FloatArray = (np.asarray(self.predicted) != np.asarray(self.y)).astype(np.float64)
        return out

    def figures(self, seconds: float | None = None, levels: Any = None) -> dict[str, float]:
        """The figures of all rows, see `classification_metrics`."""
        return classification_metrics(
            self.y, self.probabilities, self.classes, seconds, predicted=self.predicted, levels=levels
        )


Scores = NumberScores | LabelScores


def joined(parts: Sequence[Any]) -> Any:
    """The scores of the folds of a cross-validation as those of one set of rows; all classes in one order."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, NumberScores):
        names = [field.name for field in fields(first) if getattr(first, field.name) is not None]
        return NumberScores(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        )
    classes = first.classes
    for part in parts[1:]:
        classes = np.concatenate([classes, part.classes[~pd.Index(part.classes).isin(classes)]])
    blocks = []
    for part in parts:
        block = np.zeros((len(part.y), len(classes)))
        block[:, pd.Index(classes).get_indexer(pd.Index(part.classes))] = part.probabilities
        blocks.append(block)
    y, predicted = (
        np.concatenate([np.asarray(getattr(p, name)) for p in parts]) for name in ("y", "predicted")
    )
    return LabelScores(y, predicted, np.concatenate(blocks), classes)


def score(model: Any, X: Any, y: Any, beside: Mapping[str, Any] | None = None) -> Scores:
    """What a fitted model says of rows it has not seen, X (N, D) and y (N,).

    `beside` are arrays (N,): what its predictions take by name, such as `exposure`, and what says of which
    rows y is only a limit, see `limits`. Its law is its own: a regressor has `predict_distribution`, a
    classifier `predict_proba`.
    """
    with threads_for(X):
        return (
            _label_scores(model, X, y) if is_classifier(model) else _number_scores(model, X, y, beside or {})
        )


def _label_scores(model: Any, X: Any, y: Any) -> LabelScores:
    """The scores of a classifier on these rows."""
    return LabelScores(np.asarray(y), np.asarray(model.predict(X)), model.predict_proba(X), model.classes_)


def _number_scores(model: Any, X: Any, y: Any, beside: Mapping[str, Any]) -> NumberScores:
    """The scores of a regressor on these rows."""
    known = inspect.signature(model.predict_distribution).parameters
    taken = {name: cells for name, cells in beside.items() if name in known}
    distribution = model.predict_distribution(X, **taken)
    lower, upper = split_interval(distribution.interval(0.9))
    mean = np.asarray(distribution.mean, dtype=np.float64)
    observed = np.asarray(y, dtype=np.float64)
    log_score = np.asarray(distribution.log_prob(observed), dtype=np.float64)
    pit, mass = pit_and_mass(distribution, observed)
    crps, tail = _crps(distribution, observed), tail_chance(distribution, observed)
    scores = NumberScores(observed, mean, log_score, lower, upper, pit, mass, crps=crps, tail=tail)
    ends = limits(observed, beside)
    return scores if ends is None else _between(scores, distribution, *ends)


def _crps(distribution: Any, y: FloatArray) -> FloatArray | None:
    """The score of each row (N,), of many rows of `MOST_CRPS` evenly spaced ones; None of a law without."""
    if not hasattr(distribution, "crps"):
        return None
    if len(y) <= MOST_CRPS or not isinstance(distribution, PredictiveDistribution):
        return np.asarray(distribution.crps(y), dtype=np.float64)
    rows = np.linspace(0, len(y) - 1, MOST_CRPS).astype(np.intp)
    out = np.full(len(y), np.nan)
    out[rows] = distribution[rows].crps(y[rows])
    return out


def limits(y: FloatArray, beside: Mapping[str, Any]) -> tuple[FloatArray, FloatArray] | None:
    """The limits (N,) between which each target is, equal where it is known; None without such rows.

    `censoring` (N,) is 1 where the target is above y and -1 where it is below; `y_upper` (N,) its upper
    limit.
    """
    if "y_upper" in beside:
        return y, np.asarray(beside["y_upper"], dtype=np.float64)
    if "censoring" in beside:
        side = np.asarray(beside["censoring"])
        return np.where(side < 0, -np.inf, y), np.where(side > 0, np.inf, y)
    return None


def _between(scores: NumberScores, distribution: Any, low: FloatArray, high: FloatArray) -> NumberScores:
    """The scores with those rows mended whose target is only known to be between two limits (N,)."""
    exact = low == high
    finite_low, finite_high = (np.where(np.isfinite(end), end, scores.y) for end in (low, high))
    below = np.where(np.isneginf(low), 0.0, distribution.cdf(finite_low))
    above = np.where(np.isposinf(high), 1.0, distribution.cdf(finite_high))
    chance = np.maximum(above - below, _SMALLEST_CHANCE)
    place = below + (above - below) * even_places((len(exact),))
    return replace(
        scores,
        log_score=np.where(exact, scores.log_score, np.log(chance)),
        pit=np.where(exact, scores.pit, place),
        mass=np.where(exact, scores.mass, 0.0),
        nearest=np.clip(scores.mean, low, high),
        exact=exact,
        crps=None if scores.crps is None else np.where(exact, scores.crps, np.nan),
    )


def fit_timed(estimator: Any, X: Any, y: Any, beside: Mapping[str, Any] | None = None) -> tuple[Any, float]:
    """A fitted clone, and the seconds that its fit took."""
    model = clone(estimator)
    started = time.perf_counter()
    with warnings.catch_warnings(), threads_for(X):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, **(beside or {}))
    seconds = time.perf_counter() - started
    raise_if_stopped(model)
    return model, seconds


def with_law(estimator: Any) -> Any:
    """The estimator; a regressor that predicts no distribution is given the law of its residuals."""
    from nongauss.report.baselines import LawRegressor

    if is_classifier(estimator) or density_kind(estimator) == OWN:
        return estimator
    return LawRegressor({"identity": estimator}, view="given")


OWN = "own"


def density_kind(estimator: Any) -> str:
    """'own' where the model predicts a distribution, else 'residuals': the law of out-of-fold residuals."""
    return OWN if hasattr(estimator, "predict_distribution") else "residuals"


def raise_if_stopped(model: Any) -> None:
    """Ctrl-C ends a fit early with a usable model; here it means that the person wants all of it to end."""
    if getattr(model, "stop_reason_", None) == Status.STOPPED.value:
        raise KeyboardInterrupt

"""How good a fit is on rows it has not seen: errors, density, coverage, PIT values, log loss, accuracy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.estimator.told import LABELS, SHORT_LABELS, format_figure, in_digits, metric_table
from nongauss.metrics import checked_weight, coverage, interval_score, split_interval

__all__ = [
    "LABELS",
    "SHORT_LABELS",
    "classification_metrics",
    "format_figure",
    "in_digits",
    "metric_table",
    "pit_values",
    "regression_metrics",
]

FloatArray = npt.NDArray[np.float64]


def regression_metrics(
    y: npt.ArrayLike,
    mean: npt.ArrayLike,
    log_density: npt.ArrayLike | None = None,
    interval: tuple[npt.ArrayLike, npt.ArrayLike] | npt.ArrayLike | None = None,
    seconds: float | None = None,
    *,
    crps: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> dict[str, float]:
    """Figures of predictions against what was observed; what was not given is left out, not invented.

    Parameters
    ----------
    y, mean : (N,) or (N, P), units of the target. Columns of a multi-output target count equally.
    log_density : (N,) or (N, P), nats. Natural log of the predictive density at y in the target's units.
    interval : tuple (lower, upper), each shaped as y, or array (N, 2) or (N, 2, P): the central 90 %
        interval, ends included.
    seconds : time that the fit took, passed through.
    crps : (N,) or (N, P), units of the target, see `nongauss.metrics.crps`; NaN in rows that were left out.
    sample_weight : (N,), weights of the rows; weight 2 is the row twice.

    Returns
    -------
    dict with `n_rows`, `rmse`, `mae`, `r2` and, where given, `log_density`, `crps`, `coverage_90`,
    `width_90`, `interval_score_90`, `seconds`. `r2` is NaN where the target does not vary.

    Raises
    ------
    InputError where shapes disagree, a value is not finite, or the weights are negative or all zero.
    """
    observed = _matrix(y, "y")
    predicted = _matrix(mean, "mean", like=observed)
    weight = checked_weight(sample_weight, len(observed))
    error = predicted - observed
    figures = {
        "n_rows": float(len(observed)),
        "rmse": math.sqrt(_average(error**2, weight)),
        "mae": _average(np.abs(error), weight),
        "r2": _r2(observed, error, weight),
    }
    if log_density is not None:
        # Not checked for finiteness: minus infinity is an honest figure for an impossible observation.
        density = np.asarray(log_density, dtype=np.float64)
        if len(density) != len(observed):
            raise InputError(
                f"`log_density` must have one value for each of the {len(observed)} rows, got {len(density)}."
            )
        figures["log_density"] = _average(density.reshape(len(density), -1), weight)
    if crps is not None:
        score = np.asarray(crps, dtype=np.float64).reshape(len(observed), -1)
        known = ~np.isnan(score).any(axis=1)
        figures["crps"] = _average(score[known], weight[known]) if weight[known].any() else math.nan
    if interval is not None:
        figures |= _interval_figures(observed, interval, weight)
    if seconds is not None:
        figures["seconds"] = float(seconds)
    return figures


def _interval_figures(observed: FloatArray, interval: Any, weight: FloatArray) -> dict[str, float]:
    """Coverage, mean width and score of central 90 % intervals about targets (N, P)."""
    lower, upper = split_interval(interval)
    ends = _matrix(lower, "lower", like=observed), _matrix(upper, "upper", like=observed)
    return {
        "coverage_90": coverage(observed, ends, 0.9, sample_weight=weight),
        "width_90": _average(ends[1] - ends[0], weight),
        "interval_score_90": interval_score(observed, ends, 0.9, sample_weight=weight),
    }


def classification_metrics(
    y: Any,
    probabilities: npt.ArrayLike,
    classes: npt.ArrayLike,
    seconds: float | None = None,
    *,
    predicted: Any = None,
    levels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> dict[str, float]:
    """Figures of class probabilities against the labels that were observed.

    Parameters
    ----------
    y : (N,) labels. One that is none of the classes had no chance: a probability of 0.
    probabilities : (N, C), rows sum to 1. classes : (C,), the labels of its columns.
    seconds : time that the fit took, passed through.
    predicted : (N,) labels; the most probable class by default.
    levels : all labels from lowest to highest, where they have an order.
    sample_weight : (N,), weights of the rows; weight 2 is the row twice.

    Returns
    -------
    dict with `n_rows`; `log_loss`, nats a row (as in scikit-learn, a probability counts as at least 2.2e-16);
    `accuracy`; `balanced_accuracy`, the mean over the classes in y of the share found; `brier`, the squared
    distance of the probabilities from what happened (halved for two classes, which gives the usual figure);
    with `levels` also `level_error`, the mean number of levels between predicted and observed; `seconds`
    where given.

    Raises
    ------
    InputError where shapes disagree, probabilities are none, a label is in no list, or weights are negative.
    """
    names = pd.Index(np.asarray(classes))
    p = _probabilities(probabilities, len(names))
    weight = checked_weight(sample_weight, len(p))
    place = _places(names, y, len(p), "y", everywhere=False)
    observed = place[:, None] == np.arange(len(names))
    found = names.to_numpy()[p.argmax(axis=1)] if predicted is None else np.asarray(predicted)
    right = _places(names, found, len(p), "predicted") == place
    chance = np.maximum(np.where(observed, p, 0.0).sum(axis=1), np.finfo(np.float64).eps)
    # A label that is no class has a column of its own, all zeros.
    distance = ((p - observed) ** 2).sum(axis=1) + (place < 0)
    if len(names) == 2:
        distance = distance / 2
    figures = {
        "n_rows": float(len(p)),
        "log_loss": -float(np.average(np.log(chance), weights=weight)),
        "accuracy": float(np.average(right, weights=weight)),
        "balanced_accuracy": _balanced(right, pd.factorize(np.asarray(y))[0], weight),
        "brier": float(np.average(distance, weights=weight)),
    }
    if levels is not None:
        order = pd.Index(np.asarray(levels))
        steps = _places(order, found, len(p), "predicted") - _places(order, y, len(p), "y")
        figures["level_error"] = float(np.average(np.abs(steps), weights=weight))
    if seconds is not None:
        figures["seconds"] = float(seconds)
    return figures


def pit_values(distribution: Any, y: npt.ArrayLike) -> FloatArray:
    """Probability that the predictive distribution puts below each observation; uniform if calibrated.

    `distribution` has `.cdf(y)`. Where it jumps at the observation, as for counts, it is a place inside the
    jump, evenly over the rows, which keeps the values uniform (Czado, Gneiting and Held, Biometrics 65, 2009,
    section 2, draw it). Returns values in [0, 1], shaped as y. Raises InputError where the distribution gives
    something that is no probability.
    """
    return pit_and_mass(distribution, y)[0]


def pit_and_mass(distribution: Any, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """`pit_values`, and the probability of y alone, 0 where the distribution function does not jump."""
    at = np.asarray(y, dtype=np.float64)
    values, below = (np.asarray(distribution.cdf(place)) for place in (at, np.nextafter(at, -np.inf)))
    mass: FloatArray = values - below
    values = below + mass * even_places(values.shape)
    if not np.all((values >= -1e-9) & (values <= 1 + 1e-9)):
        raise InputError("The distribution's `cdf` returned values outside [0, 1]; check its parameters.")
    pit: FloatArray = np.clip(values, 0.0, 1.0)
    return pit, mass


def tail_chance(distribution: Any, y: npt.ArrayLike) -> FloatArray:
    """Probability of a value at least as far out as y, two-sided: 2 min(P(Y <= y), P(Y >= y)), at most 1.

    The probability of y itself counts on both sides, so a value that was expected is never far out.
    """
    at = np.asarray(y, dtype=np.float64)
    up_to, below = (np.asarray(distribution.cdf(place)) for place in (at, np.nextafter(at, -np.inf)))
    out: FloatArray = np.clip(2.0 * np.minimum(up_to, 1.0 - below), 0.0, 1.0)
    return out


def even_places(shape: tuple[int, ...]) -> FloatArray:
    """Numbers in [0, 1) that fill it evenly, however many there are: multiples of the golden ratio, modulo 1.

    A place for each row inside a jump: a draw would leave the rows with one jump in common to its chance.
    """
    places: FloatArray = np.mod(0.5 + 0.5 * (np.sqrt(5.0) - 1.0) * np.arange(math.prod(shape)), 1.0)
    return places.reshape(shape)


def _probabilities(probabilities: npt.ArrayLike, n_classes: int) -> FloatArray:
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 2 or p.shape[1] != n_classes or len(p) == 0:
        raise InputError(
            f"`probabilities` must have one row for each label and {n_classes} columns, got shape {p.shape}."
        )
    wrong = ~((p >= 0).all(axis=1) & (np.abs(p.sum(axis=1) - 1.0) < 1e-6))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"`probabilities` must not be negative and sum to 1, got {p[row].tolist()} in row {row}."
        )
    return p


def _places(
    names: pd.Index, labels: Any, n_rows: int, what: str, everywhere: bool = True
) -> npt.NDArray[np.intp]:
    """Position of each label (N,) among `names`, -1 where it is not there, which `everywhere` forbids."""
    array = np.asarray(labels)
    if array.shape != (n_rows,):
        raise InputError(
            f"`{what}` must be one label for each of the {n_rows} rows, got shape {array.shape}."
        )
    places: npt.NDArray[np.intp] = names.get_indexer(pd.Index(array))
    if everywhere and (places < 0).any():
        label = array.tolist()[int(np.argmin(places))]
        raise InputError(f"`{what}` holds the label {label!r}, which is none of {names.tolist()[:10]}.")
    return places


def _balanced(right: npt.NDArray[np.bool_], group: npt.NDArray[np.intp], weight: FloatArray) -> float:
    """Mean over the groups with weight of the weighted share that is right."""
    total = np.bincount(group, weights=weight)
    share = np.bincount(group, weights=weight * right)[total > 0] / total[total > 0]
    return float(share.mean())


def _average(values: FloatArray, weight: FloatArray) -> float:
    return float(np.average(np.mean(values, axis=1), weights=weight))


def _r2(observed: FloatArray, error: FloatArray, weight: FloatArray) -> float:
    """Mean over outputs of 1 - residual over total sum of squares; NaN where an output is constant."""
    centred = observed - np.average(observed, axis=0, weights=weight)
    total = weight @ centred**2
    scale = np.max(np.abs(observed), axis=0)
    # A constant column leaves a rounding error, not exactly zero, once its mean is subtracted.
    if np.any(total <= weight.sum() * (8 * np.finfo(np.float64).eps * scale) ** 2):
        return math.nan
    return float(np.mean(1.0 - (weight @ error**2) / total))


def _matrix(values: npt.ArrayLike, name: str, like: FloatArray | None = None) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise InputError(f"`{name}` has no rows; give at least one.")
    array = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
    if like is not None and array.shape != like.shape:
        raise InputError(f"`{name}` must have the shape of `y`, {like.shape}, got {array.shape}.")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(f"`{name}` must be finite, got {array[row].tolist()} in row {row}.")
    return array

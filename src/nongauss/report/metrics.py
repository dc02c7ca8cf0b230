"""Held-out figures of a regression: errors, log predictive density, coverage, and PIT values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from nongauss.core.contracts import InputError

FloatArray = npt.NDArray[np.float64]

#: How each figure is called where a person reads it, in the order of display.
LABELS: dict[str, str] = {
    "n_rows": "Rows",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "log_density": "Log predictive density (nats a row)",
    "coverage_90": "Coverage of the 90 % interval",
    "width_90": "Mean width of the 90 % interval",
    "seconds": "Seconds to fit",
}

#: The same, short enough for the head of a table.
SHORT_LABELS: dict[str, str] = {
    "n_rows": "rows",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "log_density": "log density",
    "coverage_90": "90 % coverage",
    "width_90": "90 % width",
    "seconds": "fit seconds",
}


def regression_metrics(
    y: npt.ArrayLike,
    mean: npt.ArrayLike,
    log_density: npt.ArrayLike | None = None,
    interval: tuple[npt.ArrayLike, npt.ArrayLike] | npt.ArrayLike | None = None,
    seconds: float | None = None,
    *,
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
    sample_weight : (N,), weights of the rows; weight 2 is the row twice.

    Returns
    -------
    dict with `n_rows`, `rmse`, `mae`, `r2` and, where given, `log_density`, `coverage_90`, `width_90`,
    `seconds`. `r2` is NaN where the target does not vary.

    Raises
    ------
    InputError where shapes disagree, a value is not finite, or the weights are negative or all zero.
    """
    observed = _matrix(y, "y")
    predicted = _matrix(mean, "mean", like=observed)
    weight = _weights(sample_weight, len(observed))
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
    if interval is not None:
        lower, upper = split_interval(interval)
        low, high = _matrix(lower, "lower", like=observed), _matrix(upper, "upper", like=observed)
        inside = (low <= observed) & (observed <= high)
        figures["coverage_90"] = _average(inside.astype(np.float64), weight)
        figures["width_90"] = _average(high - low, weight)
    if seconds is not None:
        figures["seconds"] = float(seconds)
    return figures


def pit_values(distribution: Any, y: npt.ArrayLike) -> FloatArray:
    """Probability that the predictive distribution puts below each observation; uniform if calibrated.

    `distribution` has `.cdf(y)`. Returns values in [0, 1], shaped as y. Raises InputError where the
    distribution gives something that is no probability.
    """
    values = np.asarray(distribution.cdf(np.asarray(y, dtype=np.float64)), dtype=np.float64)
    if not np.all((values >= -1e-9) & (values <= 1 + 1e-9)):
        raise InputError("The distribution's `cdf` returned values outside [0, 1]; check its parameters.")
    return np.clip(values, 0.0, 1.0)


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


def format_figure(name: str, value: float | None) -> str:
    """One figure as a person reads it: percent for coverage, an integer for rows, blank where undefined."""
    if value is None or math.isnan(value):
        return ""
    if name == "n_rows":
        return f"{value:.0f}"
    if name.startswith("coverage"):
        return f"{100 * value:.1f} %"
    if name == "seconds":
        return f"{value:.2f}"
    return f"{value:.4g}"


def metric_table(metrics: Mapping[str, Mapping[str, float]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of text for figures by model; a column appears if any model has the figure."""
    names = [name for name in LABELS if any(name in row for row in metrics.values())]
    header = ["model", *(SHORT_LABELS[name] for name in names)]
    rows = [[model, *(format_figure(n, row.get(n)) for n in names)] for model, row in metrics.items()]
    return header, rows


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


def _weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> FloatArray:
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise InputError(f"`sample_weight` must have shape ({n_rows},), got {weight.shape}.")
    if not np.isfinite(weight).all() or (weight < 0).any() or weight.sum() == 0:
        raise InputError("`sample_weight` must be finite, not negative, and not zero for every row.")
    return weight

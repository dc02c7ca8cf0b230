"""What stands beside the target and says more of it: exposure, trials, limits, how rows were selected."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nongauss.core.errors import InputError
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.likelihoods import Censored, Likelihood, Truncated, check_censoring
from nongauss.sparse_gp.likelihoods.interval import EDGES
from nongauss.tables.column import without_mask

LIMITS = ("censoring", "y_upper")
SELECTION = ("truncation", "truncation_upper")


def seen_through(likelihood: Likelihood, beside: dict[str, Any]) -> tuple[Likelihood, int]:
    """The likelihood of what is known of each row, and the number V of its columns; see `known_of`.

    `beside`: what was given by name, or None. Raises InputError where the likelihood cannot have it.
    """
    given = {name for name, value in beside.items() if value is not None}
    if likelihood.takes_trials != ("trials" in given):
        raise InputError(
            f"The {likelihood.name} likelihood needs trials: how many each count is out of; give trials=."
            if likelihood.takes_trials
            else f"trials are for the binomial likelihoods, not for {likelihood.name}; drop them, or take "
            "'binomial' or 'beta_binomial'."
        )
    if given & set(SELECTION):
        check_censoring(likelihood, "truncation and truncation_upper")
        return Truncated(of=likelihood), 4
    if given & set(LIMITS):
        check_censoring(likelihood)
        return Censored(of=likelihood), 2
    return likelihood, 2 if likelihood.takes_trials else 1


def known_of(y: FloatArray, beside: dict[str, Any], likelihood: Likelihood, n_values: int) -> FloatArray:
    """What is known of each target y (N,), as (N, V): y; successes and trials; both ends of an interval;
    or these ends, and between which limits a row had to lie to be in the table. Raises InputError.
    """
    if n_values == 1:
        return y[:, None]
    if likelihood.takes_trials:
        return np.stack([y, trials_of(beside["trials"], y)], axis=1)
    ends = interval_ends(y, beside, likelihood)
    ends = np.stack([y, y], axis=1) if ends is None else ends
    if n_values == 2:
        return ends
    lowest, highest = EDGES[likelihood.support]
    limits = [
        np.full(len(y), default) if beside.get(name) is None else numbers_by_row(beside[name], len(y), name)
        for name, default in zip(SELECTION, (lowest, highest), strict=True)
    ]
    low, high = np.maximum(limits[0], lowest), np.minimum(limits[1], highest)
    exact = ends[:, 0] == ends[:, 1]
    below = np.where(exact, y < low, ends[:, 1] <= low)
    first_wrong(below, y, "y", "above truncation, or the row could not be in the table", "drop that row")
    above = np.where(exact, y > high, ends[:, 0] >= high)
    first_wrong(above, y, "y", "at most truncation_upper, or the row could not be there", "drop that row")
    within = np.where(exact[:, None], ends, np.clip(ends, low[:, None], high[:, None]))
    return np.concatenate([within, np.stack([low, high], axis=1)], axis=1)


def within(known: FloatArray, limits: tuple[float, float]) -> FloatArray:
    """What is known of targets (N, V), with values and ends of intervals beyond some limits moved to these.

    The first two columns are a value, or the ends of an interval; if there are four, the last two are bounds
    between which alone targets are seen, and within which the first two stay.
    """
    out = known.copy()
    ends = out[:, :2]
    out[:, :2] = np.where(np.isfinite(ends), np.clip(ends, *limits), ends)
    if out.shape[1] == 4:
        out[:, :2] = np.clip(out[:, :2], out[:, 2:3], out[:, 3:])
    return out


def check_known(y: FloatArray, beside: dict[str, Any], likelihood: Likelihood) -> None:
    """Raises InputError for the first target y (N,) that a likelihood cannot have, by what is beside it."""
    checked = y
    ends = interval_ends(y, beside, likelihood)
    if ends is not None:
        limit = ends[:, 0] != ends[:, 1]
        check_limits(y, limit, likelihood)
        checked = np.where(limit, 0.5, y)  # inside every support that takes limits
    likelihood.check(checked)
    if likelihood.takes_trials and beside.get("trials") is not None:
        trials_of(beside["trials"], y)
    elif any(beside.get(name) is not None for name in SELECTION):
        known_of(y, beside, likelihood, 4)


def trials_of(trials: ArrayLike, y: FloatArray) -> FloatArray:
    """The number of trials of each count y (N,). Raises InputError."""
    values = whole_trials(trials, len(y))
    first_wrong(y > values, y, "y", "at most the trials of its row", "correct the count or its trials")
    return values


def whole_trials(trials: ArrayLike, n_rows: int) -> FloatArray:
    """Numbers of trials (N,), whole and at least 1. Raises InputError."""
    values = numbers_by_row(trials, n_rows, "trials")
    bad = ~((values >= 1) & (values == np.round(values)) & np.isfinite(values))
    first_wrong(bad, values, "trials", "whole numbers of at least 1", "drop rows without trials")
    return values


def interval_ends(y: FloatArray, beside: dict[str, Any], likelihood: Likelihood) -> FloatArray | None:
    """Both ends of what is known of each y, (N, 2), by `censoring` or `y_upper`; None without either.

    Raises InputError naming the first row that cannot be read.
    """
    given = [name for name in ("censoring", "y_upper") if beside.get(name) is not None]
    if not given:
        return None
    if len(given) > 1:
        raise InputError("censoring and y_upper say the same in two ways; give one of them.")
    values = numbers_by_row(beside[given[0]], len(y), given[0])
    if given == ["y_upper"]:
        first_wrong(~(values >= y), values, "y_upper", "at least y", "swap the two, or drop the row")
        return np.stack([y, values], axis=1)
    codes = "-1 (the true value is below y), 0 (y is known) or 1 (it is above y)"
    first_wrong(~np.isin(values, (-1, 0, 1)), values, "censoring", codes, "recode that row")
    lowest, highest = EDGES[likelihood.support]
    return np.stack([np.where(values < 0, lowest, y), np.where(values > 0, highest, y)], axis=1)


def check_limits(y: FloatArray, limit: NDArray[np.bool_], likelihood: Likelihood) -> None:
    """Raises InputError for the first row whose y is a limit beyond the values that a likelihood has."""
    lowest, highest = EDGES[likelihood.support]
    what = f"between {lowest:g} and {highest:g}, as the {likelihood.name} likelihood has it"
    first_wrong(limit & ~((y >= lowest) & (y <= highest)), y, "y", what, "correct that limit")


def numbers_by_row(given: ArrayLike, n_rows: int, name: str) -> FloatArray:
    """Numbers as float64 (N,); one stands for all. Raises InputError."""
    try:
        values = np.asarray(without_mask(given), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers, one for each row: {error}.") from error
    values = np.full(n_rows, float(values)) if values.ndim == 0 else values
    if values.shape != (n_rows,):
        raise InputError(f"{name} has shape {values.shape}, expected ({n_rows},); give one for each row.")
    return values


def first_wrong(bad: NDArray[np.bool_], values: FloatArray, name: str, what: str, remedy: str) -> None:
    """Raises InputError for the first row where `bad`; nothing where there is none."""
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name} must be {what}, got {values[row]:g} in row {row} (counted from 0); {remedy}."
        )


def log_exposure(exposure: ArrayLike | None, n_rows: int, likelihood: Likelihood) -> FloatArray:
    """The log of the exposure (N,), zeros without one. Raises InputError."""
    if exposure is None:
        return np.zeros(n_rows)
    if not likelihood.takes_exposure:
        raise InputError(
            f"exposure is for counts, but the likelihood is {likelihood.name}; drop it, or take 'poisson'."
        )
    values = numbers_by_row(exposure, n_rows, "exposure")
    bad = ~((values > 0) & np.isfinite(values))
    first_wrong(bad, values, "exposure", "above 0 and finite", "drop rows without exposure")
    return np.log(values)

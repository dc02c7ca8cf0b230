"""Figures of the leaderboard of numbers, and means that can be used."""

from __future__ import annotations

import warnings

import numpy as np

from nongauss.auto.contenders import TrainingRows
from nongauss.core.errors import NongaussWarning
from nongauss.estimator.conformal import scored
from nongauss.metrics import crps
from nongauss.predictive.clipped import ClippedDistribution
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution

MOST_CRPS = 50
"""Rows, a random sample, whose continuous ranked probability score stands in the leaderboard."""

MOST_ALONE, SHARE_ALONE = 2.0, 1 / 20
"""Rows at an end of the target, and their share of all, that are too few to support a mean."""

LARGEST_MASS, LARGEST_OF_FEW = 0.1, 0.5
"""Probability, by a row's law, up to which what is far beyond training targets counts as unlikely; and where
this is because of rows so few that they support no mean."""

MOST_MOVED = 0.5
"""Standard deviations by which what the training targets do not support may move a mean."""


def figures_of(law: PredictiveDistribution, rows: TrainingRows) -> dict[str, float]:
    """CRPS of the first `MOST_CRPS` rows, and the share of rows within the central 90 %."""
    y, weight = rows.y[: len(law)], rows.weight[: len(law)]
    first = slice(MOST_CRPS)
    inside = scored(law, y).scores <= 0.45
    return {
        "crps": crps(y[first], law[first], sample_weight=weight[first]),
        "coverage": float(np.average(inside, weights=weight)),
    }


def no_figures(law: PredictiveDistribution, rows: TrainingRows) -> dict[str, float]:
    """The figures where they are not told: targets known by limits alone, or no time left for them."""
    return {"crps": np.nan, "coverage": np.nan}


def supported_range(y: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """The least and largest of targets y (N,) with weights (N,) that are not alone at an end of them.

    At either end rows of a weight of up to `MOST_ALONE` may be alone, and of that share of all; fewer where
    the others have one value.
    """
    order = np.argsort(y)
    values, below = y[order], np.cumsum(weight[order])
    alone = min(MOST_ALONE, SHARE_ALONE * below[-1])
    while True:
        low = values[np.searchsorted(below, alone, "right")]
        high = values[::-1][np.searchsorted(np.cumsum(weight[order[::-1]]), alone, "right")]
        if low < high or alone < 0.5:
            return float(low), float(high)
        alone *= 0.5


def largest_mass(y: FloatArray, weight: FloatArray, low: float, high: float) -> float:
    """The probability up to which `usable_moments` takes what is beyond for unlikely, by targets y (N,)."""
    reach = high - low
    n_beyond = float(weight[(y < low - reach) | (y > high + reach)].sum())
    return LARGEST_OF_FEW if n_beyond > 0.0 else LARGEST_MASS


def usable_moments(
    law: PredictiveDistribution, low: float, high: float, mass: float = LARGEST_MASS
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each row, (N,) each, without what training targets do not support.

    These lie between `low` and `high` but for a few. A law may give little probability to values so far
    beyond that they make up its mean: a constant law's share beside a lone target of 1e9, or e^f far from all
    rows. Where what lies farther out than once that range has at most `mass` of a row's law and moves
    its mean by more than `MOST_MOVED` standard deviations, it counts as that limit. Where it has more, the
    mean stays if it is within 98 % of its law, else it is the median, and half of the central 68 % the
    standard deviation. Warns.
    """
    mean, std, reach = law.mean, law.std, high - low
    ends = low - reach, high + reach
    doubted = np.flatnonzero(~((mean >= ends[0]) & (mean <= ends[1]) & (std <= reach)))
    if not len(doubted):
        return mean, std
    mean, std, part = mean.copy(), std.copy(), law[doubted]
    is_rare = part.cdf(ends[0]) + part.survival(ends[1]) <= mass
    rare = doubted[is_rare]
    bounded = ClippedDistribution(law[rare], *ends)
    moved = ~(np.abs(mean[rare] - bounded.mean) <= MOST_MOVED * bounded.std)
    finite = np.isfinite(mean[doubted])
    level = part.cdf(np.where(finite, mean[doubted], 0.0))
    far = doubted[~is_rare & ~(finite & (level >= 0.01) & (level <= 0.99))]
    mean[rare[moved]], std[rare[moved]] = bounded.mean[moved], bounded.std[moved]
    if len(far):
        below, mean[far], above = law[far].quantile([0.16, 0.5, 0.84]).T
        std[far] = 0.5 * (above - below)
    n_changed = int(moved.sum()) + len(far)
    if n_changed:
        warnings.warn(
            f"In {n_changed} of {len(mean)} rows the mean rests on values that are unlikely there and far "
            f"from nearly all training targets; it is given with values beyond {ends[0]:g} and {ends[1]:g} "
            "counted as these, or as the median: read these rows' intervals instead.",
            NongaussWarning,
            stacklevel=4,
        )
    return mean, std

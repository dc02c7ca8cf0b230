"""Figures of the leaderboard of numbers, and means that can be used."""

from __future__ import annotations

import warnings

import numpy as np

from nongauss.auto.contenders import TrainingRows
from nongauss.core.errors import NongaussWarning
from nongauss.estimator.conformal import scored
from nongauss.metrics import crps
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution

MOST_CRPS = 50
"""Rows, a random sample, whose continuous ranked probability score stands in the leaderboard."""


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


def usable_mean(law: PredictiveDistribution, low: float, high: float) -> FloatArray:
    """The mean of each row; the median where the mean says nothing of the row.

    That is where it lies farther from all training targets than these from one another, and beyond all but a
    hundredth of its own law: a mean that rests on what is next to impossible.
    """
    mean = law.mean
    reach = high - low
    far = ~((mean >= low - reach) & (mean <= high + reach))
    if not far.any():
        return mean
    inner = law.quantile([0.01, 0.5, 0.99])
    far &= ~((mean >= inner[:, 0]) & (mean <= inner[:, 2]))
    if far.any():
        warnings.warn(
            f"In {int(far.sum())} of {len(mean)} rows the mean lies beyond 98 % of its own law and far from "
            "all training targets; the median is given there: read these rows' intervals instead.",
            NongaussWarning,
            stacklevel=3,
        )
    out: FloatArray = np.where(far, inner[:, 1], mean)
    return out

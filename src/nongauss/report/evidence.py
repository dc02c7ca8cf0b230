"""Tests of what held-out rows say: paired differences of scores, coverage, calibration, each with its chance.

Rows need not be independent: `Dependence` says which belong together and whether their fits share rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom, norm, t

FloatArray = npt.NDArray[np.float64]

LEVELS = (0.5, 0.8, 0.9)
"""Central intervals whose coverage is tested, each at a third of the level of the test."""

ALPHA = 0.05
OF_SEVERAL_FITS = 1.25
"""What the variance of a mean is multiplied by where fits share rows, as those of folds do.

By simulation, the standard error of the mean gain of ridge regressions of 60 to 250 rows over five folds
is 1.0 to 1.2 times that of independent rows, which this makes 1.12.
"""
_SAME = 1e-12


@dataclass(frozen=True)
class Dependence:
    """The dependence of N held-out rows: `groups` (N,) of dependent rows, None where all are independent.

    `several`: they are judged by several fits, any two of which share most of their rows.
    """

    groups: npt.NDArray[Any] | None = None
    several: bool = False

    def some(self, rows: npt.NDArray[np.bool_]) -> Dependence:
        """The dependence of the rows that a mask (N,) selects."""
        return self if self.groups is None else Dependence(self.groups[rows], self.several)

    def count(self, n_rows: int) -> int:
        """How many of so many rows, or groups of them, are independent."""
        return n_rows if self.groups is None else len(np.unique(self.groups))

    def of_mean(self, values: FloatArray) -> tuple[float, float]:
        """Standard error of the mean of values (N,), and its degrees of freedom.

        Independent rows: s / sqrt(N), N - 1. Groups: sqrt(G / (G - 1) sum_g (sum_{i in g} (x_i - mean))^2) /
        N, G - 1.
        """
        n, centred = len(values), values - values.mean()
        totals = centred
        if self.groups is not None:
            which = np.unique(self.groups, return_inverse=True)[1]
            totals = np.bincount(which, weights=centred)
        count = len(totals)
        if count < 2:
            return math.inf, 1.0
        variance = count / (count - 1.0) * float(totals @ totals) / n**2
        return math.sqrt(variance * (OF_SEVERAL_FITS if self.several else 1.0)), count - 1.0

    def effective(self, hits: FloatArray) -> float:
        """Number of independent rows whose mean of hits (0 or 1) has the error that these rows give."""
        n, share = len(hits), float(hits.mean())
        if self.groups is None or not 0.0 < share < 1.0:
            return float(n)
        error, _ = Dependence(self.groups).of_mean(hits)
        return float(min(n, max(1.0, share * (1 - share) / max(error, 1e-12) ** 2)))


def blocks(n_rows: int, n_blocks: int = 12) -> npt.NDArray[np.intp]:
    """Blocks of consecutive rows as groups: of rows in time order, only distant ones are independent."""
    return np.arange(n_rows) * min(n_blocks, n_rows) // max(n_rows, 1)


@dataclass(frozen=True)
class Difference:
    """How much better a model does than a baseline, the mean over rows and its standard error.

    `measure` is "log score" (nats a row), "squared error" or "wrong labels" (less of these is better).
    `alpha` is the level of the two-sided test, `df` its degrees of freedom, `margin` what a difference has to
    exceed either way. `impossible` rows had no chance at all by the model.
    """

    baseline: str
    measure: str
    mean: float
    se: float
    df: float
    alpha: float = ALPHA
    margin: float = 0.0
    impossible: int = 0

    @property
    def reach(self) -> float:
        """The difference that would just be seen: margin + t_{1 - alpha/2, df} standard errors."""
        return self.margin + float(t.ppf(1.0 - self.alpha / 2, self.df)) * self.se

    @property
    def is_finite(self) -> bool:
        """Is the difference a number: did no row have no chance at all?"""
        return math.isfinite(self.mean) and math.isfinite(self.se)

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the 95 % confidence interval of the difference: mean -+ t_{0.975, df} standard errors."""
        half = float(t.ppf(1.0 - ALPHA / 2, self.df)) * self.se if self.se else 0.0
        return self.mean - half, self.mean + half

    @property
    def p_value(self) -> float:
        """The two-sided p-value of the hypothesis that the difference is within the margin."""
        beyond = abs(self.mean) - self.margin
        if math.isinf(beyond):
            return 0.0
        if beyond <= 0.0:
            return 1.0
        return 0.0 if self.se == 0.0 else float(2.0 * t.sf(beyond / self.se, self.df))

    @property
    def sign(self) -> int:
        """1 where the model is better beyond chance, -1 where it is worse, 0 where neither is known."""
        if self.p_value > self.alpha:
            return 0
        return 1 if self.mean > 0 else -1


LEAST = -745.0
"""Where a rival gave no probability: the log of the least one that a number holds."""


def difference(
    model: FloatArray,
    other: FloatArray,
    dependence: Dependence,
    *,
    baseline: str,
    measure: str = "log score",
    alpha: float = ALPHA,
    margin: float = 0.0,
) -> Difference:
    """The paired test of two models on the same rows, from what each got on each row (N,): more is better."""
    impossible = int(np.sum(np.isneginf(model)))
    gain = model - np.maximum(other, LEAST)
    if impossible:
        return Difference(baseline, measure, -math.inf, math.nan, 1.0, alpha, margin, impossible)
    scale = float(np.abs(gain).max(initial=0.0))
    if scale <= _SAME * max(1.0, float(np.abs(model).max(initial=0.0))):
        return Difference(baseline, measure, 0.0, 0.0, 1.0, alpha, margin)
    se, df = dependence.of_mean(gain)
    return Difference(baseline, measure, float(gain.mean()), se, df, alpha, margin)


def in_nats(item: Difference) -> str:
    """The size of a difference of log scores, better or worse, with its standard error."""
    if item.impossible:
        return f"it gave zero probability to {item.impossible} of the observed values"
    return f"{signed(item.mean)} ± {item.se:.2g} nats a row"


def signed(value: float) -> str:
    """A number with its sign, to two digits that say something."""
    return f"{value:+.2g}" if abs(value) < 0.1 else f"{value:+.2f}"


@dataclass(frozen=True)
class Coverage:
    """The share of held-out rows that an event of nominal probability `level` held, and its chance band."""

    level: float
    held: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """-1 where fewer rows were held than chance explains, 1 where more were, else 0."""
        return -1 if self.held < self.low else int(self.held > self.high)


def chance_band(level: float, n: float, alpha: float) -> tuple[float, float]:
    """The shares between which that of n rows falls with probability 1 - alpha, if each has this chance."""
    whole = max(1, round(n))
    low, high = binom.interval(1.0 - alpha, whole, level)
    return float(low) / whole, float(high) / whole


def interval_coverage(pit: FloatArray, dependence: Dependence) -> list[Coverage]:
    """Coverage of the central intervals of `LEVELS`: that of probability c holds y if |2 PIT - 1| <= c."""
    out = []
    for level in LEVELS:
        hits = (np.abs(2.0 * pit - 1.0) <= level + 1e-12).astype(np.float64)
        band = chance_band(level, dependence.effective(hits), ALPHA / len(LEVELS))
        out.append(Coverage(level, float(hits.mean()), *band))
    return out


def above_median(pit: FloatArray, dependence: Dependence) -> Coverage:
    """The share of rows above the predicted median, which should be half."""
    hits = (pit > 0.5).astype(np.float64)
    return Coverage(0.5, float(hits.mean()), *chance_band(0.5, dependence.effective(hits), ALPHA / 2))


def confidence(probabilities: FloatArray, place: npt.NDArray[np.intp], dependence: Dependence) -> Coverage:
    """How often the most probable class was right, against the probability that it was given on average.

    `place` (N,) are the true columns of `probabilities` (N, C). The share of hits has the mean of p_i and the
    variance sum_i p_i (1 - p_i) / N^2 if the probabilities are right.
    """
    p = probabilities.max(axis=1)
    hits = (probabilities.argmax(axis=1) == place).astype(np.float64)
    return _mean_band(p, hits, dependence, ALPHA / 2)


def class_shares(
    probabilities: FloatArray, place: npt.NDArray[np.intp], dependence: Dependence
) -> list[Coverage]:
    """The share of rows of each class, against the probability that it was given on average."""
    n_classes = probabilities.shape[1]
    hits = (place[:, None] == np.arange(n_classes)).astype(np.float64)
    return [
        _mean_band(probabilities[:, c], hits[:, c], dependence, ALPHA / 2 / n_classes)
        for c in range(n_classes)
    ]


def _mean_band(p: FloatArray, hits: FloatArray, dependence: Dependence, alpha: float) -> Coverage:
    """The share of events of the chances p (N,), and the band in which it lies if they are right."""
    n = len(p)
    few = n / dependence.effective(hits)
    half = float(norm.ppf(1.0 - alpha / 2)) * math.sqrt(few * float((p * (1 - p)).sum())) / n + 0.5 / n
    level = float(p.mean())
    return Coverage(level, float(hits.mean()), max(0.0, level - half), min(1.0, level + half))

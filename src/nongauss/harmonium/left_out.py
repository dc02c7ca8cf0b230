"""The law of a regression's errors, learned from rows that were held out of its fits.

Rows are dealt to folds; each fold is predicted by a fit to the others. Of the scores f of these rows and
their targets, y = level + slope f + e is fitted by least squares, and the law of e is that of the errors
found, each with a normal law about it (Silverman 1986, section 6.4.1: smoothed so that the variance stays).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from nongauss.core.records import persistable
from nongauss.core.schema import LARGEST_STANDARDISED, refuse_huge
from nongauss.harmonium.clipped_scale import few_far
from nongauss.harmonium.config import HarmoniumRecipe
from nongauss.harmonium.data import VisibleRows
from nongauss.harmonium.exponential_families import Layout
from nongauss.harmonium.fit import LEARNING, fit_global
from nongauss.harmonium.predict import Filler
from nongauss.optimise.course import Run, Status
from nongauss.predictive.mixture import GaussianMixtureDistribution

MOST_ROWS, FEW_ROWS = 20_000, 2_000
"""Rows that are dealt to folds; so many or fewer are all left out once, of more one fold is."""

FOLDS = 5

ENOUGH = 30
"""Left-out rows without gaps from which the errors of others are not looked at."""

MOST_ERRORS = 64
"""Normal laws that the law of the errors is made of: one a quantile of the errors."""

LEAST_SPREAD = 1e-3
"""Smallest standard deviation of the errors, as a share of that of the target."""

UNSEEN_WIDTH = 3.0
"""One row more has an error that is unlike the others: it is so many times as wide as they are.

So have targets that are left out (`few_far`). Of their share a normal law as wide as the farthest has as much
as adds no more to the variance, since a law's mean square would else be theirs alone."""


@persistable("harmonium.LeftOutErrors")
class LeftOutErrors(NamedTuple):
    """y = level + slope f + e, standardised; e is at `errors` (S,) with spreads `sds` and `shares` (S,)."""

    level: float
    slope: float
    errors: Float64[np.ndarray, " S"]
    sds: Float64[np.ndarray, " S"]
    shares: Float64[np.ndarray, " S"]

    def check_fields(self) -> None:
        """Raises ValueError for laws whose moments are no numbers, and for shares that do not sum to 1."""
        refuse_huge(self)
        line = max(abs(self.level), abs(self.slope))
        if not line <= LARGEST_STANDARDISED or (self.sds <= 0.0).any() or not len(self.errors):
            raise ValueError("errors of left-out rows that are no standardised numbers")
        if (self.shares < 0.0).any() or abs(self.shares.sum() - 1.0) > 1e-6:
            raise ValueError("errors of left-out rows whose shares do not sum to 1")

    def law(self, f: Float64[np.ndarray, " N"], centre: float, scale: float) -> GaussianMixtureDistribution:
        """The law of each row's target given its score, in the target's units: centre + scale * (...)."""
        mean = centre + scale * (self.level + self.slope * f)
        error, sd = scale * self.errors, abs(scale) * self.sds
        with np.errstate(divide="ignore"):
            logs = np.log(self.shares)
        shift = self.shares @ error
        variance = self.shares @ (sd * sd + (error - shift) ** 2)

        def components(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            """The normal laws of these rows."""
            means = mean[rows, None] + error
            return np.tile(logs, (len(means), 1)), means[..., None], np.tile(sd, (len(means), 1))[..., None]

        return GaussianMixtureDistribution(
            (mean + shift)[:, None],
            np.full((len(f), 1), variance),
            components,
            squeeze=True,
            n_components=len(error),
        )


def left_out_errors(
    layout: Layout, rows: VisibleRows, given: VisibleRows, recipe: HarmoniumRecipe, filler: Filler, run: Run
) -> LeftOutErrors:
    """The law of errors of fits by this recipe. `rows` have no gaps, `given` are these as they came.

    Nobody is told of the fits, the checkpoint keeps them. Where rows enough have no gaps, the others are not
    looked at. Raises KeyboardInterrupt.
    """
    rng = np.random.default_rng(recipe.seed)
    order = rng.permutation(len(rows.weight))[:MOST_ROWS]
    n_folds = min(FOLDS, len(order))
    if n_folds < 2:
        return errors_of(np.zeros(0), np.zeros(0), np.zeros(0))
    assert rows.labels is not None
    y = rows.labels.astype(np.float64)
    far = few_far(y, rows.weight)
    f, unwatched = np.full(len(rows.weight), np.nan), Run(checkpoint=run.checkpoint)
    for fold in range(n_folds if len(order) <= FEW_ROWS else 1):
        out, kept = order[fold::n_folds], np.delete(order, np.s_[fold::n_folds])
        name = f"{LEARNING} without fold {fold}"
        part = rows.take(np.sort(kept))
        result, machine = fit_global(layout, part, recipe, unwatched, filler=filler, name=name)
        if result.status is Status.STOPPED:
            raise KeyboardInterrupt
        f[out] = machine.scores(rows.X[out])[:, 0]
    seen = np.isfinite(f) & ~far
    if given.missing is not None:
        complete = seen & ~given.missing.any(axis=1)
        seen = complete if complete.sum() >= ENOUGH else seen
    errors = errors_of(f[seen], y[seen], rows.weight[seen])
    return _with_far(errors, np.abs(y[far]), float(rows.weight[far].sum() / rows.weight.sum()))


def _with_far(errors: LeftOutErrors, far: Float64[np.ndarray, " F"], share: float) -> LeftOutErrors:
    """The law of errors of which so great a share is unlike the others, some as far as these targets are."""
    if not len(far):
        return errors
    wide, farthest = float(errors.sds[-1]), min(float(far.max()), LARGEST_STANDARDISED)
    at_far = share * min(1.0, (wide / farthest) ** 2)
    shares = np.append(errors.shares * (1.0 - share), at_far)
    shares[-2] += share - at_far
    return errors._replace(
        errors=np.append(errors.errors, 0.0), sds=np.append(errors.sds, farthest), shares=shares
    )


def errors_of(
    f: Float64[np.ndarray, " V"], y: Float64[np.ndarray, " V"], weight: Float64[np.ndarray, " V"]
) -> LeftOutErrors:
    """The line of y on f by weighted least squares, and the law of what it leaves.

    Of no rows the law is the standard normal one. The slope is kept between 0 and 2: scores of few rows may
    be chance.
    """
    if not len(f):
        return LeftOutErrors(0.0, 0.0, np.zeros(1), np.ones(1), np.ones(1))
    share = weight / weight.sum()
    middle = share @ f
    spread = share @ (f - middle) ** 2
    slope = float(np.clip(share @ ((f - middle) * y) / spread, 0.0, 2.0)) if spread > 1e-12 else 0.0
    level = float(share @ (y - slope * f))
    e = y - level - slope * f
    order = np.argsort(e, kind="stable")
    e, up_to = e[order], np.cumsum(share[order])
    n = min(MOST_ERRORS, len(e))
    points = np.interp((np.arange(n) + 0.5) / n, up_to - 0.5 * share[order], e)
    sd = max(float(np.sqrt(share @ (y - level - slope * f) ** 2)), LEAST_SPREAD)
    # 1.06 s N^(-1/5), N rows of equal weight; then e (1 - (h / s)^2)^(1/2) + h N(0, 1) has the variance s^2
    h = min(1.06 * sd * (1.0 / (share @ share)) ** -0.2, 0.9 * sd)
    points -= points.mean()
    points *= np.sqrt((sd * sd - h * h) / max(float(points @ points) / n, LEAST_SPREAD**2))
    unseen = 1.0 / (1.0 + len(e))
    return LeftOutErrors(
        level,
        slope,
        np.append(points, 0.0),
        np.append(np.full(n, max(h, LEAST_SPREAD)), UNSEEN_WIDTH * sd),
        np.append(np.full(n, (1.0 - unseen) / n), unseen),
    )

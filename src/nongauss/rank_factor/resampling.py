"""How far loadings and coefficients of variational Bayes would lie from here on another table of its rows.

The normals of variational Bayes are too narrow: given the factors of its rows a loading is known well, and
what is not known of the factors is left out. So the fit is repeated, from its start, on tables of rows drawn
with replacement (Efron 1979), and the spread of the results is what intervals are made of. Of a long table
the drawn ones are shorter; the spread falls with the root of the number of rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment
from scipy.stats import t

from nongauss.core.records import persistable
from nongauss.optimise.course import Run
from nongauss.rank_factor.data import FloatArray, RankRows
from nongauss.rank_factor.fit import variational
from nongauss.rank_factor.params import WeightedLabels
from nongauss.rank_factor.predict import PosteriorDraw, order_like, turned
from nongauss.rank_factor.start import Problem

N_TABLES = 20
"""Tables that are drawn and fitted."""
MOST_CELLS, FEWEST_ROWS = 400_000, 250
"""Cells of a drawn table at most, and rows that it has whatever its width, or all rows."""


@persistable("rank_factor.Spread")
class ResampledSpread(NamedTuple):
    """Standard deviations over tables drawn with replacement: loadings (D, K), coefficients with offset."""

    loadings: Float[np.ndarray, "D K"]
    coefficients: Float[np.ndarray, "T C K+1"]


def resampled_spread(problem: Problem, fitted: PosteriorDraw, seed: int) -> ResampledSpread:
    """The spread around a fit by variational Bayes to this problem, which is repeated on drawn tables."""
    rng = np.random.default_rng([seed, N_TABLES])
    share = problem.labels.weight / problem.labels.weight.sum()
    n_rows = round(float(problem.labels.weight.sum()))
    n_drawn = min(n_rows, max(MOST_CELLS // problem.rows.shape[1], FEWEST_ROWS))
    drawn = []
    for number in range(N_TABLES):
        rows = rng.choice(len(share), n_drawn, p=share)
        labels = WeightedLabels(problem.labels.y[rows], np.ones(n_drawn))
        recipe = problem.recipe._replace(seed=problem.recipe.seed + 1 + number)
        table = problem._replace(rows=_standardised(problem.rows.take(rows)), labels=labels, recipe=recipe)
        drawn.append(_like(variational(table, Run()).draws[0], fitted))
    lessened = np.sqrt(n_drawn / n_rows)
    return ResampledSpread(
        lessened * np.std([draw.A for draw in drawn], axis=0, ddof=1),
        lessened * np.std([draw.beta for draw in drawn], axis=0, ddof=1),
    )


def _standardised(rows: RankRows) -> RankRows:
    """Rows of a drawn table as a fit of it would take them: values standardised, ranks as they are."""
    if rows.values is None:
        return rows
    known = ~np.isnan(rows.values)
    count = np.maximum(known.sum(axis=0), 1)
    centred = rows.values - np.nan_to_num(rows.values).sum(axis=0) / count
    spread = np.sqrt((np.nan_to_num(centred) ** 2).sum(axis=0) / count)
    return rows._replace(values=centred / np.where(spread > 0.0, spread, 1.0))


def _like(draw: PosteriorDraw, reference: PosteriorDraw) -> PosteriorDraw:
    """A draw with factors and experts in the order of those of another fit that they are nearest to."""
    same = turned(draw, *order_like(draw.A, reference.A))
    if same.gate is None or reference.gate is None:
        return same
    away = same.gate.mean[:, None] - reference.gate.mean
    own, like = linear_sum_assignment((away**2).sum(axis=2))
    return same._replace(beta=same.beta[own[np.argsort(like)]])


def half_width(spread: FloatArray, coverage: float) -> FloatArray:
    """Half the width of intervals around a fit: Student's t, as the spread is known from N_TABLES tables."""
    found: FloatArray = t.ppf(0.5 + 0.5 * coverage, N_TABLES - 1) * spread
    return found


def widened(draw: PosteriorDraw, spread: ResampledSpread) -> PosteriorDraw:
    """A variational summary whose standard deviations are those of the spread, its correlations its own."""
    assert draw.covariance is not None
    assert draw.beta_covariance is not None
    return draw._replace(
        covariance=_rescaled(draw.covariance, spread.loadings),
        beta_covariance=_rescaled(draw.beta_covariance, spread.coefficients),
    )


def _rescaled(covariance: FloatArray, sd: FloatArray) -> FloatArray:
    """Covariances (.., K, K) with these standard deviations (.., K) and their own correlations."""
    own = np.sqrt(np.maximum(np.einsum("...kk->...k", covariance), 1e-300))
    by = np.maximum(sd, 1e-9) / own
    found: FloatArray = covariance * by[..., :, None] * by[..., None, :]
    return found

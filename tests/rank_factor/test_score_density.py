"""Densities of rows with gaps by the model of scores, beside integrals over its one factor."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from nongauss import RankFactorAnalysis
from nongauss.rank_factor.score_density import interval_moments, log_densities
from nongauss.rank_factor.score_model import ScoreModel, places_of, score_cells
from nongauss.rank_factor.score_predict import label_probabilities
from nongauss.tables.margins import Margin

NODE, WEIGHT = np.polynomial.hermite_e.hermegauss(100)


def margin(name, labels=(), values=0):
    """A column of standard normal numbers, of a few values alike in share, or of labels."""
    if not values:
        edge = np.linspace(-6.0, 6.0, 400)
        return Margin(0, name, (), False, edge, np.concatenate([[0.0], ndtr(edge[1:-1]), [1.0]]), 0.0, False)
    below = np.stack([np.arange(values), np.arange(1, values + 1)], axis=1).ravel() / values
    return Margin(0, name, labels, False, np.repeat(np.arange(float(values)), 2), below, 1.0, True)


def model(strength=1.5):
    """Two numbers, a column of three values, one of two labels, one of three, all of one factor."""
    margins = (
        margin("a"),
        margin("b"),
        margin("few", values=3),
        margin("two", ("n", "y"), 2),
        margin("kind", ("x", "y", "z"), 3),
    )
    first = places_of(margins)
    A = np.array([0.8, -0.6, 0.7, strength, -strength, 0.2, strength])
    level = np.array([0.0, 0.1, 0.0, -0.1, 0.0, 0.3, -0.2])
    noise = np.array([0.4, 0.6, 0.5, 1.0, 1.0, 1.0, 1.0])
    return ScoreModel(margins, first, np.stack([A, level], axis=1)[None], noise[None])


def by_quadrature(model, cells):
    """Log of the integral over z of the product of densities and probabilities of the known cells."""
    A, level, noise = model.loadings[0, :, 0], model.loadings[0, :, 1], model.noise[0]
    seen, out = score_cells(model.margins, model.first, cells), np.empty(len(cells))
    for i in range(len(cells)):
        log_f = np.zeros(len(NODE))
        for p in range(4):
            mean, sd, low, high = level[p] + A[p] * NODE, noise[p] ** 0.5, seen.low[i, p], seen.high[i, p]
            if np.isnan(low):
                continue
            part = (
                norm.pdf(low, mean, sd) if low == high else ndtr((high - mean) / sd) - ndtr((low - mean) / sd)
            )
            log_f += np.log(np.maximum(part, 1e-300))
        if seen.label[i, 4] >= 0:
            shown = label_probabilities(level[4:] + NODE[:, None] * A[4:])[:, seen.label[i, 4]]
            log_f += np.log(np.maximum(shown, 1e-300))
        out[i] = np.log(WEIGHT @ np.exp(log_f) / WEIGHT.sum())
        for j in (0, 1):
            if not np.isnan(cells[i, j]):
                w = seen.low[i, j]
                out[i] += model.margins[j].log_slope(cells[i : i + 1, j])[0] - norm.logpdf(w)
    return out


@pytest.mark.parametrize(("strength", "most"), [(0.5, 0.01), (1.5, 0.02), (4.0, 0.06)])
def test_densities_with_gaps_are_integrals_over_the_factor(strength, most):
    rng = np.random.default_rng(0)
    cells = np.column_stack(
        [rng.standard_normal((60, 2)), rng.integers(0, 3, 60), rng.integers(0, 2, 60), rng.integers(0, 3, 60)]
    )
    cells[rng.random(cells.shape) < 0.3] = np.nan
    made = model(strength)
    apart = log_densities(made, cells) - by_quadrature(made, cells)
    assert np.abs(apart).max() < most


def test_probabilities_of_all_completions_add_up_to_that_of_the_gap():
    made = model()
    row = np.array([[0.4, np.nan, 1.0, np.nan, np.nan]])
    each = np.repeat(row, 6, axis=0)
    each[:, 3], each[:, 4] = np.repeat([0.0, 1.0], 3), np.tile([0.0, 1.0, 2.0], 2)
    assert np.logaddexp.reduce(log_densities(made, each)) == pytest.approx(
        log_densities(made, row)[0], abs=0.02
    )


def test_the_moments_of_an_interval_are_those_of_quadrature_in_both_tails():
    mean, variance = np.array([0.3, -9.0, 9.0, 0.0]), np.array([0.7, 1.0, 1.0, 2.0])
    low, high = np.array([-0.2, 1.0, -np.inf, 30.0]), np.array([0.4, 1.5, -1.0, np.inf])
    found = interval_moments(mean, variance, low, high)
    both = norm.logsf(10.0) + np.log1p(-norm.sf(10.5) / norm.sf(10.0))
    assert found[0][1:3] == pytest.approx([both, norm.logcdf(-10.0)])
    assert found[0][3] == pytest.approx(norm.logsf(30.0 / 2**0.5))
    step = 1e-4
    up, down = (interval_moments(mean + s, variance, low, high) for s in (step, -step))
    assert found[1] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-5)
    assert found[2] == pytest.approx(-(up[1] - down[1]) / (2 * step), rel=1e-4)


def test_scores_of_rows_are_the_same_each_time_and_nothing_where_nothing_is_known():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(80)
    table = pd.DataFrame({"a": z, "b": z + rng.standard_normal(80), "k": np.where(z > 0, "u", "v")})
    fitted = RankFactorAnalysis(2, max_iter=2, tol=1e9, random_state=0).fit(table)
    first = fitted.score_samples(table)
    assert np.array_equal(first, fitted.score_samples(table))
    nothing = table.head(2).copy()
    nothing[["a", "b"]] = np.nan
    nothing["k"] = None
    assert fitted.score_samples(nothing) == pytest.approx([0.0, 0.0], abs=1e-12)
    grid = np.linspace(-5.0, 5.0, 400)
    density = np.exp(fitted.score_samples(pd.DataFrame({"a": grid, "b": np.nan, "k": None})))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=0.02)

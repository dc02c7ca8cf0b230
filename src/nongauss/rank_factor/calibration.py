"""From decision values to probabilities, by rows whose factors were found with loadings that never saw them.

Factors of new rows are nearer to zero than those of training rows, whose cells the loadings have fitted:
the more so the fewer rows and the more columns there are. A threshold at zero then favours one class. So
some rows are held out from the loadings, a fold at a time, and a logistic curve is put through their
decision values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from nongauss.core.registry import persistable
from nongauss.rank_factor import cells
from nongauss.rank_factor.cells import Rows
from nongauss.rank_factor.params import Config, FloatArray, Normal, solve
from nongauss.rank_factor.predict import Draw, decisions, factors
from nongauss.rank_factor.updates import SLAB, Labels, State, is_level
from nongauss.rank_factor.ways import Expect

N_FOLDS, MOST = 5, 1000
"""Folds, and the most rows that are held out in all."""


@persistable
class Calibration(NamedTuple):
    """P(output c) = 1 / (1 + exp(-(slope_c f_c + offset_c))): (C,) each."""

    slope: FloatArray
    offset: FloatArray

    def probabilities(self, f: FloatArray) -> FloatArray:
        """Of decision values (N, C): (N, C), each output by itself."""
        return expit(self.slope * f + self.offset)


def calibrate(
    state: State, draws: list[Draw], rows: Rows, labels: Labels, config: Config, dtype: Any, seed: int
) -> Calibration:
    """The curve through the decision values of rows as if they were new; of draws, by the last one.

    The rules other than levels, and training for prediction, are judged on rows that they were fitted to.
    """
    n_rows = len(labels.weight)
    chosen = np.sort(np.random.default_rng(seed).permutation(n_rows)[:MOST])
    draw = draws[-1]
    if draw.steps or not is_level(config):
        seen = taken(rows, chosen)
        f = np.mean([decisions(one, factors(one, seen, config, dtype)) for one in draws], axis=0)
    else:
        f = _held_out(state, draw, rows, labels, config, dtype, chosen)
    y, weight = labels.y[chosen], labels.weight[chosen]
    curves = [_platt(f[:, c], y[:, c], weight) for c in range(y.shape[1])]
    slope, offset = np.array(curves).T
    return Calibration(slope, offset)


def taken(rows: Rows, index: np.ndarray) -> Rows:
    """Rows by number."""
    return rows.take(index)  # type: ignore[arg-type]


def _held_out(
    state: State, draw: Draw, rows: Rows, labels: Labels, config: Config, dtype: Any, chosen: np.ndarray
) -> FloatArray:
    """Decision values of the chosen rows, each found with loadings from the other rows: (V, C)."""
    way = Expect(dtype)
    terms = draw.terms(dtype)
    n_levels = state.scale.lower.shape[1]

    def sums_of(part: Any) -> cells.CellSums:
        z = Normal(state.z.mean[part], state.z.covariance[part])
        block = rows.take(part)
        return cells.cell_sums(way.sites(z, terms, block, config), z, block, labels.weight[part], n_levels)

    total: cells.CellSums | None = None
    for part in rows.blocks():
        sums = sums_of(part)
        total = sums if total is None else total.plus(sums)
    assert total is not None
    f = np.empty((len(chosen), config.n_outputs))
    for fold in range(min(N_FOLDS, len(chosen))):
        held = np.arange(fold, len(chosen), N_FOLDS)
        away = sums_of(chosen[held])
        rest = cells.CellSums(*(a - b for a, b in zip(total, away, strict=True)))
        means = cells.level_means(rest)
        system = cells.with_own(cells.level_system(rest, means, config.eps), state.shrink.precision + SLAB)
        A = solve(*system)
        table = np.einsum("dk,dqk->dq", A.mean, means)
        without = draw._replace(A=A.mean, covariance=A.covariance, lower=table, upper=table, means=means)
        f[held] = decisions(without, factors(without, taken(rows, chosen[held]), config, dtype))
    return f


def _platt(f: FloatArray, y: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Slope and offset of a logistic curve through labels -1, 1, with Platt's smoothed targets (1999)."""
    n_up, n_down = weight[y > 0].sum(), weight[y < 0].sum()
    target = np.where(y > 0, (n_up + 1.0) / (n_up + 2.0), 1.0 / (n_down + 2.0))
    size = float(np.sqrt(weight @ f**2 / weight.sum())) or 1.0

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        t = x[0] * f / size + x[1]
        error = weight * (expit(t) - target)
        value = -(weight * (target * log_expit(t) + (1.0 - target) * log_expit(-t))).sum()
        return float(value + 1e-3 * x @ x), np.array([error @ f / size, error.sum()]) + 2e-3 * x

    best = minimize(
        loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=[(1e-3, None), (None, None)]
    )
    return float(best.x[0] / size), float(best.x[1])

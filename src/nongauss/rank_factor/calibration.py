"""From decision values to probabilities, by rows whose factors were found with loadings that never saw them.

Factors of new rows are nearer to zero than those of training rows, whose cells the loadings have fitted:
the more so the fewer rows and the more columns there are. A threshold at zero then favours one class. So
some rows are held out from loadings and machines, a fold at a time, and a logistic curve is put through
their decision values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from nongauss.core.records import persistable
from nongauss.rank_factor import rank_likelihood as cells
from nongauss.rank_factor import svm_mixture as experts
from nongauss.rank_factor.params import Config, FloatArray, Normal, solve
from nongauss.rank_factor.predict import Draw, decisions, factors
from nongauss.rank_factor.rank_likelihood import Rows
from nongauss.rank_factor.updates import Labels, State, is_level, level_loadings, share_logs
from nongauss.rank_factor.vb_and_gibbs import Expect

N_FOLDS, MOST = 5, 1000
"""Folds, and the most rows that are held out in all."""
N_ROUNDS = 3
"""Re-weighted steps of the machines without a fold's labels."""


@persistable("rank_factor.Calibration", "nongauss.rank_factor.calibration:Calibration")
class Calibration(NamedTuple):
    """P(output c) = 1 / (1 + exp(-(slope_c f_c + offset_c))): (C,) each."""

    slope: FloatArray
    offset: FloatArray

    def probabilities(self, f: FloatArray) -> FloatArray:
        """Of decision values (N, C): (N, C), each output by itself."""
        return expit(self.slope * f + self.offset)


def calibrate(f: FloatArray, y: FloatArray, weight: FloatArray) -> Calibration:
    """The curves through decision values and labels (V, C) of rows with weights (V,)."""
    curves = [_platt(f[:, c], y[:, c], weight) for c in range(y.shape[1])]
    slope, offset = np.array(curves).T
    return Calibration(slope, offset)


def chosen_rows(n_rows: int, seed: int) -> np.ndarray:
    """Numbers of the rows that are judged, in random order: (V,)."""
    return np.random.default_rng(seed).permutation(n_rows)[:MOST]


def taken(rows: Rows, index: np.ndarray) -> Rows:
    """Rows by number."""
    return rows.take(index)  # type: ignore[arg-type]


def judged(
    state: State,
    draws: list[Draw],
    rows: Rows,
    labels: Labels,
    config: Config,
    dtype: Any,
    chosen: np.ndarray,
) -> FloatArray:
    """Decision values of the chosen rows as if they were new: (V, C); of draws, by the last one.

    Under "pairwise" and "extremes", whose loadings are no sum over rows, they are of rows that were fitted.
    """
    if config.observation == "rank" and not is_level(config):
        seen = taken(rows, chosen)
        found: FloatArray = np.mean(
            [decisions(one, factors(one, seen, config, dtype)) for one in draws], axis=0
        )
        return found
    way, draw = Expect(dtype), draws[-1]
    terms = draw.terms(dtype)
    n_levels = state.scale.lower.shape[1] if is_level(config) else 0

    def sums_of(part: Any) -> cells.CellSums:
        z = Normal(state.z.mean[part], state.z.covariance[part])
        block = rows.take(part)
        return cells.cell_sums(way.sites(z, terms, block, config), z, block, labels.weight[part], n_levels)

    total: cells.CellSums | None = None
    for part in rows.blocks():
        sums = sums_of(part)
        total = sums if total is None else total.plus(sums)
    assert total is not None
    shares = experts.softmax(share_logs(state, labels, config))
    f = np.empty((len(chosen), config.n_outputs))
    for fold in range(min(N_FOLDS, len(chosen))):
        held = np.arange(fold, len(chosen), N_FOLDS)
        away = sums_of(chosen[held])
        rest = cells.CellSums(*(a - b for a, b in zip(total, away, strict=True)))
        without = _with_loadings(draw, state, rest, config)
        kept = np.delete(np.arange(len(labels.weight)), chosen[held])
        without = _with_machines(without, state, labels, shares, kept)
        f[held] = decisions(without, factors(without, taken(rows, chosen[held]), config, dtype))
    return f


def _with_loadings(draw: Draw, state: State, sums: cells.CellSums, config: Config) -> Draw:
    """The draw with loadings from these sums."""
    if not is_level(config):
        system = cells.unpack(sums.square, config.n_factors), sums.linear
        A = solve(*cells.with_own(system, state.shrink.precision))
        return draw._replace(A=A.mean, covariance=A.covariance)
    A, scale = level_loadings(sums, state.shrink.precision, config, Expect())
    return draw._replace(
        A=A.mean, covariance=A.covariance, lower=scale.lower, upper=scale.upper, means=scale.means
    )


def _with_machines(draw: Draw, state: State, labels: Labels, shares: FloatArray, kept: np.ndarray) -> Draw:
    """The draw with machines from the labels of these rows alone, in a few re-weighted steps."""
    z = Normal(state.z.mean[kept], state.z.covariance[kept])
    y, weight, shares = labels.y[kept], labels.weight[kept], shares[kept]
    heads = state.experts
    for _ in range(N_ROUNDS):
        g = experts.floored(experts.margins(heads, z, y)[1])
        heads = heads._replace(beta=solve(*experts.beta_system(heads, z, g, shares, y, weight)))
    return draw._replace(beta=heads.beta.mean, beta_covariance=heads.beta.covariance)


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

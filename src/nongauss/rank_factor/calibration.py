"""From decision values to probabilities, by rows whose factors were found with loadings that never saw them.

Factors of new rows are nearer to zero than those of training rows, whose cells the loadings have fitted:
the more so the fewer rows and the more columns there are. A threshold at zero then favours one class. So
some rows are held out from loadings and machines, a fold at a time, and a logistic curve is put through
their decision values.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax

from nongauss.rank_factor import svm_mixture
from nongauss.rank_factor.config import RankConfig
from nongauss.rank_factor.data import FloatArray, RankRows
from nongauss.rank_factor.inference import VariationalBayes
from nongauss.rank_factor.params import RankState, WeightedLabels, solve, unpack
from nongauss.rank_factor.predict import OutputCalibration, PosteriorDraw, decisions, factors
from nongauss.rank_factor.rank_likelihood import CellSums, cell_sums, with_loading_prior
from nongauss.rank_factor.updates import level_loadings, share_logs

Numbers = NDArray[np.intp]

N_FOLDS, MOST = 5, 1000
"""Folds, and the most rows that are held out in all."""
ENOUGH = 200
"""Rows that training for prediction holds out at least, if there are so many, a fifth of them at a time."""
N_ROUNDS = 3
"""Re-weighted steps of the machines without a fold's labels."""


def calibrate(f: FloatArray, y: FloatArray, weight: FloatArray) -> OutputCalibration:
    """The curve through decision values and labels (V, C) of rows with weights (V,).

    C = 1: a logistic curve; more: a multinomial one, since curves of each class against the rest, scaled to a
    sum of 1, are too timid.
    """
    if y.shape[1] > 1:
        return _multinomial(f, y, weight)
    slope, offset = _platt(f[:, 0], y[:, 0], weight)
    return OutputCalibration(np.array([slope]), np.array([offset]))


def chosen_rows(n_rows: int, seed: int) -> Numbers:
    """Numbers of the rows that are judged, in random order: (V,)."""
    return np.random.default_rng(seed).permutation(n_rows)[:MOST]


def folds_of(chosen: Numbers, n_rows: int) -> list[Numbers]:
    """Folds of the chosen of N rows, a fifth of these each, that training for prediction leaves out."""
    size = max(1, min(len(chosen), n_rows // N_FOLDS))
    n_folds = min(N_FOLDS, len(chosen) // size, -(-ENOUGH // size))
    return [chosen[number * size : (number + 1) * size] for number in range(n_folds)]


def judged(
    state: RankState,
    draws: list[PosteriorDraw],
    rows: RankRows,
    labels: WeightedLabels,
    config: RankConfig,
    dtype: Any,
    chosen: Numbers,
) -> FloatArray:
    """Decision values of the chosen rows as if they were new: (V, C); of draws, by the last one.

    Under "pairwise" and "extremes", whose loadings are no sum over rows, they are of rows that were fitted.
    """
    if config.observation == "rank" and not config.is_level:
        seen = rows.take(chosen)
        found: FloatArray = np.mean(
            [decisions(one, factors(one, seen, config, dtype)) for one in draws], axis=0
        )
        return found
    draw = draws[-1]
    of_folds = _sums(state, draw, rows, labels, config, dtype, chosen)
    shares = svm_mixture.softmax(share_logs(state, labels, config))
    f = np.empty((len(chosen), config.n_outputs))
    for fold, rest in enumerate(_without_each(of_folds)):
        held = np.arange(fold, len(chosen), N_FOLDS)
        without = _with_loadings(draw, state, rest, config)
        kept = np.delete(np.arange(len(labels.weight)), chosen[held])
        without = _with_machines(without, state, labels, shares, kept, config)
        f[held] = decisions(without, factors(without, rows.take(chosen[held]), config, dtype))
    return f


def _sums(
    state: RankState,
    draw: PosteriorDraw,
    rows: RankRows,
    labels: WeightedLabels,
    config: RankConfig,
    dtype: Any,
    chosen: Numbers,
) -> list[CellSums]:
    """The sums that loadings follow from at the factors of the fit: of each fold of chosen rows, and of rows
    in none."""
    inference, loadings = VariationalBayes(dtype), draw.loading_moments(dtype)
    n_levels = state.scale.lower.shape[1] if config.is_level else 0

    def sums_of(numbers: Numbers) -> CellSums:
        """The sums over some rows, a block of them at a time."""
        own, z, weight = rows.take(numbers), state.z.take(numbers), labels.weight[numbers]
        total: CellSums | None = None
        for part in own.blocks():
            block, found = own.take(part), z.take(part)
            at = inference.quadratics(found, loadings, block, config)
            sums = cell_sums(at, found, block, weight[part], n_levels)
            total = sums if total is None else total.plus(sums)
        assert total is not None
        return total

    folds = [chosen[fold::N_FOLDS] for fold in range(min(N_FOLDS, len(chosen)))]
    rest = np.setdiff1d(np.arange(len(labels.weight)), chosen)
    return [sums_of(numbers) for numbers in (*folds, *([rest] if len(rest) else []))]


def _without_each(of_folds: list[CellSums]) -> list[CellSums]:
    """The sums without each of the folds, as sums of the others.

    A difference to the sum of all would be rounding alone where one fold has nearly all the weight.
    """
    none = CellSums(*(np.zeros_like(part) for part in of_folds[0]))
    return [
        reduce(CellSums.plus, [each for other, each in enumerate(of_folds) if other != fold], none)
        for fold in range(min(N_FOLDS, len(of_folds)))
    ]


def _with_loadings(
    draw: PosteriorDraw, state: RankState, sums: CellSums, config: RankConfig
) -> PosteriorDraw:
    """The draw with loadings from these sums."""
    own = state.shrink.precision
    if not config.is_level:
        system = unpack(sums.square, config.n_factors), sums.linear
        A = solve(*with_loading_prior(system, own))
        return draw._replace(A=A.mean, covariance=A.covariance)
    A, scale = level_loadings(sums, own, config, VariationalBayes())
    return draw._replace(
        A=A.mean, covariance=A.covariance, lower=scale.lower, upper=scale.upper, means=scale.means
    )


def _with_machines(
    draw: PosteriorDraw,
    state: RankState,
    labels: WeightedLabels,
    shares: FloatArray,
    kept: Numbers,
    config: RankConfig,
) -> PosteriorDraw:
    """The draw with machines from the labels of these rows alone, in a few re-weighted steps."""
    z = state.z.take(kept)
    y, weight, shares = labels.y[kept], labels.weight[kept], shares[kept]
    experts = state.experts
    for _ in range(N_ROUNDS):
        g = svm_mixture.expected_weights(svm_mixture.margins(experts, z, y)[1])
        system = svm_mixture.beta_system(experts, z, g, shares, y, weight, config.prior)
        experts = experts._replace(beta=solve(*system))
    known = draw.beta_covariance is None
    return draw._replace(beta=experts.beta.mean, beta_covariance=None if known else experts.beta.covariance)


def _platt(f: FloatArray, y: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Slope and offset of a logistic curve through labels -1, 1, with Platt's smoothed targets (1999)."""
    n_up, n_down = weight[y > 0].sum(), weight[y < 0].sum()
    target = np.where(y > 0, (n_up + 1.0) / (n_up + 2.0), 1.0 / (n_down + 2.0))
    size = float(np.sqrt(weight @ f**2 / weight.sum())) or 1.0

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        """Cross-entropy of the targets, ridged, and its gradient; x: slope by the size of f, and offset."""
        t = x[0] * f / size + x[1]
        error = weight * (expit(t) - target)
        value = -(weight * (target * log_expit(t) + (1.0 - target) * log_expit(-t))).sum()
        return float(value + 1e-3 * x @ x), np.array([error @ f / size, error.sum()]) + 2e-3 * x

    best = minimize(
        loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=[(1e-3, None), (None, None)]
    )
    return float(best.x[0] / size), float(best.x[1])


def _multinomial(f: FloatArray, y: FloatArray, weight: FloatArray) -> OutputCalibration:
    """P(c) in proportion to exp(slope_c f_c + offset_c), by the most likely slopes > 0 and offsets (C,).

    One row more is of any class, so that no class is certain where all rows are right. Slopes are
    e^(t + d_c), d_c ~ N(0, 1 / 10): few rows do not pull them apart.
    """
    C = y.shape[1]
    size = float(np.sqrt(weight @ (f**2).mean(axis=1) / weight.sum())) or 1.0
    any_class = 1.0 / (1.0 + weight.sum())
    target = (1.0 - any_class) * (y > 0) + any_class / C
    ridge = np.concatenate([[1e-2], np.full(C, 10.0), np.full(C, 2e-3)])

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        """Cross-entropy of the targets and the priors, and the gradient; x: t, d (C,), offsets (C,)."""
        t = np.exp(x[0] + x[1 : C + 1]) * f / size
        log_p = log_softmax(t + x[C + 1 :], axis=1)
        error = weight[:, None] * (np.exp(log_p) - target)
        by_slope = (error * t).sum(axis=0)
        value = -(weight[:, None] * target * log_p).sum() + 0.5 * ridge @ x**2
        return float(value), np.concatenate([[by_slope.sum()], by_slope, error.sum(axis=0)]) + ridge * x

    bounds = [(-5.0, 10.0)] + [(-5.0, 5.0)] * C + [(None, None)] * C
    best = minimize(loss, np.zeros(2 * C + 1), jac=True, method="L-BFGS-B", bounds=bounds)
    return OutputCalibration(np.exp(best.x[0] + best.x[1 : C + 1]) / size, best.x[C + 1 :])

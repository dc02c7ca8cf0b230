"""What rows that a member did not train on say of the ensemble: its variance, its skewness and its tails."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy.special import logsumexp

from nongauss.tggm import exact_law, predict, tails
from nongauss.tggm.config import NetworkConfig
from nongauss.tggm.data import HeldOut
from nongauss.tggm.params import NetworkParams
from nongauss.tggm.predict import Ensemble
from nongauss.tggm.tails import Tails
from nongauss.tggm.updates import INFLATIONS, INFLATIONS_IN_DEPTH

SKEWNESSES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Shares of the hidden variance that may keep their skewed shape; see `calibrated`."""

POWERS = (1.0, 0.5, 0.0)
"""Powers of the inflation by squared errors that are tried: as it is, half of it in logs, none."""

SPREAD_KEPT, ROWS_THAT_HALVE = 0.5, 50.0
"""Share of the variance between members' means that the law keeps once many held-out rows have set its
variance, and how many of them take half of the rest away."""

MOST_ADDED = 0.15
"""Share of that variance that the part kept of many rows may add at most: where members disagree as much as
the noise, half of it would make intervals too wide."""

ROWS_THAT_TELL = 1000.0
"""How many held-out rows take half of the members' spread off the variance that they set; see `_once`."""

CHOICES = 12.0
"""What held-out rows choose beside the variance (epochs, heads, objective, power, skewness, tails), in rows:
the mean of n squared errors is too small by about a share CHOICES / (n + CHOICES)."""

LEAST_SHORTER = 0.25
"""Least factor of squared errors by which averaging the members may shorten them."""

FARTHEST_ERROR = 4.0
"""Standard deviations beyond which errors do not count as more: a few would decide a third moment."""

MOST_TO_CALIBRATE = 2000
"""Held-out rows of each member that are looked at for that."""

RowDensity = Callable[[float, Float64[np.ndarray, "E V P"]], Float64[np.ndarray, "E V"]]
"""Log density of each member at its own rows, of the share of skewness and the rows' deviations."""


class CalibratedEnsemble(NamedTuple):
    """An ensemble as held-out rows set it, and what they say of it.

    `log_density`: theirs, nats a row, -inf without any. `skewed`: what the skewness of their standardised
    errors may be worth, nats a row, 0 without any. `n_rows`: how many they are. `spread` (P,): root mean
    square of the differences between the members' means and their average there, 0 without any.
    """

    ensemble: Ensemble
    log_density: float = -math.inf
    skewed: float = 0.0
    n_rows: int = 0
    spread: Float64[np.ndarray, " P"] | float = 0.0


def calibrated(params: NetworkParams, config: NetworkConfig, held: HeldOut | None) -> CalibratedEnsemble:
    """The ensemble with its variance, skewness and tails set by the rows that the members did not train on.

    A member's held-out squared error is `a` times its variance on average. Averaging the members takes
    their spread, `b` times the variance, off the error: a - b, within [0.5, 3] (of a deep mean field 1000),
    is the inflation of each output by squares. A few far errors decide squares, so its powers of `POWERS`
    are tried. That, the share of skewness of `SKEWNESSES` and the tails of `tails.DEGREES` are those with the
    highest log density of held-out errors, shortened to those of the ensemble, sqrt((a - b) / a); the other
    tails keep a part by their probability. The n rows have chosen a lot: squares are taken 1 + c / (n + c)
    times, beside c = `CHOICES` rows of ratio 1. The spread on top, which `_spread_kept` tells, would count
    twice what they have found, and `_once` takes it off where they are many. Where no row is held out the
    model is taken at its word; so are probabilities of labels.
    """
    n_outputs = params.n_outputs
    plain = Ensemble(params, config, np.ones(n_outputs), 1.0, np.zeros(n_outputs), np.ones(n_outputs))
    if held is None or config.n_classes:
        return CalibratedEnsemble(plain)
    X, Y, weight = (np.asarray(part)[:, :MOST_TO_CALIBRATE].astype(np.float64) for part in held)
    error, variance, between = _errors_of(params, config, X, Y)
    few = CHOICES / ((n_rows := int((weight > 0).sum())) + CHOICES)
    limits = INFLATIONS_IN_DEPTH if config.prior == "mean_field" else INFLATIONS
    # a - b = sum_en w_en [(y_en - m_e(x_en))^2 - var_e'(m_e'(x_en))] / V_e(x_en) / sum_en w_en
    a, b = ((weight[..., None] * part / variance).sum((0, 1)) / weight.sum() for part in (error**2, between))
    is_constant = (Y[:1, :1] == Y).all((0, 1))
    inflation = np.where(is_constant, 1.0, np.clip((1.0 - few) * (1.0 + few) * (a - b) + few, *limits))
    shorter = np.sqrt((1.0 + few) * np.clip((a - b) / np.maximum(a, predict.TINY), LEAST_SHORTER, 1.0))
    shares = (1.0,) if config.method == "bp" or params.gate else SKEWNESSES
    kept = _spread_kept(float(inflation.mean()), float(b.mean()), n_rows)
    plain = plain._replace(spread_kept=kept)
    best = None
    for power in POWERS:
        set_ = plain._replace(inflation=inflation**power)
        density = exact_law.row_density(set_, X) if set_.is_exact else _mixture_density(set_, X)
        share, factor, found = _shape_of(density, shorter * error, weight, shares)
        if best is None or found > best[1]:
            best = set_._replace(skewness=share, tails=factor), found, density
        shares = (share,)
    assert best is not None
    alone = _shape_of(best[2], error, weight, (best[0].skewness,))[2]
    skewed = _worth_of_skewness((error / np.sqrt(variance))[..., 0], weight) if n_outputs == 1 else 0.0
    spread = np.sqrt((weight[..., None] * between).sum((0, 1)) / weight.sum())
    ensemble = best[0]._replace(inflation=best[0].inflation * _once(inflation, kept * b, n_rows))
    return CalibratedEnsemble(ensemble, alone / weight.sum(), skewed, n_rows, spread)


def _spread_kept(inflation: float, spread: float, n_rows: int) -> float:
    """The share of the variance between members' means that the law keeps, both in units of V.

    `inflation` is the factor of V that `n_rows` held-out rows have found, `spread` what means vary by. All is
    kept where rows are few, else `SPREAD_KEPT` of it, or as much as adds `MOST_ADDED` of the former.
    """
    of_many = min(SPREAD_KEPT, MOST_ADDED * inflation / max(spread, predict.TINY))
    return 1.0 - (1.0 - of_many) * n_rows / (n_rows + ROWS_THAT_HALVE)


def _once(
    inflation: Float64[np.ndarray, " P"], spread: Float64[np.ndarray, " P"], n_rows: int
) -> Float64[np.ndarray, " P"]:
    """The factor of the inflation with which the members' spread counts once: 1 - spread / inflation.

    By few rows it is near 1, where wide is better than narrow. Both are in units of V; a half is always left.
    """
    share = n_rows / (n_rows + ROWS_THAT_TELL)
    factor: Float64[np.ndarray, " P"] = np.clip(
        1.0 - share * spread / np.maximum(inflation, predict.TINY), 0.5, 1.0
    )
    return factor


def _errors_of(
    params: NetworkParams,
    config: NetworkConfig,
    X: Float64[np.ndarray, "E V D"],
    Y: Float64[np.ndarray, "E V P"],
) -> tuple[Float64[np.ndarray, "E V P"], Float64[np.ndarray, "E V P"], Float64[np.ndarray, "E V P"]]:
    """At each member's held-out rows its error, its variance, and the variance of all members' means."""
    mean, variance = predict.member_moments_of(params, config, X.reshape(X.shape[0] * X.shape[1], X.shape[2]))
    shape = (len(X), *Y.shape)  # every member at every held-out row
    mean, variance = mean.reshape(shape), variance.reshape(shape)
    own = np.arange(len(X))
    return Y - mean[own, own], variance[own, own], mean.var(axis=0)


def _worth_of_skewness(standard: Float64[np.ndarray, "E V"], weight: Float64[np.ndarray, "E V"]) -> float:
    """skewness^2 / 6 of standardised errors, nats a row; those beyond `FARTHEST_ERROR` sd count as there.

    A density of skewness k is k^2 / 12 nats from the Gaussian of its mean and variance, to leading order
    (Edgeworth). A truncated normal of k > .3, with noise of .3 of its sd on top, is .07 to .16 k^2 from it.
    """
    share = weight / weight.sum()
    for limit in (math.inf, FARTHEST_ERROR):
        centred = np.clip(standard, -limit, limit)
        centred -= (share * centred).sum()
        second = (share * centred**2).sum()
        if not second > 0.0:
            return 0.0
        standard = centred / np.sqrt(second)
    return float((share * standard**3).sum() ** 2 / 6.0)


def _shape_of(
    density: RowDensity,
    error: Float64[np.ndarray, "E V P"],
    weight: Float64[np.ndarray, "E V"],
    shares: tuple[float, ...],
) -> tuple[float, Tails, float]:
    """The share of skewness and the tails with the highest weighted log density, and that density.

    With the deviation from the mean times sqrt(g), log p(y) = log p_1(error / sqrt(g)) - P log(g) / 2.
    """
    best: tuple[float, Tails, float] = (1.0, tails.MODEL_TAILS, -np.inf)
    for share in shares:
        scores = np.stack(
            [
                density(share, error / np.sqrt(g)) - 0.5 * error.shape[-1] * np.log(g)
                for g in tails.candidate_variances()
            ]
        )
        likelihoods = tails.log_likelihoods(scores.reshape(len(scores), -1), weight.reshape(-1))
        if likelihoods.max() > best[2]:
            best = share, tails.averaged(likelihoods), float(likelihoods.max())
    return best


def _mixture_density(ensemble: Ensemble, X: Float64[np.ndarray, "E V D"]) -> RowDensity:
    """By the mixture of `predict.mixture`: log p(y) = log sum_s w_s prod_p N(y_p; m_sp, v_sp)."""
    params, config = ensemble.params, ensemble.config
    parts = [predict.decomposed(predict.member_of(params, e), config, X[e]) for e in range(len(X))]

    def density(share: float, error: Float64[np.ndarray, "E V P"]) -> Float64[np.ndarray, "E V"]:
        rows = []
        for part, off in zip(parts, error, strict=True):
            means, variances = predict.mixture(part, ensemble.inflation, share)
            n_points = 1 if share == 0.0 else means.shape[2]
            shift, variances = (means[0] - part.mean[0][:, None, :])[:, :n_points], variances[0, :, :n_points]
            terms = -0.5 * (np.log(2.0 * np.pi * variances) + (off[:, None, :] - shift) ** 2 / variances)
            weight = np.zeros((1, 1)) if n_points == 1 else part.log_weight[0]
            rows.append(logsumexp(terms.sum(-1) + weight, axis=1))
        return np.stack(rows)

    return density

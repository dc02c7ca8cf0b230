"""The law that knows no inputs, which no fit may fall short of.

A member whose weights are zero is such a law: y = b1 + noise whatever the row. Steps that are too long, or
too few, can end far below it, where every figure of the fit would be nonsense.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64
from scipy.special import ndtri
from scipy.stats import norm

from nongauss.core.device import replace
from nongauss.optimise.course import FitResult, Status
from nongauss.prob import probit
from nongauss.tggm.calibration import MOST_TO_CALIBRATE, CalibratedEnsemble
from nongauss.tggm.config import NetworkConfig
from nongauss.tggm.data import HeldOut, NetworkRows
from nongauss.tggm.params import SMALLEST_LOG_SD, NetworkParams
from nongauss.tggm.predict import Ensemble

LEAST_NATS, LEAST_A_ROW = 5.0, 0.01
"""Nats of all rows together, and of each, that a fit must be worse by: a few rows are so by chance."""

_STEPS = 100


def better_of(
    result: FitResult, found: CalibratedEnsemble, rows: NetworkRows, held: HeldOut | None
) -> tuple[FitResult, Ensemble]:
    """The fit, or the constant law of `rows` with a status that says so, where that is surely the better one.

    Held-out rows tell, of labels by the best member, since averages of bad ones may be good; or without these
    the training rows, whose density no fit should leave below that of a constant. A target that never varies
    has no such law to compare with; and a fit that was stopped is left as it is.
    """
    fitted = found.ensemble
    params, config = fitted.params, fitted.config
    is_given = not config.n_classes and (rows.Y[:1] == rows.Y).all(axis=0).any()
    if is_given or result.status is Status.STOPPED:
        return result, fitted
    constant = constant_params(params, config, rows)
    if held is None:
        some = slice(None, None, max(1, len(rows.weight) // MOST_TO_CALIBRATE))
        weight, Y = rows.weight[some], rows.Y[some]
        X = jax.tree.map(lambda part: part[some], rows.X)
        own = _log_density(fitted, X, Y, weight)
    else:
        _, Y, weight = map(np.asarray, held)
        scores = np.asarray(result.state.best_score)
        own = float(scores.max()) if config.n_classes else found.log_density
    least = max(LEAST_A_ROW, LEAST_NATS / max(int((weight > 0).sum()), 1))
    if own >= constant_log_density(constant, config, Y, weight) - least:  # nan is below, too
        return result, fitted
    n_outputs = len(fitted.centre)
    whole = Ensemble(constant, config, np.ones(n_outputs), 1.0, fitted.centre, fitted.scale)
    return replace(result, status=Status.NO_BETTER), whole


def constant_params(like: NetworkParams, config: NetworkConfig, rows: NetworkRows) -> NetworkParams:
    """Members of these shapes under which each row has the law of all `rows`.

    Numbers are N(mean, variance), or have the noise variance that is fixed; labels have the shares of their
    classes.
    """
    n_members, n_outputs = like.b1.shape
    if config.n_classes:
        classes = np.bincount(rows.Y[:, 0].astype(int), weights=rows.weight, minlength=config.n_classes)
        middle, log_sd = outputs_of_shares(classes / classes.sum()), np.zeros(n_outputs)
    else:
        middle = np.average(rows.Y.astype(np.float64), axis=0, weights=rows.weight)
        variance = np.average((rows.Y - middle) ** 2, axis=0, weights=rows.weight)
        log_sd = 0.5 * np.log(np.maximum(variance, math.exp(2.0 * SMALLEST_LOG_SD)))
        if config.noise_variance is not None:
            log_sd = np.full(len(middle), 0.5 * math.log(config.noise_variance))

    def alike(row: Float64[np.ndarray, " _"]) -> Any:  # heads have that of the one output
        return np.broadcast_to(row, (n_members, n_outputs)).astype(np.float32)

    still: NetworkParams = jax.tree.map(np.zeros_like, like)
    return still._replace(b1=alike(middle), log_sd1=alike(log_sd))


def outputs_of_shares(shares: Float64[np.ndarray, " C"]) -> Float64[np.ndarray, " P"]:
    """Means of outputs of variance 1 under which classes have these probabilities, 1e-6 at least."""
    shares = np.maximum(shares, 1e-6) / np.maximum(shares, 1e-6).sum()
    if len(shares) == 2:
        return np.asarray(ndtri(shares[1:]))
    log_shares, ones = jnp.log(shares), jnp.ones(len(shares))

    def nearer(_: int, mean: Float[Array, " C"]) -> Float[Array, " C"]:
        return mean + 0.5 * (log_shares - probit.log_probabilities(mean, ones, 64))

    return np.asarray(jax.lax.fori_loop(0, _STEPS, nearer, jnp.zeros(len(shares))), np.float64)


def constant_log_density(
    params: NetworkParams,
    config: NetworkConfig,
    Y: Float[np.ndarray, "*L P"],
    weight: Float[np.ndarray, "*L"],
) -> float:
    """Mean log density a row of targets under members that `constant_params` has made."""
    middle, sd = (np.asarray(part, np.float64)[0] for part in (params.b1, np.exp(params.log_sd1)))
    if config.n_classes:
        found = np.asarray(probit.log_probabilities(jnp.asarray(middle), jnp.ones(len(middle)), 64))
        found = found[Y[..., 0].astype(int)]
    else:
        n_outputs = Y.shape[-1]
        found = norm.logpdf(Y, middle[:n_outputs], sd[:n_outputs]).sum(axis=-1)
    return float(np.average(found, weights=weight))


def _log_density(
    ensemble: Ensemble, X: Any, Y: Float[np.ndarray, "N P"], weight: Float[np.ndarray, " N"]
) -> float:
    """That of the ensemble by its moments; of labels by their probabilities."""
    with np.errstate(all="ignore"):  # what is not finite is no better than a constant
        if ensemble.config.n_classes:
            found = np.log(ensemble.classes(X)[0][np.arange(len(Y)), Y[:, 0].astype(int)])
        else:
            mean, variance = ensemble.moments(X)
            found = norm.logpdf(Y, mean, np.sqrt(variance)).sum(axis=-1)
        return float(np.average(found, weights=weight))

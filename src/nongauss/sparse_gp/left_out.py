"""What a fitted Gaussian process says of each row that it was fitted to, as if without that row.

At the sites' fixed point row n adds g_n f + h_n f^2 to log q(f), g and h the derivatives of its expectation
by mean and variance; dividing that site out of q(u) leaves a Gaussian again. Hyper-parameters stay: they have
seen the row, which flatters a fit by about a nat for each of them in all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.predictive.combined import mixture
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.stacking import best_weights
from nongauss.sparse_gp.beside import known_of, log_exposure
from nongauss.sparse_gp.data import GPRows, with_a_column
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.likelihoods import Censored, Likelihood, Truncated
from nongauss.sparse_gp.neighbours import residuals
from nongauss.sparse_gp.predict import GPAverage
from nongauss.sparse_gp.stacking import density_of_known, left_out_moments
from nongauss.tables.source import Source, itself, weight_of
from nongauss.tables.target import validate_target

MOST_NUMBERS = 5e10
"""N M^2 up to which rows are left out after a fit: some seconds."""


def left_out_law(
    model: Any, X: Any, y: FloatArray, weight: FloatArray, exposure: Any = None
) -> PredictiveDistribution:
    """The law of each training row's target y (N,) given all others, of a fitted `SparseGPRegressor`.

    Of one fitted to limits, trials or selected rows y is (N, V) as of `beside.known_of`. `X`, `weight` (N,)
    and `exposure` are what the model was fitted to; a row is left out with so much weight.
    """
    encoded = with_a_column(model._encoder.as_scaled(X))
    centre, scale = float(model._scaler.centre[0]), float(model._scaler.scale[0])
    target = (np.asarray(y, np.float64) - centre) / scale
    has_trials = model.posterior_.likelihood.takes_trials
    if target.ndim == 2 and not has_trials:
        pairs = (target[:, :2], target[:, 2:])
        target = np.hstack([np.sort(ends, axis=1) for ends in pairs])  # the scale may be negative
    shift = log_exposure(exposure, len(encoded), model.posterior_.likelihood)
    parts, told = [], None
    if model._near is not None:
        average = GPAverage(model.posteriors_, model.weights_)
        own, _ = residuals(average, GPRows(encoded, target, weight, shift))
        told = model._near.at(encoded, own)
    for posterior in model.posteriors_:
        exact, likelihood = bool(model.is_exact_), posterior.likelihood
        if has_trials:
            likelihood = likelihood.with_trials(target[:, 1])
        elif target.ndim == 2:
            kind = Truncated if target.shape[1] == 4 else Censored
            posterior = posterior._replace(likelihood=kind(of=likelihood))
        mean, variance = left_out_moments(posterior, encoded, target, weight, shift, exact)
        if told is not None:
            posterior, mean, variance = model._near.beside(posterior, mean, variance, told)
        parts.append(likelihood.predictive(mean, variance, posterior.psi, centre=centre, scale=scale))
    return mixture(parts, model.weights_)


def left_out_density(model: Any, source: Source, likelihood: Likelihood, n_values: int) -> FloatArray | None:
    """log p of what is known of each row of a table in memory, given all others: (N,).

    None for a table in parts, or one so large that it would take long. Of rows with a limit it is the log
    probability of the interval; of selected rows that given their selection. See `beside.known_of`.
    """
    if not source.in_memory:
        return None
    part = next(iter(source.each(itself)))
    weight = weight_of(part)
    if len(weight) * len(model.posterior_.Z) ** 2 > MOST_NUMBERS:
        return None
    y = validate_target(part.y, len(weight), type(model).__name__, warn=False)[0][:, 0]
    known = known_of(y, part.beside, likelihood, n_values)
    law = left_out_law(model, part.X, known if n_values > 1 else y, weight, part.beside.get("exposure"))
    if n_values == 1 or likelihood.takes_trials:
        return law.log_prob(y)
    return density_of_known(law, known)


def compare(models: Mapping[str, Any] | Sequence[Any]) -> pd.DataFrame:
    """Fitted Gaussian processes beside one another, by what each says of rows left out of its fit.

    `models`: regressors or classifiers by name, or in a list, fitted to the same rows. The best comes first.
    Columns: `log_density`, the mean of `loo_` less one nat for each hyper-parameter in all; its standard
    `error`; `difference` from the best with `difference_error`, that of the paired rows; `weight`, the share
    in the mixture that predicts left-out rows best (stacking); `parameters`, of an average their mean.
    Laws of one nature can be compared: densities of the same y, or probabilities. Raises InputError.
    """
    named = dict(models) if isinstance(models, Mapping) else {str(i): m for i, m in enumerate(models)}
    if not named:
        raise InputError("compare takes one or more fitted models, by name or in a list: got none.")
    for name, model in named.items():
        if getattr(model, "loo_", None) is None:
            raise InputError(
                f"The model {name!r} has no loo_: fit a Gaussian process to a table in memory that is not so "
                "large, or compare held-out rows by log_density."
            )
    sizes = {len(model.loo_) for model in named.values()}
    if len(sizes) > 1:
        raise InputError(f"The models were fitted to {sorted(sizes)} rows; fit them to the same rows.")
    counts = np.array([n_parameters(model) for model in named.values()])
    each = np.stack([model.loo_ for model in named.values()]) - counts[:, None] / sizes.copy().pop()
    mean = each.mean(axis=1)
    gap = each - each[mean.argmax()]
    root = np.sqrt(each.shape[1])
    table = pd.DataFrame(
        {
            "log_density": mean,
            "error": each.std(axis=1) / root,
            "difference": gap.mean(axis=1),
            "difference_error": gap.std(axis=1) / root,
            "weight": best_weights(each, np.ones(each.shape[1])),
            "parameters": np.rint(counts).astype(np.int64),
        },
        index=list(named),
    )
    return table.sort_values("log_density", ascending=False)


def left_out_probabilities(model: Any, X: Any, codes: FloatArray, weight: FloatArray) -> FloatArray:
    """The probability of each class (N, C) at each training row given all others, of a fitted classifier.

    `codes` (N,): the number of each row's class in `classes_`.
    """
    encoded = with_a_column(model._encoder.as_scaled(X))
    y, shift = np.asarray(codes, np.float64), np.zeros(len(encoded))
    average = GPAverage(model.posteriors_, model.weights_)
    return average.probabilities(
        [left_out_moments(posterior, encoded, y, weight, shift, False) for posterior in average.posteriors]
    )


def n_parameters(model: Any) -> float:
    """Number of hyper-parameters that the rows chose: of an average the mean by the models' shares."""
    sizes = [sum(map(len, p.thetas)) + len(p.psi) for p in model.posteriors_]
    return float(np.dot(model.weights_, sizes))

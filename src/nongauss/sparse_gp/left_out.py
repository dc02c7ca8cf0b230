"""What a fitted Gaussian process says of each row that it was fitted to, as if without that row.

The row's site is taken out of q (`cavity`). Hyper-parameters stay: they have seen the row, which flatters a
fit by about a nat for each of them in all. Of a row with gaps the law is the mixture over what its cells may
be without the target, as a prediction is; the draws that stand in other rows' gaps stay as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.estimator.gaps import over_gaps
from nongauss.predictive.combined import mixture
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.stacking import best_weights
from nongauss.sparse_gp.beside import known_of, log_exposure, within
from nongauss.sparse_gp.cavity import Cavities, ExactCavities, Places, SparseCavities
from nongauss.sparse_gp.data import FARTHEST, GPRows, as_read, taken_back, with_a_column
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.likelihoods import Censored, Likelihood, Truncated
from nongauss.sparse_gp.neighbours import copies_of
from nongauss.sparse_gp.predict import GPAverage, GPPosterior
from nongauss.sparse_gp.stacking import density_of_known
from nongauss.tables.completion import Donors, completed_rows
from nongauss.tables.labels import LabelCoder
from nongauss.tables.rows import rounded
from nongauss.tables.source import Encoded, Source, Stream, itself, weight_of
from nongauss.tables.target import validate_target

MOST_NUMBERS = 5e10
"""N M^2 up to which rows are left out after a fit: some seconds."""


def left_out_law(
    model: Any, X: Any, y: FloatArray, weight: FloatArray, exposure: Any = None
) -> PredictiveDistribution:
    """The law of each training row's target y (N,) given all others, of a fitted `SparseGPRegressor`.

    Of one fitted to limits, trials or selected rows y is (N, V) as of `beside.known_of`. `X` and `exposure`
    are what the model was fitted to; a row is left out with so much `weight` (N,).
    """
    scaler, likelihood = model._scaler, model.posterior_.likelihood
    target = within(np.asarray(y, np.float64).reshape(len(weight), -1), model._target_limits)
    if not likelihood.takes_trials:
        target = scaler.transform(target)
        for ends in (target[:, :2], target[:, 2:]):
            ends.sort(axis=1)  # the scale may be negative
    shift = log_exposure(exposure, len(weight), likelihood)
    fitted = FittedRows.of(model, X, target, weight, shift)
    posteriors = [_seen_through(posterior, target) for posterior in model.posteriors_]
    cavities = [_cavities(model, posterior, fitted.rows) for posterior in posteriors]
    near, copies = model._near, None
    if near is not None:
        average = GPAverage(model.posteriors_, model.weights_)
        copies = copies_of(near, average, fitted.rows, cavities[0])
    centre, scale = float(scaler.centre[0]), float(scaler.scale[0])

    def say(rows: FloatArray, own: Places) -> PredictiveDistribution:
        parts = []
        told = None if copies is None else near.at(rows, copies.take(own))
        for posterior, cavity in zip(model.posteriors_, cavities, strict=True):
            mean, variance = cavity.at(rows, own)
            if told is not None:
                posterior, mean, variance = near.beside(posterior, mean, variance, told)
            kind = posterior.likelihood
            if kind.takes_trials:
                kind = kind.with_trials(target[own, 1])
            parts.append(kind.predictive(mean, variance, posterior.psi, centre=centre, scale=scale))
        return mixture(parts, model.weights_)

    law: PredictiveDistribution = fitted.said(say)
    return law


class FittedRows(NamedTuple):
    """Rows (N, D) that a model was fitted to: as they came, gaps filled by the mean, and as they were fitted.

    `missing` (N, B): which cells were; None, as are `donors`, of a table that cannot have gaps.
    """

    encoded: FloatArray
    missing: Any
    donors: Donors | None
    rows: GPRows

    @classmethod
    def of(cls, model: Any, X: Any, target: FloatArray, weight: FloatArray, shift: FloatArray) -> FittedRows:
        """Rows of a table, their targets (N, V) on the scale of the fit, or class numbers."""
        encoder, donors = model._encoder, model._donors
        read_as = model.posterior_.likelihood.read_as
        columns = rounded(np.column_stack([as_read(target, read_as), shift]))
        filled = rounded(with_a_column(encoder.as_scaled(X, warn=False)))
        encoded, missing = filled, None
        if donors is not None:
            encoded, missing = model._with_gaps(X)
            encoded = rounded(model._as_rows(encoded))
            some = Stream([Encoded(filled, columns, weight)], in_memory=True)
            filled = next(iter(completed_rows(encoder, some).each(itself))).X  # gaps: once, given the target
        y = taken_back(columns[:, :-1].astype(np.float64), read_as)
        y = y[:, 0] if y.shape[1] == 1 else y
        as_fitted = np.clip(filled.astype(np.float64), -FARTHEST, FARTHEST)
        rows = GPRows(as_fitted, y, weight, columns[:, -1].astype(np.float64))
        return cls(encoded.astype(np.float64), missing, donors, rows)

    def said(self, say: Callable[[FloatArray, Places], Any]) -> Any:
        """`say(rows, own)` of rows of these numbers; where cells are missing, over what these may be."""
        own = np.arange(len(self.encoded))
        if self.donors is None:
            return say(self.encoded, own)
        return over_gaps(self.donors, self.encoded, self.missing, say, (own,))


def _seen_through(posterior: GPPosterior, target: FloatArray) -> GPPosterior:
    """A posterior with the likelihood of what was known of the targets (N, V)."""
    likelihood: Any = posterior.likelihood
    if likelihood.takes_trials:
        return posterior._replace(likelihood=likelihood.with_trials(target[:, 1]))
    if target.shape[1] == 1:
        return posterior
    kind = Truncated if target.shape[1] == 4 else Censored
    return posterior._replace(likelihood=kind(of=likelihood))


def _cavities(model: Any, posterior: GPPosterior, rows: GPRows) -> Cavities:
    """What a posterior says without each of the rows."""
    if model._exact_rows is not None:
        return ExactCavities.of(posterior, model._exact_rows, rows)
    return SparseCavities.of(posterior, rows)


def left_out_density(model: Any, source: Source, likelihood: Likelihood, n_values: int) -> FloatArray | None:
    """log p of what is known of each row of a table in memory, given all others: (N,); marks whose y it is.

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
    model._target_mark = mark_of_target(y)
    known = known_of(y, part.beside, likelihood, n_values)
    law = left_out_law(model, part.X, known if n_values > 1 else y, weight, part.beside.get("exposure"))
    if n_values == 1 or likelihood.takes_trials:
        return law.log_prob(y)
    return density_of_known(law, known)


def left_out_label_density(model: Any, source: Source, coder: LabelCoder) -> FloatArray | None:
    """log P of each row's label of a table in memory, given all others: (N,); None as `left_out_density`."""
    if not source.in_memory:
        return None
    part = next(iter(source.each(itself)))
    weight = weight_of(part)
    posterior = model.posterior_
    if len(weight) * len(posterior.Z) ** 2 * len(posterior.offset) > MOST_NUMBERS:
        return None
    codes = coder.encode(part.y, len(weight), type(model).__name__, weight)
    model._target_mark = mark_of_target(coder.classes[np.asarray(codes, np.intp)])
    shares = left_out_probabilities(model, part.X, codes, weight)
    own: FloatArray = shares[np.arange(len(codes)), np.asarray(codes, np.intp)]
    return np.log(np.maximum(own, 1e-300))


def mark_of_target(y: Any) -> str:
    """A mark of targets (N,) by which another model shows that it was fitted to the same: a hash.

    Numbers have that of their values, labels that are none that of their names.
    """
    try:
        values = np.asarray(y, np.float64) + 0.0  # -0.0 is 0.0
        return hashlib.sha256(values.tobytes()).hexdigest()
    except (TypeError, ValueError):
        return hashlib.sha256(repr([str(name) for name in y]).encode()).hexdigest()


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
    _check_same_target(named)
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


def _check_same_target(named: Mapping[str, Any]) -> None:
    """Raises InputError where models were fitted to different y; a model without a mark fits all."""
    marks = {name: getattr(model, "_target_mark", None) for name, model in named.items()}
    first: dict[str, str] = {}
    for name, mark in marks.items():
        if mark is not None:
            first.setdefault(mark, name)
    if len(first) > 1:
        one, other = list(first.values())[:2]
        raise InputError(
            f"The models {one!r} and {other!r} were fitted to different y, or to rows in another order; fit "
            "them to the same rows."
        )


def left_out_probabilities(model: Any, X: Any, codes: FloatArray, weight: FloatArray) -> FloatArray:
    """The probability of each class (N, C) at each training row given all others, of a fitted classifier.

    `codes` (N,): the number of each row's class in `classes_`.
    """
    target = np.asarray(codes, np.float64)[:, None]
    fitted = FittedRows.of(model, X, target, weight, np.zeros(len(target)))
    average = GPAverage(model.posteriors_, model.weights_)
    cavities = [SparseCavities.of(posterior, fitted.rows) for posterior in average.posteriors]
    found: FloatArray = fitted.said(
        lambda rows, own: average.probabilities([cavity.at(rows, own) for cavity in cavities])
    )
    return found


def n_parameters(model: Any) -> float:
    """Number of hyper-parameters that the rows chose: of an average the mean by the models' shares."""
    sizes = [sum(map(len, p.thetas)) + len(p.psi) for p in model.posteriors_]
    return float(np.dot(model.weights_, sizes))

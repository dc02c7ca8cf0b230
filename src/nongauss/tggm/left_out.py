"""What a fitted ensemble says of each row that it was fitted to, by the member that did not train on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nongauss.core.errors import InputError
from nongauss.estimator.gaps import over_gaps
from nongauss.predictive.combined import by_rows
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution
from nongauss.tables.completion import Donors, completed_rows
from nongauss.tables.rows import CanonicalRows, canonical_rows, rounded
from nongauss.tables.source import Encoded, Stream, itself
from nongauss.tggm.config import TrainingRecipe
from nongauss.tggm.data import FEWEST_NUMBERS, NetworkRows, folds, folds_by_input
from nongauss.tggm.exact_law import law_of

GAIN_ROWS = 1000
"""Rows that tell what an average gains: its standard error is about a thousandth of a nat."""

Index = np.ndarray[Any, np.dtype[np.intp]]


def left_out_law(
    model: Any, X: Any, y: FloatArray, weight: FloatArray, exposure: Any = None
) -> PredictiveDistribution:
    """The law of each training row's target y (N,), of a fitted `TGGMRegressor` of one output.

    Each row must be held out by a member: `n_members` of at least 1 / `validation_fraction`. A member alone
    is worse than the ensemble, so this flatters nobody. Raises InputError where some row is held out by none.
    """
    Y = model._scaler.transform(np.asarray(y, np.float64)[:, None])
    table = _JudgedTable.of(model, X)
    rows = table.as_trained(model, Y, weight)
    member = folds(len(rows.X), _recipe(model), FEWEST_NUMBERS)[rows.order]
    kept = _by_member(member, model.n_members)
    laws = [table.said(own, partial(law_of, model.ensemble_.alone(e), squeeze=True)) for e, own in kept]
    return by_rows(laws, [own for _, own in kept])


def gain_of_average(model: Any, X: Any, y: FloatArray, weight: FloatArray) -> float:
    """Nats a row by which the ensemble is better than the member that `left_out_law` has, or somewhat more.

    log avg_e p_e(y) - avg_e log p_e(y) is what an average gains on its members, 0 or more at every row. Of
    the members that have trained on a row it is less than at new rows, about which they differ more.
    """
    Y = model._scaler.transform(np.asarray(y, np.float64)[:, None])
    table = _JudgedTable.of(model, X)
    rows = table.as_trained(model, Y, weight)
    member = folds(len(Y), _recipe(model), FEWEST_NUMBERS)[rows.order]
    few = np.arange(min(len(Y), GAIN_ROWS))
    laws = (
        table.said(few, partial(law_of, model.ensemble_.alone(e), squeeze=True))
        for e in range(model.n_members)
    )
    log_density = np.stack([law.log_prob(y[few]) for law in laws])
    has_trained = member[few] != np.arange(model.n_members)[:, None]
    count = has_trained.sum(axis=0)
    average = np.logaddexp.reduce(log_density, axis=0, where=has_trained, initial=-np.inf) - np.log(count)
    gain = average - np.where(has_trained, log_density, 0.0).sum(axis=0) / count
    return float(weight[few] @ gain / weight[few].sum())


def left_out_probabilities(model: Any, X: Any, codes: FloatArray, weight: FloatArray) -> FloatArray:
    """The probability of each class (N, C) at each training row, of a fitted `TGGMClassifier`; as above."""
    Y = np.asarray(codes, np.float64)[:, None]
    table = _JudgedTable.of(model, X)
    rows = table.as_trained(model, Y, weight)
    data = NetworkRows(rows.X, rows.Y, rows.weight)
    member = folds_by_input(data, _recipe(model))[rows.order]
    out = np.empty((len(Y), len(model.classes_)))
    for e, own in _by_member(member, model.n_members):
        out[own] = table.said(own, partial(_probabilities, model.ensemble_.alone(e)))
    return out


class _JudgedTable(NamedTuple):
    """Encoded rows (N, D), gaps filled by the mean; which cells are `missing` (N, B), what may be there."""

    encoded: Any
    missing: Any
    donors: Donors | None

    @classmethod
    def of(cls, model: Any, X: Any) -> _JudgedTable:
        """Rows of a table as a model that was fitted to it encodes them."""
        donors = getattr(model, "_donors", None)
        if donors is None:
            return cls(model._encode(X), None, None)
        encoded, missing = model._with_gaps(model._new_rows(X))
        return cls(model._as_rows(encoded), missing, donors)

    def as_trained(self, model: Any, Y: FloatArray, weight: FloatArray) -> CanonicalRows:
        """The rows that were dealt to the members: there gaps are drawn once, given the target Y (N, P)."""
        if self.donors is None:
            return canonical_rows(self.encoded, Y, weight)
        part = Encoded(rounded(self.encoded), rounded(Y), weight)
        (filled,) = completed_rows(model._encoder, Stream([part], in_memory=True)).each(itself)
        return canonical_rows(filled.X, Y, weight)

    def said(self, own: Index, say: Callable[[Any], Any]) -> Any:
        """`say` of some of the rows; where cells are missing, over what these may be without the target."""
        rows = self.encoded[own]
        return say(rows) if self.donors is None else over_gaps(self.donors, rows, self.missing[own], say)


def _probabilities(ensemble: Any, rows: FloatArray) -> FloatArray:
    """Probabilities of the classes (N, C)."""
    found: FloatArray = ensemble.classes(rows)[0]
    return found


def _recipe(model: Any) -> TrainingRecipe:
    """How the rows were dealt to the members."""
    recipe: TrainingRecipe = model._settings()[1]
    return recipe


def _by_member(member: Index, n_members: int) -> list[tuple[int, Index]]:
    """Each member with rows that it holds out, and these, of the member of each row (N,), -1 for none.

    Raises InputError unless each row is held out by a member.
    """
    n_open = int((member < 0).sum())
    if n_open:
        raise InputError(
            f"{n_open} of {len(member)} rows are held out by no member; give n_members of at least "
            "1 / validation_fraction, and 20 rows or more."
        )
    parts = [(e, np.flatnonzero(member == e)) for e in range(n_members)]
    return [(e, own) for e, own in parts if len(own)]

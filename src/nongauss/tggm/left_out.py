"""What a fitted ensemble says of each row that it was fitted to, by the member that did not train on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from nongauss.core.errors import InputError
from nongauss.predictive.combined import by_rows
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution
from nongauss.tables.rows import canonical_rows
from nongauss.tggm.config import TrainingRecipe
from nongauss.tggm.data import NetworkRows, folds, folds_by_input
from nongauss.tggm.exact_law import law_of

Index = np.ndarray[Any, np.dtype[np.intp]]


def left_out_law(
    model: Any, X: Any, y: FloatArray, weight: FloatArray, exposure: Any = None
) -> PredictiveDistribution:
    """The law of each training row's target y (N,), of a fitted `TGGMRegressor` of one output.

    Each row must be held out by a member: `n_members` of at least 1 / `validation_fraction`. A member alone
    is worse than the ensemble, so this flatters nobody. Raises InputError where some row is held out by none.
    """
    encoded = model._encode(X)
    Y = model._scaler.transform(np.asarray(y, np.float64)[:, None])
    rows = canonical_rows(encoded, Y, weight)
    member = folds(len(rows.X), _recipe(model))[rows.order]
    parts = [(e, np.flatnonzero(member == e)) for e in range(model.n_members)]
    _check_all(sum(len(own) for _, own in parts), len(encoded))
    laws = [law_of(model.ensemble_.alone(e), encoded[own], squeeze=True) for e, own in parts if len(own)]
    return by_rows(laws, [own for _, own in parts if len(own)])


def left_out_probabilities(model: Any, X: Any, codes: FloatArray, weight: FloatArray) -> FloatArray:
    """The probability of each class (N, C) at each training row, of a fitted `TGGMClassifier`; as above."""
    encoded = model._encode(X)
    Y = np.asarray(codes, np.float64)[:, None]
    rows = canonical_rows(encoded, Y, weight)
    data = NetworkRows(rows.X, rows.Y, rows.weight)
    member = folds_by_input(data, _recipe(model))[rows.order]
    out = np.empty((len(encoded), len(model.classes_)))
    seen = 0
    for e in range(model.n_members):
        own = np.flatnonzero(member == e)
        seen += len(own)
        if len(own):
            out[own] = model.ensemble_.alone(e).classes(encoded[own])[0]
    _check_all(seen, len(encoded))
    return out


def _recipe(model: Any) -> TrainingRecipe:
    """How the rows were dealt to the members."""
    recipe: TrainingRecipe = model._settings()[1]
    return recipe


def _check_all(n_held: int, n_rows: int) -> None:
    """Raises InputError unless each row is held out by a member."""
    if n_held < n_rows:
        raise InputError(
            f"{n_rows - n_held} of {n_rows} rows are held out by no member; give n_members of at least "
            "1 / validation_fraction, and 20 rows or more."
        )

"""`explain` and `novelty` of predictors: what columns add to a prediction, and how unusual a row is."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from nongauss.core.errors import InputError
from nongauss.core.seeds import key_seed
from nongauss.estimator.gaps import completed_often
from nongauss.estimator.known_rows import KnownRows
from nongauss.estimator.shapley import WITH_GAPS, IntArray, Say, explained
from nongauss.tables.frame import InputTable, read_input

if TYPE_CHECKING:
    import pandas as pd

    from nongauss.predictive.distribution import FloatArray

MOST_BACKGROUND = 200
"""Rows of a background."""

FEW_COMPLETIONS = 5
"""Times that a row with gaps is completed for a prediction on the way, of which many are averaged."""


class ExplainMixin:
    """`explain` and `novelty` of a predictor, by comparison with training rows that it keeps."""

    _known_rows: KnownRows | None = None
    _cost_of_prediction = 1  # in those of a model that predicts fast

    def explain(
        self,
        X: Any,
        background: Any = None,
        *,
        n_permutations: int | None = None,
        return_error: bool = False,
        random_state: Any = 0,
    ) -> Any:
        """Contributions of the columns to the prediction of each row of X (N, D), as a data frame.

        Columns of the frame have two levels. For a regressor the first is "mean" and "sd" of its predictive
        distribution ("mean_0", ... for P > 1 outputs), for a classifier the class whose probability is
        explained. The second is the column of X and, last, "base": the mean prediction of the background.
        The contributions and the base add up to the prediction: `model.explain(X)["mean"].sum(axis=1)` is
        the predicted mean. A missing cell contributes the effect of not knowing it. The index is that of X.
        `attrs["method"]` says how the values were computed. Sums are exact; if orders are drawn,
        intermediate predictions use five draws of missing cells instead of twenty, and moments to a
        hundredth of the standard deviation.

        Parameters
        ----------
        background : rows to compare with, as X; None: 16 training rows that the model keeps.
        n_permutations : number of random orders in which columns are replaced, for each background row;
            None: all subsets of columns if there are few (at most 10 columns and 500,000 predictions, each
            of which counts as five if cells are missing, and as twenty for an `Auto` model), otherwise two
            orders; if even these take more than 50,000 predictions, fewer background rows, drawn for each
            row, at least two.
        return_error : also return a frame of standard errors due to the random orders; 0 if all subsets
            were evaluated.
        random_state : seed of the orders.

        Raises
        ------
        InputError where the model keeps no rows (sparse tables, older files) and `background` is not given.
        """
        return explanation_of(self, X, background, n_permutations, return_error, random_state)

    def novelty(self, X: Any) -> FloatArray:
        """How unlike the training rows each row is: the share of them that is less unusual, (N,) in [0, 1].

        The measure of unusualness is the mean distance from the five nearest of up to 500 training rows
        that the model keeps, excluding the row itself, in scaled and decorrelated columns; so an unusual
        combination counts even if no single cell is unusual. For rows from the distribution of the training
        rows the values are uniform; 0.99 is more unusual than 99 % of these. A missing cell is replaced by
        its expectation given the others. A label that did not occur in training gives 1. Raises InputError
        if the model keeps no rows.
        """
        return known_rows_of(self).novelty(X, type(self).__name__)


def known_rows_of(model: Any, remedy: str = "fit it again, to a dense table") -> KnownRows:
    """The rows that a fitted model keeps. Raises NotFittedError, InputError."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if model._known_rows is None:
        raise InputError(
            f"This {type(model).__name__} keeps no training rows to compare with (it was fitted to a sparse "
            f"or very wide table, or by an older version); {remedy}."
        )
    known: KnownRows = model._known_rows
    return known


def explanation_of(
    model: Any, X: Any, background: Any, n_permutations: Any, return_error: bool, random_state: Any
) -> pd.DataFrame | tuple[pd.DataFrame, pd.DataFrame]:
    """See `ExplainMixin.explain`."""
    name = type(model).__name__
    if n_permutations is not None and (not isinstance(n_permutations, int) or n_permutations < 1):
        raise InputError(f"n_permutations must be a whole number above 0, or None: got {n_permutations!r}.")
    known = known_rows_of(model, "pass background=, some training rows, or fit it again to a dense table")
    table = _aligned(X, known, name)
    if background is None and known.table is None:
        raise InputError(
            "A few rows of this table would not be read as the whole was, so none were kept to compare with; "
            "pass background=, some training rows."
        )
    if background is None:
        other, weight = known.background(table.labels), known.weight
    else:
        other = _few(_aligned(background, known, name), random_state)
        weight = np.ones(len(other))
    say, roughly = _predictions_of(model)
    say(table)  # warns of what is to be said of the table; mixed rows say nothing new
    how = {"n_permutations": n_permutations, "seed": key_seed(random_state), "roughly": _quiet(roughly)}
    has_gaps = any(rows.column(place).missing.any() for rows in (table, other) for place in known.players)
    how["cost"] = model._cost_of_prediction * (WITH_GAPS if has_gaps else 1)
    found = explained(_quiet(say), table, other, weight, known.players, **how)
    figures = _figures(model, len(found.base))
    frame = _frame(found.adds, found.base, table, figures, known.players, X)
    frame.attrs["method"] = found.method
    if not return_error:
        return frame
    return frame, _frame(found.error, np.zeros_like(found.base), table, figures, known.players, X)


def _aligned(X: Any, known: KnownRows, name: str) -> InputTable:
    """A table with the columns of the fit, named as there. Raises InputError."""
    return known.encoder.aligned(read_input(X, name), name)


def _few(background: InputTable, random_state: Any) -> InputTable:
    """At most `MOST_BACKGROUND` rows, of more a random sample, which is said."""
    if len(background) <= MOST_BACKGROUND:
        return background
    warnings.warn(
        f"The background has {len(background)} rows; a random {MOST_BACKGROUND} of them are compared with.",
        stacklevel=4,
    )
    rng = np.random.default_rng(key_seed(random_state))
    return background.take(np.sort(rng.permutation(len(background))[:MOST_BACKGROUND]))


def _quiet(say: Say) -> Say:
    """The same predictions without warnings."""

    def quietly(rows: InputTable) -> FloatArray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return say(rows)

    return quietly


def _predictions_of(model: Any) -> tuple[Say, Say]:
    """What is explained, (n, K): probabilities, or means and deviations of P outputs; and roughly that."""
    if hasattr(model, "predict_proba"):
        say: Say = model.predict_proba

        def roughly(rows: InputTable) -> FloatArray:
            with completed_often(FEW_COMPLETIONS):
                return say(rows)

        return say, roughly

    def moments(rows: InputTable) -> FloatArray:
        return np.column_stack(model._moments(model.predict_distribution(rows)))

    def rough_moments(rows: InputTable) -> FloatArray:
        with completed_often(FEW_COMPLETIONS):
            law = model.predict_distribution(rows).roughly()
        return np.column_stack(model._moments(law))

    return moments, rough_moments


def _figures(model: Any, n_figures: int) -> list[Any]:
    """The names of what `_predictions_of` gives."""
    if hasattr(model, "predict_proba"):
        return list(model.classes_)
    outputs = [""] if n_figures == 2 else [f"_{output}" for output in range(n_figures // 2)]
    return [f"{figure}{output}" for figure in ("mean", "sd") for output in outputs]


def _frame(
    adds: FloatArray, base: FloatArray, table: InputTable, figures: list[Any], players: IntArray, X: Any
) -> pd.DataFrame:
    """A frame of contributions (N, D, K), 0 for columns that are not read, each figure's base last."""
    import pandas as pd

    n, K = len(adds), len(base)
    values = np.zeros((n, K, table.shape[1] + 1))
    values[:, :, players] = np.moveaxis(adds, 2, 1)
    values[:, :, -1] = base
    columns = pd.MultiIndex.from_product([figures, [*table.labels, "base"]], names=["figure", "column"])
    index = X.index if isinstance(X, pd.DataFrame) else None
    return pd.DataFrame(values.reshape(n, -1), columns=columns, index=index)

"""Which columns a fitted model's predictions hang on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.inspection import permutation_importance
from sklearn.utils import _safe_indexing

from nongauss.core.errors import InputError
from nongauss.report.metrics import FloatArray
from nongauss.report.plots.style import BLUE, GREY, axes_or_new, figure_of, finish, vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class RelevanceDisplay:
    """How much of what the model predicts hangs on each column.

    Parameters
    ----------
    columns : D names.
    share : (D,) share of the variance of the prediction that is lost without the column, see `relevance`.
    lengthscales : length-scale of a column by name, in its standard deviations; where a model has none, {}.

    The share is the figure to rank columns by. It is measured on the predictions, so that every model and
    every kind of column has it. A Gaussian process says how fast it varies along a column: the length-scale
    stands at the right edge. A short one alone does not make a column matter, and linear parts have none.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        *,
        columns: Sequence[str],
        share: npt.ArrayLike,
        lengthscales: Mapping[str, float] | None = None,
    ) -> None:
        self.share = vector(share, "share")
        self.columns = list(columns)
        if len(self.columns) != len(self.share):
            raise InputError(
                f"`share` must have one value for each of the {len(self.columns)} columns, "
                f"got {len(self.share)}."
            )
        self.lengthscales = dict(lengthscales or {})

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        max_rows: int = 500,
        n_repeats: int = 5,
        random_state: int = 0,
        max_columns: int = 15,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> RelevanceDisplay:
        """Measure `relevance` on rows X and plot it; `kwargs` style the bars."""
        rows = some_rows(estimator, X, max_rows, random_state)
        share = relevance(estimator, rows, max_rows=max_rows, n_repeats=n_repeats, random_state=random_state)
        scales = getattr(estimator, "lengthscales_", None)
        display = cls(columns=column_names(rows), share=share, lengthscales=scales)
        return display.plot(ax=ax, max_columns=max_columns, **kwargs)

    def top(self, most: int) -> list[int]:
        """Numbers of the columns that matter most, the first first; ties stay in the table's order."""
        return [int(j) for j in np.argsort(-self.share, kind="stable")[:most]]

    def plot(self, ax: Axes | None = None, *, max_columns: int = 15, **kwargs: Any) -> RelevanceDisplay:
        """Draw the `max_columns` that matter most on `ax`, or on a new figure."""
        ax = axes_or_new(ax)
        shown = self.top(max_columns)
        places = np.arange(len(shown))
        percent = 100 * self.share[shown]
        bars = ax.barh(places, percent, **{"color": BLUE, "height": 0.68, **kwargs})
        ax.bar_label(
            bars,
            [f"{p:.0f} %" if p >= 1 or p == 0 else "< 1 %" for p in percent],
            padding=3,
            fontsize="small",
        )
        ax.set_yticks(places, [shortened(self.columns[j]) for j in shown])
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.set_xlim(0, 1.16 * max(float(percent.max()), 1.0))
        title = "What the prediction hangs on"
        if len(shown) < len(self.columns):
            title += f" ({len(shown)} of {len(self.columns)} columns)"
        finish(ax, title, "variance of the prediction lost without the column (%)", "")
        ax.grid(visible=False, axis="y")
        self._draw_lengthscales(ax, shown)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _draw_lengthscales(self, ax: Axes, shown: list[int]) -> None:
        """The length-scales as labels of a right-hand axis."""
        if not self.lengthscales:
            return
        right = ax.secondary_yaxis("right")
        texts = [self.lengthscales.get(self.columns[j]) for j in shown]
        right.set_yticks(np.arange(len(shown)), ["–" if t is None else f"{t:.2g}" for t in texts])
        right.set_ylabel("length-scale (sd of the column)", color=GREY, fontsize="small")
        right.tick_params(length=0, labelcolor=GREY, labelsize="small")
        right.spines["right"].set_visible(False)


def relevance(
    estimator: Any, X: Any, *, max_rows: int = 500, n_repeats: int = 5, random_state: int = 0
) -> FloatArray:
    """Share of the variance of the prediction that is lost when a column is shuffled: (D,), at least 0.

    For prediction f and a column whose cells are dealt to other rows, f', it is the mean of (f - f')^2 / 2
    over the variance of f: the total effect of Sobol and Jansen. Columns that act together count for each, so
    that the shares of independent columns add up to 1 or more. Shuffling breaks up columns that go together:
    the model then answers for rows that it has never seen, and the shares may add up to less, one alone to
    more than 1.

    Parameters
    ----------
    estimator : fitted regressor (its mean counts; several outputs, each in its own standard deviations) or
        classifier (its probabilities, all classes together).
    X : rows (N, D) like those of the fit; of more than `max_rows` a random part is taken.
    n_repeats : number of shuffles of each column. random_state : seed of both.

    Raises InputError where X has no rows. Where all predictions are equal, every share is 0.
    Source: Jansen, Comput. Phys. Commun. 117 (1999). The shuffles are scikit-learn's
    `permutation_importance`.
    """
    rows = some_rows(estimator, X, max_rows, random_state)
    before = _prediction(estimator, rows)
    spread = before.var(axis=0)
    spread[spread <= (1e-9 * np.abs(before).max(axis=0)) ** 2] = 0.0  # rounding errors
    if not spread.any():
        return np.zeros(rows.shape[1])
    if is_classifier(estimator):
        weight = np.full_like(spread, 1.0 / spread.sum())
    else:
        weight = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0) / (spread > 0).sum()

    def lost(model: Any, shuffled: Any, before: FloatArray) -> float:
        change = (_prediction(model, shuffled) - before) ** 2
        return float(-0.5 * change.mean(axis=0) @ weight)

    result = permutation_importance(
        estimator, rows, before, scoring=lost, n_repeats=n_repeats, random_state=random_state
    )
    share: FloatArray = result.importances_mean
    return share


def some_rows(estimator: Any, X: Any, max_rows: int, random_state: int) -> Any:
    """At most `max_rows` random rows of X, as a pandas frame or an array, with the columns of the fit alone.

    Raises InputError where there are none.
    """
    if not hasattr(X, "iloc"):
        X = X.to_pandas() if hasattr(X, "to_pandas") else np.asarray(X)
    if X.ndim != 2 or len(X) == 0:
        raise InputError(f"`X` must be a table with at least one row, got shape {X.shape}.")
    names = getattr(estimator, "feature_names_in_", None)
    if hasattr(X, "iloc") and names is not None and set(names) <= set(X.columns):
        X = X[list(names)]
    if len(X) > max_rows:
        chosen = np.random.RandomState(random_state).permutation(len(X))[:max_rows]
        X = _safe_indexing(X, np.sort(chosen))
    return X


def column_names(rows: Any) -> list[str]:
    """The names of a frame's columns; of an array's, x0, x1 and so on."""
    if hasattr(rows, "columns"):
        return [str(name) for name in rows.columns]
    return [f"x{j}" for j in range(rows.shape[1])]


def _prediction(estimator: Any, rows: Any) -> FloatArray:
    """Class probabilities or predicted numbers: (N, P)."""
    call = estimator.predict_proba if is_classifier(estimator) else estimator.predict
    values = np.asarray(call(rows), dtype=np.float64)
    return values.reshape(len(values), -1)


def shortened(name: str, most: int = 24) -> str:
    """A name cut to `most` characters."""
    return name if len(name) <= most else name[: most - 1] + "…"

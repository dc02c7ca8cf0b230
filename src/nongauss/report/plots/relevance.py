"""Which columns a fitted model's predictions hang on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import is_classifier

from nongauss.core.errors import InputError
from nongauss.estimator.base import NongaussEstimator
from nongauss.report.metrics import FloatArray
from nongauss.report.plots.style import (
    BLUE,
    GREY,
    SMALL,
    axes_or_new,
    figure_of,
    finish,
    shortened,
    tips,
    vector,
)
from nongauss.tables.frame import InputTable, read_input

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SINGLE = 200
"""Columns of which each is shuffled alone; of more, those that matter are searched for."""
_BLOCKS, _ROUNDS = 16, 16
_MOST_ROWS_SEARCHED = 100
_MOST_ROWS_AT_ONCE, _MOST_CELLS_AT_ONCE = 8_000, 10_000_000

Shuffle = tuple[Sequence[int], npt.NDArray[np.intp]]
"""Columns that are shuffled together, and the order (N,) of the rows that their cells come from."""


class RelevanceDisplay:
    """How much the prediction depends on each column.

    Parameters
    ----------
    columns : D names.
    share : (D,) share of the variance of the prediction that is lost without the column, see `relevance`.
    lengthscales : length-scale of a column by name, in its standard deviations; where a model has none, {}.

    Notes
    -----
    The share is the figure by which to rank columns. It is measured on the predictions, so it exists for
    every model and every kind of column. For a Gaussian process, the length-scale at the right edge says
    how fast the function varies along a column. A short one alone does not make a column important, and
    linear parts have none.
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
        display = cls(columns=rows.labels, share=share, lengthscales=scales)
        return display.plot(ax=ax, max_columns=max_columns, **kwargs)

    def top(self, most: int) -> list[int]:
        """Numbers of the most relevant columns, the most relevant first; ties are in the table's order."""
        return [int(j) for j in np.argsort(-self.share, kind="stable")[:most]]

    def plot(self, ax: Axes | None = None, *, max_columns: int = 15, **kwargs: Any) -> RelevanceDisplay:
        """Draw the `max_columns` most relevant columns on `ax`, or on a new figure."""
        ax = axes_or_new(ax)
        shown = self.top(max_columns)
        places = np.arange(len(shown))
        percent = 100 * self.share[shown]
        bars = ax.barh(places, percent, **{"color": BLUE, "height": 0.68, **kwargs})
        ax.bar_label(
            bars,
            _in_percent(percent),
            padding=3,
            fontsize=SMALL,
        )
        for bar, j in zip(bars.patches, shown, strict=True):
            tips(bar, [f"{self.columns[j]}: {100 * self.share[j]:.2g} %"])
        ax.set_yticks(places, [shortened(self.columns[j]) for j in shown])
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.set_xlim(0, 1.16 * max(float(percent.max()), 0.1))
        title = "What the prediction hangs on"
        if len(shown) < len(self.columns):
            title += f" ({len(shown)} of {len(self.columns)} columns)"
        finish(ax, title, "total effect on the prediction (% of its variance)", "")
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
        right.set_ylabel("length-scale (sd)", color=GREY, fontsize=SMALL)
        right.tick_params(length=0, labelcolor=GREY, labelsize=SMALL)
        right.spines["right"].set_visible(False)


def _in_percent(percent: FloatArray) -> list[str]:
    """Per cent as labels of bars, with a decimal where the largest is below ten."""
    digits = 0 if percent.max() >= 10 else 1
    least = 10.0**-digits
    return [f"{p:.{digits}f} %" if p >= least or p == 0 else f"< {least:g} %" for p in percent]


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
    n_repeats : number of shuffles of each column.
    random_state : seed of both.

    Notes
    -----
    Of more than 200 columns, blocks of them are shuffled together, and those that lose most are halved until
    the columns that matter stand alone; at most 100 rows are looked at. A column that was not reached has an
    even part of its block's share.

    Raises InputError where X has no rows. Where all predictions are equal, every share is 0.
    Source: Jansen, Comput. Phys. Commun. 117 (1999). The shuffles are those of
    scikit-learn's `permutation_importance`.
    """
    rows = some_rows(estimator, X, max_rows, random_state)
    if rows.shape[1] > MOST_SINGLE:
        rows = some_rows(estimator, rows, min(max_rows, _MOST_ROWS_SEARCHED), random_state)
    before = _prediction(estimator, rows)
    spread = before.var(axis=0)
    spread[spread <= (1e-9 * np.abs(before).max(axis=0)) ** 2] = 0.0  # rounding errors
    if not spread.any():
        return np.zeros(rows.shape[1])
    if is_classifier(estimator):
        weight = np.full_like(spread, 1.0 / spread.sum())
    else:
        weight = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0) / (spread > 0).sum()

    def lost(shuffles: Sequence[Shuffle]) -> list[float]:
        """The share that is lost by each of these shuffles."""
        return [
            0.5 * float(((copy - before) ** 2).mean(axis=0) @ weight)
            for copy in _after(estimator, rows, shuffles)
        ]

    if rows.shape[1] > MOST_SINGLE:
        order = _shuffles(len(rows), 1, random_state)[0]
        return _searched(lambda blocks: lost([(block, order) for block in blocks]), rows.shape[1])
    orders = _shuffles(len(rows), n_repeats, random_state)
    columns = range(rows.shape[1])
    shares = lost([(range(j, j + 1), order) for j, order in product(columns, orders)])
    share: FloatArray = np.reshape(shares, (len(columns), n_repeats)).mean(axis=1)
    return share


def _after(estimator: Any, rows: InputTable, shuffles: Sequence[Shuffle]) -> Iterator[FloatArray]:
    """Predictions (N, P) after each of the shuffles, of as many at once as memory allows.

    One call on many rows costs much less than many calls on few.
    """
    n = len(rows)
    for numbers in copies_at_once(len(shuffles), rows):
        copies = repeated(rows, len(numbers))
        for at, number in enumerate(numbers):
            columns, order = shuffles[number]
            place = np.arange(len(copies))
            place[at * n : (at + 1) * n] = at * n + order
            copies = copies.permuted(columns, place)
        yield from np.split(_prediction(estimator, copies), len(numbers))


def copies_at_once(n_copies: int, rows: InputTable) -> list[npt.NDArray[np.intp]]:
    """The numbers of copies of the rows, in groups of which a model is asked at once."""
    most = min(_MOST_ROWS_AT_ONCE // len(rows), _MOST_CELLS_AT_ONCE // (len(rows) * rows.shape[1]))
    return np.array_split(np.arange(n_copies), -(-n_copies // max(1, most)))


def repeated(rows: InputTable, times: int) -> InputTable:
    """The rows, one after the other, several times over."""
    return rows.take(np.tile(np.arange(len(rows)), times))


def _searched(lost: Callable[[Sequence[range]], list[float]], n_columns: int) -> FloatArray:
    """The shares of many columns: of 16 blocks of them the eight that lose most are halved, again and again.

    A column of a block that was not halved to the end has an even part of what the block loses.
    """
    edges = np.linspace(0, n_columns, _BLOCKS + 1).astype(int).tolist()
    done: list[tuple[float, range]] = []
    parts = [range(low, high) for low, high in pairwise(edges)]
    for number in range(_ROUNDS):
        if not parts:
            break
        done += zip(lost(parts), parts, strict=True)
        open_blocks = sorted(
            (b for b in done if len(b[1]) > 1 and b[0] > 0.0), key=lambda b: (-b[0], b[1].start)
        )
        # Blocks that lose less than the least of enough single columns are of no interest.
        single = sorted((loss for loss, block in done if len(block) == 1), reverse=True)
        least = single[_BLOCKS - 1] if len(single) >= _BLOCKS else 0.0
        chosen = [block for block in open_blocks[: _BLOCKS // 2] if block[0] > least]
        if number == _ROUNDS - 1:
            break
        done = [block for block in done if block not in chosen]
        parts = [half for _, c in chosen for half in (c[: len(c) // 2], c[len(c) // 2 :])]
    share = np.zeros(n_columns)
    for loss, columns in done:
        share[columns.start : columns.stop] = loss / len(columns)
    return share


def _shuffles(n_rows: int, n_repeats: int, random_state: int) -> list[npt.NDArray[np.intp]]:
    """Orders of the rows, the same for every column: those of scikit-learn's `permutation_importance`."""
    seed = np.random.RandomState(random_state).randint(np.iinfo(np.int32).max + 1)
    rng, order, orders = np.random.RandomState(seed), np.arange(n_rows), [np.arange(n_rows)]
    for _ in range(n_repeats):
        rng.shuffle(order)
        orders.append(orders[-1][order])  # each shuffles what the one before it has left
    return orders[1:]


def some_rows(
    estimator: Any, X: Any, max_rows: int, random_state: int, beside: Sequence[Any] = ()
) -> InputTable:
    """At most `max_rows` random rows of X, with the columns of the fit alone; each is decoded once.

    `beside`: other fits, which may look at other columns of a wide table. Raises InputError where there are
    no rows.
    """
    if not isinstance(X, InputTable):
        if not hasattr(X, "iloc"):
            X = X.to_pandas() if hasattr(X, "to_pandas") else np.asarray(X)
        if X.ndim != 2 or len(X) == 0:
            raise InputError(f"`X` must be a table with at least one row, got shape {X.shape}.")
    rows = read_input(X, type(estimator).__name__)
    names = getattr(estimator, "kept_columns_", None) or getattr(estimator, "feature_names_in_", None)
    if rows.names is not None and names is not None and set(names) <= set(rows.names):
        more = {name for fit in beside for name in getattr(fit, "kept_columns_", None) or ()}
        rows = rows.select([*names, *sorted((more & set(rows.names)) - set(names))])
    if len(rows) > max_rows:
        chosen = np.random.RandomState(random_state).permutation(len(rows))[:max_rows]
        rows = rows.take(np.sort(chosen))
    return rows


def with_typical_cells(rows: InputTable) -> InputTable:
    """The rows with a typical cell of its column in the place of each missing one.

    That is the cell nearest to the median, of labels the most frequent. For displays of tables with many
    columns, where to average over what the cells of thousands of changed rows may be takes minutes.
    """
    for place in range(rows.shape[1]):
        column = rows.column(place)
        missing = column.missing
        if not missing.any() or missing.all():
            continue
        if column.values is not None:
            distance = np.abs(column.values - np.nanmedian(column.values))
            typical = int(np.nanargmin(distance))
        else:
            assert column.codes is not None
            typical = int(np.argmax(column.codes == np.bincount(column.codes[~missing]).argmax()))
        order = np.where(missing, typical, np.arange(len(rows)))
        rows = rows.permuted(place, order)
    return rows


def as_asked(estimator: Any, rows: InputTable) -> Any:
    """The rows in the form in which a model is asked: one of ours takes a table that is decoded once.

    Any other gets the frame or the array that they came as, changed columns in their places.
    """
    if isinstance(estimator, NongaussEstimator):
        return rows
    source = rows.source
    if not rows.changed:
        return source
    if isinstance(source, pd.DataFrame):
        frame = source.copy(deep=False)
        for place, cells in rows.changed.items():
            frame.isetitem(place, pd.Series(cells).set_axis(frame.index).array)
        return frame
    array = source.astype(np.float64) if source.dtype.kind in "biu" else source.copy()
    for place, cells in rows.changed.items():
        array[:, place] = cells
    return array


def _prediction(estimator: Any, rows: InputTable) -> FloatArray:
    """Class probabilities or predicted numbers: (N, P)."""
    call = estimator.predict_proba if is_classifier(estimator) else estimator.predict
    values = np.asarray(call(as_asked(estimator, rows)), dtype=np.float64)
    return values.reshape(len(values), -1)

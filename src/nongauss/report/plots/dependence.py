"""How a fitted model's predictions change along one column, and how far observations stray from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import is_classifier

from nongauss.core.errors import InputError
from nongauss.report.metrics import FloatArray, in_digits
from nongauss.report.plots.grid import (
    SLANT,
    Grid,
    are_crowded,
    depth_of,
    grid_of,
    grid_of_part,
    named_every,
    parts_of,
    print_by,
)
from nongauss.report.plots.relevance import as_asked, copies_at_once, repeated, some_rows
from nongauss.report.plots.style import (
    BLUE,
    CLASS_COLOURS,
    GREY,
    SMALL,
    axes_or_new,
    figure_of,
    finish,
    key_above,
    ordered_colours,
    shortened,
    tips_along,
)
from nongauss.tables.frame import InputTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_CLASSES = len(CLASS_COLOURS)
_WIDE = 1.645  # standard errors on either side of a band of 90 %


class DependenceDisplay:
    """Partial dependence on one column: the mean prediction when all rows have the same value there.

    Parameters
    ----------
    column : its name.
    grid : (G,) values of the column: numbers, labels or dates.
    average : (P, G) mean prediction over the rows, when all rows have the value of the grid.
    classes : the P classes whose probability is shown, None where numbers are predicted (then P is 1).
    lower, upper : (G,) ends of the band of the prediction, or None.
    error : (P, G) standard error of `average`, or None.
    ordered : whether the classes are grades, the lowest first. Then all are drawn, in an order of colour.
    observed : (N,) the column's own numbers, whose deciles are marked on the axis; None for labels.
    coverage : nominal probability of the band.
    n_levels : number of the column's labels, shown or not.
    places : (G,) positions of a grid of dates on the axis, in the units of `observed`; None: the grid itself.
    shown : the text of a position on the axis; None: a number.
    note : text beside the name on the axis.

    Notes
    -----
    The band is the mean over the rows of the lower and of the upper end of the central predictive interval:
    where the target of a typical row falls, including noise and uncertainty of the model. The band of the
    curve itself is narrower: 1.645 standard errors about it, by the jackknife over fits that each leave out
    a part of the rows, se^2 = (K - 1) / K sum_k (f_k - mean f)^2 (Efron and Stein, Annals of Statistics 9,
    1981). A model without predictive distributions has no band of the prediction; neither have class
    probabilities. As with every partial dependence, correlated columns are varied separately: the model is
    evaluated on rows that may not exist. Along dates, each row keeps its own weekday, hour or month if the
    steps of the grid are too wide to show that cycle: it is given a date of the column near the position
    with the same weekday, hour or month.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        *,
        column: str,
        grid: npt.ArrayLike,
        average: npt.ArrayLike,
        classes: Sequence[Any] | None = None,
        lower: FloatArray | None = None,
        upper: FloatArray | None = None,
        observed: FloatArray | None = None,
        coverage: float = 0.9,
        n_levels: int = 0,
        places: FloatArray | None = None,
        shown: Callable[[float], str] | None = None,
        error: FloatArray | None = None,
        ordered: bool = False,
        note: str = "",
    ) -> None:
        self.column, self.coverage, self.n_levels = column, coverage, n_levels
        self.grid = np.asarray(grid)
        self.places, self.shown = self.grid if places is None else places, shown
        self.classes = None if classes is None else list(classes)
        self.average = np.asarray(average, dtype=np.float64)
        self.lower, self.upper, self.observed = lower, upper, observed
        self.error, self.ordered, self.note = error, ordered, note
        self.drawn: Sequence[int] | None = None
        wanted = (1 if self.classes is None else len(self.classes), len(self.grid))
        if self.average.shape != wanted:
            raise InputError(
                f"`average` must have shape {wanted}, one row for each class and one column for each "
                f"value of the grid, got {self.average.shape}."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        column: str | int,
        *,
        coverage: float = 0.9,
        target: str | None = None,
        unit: str | None = None,
        output: int = 0,
        max_rows: int = 100,
        grid_size: int = 15,
        random_state: int = 0,
        fits: Sequence[Any] = (),
        ordered: bool = False,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> DependenceDisplay:
        """Predict rows like those of X with all values of a grid in `column` (name or number), and plot.

        Numbers: 15 (`grid_size`) even places from the 5 % to the 95 % quantile, or the column's own values if
        they are fewer. Dates: those of the column that are nearest to such values. Labels: the 12 most
        frequent. With more than `max_rows` rows, a random part is averaged. `output` is the target that is
        shown if there are several. A classifier shows the probability of each class, or of the second of
        two classes. `fits`: the same model fitted without each of several parts of the rows in turn, for
        the band of the curve; `ordered`: its classes are grades. Raises InputError for a column that does
        not exist or is empty.
        """
        how: dict[str, Any] = {"coverage": coverage, "output": output, "max_rows": max_rows}
        how |= {"grid_size": grid_size, "random_state": random_state, "fits": fits, "ordered": ordered}
        display = cls.measured(estimator, X, column, **how)
        return display.plot(ax=ax, target=target, unit=unit, **kwargs)

    @classmethod
    def measured(
        cls,
        estimator: Any,
        X: Any,
        column: str | int,
        *,
        coverage: float = 0.9,
        output: int = 0,
        max_rows: int = 100,
        grid_size: int = 15,
        random_state: int = 0,
        fits: Sequence[Any] = (),
        ordered: bool = False,
        part: str = "",
    ) -> DependenceDisplay:
        """The same without drawing; `part`: along the "month", "weekday" or "hour" of a date column."""
        every = some_rows(estimator, X, len(X), random_state, fits)
        place = _place(every, column)
        parts_of(every, place)  # decodes the whole: a few dates may be read in another order of day and month
        rows = some_rows(estimator, every, max_rows, random_state, fits)
        name = rows.labels[place] + (f" ({part})" if part else "")
        grid = grid_of_part(every, rows, place, part) if part else grid_of(every, rows, place, grid_size)
        if len(grid.values) == 0:
            raise InputError(f"Column {name!r} has no values in these rows; choose another.")
        found = _averages(estimator, _tables(rows, place, grid), len(rows), output, coverage)
        if len(fits) > 1:
            found["error"] = _error(fits, rows, place, grid, output, found["average"])
        how: dict[str, Any] = {"coverage": coverage, "ordered": ordered}
        return cls(column=name, grid=grid.values.to_numpy(), **how, **grid.axis, **found)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        target: str | None = None,
        unit: str | None = None,
        **kwargs: Any,
    ) -> DependenceDisplay:
        """Draw on `ax`, or on a new figure; `kwargs` style the lines."""
        ax = axes_or_new(ax)
        if self.observed is None:
            self._plot_labels(ax, kwargs)
        else:
            self._plot_numbers(ax, kwargs)
        label = f"predicted {target or 'target'}" + (f" ({unit})" if unit else "")
        if self.classes is not None:
            of = repr(self.classes[0]) if len(self.classes) == 1 else "the class"
            label = f"predicted probability of {of}"
        left_out = self.n_levels - len(self.grid)
        note = f" ({self.note})" if self.note else ""
        note = f" ({len(self.grid)} of {self.n_levels} labels)" if left_out > 0 else note
        finish(ax, "", self.column + note, label)
        key_above(ax, 3)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _plot_numbers(self, ax: Axes, style: dict[str, Any]) -> None:
        """Curves with the band, and the deciles of the column as ticks on the axis."""
        assert self.observed is not None
        if self.lower is not None and self.upper is not None:
            ax.fill_between(
                self.places,
                self.lower,
                self.upper,
                color=BLUE,
                alpha=0.15,
                linewidth=0,
                label=self._band_name,
            )
        own = len(self.grid) == len(np.unique(self.observed))
        look = {"linewidth": 2, "marker": "o" if own else None, "markersize": 4}
        for row, colour, label in self._curves():
            if self.error is not None:
                ends = self._band(row)
                band = None if self.classes else "90 % of the mean"
                ax.fill_between(self.places, *ends, color=colour, alpha=0.3, linewidth=0, label=band)
            ax.plot(self.places, self.average[row], **{"color": colour, "label": label, **look, **style})
            tips_along(ax, self.places, self.average[row], self._told(row))
        deciles = np.quantile(self.observed, np.linspace(0.1, 0.9, 9))
        deciles = deciles[(deciles >= self.places[0]) & (deciles <= self.places[-1])]
        ax.vlines(deciles, 0, 0.03, transform=ax.get_xaxis_transform(), color=GREY, linewidth=1)
        if self.shown is not None:
            print_by(self.shown, ax, self.observed)

    def _plot_labels(self, ax: Axes, style: dict[str, Any]) -> None:
        """One point a label, with the band as a bar."""
        places = np.arange(len(self.grid))
        if self.lower is not None and self.upper is not None:
            ax.vlines(
                places, self.lower, self.upper, color=BLUE, alpha=0.3, linewidth=5, label=self._band_name
            )
        look = {"linestyle": "none", "marker": "o", "markersize": 6}
        curves = list(self._curves())
        for number, (row, colour, label) in enumerate(curves):
            at = places + 0.5 * ((number + 0.5) / len(curves) - 0.5)
            if self.error is not None:
                ends, band = self._band(row), None if self.classes else "90 % of the mean"
                ax.vlines(at, *ends, color=colour, linewidth=2, alpha=0.7, label=band or "")
            ax.plot(at, self.average[row], **{"color": colour, "label": label, **look, **style})
            tips_along(ax, at, self.average[row], self._told(row))
        texts = self._names
        ax.set_xticks(places, texts, rotation=90 if are_crowded(texts) else 0, fontsize=SMALL)
        ax.set_xlim(-0.6, len(places) - 0.4)

    def _band(self, row: int) -> tuple[FloatArray, FloatArray]:
        """The ends of the band of a curve; those of a probability stay between 0 and 1."""
        assert self.error is not None
        low, high = (self.average[row] + side * _WIDE * self.error[row] for side in (-1, 1))
        return (low, high) if self.classes is None else (np.maximum(low, 0.0), np.minimum(high, 1.0))

    @property
    def _band_name(self) -> str:
        return f"{100 * self.coverage:.3g} % of observations"

    @property
    def _names(self) -> list[str]:
        """The labels as they stand along the axis."""
        return named_every([shortened(_text(value), 16) for value in self.grid])

    @property
    def depth(self) -> float:
        """Inches that names along the axis need below it, beyond those of a line of numbers."""
        if self.observed is None:
            return depth_of(self._names, 90.0) if are_crowded(self._names) else 0.0
        return 0.0 if self.shown is None else depth_of([self.shown(float(x)) for x in self.places], SLANT)

    def _told(self, row: int) -> list[str]:
        """The text that is shown for each point of a curve."""
        out = []
        for number, value in enumerate(self.average[row]):
            place = self.grid[number] if self.shown is None else self.shown(float(self.places[number]))
            text = f"{self.column} = {_text(place) if not isinstance(place, float) else in_digits(place)}: "
            if self.classes is not None:
                text += f"{_text(self.classes[row])} {100 * value:.0f} %"
            else:
                text += in_digits(value)
            if self.lower is not None and self.upper is not None:
                text += f", {100 * self.coverage:.3g} % of observations {in_digits(self.lower[number])} to "
                text += in_digits(self.upper[number])
            out.append(text)
        return out

    def _curves(self) -> Iterator[tuple[int, str, str | None]]:
        """Number, colour and label of each curve: all grades; of many classes, those that change most."""
        if self.classes is None:
            yield 0, BLUE, "mean prediction"
            return
        if self.ordered and len(self.classes) > 1:
            for row, colour in enumerate(ordered_colours(len(self.classes))):
                yield row, colour, shortened(_text(self.classes[row]), 14)
            return
        alone = len(self.classes) == 1
        drawn = most_changing([self]) if self.drawn is None else self.drawn
        for row, colour in zip(sorted(drawn), CLASS_COLOURS, strict=False):
            yield int(row), colour, None if alone else shortened(_text(self.classes[row]), 14)


def most_changing(displays: Sequence[DependenceDisplay]) -> list[int]:
    """Numbers of the classes that change most over these displays, at most `_MOST_CLASSES`."""
    change = np.max([np.ptp(display.average, axis=1) for display in displays], axis=0)
    return [int(row) for row in np.argsort(-change, kind="stable")[:_MOST_CLASSES]]


def _text(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)


def _averages(
    estimator: Any, tables: Iterator[InputTable], n_rows: int, output: int, coverage: float
) -> dict[str, Any]:
    """What a display holds of the predictions, of tables that hold the `n_rows` rows once for each value."""
    if is_classifier(estimator):
        p = np.concatenate([_by_value(_probabilities(estimator, rows), n_rows) for rows in tables]).T
        return {"average": p, "classes": np.asarray(estimator.classes_).tolist()[-len(p) :]}
    said = (_number_and_ends(estimator, rows, output, coverage) for rows in tables)
    average, *ends = np.concatenate([_by_value(part, n_rows) for part in said]).T
    return {"average": average[None], **dict(zip(("lower", "upper"), ends, strict=False))}


def _points(estimator: Any, rows: InputTable, output: int) -> FloatArray:
    """The predictions without their intervals: (N, P) probabilities, or (N, 1) numbers."""
    if is_classifier(estimator):
        return _probabilities(estimator, rows)
    said = np.asarray(estimator.predict(as_asked(estimator, rows)), dtype=np.float64)
    return said.reshape(len(rows), -1)[:, [output]]


def _error(
    fits: Sequence[Any], rows: InputTable, place: int, grid: Grid, output: int, average: FloatArray
) -> FloatArray:
    """The jackknife's standard error of an average (P, G) over fits without a part of the rows each."""
    found = []
    for fit in fits:
        parts = [_by_value(_points(fit, table, output), len(rows)) for table in _tables(rows, place, grid)]
        found.append(np.concatenate(parts).T)
    if any(of_fit.shape != average.shape for of_fit in found):  # a class that a part of the rows lacks
        return np.zeros_like(average)
    k, each = len(found), np.array(found)
    error: FloatArray = np.sqrt((k - 1) / k * ((each - each.mean(axis=0)) ** 2).sum(axis=0))
    return error


def _by_value(said: FloatArray, n_rows: int) -> FloatArray:
    """The means over the rows, (G, P), of what is said of G copies of them, (G N, P)."""
    means: FloatArray = said.reshape(-1, n_rows, said.shape[1]).mean(axis=1)
    return means


def _probabilities(estimator: Any, rows: InputTable) -> FloatArray:
    """Probabilities of the classes that are shown, (N, P)."""
    p: FloatArray = np.asarray(estimator.predict_proba(as_asked(estimator, rows)), dtype=np.float64)
    return p[:, 1:] if p.shape[1] == 2 else p


def _number_and_ends(estimator: Any, rows: InputTable, output: int, coverage: float) -> FloatArray:
    """Mean and, where the model knows a distribution, the ends of the interval: (N, 1) or (N, 3)."""
    if not hasattr(estimator, "predict_distribution"):
        return _points(estimator, rows, output)
    distribution = estimator.predict_distribution(as_asked(estimator, rows))
    mean = np.asarray(distribution.mean).reshape(len(rows), -1)[:, output]
    ends = np.asarray(distribution.interval(coverage)).reshape(len(rows), 2, -1)[:, :, output]
    return np.column_stack([mean, ends])


def _place(rows: InputTable, column: str | int) -> int:
    """The position of a column given by name or number."""
    frame = rows.source
    names: list[Any] = list(frame.columns) if isinstance(frame, pd.DataFrame) else list(rows.labels)
    if column in names:
        return names.index(column)
    if isinstance(column, int) and 0 <= column < len(names):
        return column
    raise InputError(f"`X` has no column {column!r}; it has {', '.join(map(str, names[:10]))}.")


def _tables(rows: InputTable, place: int, grid: Grid) -> Iterator[InputTable]:
    """All rows with their first cells of the grid in the column, then with the second, and so on.

    They come as few tables as memory allows: a model that is asked once answers sooner.
    """
    for values in copies_at_once(len(grid.values), rows):
        copies = repeated(rows, len(values))
        yield copies.with_column(place, grid.cells_at(values))

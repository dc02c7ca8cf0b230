"""Observed against predicted values, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nongauss.metrics import split_interval
from nongauss.report.metrics import in_digits
from nongauss.report.plots.style import (
    BLUE,
    INK,
    VERMILION,
    axes_or_new,
    figure_of,
    finish,
    key_above,
    tips,
    vector,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class PredictiveDisplay:
    """Observed against predicted values, each prediction with its interval.

    Parameters
    ----------
    y_true, y_pred : (N,), units of the target.
    lower, upper : (N,) ends of the interval, or None.
    coverage : nominal probability of the interval.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        *,
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike,
        lower: npt.ArrayLike | None = None,
        upper: npt.ArrayLike | None = None,
        coverage: float = 0.9,
    ) -> None:
        self.y_true = vector(y_true, "y_true")
        self.y_pred = vector(y_pred, "y_pred", like=self.y_true)
        self.lower = None if lower is None else vector(lower, "lower", like=self.y_true)
        self.upper = None if upper is None else vector(upper, "upper", like=self.y_true)
        self.coverage = coverage

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: npt.ArrayLike,
        *,
        coverage: float = 0.9,
        target: str | None = None,
        unit: str | None = None,
        max_rows: int = 500,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> PredictiveDisplay:
        """Predict X with `estimator` and plot; with intervals if it has `predict_interval`."""
        interval = None
        if hasattr(estimator, "predict_interval"):
            interval = estimator.predict_interval(X, coverage=coverage)
        return cls.from_predictions(
            y,
            estimator.predict(X),
            interval=interval,
            coverage=coverage,
            target=target,
            unit=unit,
            max_rows=max_rows,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike,
        *,
        interval: Any = None,
        coverage: float = 0.9,
        target: str | None = None,
        unit: str | None = None,
        max_rows: int = 500,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> PredictiveDisplay:
        """Plot given predictions; `interval` is a pair (lower, upper)."""
        lower, upper = (None, None) if interval is None else split_interval(interval)
        display = cls(y_true=y_true, y_pred=y_pred, lower=lower, upper=upper, coverage=coverage)
        return display.plot(ax=ax, target=target, unit=unit, max_rows=max_rows, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        target: str | None = None,
        unit: str | None = None,
        max_rows: int = 500,
        **kwargs: Any,
    ) -> PredictiveDisplay:
        """Draw on `ax`, or on a new figure; of more than `max_rows` rows, an even selection is shown."""
        ax = axes_or_new(ax)
        shown = self._selection(max_rows)
        y, p = self.y_true[shown], self.y_pred[shown]
        missed = self._draw_intervals(ax, shown)
        style = {"s": 18, "alpha": 0.85, "linewidth": 0, "zorder": 3, "label": "observation"}
        points = ax.scatter(p, y, **{"color": np.where(missed, VERMILION, BLUE), **style, **kwargs})
        tips(points, [self._told(row) for row in shown])
        ends = [p.min(), p.max()]
        ax.plot(ends, ends, color=INK, linewidth=1, linestyle="--", zorder=2, label="observed = predicted")
        words = (target or "target") + (f" ({unit})" if unit else "")
        title = "Observed against predicted"
        if len(shown) < len(self.y_true):
            title += f" ({len(shown)} of {len(self.y_true)} rows)"
        finish(ax, title, f"predicted {words}", f"observed {words}")
        key_above(ax)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _told(self, row: int) -> str:
        """The text that is shown for one row: its observation, prediction and interval."""
        text = f"observed {in_digits(self.y_true[row])}, predicted {in_digits(self.y_pred[row])}"
        if self.lower is None or self.upper is None:
            return text
        low, high = in_digits(self.lower[row]), in_digits(self.upper[row])
        return f"{text} ({100 * self.coverage:.3g} %: {low} to {high})"

    def _draw_intervals(self, ax: Axes, shown: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Bars of the rows shown, those that miss the observation apart; return which these are."""
        if self.lower is None or self.upper is None:
            return np.zeros(len(shown), dtype=bool)
        y, p, low, high = (v[shown] for v in (self.y_true, self.y_pred, self.lower, self.upper))
        missed = (y < low) | (y > high)
        name = f"{100 * self.coverage:.3g} % interval"
        for rows, colour, label in ((~missed, BLUE, name), (missed, VERMILION, f"{name}, missed")):
            if rows.any():
                ax.vlines(p[rows], low[rows], high[rows], color=colour, alpha=0.3, linewidth=1, label=label)
        return missed

    def _selection(self, max_rows: int) -> npt.NDArray[np.intp]:
        """Rows to show: all, or evenly spaced in the order of the predictions, so that tails stay."""
        if len(self.y_true) <= max_rows:
            return np.arange(len(self.y_true))
        places = np.linspace(0, len(self.y_true) - 1, max_rows).round().astype(int)
        rows: npt.NDArray[np.intp] = np.argsort(self.y_pred, kind="stable")[places]
        return rows

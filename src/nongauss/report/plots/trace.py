"""The objective over the iterations of a fit."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.report.metrics import FloatArray
from nongauss.report.plots.style import BLUE, GREY, SMALL, axes_or_new, figure_of, finish, tips_along

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class TraceDisplay:
    """The objective over the iterations of a fit.

    Parameters
    ----------
    trace : table with one row for each iteration: columns `iteration` and the one named by `quantity`.
    quantity : column to show.
    stop_reason : sentence shown in the plot.
    labels : titles of the axes.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        *,
        trace: pd.DataFrame,
        quantity: str = "bound",
        stop_reason: str | None = None,
        labels: tuple[str, str] | None = None,
    ) -> None:
        self.trace = trace
        self.quantity = quantity
        self.stop_reason = stop_reason
        self.labels = labels or ("iteration", _QUANTITIES.get(quantity, quantity))

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, quantity: str = "bound", ax: Axes | None = None, **kwargs: Any
    ) -> TraceDisplay:
        """Plot `estimator.trace_`. Raises InputError if it has no trace; `kwargs` style the line."""
        trace = getattr(estimator, "trace_", None)
        if trace is None:
            raise InputError(f"{type(estimator).__name__} has no `trace_`; fit an iterative model first.")
        chosen = hasattr(estimator, "leaderboard_")
        display = cls(
            trace=pd.DataFrame(trace),
            quantity=quantity,
            stop_reason=getattr(estimator, "stop_reason_", None),
            labels=("candidate", "best so far, rows left out (nats a row)") if chosen else None,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> TraceDisplay:
        """Draw on `ax`, or on a new figure."""
        if self.quantity not in self.trace:
            columns = ", ".join(map(str, self.trace.columns))
            raise InputError(f"The trace has no column {self.quantity!r}; it has: {columns}.")
        ax = axes_or_new(ax)
        y = self.trace[self.quantity].to_numpy(dtype=float)
        x = np.arange(1.0, len(y) + 1)
        if "iteration" in self.trace:
            x = self.trace["iteration"].to_numpy(dtype=float)
        style = {"color": BLUE, "linewidth": 1.8, "marker": "o" if len(y) <= 30 else None, "markersize": 4}
        ax.plot(x, y, **{**style, **kwargs})
        _robust_limits(ax, y)
        steps, label = self.labels
        finish(ax, "Course of the fit", steps, label)
        at = np.unique(np.linspace(0, len(y) - 1, 40).astype(int))
        at = at[np.isfinite(y[at]) & (y[at] >= ax.get_ylim()[0])]
        tips_along(ax, x[at], y[at], [f"{steps} {x[i]:.0f}: {y[i]:.6g}" for i in at])
        ax.locator_params(axis="x", integer=True)
        if self.stop_reason:
            ax.text(
                0.98,
                0.05,
                _wrap(self.stop_reason.replace("`", "")),
                transform=ax.transAxes,
                ha="right",
                va="bottom",
                fontsize=SMALL,
                color=GREY,
            )
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


_QUANTITIES = {
    "bound": "objective on the training rows (nats)",
    "held_out": "log density of rows held out (nats a row)",
}


def _robust_limits(ax: Axes, y: FloatArray) -> None:
    """Keep a steep start from flattening the rest: cut the axis below when the first steps dominate it."""
    finite = y[np.isfinite(y)]
    if finite.size < 20:
        return
    low, high = float(np.quantile(finite, 0.05)), float(finite.max())
    if high > low and float(finite.min()) < low - 2 * (high - low):
        ax.set_ylim(low - 0.25 * (high - low), high + 0.08 * (high - low))


def _wrap(sentence: str) -> str:

    return "\n".join(textwrap.wrap(sentence, 48))

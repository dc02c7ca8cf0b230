"""Plots of a fit: its trace, its predictions against what was observed, and its calibration.

Each class follows scikit-learn's Display convention: build it with `from_estimator` or
`from_predictions`, then find the axes in `ax_` and the figure in `figure_`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.core.errors import InputError
from nongauss.report.metrics import FloatArray, pit_values, split_interval
from nongauss.report.plots.style import BLUE, GREY, VERMILION, axes_or_new, figure_of, finish, vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class TraceDisplay:
    """The objective over the iterations of a fit.

    Parameters
    ----------
    trace : table with one row an iteration: columns `iteration` and the one named by `quantity`.
    quantity : column to show.
    stop_reason : sentence shown under the plot.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self, *, trace: pd.DataFrame, quantity: str = "bound", stop_reason: str | None = None
    ) -> None:
        self.trace = trace
        self.quantity = quantity
        self.stop_reason = stop_reason

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, quantity: str = "bound", ax: Axes | None = None, **kwargs: Any
    ) -> TraceDisplay:
        """Plot `estimator.trace_`. Raises InputError where it has no trace; `kwargs` style the line."""
        trace = getattr(estimator, "trace_", None)
        if trace is None:
            raise InputError(f"{type(estimator).__name__} has no `trace_`; fit an iterative model first.")
        display = cls(
            trace=pd.DataFrame(trace), quantity=quantity, stop_reason=getattr(estimator, "stop_reason_", None)
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
        label = "objective on the training rows (nats)" if self.quantity == "bound" else self.quantity
        finish(ax, "Course of the fit", "iteration", label)
        ax.locator_params(axis="x", integer=True)
        if self.stop_reason:
            ax.text(
                0.98, 0.05, _wrap(self.stop_reason), transform=ax.transAxes, ha="right", va="bottom",
                fontsize="small", color=GREY,
            )  # fmt: skip
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


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
        """Predict X with `estimator` and plot; intervals where it has `predict_interval`."""
        interval = None
        if hasattr(estimator, "predict_interval"):
            interval = estimator.predict_interval(X, coverage=coverage)
        return cls.from_predictions(
            y, estimator.predict(X), interval=interval, coverage=coverage, target=target, unit=unit,
            max_rows=max_rows, ax=ax, **kwargs,
        )  # fmt: skip

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
        """Draw on `ax`, or on a new figure; of more than `max_rows` rows an even selection is shown."""
        ax = axes_or_new(ax)
        shown = self._selection(max_rows)
        y, p = self.y_true[shown], self.y_pred[shown]
        missed = self._draw_intervals(ax, shown)
        style = {"s": 18, "alpha": 0.85, "linewidth": 0, "zorder": 3, "label": "observation"}
        ax.scatter(p, y, **{"color": np.where(missed, VERMILION, BLUE), **style, **kwargs})
        ends = [p.min(), p.max()]
        ax.plot(
            ends, ends, color="black", linewidth=1, linestyle="--", zorder=2, label="observed = predicted"
        )
        words = (target or "target") + (f" ({unit})" if unit else "")
        title = "Observed against predicted"
        if len(shown) < len(self.y_true):
            title += f" ({len(shown)} of {len(self.y_true)} rows)"
        finish(ax, title, f"predicted {words}", f"observed {words}")
        ax.legend(frameon=False, fontsize="small")
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _draw_intervals(self, ax: Axes, shown: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Bars of the rows shown, those that miss the observation apart; return which these are."""
        if self.lower is None or self.upper is None:
            return np.zeros(len(shown), dtype=bool)
        y, p, low, high = (v[shown] for v in (self.y_true, self.y_pred, self.lower, self.upper))
        missed = (y < low) | (y > high)
        name = f"{100 * self.coverage:.3g} % interval"
        for rows, colour, label in ((~missed, BLUE, name), (missed, VERMILION, f"{name}, missed")):
            if rows.any():
                ax.vlines(
                    p[rows], low[rows], high[rows], color=colour, alpha=0.3, linewidth=1, label=label
                )  # fmt: skip
        return missed

    def _selection(self, max_rows: int) -> npt.NDArray[np.intp]:
        """Rows to show: all, or evenly spaced in the order of the predictions, so that tails stay."""
        if len(self.y_true) <= max_rows:
            return np.arange(len(self.y_true))
        places = np.linspace(0, len(self.y_true) - 1, max_rows).round().astype(int)
        return np.argsort(self.y_pred, kind="stable")[places]


class CalibrationDisplay:
    """How often central predictive intervals hold the observation, against how often they should.

    Parameters
    ----------
    pit : (N,) probabilities that the predictive distributions put below the observations.
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, *, pit: npt.ArrayLike) -> None:
        self.pit = vector(pit, "pit")
        self.nominal = np.linspace(0.0, 1.0, 101)
        # The central interval of probability c holds y exactly when |2u - 1| <= c for its PIT value u.
        spread = np.sort(np.abs(2.0 * self.pit - 1.0))
        self.observed = np.searchsorted(spread, self.nominal + 1e-12, side="right") / len(spread)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: npt.ArrayLike,
        *,
        kind: Literal["coverage", "pit"] = "coverage",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> CalibrationDisplay:
        """Plot the calibration of `estimator.predict_distribution(X)` on the observations y."""
        if not hasattr(estimator, "predict_distribution"):
            raise InputError(
                f"{type(estimator).__name__} has no `predict_distribution`; calibration needs a model that "
                "predicts distributions."
            )
        return cls.from_predictions(y, estimator.predict_distribution(X), kind=kind, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        distribution: Any,
        *,
        kind: Literal["coverage", "pit"] = "coverage",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> CalibrationDisplay:
        """Plot the calibration of `distribution`, which has `.cdf(y)`, on the observations."""
        return cls(pit=pit_values(distribution, y_true)).plot(ax=ax, kind=kind, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, kind: Literal["coverage", "pit"] = "coverage", **kwargs: Any
    ) -> CalibrationDisplay:
        """Draw the coverage curve or the histogram of the PIT values on `ax`, or on a new figure."""
        if kind not in ("coverage", "pit"):
            raise InputError(f"`kind` must be 'coverage' or 'pit', got {kind!r}.")
        ax = axes_or_new(ax)
        if kind == "coverage":
            self._plot_coverage(ax, kwargs)
        else:
            self._plot_pit(ax, kwargs)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _plot_coverage(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        c, n = self.nominal, len(self.pit)
        half = 1.96 * np.sqrt(c * (1 - c) / n)
        ax.fill_between(
            c, np.clip(c - half, 0, 1), np.clip(c + half, 0, 1), color=GREY, alpha=0.18, linewidth=0,
            label=f"chance alone, {n} rows (95 %)",
        )  # fmt: skip
        ax.plot([0, 1], [0, 1], color="black", linestyle="--", linewidth=1, label="perfectly calibrated")
        ax.plot(c, self.observed, **{"color": BLUE, "linewidth": 2, "label": "this model", **kwargs})
        ax.set(xlim=(0, 1), ylim=(0, 1))
        finish(ax, "Calibration", "nominal coverage (probability)", "observed coverage (share of rows)")
        ax.legend(frameon=False, fontsize="small", loc="upper left")

    def _plot_pit(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        n = len(self.pit)
        bins = int(np.clip(n // 10, 4, 20))
        ax.hist(
            self.pit, bins=bins, range=(0, 1), density=True,
            **{"color": BLUE, "alpha": 0.75, "edgecolor": "white", **kwargs},
        )  # fmt: skip
        half = 1.96 * np.sqrt((bins - 1) / n)
        label = f"chance alone, {n} rows (95 %)"
        ax.axhspan(max(0.0, 1 - half), 1 + half, color=GREY, alpha=0.18, linewidth=0, zorder=0, label=label)
        ax.axhline(1.0, color="black", linestyle="--", linewidth=1, label="perfectly calibrated")
        ax.set(xlim=(0, 1))
        ax.set_ylim(0, 1.3 * ax.get_ylim()[1])
        finish(ax, "PIT histogram", "predicted probability below the observation", "density")
        ax.legend(frameon=False, fontsize="small", loc="upper right")


def _robust_limits(ax: Axes, y: FloatArray) -> None:
    """Keep a steep start from flattening the rest: cut the axis below when the first steps dominate it."""
    finite = y[np.isfinite(y)]
    if finite.size < 20:
        return
    low, high = float(np.quantile(finite, 0.05)), float(finite.max())
    if high > low and float(finite.min()) < low - 2 * (high - low):
        ax.set_ylim(low - 0.25 * (high - low), high + 0.08 * (high - low))


def _wrap(sentence: str) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(sentence, 48))

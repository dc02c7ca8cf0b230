"""How often predictive intervals hold the observation, against how often they should."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from nongauss.core.errors import InputError
from nongauss.report.metrics import pit_values
from nongauss.report.plots.style import (
    BLUE,
    GREY,
    INK,
    axes_or_new,
    figure_of,
    finish,
    key_above,
    tips,
    tips_along,
    vector,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class CalibrationDisplay:
    """Coverage of central predictive intervals against their nominal coverage.

    Parameters
    ----------
    pit : (N,) probabilities of the predictive distributions below the observations.
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
            c,
            np.clip(c - half, 0, 1),
            np.clip(c + half, 0, 1),
            color=GREY,
            alpha=0.18,
            linewidth=0,
            label=f"chance alone, {n} rows (95 %)",
        )
        ax.plot([0, 1], [0, 1], color=INK, linestyle="--", linewidth=1, label="perfectly calibrated")
        ax.plot(c, self.observed, **{"color": BLUE, "linewidth": 2, "label": "this model", **kwargs})
        ax.set(xlim=(0, 1), ylim=(0, 1))
        finish(ax, "Calibration", "probability of the interval", "share of rows inside it")
        key_above(ax)
        at = np.arange(5, 100, 5)
        said = [f"{100 * c[i]:.0f} % intervals held {100 * self.observed[i]:.0f} % of {n} rows" for i in at]
        tips_along(ax, c[at], self.observed[at], said)

    def _plot_pit(self, ax: Axes, kwargs: dict[str, Any]) -> None:
        n = len(self.pit)
        bins = int(np.clip(n // 10, 4, 20))
        counts, edges, bars = ax.hist(
            self.pit,
            bins=bins,
            range=(0, 1),
            density=True,
            **{"color": BLUE, "alpha": 0.75, "rwidth": 0.94, **kwargs},
        )
        each: Any = bars
        for bar, density, low, high in zip(each, counts, edges, edges[1:], strict=False):
            rows = density * n * (high - low)
            tips(bar, [f"{rows:.0f} of {n} rows between {100 * low:.0f} and {100 * high:.0f} %"])
        half = 1.96 * np.sqrt((bins - 1) / n)
        label = f"chance alone, {n} rows (95 %)"
        ax.axhspan(max(0.0, 1 - half), 1 + half, color=GREY, alpha=0.18, linewidth=0, zorder=0, label=label)
        ax.axhline(1.0, color=INK, linestyle="--", linewidth=1, label="perfectly calibrated")
        ax.set(xlim=(0, 1))
        title = "Observations within their predictive distributions"
        finish(
            ax,
            title,
            "predicted probability below the observation (PIT)",
            "number of rows relative to uniform",
        )
        key_above(ax)

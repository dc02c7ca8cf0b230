"""What a linear classifier makes of each factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nongauss.core.errors import InputError
from nongauss.report.plots.style import BLUE, GREY, axes_or_new, figure_of, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_MOST_TICKS = 30


class CoefficientDisplay:
    """Coefficients of a linear classifier on factors: mean and credible interval.

    Parameters
    ----------
    mean : (K,). lower, upper : (K,), ends of the intervals. names : (K,) of the factors.
    label : of the class.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self, *, mean: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike, names: Any, label: str
    ) -> None:
        self.mean, self.lower, self.upper = (
            np.asarray(part, dtype=np.float64) for part in (mean, lower, upper)
        )
        self.names, self.label = [str(name) for name in names], label

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, output: int = 0, coverage: float = 0.9, ax: Axes | None = None
    ) -> CoefficientDisplay:
        """Plot one output of a fitted classifier with `coefficients`; two classes have only output 0."""
        table = estimator.coefficients(coverage)
        classes = table.index.get_level_values(0).unique()
        if not 0 <= output < len(classes):
            raise InputError(f"output must be from 0 to {len(classes) - 1}, got {output!r}.")
        part = table.loc[classes[output]]
        display = cls(
            mean=part["mean"],
            lower=part["lower"],
            upper=part["upper"],
            names=part.index,
            label=str(classes[output]),
        )
        return display.plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> CoefficientDisplay:
        """Draw on `ax`, or on a new figure. Intervals that contain 0 are grey."""
        ax = axes_or_new(ax)
        place = np.arange(len(self.mean))
        for sure, colour in ((True, BLUE), (False, GREY)):
            here = ((self.lower > 0) | (self.upper < 0)) == sure
            error = np.maximum([self.mean - self.lower, self.upper - self.mean], 0.0)[:, here]
            ax.errorbar(place[here], self.mean[here], error, fmt="o", color=colour, markersize=4, capsize=2)
        ax.axhline(0.0, color="black", linewidth=0.8)
        finish(ax, f"Coefficients, class {self.label}", "", "coefficient and interval")
        if len(place) <= _MOST_TICKS:
            ax.set_xticks(place, self.names, rotation=90, fontsize="x-small")
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

"""Factors and the columns that load on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nongauss.report.plots.style import BLUE, VERMILION, axes_or_new, figure_of, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class FactorNetworkDisplay:
    """Factors and the columns with their largest loadings, joined by lines whose width is the loading.

    Parameters
    ----------
    loadings : DataFrame (D, K), columns by factors. n_columns : shown for each factor.
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, loadings: Any, n_columns: int = 5) -> None:
        self.loadings, self.n_columns = loadings, n_columns
        sizes = loadings.abs().to_numpy()
        top = np.argsort(-sizes, axis=0, kind="stable")[:n_columns]
        self.shown = np.unique(top)
        self.edges = [(int(i), k) for k, column in enumerate(top.T) for i in column if sizes[i, k] > 0]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_columns: int = 5, n_factors: int = 8, ax: Axes | None = None
    ) -> FactorNetworkDisplay:
        """Plot the largest factors of a fitted model with `loadings_`."""
        return cls(estimator.loadings_.iloc[:, :n_factors], n_columns).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> FactorNetworkDisplay:
        """Draw on `ax`, or on a new figure: factors left, columns in order of their strongest one right."""
        ax = axes_or_new(ax)
        values = self.loadings.to_numpy()
        largest = np.abs(values).max() or 1.0
        n_factors = values.shape[1]
        drawn = np.zeros(values.shape)
        for i, k in self.edges:
            drawn[i, k] = abs(values[i, k])
        order = self.shown[np.argsort(drawn[self.shown].argmax(axis=1), kind="stable")]
        height = {int(i): -(place + 0.5) / len(order) for place, i in enumerate(order)}
        for i, k in self.edges:
            ax.plot(
                [0, 1],
                [-(k + 0.5) / n_factors, height[i]],
                color=BLUE if values[i, k] > 0 else VERMILION,
                linewidth=0.3 + 2.5 * abs(values[i, k]) / largest,
                alpha=0.8,
            )
        for k, name in enumerate(self.loadings.columns):
            ax.text(-0.03, -(k + 0.5) / n_factors, str(name), ha="right", va="center", fontsize="small")
        for i, y in height.items():
            ax.text(1.03, y, str(self.loadings.index[i]), ha="left", va="center", fontsize="x-small")
        finish(ax, "Factors and their columns (blue positive, red negative)", "", "")
        ax.set(xlim=(-0.4, 1.6), xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

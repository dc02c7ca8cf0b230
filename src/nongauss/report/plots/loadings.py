"""Plots of a factor model: coefficients, the network of factors and columns, loadings as images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nongauss.core.errors import InputError
from nongauss.report.metrics import FloatArray
from nongauss.report.plots.style import BLUE, GREY, VERMILION, axes_or_new, figure_of, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_TICKS = 30


class CoefficientDisplay:
    """What a linear classifier makes of each factor: mean and credible interval.

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
        """Plot one output of a fitted classifier with `coefficients`; two classes have output 0 alone."""
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
        """Draw on `ax`, or on a new figure. Intervals that hold 0 are grey."""
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


class FactorNetworkDisplay:
    """Factors and the columns with their largest loadings, joined by lines as strong as the loading.

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
                [0, 1], [-(k + 0.5) / n_factors, height[i]], color=BLUE if values[i, k] > 0 else VERMILION,
                linewidth=0.3 + 2.5 * abs(values[i, k]) / largest, alpha=0.8,
            )  # fmt: skip
        for k, name in enumerate(self.loadings.columns):
            ax.text(-0.03, -(k + 0.5) / n_factors, str(name), ha="right", va="center", fontsize="small")
        for i, y in height.items():
            ax.text(1.03, y, str(self.loadings.index[i]), ha="left", va="center", fontsize="x-small")
        finish(ax, "Factors and their columns (blue positive, red negative)", "", "")
        ax.set(xlim=(-0.4, 1.6), xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


class LoadingImageDisplay:
    """Loadings as images, where columns are the pixels of one.

    Parameters
    ----------
    loadings : (D, K). shape : rows and columns of the image. place : (D,) pixel of each column; None:
    all of them, in order.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self, loadings: npt.ArrayLike, shape: tuple[int, int], place: npt.ArrayLike | None = None
    ) -> None:
        values = np.asarray(loadings, dtype=np.float64)
        at = np.arange(len(values)) if place is None else np.asarray(place, dtype=np.intp)
        if len(at) != len(values) or at.max(initial=0) >= shape[0] * shape[1]:
            raise InputError(
                f"{len(values)} columns do not fit an image of {shape[0]} x {shape[1]}; "
                "give the pixel of each by `place`."
            )
        self.images: FloatArray = np.zeros((values.shape[1], shape[0] * shape[1]))
        self.images[:, at] = values.T
        self.images = self.images.reshape(-1, *shape)

    @classmethod
    def from_estimator(
        cls, estimator: Any, shape: tuple[int, int], *, n_across: int = 5, ax: Axes | None = None
    ) -> LoadingImageDisplay:
        """Plot a fitted model with `loadings_` whose input columns are the pixels; ignored ones stay 0.

        Raises InputError for a model with columns that are no single pixel, such as labels.
        """
        loadings = estimator.loadings_
        known = getattr(estimator, "feature_names_in_", None)
        names = [f"x{j}" for j in range(estimator.n_features_in_)] if known is None else list(known)
        place = {name: number for number, name in enumerate(names)}
        strange = [name for name in loadings.index if name not in place]
        if strange:
            raise InputError(
                f"An image needs numbers in each column, but {strange[0]!r} is no column of the table; "
                "give the loadings and `place` to the constructor."
            )
        return cls(loadings, shape, [place[name] for name in loadings.index]).plot(ax=ax, n_across=n_across)

    def plot(self, ax: Axes | None = None, n_across: int = 5) -> LoadingImageDisplay:
        """Draw all images on one `ax`, or on a new figure; red positive, blue negative, each on its scale."""
        ax = axes_or_new(ax)
        n_images, height, width = self.images.shape
        n_down = -(-n_images // n_across)
        sheet = np.full((n_down * (height + 1), n_across * (width + 1)), np.nan)
        for k, image in enumerate(self.images):
            top, left = k // n_across * (height + 1), k % n_across * (width + 1)
            sheet[top : top + height, left : left + width] = image / (np.abs(image).max() or 1.0)
        ax.imshow(sheet, cmap="RdBu_r", vmin=-1, vmax=1)
        finish(ax, "Loadings", "", "")
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

"""Plots and lines about latent features: which class has which, and which columns and rows each speaks of.

They read what a fitted harmonium has: `components_`, `visible_std_`, `encoded_names_`, `transform`,
`top_features`, `top_rows`, and of a classifier `classes_`, `class_means_`, `class_spreads_`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nongauss.core.errors import InputError
from nongauss.report.metrics import FloatArray
from nongauss.report.plots.style import BLUE, axes_or_new, figure_of, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_FEATURES, _MOST_CLASSES, _MOST_COLUMNS, _MOST_LINES = 12, 25, 24, 40
_TOP = 5


class ClassFeaturesDisplay:
    """How strongly each class has each feature: its mean over the rows of the class, and its spread.

    Parameters
    ----------
    means, spreads : (C, K) mean and standard deviation of each feature over the rows of a class.
    classes : C names. features : K names.
    Features in which classes differ most, in units of the spread within them, come first; at most 12 are
    shown, and at most 25 classes.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        *,
        means: npt.ArrayLike,
        spreads: npt.ArrayLike,
        classes: Sequence[Any],
        features: Sequence[str],
    ) -> None:
        means, spreads = np.asarray(means, dtype=np.float64), np.asarray(spreads, dtype=np.float64)
        if means.shape != (len(classes), len(features)) or spreads.shape != means.shape:
            raise InputError(
                f"`means` and `spreads` must have {len(classes)} rows and {len(features)} columns, one a "
                f"class and one a feature, got shapes {means.shape} and {spreads.shape}."
            )
        chosen = distinct(means, spreads)[:_MOST_FEATURES]
        self.means, self.spreads = means[:_MOST_CLASSES, chosen], spreads[:_MOST_CLASSES, chosen]
        self.classes = [str(name) for name in classes[:_MOST_CLASSES]]
        self.features = [str(features[k]) for k in chosen]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **kwargs: Any) -> ClassFeaturesDisplay:
        """Plot the classes of a fitted classifier that has features."""
        if not hasattr(estimator, "class_means_"):
            raise InputError(
                f"{type(estimator).__name__} has no `class_means_`; give a fitted HarmoniumClassifier."
            )
        display = cls(
            means=estimator.class_means_, spreads=estimator.class_spreads_,
            classes=estimator.classes_.tolist(), features=_names(estimator.class_means_.shape[1]),
        )  # fmt: skip
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ClassFeaturesDisplay:
        """Draw a bar a class and feature, as long as the mean, with a line of one standard deviation.

        `kwargs` style the bars.
        """
        ax = axes_or_new(ax)
        n_classes, n_features = self.means.shape
        low = min(0.0, float((self.means - self.spreads).min(initial=0.0)))
        high = max(1.0, float((self.means + self.spreads).max(initial=0.0)))
        width = 1.15 * (high - low)
        style = {"color": BLUE, "height": 0.7, "error_kw": {"elinewidth": 0.9, "alpha": 0.7}, **kwargs}
        for k in range(n_features):
            zero = k * width - low
            ax.barh(
                np.arange(n_classes), self.means[:, k], left=zero, xerr=self.spreads[:, k], **style
            )  # fmt: skip
            ax.axvline(zero, color="black", linewidth=0.6)
        ax.set_xticks(np.arange(n_features) * width - low + 0.5, self.features)
        ax.set_yticks(np.arange(n_classes), self.classes)
        ax.set_xlim(-0.05 * width, n_features * width)
        ax.invert_yaxis()
        finish(ax, "Features of the classes: mean and spread", "", "")
        ax.grid(visible=False)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


class FeatureColumnsDisplay:
    """What each feature does to the columns: its weight times the column's standard deviation.

    Parameters
    ----------
    lift : (D, K). columns : D names. features : K names, of which the first 12 are shown with the columns
    that they move most, at most 24.
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, *, lift: npt.ArrayLike, columns: Sequence[str], features: Sequence[str]) -> None:
        lift = np.asarray(lift, dtype=np.float64)
        if lift.shape != (len(columns), len(features)):
            raise InputError(
                f"`lift` must have {len(columns)} rows and {len(features)} columns, one a column of the "
                f"table and one a feature, got shape {lift.shape}."
            )
        lift, self.features = lift[:, :_MOST_FEATURES], [str(name) for name in features[:_MOST_FEATURES]]
        by_feature = np.argsort(-np.abs(lift), axis=0, kind="stable")
        chosen = list(dict.fromkeys(by_feature[:_MOST_COLUMNS].ravel().tolist()))[:_MOST_COLUMNS]
        order = sorted(chosen, key=lambda d: (int(np.abs(lift[d]).argmax()), -np.abs(lift[d]).max()))
        self.lift, self.columns = lift[order], [str(columns[d]) for d in order]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> FeatureColumnsDisplay:
        """Plot the features of a fitted harmonium."""
        if not hasattr(estimator, "components_") or not hasattr(estimator, "visible_std_"):
            raise InputError(
                f"{type(estimator).__name__} has no weights of features; give a fitted harmonium."
            )
        order = shown_features(estimator)
        names = _names(len(estimator.components_))
        display = cls(
            lift=(estimator.components_ * estimator.visible_std_)[order].T,
            columns=estimator.encoded_names_, features=[names[k] for k in order],
        )  # fmt: skip
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> FeatureColumnsDisplay:
        """Draw on `ax`, or on a new figure; `kwargs` go to `pcolormesh`."""
        ax = axes_or_new(ax)
        most = max(1e-12, float(np.abs(self.lift).max(initial=0.0)))
        mesh = ax.pcolormesh(self.lift, **{"cmap": "RdBu_r", "vmin": -most, "vmax": most, **kwargs})
        ax.set_xticks(np.arange(len(self.features)) + 0.5, self.features)
        ax.set_yticks(np.arange(len(self.columns)) + 0.5, self.columns)
        ax.invert_yaxis()
        finish(ax, "What the features do to the columns", "", "")
        ax.grid(visible=False)
        figure_of(ax).colorbar(mesh, ax=ax, shrink=0.8)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


def feature_figures(estimator: Any) -> list[tuple[str, Figure]]:
    """The report's plots of a fitted harmonium: (caption, figure)."""
    from matplotlib.figure import Figure

    figures = []

    def drawn(caption: str, display: Any, height: float) -> None:
        figure = Figure(figsize=(8.4, height), layout="constrained")
        display.from_estimator(estimator, ax=figure.subplots())
        figures.append((caption, figure))

    if not len(estimator.components_):
        return figures
    if hasattr(estimator, "class_means_"):
        caption = (
            "Which class has which feature: bars are means over the rows of a class, lines one standard "
            "deviation. Features in which classes differ most come first."
        )
        drawn(caption, ClassFeaturesDisplay, 1.4 + 0.27 * min(len(estimator.classes_), _MOST_CLASSES))
    n_columns = min(len(estimator.encoded_names_), _MOST_COLUMNS)
    caption = "Red columns are raised where a row has the feature, blue ones lowered."
    drawn(caption, FeatureColumnsDisplay, 1.4 + 0.22 * n_columns)
    return figures


def feature_lines(estimator: Any, X: Any) -> list[tuple[str, str, str, str, str]]:
    """Of each feature, as text: name, how much rows X have it, class, columns that it raises, top rows.

    Rows are numbered from 0. The class is that of the largest mean, "" without classes. At most 40 features.
    """
    if not len(estimator.components_):
        return []
    hidden = estimator.transform(X)
    use, names = hidden.mean(axis=0), _names(hidden.shape[1])
    columns = estimator.top_features(_TOP)
    rows = np.argsort(-hidden, axis=0, kind="stable")[:_TOP].T
    most = np.full(len(names), "", dtype=object)
    if hasattr(estimator, "class_means_"):
        most = np.asarray(estimator.classes_)[estimator.class_means_.argmax(axis=0)]
    return [
        (names[k], f"{use[k]:.2f}", str(most[k]), ", ".join(columns[k]), ", ".join(map(str, rows[k])))
        for k in shown_features(estimator)[:_MOST_LINES]
    ]


def shown_features(estimator: Any) -> npt.NDArray[np.intp]:
    """Numbers of the features: those in which classes differ most first, else as the fit has them."""
    if hasattr(estimator, "class_means_"):
        return distinct(estimator.class_means_, estimator.class_spreads_)
    return np.arange(len(estimator.components_))


def distinct(means: FloatArray, spreads: FloatArray) -> npt.NDArray[np.intp]:
    """Numbers of the features by the variance between classes over the mean variance within, falling."""
    within = (spreads**2).mean(axis=0) + 1e-12
    return np.argsort(-means.var(axis=0) / within, kind="stable")


def _names(n_features: int) -> list[str]:
    return [f"F{k}" for k in range(n_features)]

"""Which columns each latent feature speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nongauss.core.errors import InputError
from nongauss.report.plots.class_features import distinct, feature_names
from nongauss.report.plots.style import axes_or_new, figure_of, finish, shortened, tinted, tips

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_MOST_FEATURES = 12
MOST_COLUMNS = 24


class FeatureColumnsDisplay:
    """Effect of each feature on the columns: its weight times the column's standard deviation.

    Parameters
    ----------
    lift : (D, K).
    columns : D names.
    features : K names, of which the first 12 are shown with the columns on which they have the largest
        effect, at most 24.
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
        chosen = list(dict.fromkeys(by_feature[:MOST_COLUMNS].ravel().tolist()))[:MOST_COLUMNS]
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
        names = feature_names(len(estimator.components_))
        display = cls(
            lift=(estimator.components_ * estimator.visible_std_)[order].T,
            columns=estimator.encoded_names_,
            features=[names[k] for k in order],
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> FeatureColumnsDisplay:
        """Draw on `ax`, or on a new figure: blue raised, vermilion lowered; `kwargs` go to `pcolormesh`."""
        ax = axes_or_new(ax)
        most = max(1e-12, float(np.abs(self.lift).max(initial=0.0)))
        cells = ax.pcolormesh(tinted(self.lift, most), **kwargs)
        said = (
            f"{self.features[k]}: {self.columns[d]} {value:+.3g}"
            for (d, k), value in np.ndenumerate(self.lift)
        )
        tips(cells, list(said))
        ax.set_xticks(np.arange(len(self.features)) + 0.5, self.features)
        ax.set_yticks(np.arange(len(self.columns)) + 0.5, [shortened(name) for name in self.columns])
        ax.invert_yaxis()
        finish(ax, "Effect of features on columns", "", "")
        ax.grid(visible=False)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


def shown_features(estimator: Any) -> npt.NDArray[np.intp]:
    """Numbers of the features: those in which classes differ most first, else as the fit has them."""
    if hasattr(estimator, "class_means_"):
        return distinct(estimator.class_means_, estimator.class_spreads_)
    return np.arange(len(estimator.components_))

"""Which class has which latent feature."""

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


_MOST_FEATURES = 12
MOST_CLASSES = 25


class ClassFeaturesDisplay:
    """Features by class: mean and standard deviation over the rows of each class.

    Parameters
    ----------
    means, spreads : (C, K) mean and standard deviation of each feature over the rows of a class.
    classes : C names.
    features : K names.

    Notes
    -----
    Features in which classes differ most, relative to the variation within them, come first; at most 12 are
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
        self.means, self.spreads = means[:MOST_CLASSES, chosen], spreads[:MOST_CLASSES, chosen]
        self.classes = [str(name) for name in classes[:MOST_CLASSES]]
        self.features = [str(features[k]) for k in chosen]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **kwargs: Any) -> ClassFeaturesDisplay:
        """Plot the classes of a fitted classifier that has features."""
        if not hasattr(estimator, "class_means_"):
            raise InputError(
                f"{type(estimator).__name__} has no `class_means_`; give a fitted HarmoniumClassifier."
            )
        display = cls(
            means=estimator.class_means_,
            spreads=estimator.class_spreads_,
            classes=estimator.classes_.tolist(),
            features=feature_names(estimator.class_means_.shape[1]),
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ClassFeaturesDisplay:
        """Draw a bar for the mean of each feature in each class, with a line of one standard deviation.

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
            ax.barh(np.arange(n_classes), self.means[:, k], left=zero, xerr=self.spreads[:, k], **style)
            ax.axvline(zero, color="black", linewidth=0.6)
        ax.set_xticks(np.arange(n_features) * width - low + 0.5, self.features)
        ax.set_yticks(np.arange(n_classes), self.classes)
        ax.set_xlim(-0.05 * width, n_features * width)
        ax.invert_yaxis()
        finish(ax, "Features of the classes: mean and spread", "", "")
        ax.grid(visible=False)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


def distinct(means: FloatArray, spreads: FloatArray) -> npt.NDArray[np.intp]:
    """Numbers of the features by the variance between classes over the mean variance within, falling."""
    within = (spreads**2).mean(axis=0) + 1e-12
    return np.argsort(-means.var(axis=0) / within, kind="stable")


def feature_names(n_features: int) -> list[str]:
    """F0, F1, ..., one name a feature."""
    return [f"F{k}" for k in range(n_features)]

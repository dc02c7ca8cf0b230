"""Which classes a classification confuses: scikit-learn's display with the looks of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nongauss.report.plots.style import axes_or_new, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.metrics import ConfusionMatrixDisplay


_MOST_CLASSES_WITH_NUMBERS = 12


def draw_confusion(
    y_true: Any, predicted: Any, classes: Any, ax: Axes | None = None
) -> ConfusionMatrixDisplay:
    """scikit-learn's confusion matrix in the order of `classes`; labels that are none of them come last."""
    from sklearn.metrics import ConfusionMatrixDisplay

    observed = np.asarray(y_true)
    names = pd.unique(np.concatenate([np.asarray(classes), np.asarray(predicted), observed]))
    display = ConfusionMatrixDisplay.from_predictions(
        observed,
        np.asarray(predicted),
        labels=names,
        include_values=len(names) <= _MOST_CLASSES_WITH_NUMBERS,
        xticks_rotation=90 if max(len(str(name)) for name in names) * len(names) > 40 else 0,
        cmap="Blues",
        colorbar=False,
        ax=axes_or_new(ax),
    )
    finish(display.ax_, "Observed against predicted class", "predicted", "observed")
    display.ax_.grid(visible=False)
    return display

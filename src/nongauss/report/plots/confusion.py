"""Which classes a classification confuses: scikit-learn's display with the looks of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nongauss.report.plots.style import NORMAL, axes_or_new, figure_of, finish, shortened, tinted, tips

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.metrics import ConfusionMatrixDisplay


_MOST_CLASSES_WITH_NUMBERS, _MOST_NAMES = 12, 30


def draw_confusion(
    y_true: Any, predicted: Any, classes: Any, ax: Axes | None = None
) -> ConfusionMatrixDisplay:
    """scikit-learn's confusion matrix in the order of `classes`; labels that are none of them come last."""
    from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix

    observed = np.asarray(y_true)
    names = pd.unique(np.concatenate([np.asarray(classes), np.asarray(predicted), observed]))
    place = pd.Index(names).get_indexer
    # Of places among the names: scikit-learn's takes no grades such as 1.5 as labels.
    counts = confusion_matrix(place(observed), place(np.asarray(predicted)), labels=np.arange(len(names)))
    display = ConfusionMatrixDisplay(counts, display_labels=names)
    display.ax_ = ax = axes_or_new(ax)
    display.figure_ = figure_of(ax)
    cells = ax.pcolormesh(tinted(counts.astype(np.float64), max(1.0, float(counts.max()))))
    tips(
        cells,
        [f"{n} rows: observed {names[i]}, predicted {names[j]}" for (i, j), n in np.ndenumerate(counts)],
    )
    if len(names) <= _MOST_CLASSES_WITH_NUMBERS:
        for (i, j), n in np.ndenumerate(counts):
            ax.text(
                j + 0.5, i + 0.5, str(n), ha="center", va="center", fontsize=NORMAL, alpha=1.0 if n else 0.4
            )
    finish(ax, "Observed against predicted class", "predicted", "observed")
    _name_cells(ax, [shortened(str(name), 18) for name in names])
    return display


def _name_cells(ax: Axes, names: Sequence[str]) -> None:
    """The classes along both axes; of very many every so many-th."""
    step = -(-len(names) // _MOST_NAMES)
    at = np.arange(0, len(names), step)
    shown = [names[int(i)] for i in at]
    ax.set_xticks(at + 0.5, shown, rotation=90 if sum(map(len, shown)) > 40 else 0)
    ax.set_yticks(at + 0.5, shown)
    ax.invert_yaxis()
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[["bottom", "left"]].set_visible(False)

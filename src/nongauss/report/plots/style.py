"""What the plots share: colours, axes, finish.

Colours are from the Okabe-Ito palette, which colour-blind readers can tell apart. No global setting of
matplotlib is changed, and pyplot is touched only when no axes are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nongauss.core.errors import InputError
from nongauss.report.metrics import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#6b6b6b"
CLASS_COLOURS = (BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def axes_or_new(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(5.6, 4.2), layout="constrained")[1]


def figure_of(ax: Axes) -> Figure:
    """The figure that holds the axes, also where they sit in a sub-figure."""
    from matplotlib.figure import Figure

    figure = ax.figure
    while not isinstance(figure, Figure):
        figure = figure.figure
    return figure


def finish(ax: Axes, title: str, xlabel: str, ylabel: str) -> None:
    """Title, labels and grid as every plot of the house has them."""
    # A title of given height is not looked for a place above all tick labels, at every layout anew.
    ax.set_title(title, loc="left", y=1.0, fontsize="medium", fontweight="bold")
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e4e4e4", linewidth=0.7)
    ax.set_axisbelow(True)


def vector(values: npt.ArrayLike, name: str, like: FloatArray | None = None) -> FloatArray:
    """One number a row, (N,). Raises InputError for other shapes, or not as many as `like` has."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"`{name}` must be one value a row for one target, got shape {array.shape}.")
    if like is not None and array.shape != like.shape:
        raise InputError(f"`{name}` must have {like.size} values, one an observation, got {array.size}.")
    return array

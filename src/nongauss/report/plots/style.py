"""What the plots share: colours, one scale of type, axes, keys, values that show under the pointer, finish.

Colours are from the Okabe-Ito palette, which colour-blind readers can tell apart. No global setting of
matplotlib is changed, and pyplot is touched only when no axes are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nongauss.core.errors import InputError
from nongauss.report.metrics import FloatArray

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Formatter

BLUE, VERMILION, GREY, INK = "#0072b2", "#d55e00", "#6b6b6b", "#000000"
CLASS_COLOURS = (BLUE, VERMILION, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK)
_RAMP = ("#b44a00", "#e08a1e", "#8f8f8f", "#4f9fd6", "#0068a8")
"""From low to high: two hues that colour-blind readers can tell apart, grey between them."""

NORMAL, SMALL = 9.0, 8.0
"""The two sizes of type, in points: what is read, and numbers along the axes."""

SIZE, PANEL_SIZE = (4.8, 3.7), (3.9, 2.5)
"""Width and height in inches of a plot, and of one among several: about what they have on a phone."""

TIPS = "_nongauss_tips"


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
    """Title, labels, type and grid as every plot of the house has them."""
    # A title of given height is not looked for a place above all tick labels, at every layout anew.
    ax.set_title(title, loc="left", y=1.0, fontsize=NORMAL, fontweight="bold")
    ax.set_xlabel(xlabel, fontsize=NORMAL)
    ax.set_ylabel(ylabel, fontsize=NORMAL)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(GREY)
    ax.grid(color="#e4e4e4", linewidth=0.7)
    without_exponents(ax)
    ax.set_axisbelow(True)


def without_exponents(ax: Axes) -> None:
    """Large numbers along the axes with commas or in millions, and no power of ten beside an axis."""
    from matplotlib.ticker import ScalarFormatter

    for axis in (ax.xaxis, ax.yaxis):
        if type(axis.get_major_formatter()) is ScalarFormatter:
            axis.set_major_formatter(_plain_numbers()())


@cache
def _plain_numbers() -> type[Formatter]:
    """The class of formatters of `without_exponents`; matplotlib is loaded by the first plot alone."""
    from matplotlib.ticker import ScalarFormatter

    class PlainNumbers(ScalarFormatter):
        """Numbers as matplotlib writes them, large ones in words of their size."""

        def __init__(self) -> None:
            super().__init__(useOffset=False)
            self.set_powerlimits((-4, 99))
            self.most = 0.0

        def set_locs(self, locs: Any) -> None:
            """Read the places of all ticks."""
            super().set_locs(locs)
            self.most = float(np.abs(np.asarray(locs, dtype=np.float64)).max(initial=0.0))

        def __call__(self, x: float, pos: int | None = None) -> str:
            """The text of one tick."""
            return large_number(x, self.most) if self.most >= _LARGE else super().__call__(x, pos)

    return PlainNumbers


_LARGE, _TOO_LARGE = 1e4, 1e15
_SIZES = ((1e12, "T"), (1e9, "B"), (1e6, "M"))


def large_number(value: float, most: float) -> str:
    """A tick among ticks of which the largest is `most`: in millions (M) and more, else with commas."""
    for size, letter in _SIZES:
        if size <= most < _TOO_LARGE:
            return "0" if value == 0 else f"{value / size:.6g}{letter}"
    return f"{value:,.0f}" if most < _TOO_LARGE else f"{value:.3g}"


def key_above(ax: Axes, n_columns: int = 2) -> None:
    """The key of a plot between its title and its axes, where it covers no data; none without labels."""
    handles, labels = ax.get_legend_handles_labels()
    if not labels:
        return
    n_columns = min(n_columns, len(labels))
    ax.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=n_columns,
        frameon=False,
        fontsize=SMALL,
        borderaxespad=0.2,
        borderpad=0.2,
        handlelength=1.6,
        columnspacing=1.2,
        labelspacing=0.3,
    )
    n_lines = -(-len(labels) // n_columns)
    ax.set_title(
        ax.get_title(loc="left"),
        loc="left",
        y=1.0,
        pad=6.0 + 1.45 * SMALL * n_lines,
        fontsize=NORMAL,
        fontweight="bold",
    )


def ordered_colours(n: int) -> list[str]:
    """Colours of n grades from the lowest to the highest, as #rrggbb."""
    stops = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in _RAMP], dtype=np.float64)
    at = np.linspace(0.0, len(_RAMP) - 1.0, n) if n > 1 else np.array([len(_RAMP) - 1.0])
    mixed = np.column_stack([np.interp(at, np.arange(len(_RAMP)), stops[:, k]) for k in range(3)])
    return ["#" + "".join(f"{round(part):02x}" for part in row) for row in mixed]


def tinted(values: npt.NDArray[np.float64], most: float) -> npt.NDArray[np.float64]:
    """Cells (R, C) as colours (R, C, 4): blue above 0, vermilion below, the stronger the less see-through.

    They stand on any ground, light or dark. `most`: the size that is drawn in full.
    """
    from matplotlib.colors import to_rgb

    strength = np.clip(np.abs(np.nan_to_num(values)) / most, 0.0, 1.0)
    hue = np.where((values >= 0)[..., None], to_rgb(BLUE), to_rgb(VERMILION))
    out: npt.NDArray[np.float64] = np.concatenate([hue, 0.8 * strength[..., None]], axis=-1)
    return out


def tips(artist: Artist, texts: Sequence[str]) -> None:
    """Texts that the report shows under the pointer, one for each mark of the artist in its order."""
    setattr(artist, TIPS, list(texts))


def tips_along(ax: Axes, x: Any, y: Any, texts: Sequence[str]) -> None:
    """Texts that the report shows along a line, at the points (x, y)."""
    marks = ax.scatter(x, y, s=90, color=GREY, alpha=0.0, linewidth=0, zorder=5)
    tips(marks, texts)


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


def shortened(name: str, most: int = 24) -> str:
    """A name cut to `most` characters."""
    return name if len(name) <= most else name[: most - 1] + "…"

"""What the plots of rules share: the columns they draw, bounds, colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.report.metrics import FloatArray
from nongauss.report.plots.style import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a7a00", "#000000")
"""Okabe and Ito\'s colours, in an order in which neighbours differ; used again from the ninth cluster on."""
_MOST_ROWS = 5000
_FEW = 20  # so many levels are shown, and so many whole numbers as steps


def drawn_columns(X: Any, estimator: Any = None) -> pd.DataFrame:
    """The columns of X under the names of the rules; of label columns those with few levels, as text.

    Columns of which an estimator's rules speak are as it reads them: dates are numbers of days, money without
    its sign is a number, and so on. Columns that it left out are not drawn.
    """
    frame = _plain_columns(X)
    if not hasattr(estimator, "_rule_values"):
        return frame
    own = estimator._rule_values(X).set_axis(frame.index, axis=0)
    few = [c for c in own if own[c].dtype != object or 1 < own[c].nunique() <= _FEW]
    looked_at = {str(code.name) for view in estimator._of_fit().views for code in view.codes}
    others = {c: frame[c] for c in frame if c not in own and c in looked_at}
    return pd.DataFrame({**{c: own[c] for c in few}, **others}, index=frame.index)


def value_words(estimator: Any) -> dict[str, Callable[[float], str]]:
    """How values of a column are written, by the names of columns that are no plain numbers: dates."""
    words: dict[str, Callable[[float], str]] = getattr(estimator, "_rule_words", dict)()
    return words


def write_ticks(axis: Axis, words: Callable[[float], str] | None) -> None:
    """A few ticks of an axis in the words of its column; plain numbers where it has none."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if words is not None:
        axis.set_major_locator(MaxNLocator(5, integer=True))
        axis.set_major_formatter(FuncFormatter(lambda value, _: words(float(value))))


def _plain_columns(X: Any) -> pd.DataFrame:
    """The columns of numbers and of few labels, as they are."""
    frame = pd.DataFrame(X)
    if not all(isinstance(name, str) for name in frame.columns):
        frame.columns = pd.Index([f"x{i}" for i in range(frame.shape[1])])
    numbers = set(number_columns(frame))
    kept = [c for c in frame if c in numbers or 1 < frame[c].nunique() <= _FEW]
    return pd.DataFrame(
        {c: frame[c].astype(float) if c in numbers else frame[c].map(str, na_action="ignore") for c in kept}
    )


def number_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns that hold numbers."""
    return frame.select_dtypes("number")


def slant_names(ax: Axes, names: list[str], offset: float = 0.0) -> None:
    """Names below a plot, slanted where they would not fit side by side."""
    long = sum(len(name) for name in names) > 45
    place = np.arange(len(names)) + offset
    ax.set_xticks(place, names, rotation=25 * long, ha="right" if long else "center")


def cluster_colour(k: int, names: list[str]) -> str:
    """The colour of cluster k of those named; grey for rows without one."""
    return PALETTE[k % len(PALETTE)] if k < len(names) else GREY


def some_row_numbers(n_rows: int, most: int = _MOST_ROWS) -> npt.NDArray[np.intp]:
    """Row numbers at equal steps, not too many for a plot."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.intp))


def value_range(values: FloatArray) -> tuple[float, float]:
    """Least and greatest value; half a unit about it where there is one value only."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def half_step(values: FloatArray) -> float:
    """Half of one where a column holds few whole numbers: then a bound is drawn beside its value."""
    distinct = np.unique(values[np.isfinite(values)])
    return 0.5 * float(len(distinct) <= _FEW and bool((distinct == np.round(distinct)).all()))


def rule_ends(
    rules: pd.DataFrame, column: str, limits: tuple[float, float], half: float, k: int = 0
) -> tuple[float, float]:
    """Where a rule begins and ends in a column; at the limits of a plot, rules end side by side."""
    own = rules[rules["column"] == column]
    inset = (0.01 + 0.006 * k) * (limits[1] - limits[0])
    low = max(own["lower"].max() - half if len(own) else -np.inf, limits[0] + inset)
    high = min(own["upper"].min() + half if len(own) else np.inf, limits[1] - inset)
    return float(low), float(high)

"""What the clusters look like: the mean of each column in each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.report.plots.rules import drawn_columns, number_columns, slant_names
from nongauss.report.plots.style import NORMAL, axes_or_new, figure_of, finish, shortened, tinted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_MOST_COLUMNS = 10


class ClusterProfileDisplay:
    """Mean of each column in each cluster, in standard deviations from the mean of all rows.

    Parameters
    ----------
    values : table of the rows.
    labels : (N,) cluster numbers.
    names : names of the clusters.

    Notes
    -----
    The columns in which the clusters differ most come first; a categorical column is shown by level.
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, *, values: pd.DataFrame, labels: npt.ArrayLike, names: list[str]) -> None:
        labels, values = np.asarray(labels), _by_level(values)
        spread = values.std(ddof=0).replace(0.0, np.nan)
        standard = (values - values.mean()) / spread
        profile = pd.DataFrame(
            {name: standard[labels == k].mean() for k, name in enumerate(names) if (labels == k).any()}
        )
        difference = profile.max(axis=1) - profile.min(axis=1)
        self.profile = profile.loc[difference.sort_values(ascending=False).index[:_MOST_COLUMNS]]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> ClusterProfileDisplay:
        """Plot the profile of rows X by their clusters by rule."""
        values = drawn_columns(X, estimator)
        display = cls(values=values, labels=estimator.predict(X), names=estimator.cluster_names_)
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ClusterProfileDisplay:
        """Draw on `ax`, or on a new figure: blue above the mean of all rows, vermilion below.

        `kwargs` go to `pcolormesh`.
        """
        ax = axes_or_new(ax)
        values = self.profile.to_numpy(float)
        most = max(1.0, float(np.nanmax(np.abs(values), initial=0.0)))
        ax.pcolormesh(tinted(values, most), **kwargs)
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                ax.text(
                    j + 0.5,
                    i + 0.5,
                    f"{value:+.1f}" if abs(value) >= 0.05 else "0",
                    ha="center",
                    va="center",
                    fontsize=NORMAL,
                )
        ax.set_yticks(np.arange(len(self.profile)) + 0.5, [shortened(str(c)) for c in self.profile.index])
        slant_names(ax, list(self.profile.columns), 0.5)
        ax.invert_yaxis()
        finish(ax, "Means of clusters, in standard deviations", "", "")
        ax.grid(visible=False)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


def _by_level(frame: pd.DataFrame) -> pd.DataFrame:
    """Each level as a 0/1 column "column = level"; of two levels one."""
    parts = []
    for c in frame:
        if c in set(number_columns(frame)):
            parts.append(frame[c])
            continue
        levels = sorted(frame[c].dropna().unique())
        present = frame[c].where(frame[c].notna())
        parts += [
            (present == level).where(present.notna()).astype(float).rename(f"{c} = {level}")
            for level in levels[: len(levels) - (len(levels) == 2)]
        ]
    return pd.concat(parts, axis=1)

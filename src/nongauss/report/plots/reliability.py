"""How reliable the probabilities of a classification are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nongauss.core.errors import InputError
from nongauss.report.plots.style import (
    BLUE,
    GREY,
    INK,
    axes_or_new,
    figure_of,
    finish,
    key_above,
    tips,
    vector,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_MOST_BINS = 10
_FEWEST_IN_A_BIN = 10


class ReliabilityDisplay:
    """Observed frequency of events against their predicted probability.

    Parameters
    ----------
    probability : (M,) predicted probabilities.
    happened : (M,) whether the event occurred, True or False.
    event : a description of the event.

    Notes
    -----
    Bins hold about equally many predictions, at least 10 if there are that many: `predicted` and `observed`
    are their means, `counts` their sizes.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self, *, probability: npt.ArrayLike, happened: npt.ArrayLike, event: str = "the class"
    ) -> None:
        p = vector(probability, "probability")
        true = vector(happened, "happened", like=p)
        self.event = event
        order = np.argsort(p, kind="stable")
        parts = np.array_split(order, int(np.clip(len(p) // _FEWEST_IN_A_BIN, 1, _MOST_BINS)))
        self.counts = np.array([len(part) for part in parts])
        self.predicted = np.array([p[part].mean() for part in parts])
        self.observed = np.array([true[part].mean() for part in parts])
        self.chance = np.array([np.sqrt((p[part] * (1 - p[part])).mean() / len(part)) for part in parts])

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> ReliabilityDisplay:
        """Plot the reliability of `estimator.predict_proba(X)` on the labels y; `kwargs` style the line."""
        if not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"{type(estimator).__name__} has no `predict_proba`; reliability needs a classifier that "
                "predicts probabilities."
            )
        return cls.from_predictions(y, estimator.predict_proba(X), estimator.classes_, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, y_true: Any, probabilities: npt.ArrayLike, classes: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> ReliabilityDisplay:
        """Plot probabilities (N, C) of `classes` against labels (N,).

        For two classes, the second is shown; for more, every class of every row counts as one prediction.
        """
        names, p = np.asarray(classes), np.asarray(probabilities, dtype=np.float64)
        if p.shape != (len(np.asarray(y_true)), len(names)):
            raise InputError(
                f"`probabilities` must have one row a label and {len(names)} columns, got shape {p.shape}."
            )
        happened = np.asarray(y_true)[:, None] == names
        if len(names) == 2:
            display = cls(probability=p[:, 1], happened=happened[:, 1], event=repr(names.tolist()[1]))
        else:
            display = cls(probability=p.ravel(), happened=happened.ravel(), event="each class")
        return display.plot(ax=ax, **kwargs)

    def _told(self, number: int) -> str:
        """The text that is shown for one bin."""
        return (
            f"given {100 * self.predicted[number]:.0f} % on average, happened in "
            f"{100 * self.observed[number]:.0f} % of {self.counts[number]}"
        )

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ReliabilityDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = axes_or_new(ax)
        low, high = (np.clip(self.predicted + side * 1.96 * self.chance, 0, 1) for side in (-1, 1))
        total = int(self.counts.sum())
        ax.fill_between(
            self.predicted,
            low,
            high,
            color=GREY,
            alpha=0.18,
            linewidth=0,
            label=f"chance alone, {total} predictions (95 %)",
        )
        ax.plot([0, 1], [0, 1], color=INK, linestyle="--", linewidth=1, label="perfectly calibrated")
        style = {"color": BLUE, "linewidth": 1.8, "marker": "o", "markersize": 4, "label": "this model"}
        (line,) = ax.plot(self.predicted, self.observed, **{**style, **kwargs})
        tips(line, [self._told(number) for number in range(len(self.counts))])
        ax.set(xlim=(0, 1), ylim=(0, 1))
        finish(
            ax, "Reliability", f"predicted probability of {self.event}", "share of rows in which it happened"
        )
        key_above(ax)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

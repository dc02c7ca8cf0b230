"""What is known of a fitted model beyond the model itself: its target, its rows, how good it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float64, Shaped

from nongauss.core.records import persistable

LIMITS = ("censoring", "y_upper")
"""What `fit` takes by these names says of which rows the target is only a limit."""

_MOST_QUANTILES = 200
_MOST_REPEATED = 2000


@persistable("estimator.Marginal")
@dataclass(frozen=True)
class Marginal:
    """The law of a training target when no column is looked at: `values` (K,), each with its `weights` (K,).

    Numbers are quantiles at the middles of equal steps of probability, values that did occur; labels are all
    labels with their numbers of rows. `beside` says of which values the target was only a limit, (K,) each,
    as `fit` takes it: `censoring` or `y_upper`.
    """

    values: Shaped[np.ndarray, " K"]
    weights: Float64[np.ndarray, " K"]
    beside: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, y: Any, *, labels: bool, beside: Mapping[str, npt.NDArray[Any]] | None = None) -> Marginal:
        """Of targets (N,). Of numbers at most N / 2 quantiles are kept, and at most 200.

        `beside`: what `fit` takes beside y, of which the limits of y are kept.
        """
        y = np.asarray(y)
        if labels:
            values, counts = np.unique(y.astype(str) if y.dtype == object else y, return_counts=True)
            return cls(values, counts.astype(np.float64))
        n = min(max(2, len(y) // 2), _MOST_QUANTILES)
        at = np.ceil(len(y) * (np.arange(n) + 0.5) / n).astype(np.intp) - 1
        rows = np.argsort(y, kind="stable")[at]
        limits = {name: np.asarray(cells)[rows] for name, cells in (beside or {}).items() if name in LIMITS}
        return cls(y[rows], np.full(n, 1.0 / n), limits)

    def sample(self) -> npt.NDArray[Any]:
        """Targets of about this law, for a model that is fitted to them: each value at least once."""
        if np.ptp(self.weights) == 0:
            return self.values
        share = self.weights * min(1.0, _MOST_REPEATED / self.weights.sum())
        repeated: npt.NDArray[Any] = np.repeat(self.values, np.maximum(1, np.round(share)).astype(np.intp))
        return repeated


@persistable("estimator.About")
@dataclass(frozen=True)
class About:
    """What `nongauss fit` knew of a model that it saved; whatever is not known is empty.

    `kind` of the target, its `levels` from lowest to highest, the `scale` by which a table's numbers are
    divided (100 of per cent), and the `unit` that they are in as a form of numbers (".# ms"); `asked` and
    `became`: the model that was asked for and the one that was fitted.
    `sides`: by label of the column that marks censored rows, 1 where the target is above, -1 where below.
    `missing`: cells that stand for a gap, "COLUMN=VALUE"; `spellings`: by column, the label that a word in
    any case means. `n_rows` fitted, `n_held_out` judged by. `columns`: (name, kind) of those that the model
    looks at, `ignored`: (name, reason), `beside`: columns by what they are for, such as exposure. `figures`
    of the held-out rows by model, the `verdict` in sentences. `marginal`: the law of the target.
    `fitted_at`: UTC.
    """

    target: str | None = None
    kind: str | None = None
    task: str | None = None
    levels: Sequence[str] = ()
    scale: float = 1.0
    asked: str | None = None
    became: str | None = None
    source: str | None = None
    n_rows: int | None = None
    n_held_out: int = 0
    columns: Sequence[tuple[str, str]] = ()
    ignored: Sequence[tuple[str, str]] = ()
    beside: Mapping[str, str] = field(default_factory=dict)
    sides: Mapping[str, int] = field(default_factory=dict)
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    verdict: Sequence[str] = ()
    missing: Sequence[str] = ()
    spellings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    marginal: Marginal | None = None
    fitted_at: str | None = None
    version: str | None = None
    unit: str = ""

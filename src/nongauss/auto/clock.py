"""The time of a search: what its budget leaves, and what a fit is expected to take by those already done."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

NO_TIME = "no time left for it"
"""Why a candidate is out that the time budget left none for."""

MOST_AFTER = 0.5
"""Largest share of the budget that is kept for what comes after the fits."""

GROWTH = 1.5
"""Power of the number of rows by which the time of a fit is expected to grow."""

FROM_TRIAL = 3.0
"""How many times as long as a trial a fit to as many rows is expected to take, until one tells."""

WORTH_A_START = 0.3
"""Share of its expected time that has to be left for the first rival's fit, which can be cut short."""

FIT_ENDS = 0.9
"""Share of the time for fits at which a fit is told to stop: it has to end its iteration, and be judged."""


@dataclass
class SearchTime:
    """The time of a search: its budget in seconds (None: any), and whether it is to stop.

    After the fits come `n_laws` laws that stand on them, of which each is expected to take `law` seconds, and
    the figures, which take `figures`. `earlier`: seconds of former calls of a search that goes on.
    """

    budget: float | None
    begin: float = field(default_factory=time.monotonic)
    stopped: bool = False
    law: float = 0.0
    n_laws: int = 0
    figures: float = 0.0
    earlier: float = 0.0
    cost: float = 0.0
    spent: float = 0.0
    ratios: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self.begin + self.earlier

    @property
    def for_fits(self) -> float:
        """Seconds of the budget that fits may take, without those for what comes after."""
        if self.budget is None:
            return np.inf
        return self.budget - min(self.n_laws * self.law + self.figures, MOST_AFTER * self.budget)

    def is_over(self, share: float = 1.0) -> bool:
        """Was it stopped, or is this share of the time for fits used up?"""
        return self.stopped or self.seconds > share * self.for_fits

    def has(self, seconds: float) -> bool:
        """Is there time for something of which this is expected?"""
        return not self.is_over() and self.seconds + seconds <= self.for_fits

    def has_for_a_law(self) -> bool:
        """Is there time for a law that stands on a fit?"""
        ends = self.seconds + self.law + self.figures
        return not self.stopped and (self.budget is None or ends < self.budget)

    def expected(self, cost: float, trial: float | None, rows: float) -> float:
        """Seconds that a fit is expected to take.

        By its `trial`, which took so long on 1 / `rows` of the rows; else by the units of cost of fits done.
        """
        if trial is not None:
            ratio = float(np.median(self.ratios)) if self.ratios else FROM_TRIAL
            return float(trial * ratio * rows**GROWTH)
        return cost * self.spent / self.cost if self.cost else 0.0

    def took(self, cost: float, seconds: float, trial: float | None, rows: float) -> None:
        """A fit took so long; see `expected`."""
        self.cost, self.spent = self.cost + cost, self.spent + seconds
        if trial:
            self.ratios.append(seconds / trial / rows**GROWTH)

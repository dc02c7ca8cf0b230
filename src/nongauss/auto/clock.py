"""The time of a search: what its budget leaves, and what a fit is expected to take by those already done."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

NO_TIME = "no time left for it"
"""Why a candidate is out that the time budget left none for."""

MOST_AFTER = 0.5
"""Largest share of the budget that is kept for laws that stand on fits."""

LEAST_END, MOST_END = 0.1, 0.3
"""Shares of the budget that are kept for what comes after fits and laws, at least and at most."""

SLOWER = 1.5
"""How many times as long as by a few trees a forest is expected to take, which a busy machine may hinder."""

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

    After the fits come `n_laws` laws that stand on them, of which each is expected to take `law` seconds;
    what comes at the end takes `figures`. `earlier`: seconds of former calls of a search that goes on.
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
    def for_all(self) -> float:
        """Seconds of the budget for fits and laws; the rest is for shares, calibration and figures."""
        if self.budget is None:
            return np.inf
        return self.budget - min(max(self.figures, LEAST_END * self.budget), MOST_END * self.budget)

    @property
    def for_fits(self) -> float:
        """Seconds that fits may take, without those for as many laws as half of the budget is enough for."""
        if self.budget is None or not self.law:
            return self.for_all
        return self.for_all - self.law * min(self.n_laws, int(MOST_AFTER * self.budget / self.law))

    def is_over(self, share: float = 1.0) -> bool:
        """Was it stopped, or is this share of the time for fits used up?"""
        return self.stopped or self.seconds > share * self.for_fits

    def has(self, seconds: float) -> bool:
        """Is there time for something of which this is expected?"""
        return not self.is_over() and self.seconds + seconds <= self.for_fits

    def is_late(self) -> bool:
        """Is so little of the budget left that figures are not worth it?"""
        return self.seconds > self.for_all

    def has_for_a_law(self) -> bool:
        """Is there time for a law that stands on a fit?"""
        return not self.stopped and self.seconds + self.law <= self.for_all

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


TIMED_TREES = 6
"""Trees by which the time of a forest is told."""


def seconds_of_trees(grow: Callable[[int], object]) -> tuple[float, float]:
    """Seconds that `grow(n_trees)` takes with next to no trees, and what each tree adds.

    A first call, whose imports take their time once, is not counted.
    """
    seconds = []
    for n_trees in (1, 1, TIMED_TREES):
        begin = time.monotonic()
        grow(n_trees)
        seconds.append(time.monotonic() - begin)
    return SLOWER * seconds[1], SLOWER * max(seconds[2] - seconds[1], 0.0) / (TIMED_TREES - 1)

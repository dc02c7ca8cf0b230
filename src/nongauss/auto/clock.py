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

LEAST_OF_A_LAW = 0.25
"""Share of its trees from which the forest of such a law is grown, where there is no time for all of them."""

LEAST_END, MOST_END = 0.1, 0.3
"""Shares of the budget that are kept for what comes after fits and laws, at least and at most."""

SLOWER = 1.25
"""How many times as long as by a few trees a forest is expected to take, which a busy machine may hinder."""

GROWTH = 1.5
"""Power of the number of rows by which the time of a fit is expected to grow."""

FROM_TRIAL = 3.0
"""How many times as long as a trial a fit to as many rows is expected to take, until one tells."""

SHORTEST = 1e-3
"""Seconds that a fit takes at least."""

WORTH_A_START, WORTH_A_START_AT_LAST = 0.3, 0.1
"""Share of its expected time that has to be left for a fit, and for a Gaussian process after which nothing
follows, since that ends soon when it is told to; a fit that is cut short keeps its last state."""

FIT_ENDS = 0.95
"""Share of the time for fits at which a fit is told to stop: it has to end its iteration, and be judged."""


@dataclass
class SearchTime:
    """The time of a search: its budget in seconds (None: any).

    `stopped`: is it to stop? `has_cut`: did it cut a fit short? `reserves`: do laws that stand on fits keep
    their part of the time?

    After the fits come `n_laws` laws that stand on them, of which each is expected to take `law` seconds, the
    part `fixed` of them however few its trees;
    what comes at the end takes `figures`. `earlier`: seconds of former calls of a search that goes on.
    """

    budget: float | None
    begin: float = field(default_factory=time.monotonic)
    stopped: bool = False
    has_cut: bool = False
    reserves: bool = True
    law: float = 0.0
    fixed: float = 0.0
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
        """Seconds that fits may take, without those for laws, which take half of the budget at most."""
        if self.budget is None or not self.reserves:
            return self.for_all
        after = min(self.n_laws * self.law, MOST_AFTER * self.budget)
        return self.for_all - (after if after >= LEAST_OF_A_LAW * self.law else 0.0)

    def is_over(self, share: float = 1.0) -> bool:
        """Was it stopped, or is this share of the time for fits used up?"""
        return self.stopped or self.seconds > share * self.for_fits

    def has(self, seconds: float) -> bool:
        """Is there time for something of which this is expected?"""
        return not self.is_over() and self.seconds + seconds <= self.for_fits

    def is_late(self) -> bool:
        """Is so little of the budget left that figures are not worth it?"""
        return self.seconds > self.for_all

    def share_of_a_law(self) -> float:
        """The share of the trees of a law that stands on a fit for which there is time; 0 for too few."""
        left, of_trees = self.for_all - self.seconds, self.law - self.fixed
        share = min((left - self.fixed) / of_trees, 1.0) if of_trees > 0.0 else float(left >= self.law)
        return 0.0 if self.stopped or share < LEAST_OF_A_LAW else share

    def expected(self, cost: float, trial: float | None, rows: float) -> float:
        """Seconds that a fit is expected to take.

        By its `trial`, which took so long on 1 / `rows` of the rows; else by the units of cost of fits done.
        """
        if trial is not None:
            ratio = float(np.median(self.ratios)) if self.ratios else FROM_TRIAL
            return float(trial * ratio * rows**GROWTH)
        return cost * self.spent / self.cost if self.cost else 0.0

    def rows_in_time(self, trial: float, n_rows: int) -> int:
        """How many rows a fit may have that is to end in half of what is left, by its trial with `n_rows`."""
        if self.stopped or self.budget is None:
            return 0
        left = max(0.5 * (FIT_ENDS * self.for_all - self.seconds), 0.0)
        return int(n_rows * (left / self.expected(1.0, max(trial, SHORTEST), 1.0)) ** (1.0 / GROWTH))

    def looks_at(self, share: float) -> None:
        """Expect laws and figures to take this share of their time, since they see this share of the rows."""
        self.law, self.fixed, self.figures = share * self.law, share * self.fixed, share * self.figures

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

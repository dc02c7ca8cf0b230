"""The search: candidates are fitted, judged by what they say of rows without them, and given shares.

A screen of a few hundred rows, with hasty fits, tells which candidates are fitted to all. Time is spent in
the order that it gives; Ctrl-C and the end of the time budget keep what there is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nongauss.auto.candidate import Candidate
from nongauss.auto.candidates import LARGE, MOST_JUDGED
from nongauss.auto.clock import FIT_ENDS, NO_TIME, WORTH_A_START, WORTH_A_START_AT_LAST, SearchTime
from nongauss.auto.contenders import (
    SCREEN_KEEPS,
    SCREEN_KEEPS_OF_LARGE,
    Contender,
    TrainingRows,
    candidate_of,
    flattery,
    means_of_trials,
    of_other_families,
    past_screen,
    within_reach,
)
from nongauss.auto.inputs import arcsinh_of_skewed, column_of_groups
from nongauss.auto.kept import Done, KeptSearch
from nongauss.core.errors import InputError
from nongauss.optimise.course import Progress, Status
from nongauss.predictive.distribution import FloatArray

SCREEN_ROWS, SCREEN_ROWS_OF_LARGE, SCREEN_LARGE = 300, 600, 1500
"""Rows of the screen; those of a table that is larger than the last."""

WORTH_MORE_ROWS = 1.5
"""How many times as many rows as in the screen are worth a fit, where there is no time for all."""

STOPPED = "stopped (Ctrl-C)"
"""Why a candidate is out whose fit was under way when the search was stopped."""

SCREEN_LEAVES = 0.7
"""Share of the time for fits from which on the screen takes no more."""

FAILED = (InputError, ArithmeticError, np.linalg.LinAlgError, ValueError)
"""What a candidate may fail with without ending the search; which one and why is in the leaderboard."""


Judge = Callable[[Any, TrainingRows], FloatArray]
Watcher = Callable[[Progress], Any]


def nothing_follows(contender: Contender, rows: TrainingRows, clock: SearchTime) -> None:
    """Tell the clock nothing: what comes after the fits of this search takes no time."""


@dataclass
class Search:
    """Fits candidates to rows within a time budget. `judge(left_out, rows)` tells log densities (N,).

    `look_ahead(contender, rows, clock)` tells the clock what comes after the fits, by the first fitted one.
    `kept`: the file in which what is done is kept, if any. `later`: how many laws will stand on fits, about.
    """

    rows: TrainingRows
    judge: Judge
    seed: int
    clock: SearchTime
    watchers: Sequence[Watcher] = ()
    look_ahead: Callable[[Contender, TrainingRows, SearchTime], None] = nothing_follows
    kept: KeptSearch | None = None
    later: int = 0
    done: int = 0
    total: int = 1
    best: float = -np.inf
    has_rival: bool = False
    trials: dict[str, Contender] = field(default_factory=dict)
    group: int | None = None

    def run(self, candidates: Sequence[Candidate], screen: bool = True) -> list[Contender]:
        """Every candidate, fitted and judged or with the reason why not; one at least is in.

        Without a `screen` all are fitted, as long as there is time; so they are where it would see all rows
        and fit no faster.
        """
        changes = arcsinh_of_skewed(self.rows.table) if any(c.arcsinh for c in candidates) else None
        self.group = column_of_groups(self.rows.table) if any(c.group_effects for c in candidates) else None
        out = [Contender(c.name, c, change=changes if c.arcsinh else None) for c in candidates]
        for contender in out:
            if candidate_of(contender).arcsinh and changes is None:
                contender.why_out = "no column is strongly skewed"
            if candidate_of(contender).group_effects and self.group is None:
                contender.why_out = "no column has labels of many groups"
        open_ = [c for c in out if not c.why_out]
        floors = [
            c for c in open_ if candidate_of(c).is_floor
        ]  # next to no cost: so there is a model at once
        rivals = [c for c in open_ if not candidate_of(c).is_floor]
        keeps = SCREEN_KEEPS if len(self.rows) < LARGE else SCREEN_KEEPS_OF_LARGE
        tells_more = len(self.rows) > SCREEN_ROWS or any(candidate_of(c).quick for c in rivals)
        most = keeps if screen and tells_more else len(rivals)
        self.expect(len(floors) + len(rivals) + (most if len(rivals) > most else 0))
        for contender in floors:
            self._fit(contender, any(other.is_in for other in floors))
        fitted = [c for c in floors if c.is_in]
        if self.clock.budget is not None and fitted and not self.clock.is_over():
            self.look_ahead(fitted[0], self.rows, self.clock)
        chosen = rivals if len(rivals) <= most else self._screened(rivals, most)
        self.expect(len(chosen))
        for contender in chosen:
            self._fit(contender, any(other.is_in for other in out))
        if not any(contender.is_in for contender in rivals):
            self._adopt(chosen, fitted)
        if not any(contender.is_in for contender in out):
            if any(contender.why_out == STOPPED for contender in out):
                raise KeyboardInterrupt
            reasons = "; ".join(f"{c.name}: {c.why_out}" for c in out)
            raise InputError(f"No candidate could be fitted to this table ({reasons}).")
        return out

    def _screened(self, rivals: list[Contender], most: int) -> list[Contender]:
        """The rivals worth a fit to all rows, `most` of them, the best first. Others get the reason why."""
        small = self.rows.first(SCREEN_ROWS if len(self.rows) <= SCREEN_LARGE else SCREEN_ROWS_OF_LARGE)
        longest = 0.0
        for contender in rivals:
            late = self.clock.is_over(SCREEN_LEAVES) or not self.clock.has(longest)
            if late and (self.trials or self.best > -np.inf):
                contender.why_out = self.no_time()
                continue
            trial = Contender(contender.name, contender.candidate, change=contender.change)
            self._try(trial, small, is_screen=True)
            longest = max(longest, trial.seconds)
            if trial.is_in:
                self.trials[contender.name] = trial
            else:
                contender.why_out = trial.why_out
            self.done += 1
            self.tell()
        chosen = within_reach(rivals, self.trials, small.weight, most)
        if len(self.rows) < LARGE:
            return chosen + past_screen(chosen, rivals, self.trials, small.weight)
        return chosen + of_other_families(chosen, rivals, self.trials, small.weight)

    def _adopt(self, chosen: Sequence[Contender], floors: Sequence[Contender]) -> None:
        """Where there was no time to fit a rival to all rows: the best of the screen, fitted to fewer.

        To as many rows as there is time for; or, as in the screen, hastily to a few. All are judged by these.
        """
        best = next((c for c in chosen if c.name in self.trials), None)
        if best is None or not (self.clock.stopped or best.why_out == NO_TIME):
            return
        trial = self.trials[best.name]
        assert trial.log_density is not None
        n_tried, self.clock.reserves = len(trial.log_density), False
        self._fit_to_many(best, trial.seconds, n_tried)
        if not best.is_in or self._says_less(best, trial):
            best.model, best.left_out, best.log_density = trial.model, trial.left_out, trial.log_density
            best.seconds, best.gain, best.why_out = trial.seconds, trial.gain, ""
            best.n_fitted = n_tried
        assert best.log_density is not None
        n_judged = len(best.log_density)
        for floor in floors:
            assert floor.log_density is not None
            floor.left_out = floor.left_out[:n_judged]
            floor.log_density = floor.log_density[:n_judged]

    def _fit_to_many(self, contender: Contender, seconds: float, n_tried: int) -> None:
        """Fit a contender to as many rows as there is time for, by the `seconds` of its trial with `n_tried`.

        Again to more, as long as what a fit took tells that there is time for these; the last that could be
        fitted is kept.
        """
        n_before, cost = n_tried, candidate_of(contender).cost
        self.clock.looks_at(n_tried / len(self.rows))
        while n_before < len(self.rows):
            n = min(self.clock.rows_in_time(seconds, n_tried), len(self.rows))
            if n <= WORTH_MORE_ROWS * n_before and (n < len(self.rows) or n_before == n_tried):
                break
            last, contender.why_out = replace(contender, why_out=""), ""
            contender.n_fitted = n if n < len(self.rows) else 0
            self.clock.looks_at(n / n_before)
            self._try(contender, self.rows.first(n))
            self.clock.took(cost, contender.seconds, seconds, n / n_tried)
            self.total, self.done, n_before = self.total + 1, self.done + 1, n
            self.tell()
            failed = bool(contender.why_out)
            if failed and last.is_in:
                vars(contender).update(vars(last))
            if failed or self.clock.has_cut:
                break

    def _says_less(self, contender: Contender, trial: Contender) -> bool:
        """Does a contender, whose fit may have been cut short, say less of a trial's rows than that does?"""
        assert contender.log_density is not None
        assert trial.log_density is not None
        n = len(trial.log_density)
        return bool(self.rows.weight[:n] @ (contender.log_density[:n] - trial.log_density) < 0.0)

    def _fit(self, contender: Contender, has_other: bool, worth: float = WORTH_A_START) -> None:
        """Fit a contender to all rows, if there is time for a share of the fit that is `worth` a start."""
        candidate, trial = candidate_of(contender), self.trials.get(contender.name)
        known = rows = None
        if trial is not None and trial.log_density is not None:
            known, rows = trial.seconds, len(self.rows) / len(trial.log_density)
        expected = self.clock.expected(candidate.cost, known, rows or 1.0)
        self.clock.reserves = self.has_rival or candidate.is_floor  # what laws are to stand on goes first
        if has_other and not self.clock.has(worth * expected):
            contender.why_out = self.no_time()
            return
        self._try(contender, self.rows)
        self.clock.took(candidate.cost, contender.seconds, known, rows or 1.0)
        self.done += 1
        if contender.log_density is not None:
            self.has_rival |= not candidate.is_floor
            judged = self.rows.weight[: len(contender.log_density)]
            self.best = max(self.best, float(np.average(contender.log_density, weights=judged)))
        self.tell()

    def refit(self, contender: Contender, former: Any) -> None:
        """Fit a contender to all rows, from where a `former` fit of the same candidate came to.

        Raises InputError where it cannot be fitted.
        """
        self._try(contender, self.rows, former=former)
        if contender.model is None:
            raise InputError(f"{contender.name!r} could not be fitted again: {contender.why_out}.")
        self.done += 1
        self.total = max(self.total, self.done)
        self.tell()

    def use_rest(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Contenders that there was no time for, and that are fitted after all in what is left of it."""
        late = [c for c in contenders if c.why_out == NO_TIME and c.candidate is not None and not c.base]
        if any(c.n_fitted for c in contenders):
            return []
        told = means_of_trials(self.trials, self.rows.weight)
        self.clock.n_laws = 0
        if not any(c.base and c.is_in for c in contenders):
            self.clock.figures = 0.0  # without such laws they take next to no time
        self.expect(len(late))
        for contender in sorted(late, key=lambda c: -told.get(c.name, -np.inf)):
            contender.why_out = ""
            ends_soon = candidate_of(contender).resume is not None
            self._fit(contender, True, WORTH_A_START_AT_LAST if ends_soon else WORTH_A_START)
        return [c for c in late if c.is_in]

    def no_time(self) -> str:
        """Why a candidate whose turn it is is not fitted where the search is to end: one step less."""
        self.total -= 1
        return "stopped before its turn" if self.clock.stopped else NO_TIME

    def timed(self, contender: Contender, work: Callable[[], None], share: float = 1.0) -> None:
        """Do what gives a contender its law, and note the time; Ctrl-C leaves it out and ends the search.

        `share`: of the trees of its forest that are grown.
        """
        begin = self.clock.seconds
        try:
            work()
        except KeyboardInterrupt:
            self.clock.stopped = True
            contender.why_out = STOPPED
        contender.seconds = self.clock.seconds - begin
        fixed = self.clock.fixed
        self.clock.law = max(self.clock.law, fixed + (contender.seconds - fixed) / share)
        self.done += 1
        self.tell()

    def expect(self, n_steps: int) -> None:
        """So many fits and laws are known to follow what is done, and `later` ones perhaps."""
        self.total = self.done + n_steps + self.later

    def tell(self) -> None:
        """Let those who watch know how far it is; one that returns True ends the search."""
        progress = Progress(self.done, self.total, self.best, self.clock.seconds)
        said = [watcher(progress) is True for watcher in self.watchers]
        if any(said):
            self.clock.stopped = True

    def _try(
        self, contender: Contender, rows: TrainingRows, is_screen: bool = False, former: Any = None
    ) -> None:
        """Fit a contender to rows, or read what a file has of that, and judge it; or note why it is out."""
        begin, step = self.clock.seconds, f"{'trial of ' if is_screen else ''}{contender.name}"
        if not is_screen and len(rows) < len(self.rows):
            step += f" of {len(rows)} rows"
        build = candidate_of(contender).quick if is_screen else None
        model = (build or candidate_of(contender).build)(self.seed, len(rows))
        found = None if self.kept is None else self.kept.done(step)
        try:
            if found is None:
                self._fit_model(model, contender, rows, step, former)
            else:
                self.clock.earlier += found.seconds
                model, contender.why_out = found.model, found.why_out
            if model is not None:
                self._judge(model, contender, rows)
        except KeyboardInterrupt:
            self.clock.stopped = True
            contender.why_out = STOPPED
        except FAILED as error:
            contender.why_out = f"cannot be fitted: {error}"
        contender.seconds = self.clock.seconds - begin
        if self.kept is not None and found is None and not self.clock.stopped:
            self.kept.keep(step, Done(contender.model, contender.why_out, contender.seconds))

    def _fit_model(
        self, model: Any, contender: Contender, rows: TrainingRows, step: str, former: Any
    ) -> None:
        """Fit a model to rows, no longer than the clock allows; a fit that was cut short keeps its state."""
        candidate, share = candidate_of(contender), SCREEN_LEAVES if step.startswith("trial") else FIT_ENDS
        model.set_params(callbacks=[lambda progress: self.clock.is_over(share)])
        if candidate.group_effects:
            model.set_params(group=self.group if former is None else former.group)
        keeps = self.kept is not None and "checkpoint" in model.get_params(deep=False)
        if self.kept is not None and keeps:
            model.set_params(checkpoint=self.kept.path_of(step))
        if former is not None and candidate.resume is not None:
            candidate.resume(model, former)
        table = rows.table if contender.change is None else contender.change(rows.table)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(table, rows.target, sample_weight=rows.weight, **rows.beside)
        model.set_params(callbacks=None, **({"checkpoint": None} if keeps else {}))
        if model.stop_reason_ == Status.STOPPED.value:  # its last state is kept
            if self.clock.is_over(share):
                self.clock.has_cut = True
            else:
                self.clock.stopped = True  # Ctrl-C within its fit

    def _judge(self, model: Any, contender: Contender, rows: TrainingRows) -> None:
        """Give a contender its fitted model, what that says of rows without them, and the log densities."""
        candidate, judged = candidate_of(contender), rows.first(MOST_JUDGED)
        table = judged.table if contender.change is None else contender.change(judged.table)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            left_out = candidate.left_out(model, table, judged.target, judged.left_out, **judged.beside)
            log_density = self.judge(left_out, judged)
            if candidate.gain_of_average is not None:
                contender.gain = candidate.gain_of_average(model, table, judged.target, judged.left_out)
        if not np.isfinite(log_density).any():
            contender.why_out = "its density is nowhere a number"
            return
        contender.model, contender.left_out = model, left_out
        flattered = flattery(candidate.n_parameters(model), float(rows.weight.sum()))
        contender.log_density = log_density + contender.gain - flattered

"""The search: candidates are fitted, judged by what they say of rows without them, and given shares.

A screen of a few hundred rows, with hasty fits, tells which candidates are fitted to all. Time is spent in
the order that it gives; Ctrl-C and the end of the time budget keep what there is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nongauss.auto.candidates import LARGE, MOST_JUDGED, Candidate
from nongauss.auto.clock import FIT_ENDS, NO_TIME, WORTH_A_START, SearchTime
from nongauss.auto.inputs import Arcsinh, arcsinh_of_skewed
from nongauss.auto.kept import Done, KeptSearch
from nongauss.auto.stacking import stacked
from nongauss.core.errors import InputError
from nongauss.optimise.course import Progress, Status
from nongauss.predictive.distribution import FloatArray
from nongauss.tables.frame import InputTable

SCREEN_ROWS, SCREEN_ROWS_OF_LARGE, SCREEN_LARGE = 300, 600, 1500
"""Rows of the screen; those of a table that is larger than the last."""

REACH, SCREEN_KEEPS, SCREEN_KEEPS_OF_LARGE = 0.1, 3, 2
"""Nats a row behind the best, beyond two standard errors, from which a candidate is out of reach; and how
many are kept at most, also of tables of `LARGE` rows and more."""

REACH_OF_FAMILY = 0.6
"""Of a table of `LARGE` rows the best candidate of each other family is kept too, if it is so near in the
screen: a few hundred rows tell the laws of one family apart, but not which family gains most from more."""

STOPPED = "stopped (Ctrl-C)"
"""Why a candidate is out whose fit was under way when the search was stopped."""

SCREEN_LEAVES = 0.7
"""Share of the time for fits from which on the screen takes no more."""

FAILED = (InputError, ArithmeticError, np.linalg.LinAlgError, ValueError)
"""What a candidate may fail with without ending the search; which one and why is in the leaderboard."""


@dataclass(frozen=True)
class TrainingRows:
    """Distinct rows in an order by their content: the table, its encoding X (N, D), and the targets.

    `y` (N,): numbers, or the number of each row's class; `target` (N,) what estimators are fitted to;
    `beside` arrays (N,) that they are given by name, such as `exposure`.
    """

    table: InputTable
    X: FloatArray
    y: FloatArray
    target: Any
    weight: FloatArray
    beside: Mapping[str, FloatArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.y)

    def first(self, n: int) -> TrainingRows:
        """The first n rows, a random sample since the order is that of a hash."""
        if n >= len(self):
            return self
        rows = np.arange(n)
        own = {name: values[:n] for name, values in self.beside.items()}
        return TrainingRows(
            self.table.take(rows), self.X[:n], self.y[:n], self.target[:n], self.weight[:n], own
        )


@dataclass
class Contender:
    """A candidate on its way: what was fitted, what it says of rows without them, or why it is out.

    `left_out`: its laws of the judged rows, or probabilities (N, C); `log_density` (N,) of these, less what
    its hyper-parameters flatter; `local` a local law on it, `base` the name of the contender it stands on;
    `n_fitted` the number of rows it was fitted to, where these are not all.
    """

    name: str
    candidate: Candidate | None = None
    model: Any = None
    change: Arcsinh | None = None
    left_out: Any = None
    log_density: FloatArray | None = None
    seconds: float = 0.0
    why_out: str = ""
    local: Any = None
    base: str = ""
    share: float = 0.0
    n_fitted: int = 0

    @property
    def is_in(self) -> bool:
        """Was it fitted and judged?"""
        return self.log_density is not None


Judge = Callable[[Any, TrainingRows], FloatArray]
Watcher = Callable[[Progress], Any]


def nothing_follows(contender: Contender, rows: TrainingRows, clock: SearchTime) -> None:
    """Tell the clock nothing: what comes after the fits of this search takes no time."""


@dataclass
class Search:
    """Fits candidates to rows within a time budget. `judge(left_out, rows)` tells log densities (N,).

    `look_ahead(contender, rows, clock)` tells the clock what comes after the fits, by the first fitted one.
    `kept`: the file in which what is done is kept, if any.
    """

    rows: TrainingRows
    judge: Judge
    seed: int
    clock: SearchTime
    watchers: Sequence[Watcher] = ()
    look_ahead: Callable[[Contender, TrainingRows, SearchTime], None] = nothing_follows
    kept: KeptSearch | None = None
    done: int = 0
    total: int = 1
    best: float = -np.inf
    has_rival: bool = False
    trials: dict[str, Contender] = field(default_factory=dict)

    def run(self, candidates: Sequence[Candidate], screen: bool = True) -> list[Contender]:
        """Every candidate, fitted and judged or with the reason why not; one at least is in.

        Without a `screen` all are fitted, as long as there is time.
        """
        changes = arcsinh_of_skewed(self.rows.table) if any(c.arcsinh for c in candidates) else None
        out = [Contender(c.name, c, change=changes if c.arcsinh else None) for c in candidates]
        for contender in out:
            if _of(contender).arcsinh and changes is None:
                contender.why_out = "no column is strongly skewed"
        open_ = [c for c in out if not c.why_out]
        floors = [c for c in open_ if _of(c).is_floor]  # next to no cost: so there is a model at once
        rivals = [c for c in open_ if not _of(c).is_floor]
        keeps = SCREEN_KEEPS if len(self.rows) < LARGE else SCREEN_KEEPS_OF_LARGE
        most = keeps if screen else len(rivals)
        self.total = len(floors) + len(rivals) + (most if len(rivals) > most else 0)
        for contender in floors:
            self._fit(contender, any(other.is_in for other in floors))
        fitted = [c for c in floors if c.is_in]
        if self.clock.budget is not None and fitted and not self.clock.is_over():
            self.look_ahead(fitted[0], self.rows, self.clock)
        chosen = rivals if len(rivals) <= most else self._screened(rivals, most)
        for contender in chosen:
            self._fit(contender, any(other.is_in for other in out))
        if not any(contender.is_in for contender in rivals):
            self._adopt(chosen, fitted)
        if not any(contender.is_in for contender in out):
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
                contender.why_out = self._no_time()
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
        chosen = _within_reach(rivals, self.trials, small.weight, most)
        if len(self.rows) < LARGE:
            return chosen
        return chosen + _of_other_families(chosen, rivals, self.trials, small.weight)

    def _adopt(self, chosen: Sequence[Contender], floors: Sequence[Contender]) -> None:
        """Where the search ended before a rival was fitted to all rows: the best of the screen.

        It was fitted hastily to a few of the rows, by which all are judged then.
        """
        best = next((c for c in chosen if c.name in self.trials), None)
        if best is None or not (self.clock.stopped or best.why_out == NO_TIME):
            return
        trial = self.trials[best.name]
        best.model, best.left_out, best.log_density = trial.model, trial.left_out, trial.log_density
        assert trial.log_density is not None
        best.seconds, best.n_fitted, best.why_out = trial.seconds, len(trial.log_density), ""
        for floor in floors:
            assert floor.log_density is not None
            floor.left_out = floor.left_out[: best.n_fitted]
            floor.log_density = floor.log_density[: best.n_fitted]

    def _fit(self, contender: Contender, has_other: bool) -> None:
        """Fit a contender to all rows, if there is time."""
        candidate, trial = _of(contender), self.trials.get(contender.name)
        known = rows = None
        if trial is not None and trial.log_density is not None:
            known, rows = trial.seconds, len(self.rows) / len(trial.log_density)
        expected = self.clock.expected(candidate.cost, known, rows or 1.0)
        needed = expected if self.has_rival else WORTH_A_START * expected
        if has_other and not self.clock.has(needed):
            contender.why_out = self._no_time()
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

    def _no_time(self) -> str:
        """Why a candidate was not fitted where the search is to end."""
        return "stopped before its turn" if self.clock.stopped else NO_TIME

    def timed(self, contender: Contender, work: Callable[[], None]) -> None:
        """Do what gives a contender its law, and note the time; Ctrl-C leaves it out and ends the search."""
        begin = self.clock.seconds
        try:
            work()
        except KeyboardInterrupt:
            self.clock.stopped = True
            contender.why_out = STOPPED
        contender.seconds = self.clock.seconds - begin
        self.clock.law = max(self.clock.law, contender.seconds)
        self.done += 1
        self.total = max(self.total, self.done)
        self.tell()

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
        build = _of(contender).quick if is_screen else None
        model = (build or _of(contender).build)(self.seed, len(rows))
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
        candidate, share = _of(contender), SCREEN_LEAVES if step.startswith("trial") else FIT_ENDS
        model.set_params(callbacks=[lambda progress: self.clock.is_over(share)])
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
        if model.stop_reason_ == Status.STOPPED.value and not self.clock.is_over(share):
            self.clock.stopped = True  # Ctrl-C within its fit, of which the last state is kept

    def _judge(self, model: Any, contender: Contender, rows: TrainingRows) -> None:
        """Give a contender its fitted model, what that says of rows without them, and the log densities."""
        candidate, judged = _of(contender), rows.first(MOST_JUDGED)
        table = judged.table if contender.change is None else contender.change(judged.table)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            left_out = candidate.left_out(model, table, judged.target, judged.weight, **judged.beside)
            log_density = self.judge(left_out, judged)
        if not np.isfinite(log_density).any():
            contender.why_out = "its density is nowhere a number"
            return
        flattery = candidate.n_parameters(model) / float(rows.weight.sum())
        contender.model, contender.left_out = model, left_out
        contender.log_density = log_density - flattery


def _of(contender: Contender) -> Candidate:
    """The candidate that a contender is of."""
    assert contender.candidate is not None
    return contender.candidate


def _within_reach(
    rivals: list[Contender], trials: dict[str, Contender], weight: FloatArray, most: int = SCREEN_KEEPS
) -> list[Contender]:
    """The rivals near the best on the screen's rows, the best first; the others get the reason why not.

    Without any trial, for want of time, all of them.
    """
    if not trials:
        return [c for c in rivals if not c.why_out]
    values = {name: t.log_density for name, t in trials.items() if t.log_density is not None}
    means = {name: float(np.average(own, weights=weight)) for name, own in values.items()}
    order = sorted((c for c in rivals if c.name in means), key=lambda c: -means[c.name])
    best = values[order[0].name]
    kept: list[Contender] = []
    seen: set[str] = set()
    for contender in order:
        behind, error = mean_and_error(best - values[contender.name], weight)
        alike = _of(contender).alike
        if len(kept) < most and behind <= max(REACH, 2.0 * error) and alike not in seen:
            kept.append(contender)
            seen |= {alike} - {""}
        else:
            contender.why_out = f"{behind:.3g} nats a row behind {order[0].name!r} on {len(weight)} rows"
    return kept


def _of_other_families(
    chosen: Sequence[Contender],
    rivals: Sequence[Contender],
    trials: dict[str, Contender],
    weight: FloatArray,
) -> list[Contender]:
    """The best rival of each family that no chosen one is of, if the screen has it near enough."""
    found: list[Contender] = []
    seen = {_of(contender).family for contender in chosen}
    means = {
        name: float(np.average(trial.log_density, weights=weight))
        for name, trial in trials.items()
        if trial.log_density is not None
    }
    for contender in sorted((c for c in rivals if c.name in means), key=lambda c: -means[c.name]):
        family = _of(contender).family
        if family not in seen and means[contender.name] > max(means.values()) - REACH_OF_FAMILY:
            contender.why_out = ""
            found.append(contender)
        seen.add(family)
    return found


def rows_judged(contenders: Sequence[Contender], rows: TrainingRows) -> TrainingRows:
    """The rows by which contenders that are in were judged."""
    return rows.first(min(len(c.log_density) for c in contenders if c.log_density is not None))


def mean_and_error(values: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """The weighted mean of values (N,) and its standard error; infinite where a value is."""
    total = float(weight.sum())
    with np.errstate(invalid="ignore"):
        mean = float(weight @ values / total)
        spread = float(weight @ (values - mean) ** 2 / total) if np.isfinite(mean) else np.inf
    return mean, float(np.sqrt(spread / max(total, 1.0)))


def give_shares(contenders: Sequence[Contender], weight: FloatArray) -> None:
    """Set the share of each contender that is in, and why the others of these have none."""
    inside = [c for c in contenders if c.log_density is not None]
    densities = np.stack([c.log_density for c in inside if c.log_density is not None])
    for contender, share in zip(inside, stacked(densities, weight[: densities.shape[1]]), strict=True):
        contender.share = float(share)
        if not share:
            contender.why_out = "adds less than it costs to what the others predict"

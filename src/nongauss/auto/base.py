"""What `AutoRegressor` and `AutoClassifier` share: reading a table, keeping the mixed models.

Also the leaderboard of all candidates, and the sentence that says why these were chosen.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from nongauss.auto.candidates import REGISTRY
from nongauss.auto.clock import NO_TIME, SearchTime
from nongauss.auto.contenders import Contender, TrainingRows, mean_and_error, weight_left_out
from nongauss.auto.forest_classes import ForestClasses
from nongauss.auto.inputs import Arcsinh
from nongauss.auto.kept import KeptSearch
from nongauss.auto.local_law import LocalLaw
from nongauss.auto.parts import all_cells
from nongauss.auto.search import Judge, Search
from nongauss.auto.why import mean_of, why
from nongauss.core.records import persistable
from nongauss.estimator.base import CheckpointPath, NongaussEstimator, TableEstimator
from nongauss.estimator.told import Leaderboard
from nongauss.optimise.course import FitResult, Progress, Status, say
from nongauss.optimise.loop import open_checkpoint
from nongauss.predictive.distribution import FloatArray
from nongauss.sparse_gp.data import with_a_column
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.frame import InputTable, read_input
from nongauss.tables.learn import Learned, as_source
from nongauss.tables.rows import canonical_rows
from nongauss.tables.screen import KeepColumns, screened
from nongauss.tables.source import Encode, Source

LOCAL, FOREST = ", local law", "forest"
"""The end of the name of a law that is the local one of another; that of the constant law, which is the
forest's own conditional law."""

TOLD = ("leaderboard_", "why_", "trace_", "n_iter_", "converged_", "stop_reason_")
"""Attributes that tell how a search went; a model that is fitted to other rows keeps those of its search."""

COST_OF_PREDICTION = 20
"""How many predictions of a single Gaussian process one of an average costs, some of it local laws."""

MOST_LINES = 6
"""Lines of the leaderboard that a person is shown."""


@persistable("auto.Member")
class Member(NamedTuple):
    """One of the laws that are mixed: a fitted estimator by its place, with what stands before and on it."""

    name: str
    model: int
    change: Arcsinh | None
    local: LocalLaw | ForestClasses | None
    share: float


_BOARD = {"candidate", "log_density", "standard_error", "weight", "seconds", "why_left_out"}
"""Columns of every leaderboard."""

_ROUNDED = 1e-6
"""How far rounding may leave the sum of a mixture's shares from 1."""


class Auto(TableEstimator):
    """Base of the automatic estimators. A subclass reads its target and judges what candidates say."""

    time_budget: float | None
    candidates: Any
    calibrate: bool
    keep_columns: KeepColumns
    checkpoint: CheckpointPath
    random_state: Any
    n_jobs: int | None
    _models: tuple[Any, ...]
    _members: tuple[Member, ...]
    leaderboard_: pd.DataFrame
    target_kind_: str
    weights_: dict[str, float]
    why_: str

    def check_loaded(self) -> None:
        """Raises ValueError for members that are no models, and shares that do not sum to 1."""
        places = {member.model for member in self._members}
        is_model = [isinstance(model, NongaussEstimator) for model in self._models]
        total = sum(member.share for member in self._members)
        known = places and places <= set(range(-1, len(self._models))) and all(is_model)
        if not known or not abs(total - 1.0) < _ROUNDED:
            raise ValueError("members that are not those of the models, or whose shares do not sum to 1")
        board = self.leaderboard_
        if not set(board.columns) >= _BOARD or not board["log_density"].notna().any():
            raise ValueError("a leaderboard without its columns, or on which nothing was judged")
        self.leaderboard_ = Leaderboard(board)

    def refit(self, X: Any, y: Any, sample_weight: Any = None, **beside: Any) -> Self:
        """A new estimator with this choice fitted to other rows, such as all rows after a part was judged.

        There is no search: the laws, their shares and what is said of the choice (`leaderboard_`, `why_`)
        stay those of this one; what each law learns is learned again. `beside`: what else `fit` was given.
        Warns and raises as `fit` does.
        """
        check_is_fitted(self)
        new: Self = clone(self)
        clock = new._clock()
        read = new._read(X, y, sample_weight, beside)._replace(kind=self.target_kind_)
        search = new._search(read.rows, read.judge, clock)
        search.total, search.best = len(self._members), float(self.leaderboard_["log_density"].max())
        contenders: dict[str, Contender] = {}
        for member in self._members:
            base = base_of(member.name, read.kind)
            if base in REGISTRY and base not in contenders:
                contenders[base] = Contender(base, REGISTRY[base], change=member.change)
                search.refit(contenders[base], self._models[member.model])
        new._judged(list(contenders.values()), read)
        for member in self._members:
            if member.name not in contenders:
                contenders[member.name] = new._shaped(member, contenders, search, read)
            contenders[member.name].share = member.share
        new._keep_members(list(contenders.values()), read.encoder, read.rows)
        for name in TOLD:
            setattr(new, name, getattr(self, name))
        new._settle(list(contenders.values()), read, self)
        return new

    @abstractmethod
    def _read(self, X: Any, y: Any, sample_weight: Any, beside: Mapping[str, Any]) -> Reading:
        """The table and its target as candidates take them. Raises InputError."""

    def _judged(self, contenders: Sequence[Contender], read: Reading) -> None:
        """Bring what candidates say of the judged rows into the form in which it is mixed."""
        for contender in contenders:
            if contender.left_out is not None:
                contender.left_out = self._as_judged(contender.left_out, read)

    @abstractmethod
    def _as_judged(self, left_out: Any, read: Reading) -> Any:
        """A candidate's answer for rows left out of it, as mixed: a law, or class probabilities (N, C)."""

    @abstractmethod
    def _shaped(
        self, member: Member, contenders: Mapping[str, Contender], search: Search, read: Reading
    ) -> Contender:
        """The contender like this member, learned from the rows alone, or on another one."""

    @abstractmethod
    def _settle(self, contenders: Sequence[Contender], read: Reading, former: Any) -> None:
        """Set the attributes of a regressor or classifier alone: what its target is, and its calibration.

        A refit takes the calibration of the `former` estimator, whose laws it has.
        """

    def _search(self, rows: TrainingRows, judge: Judge, clock: SearchTime, *, keeps: bool = False) -> Search:
        """A search over these rows; with `keeps`, what it does is kept in the file `checkpoint`, if any."""
        watchers: list[Callable[[Progress], Any]] = list(self.callbacks or ())
        if self.verbose:
            watchers.append(say)
        seed, kept = self._key_seed(self.random_state), None
        if keeps:
            arrays = (rows.X, rows.y, rows.weight, *rows.beside.values())
            told = (self._settings_that_matter(), type(self).__name__)
            seed, file = open_checkpoint(self.checkpoint, seed, self.random_state, arrays, *told)
            kept = None if file is None else KeptSearch(file)
        return Search(rows, judge, seed, clock, watchers, self._look_ahead, kept)

    def _clock(self) -> SearchTime:
        """A clock that begins now."""
        return SearchTime(None if self.time_budget is None else float(self.time_budget))

    @abstractmethod
    def _look_ahead(self, contender: Contender, rows: TrainingRows, clock: SearchTime) -> None:
        """Tell a clock what is to be expected after the fits, by timing parts of it on a fitted law."""

    def _keep_members(
        self, contenders: Sequence[Contender], encoder: TableEncoder, rows: TrainingRows
    ) -> None:
        """Keep the laws that have a share, each fitted model once."""
        chosen = sorted((c for c in contenders if c.share > 0.0), key=lambda c: -c.share)
        by_name = {c.name: c for c in contenders}
        models: list[Any] = []
        members = []
        for contender in chosen:
            base = by_name[contender.base] if contender.base else contender
            if base.model is None:
                members.append(Member(contender.name, -1, None, contender.local, contender.share))
                continue
            if not any(base.model is known for known in models):
                models.append(base.model)
            place = next(i for i, known in enumerate(models) if known is base.model)
            members.append(Member(contender.name, place, base.change, contender.local, contender.share))
        self._keep_encoder(encoder)
        source = as_source(rows.table, None, rows.weight, estimator_name=type(self).__name__)
        self._keep_known_rows(source, encoder)
        self._models, self._members = tuple(models), tuple(members)
        self.holds_training_rows_ = True  # for explanations; and for gaps those of the models
        self.holds_residuals_ = any(member.local is not None for member in members)
        self.weights_ = {member.name: member.share for member in members}

    def _keep(
        self, contenders: Sequence[Contender], encoder: TableEncoder, search: Search, figures: dict[str, Any]
    ) -> None:
        """Keep the members, the leaderboard and the sentence; then record how the search went."""
        self._keep_members(contenders, encoder, search.rows)
        self.leaderboard_ = leaderboard(contenders, search.rows.weight, figures)
        self.why_ = why(contenders, search)
        inside = [c for c in contenders if c.is_in]
        best = np.maximum.accumulate([mean_of(c, search.rows.weight) for c in inside])
        seconds = np.cumsum([c.seconds for c in inside])
        trace = [
            {"iteration": i + 1, "bound": float(value), "seconds": float(at)}
            for i, (value, at) in enumerate(zip(best, seconds, strict=True))
        ]
        status = Status.STOPPED if search.clock.stopped else Status.COMPLETED
        if search.kept is not None:
            search.kept.end(status)
        self._record_fit(FitResult(None, trace, status, len(trace)))
        self.stop_reason_ = how_it_ended(search.clock, contenders)
        if self.verbose:
            say(self.stop_reason_)

    def describe(self) -> str:
        """Why these laws were chosen, and the best of the leaderboard, as text."""
        check_is_fitted(self)
        board = self.leaderboard_
        judged = board[board["log_density"].notna()].head(MOST_LINES)
        columns = (judged[name] for name in ("candidate", "log_density", "standard_error", "weight"))
        rows = [
            (str(name), f"{value:.3f}", f"{error:.3f}", f"{share:.2f}" if share else "")
            for name, value, error, share in zip(*columns, strict=True)
        ]
        width = max(len(row[0]) for row in rows)
        lines = [f"{'law'.ljust(width)}  nats a row   error  share"]
        lines += [f"{a.ljust(width)}  {b:>10}  {c:>6}  {d:>5}".rstrip() for a, b, c, d in rows]
        n_more = len(board) - len(judged)
        out = [f"and {n_more} more, which are behind or were out of reach"] if n_more else []
        return "\n".join(["Choice by evidence", *(f"  {line}" for line in [*lines, *out]), "", self.why_])

    def _screened(
        self, learned: Learned, source: Source, target: FloatArray, *, labels: bool
    ) -> TableEncoder:
        """How the columns are encoded that are looked at; `target` (N,) numbers, or each row's class.

        Warns where others are left out. Raises InputError.
        """
        encode = Encode(learned.encoder, lambda part, weight: target[:, None], type(self).__name__)
        return screened(learned, source, encode, self.keep_columns, labels=labels).encoder

    def _as_rows(self, encoded: Any) -> Any:
        return with_a_column(encoded)

    def _encode_and_read(self, X: Any) -> tuple[FloatArray, InputTable]:
        """New rows as the forests take them, and as a table with the columns of the fit in their order.

        Raises NotFittedError, InputError; warns of what is missing or not known.
        """
        check_is_fitted(self)
        name = type(self).__name__
        table = read_input(all_cells(X, name), name)
        return self._encode(table), self._encoder.rows_kept(table, name)

    def _said(self, method: str, table: InputTable, **beside: Any) -> dict[tuple[int, bool], Any]:
        """The answers of the mixed models to `method` (such as "predict_proba") for the rows of a table.

        The key is a model's place in `_models` and whether it sees columns under the inverse hyperbolic sine.
        Each model would warn of the same cells as the whole does: that is said once.
        """
        out: dict[tuple[int, bool], Any] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for member in self._members:
                key = member.model, member.change is not None
                if member.model >= 0 and key not in out:
                    own = table if member.change is None else member.change(table)
                    out[key] = getattr(self._models[member.model], method)(own, **beside)
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_members")


class Reading(NamedTuple):
    """A table as candidates take it; `kind` is that of its target, `classes` (C,) are those of labels.

    `is_censored`: are of some rows only limits of the target known?
    """

    rows: TrainingRows
    encoder: TableEncoder
    judge: Judge
    kind: str
    is_constant: bool = False
    classes: Any = None
    is_censored: bool = False


def base_of(name: str, kind: str) -> str:
    """The name of the candidate on which a law stands; a forest for numbers of a kind on the constant one."""
    if name != FOREST:
        return name.removesuffix(LOCAL)
    return next(c.name for c in REGISTRY.values() if c.is_constant and kind in c.kinds)


def how_it_ended(clock: SearchTime, contenders: Sequence[Contender]) -> str:
    """How a search ended, a sentence for a person."""
    if clock.stopped:
        return "Stopped on request (Ctrl-C or a callback); the best so far is kept."
    late = [c.name for c in contenders if c.why_out == NO_TIME]
    if late or clock.has_cut or (clock.budget is not None and clock.is_over()):
        verb = "was" if len(late) == 1 else "were"
        what = f"; {len(late)} of {len(contenders)} candidates {verb} not tried" if late else ""
        what += "; a fit was cut short" if clock.has_cut else ""
        return f"The time budget of {clock.budget:g} s was not enough for all{what}: raise `time_budget`."
    return "All candidates were compared."


def read_rows(
    part: Any,
    encoder: TableEncoder,
    y: FloatArray,
    target: Any,
    scaled: FloatArray,
    name: str,
    beside: Mapping[str, FloatArray] | None = None,
) -> TrainingRows:
    """A part's rows in canonical form: rows of weight 0 gone, equal rows one with their weights added.

    y (N,), `target` (N,) and arrays `beside` (N,) are kept as they are; rows are told apart by the target as
    it is `scaled` (N,) and by what is beside it.
    """
    table = read_input(part.X, name)
    X = encoder.as_scaled(table, name, warn=False)
    beside = beside or {}
    rows = canonical_rows(X, np.column_stack([scaled, *beside.values()]), part.weight)
    kept = np.flatnonzero(rows.order >= 0)[::-1]
    index = np.empty(len(rows.X), np.intp)
    index[rows.order[kept]] = kept  # of equal rows the first
    looked_at = encoder.rows_kept(table, name)
    seen: FloatArray = with_a_column(rows.X).astype(np.float64)
    own = {word: values[index] for word, values in beside.items()}
    left_out = weight_left_out(seen, y[index], rows.weight)
    return TrainingRows(looked_at.take(index), seen, y[index], target[index], rows.weight, left_out, own)


def leaderboard(
    contenders: Sequence[Contender], weight: FloatArray, figures: dict[str, dict[str, float]]
) -> pd.DataFrame:
    """One row a contender, the best first: log density left out, figures, share, reason."""
    lines = []
    for contender in contenders:
        line: dict[str, Any] = {"candidate": contender.name, "log_density": np.nan, "standard_error": np.nan}
        if contender.log_density is not None:
            own = weight[: len(contender.log_density)]
            line["log_density"], line["standard_error"] = mean_and_error(contender.log_density, own)
        names = next(iter(figures.values()), {})
        line |= {name: figures.get(contender.name, {}).get(name, np.nan) for name in names}
        line |= {"weight": contender.share, "seconds": contender.seconds, "why_left_out": contender.why_out}
        lines.append(line)
    table = pd.DataFrame(lines)
    return Leaderboard(table.sort_values("log_density", ascending=False, kind="stable", ignore_index=True))

"""`AutoRegressor`: numbers of any kind, by the laws that predict rows left out best."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin

from nongauss.auto.base import COST_OF_PREDICTION, FOREST, LOCAL, Auto, Member, Reading, base_of, read_rows
from nongauss.auto.calibration import ScoreMixture, fit_scores
from nongauss.auto.candidate import Candidate
from nongauss.auto.candidates import (
    COUNT,
    MOST_JUDGED,
    POSITIVE,
    REAL,
)
from nongauss.auto.censored import censored_kind, ends_of, log_prob_between, that_take_limits
from nongauss.auto.clock import SearchTime, seconds_of_trees
from nongauss.auto.contenders import Contender, TrainingRows, give_shares, rows_judged
from nongauss.auto.figures import (
    figures_of,
    largest_mass,
    no_figures,
    supported_range,
    usable_moments,
)
from nongauss.auto.forest import trees_of
from nongauss.auto.kinds import said_kind, target_kind
from nongauss.auto.limits import Limits, limits_of, no_limits
from nongauss.auto.local_law import LEAVES, LocalLaw, fit_local, n_trees_grown
from nongauss.auto.local_laws import MOST_GROWN, add_local, bases_of
from nongauss.auto.named import candidates_named
from nongauss.auto.parts import in_memory
from nongauss.auto.search import Search
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.estimator.base import (
    Callbacks,
    CheckpointPath,
    Columns,
    DistributionRegressorMixin,
    Interval,
    RandomState,
    Verbosity,
    check_parameters,
)
from nongauss.estimator.by_parts import by_parts
from nongauss.estimator.conformal import scored
from nongauss.estimator.gaps import labelled_as
from nongauss.predictive.combined import mixture
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution
from nongauss.tables.learn import learn
from nongauss.tables.target import target_of, validate_target

FEWEST_LOCAL = 30
"""Rows from which a local law can be learned."""

MOST_BASES, FIGURES = 3, 0.15
"""Laws that get a local one at most; time of calibration and of the leaderboard's figures, in that of one."""

Budget = Annotated[float | None, Interval(numbers.Real, 0, None, closed="neither"), None]
Names = Annotated[str | Sequence[str], "array-like", str]
Jobs = Annotated[int | None, int, None]


class AutoRegressor(DistributionRegressorMixin, RegressorMixin, Auto):  # type: ignore[misc]
    r"""Regression by evidence: families and likelihoods, averaged by how well they predict left-out rows.

    The kind of the target (real, positive, share, count, with zeros) determines the candidates: Gaussian
    processes with constant, varying and heavy-tailed noise, with likelihoods for positive numbers and
    counts, and with an arcsinh transform of skewed columns; a truncated-Gaussian model; the predictive
    distribution of a random forest; and, on the two best of them and on the best by squared error, a local
    law of the residuals, whose shape is learned from similar rows. Candidates are compared by the log density
    of rows that they have not seen (leave-one-out for Gaussian processes, otherwise by ensemble members or
    trees that left the row out). Their weights are found by stacking; most candidates get none. Probabilities
    of counts and densities are never mixed.

    Parameters
    ----------
    time_budget : float or None, default None
        Seconds for the whole fit. The most promising candidates come first; those for which there is no
        time are listed in `leaderboard_`.
    candidates : "auto" or list of str, default "auto"
        Names as in `leaderboard_`, to compare only these and, with `calibrate`, what stands on them: local
        laws, and on the model without columns, `constant`, the forest.
    calibrate : bool, default True
        Whether to try local laws and a forest, and to calibrate the mixture on left-out rows.
    kind : {"auto", "real", "positive", "zeros", "share", "count"}, default "auto"
        Kind of the target: real numbers; numbers above 0; above 0 with exact zeros; between 0 and 1;
        counts. "auto": detected. For counts, rounded real numbers are tried as well.
    keep_columns : {"auto", "all"} or list of str, default "auto"
        Which columns to use of a table with more columns than rows: see `SparseGPRegressor`.
    callbacks : list of callables, default None
        Each is called with a `Progress` after each candidate; the search ends if one returns True.
    checkpoint : path, default None
        File that stores completed fits, and beside it the state of the fit in progress. A search that was
        stopped or killed resumes from there when `fit` is called again on the same data. It is removed at
        the end.
    random_state : int, RandomState, Generator or None, default None
    n_jobs : int or None, default None
        Processes that grow a forest, as in scikit-learn.
    verbose : int, default 0

    Attributes
    ----------
    leaderboard_ : DataFrame
        One row for each candidate: log density of left-out rows (nats a row) with its standard error, CRPS
        of at most 50 of them, coverage of the 90 % interval, weight, seconds, and the reason if it was left
        out.
    weights_ : dict
        The weight of each candidate in the mixture that predicts.
    why_ : str
        The choice in a sentence.
    kept_columns_ : tuple of str or None
        The columns that are used, or None if all are.
    target_kind_ : str
        The kind of the target.
    holds_training_rows_, holds_residuals_ : bool
        Whether encoded training rows, or one residual for each training row, are in the model and its file.
    n_iter_, converged_, stop_reason_, trace_ : how the search went, an iteration a judged candidate; the
    bound
        is the best log density so far.

    Raises
    ------
    ValueError
        For parameters, tables or targets that cannot be used; one sentence with the remedy.

    References
    ----------
    Yao, Vehtari, Simpson and Gelman, Bayesian Analysis 13, 2018 (stacking). Meinshausen, JMLR 7, 2006
    (weights of a forest).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nongauss import AutoRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AutoRegressor(candidates=["linear", "constant"], random_state=0).fit(X[:90], y[:90])
    >>> model.predict_interval(X[:3], coverage=0.9).shape
    (3, 2)
    """

    _cost_of_prediction = COST_OF_PREDICTION
    _limits: Limits
    _calibration: ScoreMixture | None

    def __init__(
        self,
        time_budget: Budget = None,
        candidates: Names = "auto",
        calibrate: bool = True,
        kind: Literal["auto", "real", "positive", "zeros", "share", "count"] = "auto",
        *,
        keep_columns: Columns = "auto",
        callbacks: Callbacks = None,
        checkpoint: CheckpointPath = None,
        random_state: RandomState = None,
        n_jobs: Jobs = None,
        verbose: Verbosity = 0,
    ) -> None:
        self.time_budget = time_budget
        self.candidates = candidates
        self.calibrate = calibrate
        self.kind = kind
        self.keep_columns = keep_columns
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        exposure: Any = None,
        censoring: Any = None,
        y_upper: Any = None,
    ) -> Self:
        """Fit to a table X (N, D) in memory and targets y (N,).

        A row of weight 2 counts as the row twice, one of weight 0 is not there; weights that are not all
        whole numbers up to a million only say how much rows count beside one another. The order of rows is
        irrelevant.
        `exposure` (N,), for counts: the time, area or number at risk behind each count. There are no local
        laws, no forest and no calibration beside it: where a count lies in its law tells nothing of others.

        Rows of which y is a limit: `censoring` (N,) is 1 where the true value is above y, -1 where it is
        below, 0 where y is known; or `y_upper` (N,): the true value is between y and that, `inf` where
        nothing limits it. Predictions are of the true value; only Gaussian processes are weighed then, by
        the probability of what is known of each row, and there are neither local laws nor a calibration.

        Warns if the target is constant or the search was stopped. Raises ValueError.
        """
        clock = self._clock()
        beside = {"exposure": exposure, "censoring": censoring, "y_upper": y_upper}
        read = self._read(X, y, sample_weight, beside)
        rows = read.rows
        asked, shape = self.candidates, (len(rows), rows.X.shape[1])
        chosen = candidates_named(asked, read.kind, *shape, calibrate=self.calibrate)
        if read.is_constant:
            chosen = _only_constant(chosen)
        if read.is_censored:
            chosen = that_take_limits(chosen, self.candidates)
        search = self._search(rows, read.judge, clock, keeps=True)
        is_shaped = self.calibrate and not (read.is_constant or read.is_censored or rows.has_exposure)
        search.later = MOST_BASES if is_shaped and len(rows) >= FEWEST_LOCAL else 0
        contenders = search.run(chosen, screen=self.candidates == "auto")
        self._judged(contenders, read)
        if self.calibrate and not (read.is_constant or read.is_censored):
            contenders += self._local_laws(contenders, search)
        self._judged(search.use_rest(contenders), read)
        give_shares(contenders, rows.weight)
        of = no_figures if read.is_censored or search.clock.is_late() else figures_of
        figures = {c.name: of(c.left_out, rows) for c in contenders if c.left_out is not None}
        self._keep(contenders, read.encoder, search, figures)
        self.why_ += self._limits.why()
        self._settle(contenders, read, None)
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any, beside: Mapping[str, Any]) -> Reading:
        """The table and its target as candidates take them."""
        check_parameters(self)
        name = type(self).__name__
        source, part = in_memory(X, y, sample_weight, beside, name)
        learned = learn(source, name, partial(target_of, name))
        Y, _ = validate_target(part.y, len(part.weight), name, warn=False)
        if Y.shape[1] != 1:
            raise InputError(f"y has {Y.shape[1]} outputs, {name} takes one; fit one model for each.")
        scaler = learned.target.scaler()
        scaled = scaler.transform(Y)[:, 0]
        censored = ends_of(Y[:, 0], part.beside) is not None
        kept = {word: np.asarray(values, np.float64) for word, values in part.beside.items()}
        encoder = self._screened(learned, source, Y[:, 0], labels=False)
        rows = read_rows(part, encoder, Y[:, 0], Y[:, 0], scaled, name, kept)
        kind = COUNT if "exposure" in kept else self._kind_of(rows.y)
        if censored:
            kind = censored_kind(kind, rows.y, self.kind != "auto")
        limited = kind in (REAL, POSITIVE) and not censored
        self._limits = limits_of(rows.y, rows.weight) if limited else no_limits()
        judge = partial(_log_prob, self._limits)
        is_constant = bool(scaler.constant[0]) and not censored
        return Reading(rows, encoder, judge, kind, is_constant, is_censored=censored)

    def _as_judged(self, left_out: Any, read: Reading) -> PredictiveDistribution:
        law: PredictiveDistribution = self._limits.law(left_out)
        return law

    def _kind_of(self, y: FloatArray) -> str:
        """The kind of target: as it was said, by the candidates that were named, or by its look."""
        if self.kind == "auto":
            names = [] if isinstance(self.candidates, str) else self.candidates
            return target_kind(y, [name.removesuffix(LOCAL) for name in names if name != FOREST])
        kind, low, high = said_kind(self.kind, y)
        whole = kind != COUNT or bool((y == np.round(y)).all())
        if not (y.min() >= low and y.max() <= high and whole):
            raise InputError(
                f"y holds {y.min():g} to {y.max():g}, which are no numbers of kind {self.kind!r}; give "
                "kind='real' or 'auto'."
            )
        return kind

    @by_parts
    def predict(self, X: Any, return_std: bool = False, exposure: Any = None) -> Any:
        """Mean of y for each row: (N,). With `return_std`, also its standard deviation.

        Where a mean rests on values that are unlikely there and far from nearly all training targets, it
        is given without these and warned of; see `usable_moments`.
        """
        mean, std = self._moments(self.predict_distribution(X, exposure))
        return (mean, std) if return_std else mean

    def _moments(self, law: PredictiveDistribution) -> tuple[FloatArray, FloatArray]:
        return usable_moments(law, *self._range)

    def predict_distribution(self, X: Any, exposure: Any = None) -> PredictiveDistribution:
        """The whole distribution of y for each row, a mixture of the chosen laws; `exposure` as in `fit`."""
        encoded, table = self._encode_and_read(X)
        said = self._said(
            "predict_distribution", table, **({} if exposure is None else {"exposure": exposure})
        )
        laws = []
        for member in self._members:
            law = self._limits.law(said[member.model, member.change is not None])
            laws.append(member.local.law(encoded, law) if isinstance(member.local, LocalLaw) else law)
        law = mixture(laws, [member.share for member in self._members])
        whole: PredictiveDistribution = law if self._calibration is None else self._calibration.law(law)
        named: PredictiveDistribution = labelled_as(X, whole)
        return named

    def _settle(self, contenders: Sequence[Contender], read: Reading, former: Any) -> None:
        whole, rows = _left_out(contenders), read.rows
        judged = rows.first(len(whole))
        low, high = supported_range(rows.y, rows.weight)
        self._range = low, high, largest_mass(rows.y, rows.weight, low, high)
        self.target_kind_ = read.kind
        if read.is_censored:
            self._calibration = self._conformal_scores = None
            return
        if former is not None:
            self._calibration = former._calibration
        else:
            calibrates = self.calibrate and not judged.has_exposure
            self._calibration = fit_scores(whole, judged.y, judged.weight) if calibrates else None
        whole = whole if self._calibration is None else self._calibration.law(whole)
        self._conformal_scores = scored(whole, judged.y, weight=judged.weight, held_out=False)

    def _shaped(
        self, member: Member, contenders: Mapping[str, Contender], search: Search, read: Reading
    ) -> Contender:
        name = member.name
        base = contenders[base_of(name, read.kind)]
        made = Contender(name, base.candidate, change=base.change, base=base.name)
        rows = search.rows.first(MOST_JUDGED)
        leaf = member.local.leaf if isinstance(member.local, LocalLaw) else None
        search.timed(made, self._on(made, base, rows, search, with_base=name != FOREST, leaf=leaf))
        return made

    def _local_laws(self, contenders: Sequence[Contender], search: Search) -> list[Contender]:
        """Contenders whose shape is the local law of another's residuals."""
        rows = rows_judged(contenders, search.rows)
        if len(rows) < FEWEST_LOCAL or rows.has_exposure:
            return []
        bases, out = bases_of(contenders, rows), []
        is_whole = len(rows) == min(len(search.rows), MOST_JUDGED)
        search.later = 0
        search.expect(len(bases))
        for base, with_base in bases:
            name = base.name + LOCAL if with_base else FOREST
            made = Contender(name, base.candidate, change=base.change, base=base.name)
            out.append(made)
            share = search.clock.share_of_a_law()
            if share and search.clock.budget is not None:  # by what was expected: now by this base
                self._look_ahead(base, search.rows if is_whole else rows, search.clock)
                share = search.clock.share_of_a_law()
            if not share:
                made.why_out = search.no_time()
                continue
            how: dict[str, Any] = {"with_base": with_base, "n_trees": trees_of(share)}
            search.timed(made, self._on(made, base, rows, search, **how), share)
        return out

    def _on(
        self, made: Contender, base: Contender, rows: TrainingRows, search: Search, **how: Any
    ) -> Callable[[], None]:
        """What gives a contender the local law of another's residuals; see `add_local` and `fit_local`."""
        return partial(add_local, made, base, rows, search, self._limits, n_jobs=self.n_jobs, **how)

    def _look_ahead(self, contender: Contender, rows: TrainingRows, clock: SearchTime) -> None:
        few = rows.first(MOST_JUDGED)
        if not self.calibrate or len(few) < FEWEST_LOCAL or few.beside:
            return
        how: dict[str, Any] = {"n_jobs": self.n_jobs, "leaf": LEAVES[0]}
        grow = partial(fit_local, few.X, contender.left_out, few.y, few.weight, 0, **how)
        fixed, each = seconds_of_trees(lambda n_trees: grow(n_trees=n_trees))
        larger = min(len(rows), MOST_GROWN) / len(few)
        clock.fixed = (len(LEAVES) + 1) * fixed
        clock.law = clock.fixed + n_trees_grown(len(few), larger) * each
        clock.n_laws, clock.figures = MOST_BASES, FIGURES * clock.law


def _left_out(contenders: Sequence[Contender]) -> PredictiveDistribution:
    """The mixture of the chosen laws at the judged rows, each left without its row."""
    chosen = [c for c in contenders if c.share > 0.0]
    return mixture([c.left_out for c in chosen], [c.share for c in chosen])


def _only_constant(chosen: Sequence[Candidate]) -> list[Candidate]:
    """The candidates for a target of one value: the constant law, or the first named; a warning says so."""
    warnings.warn(
        "The target is constant: that value is predicted everywhere, with a spread that the data "
        "cannot tell.",
        NongaussWarning,
        stacklevel=3,
    )
    floors = [c for c in chosen if c.is_constant]
    return floors or list(chosen[:1])


def _log_prob(limits: Limits, law: PredictiveDistribution, rows: TrainingRows) -> FloatArray:
    """Log density of each row's target under its law, log probability at or between limits: (N,)."""
    ends = ends_of(rows.y, rows.beside)
    return limits.law(law).log_prob(rows.y) if ends is None else log_prob_between(law, ends)


__all__ = ["AutoRegressor"]

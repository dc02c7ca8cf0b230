"""`AutoClassifier`: labels and grades, by the models that predict rows left out best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.auto import one_lengthscale  # noqa: F401  (a saved model may hold one)
from nongauss.auto.base import COST_OF_PREDICTION, Auto, Member, Reading, read_rows
from nongauss.auto.calibration import LabelCalibration, fit_labels, no_calibration
from nongauss.auto.candidate import ClassShares
from nongauss.auto.candidates import GRADES, LABELS, MOST_JUDGED, candidates_for
from nongauss.auto.clock import SearchTime, seconds_of_trees
from nongauss.auto.contenders import (
    Contender,
    TrainingRows,
    flattery,
    give_shares,
    mean_and_error,
    rows_judged,
)
from nongauss.auto.forest import N_TREES, trees_of
from nongauss.auto.forest_classes import N_CHOSEN, fit_forest_classes
from nongauss.auto.parts import in_memory
from nongauss.auto.regressor import Budget, Jobs, Names
from nongauss.auto.search import Search
from nongauss.estimator.base import (
    Callbacks,
    CheckpointPath,
    Columns,
    RandomState,
    Verbosity,
    check_parameters,
)
from nongauss.estimator.by_parts import by_parts
from nongauss.estimator.probabilities import ProbabilityClassifierMixin
from nongauss.predictive.distribution import FloatArray
from nongauss.tables.column import ColumnKind
from nongauss.tables.labels import labels_of
from nongauss.tables.learn import learn
from nongauss.tables.target_kinds import understand_target

FOREST, WITHOUT_COLUMNS = "forest labels", "constant labels"
"""The forest's own law of the classes; their shares."""

FEWEST_FOREST = 30
"""Rows from which a forest is grown."""

FIGURES = 0.15
"""Time of calibration and of the leaderboard's figures, in that of a forest."""


class AutoClassifier(ProbabilityClassifierMixin, Auto):
    r"""Classification by evidence: families averaged by predictions of left-out rows, then calibrated.

    Candidates are a linear model, a Gaussian process, a truncated-Gaussian model (each also with an arcsinh
    transform of strongly skewed columns) and a random forest, and for grades an ordinal Gaussian process.
    They are compared by the log probability of rows that they have
    not seen (leave-one-out for Gaussian processes, otherwise by ensemble members or trees that left the row
    out). Their weights are found by stacking; most candidates get none. The mixture is calibrated as far as
    left-out rows support it: by a temperature, P(c)^(1/T) / sum, by a temperature and an offset for each
    class, or with enough rows by a matrix that mixes the log probabilities of all classes.

    Parameters
    ----------
    time_budget : float or None, default None
        Seconds for the whole fit; see `AutoRegressor`.
    candidates : "auto" or list of str, default "auto"
        Names as in `leaderboard_`, to compare only these.
    calibrate : bool, default True
        Whether the mixture is calibrated.
    ordered : bool or "auto", default "auto"
        Whether the classes are ordered grades. "auto": if y is an ordered category, or its labels have a
        known order.
    keep_columns, callbacks, checkpoint, random_state, n_jobs, verbose
        See `AutoRegressor`.

    Attributes
    ----------
    classes_ : ndarray (C,)
    calibration_ : str
        How the mixture is calibrated: "none", "temperature", "offsets" (with a temperature) or "matrix".
    temperature_ : float
        T; 1 leaves the mixture unchanged. For a matrix, 1 over the mean of its diagonal.
    leaderboard_ : DataFrame
        One row for each candidate: log probability of left-out rows (nats a row) with its standard error,
        accuracy, Brier score, weight, seconds, and the reason if it was left out.
    weights_, why_, kept_columns_, target_kind_, holds_training_rows_, holds_residuals_ :
        See `AutoRegressor`; for a forest the file holds the class of each training row.
    n_iter_, converged_, stop_reason_, trace_ : how the search went.

    Raises
    ------
    ValueError
        For parameters, tables or targets that cannot be used; one sentence with the remedy.

    References
    ----------
    Yao, Vehtari, Simpson and Gelman, Bayesian Analysis 13, 2018 (stacking). Guo, Pleiss, Sun and Weinberger,
    ICML 2017 (temperature). Kull and others, NeurIPS 2019 (matrix).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nongauss import AutoClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AutoClassifier(candidates=["linear labels"], random_state=0).fit(X, y)
    >>> model.predict_proba(X[:3]).shape
    (3, 3)
    """

    _cost_of_prediction = COST_OF_PREDICTION
    temperature_: float
    calibration_: str
    _calibration: LabelCalibration

    def __init__(
        self,
        time_budget: Budget = None,
        candidates: Names = "auto",
        calibrate: bool = True,
        ordered: bool | Literal["auto"] = "auto",
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
        self.ordered = ordered
        self.keep_columns = keep_columns
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to a table X (N, D) in memory and labels y (N,).

        A row of weight 2 counts as the row twice, one of weight 0 is not there; weights that are not all
        whole numbers up to a million only say how much rows count beside one another. The order of rows is
        irrelevant. Warns if the search was stopped. Raises ValueError.
        """
        clock = self._clock()
        read = self._read(X, y, sample_weight, {})
        rows = read.rows
        search = self._search(rows, read.judge, clock, keeps=True)
        asked = self.candidates
        names = [asked] if isinstance(asked, str) else list(asked)
        has_forest = asked == "auto" or FOREST in names
        if FOREST in names:  # it is judged beside the shares of the classes
            asked = [WITHOUT_COLUMNS, *(name for name in names if name != FOREST)]
        chosen = candidates_for(read.kind, len(rows), rows.X.shape[1], asked, (FOREST,))
        search.later = int(has_forest and len(rows) >= FEWEST_FOREST)
        contenders = search.run(chosen, screen=self.candidates == "auto")
        self._judged(contenders, read)
        if has_forest:
            contenders += self._forest(search, rows_judged(contenders, rows), len(read.classes))
        self._judged(search.use_rest(contenders), read)
        give_shares(contenders, rows.weight)
        figures = {c.name: _figures(c.left_out, rows) for c in contenders if c.left_out is not None}
        self._keep(contenders, read.encoder, search, figures)
        self._settle(contenders, read, None)
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any, beside: Mapping[str, Any]) -> Reading:
        """The table and its labels as candidates take them."""
        check_parameters(self)
        name = type(self).__name__
        source, part = in_memory(X, y, sample_weight, beside, name)
        ordered = self._is_ordered(part.y)
        learned = learn(source, name, partial(labels_of, name, ordered=ordered))
        coder = learned.target.coder(name, ordered)
        classes = coder.classes
        codes = coder.encode(part.y, len(part.weight), name, part.weight)
        target: Any = classes[codes.astype(np.intp)]
        if ordered:
            target = pd.Categorical(target, categories=list(classes), ordered=True)
        encoder = self._screened(learned, source, codes, labels=not ordered)
        rows = read_rows(part, encoder, codes, target, codes, name)
        kind, judge = GRADES if ordered else LABELS, partial(_log_prob, classes)
        return Reading(rows, encoder, judge, kind, classes=classes)

    def _as_judged(self, left_out: Any, read: Reading) -> FloatArray:
        found: FloatArray = left_out.of(read.classes)
        return found

    def _settle(self, contenders: Sequence[Contender], read: Reading, former: Any) -> None:
        self.classes_, self.target_kind_ = read.classes, read.kind
        same = former is not None and np.array_equal(former.classes_, read.classes)
        found = former._calibration if same else self._calibrated(contenders, read.rows)
        self._calibration, self.calibration_, self.temperature_ = found, found.form, found.temperature

    def _shaped(
        self, member: Member, contenders: Mapping[str, Contender], search: Search, read: Reading
    ) -> Contender:
        (made,) = self._forest(search, read.rows.first(MOST_JUDGED), len(read.classes))
        return made

    @by_parts
    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row: (N,)."""
        return super().predict(X)

    @by_parts
    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, in the order of `classes_`: (N, C), rows sum to 1."""
        encoded, table = self._encode_and_read(X)
        said = self._said("predict_proba", table)
        out = np.zeros((len(encoded), len(self.classes_)))
        for member in self._members:
            if member.model < 0:
                own = member.local.probabilities(encoded)  # type: ignore[union-attr]
            else:
                found = said[member.model, member.change is not None]
                own = ClassShares(self._models[member.model].classes_, found).of(self.classes_)
            out += member.share * own
        return self._calibration(out)

    def _is_ordered(self, y: Any) -> bool:
        """Are the classes grades?"""
        if self.ordered != "auto":
            return bool(self.ordered)
        dtype = getattr(y, "dtype", None)
        if isinstance(dtype, pd.CategoricalDtype):
            return bool(dtype.ordered)
        labels = np.asarray(y)
        if labels.ndim != 1 or labels.dtype.kind not in "OU":
            return False
        found = understand_target(labels)
        return found.kind is ColumnKind.GRADE and len(found.levels) > 2

    def _forest(self, search: Search, rows: TrainingRows, n_classes: int) -> list[Contender]:
        """The contender that is a forest, on the rows that judge."""
        made = Contender(FOREST)
        search.later = 0
        search.expect(int(len(rows) >= FEWEST_FOREST))
        if len(rows) < FEWEST_FOREST:
            made.why_out = f"needs {FEWEST_FOREST} distinct rows"
        elif not (share := search.clock.share_of_a_law()):
            made.why_out = search.no_time()
        else:
            how = (rows, search.seed, n_classes, trees_of(share))
            search.timed(made, partial(self._grow, made, *how), share)
        return [made]

    def _look_ahead(self, contender: Contender, rows: TrainingRows, clock: SearchTime) -> None:
        few, n_classes = rows.first(MOST_JUDGED), len(contender.left_out.classes)
        grow = partial(fit_forest_classes, few.X, few.y, n_classes, few.weight, 0, self.n_jobs)
        fixed, each = seconds_of_trees(grow)
        clock.law, clock.fixed, clock.n_laws = fixed + N_TREES * each, fixed, 1
        clock.figures = FIGURES * clock.law

    def _grow(self, made: Contender, rows: TrainingRows, seed: int, n_classes: int, n_trees: int) -> None:
        """Give a contender a forest's law of the classes."""
        known = rows.X, rows.y, n_classes, rows.weight, seed, self.n_jobs, n_trees
        found = fit_forest_classes(*known, left_out=rows.left_out)
        made.local, made.left_out = found
        made.log_density = np.log(_own(made.left_out, rows)) - flattery(N_CHOSEN, float(rows.weight.sum()))

    def _calibrated(self, contenders: Sequence[Contender], rows: TrainingRows) -> LabelCalibration:
        """What rows left out of the mixture ask for; nothing where no calibration is wanted."""
        mixed = sum(c.share * c.left_out for c in contenders if c.share)
        n, n_classes = mixed.shape
        if not self.calibrate:
            return no_calibration(n_classes)
        return fit_labels(mixed, rows.y[:n].astype(np.intp), rows.weight[:n])


def _log_prob(classes: Any, shares: ClassShares, rows: TrainingRows) -> FloatArray:
    """Log probability of each row's class: (N,)."""
    out: FloatArray = np.log(_own(shares.of(classes), rows))
    return out


def _own(probabilities: FloatArray, rows: TrainingRows) -> FloatArray:
    """The probability of each row's own class: (N,)."""
    n = len(probabilities)
    found: FloatArray = probabilities[np.arange(n), rows.y[:n].astype(np.intp)]
    return found


def _figures(probabilities: FloatArray, rows: TrainingRows) -> dict[str, float]:
    """Share of rows whose most probable class is theirs, and the Brier score sum_c (P_c - 1[y = c])^2."""
    n, n_classes = probabilities.shape
    codes, weight = rows.y[:n].astype(np.intp), rows.weight[:n]
    square = ((probabilities - np.eye(n_classes)[codes]) ** 2).sum(axis=1)
    hit = (probabilities.argmax(axis=1) == codes).astype(np.float64)
    return {"accuracy": mean_and_error(hit, weight)[0], "brier": mean_and_error(square, weight)[0]}

"""`AutoImputer`: gaps of a table filled by the mixture of our models that tells hidden cells of it best."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nongauss.auto.cell_mixture import SALT, kept_shares, mixed_cells, shares_by_kind
from nongauss.auto.columns_alone import ColumnsAlone
from nongauss.auto.hidden_cells import (
    CellFigures,
    HiddenCells,
    Told,
    figures_of,
    hide,
    told_by,
    told_by_mixture,
)
from nongauss.auto.normal_scores import NormalScores
from nongauss.core.errors import InputError
from nongauss.estimator.base import (
    NongaussEstimator,
    RandomState,
    Share,
    Verbosity,
    check_parameters,
    takes_any_cells,
)
from nongauss.estimator.imputation import CellImputer, MissingLaws, known_alone
from nongauss.harmonium.estimator import Harmonium
from nongauss.optimise.course import FitResult, Status
from nongauss.predictive.distribution import FloatArray
from nongauss.rank_factor.estimator import RankFactorAnalysis
from nongauss.tables.column import listed
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.filling import Gaps
from nongauss.tables.frame import read_input
from nongauss.tables.learn import is_parted
from nongauss.tables.margins import Margin, RowNoise, row_hashes
from nongauss.tables.rows import validate_weight

ALONE = "columns alone"
MIXTURE = "mixture"
"""The line of the leaderboard that is of the candidates with their shares."""
FAILURES = (InputError, ValueError, FloatingPointError, np.linalg.LinAlgError)
"""What a candidate that cannot be fitted to a table raises."""
KINDS = {False: "numbers and grades", True: "labels"}
"""Kinds of columns, of which each has shares of its own, by whether they hold labels."""


CANDIDATES: dict[str, Callable[[int, int], CellImputer]] = {
    "rank_factor": lambda seed, verbose: RankFactorAnalysis(random_state=seed, verbose=verbose),
    "harmonium": lambda seed, verbose: Harmonium(random_state=seed, verbose=verbose),
    "normal scores": lambda seed, verbose: NormalScores(random_state=seed),
    ALONE: lambda seed, verbose: ColumnsAlone(random_state=seed),
}
"""The models that may be chosen, from a seed and how much they say."""


class AutoImputer(CellImputer, OneToOneFeatureMixin, TransformerMixin, NongaussEstimator):  # type: ignore[misc]
    """Imputes missing cells by the mixture of models that predicts hidden cells of the table best.

    A `share` of the observed cells of each column is hidden (in small tables up to three times); every
    candidate is fitted to the rest and gives a distribution for each hidden cell. The shares of candidates
    are those with the least score of their mixture; columns alone are taken where that mixture is not better
    than they are by a standard error. The score is the continuous ranked probability score for numbers and
    grades and the log-loss for labels, each relative to that of the column alone; both kinds of columns have
    shares of their own. Candidates that have a share are fitted to the whole table. A row is drawn from one
    model, as far as shares are alike. Rows of weight 0 take no part.

    Parameters
    ----------
    candidates : "auto" or list of str, default "auto"
        Among "rank_factor", "harmonium", "normal scores" (their correlations), "columns alone"; "auto": all.
        A single name is fitted without evaluation.
    share : float between 0 and 1, default 0.1
        Share of the observed cells that are hidden.
    random_state : int, RandomState, Generator or None, default None
    verbose : int, default 0

    Attributes
    ----------
    models_ : dict, the fitted models that have a share, by name, that of the largest first.
    weights_ : DataFrame
        The share of each in the distributions of "numbers and grades" and of "labels".
    leaderboard_ : DataFrame
        For each candidate and the mixture the score, its parts (see `CellFigures`), seconds, and the error if
        it failed. The mixture's figures are of the cells that its shares were chosen by, so they flatter it.
    why_ : str
        What imputes, in a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from nongauss import AutoImputer
    >>> X = np.random.default_rng(0).standard_normal((60, 2)) @ np.array([[1.0, 1.0], [0.0, 0.1]])
    >>> X[::7, 1] = np.nan
    >>> model = AutoImputer(["rank_factor", "columns alone"], random_state=0).fit(X)
    >>> list(model.models_)
    ['rank_factor']
    >>> bool(np.isnan(model.transform(X)).any())
    False
    """

    def __init__(
        self,
        candidates: Annotated[Sequence[str], "array-like"] | Literal["auto"] = "auto",
        *,
        share: Share = 0.1,
        random_state: RandomState = None,
        verbose: Verbosity = 0,
    ) -> None:
        self.candidates = candidates
        self.share = share
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Choose a model for the missing cells of a table X and fit it; y is ignored.

        Raises InputError for a table, weights or candidates that cannot be used.
        """
        check_parameters(self)
        names = self._names()
        seed = self._key_seed(self.random_state)
        began = time.perf_counter()
        table, weight = _counted(X, sample_weight)
        judged = HiddenCellScores(_unjudged(names), {})
        if len(names) > 1:
            judged = judge(names, table, weight, float(self.share), seed)
        self.leaderboard_ = judged.board
        fine = [*self.leaderboard_["candidate"][self.leaderboard_["failed"] == ""]]
        if not fine:
            raise InputError(f"No candidate could be fitted: {self.leaderboard_['failed'].iloc[0]}")
        first = ALONE if ALONE in fine else str(fine[0])
        self._fit_models(judged.shares or {kind: {first: 1.0} for kind in KINDS}, table, weight, seed)
        self.why_ = _why(self.leaderboard_, self.weights_)
        self._seed = seed
        trace = [{"iteration": 1, "bound": 0.0, "seconds": time.perf_counter() - began}]
        self._record_fit(FitResult(None, trace, Status.COMPLETED, 1))
        return self

    def _fit_models(
        self, shares: dict[bool, dict[str, float]], table: Any, weight: ArrayLike | None, seed: int
    ) -> None:
        """Fit the candidates that have a share to the whole table.

        Those that fail, and that read it otherwise than that of the largest share, are left out; that alone
        warns. Raises InputError where all fail.
        """
        weights = pd.DataFrame([shares[kind] for kind in KINDS], index=[*KINDS.values()]).fillna(0.0)
        weights = weights[weights.mean().sort_values(ascending=False, kind="stable").index]
        models: dict[str, Any] = {}
        for number, name in enumerate(weights):
            model: Any = CANDIDATES[str(name)](seed, int(self.verbose))
            with warnings.catch_warnings():
                if models:
                    warnings.simplefilter("ignore")
                try:
                    model.fit(table, None, weight)
                except FAILURES:
                    if not models and number == len(weights.columns) - 1:
                        raise
                    continue
            if not models or _alike(next(iter(models.values())), model):
                models[str(name)] = model
        self.models_, weights = models, weights[[*models]]
        self.weights_ = weights.div(weights.sum(axis=1), axis=0).fillna(1.0 / len(models))
        first = self._first
        self.n_features_in_ = first.n_features_in_
        if hasattr(first, "feature_names_in_"):
            self.feature_names_in_ = first.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.holds_training_rows_ = any(model.holds_training_rows_ for model in models.values())

    def transform(self, X: Any) -> Any:
        """`impute`, of the columns of the fit in their order, so that the model can be used in a pipeline."""
        full, names = self.impute(X), getattr(self, "feature_names_in_", None)
        if names is None or isinstance(full, np.ndarray):
            return full
        return nw.from_native(full, eager_only=True).select(*names).to_native()

    def _names(self) -> list[str]:
        """The candidates that are asked for. Raises InputError for one that is not known, and for none."""
        asked = list(CANDIDATES) if isinstance(self.candidates, str) else list(self.candidates)
        strange = [name for name in asked if name not in CANDIDATES]
        if strange or not asked:
            raise InputError(
                f"candidates must be 'auto' or some of {list(CANDIDATES)}; got {strange or asked}."
            )
        return list(dict.fromkeys(asked))

    @property
    def _cell_margins(self) -> tuple[Margin, ...]:
        """The columns that can be filled. Raises NotFittedError."""
        check_is_fitted(self, "models_")
        margins: tuple[Margin, ...] = self._first._cell_margins
        return margins

    @property
    def _first(self) -> Any:
        """The model of the largest share."""
        return next(iter(self.models_.values()))

    @property
    def _cell_encoder(self) -> TableEncoder:
        """How the models read the columns of the fit."""
        encoder: TableEncoder = self._first._cell_encoder
        return encoder

    def _complete(self, gaps: Gaps, seed: int, n: int | None) -> MissingLaws:
        """What the mixture of the models says."""
        each = [(model._cell_margins, model._complete(gaps, seed, n)) for model in self.models_.values()]
        if len(each) == 1:
            return each[0][1]  # type: ignore[no-any-return]
        shares = dict(zip(KINDS, self.weights_.to_numpy(), strict=True))
        cells = known_alone(gaps)
        return mixed_cells(each, shares, RowNoise(row_hashes(cells, np.isnan(cells)), seed + SALT))

    def __sklearn_tags__(self) -> Any:
        return takes_any_cells(super().__sklearn_tags__())


class HiddenCellScores(NamedTuple):
    """The leaderboard, best first and failed ones last, and shares of candidates by kind and name.

    The kinds are numbers and grades (False) and labels (True).
    """

    board: pd.DataFrame
    shares: dict[bool, dict[str, float]]


def judge(
    names: Sequence[str], X: Any, weight: ArrayLike | None, share: float, seed: int
) -> HiddenCellScores:
    """Candidates and their mixture by how well they tell hidden cells of a table.

    No shares where no hidden cell tells candidates apart, and of a table of one column.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hidden = hide(X, weight, share, seed)
        usual = told_by(lambda: ColumnsAlone(random_state=seed), hidden)
        told: dict[str, Told] = {}
        lines = [_tried(name, told, hidden, usual, seed) for name in names]
        each = [*told.values()]
        found: dict[bool, FloatArray] = {}
        scores = {line["score"] for line in lines if not line["failed"]}
        if len(scores) > 1 and hidden.table.shape[1] > 1:
            alone = [*told].index(ALONE) if ALONE in told else None
            found = kept_shares(shares_by_kind(each, usual, alone))
        if found:
            figures = figures_of(told_by_mixture(each, found), usual)
            lines.append({"candidate": MIXTURE, **figures._asdict(), "seconds": 0.0, "failed": ""})
    board = pd.DataFrame(lines).sort_values("score", kind="stable", na_position="last", ignore_index=True)
    shares = {
        kind: {name: float(part) for name, part in zip(told, own, strict=True) if part > 0}
        for kind, own in found.items()
    }
    return HiddenCellScores(board, shares)


def _tried(
    name: str,
    told: dict[str, Told],
    hidden: HiddenCells,
    usual: Told,
    seed: int,
) -> dict[str, Any]:
    """The line of one candidate; what it says of the hidden cells is put to `told`."""
    began, failed = time.perf_counter(), ""
    figures = CellFigures(*(np.nan,) * 4)
    try:
        told[name] = told_by(lambda: CANDIDATES[name](seed, 0), hidden)
        figures = figures_of(told[name], usual)
    except FAILURES as error:
        failed = str(error) or type(error).__name__
    seconds = time.perf_counter() - began
    return {"candidate": name, **figures._asdict(), "seconds": seconds, "failed": failed}


def _counted(X: Any, weight: ArrayLike | None) -> tuple[Any, Any]:
    """The rows of a table that have a weight, and their weights; a table in parts as it is.

    Raises InputError for a sparse table.
    """
    if issparse(X):
        raise InputError(
            "AutoImputer fills dense tables; a sparse one has no gaps: its empty cells are zeros. Give "
            "X.toarray() with NaN in the cells that are missing."
        )
    if is_parted(X):
        return X, weight
    table = read_input(X, "AutoImputer")
    if weight is None:
        return table, None
    each = validate_weight(weight, len(table))
    return (table, each) if each.all() else (table.take(each > 0), each[each > 0])


def _unjudged(names: Sequence[str]) -> pd.DataFrame:
    """The leaderboard of candidates that need no judging."""
    nothing = CellFigures(*(float("nan"),) * 4)._asdict()
    return pd.DataFrame([{"candidate": name, **nothing, "seconds": 0.0, "failed": ""} for name in names])


def _alike(one: CellImputer, other: CellImputer) -> bool:
    """Do two models read the same columns, with the same labels?"""
    return [(m.flat, m.labels, m.origin) for m in one._cell_margins] == [
        (m.flat, m.labels, m.origin) for m in other._cell_margins
    ]


def _why(board: pd.DataFrame, weights: pd.DataFrame) -> str:
    """What fills the cells, and why, in a sentence."""
    shares = weights.mean().sort_values(ascending=False, kind="stable")
    first = str(shares.index[0])
    if len(board) == 1:
        return f"{first} fills the missing cells, as requested."
    failed = list(board["candidate"][board["failed"] != ""])
    beside = f"; {listed(failed).removeprefix('columns ').removeprefix('column ')} failed" if failed else ""
    score = board.set_index("candidate")["score"].drop(failed)
    if MIXTURE not in score.index:
        told = "no hidden cell told the candidates apart" if len(score) > 1 else "no other candidate could"
        return f"{first} fills the missing cells: {told}{beside}."
    others = [f"{name} {x:.2f}" for name, x in score.items() if name != MIXTURE and np.isfinite(x)]
    if [*shares.index] == [ALONE]:
        return (
            f"{ALONE} fills the missing cells: on hidden cells no mixture of models was better by a "
            f"standard error ({', '.join(others)}){beside}."
        )
    parts = [f"{name} ({100 * share:.0f} %)" for name, share in shares.items()]
    is_mixture = len(parts) > 1
    subject = f"A mixture of {' and '.join([', '.join(parts[:-1]), parts[-1]])}" if is_mixture else first
    own = score[MIXTURE if is_mixture else first]
    return (
        f"{subject} fills the missing cells: on hidden cells its score is {own:.2f} of that of "
        f"columns alone ({', '.join(others)}){beside}."
    )

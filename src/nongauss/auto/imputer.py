"""`AutoImputer`: gaps of a table filled by the model of ours that tells hidden cells of it best."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nongauss.auto.columns_alone import ColumnsAlone
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
from nongauss.estimator.imputation import CellImputer, MissingLaws
from nongauss.harmonium.estimator import Harmonium
from nongauss.optimise.course import FitResult, Status
from nongauss.predictive.cells import LabelDistribution, law_of
from nongauss.predictive.distribution import FloatArray
from nongauss.rank_factor.estimator import RankFactorAnalysis
from nongauss.tables.column import listed
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.filling import Gaps, find_gaps
from nongauss.tables.frame import InputTable, read_input
from nongauss.tables.learn import is_parted
from nongauss.tables.margins import Margin, RowNoise, row_hashes

MOST_JUDGED = 2000
"""Rows of which cells are hidden to choose by."""
LEAST_CHANCE = 1e-4
"""A label to which less than this was given counts as this."""
ALONE = "columns alone"


CANDIDATES: dict[str, Callable[[int, int], CellImputer]] = {
    "rank_factor": lambda seed, verbose: RankFactorAnalysis(random_state=seed, verbose=verbose),
    "harmonium": lambda seed, verbose: Harmonium(random_state=seed, verbose=verbose),
    "normal scores": lambda seed, verbose: NormalScores(random_state=seed),
    ALONE: lambda seed, verbose: ColumnsAlone(random_state=seed),
}
"""The models that may be chosen, from a seed and how much they say."""


class CellFigures(NamedTuple):
    """How well hidden cells were predicted, relative to columns alone (lower is better), with its parts.

    `crps` (for numbers and grades) and `log_loss` (for labels) are means over columns of the score divided
    by that of the column alone; `coverage` is the share of numbers in their central 90 % intervals.
    """

    score: float
    crps: float
    log_loss: float
    coverage: float


class AutoImputer(CellImputer, TransformerMixin, NongaussEstimator):  # type: ignore[misc]
    """Imputes missing cells by the model that predicts hidden cells of the table best, with uncertainty.

    A `share` of the observed cells of each column is hidden; every candidate is fitted to the rest and
    gives a distribution for each hidden cell. The candidate with the best score is fitted to the whole
    table. The score is the continuous ranked probability score for numbers and grades and the log-loss for
    labels, each relative to that of the column alone.

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
    best_ : the fitted model that imputes.
    chosen_ : str, its name.
    leaderboard_ : DataFrame
        For each candidate the score, its parts (see `CellFigures`), seconds, and the error if it failed.
    why_ : str
        The choice in a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from nongauss import AutoImputer
    >>> X = np.random.default_rng(0).standard_normal((60, 2)) @ np.array([[1.0, 1.0], [0.0, 0.1]])
    >>> X[::7, 1] = np.nan
    >>> model = AutoImputer(["rank_factor", "columns alone"], random_state=0).fit(X)
    >>> model.chosen_
    'rank_factor'
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
        is_choice = len(names) > 1
        table = read_input(X, "AutoImputer") if is_choice and not (is_parted(X) or issparse(X)) else X
        self.leaderboard_ = (
            leaderboard(names, table, float(self.share), seed) if is_choice else _unjudged(names)
        )
        fine = self.leaderboard_[self.leaderboard_["failed"] == ""]
        if not len(fine):
            raise InputError(f"No candidate could be fitted: {self.leaderboard_['failed'].iloc[0]}")
        self.chosen_ = str(fine["candidate"].iloc[0])
        self.best_ = CANDIDATES[self.chosen_](seed, int(self.verbose)).fit(table, None, sample_weight)  # type: ignore[attr-defined]
        self.why_ = _why(self.chosen_, self.leaderboard_)
        self.n_features_in_ = self.best_.n_features_in_
        if hasattr(self.best_, "feature_names_in_"):
            self.feature_names_in_ = self.best_.feature_names_in_
        self.holds_training_rows_ = self.best_.holds_training_rows_
        self._seed = seed
        trace = [{"iteration": 1, "bound": 0.0, "seconds": time.perf_counter() - began}]
        self._record_fit(FitResult(None, trace, Status.COMPLETED, 1))
        return self

    def transform(self, X: Any) -> Any:
        """`impute`: the table without missing cells, so that the model can be used in a pipeline."""
        return self.impute(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the columns, as they came."""
        check_is_fitted(self, "best_")
        named = getattr(self, "feature_names_in_", None)
        names = [f"x{j}" for j in range(self.n_features_in_)] if named is None else named
        return np.asarray(names, dtype=object)

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
        check_is_fitted(self, "best_")
        margins: tuple[Margin, ...] = self.best_._cell_margins
        return margins

    @property
    def _cell_encoder(self) -> TableEncoder:
        """How the chosen model reads the columns of the fit."""
        encoder: TableEncoder = self.best_._cell_encoder
        return encoder

    def _complete(self, gaps: Gaps, seed: int, n: int | None) -> MissingLaws:
        """What the chosen model says."""
        laws: MissingLaws = self.best_._complete(gaps, seed, n)
        return laws

    def __sklearn_tags__(self) -> Any:
        return takes_any_cells(super().__sklearn_tags__())


def leaderboard(names: Sequence[str], X: Any, share: float, seed: int) -> pd.DataFrame:
    """Candidates by how well they tell hidden cells of a table, best first, those that failed last."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = ColumnsAlone(random_state=seed).fit(X)
        whole = find_gaps(alone._cell_encoder, alone._cell_margins, X, "AutoImputer")
        noise = RowNoise(row_hashes(whole.cells, whole.missing), seed)
        judged = np.argsort(noise.uniform(1)[:, 0], kind="stable")[:MOST_JUDGED]
        hidden = (noise.uniform(whole.cells.shape[1]) < share) & ~np.isnan(whole.cells)
        rows = np.sort(judged)
        frame = whole.table.take(rows).as_frame().reset_index(drop=True)
        table, masked = read_input(frame), read_input(with_hidden(frame, whole.places, hidden[rows]))
        usual = _scores(ColumnsAlone(random_state=seed).fit(masked), table, masked)
        found = [_judged(name, table, masked, usual, seed) for name in names]
    frame = pd.DataFrame(found)
    return frame.sort_values("score", kind="stable", na_position="last", ignore_index=True)


def _judged(name: str, table: InputTable, masked: InputTable, usual: Any, seed: int) -> dict[str, Any]:
    """The line of one candidate."""
    began, failed = time.perf_counter(), ""
    figures = CellFigures(*(np.nan,) * 4)
    try:
        model: Any = CANDIDATES[name](seed, 0)
        figures = _relative(_scores(model.fit(masked), table, masked), usual)
    except (InputError, ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
        failed = str(error) or type(error).__name__
    seconds = time.perf_counter() - began
    return {"candidate": name, **figures._asdict(), "seconds": seconds, "failed": failed}


def with_hidden(table: pd.DataFrame, places: Sequence[int], hidden: NDArray[np.bool_]) -> pd.DataFrame:
    """The table with cells of some columns, by their `places`, missing where `hidden` (N, J)."""
    out = table.copy()
    for j, place in enumerate(places):
        column = out.iloc[:, place]
        if pd.api.types.is_bool_dtype(column.dtype):
            column = column.astype(object)
        out.isetitem(place, column.mask(hidden[:, j]).array)
    return out


class _ColumnScores(NamedTuple):
    """Scores of the hidden cells of one column: CRPS, or log-losses; whether intervals held them."""

    is_label: bool
    score: FloatArray
    held: FloatArray


def _scores(model: Any, table: InputTable, masked: InputTable) -> dict[str, _ColumnScores]:
    """Scores of what a model says of the cells that are in the table and not in the masked one, by column."""
    margins, encoder = model._cell_margins, model._cell_encoder
    true = find_gaps(encoder, margins, table, "AutoImputer")
    gaps = find_gaps(encoder, margins, masked, "AutoImputer")
    asked = gaps.missing & ~np.isnan(true.cells)
    laws = model._complete(Gaps(gaps.source, gaps.table, gaps.places, gaps.cells, asked), 0, None)
    out = {}
    for j, (margin, cells) in enumerate(zip(margins, laws, strict=True)):
        if not len(cells.rows):
            continue
        law, y = law_of(margin, cells), true.cells[cells.rows, j]
        if isinstance(law, LabelDistribution):
            loss = -np.maximum(law.log_prob(y), np.log(LEAST_CHANCE))
            out[margin.name] = _ColumnScores(True, loss, np.zeros(0))
        else:
            low, high = law.interval(0.9).T
            out[margin.name] = _ColumnScores(False, law.crps(y), ((low <= y) & (y <= high)).astype(float))
    return out


def _relative(own: dict[str, _ColumnScores], usual: dict[str, _ColumnScores]) -> CellFigures:
    """Mean ratios of scores to those of columns alone, over columns."""
    ratio = {
        name: float(scores.score.mean() / max(usual[name].score.mean(), 1e-12))
        for name, scores in own.items()
        if name in usual and usual[name].score.mean() > 0
    }
    labels = [value for name, value in ratio.items() if own[name].is_label]
    numbers = [value for name, value in ratio.items() if not own[name].is_label]
    held = [scores.held for scores in own.values() if not scores.is_label]

    def mean(values: Any) -> float:
        """The mean, NaN of nothing."""
        return float(np.mean(values)) if len(values) else float("nan")

    return CellFigures(
        mean([*ratio.values()]) if ratio else 1.0,
        mean(numbers),
        mean(labels),
        mean(np.concatenate(held)) if held else float("nan"),
    )


def _unjudged(names: Sequence[str]) -> pd.DataFrame:
    """The leaderboard of candidates that need no judging."""
    nothing = CellFigures(*(float("nan"),) * 4)._asdict()
    return pd.DataFrame([{"candidate": name, **nothing, "seconds": 0.0, "failed": ""} for name in names])


def _why(chosen: str, board: pd.DataFrame) -> str:
    """The choice in a sentence."""
    if len(board) == 1:
        return f"{chosen} fills the missing cells, as requested."
    score = board.set_index("candidate")["score"]
    failed = list(board["candidate"][board["failed"] != ""])
    beside = f"; {listed(failed).removeprefix('columns ').removeprefix('column ')} failed" if failed else ""
    fine = score.drop(failed)
    if fine.nunique(dropna=False) == 1:
        told = "no hidden cell told the candidates apart" if len(fine) > 1 else "no other candidate could"
        return f"{chosen} fills the missing cells: {told}{beside}."
    others = [
        f"{name} {score[name]:.2f}" for name in score.index if name != chosen and np.isfinite(score[name])
    ]
    return (
        f"{chosen} predicted hidden cells best: its score is {score[chosen]:.2f} of that of columns alone"
        f"{' (' + ', '.join(others) + ')' if others else ''}{beside}."
    )

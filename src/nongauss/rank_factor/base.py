"""`RankFactors`: what the analysis and the classifier share, from a table to the record of a fit."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.estimator.base import TableEstimator, check_parameters, settings_of
from nongauss.estimator.by_parts import by_parts
from nongauss.optimise.course import FitResult, Status
from nongauss.optimise.loop import close_checkpoint, open_checkpoint
from nongauss.rank_factor.chains import Mixing, mixing_of, watched_names
from nongauss.rank_factor.config import (
    FEW_ROWS,
    ITERATIONS,
    MARGIN,
    MARGIN_OF_PAIRS,
    MOST_FACTORS,
    MOST_FACTORS_OF_FEW,
    OFFSET_PRECISION,
    RankConfig,
    RankRecipe,
    ShrinkagePrior,
)
from nongauss.rank_factor.data import (
    CellCoding,
    CodedTable,
    FloatArray,
    code_ranks,
    code_values,
)
from nongauss.rank_factor.factor_number import blocks_of, number_of_factors
from nongauss.rank_factor.fit import fit
from nongauss.rank_factor.parts import fit_parts, levels_of_parts
from nongauss.rank_factor.predict import (
    FittedFactors,
    OutputCalibration,
    PosteriorDraw,
    checked_coverage,
    interval,
)
from nongauss.rank_factor.reading import (
    RawTable,
    check_streams,
    raw_cells,
    read_parts,
    read_table,
    within,
)
from nongauss.rank_factor.resampling import ResampledSpread, half_width, resampled_spread, widened
from nongauss.rank_factor.score_model import ScoreModel
from nongauss.rank_factor.start import Problem, problem_of
from nongauss.tables.learn import as_source

_MOST_STEPS = 1000
"""No fit takes more unrolled steps."""


def _check_pair(name: str, given: Any, what: str, example: str) -> None:
    """Raises InputError unless a parameter is two positive numbers."""
    pair = tuple(given) if np.iterable(given) else ()
    if len(pair) != 2 or not all(isinstance(s, numbers.Real) and 0 < float(s) < np.inf for s in pair):
        raise InputError(f"{name} must be two positive {what}, got {given!r}; {example}.")


class RankFactors(TransformerMixin, TableEstimator):  # type: ignore[misc]
    """Base of the two estimators: a subclass says whether there are labels."""

    n_factors: Any
    observation: str
    inference: str
    neighbours: str
    n_levels: int
    epsilon: Any
    shrinkage: Any
    slab: Any
    noise_prior: Any
    max_iter: Any
    n_chains: int
    checkpoint: str | os.PathLike[str] | None
    random_state: Any
    max_rows: int | None
    draws_: tuple[PosteriorDraw, ...]
    chain_: NDArray[np.integer[Any]]
    _coding: CellCoding
    _config: RankConfig
    _calibration: OutputCalibration | None
    _cell_type: str
    _not_saved = frozenset({"_problem"})
    _problem: Problem | None = None
    _resampled: ResampledSpread | None = None
    _scores: ScoreModel | None = None

    def _check(self) -> None:
        """Refuse parameters that are impossible alone or together. Raises InputError; warns of "extremes"."""
        check_parameters(self)
        _check_pair("shrinkage", self.shrinkage, "shapes (r, s)", "(0.5, 0.5) is the horseshoe")
        _check_pair("noise_prior", self.noise_prior, "numbers (shape, rate)", "(1.0, 0.1) is the default")
        if self.observation == "rank" and self.neighbours == "extremes":
            warnings.warn(
                'neighbours="extremes" is the published rule; its updates belong to no density and tend to '
                'diverge: prefer "level".',
                NongaussWarning,
                stacklevel=4,
            )
        is_trained = self.inference == "predictive"
        if is_trained and self.observation == "rank" and self.neighbours != "level":
            raise InputError(
                f'inference="predictive" needs neighbours="level", got {self.neighbours!r}; '
                'set it, or take inference="vb".'
            )

    def _read(self, X: Any, y: Any, sample_weight: Any, labels: bool) -> RawTable:
        """The table of at most `max_rows` rows, encoded. Raises InputError."""
        name, seed = type(self).__name__, self._key_seed(self.random_state) if self.max_rows else 0
        source = as_source(X, y if labels else None, sample_weight, estimator_name=name)
        if not source.in_memory and self.max_rows is None:
            check_streams(name, self.get_params(deep=False))
            return read_parts(source, name, labels)
        source = within(source, name, labels, self.max_rows, seed)
        return read_table(source, name, self.observation == "rank", labels)

    def _fit(self, raw: RawTable, settings: dict[str, Any]) -> FitResult:
        """Fit to an encoded table; `settings` go to `RankConfig`."""
        seed = self._key_seed(self.random_state)
        table = self._coded(raw)
        found = self._factors_found(raw, table, seed)
        config = self._config_of(table.rows.shape, found, settings)
        told = self._settings_that_matter(), raw.encoder
        seed, checkpoint = open_checkpoint(self.checkpoint, seed, self.random_state, tuple(table[:-1]), *told)
        max_iter = ITERATIONS[self.inference] if self.max_iter == "auto" else int(self.max_iter)
        recipe = settings_of(RankRecipe, self, max_iter=max_iter, seed=seed)
        run = self._run(checkpoint)
        if raw.parts is None:
            result, fitted = fit(table, config, recipe, run)
        else:
            result, fitted = fit_parts(table, raw.parts, config, recipe, run)
        self._seed = seed
        has_rows = self.inference == "vb" and raw.parts is None
        self._problem = problem_of(table, config, recipe) if has_rows else None
        self._resampled = None
        self._keep_donors(None, table.shows_rows)
        self._keep_encoder(raw.encoder)
        names = raw.encoder.rank_names if self.observation == "rank" else raw.encoder.one_hot_names
        self.encoded_names_ = names or ("nothing",)
        self._keep(fitted)
        self.n_factors_ = config.n_factors
        self.n_active_ = min(found, config.n_factors)
        self._fit_scores(raw, table.order, config, seed)
        close_checkpoint(checkpoint, result.status)
        return result

    def _fit_scores(self, raw: RawTable, order: NDArray[np.intp], config: RankConfig, seed: int) -> None:
        """What an estimator learns beside the factors, from the rows of `raw` in this order: nothing."""

    def _factors_found(self, raw: RawTable, table: CodedTable, seed: int) -> int:
        """How many factors the table holds, whatever the number that is fitted."""
        blocks = blocks_of(raw.encoder, "rank_names" if self.observation == "rank" else "one_hot_names")
        cells, weight = raw.cells[table.order], raw.weight[table.order]
        return number_of_factors(cells, weight, blocks, self._most_factors(table.rows.shape), seed)

    @staticmethod
    def _most_factors(shape: tuple[int, int]) -> int:
        """The most factors for N rows and D columns where their number is not given."""
        n_rows, n_columns = shape
        return min(MOST_FACTORS if n_rows >= FEW_ROWS else MOST_FACTORS_OF_FEW, n_columns)

    def _config_of(self, shape: tuple[int, int], found: int, settings: dict[str, Any]) -> RankConfig:
        """The model's settings for N rows and D columns, with the classifier's own `settings`.

        `found`: how many factors the table holds, which is their number unless labels are to be told apart.
        """
        usual_number = self._most_factors(shape) if "n_outputs" in settings else max(1, found)
        K = usual_number if self.n_factors == "auto" else int(self.n_factors)
        by_levels = self.neighbours == "level" or self.observation == "gaussian"
        mixes = self.neighbours == "pairwise" and self.inference == "gibbs"
        usual = MARGIN if by_levels or mixes else MARGIN_OF_PAIRS
        eps = usual if self.epsilon == "auto" else float(self.epsilon)
        prior = self._prior()
        return settings_of(RankConfig, self, n_factors=K, eps=eps, prior=prior, **settings)

    def _prior(self) -> ShrinkagePrior:
        """The priors that the parameters name; there are offsets of a classifier alone."""
        (r, s), (shape, rate) = self.shrinkage, self.noise_prior
        offset = getattr(self, "offset_precision", OFFSET_PRECISION)
        return ShrinkagePrior(*map(float, (r, s, self.slab, shape, rate, offset)))

    def _coded(self, raw: RawTable) -> CodedTable:
        """The rows as the mathematics takes them, apart where each has factors of its own."""
        by_pairs = self.observation == "rank" and self.neighbours == "pairwise"
        apart = 'inference="gibbs"' if self.inference == "gibbs" else None
        apart = apart or ('neighbours="pairwise"' if by_pairs else None)
        if self.observation == "gaussian":
            return code_values(raw.cells, raw.numbers, raw.weight, apart)
        n_levels = int(self.n_levels) if self.neighbours == "level" else None
        known = None
        if raw.parts is not None and n_levels is not None:
            known = levels_of_parts(raw.parts, raw.cells[raw.weight > 0], n_levels)
        return code_ranks(raw.cells, raw.numbers, raw.weight, n_levels, apart, known)

    def _keep(self, fitted: FittedFactors) -> None:
        """What `fit` found, as attributes."""
        self._coding, self._config = fitted.coding, fitted.config
        self._calibration, self._cell_type = fitted.calibration, fitted.cell_type
        self.draws_, self.chain_, self.watched_ = fitted.draws, fitted.chain, fitted.watched
        if fitted.watched.size:
            self.r_hat_, self.effective_draws_ = mixing_of(fitted.watched)

    def _record_fit(self, result: FitResult) -> None:
        """As every fit; where chains have not mixed it warns, and `converged_` is False."""
        super()._record_fit(result)
        if self.inference != "gibbs" or result.status is not Status.COMPLETED:
            return
        shape = self.draws_[0].A.shape
        n_watched = self.watched_.shape[2] if self.watched_.size else 0
        names = watched_names(n_watched, shape, self.encoded_names_, self._config.n_outputs > 0)
        mixing = Mixing(self.r_hat_, self.effective_draws_) if n_watched else Mixing(*np.full((2, 1), np.nan))
        worst = mixing.worst(names, self.n_iter_ // max(1, self.n_chains))
        if worst is not None:
            self.converged_, self.stop_reason_ = False, worst
            warnings.warn(f"{type(self).__name__}: {worst}", ConvergenceWarning, stacklevel=3)

    def check_loaded(self) -> None:
        """Raises ValueError where draws, coding and columns do not fit each other."""
        n_columns, config = len(self._encoder.rank_names), self._config
        scores = set()
        for draw in self.draws_:
            shapes = draw.A.shape == (n_columns, config.n_factors), 0 <= draw.steps <= _MOST_STEPS
            scores.add((draw.lower.shape, draw.beta.shape, draw.steps))
            if not all(shapes):
                raise ValueError("draws that are not of these columns")
        places = [] if self._scores is None else [margin.flat for margin in self._scores.margins]
        if any(not 0 <= place < len(self._encoder.columns) for place in places):
            raise ValueError("laws of columns that are not there")
        levels = self._coding.levels
        if self._cell_type not in ("float32", "float64"):
            raise ValueError(f"cells held as {self._cell_type!r}")
        if len(scores) != 1 or len(self.chain_) != len(self.draws_):
            raise ValueError("draws of several fits")
        coding = self._coding
        if levels is None and (len(coding.scales), len(coding.clips) or n_columns) != (n_columns,) * 2:
            raise ValueError("scales that are not of these columns")
        if levels is not None and levels.low.shape != self.draws_[0].lower.shape:
            raise ValueError("levels that are not of these columns")

    @property
    def _fitted(self) -> FittedFactors:
        """What `fit` found, as one record. Raises NotFittedError."""
        check_is_fitted(self, "draws_")
        return FittedFactors(
            self._coding,
            self._config,
            self.draws_,
            self.chain_,
            self.watched_,
            self._calibration,
            self._cell_type,
        )

    def _raw(self, X: Any) -> FloatArray:
        """Raw cells (N, D) of new rows. Raises NotFittedError, InputError."""
        by_rank = self._fitted.config.observation == "rank"
        return raw_cells(self._encoder, X, by_rank, type(self).__name__)

    @by_parts
    def transform(self, X: Any) -> FloatArray:
        """Mean factors of each row, from its ranks or values alone: (N, K), in prior standard deviations."""
        return self._fitted.factors(self._raw(X))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Names of the factors: "factor0", "factor1", ..."""
        return np.array([f"factor{k}" for k in range(self._fitted.config.n_factors)], dtype=object)

    @property
    def _n_features_out(self) -> int:
        """The number of factors, which scikit-learn's transformers ask for."""
        return self._config.n_factors

    def inverse_transform(self, Z: ArrayLike) -> FloatArray:
        """Typical cells (N, D), by encoded column in original units, of factors Z (N, K).

        For ranks: the middle of the level with the nearest mean score, interpolated. Raises InputError for
        a different number of factors.
        """
        fitted = self._fitted
        factors = np.asarray(Z, dtype=np.float64)
        if factors.ndim != 2 or factors.shape[1] != fitted.config.n_factors:
            raise InputError(f"Z must have shape (N, {fitted.config.n_factors}), got {factors.shape}.")
        return fitted.typical(factors)

    @property
    def loadings_(self) -> pd.DataFrame:
        """Posterior mean loadings, encoded columns by factors: (D, K), scores a unit of a factor."""
        return pd.DataFrame(
            self._fitted.loadings(),
            index=list(self.encoded_names_),
            columns=list(self.get_feature_names_out()),
        )

    def top_columns(self, factor: int | str, n: int = 10) -> pd.Series:
        """The n columns with the largest loadings (by size) on a factor, by number or name, largest first.

        Raises InputError for a factor that does not exist, and for n below 1.
        """
        loadings = self.loadings_
        names = list(loadings.columns)
        number = names.index(factor) if factor in names else factor
        if not (isinstance(number, numbers.Integral) and 0 <= int(number) < len(names)):
            raise InputError(
                f"factor must be a number from 0 to {len(names) - 1} or a name such as {names[0]!r}, "
                f"got {factor!r}."
            )
        if not (isinstance(n, numbers.Integral) and n >= 1):
            raise InputError(f"n must be a whole number of columns from 1 on, got {n!r}; for example 10.")
        column = loadings.iloc[:, int(number)]
        return column.iloc[np.argsort(-column.abs().to_numpy(), kind="stable")[:n]]

    def loading_intervals(self, coverage: float = 0.9) -> FloatArray:
        """Intervals of the loadings: (D, K, 2).

        With draws, their quantiles. After "vb", whose own posteriors are too narrow, intervals come from
        the mean and the standard deviation of fits to 20 bootstrap samples of the rows; the first call
        makes these fits. Raises InputError after inference="predictive", which has no posterior, and if the
        rows are not available: a file or a pickle holds the standard deviations if they were computed
        before, but never the rows.
        """
        return self._intervals(lambda draw: draw.A, lambda spread: spread.loadings, coverage)

    def _intervals(
        self,
        of: Callable[[PosteriorDraw], FloatArray],
        spread_of: Callable[[ResampledSpread], FloatArray],
        coverage: float,
    ) -> FloatArray:
        """Intervals (..., 2) of what a function takes from a draw, and another from the spread of "vb"."""
        share, draws = checked_coverage(coverage), self._with_posterior().draws
        if draws[0].covariance is None:
            return interval(np.array([of(draw) for draw in draws], dtype=np.float64), share)
        half = half_width(spread_of(self._spread()), share)
        return np.stack([of(draws[0]) - half, of(draws[0]) + half], axis=-1)

    def _spread(self) -> ResampledSpread:
        """The spread over drawn tables, found once. Raises InputError where the rows are gone."""
        if self._resampled is None:
            if self._problem is None:
                raise InputError(
                    "Intervals after variational Bayes are made by fits to tables drawn from the rows, which "
                    "a model that was saved, pickled or fitted to parts does not hold: call "
                    '`loading_intervals` once before saving, fit anew in memory, or take inference="gibbs".'
                )
            self._resampled = resampled_spread(self._problem, self.draws_[0], self._seed)
        return self._resampled

    def __getstate__(self) -> dict[str, Any]:
        """All but the rows of the fit: a pickle holds no more of a table than a file."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._not_saved}

    def _with_posterior(self) -> FittedFactors:
        """What `fit` found. Raises InputError for training for prediction, which has no posterior."""
        fitted = self._fitted
        if fitted.draws[0].steps:
            raise InputError(
                'inference="predictive" has no posterior and so no intervals; take "vb" or "gibbs" for them.'
            )
        return fitted

    def to_arviz(self) -> Any:
        """Draws as arviz.InferenceData with dimensions chain, draw, column, factor. Needs the arviz extra.

        For a variational fit: 500 draws from normal distributions as wide as its intervals. Raises
        InputError for a fit without a posterior, and as `loading_intervals`.
        """
        fitted = self._with_posterior()
        from nongauss.rank_factor.arviz_export import inference_data, sampled

        draws, chain = fitted.draws, fitted.chain
        if draws[0].covariance is not None:
            wide = widened(draws[0], self._spread())
            draws = sampled(np.random.default_rng(self._seed), wide)
            chain = np.zeros(len(draws), np.intp)
        coordinates: dict[str, Any] = {"column": self.encoded_names_, "factor": self.get_feature_names_out()}
        return inference_data(draws, chain, {**coordinates, **self._output_names()})

    def _output_names(self) -> dict[str, Sequence[Any]]:
        """The classes that outputs stand for, by the name of their axis; nothing without labels."""
        return {}

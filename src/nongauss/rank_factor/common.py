"""What the two estimators share: parameters, from a table to coded rows, readable results."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.estimator.base import TableEstimator
from nongauss.estimator.parameters import Interval, StrOptions, check_parameters
from nongauss.optimise.mcmc_diagnostics import effective_size, split_rhat
from nongauss.optimise.result import FitResult
from nongauss.rank_factor import fit as recipe_of
from nongauss.rank_factor import predict
from nongauss.rank_factor import rotate as align
from nongauss.rank_factor.coding import Coding, has_lone_row, repeated, scale_of, with_a_column
from nongauss.rank_factor.columns import raw_cells, raw_names
from nongauss.rank_factor.fit import Fitted, Recipe
from nongauss.rank_factor.levels import MOST, find_levels, neighbours_of
from nongauss.rank_factor.params import Config, FloatArray, Normal
from nongauss.rank_factor.predict import Draw
from nongauss.rank_factor.rank_likelihood import Rows
from nongauss.rank_factor.sample import within
from nongauss.rank_factor.shrinkage import Prior
from nongauss.rank_factor.updates import Labels
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.inputs import Inputs
from nongauss.tables.parted import by_parts
from nongauss.tables.rows import Rows as MergedRows
from nongauss.tables.rows import canonical_rows

CONSTRAINTS: dict[str, list[Any]] = {
    "n_factors": [StrOptions({"auto"}), Interval(numbers.Integral, 1, None, closed="left")],
    "observation": [StrOptions({"rank", "gaussian"})],
    "neighbours": [StrOptions({"level", "pairwise", "extremes"})],
    "n_levels": [Interval(numbers.Integral, 2, MOST, closed="both")],
    "epsilon": [StrOptions({"auto"}), Interval(numbers.Real, 0, None, closed="neither")],
    "shrinkage": ["array-like"],
    "n_chains": [Interval(numbers.Integral, 1, None, closed="left")],
    "n_draws": [Interval(numbers.Integral, 1, None, closed="left")],
    "max_iter": [StrOptions({"auto"}), Interval(numbers.Integral, 1, None, closed="left")],
    "tol": [Interval(numbers.Real, 0, None, closed="left")],
    "callbacks": ["array-like", None],
    "random_state": ["random_state", np.random.Generator],
    "max_rows": [Interval(numbers.Integral, 2, None, closed="left"), None],
    "verbose": ["verbose"],
}
ITERATIONS = {"vb": 100, "gibbs": 500, "predictive": 500}
MARGIN_OF_PAIRS = 10.0
ACTIVE = 0.01
"""A factor is active if its loadings' mean square is at least this share of the largest factor's."""
_MISSING = np.float32(-3e38)


class RankFactors(TableEstimator):
    """Base of the two estimators: a subclass says whether there are labels."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS
    n_factors: Any
    observation: str
    inference: str
    neighbours: str
    n_levels: int
    epsilon: Any
    shrinkage: Any
    n_chains: int
    n_draws: int
    max_iter: Any
    tol: float
    callbacks: Any
    random_state: Any
    max_rows: int | None
    verbose: int

    def _check(self) -> None:
        check_parameters(self)
        shapes = tuple(self.shrinkage)
        if len(shapes) != 2 or not all(isinstance(s, numbers.Real) and 0 < float(s) < np.inf for s in shapes):
            raise InputError(
                f"shrinkage must be two positive shapes (r, s), got {self.shrinkage!r}; "
                "(0.5, 0.5) is the horseshoe."
            )
        if self.observation == "rank" and self.neighbours == "extremes":
            warnings.warn(
                'neighbours="extremes" is the published rule; its updates belong to no density and tend to '
                'diverge: prefer "level".',
                NongaussWarning,
                stacklevel=4,
            )
        if self.inference == "predictive" and (self.observation, self.neighbours) not in (
            ("rank", "level"),
            ("gaussian", self.neighbours),
        ):
            raise InputError(
                f'inference="predictive" needs neighbours="level", got {self.neighbours!r}; '
                'set it, or take inference="vb".'
            )

    def _within(self, X: Any, y: Any, sample_weight: Any, labels: bool) -> tuple[Any, Any, Any]:
        """X, y and weights of at most `max_rows` rows in memory."""
        name, seed = type(self).__name__, self._key_seed(self.random_state) if self.max_rows else 0
        return within(X, y, sample_weight, labels, self.max_rows, seed, name)

    def _fit(self, X: Any, inputs: Inputs, y: FloatArray | None, settings: dict[str, Any]) -> FitResult:
        """Fit to a table as read, and labels (N,) as class numbers or None; `settings` go to `Config`."""
        seed = self._key_seed(self.random_state)
        encoder, _, checked = inputs
        cells = with_a_column(
            raw_cells(encoder, X, self.observation == "rank", type(self).__name__, warn=False)
        )
        coding, rows, numbers_, heavy = self._rows(cells, y, checked)
        n_rows, n_columns = rows.shape
        K = min(20 if n_rows >= 100 else 10, n_columns) if self.n_factors == "auto" else int(self.n_factors)
        by_levels = self.neighbours == "level" or self.observation == "gaussian"
        eps = (1.0 if by_levels else MARGIN_OF_PAIRS) if self.epsilon == "auto" else float(self.epsilon)
        config = Config(
            K, self.observation, self.neighbours, eps, prior=Prior(*map(float, self.shrinkage)), **settings
        )
        recipe = Recipe(
            self.inference,
            ITERATIONS[self.inference] if self.max_iter == "auto" else int(self.max_iter),
            float(self.tol), seed, int(self.n_chains), int(self.n_draws),
            float(getattr(self, "learning_rate", 0.01)),
        )  # fmt: skip
        labels = Labels(one_against_rest(numbers_, config.n_outputs), heavy)
        result, fitted = recipe_of.fit(
            rows, labels, config, recipe, tuple(self.callbacks or ()), int(self.verbose)
        )
        self._seed = seed
        self._cell_type = np.dtype(recipe_of.cell_type(rows)).name
        self._keep(encoder, coding, config, fitted)
        return result

    def _rows(
        self, cells: FloatArray, y: FloatArray | None, weight: FloatArray
    ) -> tuple[Coding, Rows, FloatArray, FloatArray]:
        """The coding, canonical rows, their labels and weights."""
        numbers_ = np.zeros(len(cells)) if y is None else y
        counted = weight > 0
        if self.observation == "rank":
            wanted = int(self.n_levels) if self.neighbours == "level" else None
            levels = find_levels(cells[counted], weight[counted], wanted)
            coding = Coding(levels, ())
            seen = levels.codes(cells)
            self.holds_training_rows_ = self.neighbours != "level" or has_lone_row(seen[counted])
            merged = self._apart(canonical_rows(seen, numbers_[:, None], weight))
            codes = merged.X.astype(np.uint8)
            rows = Rows(neighbours_of(codes, levels.counts), None, codes)
        else:
            scales = [scale_of(cells[:, i], weight) for i in range(cells.shape[1])]
            self.holds_training_rows_ = False
            coding = Coding(None, tuple((s.unit, s.mean, s.sd) for s in scales))
            values = coding.standardised(cells)
            merged = canonical_rows(np.where(np.isnan(values), _MISSING, values), numbers_[:, None], weight)
            merged = self._apart(merged)
            back = merged.X.astype(np.float64)
            rows = Rows(None, np.where(merged.X == _MISSING, np.nan, back))
        return coding, rows, merged.Y[:, 0].astype(np.float64), merged.weight

    def _apart(self, merged: MergedRows) -> MergedRows:
        """Equal rows apart again, where each needs factors of its own."""
        if self.inference == "gibbs":
            return repeated(merged, 'inference="gibbs"')
        pairs = self.observation == "rank" and self.neighbours == "pairwise"
        return repeated(merged, 'neighbours="pairwise"') if pairs else merged

    def _keep(self, encoder: TableEncoder, coding: Coding, config: Config, fitted: Fitted) -> None:
        self._keep_encoder(encoder)
        self.encoded_names_ = raw_names(encoder, config.observation == "rank") or ("nothing",)
        self._coding, self._config = coding, config
        self.draws_ = align.aligned(fitted.draws)
        self.chain_ = fitted.chain
        self._calibration = fitted.calibration
        self.watched_ = fitted.watched
        sizes = (self._loadings() ** 2).mean(axis=0)
        self.n_active_ = int((sizes >= ACTIVE * sizes.max()).sum())
        if fitted.watched.size:
            each = fitted.watched.transpose(2, 0, 1)
            self.r_hat_ = np.array([split_rhat(chains) for chains in each])
            self.effective_draws_ = np.array([effective_size(chains) for chains in each])

    def _raw(self, X: Any) -> FloatArray:
        """Raw cells of new rows."""
        self._checked()
        by_rank = self._config.observation == "rank"
        return with_a_column(raw_cells(self._encoder, X, by_rank, type(self).__name__))

    def _checked(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "draws_")

    def _mean_over_draws(self, X: Any, of: Callable[[Draw, Normal], FloatArray]) -> FloatArray:
        """The mean of of(draw, q(z) of new rows) over draws, of some rows at a time: (N, ...)."""
        cells = self._raw(X)
        return np.concatenate(
            [self._block(cells[part], of) for part in predict.blocks(len(cells), self._config.n_factors**2)]
        )

    def _block(self, cells: FloatArray, of: Callable[[Draw, Normal], FloatArray]) -> FloatArray:
        full = np.pad(cells, ((0, -len(cells) % predict.EVEN), (0, 0)), mode="edge")
        rows = self._coding.rows(full)
        each = (of(draw, predict.factors(draw, rows, self._config, self._cell_type)) for draw in self.draws_)
        return reduce(np.add, each)[: len(cells)] / len(self.draws_)

    @by_parts
    def transform(self, X: Any) -> FloatArray:
        """Mean factors of each row, from its ranks or values alone: (N, K), in prior standard deviations."""
        return self._mean_over_draws(X, lambda draw, z: z.mean)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Names of the factors: "factor0", "factor1", ..."""
        self._checked()
        return np.array([f"factor{k}" for k in range(self._config.n_factors)], dtype=object)

    @property
    def _n_features_out(self) -> int:
        return self._config.n_factors

    def inverse_transform(self, Z: ArrayLike) -> FloatArray:
        """Typical cells (N, D), by encoded column in original units, of factors Z (N, K).

        Of ranks: the middle of the level whose mean score is nearest, interpolated. Raises InputError for
        another number of factors.
        """
        self._checked()
        factors = np.asarray(Z, dtype=np.float64)
        if factors.ndim != 2 or factors.shape[1] != self._config.n_factors:
            raise InputError(f"Z must have shape (N, {self._config.n_factors}), got {factors.shape}.")
        tables = np.mean([np.asarray(draw.lower, np.float64) for draw in self.draws_], axis=0)
        return self._coding.typical(factors @ self._loadings().T, tables)

    def _loadings(self) -> FloatArray:
        self._checked()
        return np.mean([np.asarray(draw.A, np.float64) for draw in self.draws_], axis=0)

    @property
    def loadings_(self) -> pd.DataFrame:
        """Posterior mean loadings, encoded columns by factors: (D, K), scores a unit of a factor."""
        return pd.DataFrame(
            self._loadings(), index=list(self.encoded_names_), columns=list(self.get_feature_names_out())
        )

    def top_columns(self, factor: int | str, n: int = 10) -> pd.Series:
        """The n columns with the largest loadings (by size) on a factor, by number or name, largest first.

        Raises InputError for a factor that is not there, and for n below 1.
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
        """Credible intervals of the loadings: (D, K, 2); from draws, or normal with variational variances.

        Raises InputError after inference="predictive", which has no posterior.
        """
        self._with_posterior()
        first = self.draws_[0].covariance
        sd = None if first is None else np.sqrt(np.einsum("dkk->dk", first))
        return interval(np.array([draw.A for draw in self.draws_], dtype=np.float64), sd, coverage)

    def _with_posterior(self) -> None:
        self._checked()
        if self.draws_[0].steps:
            raise InputError(
                'inference="predictive" has no posterior and so no intervals; take "vb" or "gibbs" for them.'
            )

    def to_arviz(self) -> Any:
        """Draws as arviz.InferenceData with dimensions chain, draw, column, factor. Needs the arviz extra.

        Of a variational fit: 500 draws from its normals. Raises InputError for a fit without a posterior.
        """
        self._with_posterior()
        from nongauss.rank_factor.arviz_form import inference_data, sampled

        draws, chain = self.draws_, self.chain_
        if draws[0].covariance is not None:
            draws = sampled(np.random.default_rng(self._seed), draws[0])
            chain = np.zeros(len(draws), np.intp)
        coordinates: dict[str, Any] = {"column": self.encoded_names_, "factor": self.get_feature_names_out()}
        return inference_data(draws, chain, {**coordinates, **self._output_names()})

    def _output_names(self) -> dict[str, Sequence[Any]]:
        """The classes that outputs stand for, by the name of their axis; nothing without labels."""
        return {}


def interval(draws: FloatArray, sd: FloatArray | None, coverage: float) -> FloatArray:
    """Central intervals of S draws (S, ...): (..., 2); of one summary with its standard deviations."""
    from scipy.special import ndtri

    if not (isinstance(coverage, numbers.Real) and 0 < coverage < 1):
        raise InputError(f"coverage must lie between 0 and 1, got {coverage!r}; for example 0.9.")
    tail = 0.5 - 0.5 * float(coverage)
    if sd is None:
        return np.moveaxis(np.quantile(draws, [tail, 1.0 - tail], axis=0), 0, -1)
    half = -ndtri(tail) * sd
    return np.stack([draws[0] - half, draws[0] + half], axis=-1)


def one_against_rest(numbers_: FloatArray, n_outputs: int) -> FloatArray:
    """Class numbers (N,) as -1 and 1: (N, C); of two classes the second against the first, (N, 1)."""
    if n_outputs == 1:
        return np.where(numbers_ == 1, 1.0, -1.0)[:, None]
    return np.where(numbers_[:, None] == np.arange(n_outputs), 1.0, -1.0)

"""`RankFactorAnalysis`, what a user calls."""

from __future__ import annotations

import numbers
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from nongauss.core.errors import InputError
from nongauss.estimator.base import (
    Callbacks,
    CheckpointPath,
    Interval,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    RandomState,
    Verbosity,
)
from nongauss.estimator.imputation import CellImputer, MissingLaws, known_alone
from nongauss.rank_factor.base import RankFactors
from nongauss.rank_factor.config import LevelCount, RankConfig
from nongauss.rank_factor.data import FloatArray
from nongauss.rank_factor.reading import RawTable
from nongauss.rank_factor.score_density import log_densities
from nongauss.rank_factor.score_model import ScoreModel, learn_scores
from nongauss.rank_factor.score_predict import complete
from nongauss.tables.filling import Gaps, find_gaps
from nongauss.tables.margins import Margin, learn_margins

MOST_MARGIN_ROWS = 20_000
"""Rows by which the distributions of the columns are known."""


class RankFactorAnalysis(CellImputer, RankFactors):
    r"""Sparse factors that depend only on the order of each column's values.

    w = A z with z ~ N(0, I) stands behind the table; column i shows x_i = g_i(w_i), with g_i increasing and
    never estimated. Only ranks enter, by a max-margin likelihood: a value asks its score to lie `epsilon`
    above the score of its lower neighbour and below that of its upper one, `exp(-2 [epsilon + w - w_upper]_+
    - 2 [epsilon + w_lower - w]_+)`. An increasing transform of any column changes nothing, to the last bit.
    Loadings are shrunk by a three-parameter-beta prior. Missing cells drop out.

    Parameters
    ----------
    n_factors : "auto" or int, default "auto"
        Number K; "auto": as many as likelihood-ratio tests of the columns' normal scores call for, 20 at most
        (10 below 100 rows) and 1 at least. The tests see ranks alone: an increasing map of a column changes
        nothing.
    observation : {"rank", "gaussian"}, default "rank"
        "gaussian" takes the standardised values with normal noise instead: ordinary Bayesian factor analysis.
    inference : {"vb", "gibbs"}, default "vb"
        Variational Bayes, or Gibbs sampling with `n_chains` chains.
    neighbours : {"level", "pairwise", "extremes"}, default "level"
        "level": ranks are merged into `n_levels` levels; a neighbour is the mean of the next level.
        "pairwise": one density over pairs that are adjacent in order; exact, for small tables. "extremes": as
        published, the highest of all lower values and the lowest of all higher ones; it tends to diverge.
    n_levels : int, default 8
        Levels of a column; a frequent value is a level of its own.
    epsilon : "auto" or float > 0, default "auto"
        Margin, an inverse temperature: it sets how firmly ranks are believed. "auto": 1, and 10 for
        "pairwise" (not in chains, which would not mix) and "extremes".
    shrinkage : (r, s), default (0.5, 0.5)
        Shapes of the three-parameter-beta prior; (0.5, 0.5) is the horseshoe.
    slab : float > 0, default 1.0
        Precision of a second, normal prior of the loadings of ranks, whose scale no order of values can tell.
    noise_prior : (shape, rate), default (1.0, 0.1)
        Gamma prior of the inverse noise variance: of a column in standard deviations, and of its
        normal scores, by which cells are filled.
    n_chains, n_draws : int, default 2 and 50
        Of "gibbs": chains, each run `max_iter` sweeps, the second half kept; draws that are kept in all.
    max_iter : "auto" or int, default "auto"
        Most sweeps; "auto" is 100 for "vb", 500 for "gibbs".
    tol : float, default 3e-3
        "vb" ends when a sweep gains less than this share of the bound.
    callbacks : list of callables, default None
        Each is given a `Progress` after each sweep; one that returns True stops the fit.
    checkpoint : path, default None
        File in which a fit is kept while it runs; interrupted, it goes on from there, to the same bits.
    max_rows : int or None, default None
        Learn from a random sample of so many rows at most. A table in parts (see `docs/scale.md`) needs it
        but for ranks by levels with inference "vb", the defaults, which learn from all rows.
    random_state : int, RandomState, Generator or None, default None
    verbose : int, default 0

    Attributes
    ----------
    loadings_ : DataFrame (D, K)
        By encoded column and factor; factors in order of size.
    n_factors_ : int
        Factors that were fitted.
    n_active_ : int
        How many of them the table calls for, by the tests of "auto" whatever `n_factors` was; 0 where no two
        columns go together.
    draws_, chain_ : tuple and (S,)
        The posterior: one summary, or draws and the chain of each.
    r_hat_, effective_draws_ : arrays
        Of "gibbs": of the bound, the loadings' square sum, decision values (or scores) of eight rows and up
        to 60 loadings. Above 1.1, or below 20 draws, `fit` warns and `converged_` is False.
    holds_training_rows_ : bool
        Whether a saved file shows rows: a level of a column holds one row alone.
    encoded_names_, n_iter_, converged_, stop_reason_, trace_
        The trace's bound holds the terms of cells and factors, in nats up to a constant.

    References
    ----------
    Yuan, Henao, Tsalik, Langley and Carin, Non-Gaussian Discriminative Factor Models via the Max-Margin Rank
    Likelihood, ICML 2015, supplement, sections 1 to 3; corrections in rank_factor/NOTATION.md.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from nongauss import RankFactorAnalysis
    >>> X, _ = load_wine(return_X_y=True)
    >>> model = RankFactorAnalysis(n_factors=3, random_state=0).fit(X)
    >>> model.transform(X).shape
    (178, 3)
    """

    def __init__(
        self,
        n_factors: PositiveInt | Literal["auto"] = "auto",
        *,
        observation: Literal["rank", "gaussian"] = "rank",
        inference: Literal["vb", "gibbs"] = "vb",
        neighbours: Literal["level", "pairwise", "extremes"] = "level",
        n_levels: LevelCount = 8,
        epsilon: PositiveFloat | Literal["auto"] = "auto",
        shrinkage: Annotated[tuple[float, float], "array-like"] = (0.5, 0.5),
        slab: PositiveFloat = 1.0,
        noise_prior: Annotated[tuple[float, float], "array-like"] = (1.0, 0.1),
        n_chains: PositiveInt = 2,
        n_draws: PositiveInt = 50,
        max_iter: PositiveInt | Literal["auto"] = "auto",
        tol: NonNegativeFloat = 3e-3,
        callbacks: Callbacks = None,
        checkpoint: CheckpointPath = None,
        max_rows: Annotated[int, Interval(numbers.Integral, 2, None, closed="left")] | None = None,
        random_state: RandomState = None,
        verbose: Verbosity = 0,
    ) -> None:
        self.n_factors = n_factors
        self.observation = observation
        self.inference = inference
        self.neighbours = neighbours
        self.n_levels = n_levels
        self.epsilon = epsilon
        self.shrinkage = shrinkage
        self.slab = slab
        self.noise_prior = noise_prior
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.max_iter = max_iter
        self.tol = tol
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.max_rows = max_rows
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a table X (N, D); y is ignored. Weight 2 is the row twice, 0 the row gone.

        A weight of less than 1e-12 times the largest counts as that, and one above 1e12 as 1e12.

        Raises InputError for a table, weights or a parameter that cannot be used.
        """
        self._check()
        self._record_fit(self._fit(self._read(X, None, sample_weight, labels=False), {}))
        return self

    def _fit_scores(self, raw: RawTable, order: NDArray[np.intp], config: RankConfig, seed: int) -> None:
        """Learn the model of scores by which missing cells are told, from rows in canonical order."""
        order = order[:MOST_MARGIN_ROWS]
        columns = [column.take(order) for column in raw.columns]
        margins, cells = learn_margins(raw.encoder, columns, raw.weight[order])
        self._scores = learn_scores(margins, cells, raw.weight[order], config.prior, seed)

    @property
    def _score_model(self) -> ScoreModel:
        """What fills cells. Raises NotFittedError, and InputError of an older model."""
        check_is_fitted(self, "draws_")
        if self._scores is None:
            raise InputError(
                "This model was fitted by an older version, without what fills cells; fit it anew."
            )
        return self._scores

    @property
    def _cell_margins(self) -> tuple[Margin, ...]:
        """The columns that can be filled."""
        return self._score_model.margins

    def _complete(self, gaps: Gaps, seed: int, n: int | None) -> MissingLaws:
        """What the missing cells may be, by the model of scores."""
        return complete(self._score_model, known_alone(gaps), gaps.missing, seed, n)

    def score_samples(self, X: Any) -> FloatArray:
        """Log density of what is known of each row, nats: (N,); gaps are integrated out.

        By the model of normal scores: numbers count by their density in their own units, values that are
        frequent, grades and labels by their probability. Bounds of scores are integrated by expectation
        propagation, within .06 nats of quadrature, mostly within .01. Raises NotFittedError, InputError.
        """
        gaps = find_gaps(self._cell_encoder, self._cell_margins, X, type(self).__name__)
        return log_densities(self._score_model, known_alone(gaps))

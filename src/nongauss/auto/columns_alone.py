"""Missing cells by the distributions of their columns, each by itself: what any model has to beat."""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.estimator.base import NongaussEstimator, RandomState
from nongauss.estimator.imputation import CellImputer, MissingLaws
from nongauss.optimise.course import FitResult, Status
from nongauss.predictive.distribution import FloatArray
from nongauss.prob.normal_gaps import as_rows
from nongauss.tables.filling import Gaps
from nongauss.tables.learn import as_source, learn
from nongauss.tables.learn_margins import learn_margins
from nongauss.tables.margins import LabelCells, Margin, OrderedCells, RowNoise, row_hashes
from nongauss.tables.source import itself


class MarginImputer(CellImputer, NongaussEstimator):
    """Fills gaps by the distributions of columns, and by what a subclass learns of their cells."""

    def __init__(self, *, random_state: RandomState = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn each column by itself, and what they have in common. Raises InputError."""
        name, began = type(self).__name__, time.perf_counter()
        source = as_source(X, None, sample_weight, estimator_name=name)
        if not source.in_memory:
            raise InputError("Gaps are filled in tables in memory; give rows of the table as a frame.")
        self._encoder = learn(source, name, None, warn=False).encoder
        (part,) = source.each(itself)
        columns = self._encoder.raw(part.X, name, warn=False)
        self._margins, cells = learn_margins(self._encoder, columns, part.weight)
        self._seed = self._key_seed(self.random_state)
        self._learn(cells, part.weight)
        self.n_features_in_ = self._encoder.n_features
        if self._encoder.feature_names is not None:
            self.feature_names_in_ = np.array(self._encoder.feature_names, dtype=object)
        seconds = time.perf_counter() - began
        trace = [{"iteration": 1, "bound": 0.0, "seconds": seconds}]
        self._record_fit(FitResult(None, trace, Status.COMPLETED, 1))
        return self

    @property
    def _cell_margins(self) -> tuple[Margin, ...]:
        """The columns that can be filled. Raises NotFittedError."""
        check_is_fitted(self, "n_features_in_")
        return self._margins

    def _learn(self, cells: FloatArray, weight: FloatArray) -> None:
        """Learn what columns have in common from cells (N, J), NaN where missing; here nothing."""


@persistable("auto.ColumnsAlone")
class ColumnsAlone(MarginImputer):
    """Each missing cell has the distribution of its column."""

    def _learn(self, cells: FloatArray, weight: FloatArray) -> None:
        """How many cells tell the distribution of each column: (J,)."""
        self._n_known = np.maximum(as_rows(weight) @ ~np.isnan(cells), 2.0)

    def _as_unsure(self, normal: FloatArray, seed: int) -> FloatArray:
        """Scores (S, N, J) of tables, each with a level and a scale drawn from what n cells tell of these."""
        known = getattr(self, "_n_known", None)
        if known is None:  # of an older version
            return normal
        rng, found = np.random.default_rng(seed), np.empty_like(normal)
        for s, own in enumerate(normal):  # one by one: more draws begin as fewer do
            scale = np.sqrt((known - 1.0) / rng.chisquare(known - 1.0))
            found[s] = scale * (own + rng.standard_normal(len(known)) / np.sqrt(known))
        return found

    def _complete(self, gaps: Gaps, seed: int, n: int | None) -> MissingLaws:
        """The distribution of its column for each missing cell."""
        noise = RowNoise(row_hashes(gaps.cells, np.isnan(gaps.cells)), seed)
        normal = np.stack([noise.normal(len(self._margins)) for _ in range(n or 1)])
        if n is not None:
            normal = self._as_unsure(normal, seed)
        out: list[OrderedCells | LabelCells] = []
        for j, margin in enumerate(self._margins):
            rows = np.flatnonzero(gaps.missing[:, j])
            drawn = normal[:, rows, j]
            if margin.is_label:
                shares = margin.shares()
                place = np.minimum(np.searchsorted(margin.score_edges[1::2], drawn), len(shares) - 1)
                out.append(LabelCells(rows, np.tile(shares, (len(rows), 1)), place))
            else:
                zero = np.zeros((1, len(rows)))
                out.append(OrderedCells(rows, zero, zero + 1.0, drawn))
        return out

"""`SupervisedHarmonium`: what classification and regression by features that heed labels have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nongauss.estimator.base import check_parameters
from nongauss.estimator.gaps import labelled_as, over_gaps
from nongauss.estimator.known_rows import rows_to_compare
from nongauss.harmonium.base import FloatArray, HarmoniumBase
from nongauss.harmonium.config import HarmoniumRecipe
from nongauss.harmonium.contrastive_divergence import heeds_labels
from nongauss.harmonium.data import HarmoniumTable, VisibleRows
from nongauss.harmonium.fit import count_features, fit_global
from nongauss.harmonium.predict import NO_FILLER, Machine, cell_donors, learn_filler
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.course import FitResult, Run


class LearnedFeatures(NamedTuple):
    """How a fit went, what was learned, and what from: the `recipe` of one fit, rows without gaps, features.

    `given`: the rows as they came; `hidden` (N, K): their hidden means.
    """

    result: FitResult
    machine: Machine
    recipe: HarmoniumRecipe
    rows: VisibleRows
    given: VisibleRows
    hidden: FloatArray
    run: Run
    checkpoint: Checkpoint | None


class SupervisedHarmonium(HarmoniumBase):
    """A harmonium whose features are learned with labels; a subclass says what the labels are."""

    reading: str
    raw_features: bool

    def _learned(
        self, table: HarmoniumTable, X: Any, y: Any, sample_weight: Any, n_scores: int
    ) -> LearnedFeatures:
        """Learn features and votes of a table that was read; sets what no kind of label has for itself."""
        seed = self._key_seed(self.random_state)
        coder, layout = table.coder, table.coder.layout
        seed, checkpoint = self._opened(seed, table)
        run = self._run(checkpoint)
        recipe = self._recipe(len(coder.units), seed, n_scores)
        without: tuple[str, ...] = ()
        if self.n_components == "infinite" and self.units == "binary" and self.reading == "auto":
            found, without = count_features(layout, table.rows, recipe, run)
            recipe = recipe._replace(n_components=found, has_sticks=False)
        filler, given = NO_FILLER, table.rows
        if heeds_labels(recipe):
            filler = learn_filler(layout, table.rows, seed)
            table = filler.filled_table(table)
        rows = table.rows
        result, machine = fit_global(layout, rows, recipe, run, all_rows=table.all_rows, filler=filler)
        hidden = self._keep(coder, machine, rows, None)
        self.component_status_ += without
        raw = machine.params.raw.astype(np.float64)
        self.raw_votes_ = raw * coder.directions if raw.size else raw
        donors = cell_donors(coder, given, len(self.views or ()))
        name = type(self).__name__
        self._known_rows = None if donors is None else rows_to_compare(X, y, sample_weight, name)
        self._keep_donors(donors)
        return LearnedFeatures(result, machine, recipe, rows, given, hidden, run, checkpoint)

    def _checked_table(self, X: Any, y: Any, sample_weight: Any, labels: str) -> HarmoniumTable:
        """The table of a fit, parameters checked first. Raises ValueError."""
        check_parameters(self)
        return self._read(X, y, sample_weight, labels)

    def _over_cells(
        self, X: Any, say: Callable[[FloatArray], Any], average: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> Any:
        """`say` of the scores (N, C) of rows in memory; with missing cells, over what these may be."""
        encoded, missing = self._encoded(X)
        donors = getattr(self, "_donors", None)
        if donors is None or missing is None:
            return labelled_as(X, say(self.machine_.scores(encoded, missing)))
        missing = donors.missing_of(np.where(missing, np.nan, encoded))

        def of_rows(rows: FloatArray) -> Any:
            """What is said of rows without gaps."""
            return say(self.machine_.scores(rows.astype(np.float32), None))

        cells = encoded.astype(np.float64)
        return labelled_as(X, over_gaps(donors, cells, missing, of_rows, average=average))

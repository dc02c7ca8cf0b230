"""What an estimator says of missing cells: a value, a distribution, draws of a row's cells together."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.seeds import key_seed
from nongauss.predictive.cells import ColumnCells, MissingCells, drawn_values, law_of, point_of
from nongauss.predictive.distribution import checked_count
from nongauss.tables.column import listed
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.filling import Gaps, filled, find_gaps, left_open, own_terms
from nongauss.tables.margins import LabelCells, Margin, MixedCells, OrderedCells

MissingLaws = Sequence[OrderedCells | LabelCells | MixedCells]


class CellImputer:
    """Shorthands for an estimator that has `_complete`: what the missing cells of rows may be.

    Gaps may be anywhere, in the fit as well as here, whole rows among them. Cells that are there stay as they
    are.
    """

    @property
    @abstractmethod
    def _cell_margins(self) -> tuple[Margin, ...]:
        """The columns that can be filled. Raises NotFittedError."""

    @property
    def _cell_encoder(self) -> TableEncoder:
        """How the columns of the fit are read; that of most models."""
        encoder: TableEncoder = self._encoder  # type: ignore[attr-defined]
        return encoder

    @abstractmethod
    def _complete(self, gaps: Gaps, seed: int, n: int | None) -> MissingLaws:
        """Laws of missing cells of each margin, with n joint draws a row (None: as usual)."""

    def impute(self, X: Any) -> Any:
        """The table X with each missing cell at its median given the rest of its row; labels the likeliest.

        A table of the type of X, with its columns and its known cells as they are. Warns of columns that
        cannot be filled: empty in the fit, or texts that nearly all differ (fewer than two rows a text).
        Raises NotFittedError, InputError.
        """
        gaps = self._gaps(X)
        margins = self._cell_margins
        laws = self._complete(gaps, self._cell_seed(0), None)
        values = [
            (j, cells.rows, point_of(law_of(margins[j], cells)))
            for j, cells in enumerate(laws)
            if len(cells.rows)
        ]
        return filled(self._cell_encoder, margins, gaps, values)

    def impute_distribution(self, X: Any) -> MissingCells:
        """The distribution of each missing cell given the others of its row: see `MissingCells`.

        Raises NotFittedError, InputError.
        """
        gaps = self._gaps(X)
        margins = self._cell_margins
        laws = self._complete(gaps, self._cell_seed(0), None)
        cells = [
            ColumnCells(
                gaps.places[j],
                own.rows,
                law_of(margins[j], own),
                own_terms(self._cell_encoder, margins, gaps, j),
            )
            for j, own in enumerate(laws)
            if len(own.rows)
        ]
        return MissingCells(cells, gaps.table.labels)

    def sample_missing(self, X: Any, n: int = 1, random_state: Any = None) -> list[Any]:
        """n tables like X whose missing cells are drawn given the others: those of a row together.

        For multiple imputation: analyse each, and pool. A row's draws depend on the row (and on how many
        equal rows stand before it) and the seed alone; without `random_state` they are the same in each call.
        Raises NotFittedError, InputError.
        """
        gaps, margins = self._gaps(X), self._cell_margins
        n_tables = checked_count(n)
        if not n_tables:
            return []
        seed = self._cell_seed(1) if random_state is None else key_seed(random_state)
        laws = self._complete(gaps, seed, n_tables)
        values = [(j, own.rows, drawn_values(margins[j], own)) for j, own in enumerate(laws) if len(own.rows)]
        return [
            filled(self._cell_encoder, margins, gaps, [(j, rows, drawn[s]) for j, rows, drawn in values])
            for s in range(n_tables)
        ]

    def _cell_seed(self, salt: int) -> int:
        """The seed of what is drawn without another."""
        return int(getattr(self, "_seed", 0)) + salt

    def _gaps(self, X: Any) -> Gaps:
        """The gaps of a table. Warns of those that stay. Raises NotFittedError, InputError."""
        check_is_fitted(self, "n_features_in_")
        name = type(self).__name__
        if getattr(X, "shape", ()) and hasattr(X, "nnz"):
            raise InputError(
                f"{name} fills dense tables; a sparse one has no gaps: its empty cells are zeros."
            )
        gaps = find_gaps(self._cell_encoder, self._cell_margins, X, name)
        open_ = left_open(self._cell_encoder, self._cell_margins, gaps, name)
        if open_:
            warnings.warn(
                f"Gaps stay in {listed(open_)}: no cell was known in the fit, or nearly every row had "
                "a different text.",
                NongaussWarning,
                stacklevel=4,
            )
        return gaps


def known_alone(gaps: Gaps) -> NDArray[np.float64]:
    """The cells that say something, NaN elsewhere: (N, J)."""
    return np.where(gaps.missing, np.nan, gaps.cells)

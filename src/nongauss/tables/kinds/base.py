"""What a kind of column is: how its cells are told, decoded, summed up, laid out flat and printed."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.column import Column, ColumnSummary, labelled

TEXT = ("string", "boolean", "bytes")
"""What pandas calls cells that are labels."""


class ColumnKind(enum.Enum):
    """What a column is to a reader and as a target; the value is the word for it in messages."""

    REAL = "real"
    POSITIVE = "positive"
    COUNT = "count"
    ORDINAL = "ordinal"
    BINARY = "binary"
    CATEGORICAL = "categorical"
    TEXT = "text"
    DATE = "date"
    CONSTANT = "constant"


@dataclass(frozen=True)
class Cells:
    """The cells of one column as they came: a pandas series, or an array (N,) of a table without types."""

    name: str
    raw: Any

    @property
    def dtype(self) -> Any:
        """The type of the cells, as pandas or NumPy has it."""
        return self.raw.dtype

    @cached_property
    def objects(self) -> NDArray[np.object_]:
        """The cells as Python objects, (N,)."""
        if isinstance(self.raw, pd.Series):
            return self.raw.to_numpy(dtype=object)
        return np.asarray(self.raw).astype(object)

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Which of the objects are missing, (N,)."""
        return np.asarray(pd.isna(self.objects), dtype=np.bool_)

    @cached_property
    def content(self) -> str:
        """What pandas calls the type of the objects that are there: "string", "integer", "mixed", ..."""
        return str(pd.api.types.infer_dtype(self.objects[~self.missing], skipna=False))

    @cached_property
    def labels(self) -> Column:
        """The objects as labels."""
        return labelled(self.name, self.objects, self.missing)


class Kind(ABC):
    """A kind of column. One instance each; `tables.kinds.KINDS` lists them in the order they are asked.

    What rows of a column tell (`summarise`) is a record that adds up by `+` over parts of the rows.
    """

    name: str
    """By which columns and records of fitted models name their kind; it never changes."""

    plural: str
    """What messages call the cells."""

    @abstractmethod
    def decode(self, cells: Cells) -> Column | None:
        """The cells as a column of this kind, None where they are of another. Raises InputError."""

    @abstractmethod
    def summarise(self, column: Column, weight: NDArray[np.float64]) -> Any:
        """What cells that are all present tell, with weights (N,) above 0. It adds up over parts."""

    @abstractmethod
    def columns(self, name: str, facts: Any, gaps: bool) -> tuple[ColumnSummary, ...]:
        """The flat columns, of numbers or of labels, that a column becomes, from what all its rows tell."""

    @abstractmethod
    def flat(self, column: Column, part: str, origin: float) -> Column:
        """One of these flat columns, of new rows, from a column of this kind, of numbers or of labels.

        Raises: InputError naming the first cell that this kind cannot be.
        """

    def plain(self, column: Column) -> Column:
        """A column of this kind as numbers or labels, for a model that was fitted to such a column."""
        return column

    @abstractmethod
    def shown(self, value: Any, part: str, origin: float) -> str:
        """The text of one value of a flat column, for rules, plots and reports."""

    @abstractmethod
    def told(self, column: pd.Series[Any]) -> tuple[ColumnKind, str] | None:
        """What cells without gaps, of two values at least, are, and a sentence why; None: another kind."""


def not_usable(name: str, what: str) -> InputError:
    """The error for cells that no kind can decode."""
    return InputError(
        f"Column {name!r} of X holds {what} values, which have no meaning here; "
        "turn them into numbers (such as days since a start) or text, or drop the column."
    )

"""What each input column is for: a number, a date, labels, or why it is left out."""

from __future__ import annotations

from typing import Any

import pandas as pd

from nongauss.tables.column import ColumnKind
from nongauss.tables.kinds.label import FEW_ROWS
from nongauss.tables.target_kinds import column_kind, one_column


def names_rows(series: Any) -> bool:
    """Are the cells of a column texts that all differ, of more than `FEW_ROWS` rows without a gap: an id?

    A kind that takes such texts for values, as dates are, has the word.
    """
    column = one_column(series)
    if len(column) <= FEW_ROWS or pd.api.types.is_numeric_dtype(column) or column.dtype.kind in "mMb":
        return False
    present = column.dropna()
    texts = len(present) == len(column) and present.is_unique and all(isinstance(v, str) for v in present)
    return texts and column_kind(present) is ColumnKind.TEXT

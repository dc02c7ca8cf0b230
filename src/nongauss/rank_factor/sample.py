"""A sample of the rows: of a table in memory by the seed, of one in parts by the rows' content."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nongauss.core.errors import InputError
from nongauss.tables.parquet import n_rows_of, take_rows
from nongauss.tables.parted import (
    Encode,
    class_numbers,
    describe,
    is_parted,
    labels_of,
    open_parts,
    sample_table,
)


def within(
    X: Any, y: Any, sample_weight: Any, labels: bool, most: int | None, seed: int, name: str
) -> tuple[Any, Any, Any]:
    """X, y and weights of at most `most` rows in memory (None: all). InputError for parts without `most`."""
    if is_parted(X):
        if most is None:
            raise InputError(
                f"{name} needs its rows in memory, since the rank of a cell depends on all others of its "
                "column; give max_rows for a sample of a table in parts."
            )
        source = open_parts(X, y if labels else None, sample_weight)
        summary, found = describe(source, name, partial(labels_of, name) if labels else None)
        coder = found.coder(name) if labels else None
        read = None if coder is None else partial(class_numbers, coder, name)
        first = sample_table(source, Encode(summary.encoder(), read, name), most)
        own = None if coder is None else coder.classes[first.rows.Y[:, 0].astype(int)]
        return first.table, own, first.rows.weight
    if most is None or n_rows_of(X) <= most:
        return X, y, sample_weight
    chosen = np.sort(np.random.default_rng(seed).choice(n_rows_of(X), most, replace=False))
    X, y, sample_weight = (p if p is None else take_rows(p, chosen) for p in (X, y, sample_weight))
    return X, y, sample_weight

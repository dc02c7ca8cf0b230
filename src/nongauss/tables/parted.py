"""Tables in parts, on disk or on a Dask cluster: what an estimator does with them before and after its own.

A table in parts is the path of Parquet files (a file, a folder, or a pattern), or a Dask dataframe or array.
Its target and its weights are names of columns, or Dask collections that are partitioned alike.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.dask_source import Cluster
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.labels import LabelCoder, LabelSummary
from nongauss.tables.parquet import (
    Encoded,
    FirstRows,
    ParquetParts,
    Part,
    first_rows,
    loaded,
    n_rows_of,
    parquet_parts,
    split_off,
    take_rows,
)
from nongauss.tables.partitions import named
from nongauss.tables.source import Source, Stream
from nongauss.tables.summary import Summary, summarise, weight_of

OfTarget = Callable[[Part, NDArray[np.float64]], Any]


def is_parted(X: Any) -> bool:
    """Is this a table in parts?"""
    return isinstance(X, str | os.PathLike | ParquetParts) or is_dask(X)


def is_dask(X: Any) -> bool:
    """Is this a Dask collection? Where Dask was never imported, nothing is."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


class Described(NamedTuple):
    """What one pass tells: a summary of the table, and one of its target (None without)."""

    table: Summary
    target: Any


def open_parts(X: Any, y: Any = None, weight: Any = None) -> Source:
    """The parts of a table, each a `Part`. Raises InputError."""
    if not is_dask(X):
        for what, given in (("y", y), ("sample_weight", weight)):
            if given is not None and not isinstance(given, str):
                raise InputError(
                    f"{what} must be the name of a column of the Parquet files, got {type(given).__name__}; "
                    "name one."
                )
        return Stream([replace(part, target=y, weight=weight) for part in _parquet(X)], loaded)
    handles = _dask_parts(X, y, weight)
    client = _client()
    return Stream(handles, _computed) if client is None else Cluster(client, handles)


def _parquet(X: Any) -> ParquetParts:
    return X if isinstance(X, ParquetParts) else parquet_parts(X)


def _client() -> Any:
    """The client of the running cluster, if there is one."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None


def _computed(handle: Any) -> Part:
    part: Part = handle.compute(scheduler="synchronous")
    return part


def _dask_parts(X: Any, y: Any, weight: Any) -> list[Any]:
    """One delayed `Part` a partition."""
    from dask import delayed

    tables = _delayed(X)
    others = {}
    for what, given in (("y", y), ("sample_weight", weight)):
        others[what] = [given] * len(tables)
        if given is not None and not isinstance(given, str):
            if not is_dask(given):
                raise InputError(
                    f"{what} must be in parts like X: got {type(given).__name__}; "
                    "pass the name of a column, or a Dask series or array."
                )
            others[what] = _delayed(given)
        if len(others[what]) != len(tables):
            raise InputError(
                f"X has {len(tables)} partitions and {what} has {len(others[what])}; partition both alike."
            )
    made = delayed(_assembled, pure=False)
    return [
        made(f"partition {number}", *three)
        for number, three in enumerate(zip(tables, others["y"], others["sample_weight"], strict=True))
    ]


def _delayed(collection: Any) -> list[Any]:
    """The partitions of a collection as its owner counts them: blocks of whole rows, `named`.

    Of a frame the optimiser would read several as one, each column in its own way.
    """
    if hasattr(collection, "simplify"):
        return named(collection.simplify().to_delayed(optimize_graph=False))
    if collection.ndim > 1:
        collection = collection.rechunk({1: -1})
    return named(collection.to_delayed().ravel())


def _assembled(name: str, X: Any, y: Any, weight: Any) -> Part:
    target, heavy = (column if isinstance(column, str) else None for column in (y, weight))
    part = split_off(name, X, target, heavy)
    return part._replace(y=y if target is None else part.y, weight=weight if heavy is None else part.weight)


def describe(source: Source, estimator_name: str, of_target: OfTarget | None = None) -> Described:
    """One pass over the table, with the sum of `of_target(part, weight)`. Raises InputError."""
    found = source.sum(_described, estimator_name, of_target)
    if found is None:
        raise InputError("No part of the table has a row; give at least one.")
    described = Described(*found)
    if not described.table.counted.rows:
        raise InputError("All weights are zero; give at least one row a weight above 0.")
    return described


def labels_of(name: str, part: Part, weight: NDArray[np.float64]) -> LabelSummary:
    """What a part tells of the labels of a classifier. Raises InputError."""
    return LabelSummary.of(part.y, weight, name, part.name)


def _described(part: Part, estimator_name: str, of_target: OfTarget | None) -> tuple[Summary, Any] | None:
    return naming(part, partial(_summaries, part, estimator_name, of_target))


def _summaries(part: Part, estimator_name: str, of_target: OfTarget | None) -> tuple[Summary, Any] | None:
    summary = summarise(part, estimator_name)
    if summary is None:
        return None
    target = None
    if of_target is not None and summary.counted.rows:
        target = of_target(part, weight_of(part))
    return summary, target


def naming(part: Part, work: Callable[[], Any]) -> Any:
    """`work()`; what it raises about a row is raised with the part's name."""
    try:
        return work()
    except (InputError, TypeError) as error:
        raise InputError(f"{part.name}: {error}") from error


ReadTarget = Callable[[Any, NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class Encode:
    """A `Part` as `Encoded` rows: the step of a source that a model learns from.

    `read(y, weight)` gives the target as numbers (N, P), P being `n_targets`. Rows of weight 0 are left out.
    `factors` (D,) of the encoded columns.
    """

    encoder: TableEncoder
    read: ReadTarget | None
    estimator_name: str
    factors: NDArray[np.float64] | None = None
    n_targets: int = 1

    def __call__(self, part: Part) -> Encoded:
        """The rows. Raises InputError naming the part."""
        found: Encoded = naming(part, partial(self._rows, part))
        return found

    def _rows(self, part: Part) -> Encoded:
        n_rows = n_rows_of(part.X)
        if not n_rows:
            widths = len(self.encoder.encoded_names), 0 if self.read is None else self.n_targets
            nothing = [np.zeros((0, width), np.float32) for width in widths]
            return Encoded(nothing[0], nothing[1], np.zeros(0))
        weight = weight_of(part)
        X = self.encoder.transform(part.X, self.estimator_name, warn=False)
        X = X if self.factors is None else X * self.factors
        Y = np.zeros((n_rows, 0)) if self.read is None else self.read(part.y, weight)
        kept = weight > 0
        if not kept.all():
            X, Y, weight = X[kept], Y[kept], weight[kept]
        return Encoded(X.astype(np.float32) + np.float32(0), Y.astype(np.float32) + np.float32(0), weight)


def sample(rows: Source, most: int) -> FirstRows:
    """The first `most` distinct rows in canonical order; see `FirstRows`."""
    found: FirstRows = rows.sum(first_rows, most)
    return found


def sample_table(source: Source, encode: Encode, most: int) -> FirstRows:
    """The same of the rows as they came, told apart by their encoding: `table` and `rows.weight`."""
    found: FirstRows = source.sum(_first_of_table, encode, most)
    return found


def _first_of_table(part: Part, encode: Encode, most: int) -> FirstRows | None:
    if not n_rows_of(part.X):
        return None
    kept = np.flatnonzero(weight_of(part) > 0)
    return FirstRows.of(encode(part), most, take_rows(part.X, kept))


def class_numbers(coder: LabelCoder, name: str, y: Any, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """The target of a classifier as class numbers, (N, 1). Raises InputError."""
    return coder.encode(y, len(weight), name, weight)[:, None]


def by_parts(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method whose result has one row a row of X take tables in parts as well.

    Of a Dask collection the result is a Dask array, computed when asked for; of a path all rows' results.
    """

    @wraps(method)
    def either(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not is_parted(X):
            return method(self, X, *args, **options)
        check_is_simple((*args, *options.values()))
        work = partial(_predicted, partial(method, self), known_columns(self), args, options)
        if not is_dask(X):
            return np.concatenate(list(Stream(_parquet(X), loaded).each(work)))
        return _lazily(work, X)

    return either


def check_is_simple(options: tuple[Any, ...]) -> None:
    """Refuse options of `predict`, which have no place in a lazy result."""
    if any(option is not None and option is not False for option in options):
        raise InputError(
            "return_std and exposure take tables in memory; predict part by part: "
            "X.map_partitions(model.predict, return_std=True)."
        )


def known_columns(model: Any) -> list[str] | None:
    """The names of the columns that a model was fitted with, if they had some."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else list(names)


def _predicted(
    method: Callable[..., Any], names: list[str] | None, args: Any, options: Any, part: Part
) -> Any:
    X = part.X
    if names is not None and hasattr(X, "columns") and set(names) <= set(X.columns):
        X = X[names]
    return naming(part, partial(method, X, *args, **options))


def _lazily(work: Callable[[Part], Any], X: Any) -> Any:
    """A Dask array of results, whose kind and width two rows of gaps tell."""
    import dask.array as da
    from dask import delayed

    gaps: Any = np.full((2, X.shape[1]), np.nan)
    is_array = not hasattr(X, "columns")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        like = work(Part("X", gaps if is_array else pd.DataFrame(gaps, columns=X.columns), None, None))
    handles = _delayed(X)
    lengths = X.chunks[0] if is_array else (np.nan,) * len(handles)
    task, given = delayed(_of_partition, pure=False), delayed(work, pure=False, traverse=False)
    parts = [
        da.from_delayed(task(given, like[:0], number, rows), (length, *like.shape[1:]), meta=like[:0])
        for number, (rows, length) in enumerate(zip(handles, lengths, strict=True))
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _of_partition(work: Callable[[Part], Any], nothing: Any, number: int, X: Any) -> Any:
    return work(Part(f"partition {number}", X, None, None)) if n_rows_of(X) else nothing

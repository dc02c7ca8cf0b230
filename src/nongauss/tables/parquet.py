"""A table in parts: row groups of Parquet files, or partitions that somebody else reads.

A part is a small value that can be sent to where it is read; `load` gives its rows.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.tables.frame import as_pandas
from nongauss.tables.reading import PARQUET_SUFFIXES
from nongauss.tables.rows import canonical_rows


class Part(NamedTuple):
    """Rows as they came: table X, target y (N,) or (N, P) or None, weights (N,) or None; where they are.

    Nothing of it is checked; `summary.weight_of` gives the weights as numbers.
    """

    name: str
    X: Any
    y: Any
    weight: Any


@dataclass(frozen=True)
class ParquetPart:
    """A row group of a Parquet file. `target` and `weight` are columns that are taken out of it.

    Rows without a value in the column `needs` are left out, and the columns `without`.
    """

    path: str
    group: int
    n_rows: int
    target: str | None = None
    weight: str | None = None
    needs: str | None = None
    without: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"{Path(self.path).name}, row group {self.group}"

    def load(self) -> Part:
        """The rows. Raises InputError where they cannot be read."""
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.path) as file:
                frame = file.read_row_group(self.group, use_threads=False).to_pandas()
        except (OSError, ValueError) as error:
            raise _unreadable(self.path, error) from error
        if any(name is not None for name in frame.index.names):
            frame = frame.reset_index()
        if self.needs is not None:
            frame = frame[frame[self.needs].notna()]
        return split_off(self.name, frame.drop(columns=list(self.without)), self.target, self.weight)


class ParquetParts(tuple[ParquetPart, ...]):
    """A table as row groups of Parquet files, in order."""

    @property
    def n_rows(self) -> int:
        """Rows of all parts together."""
        return sum(part.n_rows for part in self)


def split_off(name: str, frame: Any, target: str | None, weight: str | None) -> Part:
    """A table with its target and weights taken out. Raises InputError for a column that is not there."""
    if target is None and weight is None:
        return Part(name, frame, None, None)
    if not hasattr(frame, "columns"):
        raise InputError(
            f"{name} is an array, whose columns have no names; give target and weights as Dask arrays."
        )
    for column, what in ((target, "target"), (weight, "sample_weight")):
        if column is not None and column not in frame.columns:
            shown = ", ".join(map(repr, frame.columns[:8]))
            raise InputError(f"{name} has no column {column!r} for the {what}; it has {shown}.")
    X = frame.drop(columns=[column for column in (target, weight) if column is not None])
    y = None if target is None else frame[target]
    return Part(name, X, y, None if weight is None else frame[weight])


def loaded(part: Any) -> Part:
    """The rows of a part; the step that turns handles into rows."""
    rows: Part = part.load()
    return rows


def parquet_parts(path: str | os.PathLike[str]) -> ParquetParts:
    """The row groups of a Parquet file, of all in a folder, or of a pattern such as "folder/*.parquet".

    Only the files' ends are read. Row groups without rows are left out. Raises InputError, naming the file,
    where there is none, one cannot be read, or one has other columns or kinds than the first.
    """
    import pyarrow.parquet as pq

    parts: list[ParquetPart] = []
    first: tuple[str, dict[str, str]] | None = None
    for file in _files(path):
        try:
            footer = pq.read_metadata(file)
            schema = footer.schema.to_arrow_schema()
        except (OSError, ValueError) as error:
            raise _unreadable(file, error) from error
        kinds = {field.name: _kind(field.type) for field in schema}
        if first is None:
            first = (file, kinds)
        _check_alike(first, (file, kinds))
        sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        parts += [ParquetPart(file, group, size) for group, size in enumerate(sizes) if size]
    if not parts:
        raise InputError(f"{os.fspath(path)!r} has no rows; give Parquet files with at least one.")
    return ParquetParts(parts)


def _files(path: str | os.PathLike[str]) -> list[str]:
    text = os.path.expanduser(os.fspath(path))
    if Path(text).is_dir():
        found = [str(file) for file in Path(text).rglob("*") if file.name.lower().endswith(PARQUET_SUFFIXES)]
    else:
        found = [text] if Path(text).exists() else glob.glob(text)
    found = sorted(file for file in found if not Path(file).name.startswith((".", "_")))
    folders = {name for file in found for name in Path(file).parent.parts} - set(Path(text).parts)
    odd = next((name for name in sorted(folders) if "=" in name), None)
    if odd is not None:
        raise InputError(
            f"The folder {odd!r} holds a column in its name; write that column into the files, "
            "or read them by dask.dataframe.read_parquet."
        )
    if not found:
        raise InputError(f"There is no Parquet file at {os.fspath(path)!r}; check the name and the folder.")
    return found


def _kind(kind: Any) -> str:
    """What a column's type is to us: the number types are one."""
    import pyarrow.types as t

    kind = kind.value_type if t.is_dictionary(kind) else kind
    if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind):
        return "numbers"
    return "text" if t.is_string(kind) or t.is_large_string(kind) else str(kind)


def _check_alike(first: tuple[str, dict[str, str]], other: tuple[str, dict[str, str]]) -> None:
    (name, known), (file, kinds) = first, other
    odd = sorted(set(known) ^ set(kinds))
    if odd:
        has, lacks = (name, file) if odd[0] in known else (file, name)
        raise InputError(
            f"{Path(lacks).name} has no column {odd[0]!r}, which {Path(has).name} has; "
            "give all parts the same columns."
        )
    for column, kind in kinds.items():
        if kind != known[column] and "null" not in (kind, known[column]):
            raise InputError(
                f"Column {column!r} holds {kind} in {Path(file).name} but {known[column]} in "
                f"{Path(name).name}; make it one kind in all parts."
            )


def _unreadable(path: str, error: Exception) -> InputError:
    reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
    return InputError(f"{Path(path).name} cannot be read as Parquet ({reason}); write that part again.")


class Encoded(NamedTuple):
    """Rows as models take them: X (N, D) and Y (N, P) float32, weight (N,) float64 and positive."""

    X: NDArray[np.float32]
    Y: NDArray[np.float32]
    weight: NDArray[np.float64]


@dataclass(frozen=True)
class FirstRows:
    """The first `most` distinct rows in canonical order, weights added up; two of them add to one.

    That order is by a hash of the row's content: these rows are a random sample, and the same wherever the
    rows are and however they are cut into parts. `table`, if not None, has the same rows as they came.
    `checksum` is of all rows, these and the others.
    """

    rows: Encoded
    most: int
    table: Any = None
    checksum: int = 0

    @classmethod
    def of(cls, rows: Encoded, most: int, table: Any = None) -> FirstRows:
        """Of some rows."""
        found = canonical_rows(rows.X, rows.Y, rows.weight)
        if table is not None:
            kept = np.flatnonzero(found.order >= 0)
            first = kept[np.unique(found.order[kept], return_index=True)[1]][:most]
            table = take_rows(table, first)
        own = Encoded(found.X[:most], found.Y[:most], found.weight[:most])
        return cls(own, most, table, found.checksum)

    def __add__(self, other: FirstRows) -> FirstRows:
        mine, its = self.rows, other.rows
        X, Y = np.concatenate([mine.X, its.X]), np.concatenate([mine.Y, its.Y])
        both = Encoded(X, Y, np.concatenate([mine.weight, its.weight]))
        table: Any = None
        if self.table is not None:
            tables: list[Any] = [self.table, other.table]
            table = pd.concat(tables) if hasattr(self.table, "iloc") else np.concatenate(tables)
        checksum = (self.checksum + other.checksum) % 2**64
        return replace(FirstRows.of(both, self.most, table), checksum=checksum)

    @property
    def are_all(self) -> bool:
        """Is no row of the table left out?"""
        return len(self.rows.weight) < self.most


def first_rows(part: Encoded, most: int) -> FirstRows | None:
    """`FirstRows` of a part; None of one without rows."""
    return FirstRows.of(part, most) if len(part.weight) else None


def take_rows(X: Any, rows: NDArray[Any]) -> Any:
    """Some rows of a table, or entries of a list: a frame of pandas, or an array."""
    frame = as_pandas(X)
    return np.asarray(X)[rows] if frame is None else frame.iloc[rows]


def n_rows_of(X: Any) -> int:
    """Number of rows of a table."""
    frame = as_pandas(X)
    return len(X if frame is None else frame)

"""Tables in Parquet files: each row group is a part, a small value whose `load` gives its rows.

It can be sent to where it is read.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nongauss.core.errors import InputError
from nongauss.tables.files import PARQUET_SUFFIXES
from nongauss.tables.source import Part, Stream


@dataclass(frozen=True)
class ParquetPart:
    """A row group of a Parquet file. `target`, `weight` and `beside` (by name) are columns taken out of it.

    Rows without a value in the column `needs` are left out, and the columns `without`.
    """

    path: str
    group: int
    n_rows: int
    target: str | None = None
    weight: str | None = None
    beside: tuple[tuple[str, str], ...] = ()
    needs: str | None = None
    without: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that messages use."""
        return f"{Path(self.path).name}, row group {self.group}"

    def load(self) -> Part:
        """The rows. Raises InputError where they cannot be read."""
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.path) as file:
                frame = file.read_row_group(self.group, use_threads=False).to_pandas()
        except (OSError, ValueError, NotImplementedError) as error:
            raise _unreadable(self.path, error) from error
        if any(name is not None for name in frame.index.names):
            frame = frame.reset_index()
        if self.needs is not None:
            frame = frame[frame[self.needs].notna()]
        frame = frame.drop(columns=list(self.without))
        return split_off(self.name, frame, self.target, self.weight, dict(self.beside))


class ParquetParts(tuple[ParquetPart, ...]):
    """A table as row groups of Parquet files, in order."""

    @property
    def n_rows(self) -> int:
        """Rows of all parts together."""
        return sum(part.n_rows for part in self)


def split_off(
    name: str,
    frame: Any,
    target: str | None = None,
    weight: str | None = None,
    beside: Mapping[str, str] | None = None,
) -> Part:
    """A table with target, weights and others taken out. Raises InputError for a column that is not there."""
    wanted = {"target": target, "sample_weight": weight, **(beside or {})}
    wanted = {what: column for what, column in wanted.items() if column is not None}
    if not wanted:
        return Part(name, frame)
    if not hasattr(frame, "columns"):
        raise InputError(
            f"{name} is an array, whose columns have no names; give target and weights as Dask arrays."
        )
    for what, column in wanted.items():
        if column not in frame.columns:
            shown = ", ".join(map(repr, frame.columns[:8]))
            raise InputError(f"{name} has no column {column!r} for the {what}; it has {shown}.")
    X = frame.drop(columns=list(wanted.values()))
    own = {what: frame[column] for what, column in wanted.items()}
    return Part(name, X, own.pop("target", None), own.pop("sample_weight", None), own)


def parquet_source(X: Any, y: Any, weight: Any, beside: Mapping[str, Any]) -> Stream:
    """The row groups of a path, or these parts, with the names of columns to take out. Raises InputError."""
    for what, given in {"y": y, "sample_weight": weight, **beside}.items():
        if given is not None and not isinstance(given, str):
            raise InputError(
                f"{what} must be the name of a column of the Parquet files, got {type(given).__name__}; "
                "name one."
            )
    parts = X if isinstance(X, ParquetParts) else parquet_parts(X)
    own = tuple((name, column) for name, column in beside.items() if column is not None)
    return Stream([replace(part, target=y, weight=weight, beside=own) for part in parts], loaded)


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
        except (OSError, ValueError, NotImplementedError) as error:
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
    if t.is_timestamp(kind) or t.is_date(kind):
        return "dates"
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

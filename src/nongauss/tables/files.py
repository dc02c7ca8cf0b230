"""Reading and writing tables: CSV in its usual dialects, also gzipped, and Parquet."""

from __future__ import annotations

import gzip
import io
import re
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.files import atomic_path
from nongauss.tables.csv_layout import Layout, check_names, decoded, plain_layout
from nongauss.tables.csv_numbers import one_style
from nongauss.tables.kinds.choices import as_text

TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")


def read_table(path: str | Path) -> pd.DataFrame:
    """The table in a CSV (.csv, .tsv, .txt, also with .gz) or Parquet (.parquet, .pq) file.

    Found by itself: the separator (comma, semicolon, tab, bar), one style of numbers for the file, the
    encoding (UTF-8, UTF-16; else Windows-1252, with a warning). The first line names the columns; titles
    above it, comments, and an index without a name are left out, which is warned of. Empty cells, "NA",
    "nan", "?" and the like are missing. Quoted fields may hold separators and line breaks. Whole numbers with
    leading zeros stay text.

    Raises: InputError naming the file and, where it helps, the line, for a file that is missing, a folder,
    empty, without rows, ragged, with repeated column names, damaged, or of another kind.
    """
    file = Path(path).expanduser()
    _check_path(file, str(path))
    kind = _kind(file)
    notes: list[str] = []
    try:
        if file.stat().st_size == 0:
            raise InputError(f"{file.name} is empty; it needs a line of column names and at least one row.")
        frame = _read_parquet(file) if kind == "parquet" else _read_csv(file, notes)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{file.name} cannot be read ({reason}); check its permissions.") from error
    for note in notes:
        warnings.warn(note, NongaussWarning, stacklevel=2)
    if len(frame) == 0:
        raise InputError(f"{file.name} has column names but no rows; add at least one row.")
    return frame


def write_table(frame: pd.DataFrame, path: str | Path, raw: bool = False) -> None:
    """Write `frame` without its index as CSV (also .gz) or Parquet, by the suffix of `path`.

    In a text file, labels and names that begin with = + - @ or a control character and are no numbers get an
    apostrophe before, so that a spreadsheet does not run them; with `raw` they are written as they are. The
    file is written whole or not at all.

    Raises: InputError for an unknown suffix or a missing folder.
    """
    file = Path(path)
    kind = _kind(file)
    with atomic_path(file) as temporary:
        if kind == "parquet":
            frame.to_parquet(temporary, index=False)
            return
        separator = "\t" if ".tsv" in file.suffixes else ","
        text = (frame if raw else _inert(frame)).to_csv(index=False, sep=separator, lineterminator="\n")
        data = text.encode("utf-8")
        temporary.write_bytes(gzip.compress(data, mtime=0) if kind == "gzip" else data)


_RUN = re.compile(r"[=+\-@\x00-\x1f\x7f-\x9f\uff1d\uff0b\uff0d\uff20]")  # also in full width


def _inert(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with an apostrophe before each text that a spreadsheet would run."""
    frame = frame.rename(columns=_as_text)
    for place, dtype in enumerate(frame.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype) and dtype.kind not in "mMb":
            cells = frame.iloc[:, place].astype(object)
            frame.isetitem(place, cells.map(_as_text, na_action="ignore").array)
    return frame


def _as_text(cell: Any) -> Any:
    """A cell as a text that is not run, if it is one; numbers are left as they are."""
    if not isinstance(cell, str) or not _RUN.match(cell):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def _kind(file: Path) -> str:
    name = file.name.lower()
    if name.endswith(PARQUET_SUFFIXES):
        return "parquet"
    if name.endswith(TEXT_SUFFIXES):
        return "gzip" if name.endswith(".gz") else "text"
    raise InputError(
        f"{file.name} has the unknown ending {''.join(file.suffixes[-2:])!r}; "
        f"use one of {', '.join((*TEXT_SUFFIXES[:1], *TEXT_SUFFIXES[3:4], *PARQUET_SUFFIXES[:1]))}."
    )


def _read_parquet(file: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(file)
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        NotImplementedError,
    ) as error:  # of pyarrow, and of what it reads there
        reason = (str(error).splitlines() or [repr(error)])[0].rstrip(".")
        raise InputError(
            f"{file.name} cannot be read as Parquet ({reason}); write it again or pass a CSV file."
        ) from error
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    check_names([str(name) for name in frame.columns], file.name)
    for name in frame.columns:
        frame[name] = column = as_text(frame[name])
        present = column.dropna()
        if len(present) and isinstance(present.iloc[0], (list, dict, tuple, set, np.ndarray)):
            raise InputError(
                f"{file.name}: column {str(name)!r} holds lists or records; give one value a cell, or leave "
                "the column out of the file."
            )
    return frame


def _check_path(file: Path, given: str) -> None:
    """Raises InputError unless this is a file; links that lead in a circle are none."""
    try:
        is_folder = file.is_dir()
        found = file.exists() or file.is_symlink()
        file.resolve(strict=found)
    except (OSError, RuntimeError) as error:
        if isinstance(error, PermissionError):
            raise InputError(
                f"{given!r} cannot be read ({error.strerror}); check its permissions."
            ) from error
        raise InputError(f"{given!r} is a broken or circular link; give the name of a file.") from error
    except ValueError as error:
        raise InputError(f"{given!r} is not the name of a file ({error}); give another.") from error
    if is_folder:
        raise InputError(f"{given!r} is a folder; give the name of a CSV or Parquet file in it.")
    if not found:
        raise InputError(f"There is no file {given!r}; check the name and the folder.")


def _read_csv(file: Path, notes: list[str]) -> pd.DataFrame:
    text = decoded(raw_bytes(file), file.name, notes)
    if not text.strip():
        raise InputError(f"{file.name} is empty; it needs a line of column names and at least one row.")
    layout = plain_layout(text, file.name, notes)

    def parsed(places: Sequence[int] | None = None, dtype: Any = None) -> pd.DataFrame:
        return _parsed(layout, file.name, places, dtype)

    frame = parsed()
    frame.columns = pd.Index([name or f"Unnamed: {place}" for place, name in enumerate(layout.names)])
    codes = _code_columns(frame, layout)
    if codes:
        texts = parsed(codes, str)
        for at, place in enumerate(codes):
            cells = texts.iloc[:, at]
            if cells.str.fullmatch(r"\s*0\d{2,}\s*").any():
                frame.isetitem(place, cells.array)
    one_style(frame, lambda places: parsed(places, str), layout.separator, file.name, notes)
    return _without_index(frame, layout, file.name, notes)


def _parsed(layout: Layout, file: str, places: Sequence[int] | None, dtype: Any) -> pd.DataFrame:
    """The columns of a layout, or some of them by their places, as pandas reads them."""
    names = [*layout.names, ""] if layout.is_longer else layout.names
    try:
        return pd.read_csv(
            io.StringIO(layout.text.lstrip("\n")),
            sep=layout.separator,
            header=0,
            names=list(range(len(names))),
            usecols=range(len(layout.names)) if places is None else list(places),
            dtype=dtype,
            index_col=False,
            na_values=["?"],
            skipinitialspace=True,
            skip_blank_lines=len(names) > 1,
            low_memory=False,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(
            f"{file} is not a readable CSV file ({error}); check its quotation marks."
        ) from error


def _code_columns(frame: pd.DataFrame, layout: Layout) -> list[int]:
    """Places of columns read as whole numbers, if some field of the file begins with a zero, as codes do."""
    data = np.frombuffer(layout.text.encode("utf-8"), np.uint8)
    if len(data) < 4:
        return []
    before = np.isin(data[:-3], np.frombuffer(f'{layout.separator}\n" '.encode(), np.uint8))
    digits = (data[2:-1] >= 48) & (data[2:-1] <= 57) & (data[3:] >= 48) & (data[3:] <= 57)
    if not (before & (data[1:-2] == 48) & digits).any():
        return []
    return [place for place in range(frame.shape[1]) if _whole(frame.iloc[:, place])]


def _whole(cells: pd.Series[Any]) -> bool:
    """Is this a column of whole numbers, perhaps with gaps?"""
    if pd.api.types.is_integer_dtype(cells.dtype):
        return True
    if cells.dtype != np.float64:
        return False
    values = cells.dropna().to_numpy()
    return bool(len(values) and (values == np.round(values)).all())


def _without_index(frame: pd.DataFrame, layout: Layout, file: str, notes: list[str]) -> pd.DataFrame:
    """The frame without a first column that has no name and counts the rows, and without empty ends."""
    unnamed = [place for place, name in enumerate(layout.names) if not name]
    drop = [place for place in unnamed if frame.iloc[:, place].isna().all()]
    if not layout.names[0] and 0 not in drop and _counts_rows(frame.iloc[:, 0]):
        notes.append(f"The first column of {file} has no name and numbers the rows; it was left out.")
        drop.append(0)
    if not drop or len(drop) == frame.shape[1]:
        return frame
    return frame.iloc[:, [place for place in range(frame.shape[1]) if place not in drop]]


def _counts_rows(cells: pd.Series[Any]) -> bool:
    """Are these 0, 1, 2, ... or 1, 2, 3, ...?"""
    if not pd.api.types.is_integer_dtype(cells.dtype):
        return False
    steps = cells.to_numpy() - np.arange(len(cells))
    return bool(steps[0] in (0, 1) and (steps == steps[0]).all())


def raw_bytes(file: Path) -> bytes:
    """The bytes of a file, unpacked where it is gzipped. Raises InputError."""
    data = file.read_bytes()
    if not file.name.lower().endswith(".gz"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{file.name} is damaged or not gzipped ({error}); write or copy it again."
        ) from error

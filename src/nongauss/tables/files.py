"""Reading and writing tables: CSV in its usual dialects, also gzipped, and Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.files import atomic_path

TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
SEPARATORS = (",", ";", "\t")
SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}
SAMPLE = 200  # records looked at to find the separator

_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_COMMA_DECIMAL = r"[+-]?(?=[.,]?\d)(\d+|\d{1,3}(\.\d{3})+)?(,\d*)?([eE][+-]?\d+)?"
_COMMA_THOUSANDS = r"[+-]?(?=[.,]?\d)(\d+|\d{1,3}(,\d{3})+)?(\.\d*)?([eE][+-]?\d+)?"
_EITHER = r"[+-]?(?=[.,]?\d)\d*([.,]\d+)?([eE][+-]?\d+)?"


def read_table(path: str | Path) -> pd.DataFrame:
    """The table in a CSV (.csv, .tsv, .txt, also with .gz) or Parquet (.parquet, .pq) file.

    Found by itself: the separator (comma, semicolon, tab), decimal commas, a byte-order mark, the encoding
    (UTF-8; else Windows-1252, with a warning). The first line names the columns. Empty cells, "NA", "nan",
    "?" and the like are missing. Quoted fields may hold separators and line breaks.

    Raises: InputError naming the file and, where it helps, the line, for a file that is missing, a folder,
    empty, without rows, ragged, with repeated column names, damaged, or of another kind.
    """
    file = Path(path).expanduser()
    if file.is_dir():
        raise InputError(f"{str(path)!r} is a folder; give the name of a CSV or Parquet file in it.")
    if not file.exists():
        raise InputError(f"There is no file {str(path)!r}; check the name and the folder.")
    kind = _kind(file)
    if file.stat().st_size == 0:
        raise InputError(f"{file.name} is empty; it needs a line of column names and at least one row.")
    frame = _read_parquet(file) if kind == "parquet" else _read_csv(file)
    if len(frame) == 0:
        raise InputError(f"{file.name} has column names but no rows; add at least one row.")
    return frame


def write_table(frame: pd.DataFrame, path: str | Path) -> None:
    """Write `frame` without its index as CSV (also .gz) or Parquet, by the suffix of `path`.

    The file is written whole or not at all. Raises: InputError for an unknown suffix or a missing folder.
    """
    file = Path(path)
    kind = _kind(file)
    with atomic_path(file) as temporary:
        if kind == "parquet":
            frame.to_parquet(temporary, index=False)
            return
        text = frame.to_csv(index=False, sep="\t" if ".tsv" in file.suffixes else ",", lineterminator="\n")
        data = text.encode("utf-8")
        temporary.write_bytes(gzip.compress(data, mtime=0) if kind == "gzip" else data)


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
    except (OSError, ValueError) as error:  # pyarrow's own errors are subclasses of these
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(
            f"{file.name} cannot be read as Parquet ({reason}); write it again or pass a CSV file."
        ) from error
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    _check_names([str(name) for name in frame.columns], file)
    for name in frame.columns:
        present = frame[name].dropna()
        if len(present) and isinstance(present.iloc[0], (list, dict, tuple, set, np.ndarray)):
            raise InputError(
                f"{file.name}: column {str(name)!r} holds lists or records; give one value a cell."
            )
    return frame


def _read_csv(file: Path) -> pd.DataFrame:
    text = _decode(_raw(file), file)
    if not text.strip():
        raise InputError(f"{file.name} is empty; it needs a line of column names and at least one row.")
    separator = _separator(text, file)
    names = _check_shape(text, separator, file)
    try:
        frame = pd.read_csv(
            io.StringIO(text.lstrip("\n")),
            sep=separator,
            header=0,
            index_col=False,
            na_values=["?"],
            skipinitialspace=True,
            skip_blank_lines=len(names) > 1,
            low_memory=False,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(
            f"{file.name} is not a readable CSV file ({error}); check its quotation marks."
        ) from error
    frame.columns = [new.strip() or old for new, old in zip(names, frame.columns, strict=True)]
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        if pd.api.types.is_string_dtype(column.dtype):
            numbers = _comma_numbers(column, separator, file)
            if numbers is not None:
                frame.isetitem(position, numbers.to_numpy())
    return frame


def _raw(file: Path) -> bytes:
    data = file.read_bytes()
    if not file.name.lower().endswith(".gz"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{file.name} is damaged or not gzipped ({error}); write or copy it again."
        ) from error


def _decode(data: bytes, file: Path) -> str:
    """Text with "\\n" line ends, without byte-order mark and without blank lines around it."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", errors="replace").lstrip("\ufeff")
    elif b"\0" in data[:4096]:
        raise InputError(f"{file.name} is not text (it holds zero bytes); export it as CSV or Parquet.")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            try:
                encoding, text = "cp1252", data.decode("cp1252")
            except UnicodeDecodeError:
                encoding, text = "latin-1", data.decode("latin-1")
            warnings.warn(
                f"{file.name} is not UTF-8; it was read as {encoding}. "
                "Check its accented letters, or save it as UTF-8.",
                NongaussWarning,
                stacklevel=4,
            )
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.rstrip("\n")


def _separator(text: str, file: Path) -> str:
    """The separator whose fields agree best with the first line; a comma where there is one column only."""
    best, best_score = ",", (0.0, 0)
    sample = text[: 1 << 20]
    for separator in SEPARATORS:
        try:
            reader = csv.reader(io.StringIO(sample), delimiter=separator, skipinitialspace=True)
            rows = [row for row in islice(reader, SAMPLE) if row]
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 1
        agreeing = sum(len(row) == width for row in rows) / max(len(rows), 1)
        if width > 1 and (agreeing, width) > best_score:
            best, best_score = separator, (agreeing, width)
    if best_score == (0.0, 0):
        _check_foreign_separator(sample.split("\n", SAMPLE)[:SAMPLE], file)
    return best


def _check_foreign_separator(lines: list[str], file: Path) -> None:
    """One column only: does every line hold the same number of some other separator?"""
    for separator, name in (
        ("|", "'|'"),
        (None, "blanks"),
        (",", "commas"),
        (";", "semicolons"),
        ("\t", "tabs"),
    ):
        parts = [line.split(separator) for line in lines if line.strip()]
        body = parts[1:]
        same = len(body) > 0 and min(map(len, body)) > 1 and len({len(row) for row in body}) == 1
        if not same or (separator == "," and len(body[0]) == 2):
            continue  # one comma a line under a one-word header: decimal commas
        if separator == "|" or all(re.fullmatch(_NUMBER, field.strip()) for row in body for field in row):
            raise InputError(
                f"{file.name} seems to be separated by {name}, but its first line gives one column only; "
                "use commas, semicolons or tabs, in the line of column names too."
            )


def _check_shape(text: str, separator: str, file: Path) -> list[str]:
    """The column names, after checking that every record has as many fields."""
    if '"' in text:
        reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
        names = _check_records(reader, file, separator)
    else:
        lines = text.split("\n")
        start = next(i for i, line in enumerate(lines) if line.strip())
        names = [name.strip() for name in lines[start].split(separator)]
        for number, line in enumerate(lines[start + 1 :], start + 2):
            got = line.count(separator) + 1
            if got != len(names) and line.strip(" "):
                raise _ragged(file, number, len(names), got, separator)
        if start + 1 == len(lines):
            raise InputError(f"{file.name} has column names but no rows; add at least one row.")
    _check_names(names, file)
    if all(re.fullmatch(_NUMBER, name) for name in names):
        warnings.warn(
            f"The first line of {file.name} holds numbers but is read as column names; "
            "put a line of column names before it if it is a row.",
            NongaussWarning,
            stacklevel=4,
        )
    return names


def _check_records(reader: Any, file: Path, separator: str) -> list[str]:
    """Field counts of a file with quotation marks, where a record may span lines."""
    names: list[str] | None = None
    rows, line = 0, 1
    try:
        for record in reader:
            if names is None:
                names = [name.strip() for name in record] or None
            elif record:
                rows += 1
                if len(record) != len(names):
                    raise _ragged(file, line, len(names), len(record), separator)
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{file.name} cannot be read from line {line} on ({error}); a quotation mark may be missing."
        ) from error
    if not names or rows == 0:
        raise InputError(f"{file.name} has column names but no rows; add at least one row.")
    return names


def _ragged(file: Path, line: int, expected: int, got: int, separator: str) -> InputError:
    return InputError(
        f"{file.name}, line {line}: expected {expected} fields separated by "
        f"{SEPARATOR_NAMES[separator]}, got {got}; give every line as many fields as there are column names."
    )


def _check_names(names: list[str], file: Path) -> None:
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for name in filter(None, names):
        if name in seen:
            twice[name] = None
        seen.add(name)
    if twice:
        raise InputError(
            f"{file.name} has more than one column named {', '.join(map(repr, list(twice)[:5]))}; "
            "give every column a name of its own."
        )


def _comma_numbers(column: pd.Series[Any], separator: str, file: Path) -> pd.Series[Any] | None:
    """A text column of numbers with decimal (or thousands) commas as floats; None if it is text."""
    cells = column.dropna().astype(str).str.strip()
    if cells.empty or not re.fullmatch(
        _EITHER + "|" + _COMMA_DECIMAL + "|" + _COMMA_THOUSANDS, cells.iloc[0]
    ):
        return None
    styles = [(_COMMA_DECIMAL, ".", ","), (_COMMA_THOUSANDS, ",", ".")]
    if separator == ",":
        styles.reverse()  # a quoted 1,234 among commas is rather a thousand
    for pattern, thousands, point in styles:
        if cells.str.fullmatch(pattern).all():
            plain = cells.str.replace(thousands, "", regex=False).str.replace(point, ".", regex=False)
            return plain.astype("float64").reindex(column.index)
    if cells.str.fullmatch(_EITHER).all():
        row = int(cells.str.contains(",", regex=False).to_numpy().argmax())
        raise InputError(
            f"{file.name} mixes decimal commas and decimal points in column {column.name!r} "
            f"(the first comma is in {cells.iloc[row]!r}, row {int(cells.index[row]) + 1} "
            "below the names); use one of them."
        )
    return None

"""Filled tables in the form of their file: cells that were there stay as they are, to the byte."""

from __future__ import annotations

import gzip
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nongauss.predictive.cells import MissingCells
from nongauss.tables.cell_style import Writer, number_writer
from nongauss.tables.csv_splice import RawFields
from nongauss.tables.files import TEXT_SUFFIXES, write_table
from nongauss.tables.kinds.number import shown_number


class FileForm:
    """How filled tables are written: as the file `data` is where both are CSV files, else as a new file."""

    def __init__(self, data: Path, out: Path, frame: pd.DataFrame, laws: MissingCells) -> None:
        self._data, self._frame, self._laws = data, frame, laws
        self._is_text = out.name.lower().endswith(TEXT_SUFFIXES)
        is_alike = data.name.lower().endswith(TEXT_SUFFIXES) and (".tsv" in data.suffixes) == (
            ".tsv" in out.suffixes
        )
        self._is_same = self._is_text and is_alike
        self._packs = out.name.lower().endswith(".gz")

    def write(self, table: pd.DataFrame, path: Path, raw: bool) -> None:
        """Write a filled table, without an apostrophe before texts that a spreadsheet runs if `raw`."""
        fields = self._fields
        if fields is None:
            write_table(table, path, raw)
            return
        cells = {name: self._texts(fields, name, table) for name in self._laws.columns}
        data = fields.replaced(cells).encode("utf-8")
        path.write_bytes(gzip.compress(data, mtime=0) if self._packs else data)

    def in_words(self, cells: pd.DataFrame) -> pd.DataFrame:
        """The table of missing cells as it is written: its first row is 1, as in messages and reports."""
        cells = cells.assign(row=cells["row"] + 1)
        if self._is_text:
            return cells
        ends = {name: cells[name].map(str, na_action="ignore") for name in ("value", "lower", "upper")}
        return cells.assign(**ends)  # a Parquet column has one type

    @cached_property
    def _fields(self) -> RawFields | None:
        """The fields of the file, where a filled table is written as it is."""
        if not self._is_same:
            return None
        fields = RawFields(self._data)
        fits = fields.fits(len(self._frame), [str(name) for name in self._frame.columns])
        return fields if fits else None

    def _texts(self, fields: RawFields, name: str, table: pd.DataFrame) -> dict[int, str]:
        """The cells that fill the gaps of a column, by row, as texts like those that were there."""
        rows = self._laws.rows(name)
        filled = table[name].iloc[rows].tolist()
        known = self._known(fields, name)
        write = None if all(isinstance(cell, str) for cell in filled) else self._writer(name, known)
        return {
            int(row): cell if isinstance(cell, str) else known.get(cell) or (write or _plain)(cell)
            for row, cell in zip(rows, filled, strict=True)
            if not pd.isna(cell)
        }

    def _known(self, fields: RawFields, name: str) -> dict[Any, str]:
        """The text of each value of a column that is not text, the most frequent where there are several."""
        series = self._frame[name]
        if isinstance(series.dtype, pd.StringDtype):
            return {}
        counts = Counter(
            (cell, text)
            for cell, text in zip(series.tolist(), fields.column(name), strict=True)
            if not pd.isna(cell)
        )
        return {cell: text for (cell, text), _ in reversed(counts.most_common())}

    def _writer(self, name: str, known: dict[Any, str]) -> Writer | None:
        """A function that writes numbers in the style of the column's known ones."""
        pairs = [(text, float(cell)) for cell, text in known.items() if isinstance(cell, int | float)]
        return number_writer([text for text, _ in pairs], np.array([cell for _, cell in pairs]))


def _plain(cell: Any) -> str:
    """A cell whose column shows no rule."""
    return str(cell) if isinstance(cell, bool | np.bool_) else shown_number(float(cell))

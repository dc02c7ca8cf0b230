"""Filled tables in the form of their file: cells that were there stay as they are, to the byte."""

from __future__ import annotations

import gzip
from collections import Counter
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nongauss.predictive.cells import MissingCells
from nongauss.tables.cell_style import Writer, date_writer, number_writer
from nongauss.tables.column_code import ColumnCode
from nongauss.tables.csv_splice import RawFields
from nongauss.tables.files import TEXT_SUFFIXES, write_table
from nongauss.tables.filling import find_gaps
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

    def in_words(self, cells: pd.DataFrame, full: pd.DataFrame, imputer: Any) -> pd.DataFrame:
        """The table of missing cells with values as they are filled in, and ends of intervals alike."""
        out = cells.astype({"value": object, "lower": object, "upper": object})
        encoder = imputer._cell_encoder
        gaps = find_gaps(encoder, imputer._cell_margins, self._frame, "impute")
        for j, margin in enumerate(imputer._cell_margins):
            own = (cells["column"] == margin.name).to_numpy()
            if not own.any():
                continue
            code = encoder.columns[margin.flat]
            series = self._frame[margin.name]
            rows = np.flatnonzero(series.notna().to_numpy() & ~np.isnan(gaps.cells[:, j]))
            ends = cells.loc[own, ["lower", "upper"]]
            if margin.labels and margin.is_ordered:
                out.loc[own, "value"] = full[margin.name].iloc[cells.loc[own, "row"]].to_numpy(object)
                for end in ends:
                    out.loc[own, end] = [margin.labels[int(place)] for place in ends[end]]
            elif code.kind == "date":
                texts = [str(text) for text in series.iloc[rows]]
                write = date_writer(texts, gaps.cells[rows, j]) or partial(_day, code)
                for name in ("value", "lower", "upper"):
                    out.loc[own, name] = [write(float(day)) for day in cells.loc[own, name]]
        if not self._is_text:  # a Parquet column has one type
            for name in ("value", "lower", "upper"):
                out[name] = out[name].map(str, na_action="ignore")
        return out

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
        """What writes numbers of a column as the known ones are."""
        pairs = [(text, float(cell)) for cell, text in known.items() if isinstance(cell, int | float)]
        return number_writer([text for text, _ in pairs], np.array([cell for _, cell in pairs]))


def _day(code: ColumnCode, day: float) -> str:
    """A number of days since 1970 as the column's kind writes it."""
    return code.shown(day - code.origin)


def _plain(cell: Any) -> str:
    """A cell whose column shows no rule."""
    return str(cell) if isinstance(cell, bool | np.bool_) else shown_number(float(cell))

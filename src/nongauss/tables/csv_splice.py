"""A CSV file with some of its cells replaced and every other one as it is, to the byte."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from nongauss.core.errors import InputError
from nongauss.tables.csv_layout import Layout, decoded, plain_layout
from nongauss.tables.files import raw_bytes


class RawFields:
    """The fields of a CSV file as they stand there, quotation marks among them.

    `names` are those of the frame that `read_table` makes; lines above the names and below the rows, which it
    leaves out, are left out here too.
    """

    def __init__(self, path: Path) -> None:
        self._layout = _layout_of(path)
        is_one = len(self._layout.names) == 1
        self.records = [r for r in _records(self._layout) if is_one or len(r) > 1 or r[0].strip()]
        self.names = [name or f"Unnamed: {place}" for place, name in enumerate(self._layout.names)]

    def column(self, name: str) -> list[str]:
        """The fields of a column as they are read: without quotation marks and blanks around them."""
        place = self._place(name)
        return [_read(record[place]) for record in self.records[1:]]

    def fits(self, n_rows: int, names: list[str]) -> bool:
        """Do rows and columns of a frame stand here one by one?"""
        widths = {len(record) for record in self.records[1:]}
        own = set(self.names)
        return len(self.records) == n_rows + 1 and min(widths) >= len(self.names) and set(names) <= own

    def replaced(self, cells: Mapping[str, Mapping[int, str]]) -> str:
        """The text with cells of some columns, by row, replaced; quoted where they need it, or others are."""
        out = [list(record) for record in self.records]
        for name, texts in cells.items():
            place = self._place(name)
            quoted = sum(record[place].lstrip().startswith('"') for record in self.records[1:])
            always = quoted > 0.5 * sum(bool(record[place].strip()) for record in self.records[1:]) > 0
            for row, text in texts.items():
                out[row + 1][place] = self._quoted(text, always)
        return "\n".join(self._layout.separator.join(record) for record in out) + "\n"

    def _place(self, name: str) -> int:
        """The place of a column among the fields of a row."""
        if name not in self.names:
            raise InputError(f"There is no column {name!r} in the file.")
        return self.names.index(name)

    def _quoted(self, text: str, always: bool) -> str:
        """A text as a field of a CSV file, quoted where needed."""
        needs = always or any(mark in text for mark in (self._layout.separator, '"', "\n"))
        return '"' + text.replace('"', '""') + '"' if needs else text


def _layout_of(path: Path) -> Layout:
    """The layout of a file; what is to be said of it was said when it was read."""
    notes: list[str] = []
    return plain_layout(decoded(raw_bytes(path), path.name, notes), path.name, notes)


def _records(layout: Layout) -> list[list[str]]:
    """The fields of each record, quotation marks and all; a quoted field may span lines."""
    mark = re.escape(layout.separator)
    blank = rf"(?:(?!{mark})[^\S\n])*"  # before a quotation mark, of this field and this line
    field = re.compile(rf'({blank}"(?:[^"]|"")*"[^{mark}\n]*|[^{mark}\n]*)({mark}|\n|\Z)')
    records: list[list[str]] = [[]]
    text, at = layout.text.lstrip("\n"), 0
    while True:
        found = field.match(text, at)
        assert found is not None
        records[-1].append(found[1])
        at = found.end()
        if found[2] == "":
            return records
        if found[2] == "\n":
            records.append([])


def _read(field: str) -> str:
    """A field as it is read."""
    text = field.strip()
    return text[1:-1].replace('""', '"') if len(text) > 1 and text[0] == text[-1] == '"' else text

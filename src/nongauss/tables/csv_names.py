"""Several lines of names above the rows of a CSV file, as surveys and instruments write them, as one."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from nongauss.tables.number_text import is_missing_word

_MOST_LINES, _LOOK, _FEWEST = 2, 60, 3
_NUMBER = re.compile(r"[-+(<>~]*[$€£]?\s?\d[-\d.,:/' \u00a0TZ]*\s?\S{0,3}")


def with_one_line_of_names(text: str, separator: str, file: str, notes: list[str]) -> str:
    """The text without lines that say more of the names below them: questions, units, codes of an export.

    Such a line has words above numbers, and none of its cells comes again. A column that has no name, or one
    that others have too, is named by it as well. What was left out goes to `notes`.
    """
    for _ in range(_MOST_LINES):
        found = _second_line(text, separator)
        if found is None:
            return text
        names, second, rest = found
        out, one = io.StringIO(), _under_headings(names, second)
        if one:
            shown = ", ".join(repr(name[:60]) for name in one if name)
            notes.append(f"Two lines of column names of {file} were read as one ({shown[:200]}).")
        else:
            shown = ", ".join(repr(cell[:60]) for cell in second if cell)
            notes.append(f"A second line of column names was left out of {file} ({shown[:200]}).")
        csv.writer(out, delimiter=separator, lineterminator="\n").writerow(one or _joint(names, second))
        text = out.getvalue() + rest
    return text


def _second_line(text: str, separator: str) -> tuple[list[str], list[str], str] | None:
    """The names, the cells below them and the text of the rows, where these cells say more of the names."""
    lines = io.StringIO(text[: 1 << 20])
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        names = [cell.strip() for cell in next(reader, [])]
        second = [cell.strip() for cell in next(reader, [])]
        end = reader.line_num
        rows = [row for row in islice(reader, _LOOK) if len(row) == len(names)]
    except csv.Error:
        return None
    if len(names) < 2 or len(second) != len(names) or len(rows) < _FEWEST or not _says_more(second, rows):
        return None
    return names, second, "\n".join(text.split("\n")[end:])


def _says_more(second: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Do these cells (D,) hold no number, stand above one, and come again in no column?"""
    if any(_NUMBER.fullmatch(cell) or (cell and is_missing_word(cell)) for cell in second):
        return False
    over_numbers = 0
    for cell, column in zip(second, zip(*rows, strict=True), strict=True):
        below = [field.strip() for field in column if field.strip()]
        if cell and cell in below:
            return False
        numbers = sum(_NUMBER.fullmatch(field) is not None for field in below)
        over_numbers += bool(cell) and len(below) >= _FEWEST and numbers == len(below)
    n_cells = sum(map(bool, second))
    return over_numbers > 1 or (over_numbers == 1 and 1 < n_cells > len(second) / 2)


def _under_headings(headings: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names of columns of which several have one heading, as merged cells are written: that heading and
    no cell behind it. Names that stand once are as they are but right below a heading. [] without headings.
    """
    times = Counter(filter(None, names))
    around = zip(headings, names, [*headings[1:], "x"], strict=True)
    cover_several = all(name and not behind for heading, name, behind in around if heading)
    if not cover_several or max(times.values(), default=1) == 1:
        return []
    above, out = "", []
    for heading, name in zip(headings, names, strict=True):
        above = heading or above
        out.append(f"{above} {name}".strip() if heading or times[name] > 1 else name)
    return out if len(set(filter(None, out))) == len(list(filter(None, out))) else []


def _joint(names: Sequence[str], second: Sequence[str]) -> list[str]:
    """The names, of which those that are empty or stand several times have the second line's cell behind."""
    times = Counter(names)
    return [
        name if name and times[name] == 1 else " ".join(filter(None, (name, cell)))
        for name, cell in zip(names, second, strict=True)
    ]

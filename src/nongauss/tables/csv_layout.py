"""How a CSV file is laid out: its encoding, separator, line of names, and lines that are no rows.

Every step takes the text of the file and gives one that is closer to plain CSV; what a person should know of
it goes to `notes`, each a sentence.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice

from nongauss.core.errors import InputError
from nongauss.tables.csv_foot import unbalanced, without_foot
from nongauss.tables.csv_names import with_one_line_of_names

SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars ('|')"}
SEPARATORS = tuple(SEPARATOR_NAMES)
SAMPLE = 200  # records looked at to find the separator
_ENOUGH = 0.5  # the share of records that must be as wide as the first, if no titles stand above
_MOST_TITLES = 30  # lines that may stand above the names
_GAP_OF_SHEETS = re.compile(r"#(N/A|NA|NULL!|VALUE!|REF!|DIV/0!|NUM!|NAME\?)", re.IGNORECASE)
_LIKE_NUMBER = re.compile(r"[-+(]?[$€£]?\s?\d[-\d.,:/' \u00a0]*\s?[%€$£)]?|\d{1,2}[ .-]\w{3,9}[ .-]\d{2,4}.*")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Layout:
    """Plain CSV: the text with its line of names first, the separator, and the names of a row's fields.

    `is_longer`: lines may end with one more separator, after which there is nothing.
    """

    text: str
    separator: str
    names: list[str]
    is_longer: bool = False


def decoded(data: bytes, file: str, notes: list[str]) -> str:
    """Text with "\\n" line ends, without byte-order mark and without blank lines below. Raises InputError."""
    encoding = _wide_encoding(data)
    if encoding:
        text = data.decode(encoding, errors="replace").lstrip("\ufeff")
    elif b"\0" in data[:4096]:
        raise InputError(f"{file} is not text (it holds zero bytes); export it as CSV or Parquet.")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            try:
                encoding, text = "cp1252", data.decode("cp1252")
            except UnicodeDecodeError:
                encoding, text = "latin-1", data.decode("latin-1")
            notes.append(
                f"{file} is not UTF-8; it was read as {encoding}. "
                "Check its accented letters, or save it as UTF-8."
            )
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.rstrip("\n")


def _wide_encoding(data: bytes) -> str:
    """UTF-16 by its mark, or by zeros in every other byte; else ""."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    head = data[:2000]
    half = len(head) // 2
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if half > 1 and head[start::2].count(0) > 0.7 * half and not head[1 - start :: 2].count(0):
            return encoding
    return ""


def plain_layout(text: str, file: str, notes: list[str]) -> Layout:
    """The layout of a file's text. Raises InputError where rows differ in width, or names repeat."""
    text, declared = _declared_separator(text)
    text = _without_comments(text, file, notes)
    separator = declared or _separator(text, file)
    text = _without_titles(text, separator, file, notes)
    text = with_one_line_of_names(text, separator, file, notes)
    text = without_foot(text, separator, file, notes)
    names, is_longer = _names_of(text, separator, file)
    check_names(names, file)
    if odd := unbalanced(text, separator, file):
        notes.append(odd)
    if all(_NUMBER.fullmatch(name) for name in names):
        notes.append(
            f"The first line of {file} holds numbers but is read as column names; if it is a row, put "
            "a line of column names before it."
        )
    return Layout(text, separator, names, is_longer)


def _declared_separator(text: str) -> tuple[str, str]:
    """The text without a first line such as "sep=;", and the separator that it declares, "" for none."""
    found = re.match(r"\s*\"?sep=(.)\"?\n", text)
    return (text[found.end() :], found[1]) if found and found[1] in SEPARATORS else (text, "")


def _without_comments(text: str, file: str, notes: list[str]) -> str:
    """The text without lines that begin with #, unless the names do."""
    if "\n#" not in text and not text.lstrip("\n").startswith("#"):
        return text
    lines = text.split("\n")
    comments = [line.startswith("#") and not _GAP_OF_SHEETS.match(line) for line in lines]
    body = [line for line, is_comment in zip(lines, comments, strict=True) if line and not is_comment]
    if not body:
        return text
    first = next(line for line in lines if line)
    if first.startswith("#") and any(
        first.count(mark) == body[0].count(mark) > 0 for mark in SEPARATORS
    ):  # "#id,name": the names
        comments[lines.index(first)] = False
        lines[lines.index(first)] = first[1:].lstrip()
    n = sum(comments)
    if n and '"' not in "".join(line for line, is_comment in zip(lines, comments, strict=True) if is_comment):
        notes.append(f"{n} lines of {file} that begin with # were left out as comments.")
        return "\n".join(line for line, is_comment in zip(lines, comments, strict=True) if not is_comment)
    return "\n".join(lines)


def _sampled(text: str, separator: str) -> list[list[str]]:
    """The first records that are not blank; none where quotation marks are amiss."""
    reader = csv.reader(io.StringIO(text[: 1 << 20]), delimiter=separator, skipinitialspace=True)
    try:
        return [row for row in islice(reader, SAMPLE) if row]
    except csv.Error:
        return []


def _separator(text: str, file: str) -> str:
    """The separator whose records agree best with the first, or with each other below a few titles.

    One that does not occur where there is one column only.
    """
    best, best_score = ",", (0.0, 0)
    for separator in SEPARATORS:
        rows = _sampled(text, separator)
        width = len(rows[0]) if rows else 1
        agreeing = sum(len(row) == width for row in rows) / max(len(rows), 1)
        if width > 1 and (agreeing, width) > best_score:
            best, best_score = separator, (agreeing, width)
    if best_score[0] < _ENOUGH:
        under_titles = [separator for separator in SEPARATORS if _n_titles(_sampled(text, separator))]
        if under_titles:
            return under_titles[0]
    if best_score == (0.0, 0):
        _check_foreign_separator(text[: 1 << 20].split("\n", SAMPLE)[:SAMPLE], file)
        return next((separator for separator in reversed(SEPARATORS) if separator not in text), best)
    return best


def _n_titles(rows: list[list[str]]) -> int:
    """How many of the first records are titles above the line of names; 0 where that is not evident.

    Evident: they have fewer fields than names and rows agree on, or one field that is not empty; the names
    are no numbers, and among the rows there are numbers.
    """
    width, n = max(Counter(map(len, rows)).items(), key=lambda found: found[1], default=(1, 0))
    if width < 2 or n < 2:
        return 0
    for at, row in enumerate(rows[:_MOST_TITLES]):
        filled = sum(bool(field.strip()) for field in row)
        if len(row) == width and (filled > 1 or width == 2):
            below = rows[at + 1 :]
            numbers = any(_LIKE_NUMBER.fullmatch(field.strip()) for row in below[:5] for field in row)
            named = not any(_NUMBER.fullmatch(field.strip()) for field in row)
            agree = sum(len(row) == width for row in below) >= 0.9 * len(below) > 0
            return at if numbers and named and agree else 0
    return 0


def _check_foreign_separator(lines: list[str], file: str) -> None:
    """One column only: does every line hold the same number of some other separator?"""
    foreign = ((None, "blanks"), (",", "commas"), (";", "semicolons"), ("\t", "tabs"), ("|", "'|'"))
    for separator, name in foreign:
        parts = [line.split(separator) for line in lines if line.strip()]
        body = parts[1:]
        same = len(body) > 0 and min(map(len, body)) > 1 and len({len(row) for row in body}) == 1
        if not same or (separator == "," and len(body[0]) == 2):
            continue  # one comma a line under a one-word header: decimal commas
        if all(_NUMBER.fullmatch(field.strip()) for row in body for field in row):
            raise InputError(
                f"{file} seems to be separated by {name}, but its first line has only one column; "
                "use commas, semicolons, tabs or bars ('|'), in the line of column names too."
            )


def _without_titles(text: str, separator: str, file: str, notes: list[str]) -> str:
    """The text from its line of names on."""
    n = _n_titles(_sampled(text, separator))
    if not n:
        return text
    lines = text.split("\n")
    at = next(i for i, _ in islice(((i, line) for i, line in enumerate(lines) if line.strip()), n, None))
    titles = [line.strip(separator + " ") for line in lines[:at] if line.strip(separator + " ")]
    shown = ", ".join(repr(title[:60]) for title in titles[:3])
    what = "line was" if n == 1 else f"{n} lines were"
    notes.append(f"The first {what} left out of {file} as titles ({shown}).")
    return "\n".join(lines[at:])


def _names_of(text: str, separator: str, file: str) -> tuple[list[str], bool]:
    """The names of a row's fields ("" of an index), and whether a field without a name follows at the end.

    Raises InputError for the first row with another number of fields, and where there are no rows.
    """
    names, rows = _records(text, separator, file)
    if not names or not rows:
        raise InputError(f"{file} has column names but no rows; add at least one row.")
    n = len(names)
    widths = {width for _, width, _ in rows}
    if widths == {n}:
        return names, False
    if n > 1 and widths == {n + 1} and not all(ends for *_, ends in rows):
        return ["", *names], False
    if n > 2 and not names[-1] and widths == {n - 1}:
        return names[:-1], True
    for line, width, ends in rows:
        if width != n and not (width == n + 1 and ends):
            raise InputError(
                f"{file}, line {line}: expected {n} fields separated by {SEPARATOR_NAMES[separator]}, "
                f"got {width}; give every line as many fields as there are column names."
            )
    return names, True


def _records(text: str, separator: str, file: str) -> tuple[list[str], list[tuple[int, int, bool]]]:
    """The names, and of each row its line, its number of fields, and whether the last of them is empty.

    One row stands for all where quotation marks do not matter and all are as wide as the names.
    """
    if '"' in text:
        plain = _QUOTED.sub("", text) if text.count('"') % 2 == 0 else ""
        lines = [line for line in plain.split("\n") if line]
        widths = {line.count(separator) + 1 for line in lines[1:]}
        if len(widths) != 1 or lines[0].count(separator) + 1 not in widths:
            return _quoted_records(text, separator, file)
        names, _ = _quoted_records(text, separator, file, most=1)
        return names, [(0, width, False) for width in widths]
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if line.strip())
    names = [name.strip() for name in lines[start].split(separator)]
    if {line.count(separator) for line in lines[start + 1 :] if line} == {len(names) - 1}:
        return names, [(0, len(names), False)]
    rows = [
        (number, line.count(separator) + 1, line.endswith(separator))
        for number, line in enumerate(lines[start + 1 :], start + 2)
        if line.strip(" ") or len(names) == 1
    ]
    return names, rows


_QUOTED = re.compile(r'"[^"]*"')


def _quoted_records(
    text: str, separator: str, file: str, most: int | None = None
) -> tuple[list[str], list[tuple[int, int, bool]]]:
    """As `_records`, of a file with quotation marks, where a record may span lines; of `most` records."""
    names: list[str] = []
    rows = []
    line = 1
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    try:
        for record in islice(reader, most):
            if record and not names:
                names = [name.strip() for name in record]
            elif record:
                rows.append((line, len(record), not record[-1]))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{file} cannot be read from line {line} on ({error}); a quotation mark may be missing."
        ) from error
    return names, rows


def check_names(names: list[str], file: str) -> None:
    """Raises InputError for names that stand for several columns."""
    twice = [name for name, n in Counter(filter(None, names)).items() if n > 1]
    if twice:
        raise InputError(
            f"{file} has more than one column named {', '.join(map(repr, twice[:5]))}; "
            "give every column a name of its own."
        )

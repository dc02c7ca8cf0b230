"""What stands below the rows of a CSV file: lines of totals, sources and notes; and cells that span lines."""

from __future__ import annotations

import csv
import io
import re

_TOTAL = re.compile(
    r"(grand |sub|overall )?(total|totals|sum|average|mean)|summe|gesamt|gesamtsumme|insgesamt|mittelwert"
    r"|durchschnitt|somme|moyenne|totale|media|suma|soma|média|totaal|gemiddelde|som",
    re.IGNORECASE,
)
_SUBTOTAL = re.compile(
    r".+ (sub)?totals?|(sub ?)?totals?( |: ?).+|sub[ -]?totals?"
    r"|(zwischen)?summe .+|zwischensumme|sous-total.*",
    re.IGNORECASE,
)
_FOOT = re.compile(
    r'"?\s*((source|sources|note|notes|footnote|quelle|quellen|anmerkung|hinweis|fuente|nota|fonte|bron|stand|'
    r"generated|exported|downloaded|created|copyright|report|data|updated|last updated|end of)\b.*"
    r"|[*†‡©¹²³].*|\(?[0-9,]+ rows?\b.*|\[[0-9]+\].*|-{3,}.*|={3,}.*)",
    re.IGNORECASE,
)
_MOST_LINES, _MOST_NAMED, _FIRST = 30, 3, 1 << 16
_FEWEST_SUBTOTALS = 2
_FEW_ROWS = 0.05  # of rows may have as few cells as notes have


def without_foot(text: str, separator: str, file: str, notes: list[str]) -> str:
    """The text without lines below the rows that are no rows; they are named in `notes`.

    Below the last row, lines with fewer fields than the names are left out where a blank line stands above
    them and next to no row has as few cells, or they begin as notes do ("Source: ..."); others are kept,
    since they may be rows that were cut off.
    Above these, lines that begin with a word for a total or a mean, which no other line begins with; and
    wherever they stand, lines of totals of some rows that are empty where all rows have a cell.
    """
    first = next((line for line in text[:_FIRST].split("\n") if line.strip()), "")
    n_fields = _n_fields(first, separator)
    text = _without_subtotals(text, separator, n_fields, file, notes)
    head, *lines = text.rsplit("\n", _MOST_LINES)
    if n_fields < 2 or len(lines) < 4:
        return text
    end = _end_of_rows(head, lines, separator, n_fields)
    foot = [line for line in lines[end:] if line.strip(separator + " ")]
    first_total = _first_total(head, lines[:end], separator)
    totals = lines[first_total:end]
    if not foot and not totals:
        return text
    for found, what in ((totals, "totals"), (foot, "notes")):
        if found:
            shown = ", ".join(repr(line.strip(separator + " ")[:60]) for line in found[:_MOST_NAMED])
            many = "line was" if len(found) == 1 else f"{len(found)} lines were"
            notes.append(f"The last {many} left out of {file} as {what} ({shown}).")
    return "\n".join([head, *lines[:first_total]]).rstrip("\n")


def _without_subtotals(text: str, separator: str, n_fields: int, file: str, notes: list[str]) -> str:
    """The text without lines such as "North Total,,,120", with a field that is empty in no other line."""
    lowered = text.lower()
    if "total" not in lowered and "summe" not in lowered:
        return text
    lines = text.split("\n")
    fields = [next(csv.reader([line], delimiter=separator), []) for line in lines]
    may_be = [len(cells) == n_fields and _is_subtotal(cells) for cells in fields]
    rows = [cells for cells, it in zip(fields, may_be, strict=True) if len(cells) == n_fields and not it]
    full = [at for at, cells in enumerate(zip(*rows, strict=True)) if all(cell.strip() for cell in cells)]
    gone = [
        it and any(not cells[at].strip() for at in full) for it, cells in zip(may_be, fields, strict=True)
    ]
    if sum(gone) < _FEWEST_SUBTOTALS:
        return text
    totals = [line.strip(separator + " ") for line, is_gone in zip(lines, gone, strict=True) if is_gone]
    shown = ", ".join(repr(line[:60]) for line in totals[:_MOST_NAMED])
    notes.append(f"{len(totals)} lines were left out of {file} as subtotals ({shown}).")
    return "\n".join(line for line, is_gone in zip(lines, gone, strict=True) if not is_gone)


def _is_subtotal(cells: list[str]) -> bool:
    """Is the first cell that is not empty a word for a total of some rows?"""
    first = next((cell.strip(" :") for cell in cells if cell.strip()), "")
    return _SUBTOTAL.fullmatch(first) is not None


def _end_of_rows(head: str, lines: list[str], separator: str, n_fields: int) -> int:
    """The number of lines up to the last row; all of them where nothing below is evidently none."""
    for at in range(1, len(lines)):
        below = [line for line in lines[at:] if line.strip(separator + " ")]
        if not below or any(_n_fields(line.rstrip(separator), separator) >= n_fields for line in below):
            continue
        is_apart = not lines[at].strip(separator + " ")
        if _FOOT.match(below[0].strip(separator + " ")):
            return at
        if is_apart and not _are_like_rows(below, [*head[:_FIRST].split("\n")[1:], *lines[:at]], separator):
            return at
    return len(lines)


def _are_like_rows(below: list[str], rows: list[str], separator: str) -> bool:
    """Do more than a few rows have as few cells as the fullest of the lines below?"""
    most = max(_n_filled(line, separator) for line in below)
    filled = [count for row in rows if (count := _n_filled(row, separator))]
    return sum(count <= most for count in filled) > _FEW_ROWS * len(filled)


def _n_filled(line: str, separator: str) -> int:
    """Fields of a line that are not empty."""
    return sum(bool(cell.strip()) for cell in re.sub(r'"[^"]*"', "x", line).split(separator))


def _first_total(head: str, lines: list[str], separator: str) -> int:
    """The number of lines above those of totals, which are at the end and begin as no other line does."""
    at = len(lines)
    while at > 1 and (not lines[at - 1].strip(separator + " ") or _is_total(lines[at - 1], separator)):
        at -= 1
    if not any(_is_total(line, separator) for line in lines[at:]):
        return len(lines)
    above = [*head.split("\n")[1:], *lines[:at]]
    return len(lines) if any(_is_total(line, separator) for line in above) else at


def _is_total(line: str, separator: str) -> bool:
    """Does a line begin with a word for a total, perhaps after empty fields?"""
    first = line.lstrip(separator + " ").split(separator, 1)[0]
    return _TOTAL.fullmatch(first.strip('" :')) is not None


def _n_fields(line: str, separator: str) -> int:
    """Fields of a line, outside quotation marks."""
    return re.sub(r'"[^"]*"', "", line).count(separator) + 1


def unbalanced(text: str, separator: str, file: str) -> str:
    """What is to be said of a text with an odd number of quotation marks, "" where no cell spans lines."""
    if text.count('"') % 2 == 0:
        return ""
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    line = 1
    try:
        for record in reader:
            cell = next((field for field in record if "\n" in field), "")
            if cell:
                return (
                    f"{file} has an odd number of quotation marks, and in line {line} a cell goes on in the "
                    f"next line ({cell[:40]!r}): rows may have become one; close the quotation."
                )
            line = reader.line_num + 1
    except csv.Error:
        pass
    return ""

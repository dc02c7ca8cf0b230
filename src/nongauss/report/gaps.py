"""The report of a table whose gaps were filled: before and after, how sure, and what stayed open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import nongauss
from nongauss.report.columns import fingerprint, gaps_of, percent, typical_of
from nongauss.report.filled import FilledColumn, least_sure
from nongauss.report.html import drawn, template, written
from nongauss.report.pictures import Picture, gap_figures
from nongauss.report.svg import colours_of
from nongauss.report.text import for_readers
from nongauss.tables.frame import InputTable, read_input

_MOST_PANELS, _MOST_CELLS, _MOST_LISTED = 12, 8, 100
_NO_GAIN, _CLEAR = 0.02, 0.03
_MODELS = {
    "rank_factor": "rank factors",
    "harmonium": "a harmonium",
    "normal scores": "the correlations of normal scores",
    "columns alone": "each column by itself",
    "mixture": "their mixture",
}


@dataclass(frozen=True)
class GapLine:
    """A column of the report's table, as texts; `bar` is how sure its cells are, from 0 to 100.

    `mark`: how sure a label is by itself, None for other columns.
    """

    name: str
    gaps: str
    before: str
    after: str
    sure: str
    bar: float
    mark: float | None


def write_gaps_report(
    path: str | Path,
    *,
    imputer: Any,
    frame: pd.DataFrame,
    columns: Sequence[FilledColumn],
    still_open: Sequence[str],
    source: str,
    files: Sequence[Path] = (),
    draws: Sequence[str] = (),
    notes: Sequence[str] = (),
    fitted_at: str = "",
) -> Path:
    """Write the report of an imputed table to `path`, completely or not at all; return the path.

    Parameters
    ----------
    imputer : the fitted `AutoImputer`.
    frame : the original table, with its missing cells.
    columns : what was filled, see `filled_columns`.
    still_open : names of columns in which cells are still missing.
    source : the table's name.
    files : what was written beside the report; `draws`: names of the tables whose missing cells are drawn.
    notes : warnings of the fit.

    Raises
    ------
    OSError
        Where the file cannot be written.
    """
    shown = sorted(columns, key=lambda c: -len(c.rows))[:_MOST_PANELS]
    pictures = drawn(given := gap_figures(shown))
    table, n_cells = read_input(frame), sum(len(c.rows) for c in columns)
    page = template("gaps.html").render(
        title=f"Missing cells imputed in {source}",
        lead=_lead(imputer, frame),
        first=_first_sentence(columns, still_open, table),
        says=[*_sentences(imputer, columns), *_cautions(draws)] if n_cells else [],
        lines=[_line(column, len(frame)) for column in columns],
        pictures=pictures,
        keys={part: _key_of(given, part) for part in ("before", "cells")},
        left=len(columns) - len(shown),
        colours=colours_of(svg for part in pictures.values() for _, svg in part),
        cells=[_cell(column, k) for column, k in least_sure(columns, _MOST_CELLS)],
        source=source,
        table=_table(imputer, table, columns, still_open),
        notes=[text for note in notes if (text := for_readers(note))],
        board=_board(imputer),
        facts=_facts(imputer, frame, files, fitted_at),
    )
    return written(path, page)


def _lead(imputer: Any, frame: pd.DataFrame) -> str:
    """The sentence on which model filled the table."""
    n_rows, n_columns = frame.shape
    return f"Filled by {_filler(imputer)}, fitted to {n_rows:,} rows of {n_columns:,} columns."


def _filler(imputer: Any) -> str:
    """The model, or the models of the mixture with their shares, the mean of both kinds of columns."""
    names = [_MODELS[name] for name in imputer.models_]
    if len(names) == 1:
        return names[0]
    shares = [percent(share) for share in imputer.weights_.mean()]
    parts = [f"{name} ({share})" for name, share in zip(names, shares, strict=True)]
    return f"a mixture of {', '.join(parts[:-1])} and {parts[-1]}"


def _line_of_filler(imputer: Any) -> pd.Series[Any]:
    """The line of the leaderboard of what imputes, which need not be the first."""
    board = imputer.leaderboard_.set_index("candidate")
    names = list(imputer.models_)
    line: pd.Series[Any] = board.loc["mixture" if len(names) > 1 else names[0]]
    return line


def _first_sentence(columns: Sequence[FilledColumn], still_open: Sequence[str], table: InputTable) -> str:
    """How many cells were missing, and whether all are filled."""
    n_cells = table.shape[0] * table.shape[1]
    n_missing = sum(int(table.column(place).missing.sum()) for place in range(table.shape[1]))
    n_filled = sum(len(c.rows) for c in columns)
    share = percent(n_missing / max(n_cells, 1))
    if not n_missing:
        return "The table has no missing cells."
    said = f"{n_missing:,} of {n_cells:,} cells ({share}) were missing"
    if n_filled == n_missing:
        return f"{said}; all of them were filled."
    names = ", ".join(map(repr, still_open[:5])) + (
        f" and {len(still_open) - 5} more" if len(still_open) > 5 else ""
    )
    return (
        f"{said}; {n_filled:,} were filled, the other {n_missing - n_filled:,} could not be filled "
        f"(in {names})."
    )


def _sentences(imputer: Any, columns: Sequence[FilledColumn]) -> list[str]:
    """How the model was chosen, how well it does, and which columns are the most and the least sure."""
    said = [_on_choice(imputer)]
    coverage = float(_line_of_filler(imputer)["coverage"])
    if np.isfinite(coverage):
        said.append(f"Of the hidden numbers, {100 * coverage:.0f} % lay in their 90 % intervals.")
    told = [c for c in columns if not c.is_single]
    own = sorted((c for c in told if not c.is_label), key=lambda c: -c.how_sure)
    if len(own) > 1 and own[0].how_sure - own[-1].how_sure > _CLEAR:
        said.append(
            f"Of the numbers, dates and grades {own[0].name} is filled most reliably (standard deviation "
            f"{100 * own[0].how_sure:.0f} % smaller than the column's), {own[-1].name} least "
            f"reliably ({100 * own[-1].how_sure:.0f} % smaller)."
        )
    own = sorted((c for c in told if c.is_label), key=lambda c: -c.how_sure)
    if len(own) > 1 and own[0].how_sure - own[-1].how_sure > _CLEAR:
        said.append(
            f"Of the labels {own[0].name} is filled most reliably (mean probability of the label put in "
            f"{100 * own[0].how_sure:.0f} %), {own[-1].name} least reliably ({100 * own[-1].how_sure:.0f} %)."
        )
    return said


def _on_choice(imputer: Any) -> str:
    """The sentence on why this model was chosen."""
    board = imputer.leaderboard_
    if len(board) == 1:
        name = _filler(imputer)
        return f"The model, {name}, was requested: no other was tried, and its accuracy was not evaluated."
    hidden = "To choose the model, observed cells were hidden and predicted from the others"
    if "mixture" not in set(board["candidate"]):
        return f"{hidden}. They did not tell the models apart; {_filler(imputer)} was taken."
    gain = 1.0 - float(_line_of_filler(imputer)["score"])
    if gain < _NO_GAIN:
        return (
            f"{hidden}. What fills the table predicted them no better than each column's own distribution: "
            "here the other columns carry almost no information about a missing cell."
        )
    return (
        f"{hidden}. By them {_filler(imputer)} was chosen, whose errors were {100 * gain:.0f} % below "
        "those of each column's own distribution."
    )


def _cautions(draws: Sequence[str]) -> list[str]:
    """What a filled table must not be used for."""
    pool = (
        f"Instead, analyse each of the {len(draws)} imputed tables ({draws[0]} to {draws[-1]}) and "
        "pool the results."
        if len(draws) > 1
        else "Instead, have several tables imputed by random draws, analyse each, and pool the results."
    )
    return [
        "A filled cell is a prediction, not an observation: standard errors and correlations "
        f"computed from the filled table are overconfident. {pool}",
        "Cells that are missing because of their own value (the highest incomes, say) cannot be recovered "
        "from the other columns, and no figure on this page would show it.",
    ]


def _line(column: FilledColumn, n_rows: int) -> GapLine:
    """A column of the table of what was filled."""
    n, sure = len(column.rows), column.how_sure
    if column.is_single:
        text, sure = "cannot be told: the column has one known cell", 0.0
    elif column.is_label:
        text = f"{100 * sure:.0f} % (most frequent label: {100 * column.most_frequent:.0f} %)"
    else:
        text = f"standard deviation {100 * sure:.0f} % smaller"
    middle = column.shown(column.before), column.shown(column.after)
    mark = 100 * column.most_frequent if column.is_label and not column.is_single else None
    return GapLine(column.name, f"{n:,} ({percent(n / n_rows)})", *middle, text, 100 * sure, mark)


def _cell(column: FilledColumn, k: int) -> tuple[str, str, str, str]:
    """A cell that is least sure: row, column, what was put in, what else it may be."""
    row, point = f"{column.rows[k] + 1}", column.shown(float(column.point[k]))
    if column.is_label:
        p = column.law.probabilities()[k]
        order = np.argsort(-p, kind="stable")[:3]
        return (
            row,
            column.name,
            point,
            ", ".join(f"{column.margin.labels[i]} {100 * p[i]:.0f} %" for i in order),
        )
    low, high = (float(end[k]) for end in column.interval)
    return row, column.name, point, f"90 % from {column.shown(low)} to {column.shown(high)}"


def _key_of(pictures: Sequence[Picture], part: str) -> list[tuple[str, str, float]]:
    """What the colours of the panels of a part mean, each once."""
    found = {item[0]: item for picture in pictures if picture.part == part for item in picture.key}
    return list(found.values())


def _table(
    imputer: Any, rows: InputTable, columns: Sequence[FilledColumn], still_open: Sequence[str]
) -> list[tuple[str, str, str, str]]:
    """(column, what became of it, gaps before, what it holds) of each column, of many the first."""
    known = {margin.name for margin in imputer._cell_margins}
    filled = {c.name for c in columns}
    lines = []
    for place, name in enumerate(str(label) for label in rows.labels):
        use = "filled" if name in filled else "complete, used" if name in known else "not used"
        if name in still_open:
            use = f"{use}, gaps stay"
        lines.append((name, use, gaps_of(rows, place), typical_of(rows, place)))
    rest = len(lines) - _MOST_LISTED
    return [*lines[:_MOST_LISTED], *([(f"{rest:,} more", "", "", "")] if rest > 0 else [])]


def _board(imputer: Any) -> list[tuple[str, str, str, str]]:
    """Candidates that were weighed: name, score, coverage, what was wrong."""
    board = imputer.leaderboard_
    if len(board) == 1:
        return []
    return [
        (
            _MODELS[str(row["candidate"])],
            f"{row['score']:.3f}" if np.isfinite(row["score"]) else "",
            f"{100 * row['coverage']:.0f} %" if np.isfinite(row["coverage"]) else "",
            str(row["failed"]),
        )
        for row in board.to_dict("records")
    ]


def _facts(imputer: Any, frame: pd.DataFrame, files: Sequence[Path], fitted_at: str) -> list[tuple[str, str]]:
    """Where this came from, and what was written."""
    pairs = [
        ("Files", ", ".join(path.name for path in files)),
        ("Version", f"nongauss {nongauss.__version__}"),
        ("Filled at", fitted_at),
        ("Seed", "" if imputer.random_state is None else str(imputer.random_state)),
        ("Fingerprint of the data", f"SHA-256 {fingerprint(frame)}…"),
    ]
    return [(name, text) for name, text in pairs if text]

"""`nongauss impute`: a table without gaps, draws of it for pooling, and how sure its cells are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nongauss.cli.choose import closest
from nongauss.cli.describe import now
from nongauss.cli.file_form import FileForm
from nongauss.core.errors import InputError
from nongauss.core.files import atomic_paths
from nongauss.report.columns import percent
from nongauss.report.filled import FilledColumn, figure_of, filled_columns
from nongauss.report.gaps import write_gaps_report
from nongauss.report.text import text_table
from nongauss.tables.files import read_table, write_table
from nongauss.tables.frame import read_input

MODELS = ("auto", "rank_factor", "harmonium")


@dataclass(frozen=True)
class Filled:
    """What was done: a line a column with gaps, which model did it and why, the files that were written."""

    columns: pd.DataFrame
    why: str
    open_columns: list[str]
    n_rows: int
    files: list[Path]

    def text(self) -> str:
        """The summary that is printed."""
        if not len(self.columns):
            return "The table has no missing cells that can be filled; it was written unchanged."
        shown = self.columns.assign(
            **{name: self.columns[name].map(_percent) for name in ("share", "how sure")}
        )
        lines = [tuple(_shown(value) for value in row) for row in shown.itertuples(index=False)]
        table = text_table(tuple(self.columns.columns), lines)
        n_cells = int(self.columns["gaps"].sum())
        left = (
            f"\nMissing cells remain in {', '.join(map(repr, self.open_columns))}."
            if self.open_columns
            else ""
        )
        is_single = bool(self.columns["how sure"].isna().any())
        single = "; of a column with one known cell it cannot be told" if is_single else ""
        return (
            f"{n_cells:,} cells of {self.n_rows:,} rows were missing.\n{self.why}\n\n{table}\n"
            "before, after: the mean; for labels and grades the most frequent value. how sure: for "
            "numbers and grades how much narrower a cell's distribution is than its column's, for "
            f"labels the mean probability of the one put in{single}.{left}\nWrote "
            f"{', '.join(map(str, self.files))}."
        )

    def record(self) -> dict[str, Any]:
        """The summary for `--json`."""
        return {
            "rows": self.n_rows,
            "columns": self.columns.to_dict("records"),
            "why": self.why,
            "left_open": self.open_columns,
            "report": self.files[-1],
            "files": self.files,
        }


def impute_table(
    data: Path,
    out: Path,
    draws: int,
    model: str,
    seed: int,
    step: Callable[[str], Any] = lambda text: None,
    raw: bool = False,
    notes: Callable[[], Sequence[str]] = lambda: (),
    ignore: Sequence[str] = (),
) -> Filled:
    """Fill the gaps of a table; write it, its draws, a table of the missing cells and a report.

    `notes`: what was warned of so far, for the report. `ignore`: columns that are neither filled nor looked
    at, and written as they are. Raises InputError.
    """
    if model not in MODELS:
        raise InputError(f"--model must be one of {', '.join(MODELS)}, got {model!r}.")
    frame = read_table(data)
    if not len(frame):
        raise InputError(f"{data.name} has no rows to fill; give at least one.")
    whole, frame = frame, _without(frame, ignore, data.name)
    step("fitting")
    table = read_input(frame)  # whose columns are decoded once for all that follows
    imputer = _imputer(model, seed).fit(table)
    step("filling")
    full, laws = imputer.impute(table), imputer.impute_distribution(table)
    columns = filled_columns(imputer, laws, table)
    still = [str(name) for name in full.columns if full[name].isna().any()]
    files = paths_of(out, draws)
    form = FileForm(data, out, whole, laws)
    tables = [_with_columns(filled, whole) for filled in (full, *imputer.sample_missing(table, draws))]
    cells = form.in_words(laws.to_frame())
    step("drawing the report")
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_paths(files) as temporaries:
        write_table(cells, temporaries[1], raw)
        for path, each in zip([temporaries[0], *temporaries[2:-1]], tables, strict=True):
            form.write(each, path, raw)
        told: dict[str, Any] = {"imputer": imputer, "frame": frame, "columns": columns, "still_open": still}
        names: dict[str, Any] = {"source": data.name, "files": files[:-1]}
        names["draws"] = [file.name for file in files[2:-1]]
        write_gaps_report(temporaries[-1], **told, **names, notes=notes(), fitted_at=now())
    return Filled(_frame(_column_lines(columns, len(frame))), imputer.why_, still, len(frame), files)


def _without(frame: pd.DataFrame, ignore: Sequence[str], source: str) -> pd.DataFrame:
    """The table without these columns. Raises InputError for one that is not there, or where none is left."""
    labels = {str(label): label for label in frame.columns}  # a Parquet file may have numbers for names
    for name in ignore:
        if name not in labels:
            raise InputError(f"{source} has no column {name!r};{closest(name, labels)}")
    if len(set(ignore)) == frame.shape[1]:
        raise InputError("--ignore names every column; leave one to fill.")
    return frame.drop(columns=[labels[name] for name in ignore])


def _with_columns(filled: pd.DataFrame, whole: pd.DataFrame) -> pd.DataFrame:
    """A filled table with the columns of the whole that it lacks, in their places."""
    out = whole.copy()
    for label in filled.columns:
        out[label] = filled[label]
    return out


def paths_of(out: Path, draws: int) -> list[Path]:
    """The files that are written: FULL.csv, FULL_cells.csv, FULL_draw1.csv, ..., FULL_report.html."""
    name = out.name
    suffix = "".join(Path(name).suffixes[-2:]) if name.endswith(".gz") else Path(name).suffix
    stem = name.removesuffix(suffix)
    extra = ["cells", *(f"draw{number + 1}" for number in range(draws))]
    beside = [out.with_name(f"{stem}_{part}{suffix}") for part in extra]
    return [out, *beside, out.with_name(f"{stem}_report.html")]


def _imputer(model: str, seed: int) -> Any:
    """The model that is asked for, not fitted yet."""
    from nongauss.auto.imputer import AutoImputer

    return AutoImputer("auto" if model == "auto" else [model], random_state=seed)


def _column_lines(columns: Sequence[FilledColumn], n_rows: int) -> list[dict[str, Any]]:
    """What is said of each column that had gaps."""
    return [
        {
            "column": column.name,
            "gaps": len(column.rows),
            "share": len(column.rows) / n_rows,
            "before": _cell(column, column.before),
            "after": _cell(column, column.after),
            "how sure": None if column.is_single else column.how_sure,
        }
        for column in columns
    ]


def _cell(column: FilledColumn, value: float) -> Any:
    """A cell for a person and for JSON: a number; a label, date or time as text; None of nothing."""
    if np.isnan(value):
        return None
    return column.shown(value) if column.margin.labels or column.code.kind in ("date", "clock") else value


def _shown(value: Any) -> str:
    """A cell of the printed table."""
    return figure_of(value) if isinstance(value, float) else "" if value is None else str(value)


def _percent(share: float | None) -> str:
    """A share as a person reads it; nothing where it cannot be told."""
    return "" if share is None or np.isnan(share) else percent(share)


def _frame(lines: list[dict[str, Any]]) -> pd.DataFrame:
    """The lines as a frame, with its columns also where there is no line."""
    return pd.DataFrame(lines, columns=["column", "gaps", "share", "before", "after", "how sure"])

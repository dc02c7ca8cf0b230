"""`nongauss impute`: a table without gaps, draws of it for pooling, and how sure its cells are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nongauss.cli.file_form import FileForm
from nongauss.core.errors import InputError
from nongauss.core.files import atomic_paths
from nongauss.predictive.cells import CellDistribution, LabelDistribution, MissingCells
from nongauss.report.text import text_table
from nongauss.tables.column_code import ColumnCode
from nongauss.tables.files import read_table, write_table
from nongauss.tables.filling import find_gaps
from nongauss.tables.margins import Margin

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
        """The same for a person."""
        if not len(self.columns):
            return "The table has no gaps that can be filled; it was written as it is."
        lines = [tuple(_shown(value) for value in row) for row in self.columns.itertuples(index=False)]
        table = text_table(tuple(self.columns.columns), lines)
        n_cells = int(self.columns["gaps"].sum())
        left = f"\nGaps stay in {', '.join(map(repr, self.open_columns))}." if self.open_columns else ""
        return (
            f"{n_cells:,} cells of {self.n_rows:,} rows were missing.\n{self.why}\n\n{table}\n"
            "before, after: the mean, of labels and grades the most frequent. how sure: of numbers and "
            "grades how much narrower a cell's law is than its column's, of labels the mean probability of "
            f"the one put in.{left}\nWrote {', '.join(map(str, self.files))}."
        )

    def record(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "rows": self.n_rows,
            "columns": self.columns.to_dict("records"),
            "why": self.why,
            "left_open": self.open_columns,
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
) -> Filled:
    """Fill the gaps of a table; write it, its draws and a table of the missing cells. Raises InputError."""
    if model not in MODELS:
        raise InputError(f"--model must be one of {', '.join(MODELS)}, got {model!r}.")
    frame = read_table(data)
    if not len(frame):
        raise InputError(f"{data.name} has no rows to fill; give at least one.")
    step("fitting")
    imputer = _imputer(model, seed).fit(frame)
    step("filling")
    full, laws = imputer.impute(frame), imputer.impute_distribution(frame)
    files = paths_of(out, draws)
    form = FileForm(data, out, frame, laws)
    tables = [full, *imputer.sample_missing(frame, draws)]
    cells = form.in_words(laws.to_frame(), full, imputer)
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_paths(files) as temporaries:
        write_table(cells, temporaries[1], raw)
        for path, table in zip([temporaries[0], *temporaries[2:]], tables, strict=True):
            form.write(table, path, raw)
    columns = _column_lines(imputer, laws, frame, full)
    still = [str(name) for name in full.columns if full[name].isna().any()]
    return Filled(_frame(columns), imputer.why_, still, len(frame), files)


def paths_of(out: Path, draws: int) -> list[Path]:
    """The files that are written beside `out`: FULL.csv, FULL_cells.csv, FULL_draw1.csv, ..."""
    name = out.name
    suffix = "".join(Path(name).suffixes[-2:]) if name.endswith(".gz") else Path(name).suffix
    stem = name.removesuffix(suffix)
    extra = ["cells", *(f"draw{number + 1}" for number in range(draws))]
    return [out, *(out.with_name(f"{stem}_{part}{suffix}") for part in extra)]


def _imputer(model: str, seed: int) -> Any:
    """The model that is asked for, not fitted yet."""
    from nongauss.auto.imputer import AutoImputer

    return AutoImputer("auto" if model == "auto" else [model], random_state=seed)


def _column_lines(
    imputer: Any, laws: MissingCells, frame: pd.DataFrame, full: pd.DataFrame
) -> list[dict[str, Any]]:
    """What is said of each column that had gaps."""
    margins, encoder = imputer._cell_margins, imputer._cell_encoder
    before, after = (find_gaps(encoder, margins, table, "impute").cells for table in (frame, full))
    lines = []
    for j, margin in enumerate(margins):
        if margin.name not in laws.columns:
            continue
        law, n_gaps = laws[margin.name], len(laws.rows(margin.name))
        is_label = isinstance(law, LabelDistribution)
        code = encoder.columns[margin.flat]
        lines.append(
            {
                "column": margin.name,
                "gaps": n_gaps,
                "share": n_gaps / len(frame),
                "before": _middle(margin, code, before[:, j]),
                "after": _middle(margin, code, after[:, j]),
                "how sure": float(law.probabilities().max(axis=1).mean()) if is_label else _narrower(law),
            }
        )
    return lines


def _narrower(law: CellDistribution) -> float:
    """By how much cells' standard deviations are below that of the column, on average; 0: not at all."""
    alone = CellDistribution(law.margin, law.margin.below[None]).std[0]
    return float(np.clip(1.0 - law.std.mean() / alone, 0.0, 1.0)) if alone > 0 else 1.0


def _middle(margin: Margin, code: ColumnCode, cells: NDArray[np.float64]) -> Any:
    """The mean of known numbers and dates, the most frequent of labels and grades."""
    known = cells[~np.isnan(cells)]
    if not len(known):
        return None
    if margin.labels:
        return margin.labels[int(np.bincount(known.astype(np.intp)).argmax())]
    unit = max(np.abs(known).max(), 1.0)
    mean = float(unit * (known / unit).mean())
    return code.shown(round(mean) - code.origin) if code.kind == "date" else mean


def _shown(value: Any) -> str:
    """A cell of the printed table."""
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def _frame(lines: list[dict[str, Any]]) -> pd.DataFrame:
    """The lines as a frame, with its columns also where there is no line."""
    return pd.DataFrame(lines, columns=["column", "gaps", "share", "before", "after", "how sure"])

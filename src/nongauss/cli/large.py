"""How many rows of a large table are fitted to, so that a command is over in minutes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.cli.choose import CLASSIFICATION, REGRESSION, parameters_of
from nongauss.cli.options import Choices
from nongauss.cli.out_of_core import sampled_table
from nongauss.cli.read import Declared, Table, load_table
from nongauss.tables.screen import SAID, is_wide

MOST_ROWS = {"sparse_gp": 50_000, "tggm": 60_000, "auto": 10_000}
"""Rows that a model is fitted to in a minute or so of one core; fewer where each class has a function."""

_FEWEST = 5_000

ROWS_SEEN = 4_000_000
"""Rows times epochs of a network of numbers, where that is fewer than its usual epochs."""

KEEP = "keep_columns"
"""The parameter of a model by which columns are kept."""

USUAL_EPOCHS, FEWEST_EPOCHS = 400, 40


def load_rows(
    engine: str, data: Path, target: str, choices: Choices, declared: Declared, why_single: str = ""
) -> Table:
    """The table that a fit in memory takes, or the sample by which one past memory is prepared.

    `why_single`: why one model is fitted where all could be weighed.
    """
    if engine != "memory":
        why_single = "the search over all models needs a table in memory"
    elif choices.max_epochs is not None:
        why_single = "--max-epochs refers to one model"
    what = (data, target, choices.model, choices.task, choices.settings, declared, why_single)
    if engine != "memory":
        return sampled_table(*what)
    table = enough_rows(load_table(*what), choices.most_rows, choices.seed)
    table = telling_columns(table, declared.use)
    return table if choices.max_epochs is not None else enough_epochs(table)


def enough_rows(table: Table, most: int | None, seed: int) -> Table:
    """The table, or rows of it drawn at random where a fit to all takes long, with a note that says so.

    `most`: rows at most, 0 for all; None for what the model does in minutes. The first row of each label is
    always there.
    """
    n = len(table.y)
    most = _usual(table) if most is None else most
    if most == 0 or n <= most:
        return table
    rows = np.sort(np.random.default_rng(seed).permutation(n)[:most])
    if table.choice.task != REGRESSION:
        first = pd.Series(np.asarray(table.y)).drop_duplicates().index.to_numpy()
        rows = np.union1d(rows, first)
    note = (
        f"{len(rows):,} of the {n:,} rows, drawn at random, are used for fitting and evaluation, so "
        "that it takes minutes; give --most-rows 0 for all."
    )
    return _taken(table, rows, note)


def telling_columns(table: Table, use: Sequence[str]) -> Table:
    """The table with a note where a fit will use only columns associated with the target, and `use`."""
    n, n_columns, choice = len(table.y), table.rows.shape[1], table.choice
    if not is_wide(n // 2, n_columns) or KEEP not in parameters_of(choice.model, choice.task):
        return table
    if choice.settings.get(KEEP) == "all":
        return table
    if not is_wide(n, n_columns):  # but a part of its rows may be, which is judged in its place
        note = f"{n_columns:,} columns for {n:,} rows: all are used, also in fits to a part of the rows."
        return _noted(table, note, {KEEP: "all", **choice.settings})
    note = (
        f"{n_columns:,} columns for {n:,} rows: each fit uses only those significantly associated with the "
        "target on its own rows, unless all together predict left-out rows better. --use A,B keeps these "
        f"in any case, --set {KEEP}=all keeps all."
    )
    warnings.filterwarnings("ignore", message=f".*{SAID}")  # by each fit, of what the note says once
    settings = {**choice.settings, KEEP: list(use)} if use else choice.settings
    return _noted(table, note, settings)


def enough_epochs(table: Table) -> Table:
    """The table with fewer epochs for a network of numbers whose rows are many, and a note that says so.

    Of so many rows a few epochs are as many steps as the usual number of epochs of a small table.
    """
    n, choice = len(table.y), table.choice
    epochs = max(FEWEST_EPOCHS, ROWS_SEEN // n)
    if (choice.model, choice.task) != ("tggm", REGRESSION) or epochs >= USUAL_EPOCHS:
        return table
    if "max_epochs" in choice.settings:
        return table
    note = (
        f"With {n:,} rows, {epochs} epochs are used instead of {USUAL_EPOCHS}; --max-epochs N overrides this."
    )
    return _noted(table, note, {**choice.settings, "max_epochs": epochs})


def _noted(table: Table, note: str, settings: Mapping[str, Any]) -> Table:
    """The table with a note and with other settings of its model."""
    choice = replace(table.choice, settings=settings)
    before = replace(table.before, choice=choice, notes=[*table.before.notes, note])
    return replace(table, before=before, notes=[*table.notes, note])


def _usual(table: Table) -> int:
    most = MOST_ROWS.get(table.choice.model, 0)
    if table.choice.model in ("sparse_gp", "auto") and table.choice.task == CLASSIFICATION:
        n_classes = len(pd.unique(np.asarray(table.y)))
        most = max(_FEWEST, most // n_classes) if n_classes > 2 else most
    return most


def _taken(table: Table, rows: npt.NDArray[np.intp], note: str) -> Table:
    """Some rows of a table ready to fit."""
    y = table.y.iloc[rows].reset_index(drop=True) if hasattr(table.y, "iloc") else table.y[rows]
    return replace(
        table,
        rows=table.rows.take(rows),
        y=y,
        before=replace(table.before, notes=[*table.before.notes, note]),
        notes=[*table.notes, note],
        fit_params={name: cells[rows] for name, cells in table.fit_params.items()},
        groups=None if table.groups is None else table.groups[rows],
        row_numbers=None if table.row_numbers is None else table.row_numbers[rows],
    )

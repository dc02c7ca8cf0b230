"""What comes of a messy file before any fit, and what is wrong with it."""

from __future__ import annotations

import hashlib
import re
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from front_door_files import File

from nongauss.cli.read import Declared, load_table
from nongauss.core.errors import InputError

KINDS = {"binary": "label", "censored time": "time"}
"""Other words for the kinds that the files name."""


@dataclass
class Seen:
    """What came of a file before any fit: kind and values of the target, columns, sentences, a refusal."""

    kind: str = ""
    y: Any = None
    levels: list[str] = field(default_factory=list)
    columns: dict[str, Any] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    refused: str = ""
    seconds: float = 0.0


# ---------------------------------------------------------------- reading and understanding


def understood(path: Path, target: str, declared: Mapping[str, str]) -> Any:
    """The table made ready, with what is declared; a split is declared to the command alone."""
    said: dict[str, Any] = {name: value for name, value in declared.items() if name != "split"}
    if "levels" in said:
        said["levels"] = tuple(said["levels"].split(","))
    return load_table(path, target, declared=Declared(**said))


def fingerprint(path: Path, target: str, declared: Mapping[str, str]) -> str:
    """All that a fit depends on: decoded cells of the inputs by name, the target, the model, the split."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = understood(path, target, declared)
    found = hashlib.sha256(
        repr((target, table.choice, declared.get("split"), declared.get("group"))).encode()
    )
    found.update(repr((np.asarray(table.y).tolist(), np.asarray(table.levels).tolist())).encode())
    for value in (table.groups, *table.fit_params.values()):
        found.update(repr(None if value is None else np.asarray(value).tolist()).encode())
    for at, name in enumerate(table.rows.labels):
        column = table.rows.column(at)
        cells = column.values if column.values is not None else [*column.levels, ""]
        codes = [] if column.values is not None else column.codes
        found.update(repr((name, np.asarray(cells).tolist(), np.asarray(codes).tolist())).encode())
    return found.hexdigest()[:16]


def seen(path: Path, file: File) -> Seen:
    """Read and understand a file as `nongauss fit` does before it fits."""
    began = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            table = understood(path, file.target, file.declared)
            columns = {name: table.rows.column(i) for i, name in enumerate(table.rows.labels)}
        except InputError as error:
            return Seen(refused=str(error), said=[str(w.message) for w in caught])
        except Exception as error:  # noqa: BLE001  one bad file ends no run
            return Seen(refused=f"{type(error).__name__} without a sentence: {error}")
    word = table.kind.value
    return Seen(
        kind=KINDS.get(word, word),
        y=table.y,
        levels=[] if table.levels is None else [str(level) for level in np.asarray(table.levels).tolist()],
        columns=columns,
        left_out=dict(table.ignored),
        said=[*sentences(table, columns), *(str(w.message) for w in caught)],
        seconds=time.process_time() - began,
    )


def sentences(table: Any, columns: Mapping[str, Any]) -> list[str]:
    """What is said before the fit of target and columns, what to look at, and what the fit says of cells."""
    before = table.before
    roles = [f"Column {role.name!r} as {role.role}: {role.reason}" for role in before.roles]
    cells = [f"Column {name!r} {column.note}; {column.lost}" for name, column in columns.items()]
    return [*before.summary(), *roles, *before.notes, *table.notes, *cells]


# ---------------------------------------------------------------- what is wrong


def wrong_before(file: File, came: Seen) -> list[str]:
    """What is not right of the reading, the kind, the columns and the sentences; empty if all is."""
    if came.refused:
        if file.refused and found(file.refused, [came.refused]):
            return []
        wanted = f"a refusal with {file.refused!r}" if file.refused else "no refusal"
        return [f"expected {wanted}, came: {came.refused}"]
    if file.refused and not file.either:
        return [f"expected a refusal with {file.refused!r}, was taken for {came.kind}"]
    wrong = []
    if file.kinds and came.kind not in file.kinds:
        wrong.append(f"kind of {file.target!r}: expected {' or '.join(file.kinds)}, came {came.kind}")
    wrong += wrong_columns(file, came)
    wrong += [f"expected a sentence with {p!r}" for p in file.says if not found(p, came.said)]
    wrong += [f"unexpected sentence with {p!r}" for p in file.never if found(p, came.said)]
    levels = file.reference.get("levels")
    if levels and came.kind == "grade" and came.levels != levels.split(","):
        wrong.append(f"levels: expected {levels}, came {','.join(came.levels)}")
    return wrong


def found(pattern: str, sentences: Iterable[str]) -> bool:
    return any(re.search(pattern, " ".join(sentence.split()), re.I) for sentence in sentences)


def wrong_columns(file: File, came: Seen) -> list[str]:
    """Columns taken for something else, columns and a target whose cells were read wrongly."""
    clean, kept, gone = file.clean, came.columns, came.left_out
    rows = clean[file.target].notna().to_numpy().copy()
    if rows.sum() != len(came.y):
        if len(clean) != len(came.y) or file.target not in file.loose:
            return [f"expected {rows.sum()} rows with a target, came {len(came.y)}"]
        rows[:] = True
    wrong = [] if came.kind in ("time", "constant") else wrong_target(file, came, rows)
    for name in dict.fromkeys([*clean.columns.drop(file.target), *file.uses]):
        allowed = (file.uses.get(name) or usual(clean[name])).split("|")
        if name not in kept:
            if "left out" not in allowed:
                why = gone.get(name, "without a word")
                wrong.append(f"column {name!r}: expected as {' or '.join(allowed)}, left out: {why}")
            continue
        use = use_of(kept[name])
        if use not in allowed:
            wrong.append(f"column {name!r}: expected as {' or '.join(allowed)}, came as {use}")
        elif name in clean.columns and name not in file.unread:
            wrong += wrong_cells(name, clean[name][rows], kept[name], name in file.loose)
    strange = [name for name in kept if name not in clean.columns and name not in file.uses]
    return wrong + [f"column {name!r}: expected left out, came as {use_of(kept[name])}" for name in strange]


def usual(column: pd.Series) -> str:
    """What becomes of a clean column if a file does not say."""
    if column.nunique() <= 1:
        return "number|label|left out"
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return "date"
    return "number" if pd.api.types.is_numeric_dtype(column.dtype) else "label"


def use_of(column: Any) -> str:
    """What a decoded column is used as."""
    if column.kind == "date":
        return "date"
    return "number" if column.values is not None else "label"


def wrong_cells(name: str, clean: pd.Series, column: Any, loose: bool) -> list[str]:
    """The first cell of a column that was not read as it is."""
    if use_of(column) == "label":
        levels = np.array([*column.levels, ""], dtype=object)
        came, right = levels[column.codes], clean.fillna("").astype(str).to_numpy()
        bad = came != right
    else:
        came = np.asarray(column.values, dtype=float)
        right = numbers(clean)
        bad = ~np.isclose(came, right, rtol=1e-9, atol=1e-12, equal_nan=True)
    if loose:
        bad &= clean.notna().to_numpy()
    if not bad.any():
        return []
    row = int(np.argmax(bad))
    return [
        f"column {name!r}: {bad.sum()} cells, first in row {row}: expected {right[row]}, came {came[row]}"
    ]


def numbers(clean: pd.Series) -> np.ndarray:
    """Clean cells as numbers: dates as days since 1970."""
    if pd.api.types.is_datetime64_any_dtype(clean.dtype):
        return ((clean - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)).to_numpy(dtype=float)
    return clean.to_numpy(dtype=float)


def wrong_target(file: File, came: Seen, rows: np.ndarray) -> list[str]:
    """The first cell of the target that was not read as it is; shares may be read as parts of one."""
    right, y = file.clean[file.target][rows], np.asarray(came.y)
    if pd.api.types.is_numeric_dtype(right.dtype):
        try:
            got, want = y.astype(float), right.to_numpy(dtype=float)
        except (TypeError, ValueError):
            return [f"target {file.target!r}: expected numbers, came {y[:3].tolist()}"]
        if came.kind == "share" and want.max() > 1 and got.max() <= 1:
            want = want / 100
        bad = ~np.isclose(got, want, rtol=1e-9)
    else:
        got, want = y.astype(str), right.astype(str).to_numpy()
        bad = got != want
    if file.target in file.loose:
        bad &= right.notna().to_numpy()
        bad[:] = False if want.dtype.kind not in "fi" else bad
    if not bad.any():
        return []
    row = int(np.argmax(bad))
    return [f"target {file.target!r}: {bad.sum()} cells, first expected {want[row]}, came {got[row]}"]

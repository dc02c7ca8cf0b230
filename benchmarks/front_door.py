"""The front door: messy files, each with the right reading, kind, sentences and worth, and what comes.

    python benchmarks/front_door.py --quick                # reads and understands, no fit: a minute
    python benchmarks/front_door.py --data FOLDER          # fits as well, beside the clean table; goes on
    python benchmarks/front_door.py --only dates_iso rain --again --keep FOLDER

A fit is judged beside a fit to the clean table of which the file was made, with the right kind declared and
the same rows held out: that a table is messy may cost nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import RESULTS, parser, write_results, write_table
from front_door_files import File, Recipe, every_recipe

from nongauss.cli.read import load_table
from nongauss.core.errors import InputError

KINDS = {
    "ordinal": "grade",
    "ordered": "grade",
    "binary": "label",
    "categorical": "label",
    "labels": "label",
    "proportion": "share",
    "survival": "time",
    "censored": "time",
    "censored time": "time",
    "positive with zeros": "positive with zeros",
    "zeros": "positive with zeros",
    "counts": "count",
    "zero-inflated": "positive with zeros",
    "nonnegative": "positive with zeros",
    "time to event": "time",
}
"""Other words for the kinds that the files name."""

OPTION = {"label": "label", "grade": "grade", "positive with zeros": "zeros"}
"""What `--kind` calls a kind, where it is not the word itself."""


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


def seen(path: Path, file: File) -> Seen:
    """Read and understand a file as `nongauss fit` does before it fits."""
    began = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            table = understood(path, file.target, file.declared)
            info = table.info()
            rows = table.rows
            columns = {name: rows.column(i) for i, name in enumerate(rows.labels)}
        except InputError as error:
            return Seen(refused=str(error), said=[str(w.message) for w in caught])
        except Exception as error:  # noqa: BLE001  one bad file ends no run
            return Seen(refused=f"{type(error).__name__} without a sentence: {error}")
    left_out = dict(info.ignored)
    said = [*map(str, info.notes), *(str(w.message) for w in caught), *lines_before(table)]
    said += [f"{name}: {reason}" for name, reason in left_out.items()]
    said += [f"Column {column.name!r} {column.note}" for column in columns.values() if column.note]
    kept = {name: column for name, column in columns.items() if name not in left_out}
    word = table.kind.value
    levels = [] if table.levels is None else [str(level) for level in np.asarray(table.levels).tolist()]
    spent = time.process_time() - began
    return Seen(KINDS.get(word, word), table.y, levels, kept, left_out, said, seconds=spent)


def understood(path: Path, target: str, declared: Mapping[str, str]) -> Any:
    """The table made ready, with what is declared; a split is declared to the command alone."""
    return load_table(path, target)


def lines_before(table: Any) -> list[str]:
    """The lines of the block before the fit."""
    return []


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


# ---------------------------------------------------------------- fits


def fitted(path: Path, target: str, folder: Path, options: Mapping[str, str]) -> dict[str, Any]:
    """What `nongauss fit --json` says, or {"error": its sentence}."""
    from typer.testing import CliRunner

    from nongauss.cli.app import app

    arguments = [
        "fit",
        str(path),
        "--target",
        target,
        "--json",
        "--no-refit",
        "--force",
        "--out",
        str(folder),
    ]
    for name, value in options.items():
        arguments += [f"--{name}", value]
    began = time.process_time()
    done = CliRunner().invoke(app, arguments)
    if done.exit_code != 0:
        trace = "" if done.exc_info is None else "".join(traceback.format_exception(*done.exc_info)[-2:])
        return {"error": done.stderr.strip()[-600:] or trace}
    record = json.loads(done.stdout.strip().splitlines()[-1])
    return {**record, "cpu_seconds": round(time.process_time() - began, 1), "stdout": done.stdout}


def figures(record: Mapping[str, Any]) -> dict[str, float]:
    """The figures of our model on held-out rows."""
    held_out = record.get("held_out") or {}
    return next((dict(held_out[name]) for name in held_out if name == record.get("model")), {})


def wrong_fit(file: File, folder: Path, path: Path) -> tuple[list[str], dict[str, Any]]:
    """Fit the file and the clean table; what is not right, and the figures of both."""
    assert file.fit is not None
    ours = fitted(path, file.target, folder, file.declared)
    if "error" in ours:
        return [f"fit: {ours['error']}"], {}
    clean = folder / "clean.parquet"
    gone = [
        name for name, use in file.uses.items() if use == "left out" and name not in file.declared.values()
    ]
    dropped = [*gone, file.reference.get("drop", "")]
    file.clean.drop(columns=dropped, errors="ignore").to_parquet(clean, index=False)
    options = dict(file.declared)
    if file.kinds and "kind" not in options:
        options["kind"] = OPTION.get(file.kinds[0], file.kinds[0])
    if "levels" in file.reference:
        options["levels"] = file.reference["levels"]
    theirs = fitted(clean, file.target, folder, options)
    if "error" in theirs:
        return [f"fit of the clean table: {theirs['error']}"], {}
    a, b = figures(ours), figures(theirs)
    out: dict[str, Any] = {
        "figure": file.fit.figure,
        "messy": a.get(file.fit.figure),
        "clean": b.get(file.fit.figure),
        "model": ours.get("model"),
        "likelihood": likelihood(ours),
        "clean_likelihood": likelihood(theirs),
        "cpu_seconds": ours["cpu_seconds"],
        "verdict": verdict(ours),
    }
    for name in ("log_density", "log_loss"):
        if name in a and name in b:
            out |= {"nats": name, "messy_nats": a[name], "clean_nats": b[name]}
    return wrong_figures(file, out), out


def likelihood(record: Mapping[str, Any]) -> str:
    return str((record.get("settings") or {}).get("likelihood", ""))


def verdict(record: Mapping[str, Any]) -> str:
    """The verdict in words."""
    said = record.get("verdict", "")
    if isinstance(said, Mapping):
        said = said.get("text") or said.get("sentences") or json.dumps(said)
    return " ".join(said) if isinstance(said, list) else str(said)


def wrong_figures(file: File, out: Mapping[str, Any]) -> list[str]:
    """Is the messy table worth what the clean one is, and does the verdict say what is to be said?"""
    fit, wrong = file.fit, []
    assert fit is not None
    a, b = out["messy"], out["clean"]
    if a is None or b is None:
        wrong.append(f"fit: expected {fit.figure} of both, came {a} and {b}")
    elif a < b - fit.margin:
        wrong.append(f"fit: {fit.figure} {a:.3f}, clean {b:.3f}, margin {fit.margin}")
    elif a < fit.floor:
        wrong.append(f"fit: {fit.figure} {a:.3f} is below {fit.floor}, clean {b:.3f}")
    same = (out["likelihood"] or out["model"]) == (out["clean_likelihood"] or out["model"])
    if same and out.get("messy_nats") is not None and out.get("clean_nats") is not None:
        sign = 1 if out["nats"] == "log_density" else -1
        short = sign * (out["clean_nats"] - out["messy_nats"])
        if short > fit.nats:
            wrong.append(f"fit: {out['nats']} is {short:.3f} nats a row worse than of the clean table")
    if file.verdict and not re.search(file.verdict, out["verdict"], re.I):
        wrong.append(f"verdict: expected {file.verdict!r}, came {out['verdict'] or 'none'!r}")
    return wrong


# ---------------------------------------------------------------- the run


def judged(recipe: Recipe, data: Path | None, folder: Path, fit: bool) -> dict[str, Any]:
    """One file: what came, and what is wrong."""
    file = recipe(data)
    path = folder / f"{recipe.name}{file.suffix}"
    path.write_bytes(file.data)
    came = seen(path, file)
    record: dict[str, Any] = {
        "row": recipe.row,
        "about": " ".join((recipe.make.__doc__ or "").split()),
        "right": " or ".join(file.kinds) or "refused",
        "kind": came.kind or "refused",
        "seconds": round(came.seconds, 2),
        "wrong": wrong_before(file, came),
    }
    if fit and file.fit is not None and not came.refused:
        record["wrong_fit"], record["fit"] = wrong_fit(file, folder, path)
    record["fits"] = file.fit is not None
    return record


def table(records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The lines of the table, by the row of what is right."""
    right = sum(not all_wrong(record) for record in records.values())
    both = [record["fit"] for record in records.values() if record.get("fit")]
    gap = [f["messy"] - f["clean"] for f in both if None not in (f["messy"], f["clean"])]
    lines = [
        f"{right} of {len(records)} files right. {len(gap)} were fitted: R² or accuracy is below that of the "
        f"clean table by {-min(gap, default=0.0):.3f} at most, by {-float(np.median(gap or [0])):.4f} in "
        "the median.",
        "",
        "| file | holds | kind | figure | messy | clean | CPU s | what is wrong |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, record in sorted(records.items(), key=lambda pair: (pair[1]["row"], pair[0])):
        fit = record.get("fit") or {}
        shown = [f"{fit[k]:.3f}" if fit.get(k) is not None else "" for k in ("messy", "clean")]
        wrong = "; ".join(all_wrong(record)).replace("|", "\\|")
        about = str(record["about"]).replace("|", "\\|")
        figure = {"r2": "R²"}.get(fit.get("figure", ""), fit.get("figure", ""))
        lines.append(
            f"| {name} | {about} | {record['kind']} | {figure} | {shown[0]} | {shown[1]} "
            f"| {fit.get('cpu_seconds', '')} | {wrong} |"
        )
    return lines


def all_wrong(record: Mapping[str, Any]) -> list[str]:
    return [*record["wrong"], *record.get("wrong_fit", [])]


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="read and understand only, write no results")
    options.add_argument("--only", nargs="*", help="names of files")
    options.add_argument("--again", action="store_true", help="do what is in the results once more")
    options.add_argument("--keep", type=Path, help="folder in which the files stay")
    options.add_argument("--minutes", type=float, default=1e9, help="start no file after so long")
    chosen = options.parse_args()
    kept = RESULTS / "front_door.json"
    records = {} if chosen.quick or not kept.exists() else json.loads(kept.read_text())["files"]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for recipe in wanted(chosen, records):
            if time.perf_counter() - began > 60 * chosen.minutes:
                break
            record = judged(recipe, chosen.data, folder, fit=not chosen.quick)
            records[recipe.name] = record
            for line in all_wrong(record) or ["right"]:
                print(f"{recipe.name}: {line}", flush=True)
            if not chosen.quick:
                write_results("front_door", {"files": records})
    print(f"{sum(not all_wrong(record) for record in records.values())} of {len(records)} right")
    if not chosen.quick:
        write_table("front_door", table(records))


def wanted(chosen: argparse.Namespace, records: Mapping[str, Any]) -> list[Recipe]:
    """The recipes to do: of sets that are there, and not those done before."""
    out = []
    for name, recipe in every_recipe().items():
        if chosen.only and name not in chosen.only:
            continue
        if recipe.needs and not (chosen.data / recipe.needs / "data.csv.gz").exists():
            print(f"{name}: the set {recipe.needs} is not in {chosen.data}", file=sys.stderr)
        elif chosen.again or name not in records:
            out.append(recipe)
    return out


if __name__ == "__main__":
    main()

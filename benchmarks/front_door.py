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
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from common import RESULTS, parser, write_results, write_table
from front_door_check import fingerprint, found, seen, wrong_before
from front_door_files import File, Fit, Recipe, every_recipe

from nongauss.core.errors import InputError

# ---------------------------------------------------------------- fits


def fitted(path: Path, target: str, fits: Path, options: Mapping[str, str]) -> tuple[dict[str, Any], Path]:
    """What `nongauss fit --json` says, or {"error": its sentence}, and the folder of the model.

    Files of which the fit would see the same are fitted once.
    """
    from typer.testing import CliRunner

    from nongauss.cli.app import app

    folder = fits / fingerprint(path, target, options)
    kept = folder / "record.json"
    if kept.exists():
        return json.loads(kept.read_text()), folder
    arguments = ["fit", str(path), "--target", target, "--out", str(folder)]
    arguments += ["--json", "--no-refit", "--force"]
    for name, value in options.items():
        arguments += [f"--{name}", value]
    began = time.process_time()
    with without_plots():
        done = CliRunner().invoke(app, arguments)
    if done.exit_code != 0:
        return {"error": " ".join(done.stderr.split())[-400:] or repr(done.exception)}, folder
    record = json.loads(done.stdout.strip().splitlines()[-1])
    record["cpu_seconds"] = round(time.process_time() - began, 1)
    kept.write_text(json.dumps(record))
    return record, folder


@contextmanager
def without_plots() -> Iterator[None]:
    """The plots of a report take longer than the fit of a small table."""
    from nongauss.cli import fit_and_report

    with ExitStack() as stack:
        for name in ("report_figures", "learned_figures", "feature_figures"):
            if hasattr(fit_and_report, name):
                stack.enter_context(mock.patch.object(fit_and_report, name, return_value=[]))
        yield


def figures(record: Mapping[str, Any]) -> dict[str, float]:
    """The figures of our model on held-out rows."""
    held_out = record.get("held_out") or {}
    return next((dict(held_out[name]) for name in held_out if name == record.get("model")), {})


def wrong_fit(file: File, folder: Path, path: Path) -> tuple[list[str], dict[str, Any]]:
    """Fit the file and the clean table; what is not right, and the figures of both."""
    assert file.fit is not None
    ours, model = fitted(path, file.target, folder / "fits", file.declared)
    if "error" in ours:
        return [f"fit: {ours['error']}"], {}
    clean = folder / "clean.parquet"
    said = [value.partition("=")[0] for value in file.declared.values()]
    gone = [name for name, use in file.uses.items() if use == "left out" and name not in said]
    dropped = [*gone, file.reference.get("drop", "")]
    file.clean.drop(columns=dropped, errors="ignore").to_parquet(clean, index=False)
    options = dict(file.declared)
    if file.kinds and "kind" not in options:
        options["kind"] = file.kinds[0]
    if "levels" in file.reference:
        options["levels"] = file.reference["levels"]
    theirs, _ = fitted(clean, file.target, folder / "fits", options)
    if "error" in theirs:
        return [f"fit of the clean table: {theirs['error']}"], {}
    a, b = figures(ours), figures(theirs)
    out: dict[str, Any] = {
        "figure": file.fit.figure,
        "messy": a.get(file.fit.figure),
        "clean": b.get(file.fit.figure),
        "model": ours.get("model"),
        "clean_model": theirs.get("model"),
        "likelihood": likelihood(ours),
        "clean_likelihood": likelihood(theirs),
        "cpu_seconds": ours["cpu_seconds"],
        "verdict": verdict(ours),
        "beside": [name for name in ours.get("held_out") or {} if name != ours.get("model")],
        "coverage_90": a.get("coverage_90"),
        "n_rows": a.get("n_rows"),
    }
    for name in ("log_density", "log_loss"):
        if name in a and name in b:
            out |= {"nats": name, "messy_nats": a[name], "clean_nats": b[name]}
    wrong = wrong_figures(file, out)
    if file.fit.covers and file.kinds[0] not in ("label", "grade"):
        wrong += wrong_predictions(file, path, model)
    if file.later is not None:
        out["gaps"], more = wrong_later(file, model)
        wrong += more
    return wrong, out


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
    fit = file.fit
    assert fit is not None
    wrong = beside_clean(fit, out)
    if fit.covers and out.get("coverage_90") is not None:
        least = 0.88 - 3 * np.sqrt(0.9 * 0.1 / out["n_rows"])
        if out["coverage_90"] < least:
            wrong.append(f"90 % intervals hold {100 * out['coverage_90']:.0f} % of {out['n_rows']:.0f} rows")
    if not out["verdict"]:
        wrong.append("no verdict")
    elif file.verdict and not found(file.verdict, [out["verdict"]]):
        wrong.append(f"verdict: expected {file.verdict!r}, came {out['verdict']!r}")
    elif not file.verdict and fit.floor > 0 and found("found nothing|worse than the mean", [out["verdict"]]):
        wrong.append(f"verdict: the columns tell much, but it says {out['verdict'][:200]!r}")
    return wrong if out["beside"] else [*wrong, "no baseline beside"]


def beside_clean(fit: Fit, out: Mapping[str, Any]) -> list[str]:
    """What of the figures is worse than on the clean table, or than the law of the table allows."""
    a, b, nats = out["messy"], out["clean"], out.get("nats")
    wrong = []
    if a is None or b is None:
        wrong.append(f"fit: expected {fit.figure} of both, came {a} and {b}")
    elif a < b - fit.margin:
        wrong.append(f"fit: {fit.figure} {a:.3f}, clean {b:.3f}, margin {fit.margin}")
    elif a < fit.floor:
        wrong.append(f"fit: {fit.figure} {a:.3f} is below {fit.floor}, clean {b:.3f}")
    same = out["model"] == out["clean_model"] and out["likelihood"] == out["clean_likelihood"]
    if same and nats and None not in (out["messy_nats"], out["clean_nats"]):
        sign = 1 if nats == "log_density" else -1
        short = sign * (out["clean_nats"] - out["messy_nats"])
        if short > fit.nats:
            wrong.append(f"fit: {nats} is {short:.3f} nats a row worse than of the clean table")
    return wrong


def predicted(folder: Path, rows: Path) -> pd.DataFrame:
    """What `nongauss predict` writes for rows, with the model in a folder; InputError with its sentence."""
    from typer.testing import CliRunner

    from nongauss.cli.app import app

    out = folder / "predicted.csv"
    arguments = ["predict", str(folder / "model.nongauss"), str(rows), "--out", str(out), "--force"]
    done = CliRunner().invoke(app, arguments)
    if done.exit_code != 0:
        raise InputError(" ".join(done.stderr.split())[-400:] or repr(done.exception))
    return pd.read_csv(out)


def wrong_predictions(file: File, path: Path, folder: Path) -> list[str]:
    """Predict the rows of the file itself: are numbers in the units of the target and within its bounds?"""
    try:
        came = predicted(folder, path)
    except InputError as error:
        return [f"predict: {error}"]
    y = file.clean[file.target].to_numpy(float) if file.truth is None else file.truth
    known = ~np.isnan(y)
    mean, y = came["mean"].to_numpy(float)[known], y[known]
    wrong = []
    if file.truth is not None:
        share = 1 - np.mean((np.log(mean) - np.log(y)) ** 2) / np.var(np.log(y))
        if not share >= file.least:
            wrong.append(f"predict: R² of logs {share:.2f} to the truth, expected {file.least} at least")
        if abs(shift := float(np.mean(np.log(mean) - np.log(y)))) > 0.15:
            wrong.append(f"predict: logs are off by {shift:.2f} on average")
    elif not abs(mean.mean() - y.mean()) < 0.4 * y.std() + 1e-9 * abs(y.mean()):
        wrong.append(f"predict: means are {mean.mean():.6g} on average, the target {y.mean():.6g}")
    if file.support is not None:
        low, high = (came[next(c for c in came if c.startswith(side))] for side in ("lower", "upper"))
        outside = (low < file.support[0] - 1e-9) | (high > file.support[1] + 1e-9)
        if outside.any():
            wrong.append(
                f"predict: {outside.sum()} intervals leave {file.support}, first {low[0]}, {high[0]}"
            )
    return wrong


def wrong_later(file: File, folder: Path) -> tuple[dict[str, float], list[str]]:
    """Predict rows with a gap in a column that had none: are intervals and probabilities still honest?"""
    assert file.later is not None
    given = folder / "later.csv"
    file.later.drop(columns=file.target).to_csv(given, index=False)
    try:
        came, y = predicted(folder, given), file.later[file.target]
    except InputError as error:
        return {}, [f"predict: {error}"]
    if file.kinds[0] != "label":
        low, high = (came[next(c for c in came if c.startswith(side))] for side in ("lower", "upper"))
        share = float(((low <= y) & (y <= high)).mean())
        band = 3 * np.sqrt(0.9 * 0.1 / len(y)) + 0.02
        wrong = [] if share >= 0.9 - band else [f"gaps: 90 % intervals hold {100 * share:.0f} %"]
        return {"coverage_90": share}, wrong
    p = np.array([came.loc[row, f"p_{label}"] for row, label in enumerate(y)], dtype=float)
    loss = float(-np.log(p).mean())
    known = y.value_counts(normalize=True)
    least = float(-(known * np.log(known)).sum())
    wrong = [] if loss <= least + 0.1 else [f"gaps: log loss {loss:.2f}, {least:.2f} without any column"]
    return {"log_loss": loss, "log_loss_of_shares": least}, wrong


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
    waiting = sum(record["fits"] and "fit" not in record for record in records.values())
    most, middle = -min(gap, default=0.0), max(0.0, -float(np.median(gap or [0.0])))
    lines = [
        f"{right} of {len(records)} files right. {len(gap)} were fitted: R² or accuracy is below that of the "
        f"clean table by {most:.3f} at most, by {middle:.4f} in the median; {waiting} wait for their fit.",
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
    options.add_argument("--quick", action="store_true", help="no fits; writes with --again only")
    options.add_argument("--only", nargs="*", help="names of files")
    options.add_argument("--again", action="store_true", help="do what is in the results once more")
    options.add_argument("--keep", type=Path, help="folder in which the files stay")
    options.add_argument("--minutes", type=float, default=1e9, help="start no file after so long")
    chosen = options.parse_args()
    kept = RESULTS / "front_door.json"
    records: dict[str, Any] = json.loads(kept.read_text())["files"] if kept.exists() else {}
    began = time.perf_counter()
    done: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for recipe in wanted(chosen, records):
            if time.perf_counter() - began > 60 * chosen.minutes:
                break
            came = judged(recipe, chosen.data, folder, fit=not chosen.quick)
            records[recipe.name] = {**records.get(recipe.name, {}), **came} if chosen.quick else came
            done.append(recipe.name)
            for line in all_wrong(came) or ["right"]:
                print(f"{recipe.name}: {line}", flush=True)
            if not chosen.quick:
                write_results("front_door", {"files": records})
    print(f"{sum(not all_wrong(records[name]) for name in done)} of {len(done)} right")
    if not chosen.quick or chosen.again:
        write_results("front_door", {"files": records})
        write_table("front_door", table(records))


def wanted(chosen: argparse.Namespace, records: Mapping[str, Any]) -> list[Recipe]:
    """The recipes to do: of sets that are there, and not those done before."""
    out = []
    for name, recipe in every_recipe().items():
        if chosen.only and name not in chosen.only:
            continue
        if recipe.needs and not (chosen.data / recipe.needs / "data.csv.gz").exists():
            print(f"{name}: the set {recipe.needs} is not in {chosen.data}", file=sys.stderr)
        elif chosen.again or chosen.quick or name not in records:
            out.append(recipe)
    return sorted(out, key=lambda recipe: recipe.large)


if __name__ == "__main__":
    main()

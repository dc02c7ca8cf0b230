"""SIGINT, SIGTERM and SIGKILL at random moments of each command: all of its files or none, its exit code.

It goes on from the counts that `results/signals.json` has.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import RESULTS, write_results, write_table

import nongauss

COMMANDS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "fit": (
        ["fit", "t.csv", "--target", "y", "--model", "sparse_gp", "--out", "."],
        ("model.nongauss", "report.html"),
    ),
    "predict": (["predict", "m", "many.csv", "--out", "p.csv"], ("p.csv",)),
    "cluster": (["cluster", "t.csv", "--clusters", "2", "--out", "."], ("model.nongauss", "report.html")),
    "compare": (["compare", "t.csv", "--target", "y", "--model", "sparse_gp", "--cv", "2"], ()),
    "impute": (
        ["impute", "gaps.csv", "--model", "rank_factor", "--draws", "1", "--out", "f.csv"],
        ("f.csv", "f_cells.csv", "f_draw1.csv", "f_report.html"),
    ),
}
CODES = {
    signal.SIGINT: {0, 130, -signal.SIGINT, 1},  # 1: of Python itself, before it has read its own modules
    signal.SIGTERM: {0, 143, -signal.SIGTERM},
    signal.SIGKILL: {0, -signal.SIGKILL},
}
"""The signals, and with which codes a command may end: by itself before, as shells have it, by the system."""

SHARES = (0.4, 0.4, 0.2)
"""How often each comes."""


def prepare(folder: Path) -> None:
    """Tables and a model for the commands."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 3)), columns=list("abc")).assign(y=lambda t: t["a"] ** 2)
    table.to_csv(folder / "t.csv", index=False)
    pd.concat([table] * 100).to_csv(folder / "many.csv", index=False)
    table.mask(rng.random(table.shape) < 0.1).to_csv(folder / "gaps.csv", index=False)
    warnings.simplefilter("ignore")  # a fit of three iterations says that it is short
    nongauss.save(
        nongauss.SparseGPRegressor(n_inducing=5, max_iter=3).fit(table[["a", "b", "c"]], table["y"]),
        folder / "m",
    )


def run(name: str, folder: Path, after: float | None = None, number: int = 0) -> tuple[int, float, bool]:
    """The exit code of a command that gets a signal after so many seconds, how long it took, its sentence.

    That is: whether what it said, if anything, is no traceback of ours; Python has its own while it starts.
    """
    command = [sys.executable, "-m", "nongauss.cli", *COMMANDS[name][0], "--quiet"]
    began = time.monotonic()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        if after is not None:
            try:
                process.wait(after)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
        _, said = process.communicate()
    return process.returncode, time.monotonic() - began, not (b"Traceback" in said and b"nongauss" in said)


def tried(name: str, template: Path, seconds: float, rng: np.random.Generator) -> dict[str, Any]:
    """One command in a new folder with one signal: what was wrong with it, if anything."""
    number = list(CODES)[int(rng.choice(len(CODES), p=SHARES))]
    after = float(rng.uniform(0.0, 1.1)) * seconds
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "work"
        shutil.copytree(template, folder)
        before = {path.name for path in folder.iterdir()}
        code, _, is_sentence = run(name, folder, after, number)
        left = {path.name for path in folder.iterdir()} - before
        files = set(COMMANDS[name][1])
        wrong = [] if is_sentence else ["a traceback"]
        if left & files not in (set(), files):
            wrong.append("some of the files")
        if code not in CODES[number]:
            wrong.append("an exit code of something else")
        if code == 0 and not files <= left:
            wrong.append("exit code 0 without the files")
        swept = bool(left - files)
        if left - files and number != signal.SIGKILL:
            wrong.append(f"left behind: {sorted(left - files)}")
        if left - files and number == signal.SIGKILL and files:
            for path in files:
                (folder / path).unlink(missing_ok=True)
            run(name, folder)
            if {path.name for path in folder.iterdir()} - before != files:
                wrong.append("left behind after the next run")
    return {"command": name, "signal": number, "after": after, "code": code, "swept": swept, "wrong": wrong}


def tell(found: list[dict[str, Any]]) -> None:
    """The table of all runs so far."""
    names = [number.name for number in CODES]
    lines = [
        f"| command | {' | '.join(names)} | stopped by them | all files or none, its code, nothing left |",
        "|---" * (len(names) + 3) + "|",
    ]
    for name in COMMANDS:
        own = [each for each in found if each["command"] == name]
        came = [str(sum(each["signal"] == number for each in own)) for number in CODES]
        stopped = sum(each["code"] != 0 for each in own)
        right = sum(not each["wrong"] for each in own)
        lines.append(f"| {name} | {' | '.join(came)} | {stopped} | {right} |")
    write_table("signals", lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=600.0)
    options.add_argument("--anew", action="store_true", help="forget what was counted")
    chosen = options.parse_args()
    file = RESULTS / "signals.json"
    known = json.loads(file.read_text()) if file.exists() and not chosen.anew else {}
    found, took = known.get("runs", []), known.get("seconds", {})
    until = time.monotonic() + chosen.seconds
    with tempfile.TemporaryDirectory() as place:
        template = Path(place) / "template"
        template.mkdir()
        prepare(template)
        while time.monotonic() < until:
            name = list(COMMANDS)[len(found) % len(COMMANDS)]
            if name not in took:
                shutil.copytree(template, Path(place) / name)
                took[name] = run(name, Path(place) / name)[1]
            found.append(tried(name, template, took[name], np.random.default_rng(len(found))))
            print(found[-1], flush=True)
            write_results("signals", {"seconds": took, "runs": found})
            tell(found)


if __name__ == "__main__":
    main()

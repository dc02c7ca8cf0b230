"""The front door, large and odd tables: what `nongauss fit` says, and its processor seconds on one core.

    python benchmarks/front_door_large.py                  # goes on with what is not in the results yet
    python benchmarks/front_door_large.py --only three_of_5000 --again

Each table is made with a seed, written as CSV and given to the command line as a person would: all defaults,
model file and report included. "Decided" is when the block before the fit stands on the screen, "first line"
the seconds of the clock until any line of progress does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
from common import RESULTS, one_core, parser, write_results, write_table

Make = Callable[[], pd.DataFrame]
CASES: dict[str, tuple[Make, str]] = {}
"""By name: what makes the table, whose target is `y`, and what the answer must say."""


def case(says: str) -> Callable[[Make], Make]:
    """Register what makes a table by the name of the function; `says`: words of the right answer."""

    def register(make: Make) -> Make:
        CASES[make.__name__] = make, says
        return make

    return register


def _large() -> tuple[pd.DataFrame, np.ndarray, np.random.Generator]:
    """200,000 rows of ten columns, five of which matter; the signal; a generator for the target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 10)).round(5)
    signal = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * X[:, 2] * X[:, 3]
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(10)]), signal, rng


@case("Better than the mean of the target")
def large_real() -> pd.DataFrame:
    """200,000 x 10, a real target whose spread depends on a column."""
    frame, signal, rng = _large()
    spread = 0.3 * np.exp(0.3 * frame["x4"].to_numpy())
    return frame.assign(y=(signal + spread * rng.normal(size=len(frame))).round(5))


@case("Better than the mean of the target")
def large_count() -> pd.DataFrame:
    """200,000 x 10, a count."""
    frame, signal, rng = _large()
    return frame.assign(y=rng.poisson(np.exp(0.3 + 0.4 * signal)))


@case("Better than the class shares")
def large_label() -> pd.DataFrame:
    """200,000 x 10, three labels."""
    frame, signal, rng = _large()
    score = np.stack([signal, frame["x5"], frame["x6"] - signal], axis=1)
    place = np.argmax(score + rng.gumbel(size=score.shape), axis=1)
    return frame.assign(y=np.array(["red", "green", "blue"])[place])


def _wide(n_columns: int = 5000) -> tuple[pd.DataFrame, np.ndarray, np.random.Generator]:
    """300 rows of many columns, the sum of three of them, and a generator for the target."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, n_columns)).round(4)
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(n_columns)])
    return frame, X[:, 17] + X[:, n_columns // 3] - X[:, n_columns - 9], rng


@case("3 go with 'y' beyond chance")
def three_of_5000() -> pd.DataFrame:
    """300 x 5,000, three columns matter."""
    frame, signal, rng = _wide()
    return frame.assign(y=(signal + 0.5 * rng.normal(size=300)).round(4))


@case("go with 'y' beyond chance")
def three_of_5000_labels() -> pd.DataFrame:
    """300 x 5,000, three columns matter, yes or no."""
    frame, signal, rng = _wide()
    return frame.assign(y=np.where(signal + 0.5 * rng.logistic(size=300) > 0, "yes", "no"))


@case("as far as")
def none_of_5000() -> pd.DataFrame:
    """300 x 5,000, none matters."""
    frame, _, rng = _wide()
    return frame.assign(y=rng.normal(size=300).round(4))


@case("go with 'y' beyond chance")
def gaps_in_5000() -> pd.DataFrame:
    """300 x 5,000, three columns matter, a tenth of all cells missing."""
    frame, signal, rng = _wide()
    y = (signal + 0.5 * rng.normal(size=300)).round(4)
    return frame.mask(rng.random(frame.shape) < 0.1).assign(y=y)


@case("Better than the mean of the target")
def gaps_in_300() -> pd.DataFrame:
    """300 x 300, three columns matter, a tenth of all cells missing."""
    frame, signal, rng = _wide(300)
    y = (signal + 0.5 * rng.normal(size=300)).round(4)
    return frame.mask(rng.random(frame.shape) < 0.1).assign(y=y)


@case("Better than the mean of the target")
def labels_100000() -> pd.DataFrame:
    """200,000 x 3, one column of 100,000 different labels."""
    rng = np.random.default_rng(2)
    x, z = rng.normal(size=(2, 200_000)).round(4)
    names = np.array([f"customer {k}" for k in range(100_000)])[rng.permutation(200_000) % 100_000]
    return pd.DataFrame({"x": x, "name": names, "z": z, "y": (x + 0.5 * rng.normal(size=len(x))).round(4)})


def _claims(tells: float) -> pd.DataFrame:
    """2,000 claims of gamma amounts, 90 % of them 0; two columns tell of both, as far as `tells` says."""
    rng = np.random.default_rng(3)
    age, distance, colour = rng.normal(size=(3, 2000)).round(3)
    chance = 1 / (1 + np.exp(2.5 - tells * age))
    amount = rng.gamma(2.0, 200 * np.exp(0.7 * tells * distance))
    y = np.where(rng.random(2000) < chance, amount, 0.0).round(2)
    return pd.DataFrame({"age": age, "distance": distance, "colour": colour, "y": y})


@case("Better than the mean of the target")
def claims() -> pd.DataFrame:
    """2,000 claims, 90 % of them 0, of which two columns tell."""
    return _claims(1.0)


@case("as far as")
def claims_of_nothing() -> pd.DataFrame:
    """2,000 claims, 90 % of them 0, of which no column tells."""
    return _claims(0.0)


@case("nothing to predict")
def constant() -> pd.DataFrame:
    """50 rows, the target has one value."""
    return pd.DataFrame({"x": np.arange(50.0) ** 2, "y": 3.5})


@case("no rows")
def header_only() -> pd.DataFrame:
    """The names of the columns alone."""
    return pd.DataFrame({"x": [], "y": []})


@case("nothing to predict")
def one_row() -> pd.DataFrame:
    """One row."""
    return pd.DataFrame({"x": [1.5], "y": [2.5]})


@case("No column is left")
def one_column() -> pd.DataFrame:
    """100 rows of the target alone."""
    return pd.DataFrame({"y": np.random.default_rng(4).normal(size=100)})


def watched(path: Path, folder: Path) -> dict[str, Any]:
    """What the command says of a table, and when."""
    command = [sys.executable, "-u", "-m", "nongauss.cli", "fit", str(path), "--target", "y"]
    command += ["--out", str(folder), "--force"]
    began = time.perf_counter()
    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process = psutil.Process(done.pid)
    came: dict[str, Any] = {}
    lines: list[str] = []

    def errors() -> None:
        assert done.stderr is not None
        for line in done.stderr:
            came.setdefault("first_line", round(time.perf_counter() - began, 1))
            came["last"] = line.strip()

    reader = threading.Thread(target=errors)
    reader.start()
    assert done.stdout is not None
    for line in done.stdout:
        if not lines:
            spent = process.cpu_times()
            came["decided"] = round(spent.user + spent.system, 1)
        lines.append(line.rstrip())
    reader.join()
    _, status, usage = os.wait4(done.pid, 0)
    done.returncode = os.waitstatus_to_exitcode(status)
    came["cpu_seconds"] = round(usage.ru_utime + usage.ru_stime, 1)
    came["wall_seconds"] = round(time.perf_counter() - began, 1)
    came |= {"peak_mib": round(usage.ru_maxrss / 1024), "exit": done.returncode}
    came["said"] = _said(lines) or came.get("last", "")
    return came


def _said(lines: list[str]) -> str:
    """The sentences of the verdict, "" without one."""
    if "Verdict" not in lines:
        return ""
    rest = lines[lines.index("Verdict") + 1 :]
    end = rest.index("") if "" in rest else len(rest)
    return " ".join(line.strip() for line in rest[:end])


def table(records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The lines of the table."""
    out = [
        "| table | holds | decided, CPU s | first line, s | whole, CPU s | peak MiB | what is said | right |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in CASES:
        if (record := records.get(name)) is None:
            continue
        said = str(record["said"]).replace("|", "\\|")
        figures = [str(record.get(key, "")) for key in ("decided", "first_line", "cpu_seconds", "peak_mib")]
        cells = [name, record["about"], *figures, said, "yes" if record["right"] else "no"]
        out.append("| " + " | ".join(cells) + " |")
    return out


def kept() -> dict[str, Any]:
    """The results so far."""
    path = RESULTS / "front_door_large.json"
    return json.loads(path.read_text())["tables"] if path.exists() else {}


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--only", nargs="*", choices=list(CASES), help="names of tables")
    options.add_argument("--again", action="store_true", help="do what is in the results once more")
    chosen = options.parse_args()
    one_core()
    for name in chosen.only or CASES:
        if name in kept() and not chosen.again:
            continue
        make, says = CASES[name]
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / f"{name}.csv"
            make().to_csv(path, index=False)
            came = watched(path, Path(temporary) / "out")
        about = " ".join((make.__doc__ or "").split())
        records = {**kept(), name: {"about": about, **came, "right": says in came["said"]}}
        print(f"{name}: {records[name]}", flush=True)
        write_results("front_door_large", {"tables": records})
        write_table("front_door_large", table(records))


if __name__ == "__main__":
    main()

"""What the benchmarks share: reading the data folder, writing results, tables, memory."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).parent / "README.md"
HOW_TO_GET = (
    "put a folder NAME with data.csv.gz (header row, last column `target`) and, for the sets with published "
    "splits, splits.npz (row numbers train_0, test_0, ...: the 20, or 5, random 90/10 "
    "splits of Hernandez-Lobato and Adams, ICML 2015) there"
)


def parser(description: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    out = argparse.ArgumentParser(description=description)
    out.add_argument("--data", type=Path, default=Path("data"), help="folder with the data sets")
    return out


def load_splits(data: Path, name: str) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """X, y and the published (train, test) row numbers of a set; SystemExit says how to get a missing one."""
    folder = data / name
    if not (folder / "splits.npz").exists():
        raise SystemExit(f"{folder} is not there: {HOW_TO_GET}, and give the parent folder by --data.")
    table = pd.read_csv(folder / "data.csv.gz")
    splits = np.load(folder / "splits.npz")
    count = sum(key.startswith("train_") for key in splits.files)
    pairs = [(splits[f"train_{i}"], splits[f"test_{i}"]) for i in range(count)]
    return table.drop(columns="target").to_numpy(float), table["target"].to_numpy(float), pairs


def write_results(name: str, content: dict[str, Any]) -> Path:
    """`results/NAME.json`, with versions, processor and peak memory beside the content; lists on one line."""
    packages = ("nongauss", "jax", "numpy", "scipy", "scikit-learn")
    about = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        **{package: importlib.metadata.version(package) for package in packages},
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    text = json.dumps({"about": about, **content}, indent=1)
    path.write_text(re.sub(r"\[\s+[^][{}]*]", lambda plain: " ".join(plain[0].split()), text) + "\n")
    return path


def known_results(name: str) -> dict[str, Any]:
    """What `results/NAME.json` has of earlier runs; nothing at first."""
    path = RESULTS / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def keep_results(name: str, known: dict[str, Any]) -> None:
    """Write partial results, so that a run that is stopped goes on where it was.

    Those that another run has written in the meantime stay, and are put into `known` too.
    """
    RESULTS.mkdir(exist_ok=True)
    _add(known, known_results(name))
    (RESULTS / f"{name}.json").write_text(json.dumps(known, indent=1) + "\n")


def hours_of_fits(known: dict[str, Any]) -> list[str]:
    """The lines below a table that say how long all fits of nested results took, with "seconds" in each."""

    def total(found: dict[str, Any]) -> float:
        own = found.get("seconds", 0.0)
        return own + sum(total(value) for value in found.values() if isinstance(value, dict))

    return ["", f"All fits of this table took {total(known) / 3600.0:.2f} hours of the processor."]


def _add(known: dict[str, Any], found: dict[str, Any]) -> None:
    """Put what was found into nested results where these lack it."""
    for key, value in found.items():
        if isinstance(value, dict) and isinstance(known.get(key), dict):
            _add(known[key], value)
        else:
            known.setdefault(key, value)


def write_table(name: str, lines: list[str]) -> None:
    """Put the lines between the markers of this benchmark in `benchmarks/README.md`."""
    text = README.read_text() if README.exists() else ""
    begin, end = f"<!-- {name}:start -->", f"<!-- {name}:end -->"
    block = "\n".join([begin, "", *lines, "", end])
    if begin in text:
        before, after = text.split(begin)[0], text.split(end)[1]
        text = before + block + after
    else:
        text = text.rstrip() + "\n\n" + block + "\n"
    README.write_text(text)


def judged(distribution: Any, y: np.ndarray) -> dict[str, float]:
    """Error, log-likelihood (nats a row) and coverage of the 90 % interval on held-out rows."""
    low, high = distribution.interval(0.9).T
    return {
        "rmse": float(np.sqrt(np.mean((distribution.mean - y) ** 2))),
        "log_likelihood": float(np.mean(distribution.log_prob(y))),
        "coverage_90": float(np.mean((low <= y) & (y <= high))),
    }


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Mean and its standard error over splits."""
    array = np.asarray(values)
    error = array.std(ddof=1) / np.sqrt(len(array)) if len(array) > 1 else np.nan
    return float(array.mean()), float(error)


def with_error(values: list[float], form: str, error_form: str = ".2g") -> str:
    """The mean as a cell shows it, and its standard error where there are several values."""
    mean, error = mean_and_error(values)
    return f"{mean:{form}}" if np.isnan(error) else f"{mean:{form}} ± {error:{error_form}}"


def load_table(data: Path, name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns and target of a set without splits; SystemExit says how to get a missing one."""
    path = data / name / "data.csv.gz"
    if not path.exists():
        raise SystemExit(f"{path} is not there: {HOW_TO_GET}, and give the parent folder by --data.")
    table = pd.read_csv(path)
    return table.drop(columns="target"), table["target"].to_numpy()


def random_splits(n_rows: int, n_train: int, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(train, test) row numbers, drawn with the seeds 0, 1, ..."""
    orders = (np.random.default_rng(seed).permutation(n_rows) for seed in range(count))
    return [(order[:n_train], order[n_train:]) for order in orders]


def one_core() -> None:
    """Keep this process, and those it starts, on one processor core where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

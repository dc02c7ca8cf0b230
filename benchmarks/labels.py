"""What the benchmarks of labels share: figures of probabilities, and a race of models over seeds."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from common import known_results, parser, with_error, write_results, write_table
from sklearn.exceptions import ConvergenceWarning

N_BINS = 15

Rows = tuple[Any, np.ndarray]
"""Inputs and labels 0..C-1."""


def judged_labels(probabilities: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Accuracy, log-loss (nats a row) and expected calibration error (15 bins of equal width).

    `y` (N,) holds column numbers of `probabilities` (N, C).
    """
    chosen, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
    right = (chosen == y).astype(float)
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gaps = [abs(np.sum((right - confidence)[bins == b])) for b in range(N_BINS)]
    return {
        "accuracy": float(right.mean()),
        "log_loss": float(-np.log(np.maximum(probabilities[np.arange(len(y)), y], 1e-15)).mean()),
        "calibration_error": float(np.sum(gaps) / len(y)),
    }


def one_fit(model: Any, train: Rows, test: Rows) -> dict[str, float]:
    """Fit and judge. A model without probabilities has an accuracy only.

    `epoch_seconds` is the median epoch of a model that has a trace, else the share of an epoch in the fit.
    """
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*train)
    seconds = time.perf_counter() - started
    if hasattr(model, "predict_proba"):
        figures = judged_labels(model.predict_proba(test[0]), test[1])
    else:
        figures = {"accuracy": float(np.mean(model.predict(test[0]) == test[1]))}
    last = model[-1] if hasattr(model, "steps") else model
    n_iter = getattr(last, "n_iter_", None)
    epochs = float(np.max(n_iter)) if n_iter is not None else float("nan")
    trace = getattr(last, "trace_", None)
    epoch = seconds / epochs if trace is None else float(trace["seconds"].diff().median())
    return {**figures, "fit_seconds": seconds, "epochs": epochs, "epoch_seconds": epoch}


def race(
    title: str,
    models: dict[str, Callable[[int], Any]],
    chosen: argparse.Namespace,
    split: Callable[[int], tuple[Rows, Rows]],
    paper: dict[str, str],
) -> None:
    """Every chosen model with every seed on its `split(seed)`: training and test rows.

    After each fit `results/TITLE.json` and the table are written. They keep what stood there of other models
    and seeds, so that a long run can be cut short and done in parts.
    """
    kept = known_results(f"{title}").get("models", {})
    for seed in chosen.seeds:
        train, test = split(seed)
        for name in chosen.models:
            run = {"seed": seed, **one_fit(models[name](seed), train, test)}
            print(name, {key: round(v, 4) for key, v in run.items()}, flush=True)
            others = [one for one in kept.get(name, []) if one["seed"] != seed]
            kept[name] = sorted([*others, run], key=lambda one: one["seed"])
            rows = {key: kept[key] for key in models if key in kept}
            write_results(title, {"models": rows})
            write_table(title, table_of(rows, paper))


def race_parser(description: str, models: Iterable[str]) -> argparse.ArgumentParser:
    """The options of a race: the data folder, which models, which seeds."""
    options = parser(description)
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options.add_argument("--models", nargs="+", choices=list(models), default=list(models))
    return options


def table_of(rows: dict[str, list[dict[str, float]]], paper: dict[str, str]) -> list[str]:
    """The Markdown table of a race."""
    lines = [
        "| model | paper | seeds | accuracy % | log-loss | calibration error | fit s | s an epoch |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, runs in rows.items():
        accuracy = with_error([100 * run["accuracy"] for run in runs], ".2f", ".2f")
        rest = [np.mean([run.get(key, np.nan) for run in runs]) for key in ("log_loss", "calibration_error")]
        seconds = np.median([run["fit_seconds"] for run in runs])
        epoch = np.median([run.get("epoch_seconds", run["fit_seconds"] / run["epochs"]) for run in runs])
        lines.append(
            f"| {name} | {paper.get(name, '')} | {len(runs)} | {accuracy} "
            f"| {rest[0]:.4f} | {rest[1]:.4f} | {seconds:.0f} | {epoch:.2g} |".replace("nan", "")
        )
    return lines

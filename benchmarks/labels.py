"""What the benchmarks of labels share: figures of probabilities, and a race of models over seeds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from common import mean_and_error
from sklearn.exceptions import ConvergenceWarning

N_BINS = 15


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


def one_fit(model: Any, train: tuple[Any, np.ndarray], test: tuple[Any, np.ndarray]) -> dict[str, float]:
    """Fit and judge; labels are 0..C-1. A model without probabilities has an accuracy only."""
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
    return {**figures, "fit_seconds": seconds, "epochs": epochs}


def race(
    models: dict[str, Callable[[int], Any]],
    seeds: Iterable[int],
    train: tuple[Any, np.ndarray],
    test: tuple[Any, np.ndarray],
    keep: Callable[[dict[str, list]], None],
) -> dict[str, list[dict[str, float]]]:
    """Every model with every seed; `keep` is told after each fit, so that a long run can be cut short."""
    rows: dict[str, list[dict[str, float]]] = {}
    for name, make in models.items():
        for seed in seeds:
            rows.setdefault(name, []).append(one_fit(make(seed), train, test))
            print(name, seed, {key: round(v, 4) for key, v in rows[name][-1].items()}, flush=True)
            keep(rows)
    return rows


def table_of(rows: dict[str, list[dict[str, float]]], paper: dict[str, str]) -> list[str]:
    """The Markdown table of a race."""
    lines = [
        "| model | paper | accuracy % | log-loss | calibration error | fit s | s an epoch |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, runs in rows.items():
        accuracy, error = mean_and_error([100 * run["accuracy"] for run in runs])
        spread = f" ± {error:.2f}" if np.isfinite(error) else ""
        rest = [np.mean([run.get(key, np.nan) for run in runs]) for key in ("log_loss", "calibration_error")]
        seconds = np.median([run["fit_seconds"] for run in runs])
        epoch = np.median([run["fit_seconds"] / run["epochs"] for run in runs])
        lines.append(
            f"| {name} | {paper.get(name, '')} | {accuracy:.2f}{spread} | {rest[0]:.4f} | {rest[1]:.4f} "
            f"| {seconds:.0f} | {epoch:.2g} |".replace("nan", "")
        )
    return lines

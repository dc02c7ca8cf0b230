"""What learning rectangles from a sample costs: more rows, and how rare a cluster may be."""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from common import known_results, write_results, write_table
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtri

from nongauss import RectangleMixture
from nongauss.rectangle import data

SHARES = {"even": (0.2,) * 5} | {
    f"one of {100 * rare:g} %": (rare, *[(1.0 - rare) / 4] * 4) for rare in (0.02, 0.002)
}
STRAY = 0.02  # rows that look like another cluster than that of their box
SAMPLES = (5_000, 20_000, 100_000)


def rows(n_rows: int, name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten rule columns and ten of structure (N, 20), and the box of each row (N,).

    Boxes are leaves of a tree, one end of a column each; six columns of either kind are noise.
    """
    rng = np.random.default_rng(seed)
    X, share = rng.normal(size=(n_rows, 10)), SHARES[name]
    box = np.full(n_rows, 4)
    for k, column in reversed(list(enumerate((3, 0, 1, 2)))):
        left = 1.0 - sum(share[:k])
        box[X[:, column] > -ndtri(share[k] / left)] = k
    looks = np.where(rng.random(n_rows) < STRAY, rng.integers(0, 5, n_rows), box)
    mean = np.zeros((5, 10))
    mean[:, :4] = 2.0 * np.random.default_rng(seed + 100).normal(size=(5, 4))
    return np.hstack([X, mean[looks] + rng.normal(size=(n_rows, 10))]), box


def learned(X: np.ndarray, sample: int, seed: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Labels of all rows, processor seconds and conditions of a fit."""
    data.MOST_ROWS = sample
    names = list(range(10)), list(range(10, 20))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RectangleMixture(5, rule_columns=names[0], structure_columns=names[1], random_state=seed)
        labels = model.fit(X).labels_
    seconds = time.process_time() - began
    return labels, {"seconds": seconds, "conditions": len(model.rules_), "iterations": model.n_iter_}


def against(truth: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Precision and recall of the cluster that fits each box best, one for one; 0 of none."""
    counts = np.zeros((5, 5))
    np.add.at(counts, (truth, labels), 1.0)
    inside, claimed = counts.sum(axis=1), np.maximum(counts.sum(axis=0), 1.0)
    box, cluster = linear_sum_assignment(-counts / inside[:, None] - counts / claimed)
    both = counts[box, cluster]
    return {"precision": (both / claimed[cluster]).tolist(), "recall": (both / inside).tolist()}


def same(first: np.ndarray, second: np.ndarray) -> float:
    """Share of the rows in the same cluster, clusters taken one for one."""
    counts = np.zeros((5, 5))
    np.add.at(counts, (first, second), 1.0)
    return float(counts[linear_sum_assignment(-counts)].sum() / len(first))


def measured(n_rows: int, name: str, seed: int) -> list[dict[str, Any]]:
    """Samples of every size, of the same rows."""
    X, truth = rows(n_rows, name, seed)
    fits, every = [], []
    for sample in SAMPLES:
        labels, figures = learned(X, sample, seed)
        every.append(labels)
        fits.append({"rows": name, "seed": seed, "sample": sample, **figures, **against(truth, labels)})
        print(fits[-1], flush=True)
    for figures, labels in zip(fits, every, strict=True):
        figures["same"] = same(labels, every[-1])
    return fits


def table(fits: list[dict[str, Any]]) -> list[str]:
    frame = pd.DataFrame(fits)
    frame["smallest_precision"] = [values[0] for values in frame["precision"]]
    frame["smallest_recall"] = [values[0] for values in frame["recall"]]
    frame["precision"] = frame["precision"].map(np.mean)
    frame["recall"] = frame["recall"].map(np.mean)
    lines = [
        "| clusters | rows learned from | same cluster as by the last | precision | recall "
        "| both of the first cluster | processor s | seeds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (name, sample), some in frame.groupby(["rows", "sample"], sort=False):
        mean = some.mean(numeric_only=True)
        lines.append(
            f"| {name} | {sample:,} | {100 * mean['same']:.2f} % | {mean['precision']:.4f} "
            f"| {mean['recall']:.4f} | {mean['smallest_precision']:.3f}, {mean['smallest_recall']:.3f} "
            f"| {mean['seconds']:.1f} | {len(some)} |"
        )
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=400_000)
    options.add_argument("--seeds", type=int, nargs="+", default=[0])
    options.add_argument("--clusters", nargs="+", choices=list(SHARES), default=list(SHARES))
    chosen = options.parse_args()
    fits = known_results("rectangle_sample").get("fits", [])
    for seed in chosen.seeds:
        for name in chosen.clusters:
            fits = [f for f in fits if (f["rows"], f["seed"]) != (name, seed)]
            fits += measured(chosen.rows, name, seed)
            fits.sort(key=lambda f: (list(SHARES).index(f["rows"]), f["sample"], f["seed"]))
            write_results("rectangle_sample", {"fits": fits})
            write_table("rectangle_sample", table(fits))


if __name__ == "__main__":
    main()

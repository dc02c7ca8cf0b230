"""Rectangle mixture beside partitions and rules made from them, on sets whose labels are known."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import known_results, load_table, parser, write_results, write_table
from rectangle_rivals import Answer, as_numbers, box_step, explainable_k_means, k_means, mixture, tree
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from nongauss import RectangleMixture

BUNDLED = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}
AIMS = {
    "iris": 0.86, "wine": 0.88, "breast_cancer": 0.62, "seeds": 0.76, "vertebral": 0.60, "ecoli": 0.72,
    "glass": 0.32, "zoo": 0.83,
}  # fmt: skip
FRESH = ("breast_wisconsin", "ionosphere", "pima", "image")  # looked at by nobody while the method was made
OTHERS = ("penguins", "banknote", "anuran", "mushroom", *FRESH)
OURS = "rectangle mixture"


def load(data: Path, name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns and labels; the names of the animals are no column."""
    if name in BUNDLED:
        bunch = BUNDLED[name](as_frame=True)
        return bunch.data, bunch.target.to_numpy()
    if name == "penguins":
        from palmerpenguins import load_penguins

        table = load_penguins()
        return table.drop(columns="species"), pd.factorize(table["species"])[0]
    X, y = load_table(data, name)
    return X.drop(columns=[c for c in ("animal",) if c in X]), pd.factorize(y)[0]


def ours(X: pd.DataFrame, K: int | str, seed: int, **arguments: Any) -> tuple[Answer, RectangleMixture]:
    """The labels by the printed rules, and the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RectangleMixture(K, random_state=seed, **arguments).fit(X)
    bounds = (
        np.isfinite(model.rules_[["lower", "upper"]].to_numpy()).sum() + model.rules_["levels"].notna().sum()
    )
    return Answer(model.labels_, bounds / model.n_clusters_, model.inside_one_), model


def rivals(X: pd.DataFrame, K: int, seed: int) -> dict[str, Answer]:
    Z = as_numbers(X)
    centres, blobs = k_means(Z, K, seed), mixture(Z, K, seed)
    return {
        "k-means": Answer(centres.labels_),
        "Gaussian mixture": Answer(blobs),
        "k-means + tree, K leaves": tree(Z, centres.labels_, K, seed),
        "k-means + tree, 2K leaves": tree(Z, centres.labels_, 2 * K, seed),
        "k-means + box step": box_step(Z, centres.labels_),
        "Gaussian mixture + tree, K leaves": tree(Z, blobs, K, seed),
        "Gaussian mixture + tree, 2K leaves": tree(Z, blobs, 2 * K, seed),
        "Gaussian mixture + box step": box_step(Z, blobs),
        "explainable k-means (IMM)": explainable_k_means(Z, centres),
    }


def one_set(data: Path, name: str, seeds: int, with_rivals: bool) -> dict[str, dict[str, float]]:
    """Figures of each method, means over seeds."""
    X, y = load(data, name)
    K, every = len(np.unique(y)), []
    for seed in range(seeds):
        began = time.perf_counter()
        answer, model = ours(X, K, seed)
        figures = {OURS: answer.figures(y, time.perf_counter() - began)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = model.predict_posterior(X).argmax(axis=1)
        figures[OURS + ", all columns"] = Answer(posterior).figures(y, np.nan)
        if with_rivals:
            figures |= {key: rival.figures(y, np.nan) for key, rival in rivals(X, K, seed).items()}
        every.append(figures)
    return {
        key: {f: float(np.mean([figures[key][f] for figures in every])) for f in every[0][key]}
        for key in every[0]
    }


def table(sets: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    main = [name for name in AIMS if name in sets]
    methods = list(sets[main[0]])
    lines = [
        'NMI with the labels, K = their number, means over seeds. "Mean" is over the first eight sets.',
        "",
        f"| method | {' | '.join(sets)} | mean | conditions a rule |",
        "|---" * (len(sets) + 3) + "|",
        f"| aim | {' | '.join(str(AIMS.get(name, '')) for name in sets)} | 0.706 | 2.4 |",
    ]
    for method in methods:
        cells = [_cell(sets[name].get(method, {}).get("nmi", np.nan)) for name in sets]
        mean = np.mean([sets[name][method]["nmi"] for name in main])
        conditions = np.mean([sets[name][method]["conditions"] for name in main])
        lines.append(f"| {method} | {' | '.join(cells)} | {mean:.3f} | {_cell(conditions, 1)} |")
    lines += ["", f"| {OURS} | {' | '.join(sets)} | mean |", "|---" * (len(sets) + 2) + "|"]
    for key, digits in (("ari", 3), ("conditions", 1), ("inside_one", 3), ("seconds", 1)):
        values = [sets[name][OURS][key] for name in sets]
        mean = np.mean([sets[name][OURS][key] for name in main])
        lines.append(f"| {key} | {' | '.join(_cell(v, digits) for v in values)} | {_cell(mean, digits)} |")
    return lines


def _cell(value: float, digits: int = 3) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="+", choices=[*AIMS, *OTHERS], default=[*AIMS, *OTHERS])
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--ours-only", action="store_true", help="print our figures, keep nothing")
    chosen = options.parse_args()
    sets = {} if chosen.ours_only else known_results("rectangle_uci").get("sets", {})
    for name in chosen.sets:
        sets[name] = one_set(chosen.data, name, chosen.seeds, not chosen.ours_only)
        print(name, {k: round(v, 3) for k, v in sets[name][OURS].items()}, flush=True)
        if not chosen.ours_only:
            sets = {key: sets[key] for key in (*AIMS, *OTHERS) if key in sets}
            write_results("rectangle_uci", {"seeds": chosen.seeds, "sets": sets})
            write_table("rectangle_uci", table(sets))
    if not set(chosen.sets) & set(AIMS):
        return
    mean = {
        f: np.mean([sets[n][OURS][f] for n in chosen.sets if n in AIMS]) for f in sets[chosen.sets[0]][OURS]
    }
    print("mean", {k: round(float(v), 3) for k, v in mean.items()})


if __name__ == "__main__":
    main()

"""The automatic classifier beside usual models and two families alone: log-loss, accuracy, calibration error.

    python benchmarks/auto_labels.py --data DIR [--sets glass zoo] [--splits 3] [--models auto forest]

A quarter of the rows is held out, stratified, with the seeds 0, 1, ... Rivals are scikit-learn's, columns
scaled where that matters. Results are kept after each fit: `results/auto_labels.json`. Of the automatic
classifier also the log density of each candidate by rows left out, and the shares, are kept; and what
calibration error its probabilities would have by chance if they were right, since a bin of few rows is off.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from common import hours_of_fits, keep_results, known_results, parser, write_table
from labels import judged_labels
from sklearn.datasets import load_digits, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from nongauss import AutoClassifier, SparseGPClassifier, TGGMClassifier

BINARY = ["pima", "ionosphere", "sonar", "breast_wisconsin", "german", "banana", "titanic", "flare_solar"]
BINARY += ["breast_ljubljana", "image", "splice", "banknote", "mushroom"]
SETS = ["glass", "zoo", "wine", "vertebral", "digits", "mfeat", *BINARY]

N_DRAWS = 200
"""Draws of labels from probabilities, of which each has a calibration error by chance."""

MODELS: dict[str, Any] = {
    "auto": lambda seed: AutoClassifier(random_state=seed),
    "logistic": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "mlp": lambda seed: make_pipeline(StandardScaler(), MLPClassifier(max_iter=2000, random_state=seed)),
    "forest": lambda seed: RandomForestClassifier(500, random_state=seed),
    "boosted": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "gp": lambda seed: SparseGPClassifier(random_state=seed),
    "tggm": lambda seed: TGGMClassifier(random_state=seed),
}


FIGURES = ("accuracy", "calibration_error", "chance", "chance_95", "seconds")


def load(data: Any, name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Inputs and labels; names of animals are no input."""
    if name in ("wine", "digits"):
        found = (load_wine if name == "wine" else load_digits)(as_frame=True)
        return found.data, np.asarray(found.target)
    if name == "mfeat":
        views = dict(np.load(data / name / "mfeat.npz"))
        target = views.pop("target")
        columns = [f"{view} {j}" for view, cells in views.items() for j in range(cells.shape[1])]
        return pd.DataFrame(np.hstack(list(views.values())), columns=columns), target
    table = pd.read_csv(data / name / "data.csv.gz").drop(columns="animal_name", errors="ignore")
    return table.drop(columns="target"), np.unique(table["target"], return_inverse=True)[1]


def by_chance(shares: np.ndarray, seed: int) -> dict[str, float]:
    """Mean and 95 % quantile of the calibration error of labels drawn from the probabilities (N, C)."""
    rng, edges = np.random.default_rng(seed), shares.cumsum(axis=1)
    drawn = (
        np.minimum((edges < u).sum(axis=1), shares.shape[1] - 1)
        for u in rng.random((N_DRAWS, len(shares), 1))
    )
    errors = [judged_labels(shares, labels)["calibration_error"] for labels in drawn]
    return {"chance": float(np.mean(errors)), "chance_95": float(np.quantile(errors, 0.95))}


def one(name: str, X: pd.DataFrame, y: np.ndarray, seed: int) -> dict[str, Any]:
    """Figures of a model on the split of this seed."""
    if name != "auto" and not all(pd.api.types.is_numeric_dtype(kind) for kind in X.dtypes):
        X = pd.DataFrame(OneHotEncoder(sparse_output=False).fit_transform(X))
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name](seed).fit(X, y)
        shares = np.zeros((len(y_new), int(y.max()) + 1))
        shares[:, np.asarray(model.classes_, int)] = model.predict_proba(X_new)
    out: dict[str, Any] = {**judged_labels(shares, y_new), "seconds": time.process_time() - begin}
    if name == "auto":
        board = model.leaderboard_.dropna(subset="log_density")
        out |= {"weights": model.weights_, "calibration": model.calibration_, **by_chance(shares, seed)}
        out["left_out"] = dict(zip(board["candidate"], board["log_density"], strict=True))
    return out


def table(known: dict[str, Any]) -> list[str]:
    """Means over the splits that all models have."""
    lines = ["| set | splits | log-loss: auto | " + " | ".join(name for name in MODELS if name != "auto")]
    lines[0] += " | auto: accuracy | calibration error | by chance | 95 % | fit CPU s |"
    lines.append("|---" * (len(MODELS) + 7) + "|")
    for name in (name for name in SETS if name in known):
        there = [split for split in known[name].values() if "auto" in split]
        if not there:
            continue
        cells = []
        for model in MODELS:
            runs = [split[model]["log_loss"] for split in there if model in split]
            cells.append(f"{np.mean(runs):.3f}" if len(runs) == len(there) else "")
        auto = [split["auto"] for split in there]
        mean = {key: np.mean([run.get(key, np.nan) for run in auto]) for key in FIGURES}
        cells += [f"{100 * mean['accuracy']:.1f} %"]
        cells += ["" if np.isnan(mean[key]) else f"{mean[key]:.3f}" for key in FIGURES[1:-1]]
        cells += [f"{mean['seconds']:.0f}"]
        lines.append(f"| {name} | {len(there)} | {' | '.join(cells)} |")
    return [*lines, *rank_of_auto(known)]


def rank_of_auto(known: dict[str, Any]) -> list[str]:
    """The place of the automatic one among all models by mean log-loss, over the sets that all have."""
    ranks = []
    for name in (name for name in SETS if name in known):
        there = [split for split in known[name].values() if set(MODELS) <= set(split)]
        if there:
            loss = {model: np.mean([split[model]["log_loss"] for split in there]) for model in MODELS}
            ranks.append(1 + sum(loss[model] < loss["auto"] for model in MODELS))
    place = (
        f"Mean place of `auto` among the {len(MODELS)} models: {np.mean(ranks):.2f} over {len(ranks)} sets."
    )
    return ["", place] if ranks else []


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", nargs="+", default=SETS)
    options.add_argument("--splits", type=int, default=3)
    options.add_argument("--models", nargs="+", default=list(MODELS))
    chosen = options.parse_args()
    known = known_results("auto_labels")
    for name in chosen.sets:
        X, y = load(chosen.data, name)
        for seed in range(chosen.splits):
            for model in chosen.models:
                place = known.setdefault(name, {}).setdefault(str(seed), {})
                if model not in place:
                    place[model] = one(model, X, y, seed)
                    print(name, seed, model, place[model], flush=True)
                    keep_results("auto_labels", known)
    write_table("auto_labels", table(known) + hours_of_fits(known))


if __name__ == "__main__":
    main()

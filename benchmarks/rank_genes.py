"""Gene expression by rank factors: golub on its published split, alon by repeated cross-validation; wine.

    python benchmarks/rank_genes.py --data FOLDER [--sets golub alon wine] [--models ...] [--sweeps 400]

golub: logs of intensities in [100, 16000], genes that vary on the training arrays, each array standardised:
the preparation of Dudoit, Fridlyand and Speed (2002). alon: logs, 5 folds, 3 times; by Gibbs sampling the
first fold alone. wine: half of the rows, three classes. Results are kept by set and model in
results/rank_genes.json.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from common import known_results, load_table, parser, write_results, write_table
from sklearn.datasets import load_wine
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from nongauss import RankFactorClassifier

GIBBS = {"inference": "gibbs"}
MODELS: dict[str, dict[str, Any]] = {
    "rank, vb": {},
    "rank, gibbs": GIBBS,
    "Gaussian, vb": {"observation": "gaussian"},
}


def golub(data: Path) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]], list[str]]:
    X, y = load_table(data, "golub")
    splits = np.load(data / "golub" / "splits.npz")
    train, test = splits["train_0"], splits["test_0"]
    values = np.clip(X.to_numpy(float), 100, 16000)
    low, high = values[train].min(axis=0), values[train].max(axis=0)
    varying = (high / low > 5) & (high - low > 500)
    logs = np.log10(values[:, varying])
    arrays = (logs - logs.mean(axis=1, keepdims=True)) / logs.std(axis=1, keepdims=True)
    return arrays, y, [(train, test)], list(X.columns[varying])


def alon(data: Path) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]], list[str]]:
    X, y = load_table(data, "alon")
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=0)
    return np.log(X.to_numpy(float)), y, list(folds.split(X, y)), list(X.columns)


def wine(_: Path) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]], list[str]]:
    X, y = load_wine(return_X_y=True, as_frame=True)
    halves = train_test_split(np.arange(len(X)), test_size=0.5, random_state=0, stratify=y)
    return X.to_numpy(float), y.to_numpy(), [tuple(halves)], list(X.columns)


def judged(model: Any, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    began, cpu = time.perf_counter(), time.process_time()
    model.fit(X[train], y[train])
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    classes, decision = np.unique(y), model.decision_function(X[test])
    columns = [decision] if len(classes) == 2 else list(decision.T)
    auc = [roc_auc_score(y[test] == k, own) for k, own in zip(classes[-len(columns) :], columns, strict=True)]
    out = {
        "right": int((model.predict(X[test]) == y[test]).sum()),
        "rows": len(test),
        "auc": float(np.mean(auc)),
        "fit_seconds": seconds,
        "fit_cpu_seconds": cpu,
    }
    if hasattr(model, "n_active_"):
        out["active"] = model.n_active_
    if hasattr(model, "effective_draws_"):
        out |= {"sweeps": model.n_iter_ // model.n_chains}
        out |= {"r_hat": float(np.max(model.r_hat_)), "effective": float(np.min(model.effective_draws_))}
    return out


def table(results: dict[str, dict[str, Any]]) -> list[str]:
    lines = [
        "| set | model | right | AUC | active | sweeps | largest R-hat | effective draws | fit s | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, models in results.items():
        for label in (label for label in [*MODELS, "linear SVM"] if label in models):
            rows = models[label]
            mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
            right, total = (sum(row[key] for row in rows) for key in ("right", "rows"))
            chains = ("", "", "")
            if "r_hat" in mean:
                sweeps = f"{mean['sweeps']:,.0f}" if "sweeps" in mean else ""
                chains = (sweeps, f"{mean['r_hat']:.2f}", f"{mean['effective']:.0f}")
            active = f"{mean['active']:.1f}" if "active" in mean else ""
            lines.append(
                f"| {name} | {label} | {right} of {total} | {mean['auc']:.3f} | {active} | {chains[0]} "
                f"| {chains[1]} | {chains[2]} | {mean['fit_seconds']:.0f} | {mean['fit_cpu_seconds']:.0f} |"
            )
    return lines


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="+", default=["golub", "alon", "wine"])
    options.add_argument("--models", nargs="+", default=[*MODELS, "linear SVM"])
    options.add_argument("--sweeps", type=int, help="of each chain, where the default takes too long")
    chosen = options.parse_args()
    for name in chosen.sets:
        X, y, splits, columns = {"golub": golub, "alon": alon, "wine": wine}[name](chosen.data)
        for label in chosen.models:
            rows = []
            n_splits = 1 if label == "rank, gibbs" else len(splits)  # minutes each
            for train, test in splits[:n_splits]:
                model: Any = make_pipeline(StandardScaler(), LinearSVC(C=1e-3))
                if label in MODELS:
                    model = RankFactorClassifier(random_state=0, **MODELS[label])
                    if chosen.sweeps and label == "rank, gibbs":
                        model.set_params(max_iter=chosen.sweeps)
                rows.append(judged(model, X, y, train, test))
            results = known_results("rank_genes").get("sets", {})
            results.setdefault(name, {})[label] = rows
            if label == "rank, vb":
                model.encoded_names_ = tuple(columns)
                results[name]["top genes"] = {
                    f"factor{k}": list(model.top_columns(k, 5).index) for k in range(4)
                }
            write_results("rank_genes", {"sets": results})
            write_table("rank_genes", table(results))
            print(table({name: {label: rows}})[-1], flush=True)


if __name__ == "__main__":
    main()

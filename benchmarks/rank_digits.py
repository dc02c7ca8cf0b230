"""Handwritten 3 against 5 by rank and Gaussian factors, beside support vector machines and factor analysis.

    python benchmarks/rank_digits.py --data FOLDER [--sets usps_pooled usps mnist] [--models R-L R-NL ...]
        [--splits 20]

usps_pooled: seeded splits into 767 and 773 images, four unless said. Results are kept by set and model in
results/rank_digits.json. On MNIST "gibbs" and the Gaussian process take hours: they run if asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import known_results, parser, random_splits, write_results, write_table
from sklearn.decomposition import FactorAnalysis
from sklearn.ensemble import BaggingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from nongauss import RankFactorClassifier, SparseGPClassifier

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
AIMS = {
    ("usps_pooled", "R-L vb"): 0.942, ("usps_pooled", "R-NL vb"): 0.961,
    ("usps_pooled", "R-L vb, bagged"): 0.942, ("usps_pooled", "R-NL vb, averaged"): 0.961,
    ("mnist", "R-L vb, bagged"): 0.93, ("mnist", "R-NL vb, averaged"): 0.97,
    ("usps_pooled", "R-L predictive"): 0.955, ("usps_pooled", "R-NL predictive"): 0.965,
    ("mnist", "R-L vb"): 0.93, ("mnist", "R-NL vb"): 0.97,
    ("mnist", "R-L predictive"): 0.972, ("mnist", "R-NL predictive"): 0.986,
}  # fmt: skip


def ours(observation: str, classifier: str, inference: str) -> Callable[[], Any]:
    return lambda: RankFactorClassifier(
        observation=observation, classifier=classifier, inference=inference, random_state=0
    )


def four(classifier: str, *, bootstrap: bool) -> Callable[[], BaggingClassifier]:
    """Four fits whose probabilities are averaged: to bootstrap samples of the rows, or from four starts."""
    return lambda: BaggingClassifier(
        RankFactorClassifier(classifier=classifier), 4, bootstrap=bootstrap, random_state=0
    )


def linear_svm() -> GridSearchCV:
    return GridSearchCV(
        make_pipeline(StandardScaler(), LinearSVC()), {"linearsvc__C": [1e-4, 1e-3, 1e-2, 0.1]}
    )


def rbf_svm() -> GridSearchCV:
    return GridSearchCV(SVC(gamma="scale"), {"C": [1.0, 10.0]}, cv=3)


def factors_and_svm() -> Any:
    return make_pipeline(FactorAnalysis(20), StandardScaler(), LinearSVC(C=0.1))


def gaussian_process() -> Any:
    return make_pipeline(StandardScaler(), GaussianProcessClassifier(ConstantKernel(9.0) * RBF(20.0)))


MODELS: dict[str, Callable[[], Any]] = {
    f"{observation}-{classifier} {inference}": ours(
        {"R": "rank", "G": "gaussian"}[observation], {"L": "linear", "NL": "mixture"}[classifier], inference
    )
    for inference in ("vb", "predictive", "gibbs")
    for observation in "RG"
    for classifier in ("L", "NL")
} | {
    "R-L vb, bagged": four("linear", bootstrap=True),
    "R-NL vb, averaged": four("mixture", bootstrap=False),
    "linear SVM": linear_svm,
    "RBF SVM": rbf_svm,
    "FA + SVM": factors_and_svm,
    "sparse GP": lambda: SparseGPClassifier(random_state=0),
    "GP": gaussian_process,
}

SLOW = [model for model in MODELS if "gibbs" in model or model == "GP"]


def threes_and_fives(data: Path, name: str) -> list[np.ndarray]:
    path = data / name / f"{name}.npz"
    if not path.exists():
        raise SystemExit(
            f"{path} is not there: put X_train, y_train, X_test, y_test in it and give its folder by --data."
        )
    file = np.load(path)
    out = []
    for part in ("train", "test"):
        y = file[f"y_{part}"]
        kept = (y == 3) | (y == 5)
        out += [file[f"X_{part}"][kept].reshape(kept.sum(), -1).astype(float), y[kept]]
    return out


def splits(data: Path, name: str, n_splits: int = 4) -> Iterator[Split]:
    X, y, X_test, y_test = threes_and_fives(data, name.removesuffix("_pooled"))
    if not name.endswith("pooled"):
        yield X, y, X_test, y_test
        return
    X, y = np.concatenate([X, X_test]), np.concatenate([y, y_test])
    for train, test in random_splits(len(y), 767, n_splits):
        yield X[train], y[train], X[test], y[test]


def judged(make: Callable[[], Any], split: Split) -> dict[str, float]:
    X, y, X_test, y_test = split
    model = make()
    began, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    fitted, cpu = time.perf_counter(), time.process_time() - cpu
    return {
        "accuracy": float(model.score(X_test, y_test)),
        "fit_seconds": fitted - began,
        "fit_cpu_seconds": cpu,
        "predict_seconds": time.perf_counter() - fitted,
    }


def table(results: dict[str, dict[str, list[dict[str, float]]]]) -> list[str]:
    lines = [
        "| set | model | splits | aim | accuracy | fit s | of the processor |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, models in results.items():
        for model in (model for model in MODELS if model in models):
            rows = models[model]
            mean = {key: np.mean([row[key] for row in rows]) for key in rows[0]}
            lines.append(
                f"| {name} | {model} | {len(rows)} | {AIMS.get((name, model), '')} | {mean['accuracy']:.4f} "
                f"| {mean['fit_seconds']:.0f} | {mean['fit_cpu_seconds']:.0f} |"
            )
    return lines


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="+", default=["usps_pooled", "usps", "mnist"])
    options.add_argument("--models", nargs="+", choices=MODELS)
    options.add_argument("--splits", type=int, default=4, help="of usps_pooled")
    chosen = options.parse_args()
    results = known_results("rank_digits").get("sets", {})
    for name in chosen.sets:
        for model in chosen.models or [model for model in MODELS if name != "mnist" or model not in SLOW]:
            rows = [judged(MODELS[model], split) for split in splits(chosen.data, name, chosen.splits)]
            results.setdefault(name, {})[model] = rows
            write_results("rank_digits", {"sets": results})
            write_table("rank_digits", table(results))
            print(table({name: {model: rows}})[-1], flush=True)


if __name__ == "__main__":
    main()

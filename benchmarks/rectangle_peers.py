"""Clusters and rules beside usual methods, in one table; the number of clusters given, or chosen by each.

Rule ensembles need the package `imodels`, which the project does not; leave them out by `--methods`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from common import known_results, parser, write_results, write_table
from rectangle_rivals import (
    as_numbers,
    box_step,
    explainable_k_means,
    grown_k_means,
    k_means,
    mixture,
    sums_of_trees,
    tree,
    voting_rules,
)
from rectangle_uci import AIMS, load
from sklearn.cluster import HDBSCAN
from sklearn.metrics import normalized_mutual_info_score
from sklearn.mixture import BayesianGaussianMixture

from nongauss import RectangleMixture

Figures = dict[str, float]


def ours(X: pd.DataFrame, K: int | str, seed: int, **settings: Any) -> Figures:
    """Labels by the rules, and what `clusters_` says of them, means weighted by rows."""
    model = RectangleMixture(K, random_state=seed, **settings).fit(X)
    bounds = (
        np.isfinite(model.rules_[["lower", "upper"]].to_numpy()).sum() + model.rules_["levels"].notna().sum()
    )
    told = model.clusters_.fillna(0.0)
    mean = {f: float(np.average(told[f], weights=told["rows"])) for f in ("precision", "recall")}
    return {"labels": model.labels_, "conditions": bounds / model.n_clusters_, **mean}


def ruled(answer: Any, target: np.ndarray) -> Figures:
    """Rules that part the rows: how they agree with the partition that they explain."""
    table = pd.crosstab(answer.labels, target)
    hits = sum(float(table.loc[k, k]) for k in table.index if k in table.columns)
    return {
        "labels": answer.labels,
        "conditions": answer.conditions,
        "precision": hits / len(target),
        "recall": hits / len(target),
    }


def chosen_mixture(Z: np.ndarray, seed: int) -> np.ndarray:
    """A Dirichlet-process mixture of at most 10 Gaussians; the components that own a row count."""
    model = BayesianGaussianMixture(
        n_components=10, n_init=3, max_iter=500, reg_covar=1e-3, random_state=seed
    )
    return model.fit_predict(Z)


METHODS: dict[str, Callable[[pd.DataFrame, np.ndarray, int, int], Figures]] = {
    "rectangle mixture": lambda X, Z, K, seed: ours(X, K, seed),
    "rectangle mixture, two boxes a cluster": lambda X, Z, K, seed: ours(X, K, seed, max_boxes=2),
    "rectangle mixture, as published": lambda X, Z, K, seed: ours(X, K, seed, preset="paper"),
    "k-means + tree, K leaves": lambda X, Z, K, seed: ruled(
        tree(Z, (t := k_means(Z, K, seed).labels_), K, seed), t
    ),
    "explainable k-means, K leaves (IMM)": lambda X, Z, K, seed: ruled(
        explainable_k_means(Z, (m := k_means(Z, K, seed))), m.labels_
    ),
    "explainable k-means, 2K leaves (ExKMC)": lambda X, Z, K, seed: ruled(
        grown_k_means(Z, (m := k_means(Z, K, seed)), 2 * K), m.labels_
    ),
    "Gaussian mixture + box step": lambda X, Z, K, seed: ruled(
        box_step(Z, (t := mixture(Z, K, seed))), np.unique(t, return_inverse=True)[1]
    ),
    "Gaussian mixture + rule ensemble (SkopeRules)": lambda X, Z, K, seed: ruled(
        voting_rules(Z, (t := mixture(Z, K, seed)), seed), t
    ),
    "Gaussian mixture + sums of trees (FIGS)": lambda X, Z, K, seed: ruled(
        sums_of_trees(Z, (t := mixture(Z, K, seed)), seed), t
    ),
    "rectangle mixture, number chosen": lambda X, Z, K, seed: ours(X, "auto", seed),
    "Bayesian Gaussian mixture, number chosen": lambda X, Z, K, seed: {"labels": chosen_mixture(Z, seed)},
    "HDBSCAN": lambda X, Z, K, seed: {
        "labels": HDBSCAN(min_cluster_size=max(5, len(Z) // 50)).fit_predict(Z)
    },
}


def one(method: str, X: pd.DataFrame, y: np.ndarray, seed: int) -> Figures:
    """NMI with the classes, number of clusters, conditions, precision, recall, processor seconds."""
    Z, K = as_numbers(X), len(np.unique(y))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = METHODS[method](X, Z, K, seed)
    seconds = time.process_time() - began
    labels = found.pop("labels")
    figures = {
        "nmi": float(normalized_mutual_info_score(y, labels)),
        "clusters_off": abs(len(np.unique(labels[labels >= 0])) - K),
    }
    return figures | {key: float(value) for key, value in found.items()} | {"seconds": seconds}


def table(methods: dict[str, dict[str, Figures]]) -> list[str]:
    names = ("nmi", "clusters_off", "conditions", "precision", "recall", "seconds")
    lines = [
        "| method | NMI | clusters too many or few | conditions a rule | precision | recall | CPU s |",
        "|---" * 7 + "|",
    ]
    for method, sets in methods.items():
        mean = pd.DataFrame(sets).mean(axis=1)
        cells = [
            f"{mean[n]:.{1 if n in ('clusters_off', 'conditions') else 3}f}" if n in mean else ""
            for n in names
        ]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument(
        "--methods", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="METHOD"
    )
    options.add_argument("--sets", nargs="+", choices=list(AIMS), default=list(AIMS))
    options.add_argument("--seeds", type=int, default=1)
    chosen = options.parse_args()
    methods = known_results("rectangle_peers").get("methods", {})
    for method in chosen.methods:
        for name in chosen.sets:
            X, y = load(chosen.data, name)
            fits = [one(method, X, y, seed) for seed in range(chosen.seeds)]
            methods.setdefault(method, {})[name] = pd.DataFrame(fits).mean().to_dict()
        print(method, pd.DataFrame(methods[method]).mean(axis=1).round(3).to_dict(), flush=True)
        methods = {key: methods[key] for key in METHODS if key in methods}
        write_results("rectangle_peers", {"seeds": chosen.seeds, "methods": methods})
        write_table("rectangle_peers", table(methods))


if __name__ == "__main__":
    main()

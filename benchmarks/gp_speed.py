"""Processor seconds to the bound that GPflow's and GPyTorch's recipes reach; growth in rows; first fit.

    python benchmarks/gp_speed.py --data FOLDER --peer-python PEER_PYTHON [--sets friedman digits]

Same rows, same kernel, M = 100 inducing inputs that start by k-means++, 64-bit, one processor core, one
process after the other. PEER_PYTHON is the interpreter of an environment with peers.txt; gp_peers.py has the
recipes. What the peers did is kept in results/gp_speed_peers.json, from which it is taken where there is no
PEER_PYTHON: compare seconds of one machine only. Writes results/gp_speed.json and the tables in
benchmarks/README.md.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import (
    known_results,
    load_splits,
    load_table,
    one_core,
    parser,
    random_splits,
    write_results,
    write_table,
)
from sklearn.cluster import kmeans_plusplus
from sklearn.datasets import load_breast_cancer, load_digits, make_friedman1
from sklearn.exceptions import ConvergenceWarning

M = 100
KERNEL = "squared_exponential"
SLACK = 1e-3
"""A peer's best bound counts as reached, by the peer and by us, this much below it, nats a row."""
PATIENCE = 60.0
"""Processor seconds after which a fit of ours is stopped."""
DRAWS = 2000
"""For the bound of the softmax after the fit, which took fewer."""
SVGP = ("gpflow-adam", "gpflow-natgrad", "gpflow-lbfgs", "gpytorch-adam", "gpytorch-natgrad")
COLLAPSED = ("gpflow-collapsed",)
GROWTH = (10_000, 100_000, 1_000_000)


class Rows(NamedTuple):
    """Training and test rows, columns and real targets standardised by the training rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    likelihood: str


# ---------------------------------------------------------------- data


def friedman(_: Path) -> tuple[np.ndarray, np.ndarray, int]:
    """10 columns, 5 of them irrelevant; noise of 0.2 standard deviations."""
    return *make_friedman1(8000, n_features=10, noise=1.0, random_state=0), 7200


def published(name: str) -> Callable[[Path], tuple[np.ndarray, np.ndarray, int]]:
    """The first published split: training rows first."""

    def load(data: Path) -> tuple[np.ndarray, np.ndarray, int]:
        X, y, splits = load_splits(data, name)
        order = np.concatenate(splits[0])
        return X[order], y[order], len(splits[0][0])

    return load


def banana(data: Path) -> tuple[np.ndarray, np.ndarray, int]:
    X, y = load_table(data, "banana")
    return shuffled(X.to_numpy(float), (y > 0).astype(float))


def randhie(_: Path) -> tuple[np.ndarray, np.ndarray, int]:
    from statsmodels.datasets import randhie as source

    table = source.load_pandas()
    return shuffled(table.exog.to_numpy(float), table.endog.to_numpy(float))


def shuffled(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Nine tenths are for training."""
    n_train = 9 * len(y) // 10
    order = np.concatenate(random_splits(len(y), n_train, 1)[0])
    return X[order], y[order].astype(float), n_train


SETS: dict[str, tuple[str, Callable[[Path], tuple[np.ndarray, np.ndarray, int]]]] = {
    "friedman": ("gaussian", friedman),
    "kin8nm": ("gaussian", published("kin8nm")),
    "power": ("gaussian", published("power")),
    "digits": ("softmax", lambda _: shuffled(*load_digits(return_X_y=True))),
    "banana": ("bernoulli", banana),
    "breast_cancer": ("bernoulli", lambda _: shuffled(*load_breast_cancer(return_X_y=True))),
    "randhie": ("poisson", randhie),
}


def prepared(name: str, data: Path) -> Rows:
    likelihood, load = SETS[name]
    X, y, n = load(data)
    spread = X[:n].std(axis=0)
    X = (X - X[:n].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if likelihood == "gaussian":
        y = (y - y[:n].mean()) / y[:n].std()
    return Rows(X[:n], y[:n], X[n:], y[n:], likelihood)


# ---------------------------------------------------------------- fits


def peer(python: str, recipe: str, rows: Rows, limit: float) -> dict[str, Any]:
    """One recipe in a process of its own; its curve thinned to some fifty points."""
    distinct = np.unique(rows.X, axis=0)
    Z, _ = kmeans_plusplus(distinct, min(M, len(distinct)), random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "rows.npz", Path(folder) / "out.json"
        np.savez(source, Z=Z, **rows._asdict())
        command = [python, str(Path(__file__).with_name("gp_peers.py")), recipe, str(source), str(out)]
        done = subprocess.run([*command, "--limit", str(limit)], capture_output=True, text=True, env=quiet())
        if done.returncode:
            said = [line.strip() for line in done.stderr.splitlines() if "Error" in line]
            return {"error": said[-1] if said else f"exit status {done.returncode}"}
        result = json.loads(out.read_text())
    curve = result["curve"]
    kept = sorted(
        {*range(0, len(curve), max(1, len(curve) // 50)), len(curve) - 1, best(curve), reached(curve)}
    )
    return result | {"curve": [[round(s, 3), round(b, 5)] for s, b in (curve[i] for i in kept)]}


def quiet() -> dict[str, str]:
    return os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}


def best(curve: list) -> int:
    return int(np.argmax([bound for _, bound in curve]))


def reached(curve: list) -> int:
    """The first point within SLACK of the best."""
    bounds = np.array([bound for _, bound in curve])
    return int(np.argmax(bounds >= bounds.max() - SLACK))


def ours(rows: Rows, seed: int, **more: Any) -> dict[str, Any]:
    """Curve, final bound and held-out log density of one fit. To be called in a new process."""
    from nongauss import SparseGPClassifier, SparseGPRegressor

    curve: list[tuple[float, float]] = []

    def look(at: Any) -> bool:
        curve.append((time.process_time() - began, at.bound))
        return curve[-1][0] > PATIENCE

    regression = rows.likelihood in ("gaussian", "poisson")
    settings = {
        "kernel": KERNEL,
        "n_scales": 1,
        "n_inducing": M,
        "random_state": seed,
        "callbacks": [look],
        **more,
    }
    began = time.process_time()
    if regression:
        model: Any = SparseGPRegressor(likelihood=rows.likelihood, **settings).fit(rows.X, rows.y)
    else:
        model = SparseGPClassifier(**settings).fit(rows.X, rows.y)
    total = time.process_time() - began
    if regression:
        density = model.log_density(rows.X_test, rows.y_test)
    else:
        density = model.predict_log_proba(rows.X_test)[np.arange(len(rows.y_test)), rows.y_test.astype(int)]
    error = sampling_error(model, rows) if rows.likelihood == "softmax" else 0.0
    return {
        "curve": [(seconds, bound / len(rows.y) - error) for seconds, bound in curve],
        "seconds": total,
        "test_log_density": float(np.mean(density)),
        "sampling_error": error,
    }


def our_part(rows: Rows) -> tuple[list, list[dict[str, float]]]:
    """The curve of a fit that goes on after the default one has stopped; and three default fits."""
    curve = fresh(ours, rows, 0, tol=1e-6, max_iter=10_000)["curve"]
    runs = [fresh(ours, rows, seed) for seed in range(3)]
    for run in runs:
        own = run.pop("curve")
        run |= {"bound": own[-1][1], "iterations": len(own)}
    return curve, runs


def sampling_error(model: Any, rows: Rows) -> float:
    """How much too high, in nats a row, the fit's own few draws put the bound of the softmax."""
    posterior = model.posterior_
    mean, variance = (part[0] for part in posterior.moments(model._encode(rows.X)))
    own = posterior.likelihood.expected_log_prob(rows.y, mean, variance, posterior.psi).value
    rng, many = np.random.default_rng(0), np.zeros(len(rows.y))
    for _ in range(DRAWS):
        f = mean + np.sqrt(variance) * rng.standard_normal(mean.shape)
        many += posterior.likelihood.log_prob(rows.y, f, posterior.psi) / DRAWS
    return float(np.mean(own - many))


def fresh(function: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """The function's value in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args, **more).result()


def grown(n_rows: int) -> dict[str, float]:
    """Processor seconds of one look at all rows, and peak memory (MiB), at n_rows x 10, M = 200.

    To be called in a new process. The look is the last step of a fit, which finds q(u) for hyper-parameters
    that are then known; from some hundred thousand rows on these are learned from a sample.
    """
    from nongauss import SparseGPRegressor

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 10))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n_rows)
    at = [time.process_time()]
    model = SparseGPRegressor(
        n_scales=1,
        n_inducing=200,
        max_iter=3,
        random_state=0,
        callbacks=[lambda _: at.append(time.process_time())],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    end = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"look": end - at[-1], "fit": end - at[0], "mib": peak}


def first_fit(data: Path) -> dict[str, float]:
    """Processor seconds of imports and of the first two default fits on boston. In a new process."""
    X, y, splits = load_splits(data, "boston")
    marks = [time.process_time()]
    from nongauss import SparseGPRegressor

    marks.append(time.process_time())
    for train, _ in splits[:2]:
        SparseGPRegressor(random_state=0).fit(X[train], y[train])
        marks.append(time.process_time())
    return dict(zip(("import", "first", "second"), np.diff(marks).tolist(), strict=True))


# ---------------------------------------------------------------- tables


def seconds_to(curve: list, bound: float) -> float | None:
    return next((seconds for seconds, value in curve if value >= bound), None)


def race(recipes: dict[str, dict], curve: list) -> dict[str, dict[str, Any]]:
    """Each recipe against our curve."""
    results: dict[str, dict[str, Any]] = {}
    for recipe, run in recipes.items():
        if "error" in run:
            results[recipe] = {"failed": run["error"].split(":")[0].split(".")[-1]}
            continue
        bound, seconds = run["curve"][best(run["curve"])][1], run["curve"][reached(run["curve"])][0]
        results[recipe] = {
            "bound": bound,
            "seconds": seconds,
            "ours": seconds_to(curve, bound - SLACK),
            "test_log_density": run["test_log_density"],
        }
    return results


def race_lines(name: str, results: dict[str, dict[str, Any]]) -> list[str]:
    lines = []
    for recipe, run in results.items():
        if "failed" in run:
            lines.append(f"| {name} | {recipe} | failed: {run['failed']} | | | | |")
            continue
        own = run["ours"]
        shown = "not reached | " if own is None else f"{own:.2f} | {run['seconds'] / own:.1f}"
        density = f"{run['test_log_density']:.3f}"
        lines.append(
            f"| {name} | {recipe} | {run['bound']:.4f} | {run['seconds']:.1f} | {shown} | {density} |"
        )
    return lines


def start_line(name: str, runs: list[dict[str, float]]) -> str:
    bounds = ", ".join(f"{run['bound']:.4f}" for run in runs)
    first = runs[0]
    numbers = f"{first['seconds']:.2f} | {first['iterations']} | {first['test_log_density']:.3f}"
    return f"| {name} | {bounds} | {numbers} |"


def tables(content: dict[str, Any]) -> list[str]:
    sets, growth, boston = content["sets"], content["growth"], content["first_fit"]
    lines = [
        "| set | recipe | its bound a row | its CPU s | ours, CPU s | ratio | its test log density |",
        "|---|---|---|---|---|---|---|",
        *(line for name, entry in sets.items() for line in race_lines(name, entry["race"])),
        "",
        "| set | default fit: bound a row, three starts | CPU s | iterations | test log density |",
        "|---|---|---|---|---|",
        *(start_line(name, entry["default"]) for name, entry in sets.items()),
    ]
    if growth:
        lines += ["", "| rows x 10, M = 200 | CPU s of one look | peak MiB of the process |", "|---|---|---|"]
        lines += [f"| {n} | {row['look']:.2f} | {row['mib']:.0f} |" for n, row in growth.items()]
    if len(growth) > 1:
        looks = np.log([row["look"] for row in growth.values()])
        slope = np.polyfit(np.log([float(n) for n in growth]), looks, 1)[0]
        lines += ["", f"Exponent of the time in the number of rows: {slope:.3f}."]
    if boston:
        shown = f"first default fit {boston['first']:.2f}, second {boston['second']:.2f}"
        lines += ["", f"boston: imports {boston['import']:.2f} CPU s, {shown}."]
    return lines


# ---------------------------------------------------------------- run


def peers_of(name: str, rows: Rows, chosen: Any) -> dict[str, dict]:
    """What the peers reach: measured now, or as it was kept."""
    kept = known_results("gp_speed_peers").get("sets", {})
    if chosen.peer_python is None:
        return kept.get(name, {})
    recipes = SVGP + (COLLAPSED if rows.likelihood == "gaussian" else ())
    kept[name] = {}
    for recipe in recipes:
        kept[name][recipe] = peer(chosen.peer_python, recipe, rows, chosen.limit)
        print(name, recipe, "done", flush=True)
        write_results("gp_speed_peers", {"m": M, "kernel": KERNEL, "limit": chosen.limit, "sets": kept})
    return kept[name]


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    options.add_argument("--peer-python", help="interpreter of an environment with the packages of peers.txt")
    options.add_argument(
        "--limit", type=float, default=40.0, help="CPU seconds after which a peer is stopped"
    )
    options.add_argument(
        "--largest", type=int, default=GROWTH[-1], help="most rows when growth is measured anew"
    )
    options.add_argument("--peers-only", action="store_true")
    chosen = options.parse_args()
    one_core()
    kept = known_results("gp_speed")
    sets = kept.get("sets", {})
    for name in chosen.sets:
        rows = prepared(name, chosen.data)
        peers = peers_of(name, rows, chosen)
        if not chosen.peers_only:
            curve, runs = our_part(rows)
            sets[name] = {"race": race(peers, curve), "default": runs}
    if chosen.peers_only:
        return
    content = {
        "sets": {name: sets[name] for name in SETS if name in sets},
        "growth": kept.get("growth", {}) | {str(n): fresh(grown, n) for n in GROWTH if n <= chosen.largest},
        "first_fit": fresh(first_fit, chosen.data) if (chosen.data / "boston").exists() else None,
    }
    write_results("gp_speed", content)
    lines = tables(content)
    write_table("gp_speed", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()

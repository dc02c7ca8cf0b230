"""Limits and extra zeros beside peers that people take: lifelines' Weibull AFT, statsmodels' zero inflation.

    pip install lifelines statsmodels
    python benchmarks/likelihoods_peers.py --data FOLDER [--sets rossi randhie] [--splits 3]

Log density of held-out rows, nats a row, over splits drawn with the seeds 0, 1, ... (two thirds of the rows,
at most 2,000, in training; at most 2,000 judged). Of a row with a limit it is the log probability of having
lasted so long. "simulated" is Weibull with a straight line in the logarithm, where the peer is right; "bent"
has a sine there. "iraq": how often a post of a political weblog has that word, by its length, its side, the
day and the weblog; the only set that needs the folder of data. Every model has its defaults. Writes
results/likelihoods_peers.json after each set, and the table in benchmarks/README.md.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from common import known_results, parser, random_splits, with_error, write_results, write_table
from scipy import sparse, stats

from nongauss import SparseGPRegressor

MOST = 2000
SURVIVAL = {
    "rossi": ("load_rossi", "week", "arrest"),
    "gbsg2": ("load_gbsg2", "time", "cens"),
    "lung": ("load_lung", "time", "status"),
}
"""Sets that lifelines ships: loader, time, whether the event was seen."""


def survival(name: str, data: Path) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Columns as numbers, times, and 1 where the event was seen."""
    if name in ("simulated", "bent"):
        rng = np.random.default_rng(0)
        X = rng.uniform(-2.0, 2.0, (1500, 2))
        bend = X[:, 0] if name == "simulated" else np.sin(2.0 * X[:, 0])
        times = np.exp(1.0 + 0.7 * bend - 0.4 * X[:, 1]) * rng.weibull(1.5, len(X))
        end = rng.exponential(8.0, len(X))
        return pd.DataFrame(X, columns=["a", "b"]), np.minimum(times, end), (times <= end).astype(int)
    from lifelines import datasets

    loader, time_name, seen_name = SURVIVAL[name]
    table = getattr(datasets, loader)().dropna()
    seen = table[seen_name].to_numpy(int)
    X = pd.get_dummies(table.drop(columns=[time_name, seen_name]), drop_first=True).astype(float)
    return X, np.maximum(table[time_name].to_numpy(float), 0.5), (seen > seen.min()).astype(int)


def of_limits(density: np.ndarray, survival_: np.ndarray, seen: np.ndarray) -> float:
    """Mean log density of events and log probability of having lasted of the others."""
    return float(np.mean(np.where(seen == 1, density, np.log(np.maximum(survival_, 1e-300)))))


def gp_times(likelihood: str) -> Callable[..., float]:
    def run(train: Any, test: Any) -> float:
        X, y, seen = train
        model = SparseGPRegressor(likelihood, random_state=0).fit(X, y, censoring=1 - seen)
        law = model.predict_distribution(test[0])
        return of_limits(law.log_prob(test[1]), law.survival(test[1]), test[2])

    return run


def weibull_aft(train: Any, test: Any) -> float:
    from lifelines import WeibullAFTFitter

    X, y, seen = train
    kept = X.columns[X.std() > 0]
    fitted = WeibullAFTFitter().fit(X[kept].assign(T=y, E=seen), "T", "E")
    scale = np.exp(fitted.params_["lambda_"]["Intercept"] + test[0][kept] @ fitted.params_["lambda_"][kept])
    shape = float(np.exp(fitted.params_["rho_"]["Intercept"]))
    law = stats.weibull_min(shape, scale=scale.to_numpy())
    return of_limits(law.logpdf(test[1]), law.sf(test[1]), test[2])


def counts(name: str, data: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns as numbers, and counts."""
    if name == "randhie":
        table = sm.datasets.randhie.load_pandas()
        return pd.DataFrame(table.exog), table.endog.to_numpy(float)
    if name == "fair":
        table = sm.datasets.fair.load_pandas()
        return pd.DataFrame(table.exog), np.round(table.endog.to_numpy(float))
    if name == "iraq":
        return word_counts(data, name)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (1500, 2))
    y = rng.poisson(np.exp(1.0 + np.sin(2.0 * X[:, 0])))
    return pd.DataFrame(X), np.where(rng.random(1500) < 1 / (1 + np.exp(-X[:, 1])), 0, y).astype(float)


def word_counts(data: Path, word: str) -> tuple[pd.DataFrame, np.ndarray]:
    """How often a post of poliblog5k has a word, and what is known of the post."""
    with np.load(data / "poliblog5k" / "poliblog5k.npz") as file:
        parts = (file["x_data"], file["x_indices"].astype(int), file["x_indptr"])
        words = sparse.csr_matrix(parts, shape=tuple(file["x_shape"]))
        y = words[:, list(file["vocab"]).index(word)].toarray().ravel()
        rows = pd.DataFrame({"right": file["rating"], "day": file["day"], "weblog": file["blog"]})
    rows["log_length"] = np.log(np.asarray(words.sum(axis=1)).ravel() - y + 1.0)
    return pd.get_dummies(rows, drop_first=True).astype(float), y.astype(float)


def gp_counts(likelihood: str) -> Callable[..., float]:
    def run(train: Any, test: Any) -> float:
        model = SparseGPRegressor(likelihood, random_state=0).fit(train[0], train[1])
        return float(np.mean(model.log_density(test[0], test[1])))

    return run


def zero_inflated(kind: str) -> Callable[..., float]:
    def run(train: Any, test: Any) -> float:
        from statsmodels.discrete.count_model import ZeroInflatedNegativeBinomialP, ZeroInflatedPoisson

        make = ZeroInflatedPoisson if kind == "poisson" else ZeroInflatedNegativeBinomialP
        mean, sd = train[0].mean(), train[0].std().replace(0.0, 1.0)
        scaled = [((part - mean) / sd).to_numpy() for part in (train[0], test[0])]
        A, B = (sm.add_constant(part, has_constant="add") for part in scaled)
        model = make(train[1], A, exog_infl=A).fit(method="bfgs", maxiter=500, disp=0)
        each = model.predict(B, exog_infl=B, which="prob", y_values=np.arange(int(test[1].max()) + 1))
        return float(np.mean(np.log(np.maximum(each[np.arange(len(B)), test[1].astype(int)], 1e-12))))

    return run


TIMES = {
    "GP Weibull": gp_times("weibull"),
    "GP gamma": gp_times("gamma"),
    "GP log-normal": gp_times("log_normal"),
    "lifelines Weibull AFT": weibull_aft,
}
ZEROS = {
    "GP zero-inflated Poisson": gp_counts("zero_inflated_poisson"),
    "GP zero-inflated negative binomial": gp_counts("zero_inflated_negative_binomial"),
    "GP hurdle negative binomial": gp_counts("hurdle_negative_binomial"),
    "statsmodels zero-inflated Poisson": zero_inflated("poisson"),
    "statsmodels zero-inflated negative binomial": zero_inflated("negative_binomial"),
}
SETS: dict[str, tuple[Callable[[str, Path], Any], dict[str, Callable[..., float]]]] = {
    **dict.fromkeys(("simulated", "bent", *SURVIVAL), (survival, TIMES)),
    **dict.fromkeys(("randhie", "fair", "iraq", "zeros, simulated"), (counts, ZEROS)),
}


def taken(rows: Any, index: np.ndarray) -> list[Any]:
    """Some rows of a table and of what is beside it."""
    return [rows[0].iloc[index].reset_index(drop=True), *(part[index] for part in rows[1:])]


def one(method: Callable[..., float], train: Any, test: Any) -> dict[str, Any]:
    """A method on a split. An exception is a result too."""
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"log_density": method(train, test), "seconds": time.process_time() - started}
    except Exception as error:  # noqa: BLE001
        return {"failed": f"{type(error).__name__}: {error}"}


def table(sets: dict[str, dict[str, list[dict[str, Any]]]]) -> list[str]:
    """A line for each method on each set; ours in bold."""
    lines = ["| set | method | log density | CPU s | failed |", "|---|---|---|---|---|"]
    for name, methods in sets.items():
        for method, every in methods.items():
            runs = [run for run in every if "failed" not in run]
            label = f"**{method}**" if method.startswith("GP ") else method
            failed = f"{len(every) - len(runs)} of {len(every)}"
            shown, seconds = "", ""
            if runs:
                each = [run["log_density"] for run in runs]
                shown = with_error(each, ".4f")
                seconds = f"{np.median([run['seconds'] for run in runs]):.1f}"
            lines.append(f"| {name} | {label} | {shown} | {seconds} | {failed} |")
    return lines


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options.add_argument("--splits", type=int, default=3)
    chosen = options.parse_args()
    sets = known_results("likelihoods_peers").get("sets", {})
    for name in chosen.sets:
        load, methods = SETS[name]
        rows = load(name, chosen.data)
        n_train = min(MOST, 2 * len(rows[1]) // 3)
        splits = random_splits(len(rows[1]), n_train, chosen.splits)
        pairs = [(taken(rows, train), taken(rows, test[:MOST])) for train, test in splits]
        sets[name] = {label: [one(method, *pair) for pair in pairs] for label, method in methods.items()}
        sets = {key: sets[key] for key in SETS if key in sets}
        write_results("likelihoods_peers", {"sets": sets})
        write_table("likelihoods_peers", table(sets))
        print("\n".join(table({name: sets[name]})[2:]), flush=True)


if __name__ == "__main__":
    main()

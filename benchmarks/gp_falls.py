"""Does the objective of a Gaussian process ever fall? Every law on parts of the published sets.

    python benchmarks/gp_falls.py --data FOLDER [--sets boston yacht] [--laws gamma poisson] [--splits 5]

100 training rows of each split, 25 inducing inputs, one scale; the target is made one of the law: shifted to
be positive, ranked to be a share, cut into counts, labels or grades. A fall is an iterate with a lower
objective than the one before, or q at the end lower than where the climb ended, by more than 1e-6 nats a row.
Fits that end without a gain being over (no numbers, a wall, a fall) are counted too. Writes
results/gp_falls.json after each set, and the table in benchmarks/README.md.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
from common import known_results, load_splits, parser, write_results, write_table
from gp_uci import AIMS
from scipy.stats import rankdata

from nongauss import SparseGPClassifier, SparseGPOrdinalClassifier, SparseGPRegressor
from nongauss.optimise.course import Status
from nongauss.sparse_gp import fit
from nongauss.sparse_gp.likelihoods import REGRESSION
from nongauss.sparse_gp.objective import log_prior

N_ROWS, ENOUGH = 100, 1e-6
HOW: dict[str, Any] = {"n_inducing": 25, "n_scales": 1, "max_iter": 40, "random_state": 0}
LABELS: dict[str, tuple[Callable[..., Any], int]] = {
    "two labels": (SparseGPClassifier, 2),
    "four labels": (SparseGPClassifier, 4),
    "five grades": (SparseGPOrdinalClassifier, 5),
    "five grades, varying": (lambda **how: SparseGPOrdinalClassifier(spread="varying", **how), 5),
}
LIMITED = ("gaussian", "student_t", "gamma", "weibull", "log_normal")
LAWS = [
    *REGRESSION,
    *(f"{law}, {what}" for law in LIMITED for what in ("censored", "selected")),
    *LABELS,
]


class Target(NamedTuple):
    """y, and what is given to `fit` beside it."""

    y: Any
    beside: dict[str, Any]


def target_of(law: str, y: np.ndarray) -> Target:
    """The target of a law from any numbers."""
    share = rankdata(y) / (len(y) + 1.0)
    if law in LABELS:
        cut = np.floor(LABELS[law][1] * share).astype(int)
        is_ordered = "grades" in law
        return Target(pd.Series(pd.Categorical(cut, ordered=True)) if is_ordered else cut, {})
    name, _, what = law.partition(", ")
    kind = REGRESSION[name]()
    if kind.takes_trials:
        return Target(np.round(20.0 * share), {"trials": np.full(len(y), 20.0)})
    z = (y - y.min()) / y.std()
    if name == "zero_one_beta":
        y = np.clip(1.4 * share - 0.2, 0.0, 1.0)
    elif kind.support == "unit":
        y = share
    elif kind.support in ("count", "whole"):
        y = np.round(np.maximum(6.0 * z - (6.0 if "zero" in name or "hurdle" in name else 0.0), 0.0))
    elif kind.support == "positive":
        y = z + 0.1
    elif "hurdle" in name:
        y = np.maximum(z - np.median(z), 0.0)
    if what == "censored":
        end = np.quantile(y, 0.7)
        return Target(np.minimum(y, end), {"censoring": np.where(y > end, 1, 0)})
    return Target(y, {"truncation": y.min() - 0.05} if what == "selected" else {})


def one(law: str, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """The largest fall of a fit a row, and how it ended. An exception is a result too."""
    settled: list[float] = []
    at_rest = fit.posterior_at

    def watched(bound: Any, params: Any) -> Any:
        if not (bound.is_exact and bound.model.likelihood.conjugate):
            best = bound.best
            value = bound.at_rest(params)[1].bound + log_prior(bound.model, params)[0]
            settled.append(best - value)
        return at_rest(bound, params)

    made = LABELS[law][0](**HOW) if law in LABELS else None
    if made is None:
        made = SparseGPRegressor(law.partition(", ")[0], hyper_parameters="best", **HOW)
    target = target_of(law, y)
    try:
        with warnings.catch_warnings(), patch.object(fit, "posterior_at", watched):
            warnings.simplefilter("ignore")
            model = made.fit(X, target.y, **target.beside)
    except Exception as error:  # noqa: BLE001
        return {"failed": f"{type(error).__name__}: {error}"}
    objective = np.asarray(model.trace_["objective"])
    falls = np.maximum(-np.diff(objective), 0.0)
    good = (Status.CONVERGED.value, Status.MAX_ITER.value)
    return {
        "climb": float(falls.max(initial=0.0)) / len(y),
        "end": max(max(settled, default=0.0), 0.0) / len(y),
        "stopped": "" if model.stop_reason_ in good else model.stop_reason_,
    }


def table(sets: dict[str, dict[str, list[dict]]]) -> list[str]:
    """A line for each set."""
    lines = [
        "| set | laws | fits | falls in the climb | falls at its end | largest, nats a row | ended otherwise "
        "| failed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, laws in sets.items():
        every = [run for runs in laws.values() for run in runs]
        runs = [run for run in every if "failed" not in run]
        climb, end = ([run[part] for run in runs] for part in ("climb", "end"))
        fell = [sum(value > ENOUGH for value in values) for values in (climb, end)]
        lines.append(
            f"| {name} | {len(laws)} | {len(every)} | {fell[0]} | {fell[1]} | {max([*climb, *end]):.1g} "
            f"| {sum(bool(run['stopped']) for run in runs)} | {len(every) - len(runs)} |"
        )
    return lines


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="+", choices=AIMS, default=list(AIMS))
    options.add_argument("--laws", nargs="+", choices=LAWS, default=LAWS)
    options.add_argument("--splits", type=int, default=5)
    chosen = options.parse_args()
    sets = known_results("gp_falls").get("sets", {})
    for name in chosen.sets:
        X, y, splits = load_splits(chosen.data, name)
        started = time.process_time()
        for law in chosen.laws:
            parts = [train[:N_ROWS] for train, _ in splits[: chosen.splits]]
            runs = [one(law, X[part], y[part]) for part in parts]
            sets.setdefault(name, {})[law] = runs
            for run in runs:
                bad = run.get("failed") or run["stopped"] or max(run["climb"], run["end"]) > ENOUGH
                if bad:
                    print(name, law, run, flush=True)
        sets = {key: sets[key] for key in AIMS if key in sets}
        write_results("gp_falls", {"sets": sets})
        write_table("gp_falls", table(sets))
        print(table({name: sets[name]})[-1], f"{time.process_time() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()

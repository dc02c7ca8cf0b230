"""Each likelihood of the Gaussian processes on rows from its own law: how far from the truth it predicts.

    python benchmarks/likelihoods_simulated.py [--laws gamma weibull] [--rows 500 3000] [--draws 3]

Two columns, uniform within 2; the first latent function is sin(2 x_1) + x_2 / 2, others are smooth as well.
The gap is the mean of log p(y) by the true law less that by the fitted one over 3,000 new rows, nats a row:
what is lost by not knowing the functions. Limits and selection are judged on rows without either. Every
model has its defaults. Writes results/likelihoods_simulated.json after each law, and the table in
benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import known_results, with_error, write_results, write_table

from nongauss import SparseGPClassifier, SparseGPOrdinalClassifier, SparseGPRegressor
from nongauss.sparse_gp.likelihoods import REGRESSION, Bernoulli, Ordinal
from nongauss.sparse_gp.likelihoods.interval import Discretised
from nongauss.sparse_gp.likelihoods.masses import _WithMasses

N_TEST = 3000
OFTEN = 0.2
"""Of selected rows the gap is also told of those new rows that had this chance to be selected."""

GOALS = {500: 0.03, 3000: 0.01}
"""Nats a row that a fit of so many rows may be off the truth."""


class Rows(NamedTuple):
    """X, y, what is given to `fit` beside them, and the latent values (N, L)."""

    X: np.ndarray
    y: np.ndarray
    beside: dict[str, np.ndarray]
    f: np.ndarray


class Law(NamedTuple):
    """A likelihood with its parameters; `shift` is added to the latent functions, `given` is said of y."""

    likelihood: str
    psi: tuple[float, ...] = ()
    shift: tuple[float, ...] = (0.0, 0.0, 0.0)
    scale: tuple[float, ...] = (1.0, 1.0, 1.0)
    given: str = ""


LAWS: dict[str, Law] = {
    "gaussian": Law("gaussian", (np.log(0.25),)),
    "heteroscedastic": Law("heteroscedastic", shift=(0.0, -1.0), scale=(1.0, 0.5)),
    "laplace": Law("laplace", (np.log(0.4),)),
    "student_t": Law("student_t", (np.log(0.4), np.log(3.0))),
    "exponential": Law("exponential"),
    "gamma": Law("gamma", (np.log(3.0),)),
    "log_normal": Law("log_normal", (np.log(0.3),)),
    "weibull": Law("weibull", (np.log(1.7),)),
    "gamma, censored": Law("gamma", (np.log(3.0),), given="censored"),
    "weibull, in brackets": Law("weibull", (np.log(1.7),), given="brackets"),
    "gamma, selected": Law("gamma", (np.log(3.0),), given="selected"),
    "gaussian, selected": Law("gaussian", (np.log(0.25),), given="selected"),
    "hurdle_gamma": Law("hurdle_gamma", (np.log(3.0),)),
    "hurdle_log_normal": Law("hurdle_log_normal", (np.log(0.3),)),
    "beta": Law("beta", (np.log(15.0),)),
    "zero_one_beta": Law("zero_one_beta", (np.log(15.0),), shift=(0.0, -1.0, 0.0)),
    "poisson": Law("poisson", shift=(1.0,)),
    "poisson_square": Law("poisson_square", shift=(2.0,)),
    "negative_binomial": Law("negative_binomial", (np.log(2.0),), shift=(1.0,)),
    "zero_inflated_poisson": Law("zero_inflated_poisson", shift=(1.0, 0.0)),
    "zero_inflated_negative_binomial": Law(
        "zero_inflated_negative_binomial", (np.log(2.0),), shift=(1.5, 0.0)
    ),
    "hurdle_poisson": Law("hurdle_poisson", shift=(1.0, -1.0)),
    "hurdle_negative_binomial": Law("hurdle_negative_binomial", (np.log(2.0),), shift=(1.0, -1.0)),
    "binomial": Law("binomial", given="trials"),
    "beta_binomial": Law("beta_binomial", (np.log(8.0),), given="trials"),
    "discretised": Law("discretised", (np.log(0.5),), scale=(2.0,)),
    "discretised_student_t": Law("discretised_student_t", (np.log(0.6), np.log(3.0)), scale=(2.0,)),
    "two labels": Law("bernoulli", scale=(2.0,)),
    "five grades": Law("ordinal", (-2.0, 0.0, 0.0, 0.0), scale=(2.0,)),
}


def functions(X: np.ndarray, n_latent: int, law: Law) -> np.ndarray:
    """The latent values (N, L)."""
    every = [np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1], np.cos(X[:, 0]) - 0.3 * X[:, 1], 0.8 * X[:, 1]]
    return np.stack([law.shift[l] + law.scale[l] * every[l] for l in range(n_latent)], axis=1)


def kind_of(law: Law) -> Any:
    """The likelihood."""
    if law.likelihood == "bernoulli":
        return Bernoulli()
    return Ordinal(n_classes=5) if law.likelihood == "ordinal" else REGRESSION[law.likelihood]()


def draw(law: Law, kind: Any, f: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """y given the latent values."""
    psi = np.array(law.psi)
    if isinstance(kind, Discretised):
        return np.round(kind.noise.draw(f, psi, rng))
    if isinstance(kind, _WithMasses):
        y = kind.rest.draw(f[:, :1], psi, rng)
        at = rng.random(len(f)) < 1.0 / (1.0 + np.exp(-f[:, 1]))
        if len(kind.masses) == 1:
            return np.where(at, 0.0, y)
        return np.where(at, rng.random(len(f)) < 1.0 / (1.0 + np.exp(-f[:, 2])), y)
    if law.likelihood in ("bernoulli", "ordinal"):
        shares = np.stack([np.exp(kind.log_prob(np.full(len(f), c), f, psi)) for c in range(kind.n_classes)])
        return (rng.random(len(f)) > np.cumsum(shares, axis=0)[:-1]).sum(axis=0).astype(float)
    return kind.draw(f, psi, rng)


def rows_of(law: Law, n_rows: int, seed: int, is_test: bool) -> tuple[Rows, Any]:
    """Rows of a law, and the likelihood with what it knows of each."""
    rng = np.random.default_rng([seed, is_test])
    kind: Any = kind_of(law)
    n_drawn = 6 * n_rows if law.given == "selected" and not is_test else n_rows
    X = rng.uniform(-2.0, 2.0, (n_drawn, 2))
    f, beside = functions(X, kind.n_latent, law), {}
    if law.given == "trials":
        beside["trials"] = rng.integers(2, 30, n_drawn).astype(float)
        kind = kind.with_trials(beside["trials"])
    y = draw(law, kind, f, rng)
    if is_test:
        return Rows(X, y, beside, f), kind
    if law.given == "censored":
        end = rng.exponential(2.0, n_rows)
        beside["censoring"] = np.where(y > end, 1, 0)
        y = np.minimum(y, end)
    if law.given == "brackets":
        low = np.floor(2.0 * y) / 2.0
        y, beside["y_upper"] = low, low + 0.5
    if law.given == "selected":
        least = least_of(kind)
        kept = np.flatnonzero(y > least)[:n_rows]
        X, y, f, beside = X[kept], y[kept], f[kept], {"truncation": np.full(len(kept), least)}
    return Rows(X, y, beside, f), kind


def least_of(kind: Any) -> float:
    """What y has to be above to be in a table of selected rows."""
    return 0.5 if kind.support == "positive" else 0.0


def predicted(law: Law, train: Rows, test: Rows) -> np.ndarray:
    """Log density (probability) of each new y by the model with its defaults."""
    if law.likelihood in ("bernoulli", "ordinal"):
        make: Callable[..., Any] = (
            SparseGPOrdinalClassifier if law.likelihood == "ordinal" else SparseGPClassifier
        )
        y = pd.Series(pd.Categorical(train.y, categories=np.arange(5.0), ordered=True))
        model = make(random_state=0).fit(train.X, y if law.likelihood == "ordinal" else train.y)
        return np.log(model.predict_proba(test.X)[np.arange(len(test.y)), test.y.astype(int)])
    model = SparseGPRegressor(law.likelihood, random_state=0).fit(train.X, train.y, **train.beside)
    beside = {"trials": test.beside["trials"]} if "trials" in test.beside else {}
    return model.predict_distribution(test.X, **beside).log_prob(test.y)


def one(law: Law, n_rows: int, seed: int) -> dict[str, float]:
    """The gap to the truth of one fit."""
    (train, _), (test, kind) = (rows_of(law, n, seed, t) for n, t in ((n_rows, False), (N_TEST, True)))
    if isinstance(kind, Discretised):
        kind = replace(kind, half=0.5)
    truth = kind.log_prob(test.y, test.f, np.array(law.psi))
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = predicted(law, train, test)
    gap = truth - found
    error = float(gap.std() / np.sqrt(len(gap)))
    seconds = time.process_time() - started
    out = {"gap": float(gap.mean()), "error": error, "truth": float(truth.mean()), "seconds": seconds}
    if law.given == "selected":
        share = 1.0 - kind.cdf(np.full(len(gap), least_of(kind)), test.f, np.array(law.psi))
        out["gap_where_often_seen"] = float(gap[share > OFTEN].mean())
    return out


def shown(values: list[float]) -> str:
    """Mean and standard error of several values, or the one there is."""
    return with_error(values, ".4f")


def table(laws: dict[str, dict[str, list[dict[str, float]]]]) -> list[str]:
    """A line a law."""
    sizes = sorted({int(n) for rows in laws.values() for n in rows})
    head = [f"gap, {n} rows (goal {GOALS.get(n, np.nan):g}) | CPU s" for n in sizes]
    lines = [f"| law | truth | {' | '.join(head)} |", "|---|---|" + "---|---|" * len(sizes)]
    for name, by_size in laws.items():
        cells = []
        for n in sizes:
            runs = by_size.get(str(n), [])
            if not runs:
                cells += ["", ""]
                continue
            gap = shown([run["gap"] for run in runs])
            often = [run["gap_where_often_seen"] for run in runs if "gap_where_often_seen" in run]
            gap += f"; {np.mean(often):.4f} where often seen" if often else ""
            cells += [gap, f"{np.median([run['seconds'] for run in runs]):.1f}"]
        truth = np.mean([run["truth"] for runs in by_size.values() for run in runs])
        lines.append(f"| {name} | {truth:.3f} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS))
    options.add_argument("--rows", nargs="+", type=int, default=[500, 3000])
    options.add_argument("--draws", type=int, default=3)
    chosen = options.parse_args()
    laws = known_results("likelihoods_simulated").get("laws", {})
    for name in chosen.laws:
        for n in chosen.rows:
            laws.setdefault(name, {})[str(n)] = [one(LAWS[name], n, seed) for seed in range(chosen.draws)]
            laws = {key: laws[key] for key in LAWS if key in laws}
            write_results("likelihoods_simulated", {"laws": laws})
            write_table("likelihoods_simulated", table(laws))
        print(table({name: laws[name]})[-1], flush=True)


if __name__ == "__main__":
    main()

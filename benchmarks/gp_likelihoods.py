"""Held-out log-loss of counts, grades, positive numbers, planted outliers and labels, peers beside.

    python benchmarks/gp_likelihoods.py --data FOLDER [--groups counts ordinal] [--sets randhie] [--splits 5]
                                        [--methods "GP gamma"]

Every set runs with defaults; the splits are drawn with the seeds 0, 1, ... (wine_red: published). Log-loss is
minus the mean log probability (density) of held-out targets, nats a row. The error is the root mean squared
one, for labels and grades the share of wrong ones. Writes results/gp_likelihoods.json after each set, and the
table in benchmarks/README.md. `--methods` runs some methods anew and leaves the others of a set as they are.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import statsmodels.api as sm
from common import known_results, load_splits, parser, random_splits, with_error, write_results, write_table
from gp_likelihoods_sets import (
    Rows,
    bike_day,
    cancer,
    graded,
    labels,
    outliers,
    positive,
    shipped,
    star98,
    star98_share,
)
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from statsmodels.miscmodels.ordinal_model import OrderedModel

from nongauss import SparseGPClassifier, SparseGPOrdinalClassifier, SparseGPRegressor

SMALLEST = 1e-6
"""Smaller probabilities count as this, for every method: a level that training lacks would cost infinity."""


Method = Callable[[Rows, Rows], dict[str, float]]


class Case(NamedTuple):
    """A set with its splits and the methods that meet on it."""

    group: str
    load: Callable[[Path], Rows]
    methods: dict[str, Method]
    n_train: float = 0.9
    """Training rows: a number, or a share below 1."""


# ---------------------------------------------------------------- methods: numbers


def ours(likelihood: str) -> Method:
    """SparseGPRegressor with one likelihood."""

    def run(train: Rows, test: Rows) -> dict[str, float]:
        more = {} if train.exposure is None else {"exposure": train.exposure}
        model = SparseGPRegressor(likelihood=likelihood, random_state=0).fit(train.X, train.y, **more)
        more = {} if test.exposure is None else {"exposure": test.exposure}
        predicted = model.predict_distribution(test.X, **more)
        return judged(np.mean(predicted.log_prob(test.y)), predicted.mean, test)

    return run


def judged(density: float, mean: np.ndarray, test: Rows) -> dict[str, float]:
    """Log-loss and root mean squared error."""
    return {"log_loss": -float(density), "error": error_of(mean, test)}


def error_of(mean: np.ndarray, test: Rows) -> float:
    """Against the noise-free target where it is known."""
    truth = test.y if test.clean is None else test.clean
    return float(np.sqrt(np.mean((mean - truth) ** 2)))


def standardised(train: Rows, test: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Columns for a linear model: an intercept in front, those that never change in training dropped."""
    kept = train.X.std(axis=0) > 0
    scaler = StandardScaler().fit(train.X[:, kept])
    A, B = (scaler.transform(rows.X[:, kept]) for rows in (train, test))
    return sm.add_constant(A, has_constant="add"), sm.add_constant(B, has_constant="add")


def poisson_glm(train: Rows, test: Rows) -> dict[str, float]:
    A, B = standardised(train, test)
    model = sm.GLM(train.y, A, family=sm.families.Poisson(), exposure=train.exposure).fit()
    mean = model.predict(B, exposure=test.exposure)
    return judged(np.mean(stats.poisson.logpmf(test.y, mean)), mean, test)


def negative_binomial_glm(train: Rows, test: Rows) -> dict[str, float]:
    """Log link, dispersion by maximum likelihood."""
    A, B = standardised(train, test)
    model = sm.NegativeBinomial(train.y, A, exposure=train.exposure).fit(disp=0, maxiter=500)
    mean = model.predict(B, exposure=test.exposure)
    size = 1.0 / max(model.params[-1], 1e-8)
    return judged(np.mean(stats.nbinom.logpmf(test.y, size, size / (size + mean))), mean, test)


def gamma_glm(train: Rows, test: Rows) -> dict[str, float]:
    """Log link, dispersion by Pearson's statistic."""
    A, B = standardised(train, test)
    model = sm.GLM(train.y, A, family=sm.families.Gamma(sm.families.links.Log())).fit()
    mean, shape = model.predict(B), 1.0 / model.scale
    return judged(np.mean(stats.gamma.logpdf(test.y, shape, scale=mean / shape)), mean, test)


def beta_glm(train: Rows, test: Rows) -> dict[str, float]:
    from statsmodels.othermod.betareg import BetaModel

    A, B = standardised(train, test)
    model = BetaModel(train.y, A).fit(disp=0)
    mean, precision = model.predict(B), float(np.exp(model.params[-1]))
    density = stats.beta.logpdf(test.y, mean * precision, (1 - mean) * precision)
    return judged(np.mean(density), mean, test)


def boosting(loss: str) -> Method:
    """Gradient boosting has no density: only its error."""

    def run(train: Rows, test: Rows) -> dict[str, float]:
        model = HistGradientBoostingRegressor(loss=loss, random_state=0).fit(train.X, train.y)
        return {"error": error_of(model.predict(test.X), test)}

    return run


# ---------------------------------------------------------------- methods: labels and grades


def ours_labels(train: Rows, test: Rows) -> dict[str, float]:
    model = SparseGPClassifier(random_state=0).fit(train.X, train.y)
    return judged_labels(model.predict_proba(test.X), model.classes_, test)


def ours_grades(train: Rows, test: Rows) -> dict[str, float]:
    """Told of all levels, as an ordered category is."""
    levels = np.arange(1 + max(train.y.max(), test.y.max()))
    y = pd.Series(pd.Categorical(train.y, categories=levels, ordered=True))
    model = SparseGPOrdinalClassifier(random_state=0).fit(train.X, y)
    return judged_labels(model.predict_proba(test.X), model.classes_, test)


def sklearn_labels(model: Any) -> Method:
    def run(train: Rows, test: Rows) -> dict[str, float]:
        model.fit(train.X, train.y)
        return judged_labels(model.predict_proba(test.X), model.classes_, test)

    return run


def cumulative_logistic(train: Rows, test: Rows) -> dict[str, float]:
    """OrderedModel of statsmodels."""
    A, B = (part[:, 1:] for part in standardised(train, test))
    found = np.unique(train.y)
    y = pd.Series(pd.Categorical(train.y, categories=found, ordered=True))
    model = OrderedModel(y, A, distr="logit").fit(method="bfgs", disp=0, maxiter=500)
    return judged_labels(np.asarray(model.predict(B)), found, test)


def judged_labels(probabilities: np.ndarray, classes: np.ndarray, test: Rows) -> dict[str, float]:
    """Log-loss and share of wrong labels."""
    classes = np.asarray(classes, dtype=float)
    given = np.where(classes == test.y[:, None], probabilities, 0.0).sum(axis=1)
    wrong = classes[probabilities.argmax(axis=1)] != test.y
    loss = -np.mean(np.log(np.maximum(given, SMALLEST)))
    return {"log_loss": float(loss), "error": float(np.mean(wrong))}


# ---------------------------------------------------------------- which meet where

COUNT: dict[str, Method] = {
    "GP negative binomial": ours("negative_binomial"),
    "GP Poisson": ours("poisson"),
    "GLM negative binomial": negative_binomial_glm,
    "GLM Poisson": poisson_glm,
}
LABEL_PEERS: dict[str, Method] = {
    "logistic regression": sklearn_labels(make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))),
    "gradient boosting": sklearn_labels(HistGradientBoostingClassifier(random_state=0)),
}
GRADE: dict[str, Method] = {"GP ordinal": ours_grades, "OrderedModel": cumulative_logistic, **LABEL_PEERS}
LABEL: dict[str, Method] = {"GP logistic": ours_labels, **LABEL_PEERS}
POSITIVE: dict[str, Method] = {
    "GP gamma": ours("gamma"),
    "GP exponential": ours("exponential"),
    "GP Gaussian": ours("gaussian"),
    "GLM gamma": gamma_glm,
}
ROBUST: dict[str, Method] = {
    "GP Student-t": ours("student_t"),
    "GP Laplace": ours("laplace"),
    "GP Gaussian": ours("gaussian"),
    "boosting, absolute error": boosting("absolute_error"),
}
BINNED = {
    "cg_diabetes": 30, "cg_pyrimidines": 50, "cg_triazines": 100, "cg_wisconsin": 130, "cg_autompg": 200,
    "abalone": 1000,
}  # fmt: skip
"""Sets that are cut into levels, and their number of training rows (Chu and Ghahramani 2005)."""

CASES: dict[str, Case] = {
    "bike_day": Case("counts", bike_day, COUNT),
    "randhie": Case("counts", shipped("randhie"), COUNT),
    "star98": Case("counts", star98, COUNT),
    "cancer": Case("counts", cancer, COUNT),
    "cpunish": Case("counts", shipped("cpunish"), COUNT),
    "committee": Case("counts", shipped("committee"), COUNT),
    "wine_red": Case("ordinal", graded("wine_red"), GRADE),
    "esl": Case("ordinal", graded("esl"), GRADE),
    "era": Case("ordinal", graded("era"), GRADE),
    **{
        f"{name}, {levels} levels": Case("ordinal", graded(name, levels), GRADE, n_train)
        for name, n_train in BINNED.items()
        for levels in (5, 10)
    },
    "concrete": Case("positive", positive("concrete"), POSITIVE),
    "yacht": Case("positive", positive("yacht"), POSITIVE),
    "scotland": Case("positive", shipped("scotland"), POSITIVE),
    "strikes": Case("positive", shipped("strikes"), POSITIVE),
    "star98 share": Case(
        "shares",
        star98_share,
        {"GP beta": ours("beta"), "GP Gaussian": ours("gaussian"), "beta regression": beta_glm},
    ),
    "friedman, 10 % outliers": Case("robust", outliers, ROBUST),
    "breast cancer": Case("labels", labels(load_breast_cancer), LABEL),
    "digits": Case("labels", labels(load_digits), LABEL),
}


# ---------------------------------------------------------------- run


def splits_of(name: str, case: Case, rows: Rows, data: Path, count: int) -> list:
    if name == "wine_red":
        return load_splits(data, name)[2][:count]
    n_train = int(case.n_train if case.n_train >= 1 else case.n_train * len(rows.y))
    return random_splits(len(rows.y), n_train, count)


def one(method: Method, train: Rows, test: Rows) -> dict[str, Any]:
    """A method on a split. An exception is a result too."""
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result: dict[str, Any] = method(train, test)
    except Exception as error:  # noqa: BLE001
        return {"failed": f"{type(error).__name__}: {error}"}
    return result | {"seconds": time.process_time() - started}


def table(sets: dict[str, dict[str, list[dict]]]) -> list[str]:
    """A line for each method on each set; ours in bold."""
    lines = ["| set | method | log-loss | error | CPU s | failed |", "|---|---|---|---|---|---|"]
    for name, methods in sets.items():
        for method, every in methods.items():
            runs = [run for run in every if "failed" not in run]
            label = f"**{method}**" if method.startswith("GP ") else method
            failed = f"{len(every) - len(runs)} of {len(every)}"
            if not runs:
                lines.append(f"| {name} | {label} | | | | {failed} |")
                continue
            error = np.mean([run["error"] for run in runs])
            seconds = np.median([run["seconds"] for run in runs])
            losses = [run["log_loss"] for run in runs if "log_loss" in run]
            shown = with_error(losses, ".3f") if losses else ""
            lines.append(f"| {name} | {label} | {shown} | {error:.4g} | {seconds:.2f} | {failed} |")
    return lines


def main() -> None:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--groups", nargs="+", choices=sorted({case.group for case in CASES.values()}))
    options.add_argument("--sets", nargs="+", choices=CASES)
    options.add_argument("--splits", type=int, default=5)
    options.add_argument("--methods", nargs="+", metavar="METHOD")
    chosen = options.parse_args()
    sets = known_results("gp_likelihoods").get("sets", {})
    for name, case in CASES.items():
        if (chosen.sets and name not in chosen.sets) or (chosen.groups and case.group not in chosen.groups):
            continue
        rows = case.load(chosen.data)
        splits = [
            (rows.take(train), rows.take(test))
            for train, test in splits_of(name, case, rows, chosen.data, chosen.splits)
        ]
        before = sets.get(name, {}) if chosen.methods else {}
        sets[name] = {
            label: before[label]
            if label in before and label not in chosen.methods
            else [one(method, *split) for split in splits]
            for label, method in case.methods.items()
        }
        sets = {key: sets[key] for key in CASES if key in sets}
        write_results("gp_likelihoods", {"sets": sets})
        write_table("gp_likelihoods", table(sets))
        print("\n".join(table({name: sets[name]})[2:]), flush=True)


if __name__ == "__main__":
    main()

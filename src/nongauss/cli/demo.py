"""`nongauss demo`: counts, which a Gaussian model predicts below zero, and what the verdict says of both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nongauss.cli.judge import A_FIFTH, Outcome, part_of
from nongauss.cli.read import Table, prepare
from nongauss.cli.split import split_rows
from nongauss.report.evidence import difference
from nongauss.report.judgement import scored
from nongauss.report.scoring import NumberScores, fit_timed, joined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TARGET = "calls"
TITLE = "Calls to a service desk"
GAUSSIAN = "the same with Gaussian noise"
CAPTION = (
    "90 % intervals of both models over a working day, with the rows of working days: with Gaussian noise "
    "the intervals extend below zero at night and are too low at the peak."
)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def calls(n: int = 1000, seed: int = 0) -> pd.DataFrame:
    r"""Calls in an hour at a service desk (n rows), simulated from a distribution that no model knows.

    \log rate = 0.6 + peak(hour, weekend) + 0.035 max(T - 18, 0) + 0.03 max(2 - T, 0), with
    peak = 1.5 cos(2 pi (hour - 13) / 24) + 0.7 cos(2 pi (hour - 9) / 12) on working days and
    1.3 cos(2 pi (hour - 20) / 24) at weekends; T ~ N(12, 9^2) degrees. Calls are Poisson with that rate times
    a gamma variable of mean 1 and variance 1/3.
    """
    rng = np.random.default_rng(seed)
    hour, day = rng.integers(0, 24, n), rng.choice(_DAYS, n)
    temperature = np.round(12 + 9 * rng.standard_normal(n), 1)
    turn = 2 * np.pi / 24
    working = 1.5 * np.cos(turn * (hour - 13)) + 0.7 * np.cos(2 * turn * (hour - 9))
    peak = np.where(np.isin(day, ["Sat", "Sun"]), 1.3 * np.cos(turn * (hour - 20)), working)
    weather = 0.035 * np.maximum(temperature - 18, 0) + 0.03 * np.maximum(2 - temperature, 0)
    rate = np.exp(0.6 + peak + weather) * rng.gamma(3.0, 1 / 3, n)
    columns = {"hour": hour, "day": day, "temperature": temperature, TARGET: rng.poisson(rate)}
    return pd.DataFrame(columns)


def demo_table(seed: int = 0) -> Table:
    """The calls as `nongauss fit` takes them."""
    return prepare(calls(seed=seed), TARGET, "sparse_gp", source="simulated calls")


def beside_gaussian(outcome: Outcome, table: Table, seed: int) -> tuple[Outcome, Any]:
    """The outcome with a Gaussian rival: its figures, and a sentence of the verdict; and that rival."""
    from nongauss.sparse_gp.estimator import SparseGPRegressor

    whole = part_of(outcome.judged, table)
    alike: dict[str, Any] = {
        "n_inducing": len(outcome.judged.posterior_.Z),
        "n_scales": 1,
        "random_state": seed,
    }
    plan = split_rows(table, A_FIFTH, seed)
    found, seconds = [], 0.0
    for train, test in plan.folds:
        part = whole.take(train)
        rival, seconds = fit_timed(SparseGPRegressor(**alike), part.X, part.y)
        found.append(scored(rival, whole.take(test)))
    scores = joined(found)
    assert isinstance(scores, NumberScores)
    assert outcome.scores is not None
    gain = difference(outcome.scores.log_score, scores.log_score, plan.dependence, baseline=GAUSSIAN)
    word = {1: "Better than", 0: "No different from", -1: "Worse than"}[gain.sign]
    times = f"{100 * (np.exp(gain.mean) - 1):.0f} % more probability for the observed values"
    said = (
        f"{word} {GAUSSIAN}: {gain.mean:+.2f} ± {gain.se:.2g} nats a row ({times}); its 90 % intervals "
        f"extend below zero {TARGET} in {100 * np.mean(scores.lower < 0):.0f} % of the rows."
    )
    metrics = outcome.metrics | {GAUSSIAN: scores.figures(seconds)}
    verdict = replace(outcome.verdict, sentences=[*outcome.verdict.sentences, said])
    return replace(outcome, metrics=metrics, verdict=verdict), rival


def picture(model: Any, rival: Any, table: Table) -> Figure:
    """The 90 % intervals of both models over the hours of a working day, with the rows of working days."""
    from matplotlib.figure import Figure

    from nongauss.report.plots.style import BLUE, GREY, INK, finish, key_above

    rows = table.X.assign(**{TARGET: table.y})
    rows = rows[~rows["day"].isin(["Sat", "Sun"])]
    hours = np.arange(24)
    grid = pd.DataFrame({"hour": hours, "day": "Wed", "temperature": 12.0})
    figure = Figure(figsize=(4.8, 5.4))
    axes = figure.subplots(2, 1, sharex=True, sharey=True)
    figure.subplots_adjust(left=0.13, right=0.97, bottom=0.09, top=0.9, hspace=0.22)
    for ax, each, title in zip(axes, (rival, model), ("Gaussian noise", "Counts (chosen)"), strict=True):
        law = each.predict_distribution(grid)
        lower, upper = law.interval(0.9).T
        ax.scatter(rows["hour"], rows[TARGET], s=8, color=GREY, linewidth=0, alpha=0.7, label="row")
        ax.fill_between(hours, lower, upper, color=BLUE, alpha=0.25, linewidth=0, label="90 % interval")
        ax.plot(hours, law.mean, color=BLUE, label="mean")
        ax.axhline(0, color=INK, linewidth=0.6)
        finish(ax, title, "", TARGET)
    axes[1].set_xlabel("hour of a working day")
    key_above(axes[0], 3)
    return figure

"""Draws the pictures of the pages, from data that scikit-learn ships or that is made here.

    python docs/figures/make.py [NAME ...]

Each function in `FIGURES` draws one picture, `docs/figures/NAME.png`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

import nongauss
from nongauss.report import CoefficientDisplay, FactorNetworkDisplay, RectangleDisplay

FOLDER = Path(__file__).parent
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"


def tidy(ax, title: str, x: str = "", y: str = "") -> None:
    """Title at the left, names of the axes, no box."""
    ax.set(xlabel=x, ylabel=y)
    ax.set_title(title, loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)


def demo() -> Figure:
    """The picture of `nongauss demo`: counts, and what Gaussian noise makes of them."""
    from nongauss.cli.demo import beside_gaussian, demo_table, picture
    from nongauss.cli.judge import fit_and_judge

    table = demo_table()
    model = nongauss.SparseGPRegressor(**table.choice.settings, random_state=0)
    outcome, rival = beside_gaussian(fit_and_judge(model, table), table, 0)
    return picture(outcome.judged, rival, table)


def tggm() -> Figure:
    """A spread that changes along x: 90 % and 50 % bands of a TGGM, with the rows."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, 800)
    y = np.sin(1.5 * x) + (0.05 + 0.12 * x) * rng.standard_normal(800)
    model = nongauss.TGGMRegressor(random_state=0).fit(x[:, None], y)
    grid = np.linspace(0, 6, 300)
    distribution = model.predict_distribution(grid[:, None])
    figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    ax.scatter(x, y, s=6, color=GREY, linewidth=0, alpha=0.6)
    for coverage, alpha in ((0.9, 0.2), (0.5, 0.35)):
        lower, upper = distribution.interval(coverage).T
        ax.fill_between(
            grid, lower, upper, color=BLUE, alpha=alpha, linewidth=0, label=f"{100 * coverage:.0f} % interval"
        )
    ax.plot(grid, distribution.mean, color=BLUE, label="mean")
    ax.legend(frameon=False, fontsize="small", loc="upper left")
    tidy(ax, "TGGMRegressor: the width of an interval follows the rows", "x", "y")
    return figure


def tggm_rectifier() -> Figure:
    """Figure 1 of the TGGM paper: the mean of a Gaussian cut at zero, beside the rectifier."""
    from scipy.stats import truncnorm

    location = np.linspace(-5, 5, 401)
    figure, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
    for sd, color in ((2.0, BLUE), (1.0, ORANGE), (0.5, "#009E73"), (0.1, GREY)):
        mean = truncnorm.mean(-location / sd, np.inf, location, sd)
        ax.plot(location, mean, color=color, label=f"s = {sd:g}")
    ax.plot(location, np.maximum(location, 0.0), "k:", label="max(0, \N{GREEK SMALL LETTER MU})")
    ax.legend(frameon=False, fontsize="small", loc="upper left")
    tidy(ax, "Mean of a hidden unit", "\N{GREEK SMALL LETTER MU}")
    return figure


def sparse_gp() -> Figure:
    """Counts by a negative binomial likelihood, and what a Gaussian one makes of them."""
    rng = np.random.default_rng(0)
    hour = rng.uniform(0, 24, 300)
    rate = np.exp(2.2 * np.sin((hour - 9) / 24 * 2 * np.pi) + 0.8)
    calls = rng.poisson(rng.gamma(4.0, rate / 4.0))
    grid = np.linspace(0, 24, 400)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
    for ax, likelihood in zip(axes, ("gaussian", "negative_binomial"), strict=True):
        model = nongauss.SparseGPRegressor(likelihood=likelihood, random_state=0)
        distribution = model.fit(hour[:, None], calls).predict_distribution(grid[:, None])
        lower, upper = distribution.interval(0.9).T
        ax.scatter(hour, calls, s=8, color=GREY, linewidth=0, alpha=0.7)
        ax.fill_between(grid, lower, upper, color=BLUE, alpha=0.25, linewidth=0, label="90 % interval")
        ax.plot(grid, distribution.mean, color=BLUE, label="mean")
        ax.axhline(0, color="black", linewidth=0.6)
        tidy(ax, f'likelihood="{likelihood}"', "hour")
    axes[0].set_ylabel("calls")
    axes[1].legend(frameon=False, fontsize="small", loc="upper left")
    return figure


def rectangle() -> Figure:
    """The irises in three clusters that are rectangles."""
    iris = load_iris(as_frame=True)
    model = nongauss.RectangleMixture(3, random_state=0).fit(iris.data)
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    RectangleDisplay.from_estimator(model, iris.data, ax=ax)
    return figure


def harmonium() -> Figure:
    """Features of handwritten digits: how each one moves the log-odds of each pixel."""
    X, _ = load_digits(return_X_y=True)
    model = nongauss.Harmonium(random_state=0).fit((X // 8 > 0).astype(int))
    features = np.zeros((model.n_active_, 64))  # pixels that never change have no weights
    features[:, np.ptp(X // 8, axis=0) > 0] = model.components_[: model.n_active_]
    figure, axes = plt.subplots(2, 10, figsize=(7, 1.7), layout="constrained")
    end = np.abs(features).max()
    for ax in axes.flat:
        ax.axis("off")
    for ax, feature in zip(axes.flat, features, strict=False):
        ax.imshow(feature.reshape(8, 8), cmap="RdBu_r", vmin=-end, vmax=end)
    figure.suptitle(f"Harmonium: {model.n_active_} features of 1,797 digits", x=0.01, ha="left", fontsize=10)
    return figure


def rank_factor() -> Figure:
    """Breast cancer: what the classifier makes of each factor, and the columns behind the factors."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = nongauss.RankFactorClassifier(5, random_state=0).fit(X, y)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), width_ratios=(2, 3), layout="constrained")
    CoefficientDisplay.from_estimator(model, ax=axes[0])
    FactorNetworkDisplay.from_estimator(model, n_columns=4, ax=axes[1])
    return figure


FIGURES = (demo, tggm, tggm_rectifier, sparse_gp, rectangle, harmonium, rank_factor)


def main() -> None:
    """Draw what is asked for, or everything."""
    chosen = sys.argv[1:] or [draw.__name__ for draw in FIGURES]
    for draw in FIGURES:
        if draw.__name__ in chosen:
            draw().savefig(FOLDER / f"{draw.__name__}.png", dpi=110)
            plt.close("all")


if __name__ == "__main__":
    main()

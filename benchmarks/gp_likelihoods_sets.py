"""The sets of `gp_likelihoods.py`: counts, grades, positive numbers, planted outliers and labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import load_table
from sklearn.datasets import make_friedman1
from statsmodels import datasets


class Rows(NamedTuple):
    """Some rows of a set. `exposure` for counts; `clean` is the target before noise, where that is known."""

    X: np.ndarray
    y: np.ndarray
    exposure: np.ndarray | None = None
    clean: np.ndarray | None = None

    def take(self, index: np.ndarray) -> Rows:
        """Some of them."""
        return Rows(*(None if part is None else part[index] for part in self))


def numbers(table: pd.DataFrame) -> np.ndarray:
    """Columns as numbers, text as indicators, without those that never change."""
    X = pd.get_dummies(table, drop_first=True).to_numpy(float)
    return X[:, X.std(axis=0) > 0]


def bike_day(data: Path) -> Rows:
    table, y = load_table(data, "bike_day")
    return Rows(numbers(table.drop(columns="date")), y.astype(float))


def shipped(name: str) -> Callable[[Path], Rows]:
    """A set that statsmodels ships."""

    def load(_: Path) -> Rows:
        table = getattr(datasets, name).load_pandas()
        return Rows(numbers(pd.DataFrame(table.exog)), table.endog.to_numpy(float))

    return load


def cancer(_: Path) -> Rows:
    """Deaths in counties with their population at risk; the only column is the log of the population."""
    table = datasets.cancer.load_pandas()
    population = table.exog.to_numpy(float).ravel()
    return Rows(np.log(population)[:, None], table.endog.to_numpy(float), population)


def star98(_: Path) -> Rows:
    """Pupils above the median among all pupils of a district."""
    table = datasets.star98.load_pandas()
    both = table.endog.to_numpy(float)
    return Rows(numbers(table.exog), both[:, 0], both.sum(axis=1))


def star98_share(data: Path) -> Rows:
    rows = star98(data)
    return Rows(rows.X, rows.y / rows.exposure)


def graded(name: str, n_levels: int | None = None) -> Callable[[Path], Rows]:
    """A target that is ordinal, or is cut into levels of equal length as in Chu and Ghahramani (2005)."""

    def load(data: Path) -> Rows:
        table, y = load_table(data, name)
        if n_levels is None:
            return Rows(numbers(table), np.unique(y, return_inverse=True)[1].astype(float))
        inner = np.linspace(y.min(), y.max(), n_levels + 1)[1:-1]
        return Rows(numbers(table), np.digitize(y, inner).astype(float))

    return load


def positive(name: str) -> Callable[[Path], Rows]:
    def load(data: Path) -> Rows:
        table, y = load_table(data, name)
        return Rows(numbers(table), y.astype(float))

    return load


def outliers(_: Path) -> Rows:
    """Friedman's function, noise of 0.2 standard deviations; y of one row in ten moves by a normal of 5."""
    X, y = make_friedman1(2000, n_features=10, noise=1.0, random_state=0)
    _, clean = make_friedman1(2000, n_features=10, noise=0.0, random_state=0)
    y, clean = (y - clean.mean()) / clean.std(), (clean - clean.mean()) / clean.std()
    rng = np.random.default_rng(0)
    hit = rng.random(len(y)) < 0.1
    return Rows(X, y + hit * rng.normal(0.0, 5.0, len(y)), clean=clean)


def labels(source: Callable[..., Any]) -> Callable[[Path], Rows]:
    def load(_: Path) -> Rows:
        X, y = source(return_X_y=True)
        return Rows(X.astype(float), y.astype(float))

    return load

"""What a candidate is: how a law is made and judged, and which tables it is for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nongauss.predictive.distribution import FloatArray

Build = Callable[[int, int], Any]
"""How an estimator is made, from a seed and the number of rows that it is to be fitted to."""


@dataclass(frozen=True)
class Candidate:
    """One law that may be chosen.

    `build(seed, n_rows)` gives an estimator, `quick` a hasty one for the screen; `left_out(estimator, X, y,
    weight)` what the fitted one says of each of its rows without so much weight of that row (a law, or
    `ClassShares`);
    `n_parameters(estimator)` how many numbers the rows chose beside, each of which flatters by about a nat in
    all.

    `gain_of_average(estimator, X, y, weight)`: nats a row by which the fitted one is better than the part of
    it that `left_out` has at each row.

    `resume(estimator, former)` lets a fit begin where that of `former`, of other rows, has ended.
    `cost`: seconds for 500 rows, about. `local`: may its residuals have a local law? `is_floor`: is it so
    cheap that it is always there? `is_constant`: does it look at no column? `arcsinh`: does it see strongly
    skewed columns through arcsinh? `group_effects`: do the groups of the column of labels with most of them
    have effects of their own? `family`: which family it is of, since laws of one family gain alike from more
    rows and others may not. `alike`: of those that share this word, one model of inputs seen in several ways,
    the screen keeps the best alone. `past_screen`: is the best of those that are alike fitted to all rows,
    whatever the screen says? `most_rows`: it is left out of larger tables; `fewest_rows`, `fewest_cells`
    (rows times columns): of smaller ones; `most_rows_a_column`: of those with more rows for each column.
    `takes_limits`: are `censoring` and `y_upper` for it?
    """

    name: str
    kinds: frozenset[str]
    build: Build
    left_out: Callable[..., Any]
    n_parameters: Callable[[Any], float]
    cost: float = 1.0
    quick: Build | None = None
    gain_of_average: Callable[..., float] | None = None
    resume: Callable[[Any, Any], None] | None = None
    family: str = "sparse_gp"
    alike: str = ""
    local: bool = True
    is_floor: bool = False
    is_constant: bool = False
    arcsinh: bool = False
    group_effects: bool = False
    past_screen: bool = False
    most_rows: float = np.inf
    fewest_rows: int = 2
    fewest_cells: int = 0
    most_rows_a_column: float = np.inf
    takes_limits: bool = False

    def suits(self, n_rows: int, n_columns: int) -> bool:
        """Is it for tables of so many rows and encoded columns?"""
        is_large = self.fewest_rows <= n_rows and self.fewest_cells <= n_rows * n_columns
        return is_large and n_rows <= min(self.most_rows, self.most_rows_a_column * n_columns)


class ClassShares(NamedTuple):
    """Probabilities (N, C) of the classes (C,) of a model, which may have others than the whole."""

    classes: Any
    probabilities: FloatArray

    def __getitem__(self, rows: Any) -> Any:
        """The probabilities of some of the rows, by a slice; by a number, as of any tuple."""
        if isinstance(rows, slice):
            return ClassShares(self.classes, self.probabilities[rows])
        return tuple.__getitem__(self, rows)

    def of(self, classes: Any) -> FloatArray:
        """The probabilities of these classes, in their order; every one above 0, rows summing to 1."""
        place = pd.Index(self.classes).get_indexer(pd.Index(classes))
        found = np.where(place >= 0, self.probabilities[:, place], 0.0)
        found = np.maximum(found, SMALLEST_SHARE)
        shares: FloatArray = found / found.sum(axis=1, keepdims=True)
        return shares


SMALLEST_SHARE = 1e-9
"""Least probability of a class."""

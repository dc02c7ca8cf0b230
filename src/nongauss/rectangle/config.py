"""What a user chooses: the parameters with what they may be, and the frozen settings of one fit."""

from __future__ import annotations

import numbers
import os
from typing import Any, NamedTuple

import numpy as np

from nongauss.estimator.base import Interval, StrOptions

KINDS = ("student_t", "full", "diagonal", "shared")
"""Distributions of the numeric structure columns within a cluster."""

PRIOR_STRENGTH = 100.0
RULE_TOLERANCE = 0.01
N_INIT = 10
MAX_ITER = 200
TOL = 1e-5

CONSTRAINTS: dict[str, list[Any]] = {
    "n_clusters": [StrOptions({"auto"}), Interval(numbers.Integral, 1, None, closed="left")],
    "rule_columns": ["array-like", str, numbers.Integral, None],
    "structure_columns": ["array-like", str, numbers.Integral, None],
    "structure": [StrOptions(set(KINDS))],
    "scaling": [StrOptions({"standard", "rank"})],
    "prior_rules": [dict, None],
    "prior_strength": [Interval(numbers.Real, 0, None, closed="neither")],
    "rule_tolerance": [Interval(numbers.Real, 0, 1, closed="left")],
    "rule_precision": [StrOptions({"auto"}), numbers.Integral, None],
    "outliers": ["boolean"],
    "n_init": [Interval(numbers.Integral, 1, None, closed="left")],
    "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
    "tol": [Interval(numbers.Real, 0, None, closed="left")],
    "callbacks": ["array-like", None],
    "checkpoint": [str, os.PathLike, None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
}
"""What scikit-learn is told of the parameters of `RectangleMixture`."""

MOST_ROWS = 20_000
"""Most distinct rows that a model is learned from."""

STEEPNESS = (5.0, 10.0, 20.0)
"""Slopes a of the soft bounds, from soft to hard, per standard deviation."""

CANDIDATES = 4
"""Starts that are looked at for each one that is begun with."""


class Stage(NamedTuple):
    """A part of the course: slope, most iterations, most rows, and the share of `n_init` kept at its end."""

    slope: float
    n_iter: int
    most_rows: int
    kept: float


STAGES = (
    Stage(STEEPNESS[0], 3, 500, 1.0),
    Stage(STEEPNESS[0], 8, 1000, 0.4),
    Stage(STEEPNESS[1], 8, 2000, 0.2),
)
"""What the starts go through before those left are compared on all rows, at the steepest slope."""

COMPARED = 8
"""Most iterations of the starts left on all rows, before the best of them is brought to its end."""


class RectangleRecipe(NamedTuple):
    """How boxes and structure are fitted: parameters of `RectangleMixture` by name, and the seed."""

    n_clusters: int
    structure: str
    n_init: int
    max_iter: int
    tol: float
    seed: int


class RuleWording(NamedTuple):
    """How rules are printed: digits of the bounds, and the share of rows that fewer conditions may cost."""

    precision: str | int | None
    tolerance: float

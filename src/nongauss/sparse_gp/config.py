"""What a user of the family chooses: constraints of the parameters, the frozen settings, and the defaults."""

from __future__ import annotations

import numbers
import os
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from nongauss.estimator.base import Interval, StrOptions
from nongauss.sparse_gp.kernels import Kernel, Sum, parse
from nongauss.sparse_gp.likelihoods import Likelihood

CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [str, Kernel],
    "n_scales": [StrOptions({"auto"}), Interval(numbers.Integral, 1, None, closed="left")],
    "n_inducing": [StrOptions({"auto"}), Interval(numbers.Integral, 1, None, closed="left")],
    "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
    "tol": [Interval(numbers.Real, 0, None, closed="left")],
    "callbacks": ["array-like", None],
    "checkpoint": [str, os.PathLike, None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
}

MANY_INDUCING, FEW_INDUCING = 500, 100
"""Inducing inputs by default: with Gaussian noise, and with other likelihoods."""

MOST_EXACT = 1000
"""Distinct rows up to which Gaussian noise is treated exactly by default."""

FINE_SCALES, COARSE_SCALES = 4, 2
"""Terms of the sum that is averaged with one function: where every row is an inducing input, and else. Four
predict rows left out of training better than two or three, at a price."""


@dataclass(frozen=True)
class GPRecipe:
    """How models are fitted; see the parameters of `SparseGPRegressor`. None stands for "auto"."""

    kernel: Kernel
    n_scales: int | None = None
    n_inducing: int | None = None
    max_iter: int = 400
    tol: float = 1e-3
    n_components: int = 1

    @classmethod
    def of(cls, estimator: Any, n_components: int = 1) -> GPRecipe:
        """The settings of an estimator by their names. Raises InputError for a text that is no kernel."""
        named = {field.name: getattr(estimator, field.name) for field in fields(cls)[:-1]}
        chosen: dict[str, Any] = {name: None if value == "auto" else value for name, value in named.items()}
        if isinstance(estimator.kernel, str):
            chosen["kernel"] = parse(estimator.kernel)
        return cls(**chosen, n_components=n_components)

    def kernels(self, likelihood: Likelihood, every_row: bool) -> list[Kernel]:
        """The kernel of each model that is fitted. `every_row`: is each row an inducing input?"""
        kernel = self.kernel
        if self.n_scales is not None:
            return [Sum((kernel,) * self.n_scales) if self.n_scales > 1 else kernel]
        if not likelihood.conjugate or isinstance(kernel, Sum):
            return [kernel]
        return [kernel, Sum((kernel,) * (FINE_SCALES if every_row else COARSE_SCALES))]

    def most_inducing(self, likelihood: Likelihood) -> int:
        """Number of inducing inputs where there are many rows."""
        if self.n_inducing is not None:
            return self.n_inducing
        return MANY_INDUCING if likelihood.conjugate else FEW_INDUCING

    def inducing_for(self, likelihood: Likelihood, n_rows: int) -> int:
        """Number of inducing inputs for so many distinct rows."""
        if self.n_inducing is None and likelihood.conjugate and n_rows <= MOST_EXACT:
            return n_rows
        return self.most_inducing(likelihood)

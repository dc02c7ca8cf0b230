"""A user's own likelihood: one function log_prob(y, f), and everything else follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nongauss.core.errors import InputError
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.law import GridDistribution
from nongauss.sparse_gp.likelihoods.base import FloatArray, Likelihood, column
from nongauss.sparse_gp.likelihoods.support import SUPPORTS, first_bad

LogProb = Callable[[Any, Any], Any]

GRIDS = ("real", "positive", "unit", "count")
"""Supports of which a law can be made from log p alone."""

_LOWEST = -1e100


@dataclass(frozen=True)
class Custom(Likelihood):
    """log p(y | f) by a function of two arrays that broadcast; y in its own units, f about 0.

    `function(y, f)`, called with y (N, 1) and f (N, Q), gives (N, Q), finite or -inf, normalised over y.
    `support`: the values that y can take, "real", "positive", "unit" or "count". Nothing else is needed (see
    `Likelihood.own_expectation`). Functions of NumPy and of jax.numpy (in 64 bits) both work. A model with
    one is pickled if its function can be, but cannot be saved to a file, which holds no code.
    """

    function: LogProb
    support: str = "real"

    name = "custom"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.support not in GRIDS:
            raise InputError(f"support must be one of {', '.join(map(repr, GRIDS))}, got {self.support!r}.")

    def check(self, y: FloatArray) -> None:
        """In the support; and the function has finite values of the right shape near f = 0."""
        rule, is_bad = SUPPORTS[self.support]
        first_bad(y, is_bad(y), self.name, rule, "correct it, or give another support")
        f = np.tile([-0.1, 0.0, 0.1], (len(y), 1))
        values = self._values(column(y), f)
        bad = values <= _LOWEST
        if bad.any():
            row, at = np.argwhere(bad)[0]
            raise InputError(
                f"log_prob(y, f) must be finite near f = 0, got -inf at y = {y[row]:g} in row {row} "
                f"(counted from 0), f = {f[row, at]:g}; leave that row out, or centre f at a usual value."
            )

    def log_prob(self, y: FloatArray, f: FloatArray, psi: FloatArray) -> FloatArray:
        """The function itself."""
        return self._values(y, f[..., 0])

    def _values(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """The function's values, -inf raised to a number. InputError for a wrong shape, NaN or +inf."""
        with np.errstate(all="ignore"):
            values = np.asarray(self.function(y, f), dtype=np.float64)
        if values.shape != np.broadcast_shapes(y.shape, f.shape):
            raise InputError(
                f"log_prob(y, f) must give one number for each f: for y of shape {y.shape} and f of shape "
                f"{f.shape} it gave {values.shape}; write it with array operations that broadcast."
            )
        bad = np.isnan(values) | (values == np.inf)
        if bad.any():
            at = tuple(np.argwhere(bad)[0])
            where = (np.broadcast_to(part, values.shape)[at] for part in (y, f))
            raise InputError(
                "log_prob(y, f) must be a number or -inf, got {:g} at y = {:g} and f = {:g}; "
                "guard it against overflow.".format(values[at], *where)
            )
        return np.maximum(values, _LOWEST)

    def predictive(
        self,
        mean: FloatArray,
        variance: FloatArray,
        psi: FloatArray,
        *,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> PredictiveDistribution:
        """On a grid of y, as of the likelihood only log p is known."""
        return GridDistribution(self.function, self.support, mean[..., 0], variance[..., 0])

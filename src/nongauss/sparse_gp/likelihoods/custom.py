"""A user's own likelihood: one function log_prob(y, f), and everything else follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nongauss.core.errors import InputError
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.predictive.grid import grid_predictive
from nongauss.prob.quadrature import gauss_hermite
from nongauss.sparse_gp.likelihoods.base import (
    LARGEST_EXPONENT,
    N_HERMITE,
    Expectation,
    FloatArray,
    Likelihood,
    column,
    first_bad,
    no_params,
)

LogProb = Callable[[Any, Any], Any]

_SUPPORTS: dict[str, tuple[str, Callable[[FloatArray], NDArray[np.bool_]]]] = {
    "real": ("that is a number", np.isnan),
    "positive": ("above 0", lambda y: ~(y > 0)),
    "unit": ("strictly between 0 and 1", lambda y: ~((y > 0) & (y < 1))),
    "count": ("that is a whole number of at least 0", lambda y: ~((y >= 0) & (y == np.round(y)))),
}
_NARROWEST = 3e-4  # standard deviation over which differences of log p still stand out of rounding
_LOWEST = -1e100


@dataclass(frozen=True)
class Custom(Likelihood):
    """log p(y | f) by a function of two arrays that broadcast; y in its own units, f about 0.

    `function(y, f)`, called with y (N, 1) and f (N, Q), gives (N, Q), finite or -inf, normalised over y.
    `support`: the values that y can take, "real", "positive", "unit" or "count". Nothing else is needed: for
    f = m + sd x and l = log p, dE/dm = E[l x] / sd and dE/dv = E[l (x^2 - 1)] / (2 v) (Stein's lemma), by
    Gauss-Hermite points, so l should be smooth at the scale of the latent sd. Functions of NumPy and of
    jax.numpy (in 64 bits) both work. A model with one is pickled if its function can be, but cannot be saved
    to a file, which holds no code.
    """

    function: LogProb
    support: str = "real"

    name = "custom"
    own_rules = ("quadrature",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.support not in _SUPPORTS:
            raise InputError(
                f"support must be one of {', '.join(map(repr, _SUPPORTS))}, got {self.support!r}."
            )

    def check(self, y: FloatArray) -> None:
        """In the support; and the function has finite values of the right shape near f = 0."""
        rule, is_bad = _SUPPORTS[self.support]
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

    def start(self, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The constant f under which the data are most probable, on a grid from -20 to 20, then finer."""
        best, reach = 0.0, 20.0
        while reach > 0.01:
            grid = best + np.linspace(-reach, reach, 41)
            totals = [float(weight @ self._values(column(y), np.full((len(y), 1), f))[:, 0]) for f in grid]
            best, reach = float(grid[int(np.argmax(totals))]), reach / 20.0
        return np.array([best]), np.zeros(0)

    def own_expectation(
        self, y: FloatArray, mean: FloatArray, variance: FloatArray, psi: FloatArray, with_params: bool
    ) -> Expectation:
        """Averages of the function's values, less their middle so that nothing cancels."""
        points, weights = gauss_hermite(N_HERMITE)
        sd = np.maximum(np.sqrt(variance), _NARROWEST)
        f = np.clip(mean + sd * points, -LARGEST_EXPONENT, LARGEST_EXPONENT)
        values = self._values(column(y), f)
        value = values @ weights
        values = values - value[:, None]
        d_mean = column(values @ (weights * points)) / sd
        d_variance = column(values @ (weights * (points**2 - 1.0))) / (2.0 * sd**2)
        return Expectation(value, d_mean, d_variance, no_params(y))

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
        """On a grid of y."""
        return grid_predictive(mean[..., 0], variance[..., 0], self.function, self.support)

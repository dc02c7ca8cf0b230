"""A usual model for targets of which some are only limits: a normal law around a linear function."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr
from sklearn.base import BaseEstimator, RegressorMixin

from nongauss.report.residual_law import SCALES, FloatArray, LawRows, ResidualScale, ShiftLaw
from nongauss.report.residuals import Residuals, Unlike, spread_of
from nongauss.report.scoring import limits
from nongauss.report.usual import TableColumns

_PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)


class CensoredRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """t(y) = a + x'w + s e with e ~ N(0, 1), t the logarithm where every y is positive, else y itself.

    With log y it is the log-normal accelerated failure time model. a, w and s maximise the likelihood, to
    which a row adds its density, or the probability between its limits, less penalty |w|^2 / 2; the penalty
    is picked on a fifth of the rows.

    `view`: how columns become a matrix, see `TableColumns`; "none" leaves a and s.
    """

    def __init__(self, *, view: str = "scaled") -> None:
        self.view = view

    def fit(self, X: Any, y: Any, censoring: Any = None, y_upper: Any = None) -> CensoredRegressor:
        """Fit to y (N,), which is a limit in rows that `censoring` (N,) or `y_upper` (N,) say."""
        target = np.asarray(y, dtype=np.float64)
        given = {"censoring": censoring, "y_upper": y_upper}
        ends = limits(target, {k: v for k, v in given.items() if v is not None}) or (target, target)
        self.scale_ = "log" if target.min() > 0 else "identity"
        scale: ResidualScale = SCALES[self.scale_]
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = (np.where(np.isfinite(end), scale.forward(end), end) for end in ends)
        self.columns_ = TableColumns(self.view).fit(X)
        matrix = self.columns_.transform(X)
        penalty = 1.0 if self.view == "none" else _picked(matrix, low, high)
        self.weights_, self.sd_ = _estimate(matrix, low, high, penalty)
        self.n_, self.beyond_ = len(target), Unlike(spread_of(target), len(target))
        return self

    def predict_distribution(self, X: Any) -> LawRows:
        """The predictive distribution of each row."""
        s, m = self.sd_, _linear(self.columns_.transform(X), self.weights_)
        shift = 0.5 * s**2 if self.scale_ == "log" else 0.0  # E exp(m + s e) = exp(m + s^2 / 2)
        residuals = Residuals(np.array([-shift]), s, -shift, s, self.n_)
        law = ShiftLaw(SCALES[self.scale_], residuals, self.beyond_)
        return LawRows(law, SCALES[self.scale_].back(m + shift))

    def predict(self, X: Any) -> FloatArray:
        """The expectation of each row: (N,)."""
        return self.predict_distribution(X).mean


def _linear(X: FloatArray, weights: FloatArray) -> FloatArray:
    """a + x'w of rows X (N, D), from (a, w) (D + 1,)."""
    out: FloatArray = weights[0] + X @ weights[1:]
    return out


def _terms(
    m: FloatArray, s: float, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log likelihood of each row, and its derivatives by m and by log s: (N,) each.

    Exact: log N(z; m, s^2), with r = (z - m) / s: d/dm = r / s, d/dlog s = r^2 - 1. Between limits with u and
    l in units of s: log(Phi(u) - Phi(l)), d/dm = -(phi(u) - phi(l)) / s P, d/dlog s = -(u phi(u) - l phi(l))
    / P.
    """
    exact = low == high
    r = (np.where(exact, low, m) - m) / s
    value = np.where(exact, -0.5 * r**2 - np.log(s) - 0.5 * np.log(2 * np.pi), 0.0)
    by_m, by_s = np.where(exact, r / s, 0.0), np.where(exact, r**2 - 1.0, 0.0)
    rows = ~exact
    l, u = (low[rows] - m[rows]) / s, (high[rows] - m[rows]) / s
    flip = l > 0  # the upper tail is the lower one of the mirror image, which keeps its digits
    l, u = np.where(flip, -u, l), np.where(flip, -l, u)
    log_u, log_l = log_ndtr(u), log_ndtr(l)
    log_p = log_u + np.log1p(-np.exp(np.minimum(log_l - log_u, -1e-12)))
    share_u, share_l = (np.exp(-0.5 * x**2 - 0.5 * np.log(2 * np.pi) - log_p) for x in (u, l))
    sign = np.where(flip, -1.0, 1.0)
    value[rows] = log_p
    by_m[rows] = -sign * (share_u - share_l) / s
    turned_u, turned_l = (np.where(np.isfinite(x), x, 0.0) for x in (u, l))
    by_s[rows] = -(turned_u * share_u - turned_l * share_l)
    return value, by_m, by_s


def _estimate(X: FloatArray, low: FloatArray, high: FloatArray, penalty: float) -> tuple[FloatArray, float]:
    """(a, w) (D + 1,) and s of the largest penalised likelihood."""
    middle = np.where(np.isfinite(low), low, high)
    spread = float(middle.std()) or 1.0

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        weights, s = theta[:-1], float(np.exp(np.clip(theta[-1], -30.0, 30.0)))
        value, by_m, by_s = _terms(_linear(X, weights), s, low, high)
        w = weights[1:]
        slope = np.concatenate([[-by_m.sum()], -X.T @ by_m + penalty * w, [-by_s.sum()]])
        return -float(value.sum()) + 0.5 * penalty * float(w @ w), slope

    start = np.concatenate([[middle.mean()], np.zeros(X.shape[1]), [np.log(spread)]])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return found.x[:-1], float(np.exp(found.x[-1]))


def _picked(X: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """The penalty under which a fifth of the rows are most likely, by a fit to the others."""
    order = np.random.default_rng(0).permutation(len(X))
    test, train = np.array_split(order, [max(1, len(X) // 5)])
    scores = []
    for penalty in _PENALTIES:
        weights, s = _estimate(X[train], low[train], high[train], penalty)
        scores.append(float(_terms(_linear(X[test], weights), s, low[test], high[test])[0].sum()))
    return _PENALTIES[int(np.argmax(scores))]

"""Targets whose law has two humps: which of them a row is in is a label, and each hump follows the columns.

p(y | x) = P(+ | x) p(y | x, +) + P(- | x) p(y | x, -): the probabilities are those of a classifier, the
densities of one Gaussian process on the columns and the hump, so that what the humps share is learned once
(how alike they are is the length scale of the hump's column). Humps start from two Gaussians in the residuals
of a plain process, and rows then go where they are more probable, each judged by laws without it
(classification EM: Celeux and Govaert, Computational Statistics and Data Analysis 14, 1992).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.stats import norm

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.estimator.base import NongaussEstimator
from nongauss.predictive.combined import mixture
from nongauss.predictive.composed import shifted
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution
from nongauss.predictive.mixture import GaussianMixtureDistribution
from nongauss.sparse_gp.classifier import SparseGPClassifier
from nongauss.sparse_gp.estimator import SparseGPRegressor
from nongauss.sparse_gp.left_out import left_out_law, left_out_probabilities, n_parameters

APART = 2.0
"""Distance of two humps, in standard deviations, from which they are two (Ashman, Bird and Zepf 1994)."""

FEWEST = 0.08
"""Least share of a hump."""

PRICE = 10.0
"""Nats by which two Gaussians have to be ahead of one for all residuals: less may be chance or a tail."""

ROUNDS, STEPS, ENOUGH = 8, 200, 1e-4
"""Most rounds of moving rows between the humps; steps of expectation maximisation at the start, and the
change of a probability that ends them."""

QUICK: dict[str, Any] = {"n_scales": 1, "max_iter": 25}
"""Settings of the fits between the rounds."""

MANY, QUICK_INDUCING = 1500, 200
"""Rows above which the fits between the rounds have so many inducing inputs, and the last has one scale."""


@persistable("auto.TwoHumps")
class TwoHumps(NongaussEstimator):
    """A mixture of two Gaussian processes with a classifier that says how probable each is at a row."""

    def __init__(self, *, callbacks: Any = None, random_state: Any = None) -> None:
        self.callbacks = callbacks
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to a table X (N, D) and targets y (N,). Raises InputError where residuals show no two humps."""
        y = np.asarray(y, np.float64)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        quick, thorough = dict(QUICK), {}
        if len(y) > MANY:
            quick["n_inducing"], thorough["n_scales"] = QUICK_INDUCING, 1
        self._plain = self._process(quick).fit(X, y, weight)
        law = left_out_law(self._plain, X, y, weight)
        side = _two_sides((y - law.mean) / law.std, weight)
        rows = Sided(self._plain._encoder.as_scaled(X), y, weight)
        residual = y - law.mean
        half = 0.5 * (_mean(residual, weight * (side > 0)) - _mean(residual, weight * (side < 0)))
        for _ in range(ROUNDS):
            new, more = self._fit_pair(rows, side, half, quick)._moved(rows, side)
            if min(weight @ (new > 0), weight @ (new < 0)) < FEWEST * weight.sum():
                raise InputError("its residuals have one hump")
            half += more
            is_over = bool((new == side).all())
            side = new
            if is_over:
                break
        self._fit_pair(rows, side, half, thorough)
        self._side = side
        for name in ("n_iter_", "converged_", "stop_reason_", "trace_"):
            setattr(self, name, getattr(self._both_humps, name))
        models = self._plain, self._both_humps, self._gate
        self.holds_training_rows_ = any(model.holds_training_rows_ for model in models)
        return self

    def predict_distribution(self, X: Any) -> PredictiveDistribution:
        """The law of y for each row."""
        law: PredictiveDistribution = self._plain._over_gaps(X, self._law)
        return law

    def left_out(self, X: Any, y: FloatArray, weight: FloatArray) -> PredictiveDistribution:
        """The law of each training row's target y (N,) given all others."""
        rows, side = Sided(self._plain._encoder.as_scaled(X), y, weight), self._side[: len(y)]
        own, other, shares = self._seen(rows, side)
        return mixture([own, other], shares)

    @property
    def n_parameters(self) -> float:
        """Number of hyper-parameters that the rows chose."""
        return n_parameters(self._both_humps) + n_parameters(self._gate)

    def _law(self, encoded: FloatArray) -> PredictiveDistribution:
        """The mixture at encoded rows (N, D)."""
        plus = np.ones(len(encoded))
        parts = [self._hump(encoded, sign * plus) for sign in (-1.0, 1.0)]
        return mixture(parts, self._gate.predict_proba(encoded))

    def _hump(self, encoded: FloatArray, side: FloatArray) -> GaussianMixtureDistribution:
        """The law of y at encoded rows in the humps `side` (N,), -1 or 1."""
        found: Any = self._both_humps.predict_distribution(np.column_stack([encoded, side]))
        return shifted(found, self._half * side)

    def _process(self, settings: dict[str, Any]) -> SparseGPRegressor:
        return SparseGPRegressor(**settings, callbacks=self.callbacks, random_state=self.random_state)

    def _fit_pair(self, rows: Sided, side: FloatArray, half: float, settings: dict[str, Any]) -> Self:
        """Fit the process to targets less where their hump is, and the classifier to the humps."""
        with_side = np.column_stack([rows.encoded, side])
        self._half = float(half)
        self._both_humps = self._process(settings).fit(with_side, rows.y - half * side, rows.weight)
        gate = SparseGPClassifier(**settings, callbacks=self.callbacks, random_state=self.random_state)
        self._gate = gate.fit(rows.encoded, side.astype(int), rows.weight)
        return self

    def _seen(
        self, rows: Sided, side: FloatArray
    ) -> tuple[PredictiveDistribution, PredictiveDistribution, FloatArray]:
        """Each row's law in its own hump without the row, in the other, and the two probabilities (N, 2)."""
        shift = self._half * side
        with_side = np.column_stack([rows.encoded, side])
        own: Any = left_out_law(self._both_humps, with_side, rows.y - shift, rows.weight)
        codes = (side > 0).astype(np.float64)
        shares = left_out_probabilities(self._gate, rows.encoded, codes, rows.weight)
        shares = np.where(side[:, None] > 0, shares[:, ::-1], shares)
        return shifted(own, shift), self._hump(rows.encoded, -side), shares

    def _moved(self, rows: Sided, side: FloatArray) -> tuple[FloatArray, float]:
        """The hump in which each row is more probable (N,), and what half their distance lacks."""
        own, other, shares = self._seen(rows, side)
        ahead = own.log_prob(rows.y) - other.log_prob(rows.y) + np.log(shares[:, 0] / shares[:, 1])
        plus = np.ones(len(side))
        high, low = (self._hump(rows.encoded, sign * plus).mean for sign in (1.0, -1.0))
        return np.where(ahead < 0.0, -side, side), 0.5 * _mean(high - low, rows.weight) - self._half


class Sided(NamedTuple):
    """Encoded rows (N, D), their targets and weights, (N,) each."""

    encoded: FloatArray
    y: FloatArray
    weight: FloatArray


def _mean(values: FloatArray, weight: FloatArray) -> float:
    """The weighted mean of values (N,)."""
    return float(weight @ values / max(float(weight.sum()), 1e-300))


def _two_sides(z: FloatArray, weight: FloatArray) -> FloatArray:
    """Which of two Gaussians each z (N,) is rather of, -1 or 1. Raises InputError where one says as much."""
    total = float(weight.sum())
    mean = _mean(z, weight)
    alone = float(weight @ norm.logpdf(z, mean, np.sqrt(_mean((z - mean) ** 2, weight))))
    best, side = alone + PRICE, None
    for level in (0.3, 0.5, 0.7):
        value, upper, distance = _two_gaussians(z, weight, (z > np.quantile(z, level)).astype(np.float64))
        share = float(weight @ upper) / total
        if value > best and distance >= APART and min(share, 1.0 - share) >= FEWEST:
            best, side = value, np.where(upper > 0.5, 1.0, -1.0)
    if side is None:
        raise InputError("its residuals have one hump")
    return side


def _two_gaussians(z: FloatArray, weight: FloatArray, upper: FloatArray) -> tuple[float, FloatArray, float]:
    """Expectation maximisation from probabilities `upper` (N,) of the second: nats, these, and distance."""
    total = float(weight.sum())
    value = distance = 0.0
    for _ in range(STEPS):
        terms, moments = [], []
        for own in (1.0 - upper, upper):
            m = _mean(z, weight * own)
            v = max(_mean((z - m) ** 2, weight * own), 1e-4)
            share = max(float(weight @ own) / total, 1e-300)
            terms.append(np.log(share) + norm.logpdf(z, m, np.sqrt(v)))
            moments.append((m, v))
        both = np.logaddexp(*terms)
        value, before, upper = float(weight @ both), upper, np.exp(terms[1] - both)
        (m_0, v_0), (m_1, v_1) = moments
        distance = (m_1 - m_0) / float(np.sqrt(0.5 * (v_0 + v_1)))
        if np.abs(upper - before).max() < ENOUGH:
            break
    return value, upper, distance

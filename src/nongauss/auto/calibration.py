"""Calibration of the whole by rows that no part of it has seen, where these pay for its parameters.

Of numbers: the normal scores z = Phi^-1(F(y)) of such rows are N(0, 1) if the mixture of laws F is right. A
law g of the scores is stacked from Gaussians, N(0, 1) among them, each of which has to be worth its price;
the calibrated law is p(y) = f(y) g(z) / phi(z), a density with the support of f.

Of labels: P'(c) is proportional to exp(sum_d A_cd log P(d) + b_c), with A = I / T (Guo and others, ICML
2017), with offsets b beside it, or with any A (Kull and others, NeurIPS 2019): that under which the labels
are most probable, at a price of half the log of the number of rows for each parameter (Schwarz 1978).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_ndtr, logsumexp

from nongauss.auto.stacking import stacked
from nongauss.core.records import persistable
from nongauss.predictive.distribution import FloatArray, PredictiveDistribution
from nongauss.predictive.mixture import GaussianMixtureDistribution
from nongauss.predictive.recalibrated import recalibrated
from nongauss.predictive.scores import reach_of, score_interval
from nongauss.prob.tails import log_normal_interval

SCORE_MEANS = (0.0, -0.5, 0.5, 0.0, 0.0, 0.0, 0.0)
SCORE_SDS = (1.0, 1.0, 1.0, 0.55, 0.75, 1.35, 2.0)
"""Gaussians of which the law of the scores is stacked; the first leaves things as they are."""

FEWEST_ROWS = 50
"""Sum of weights from which numbers and labels are calibrated: twelve coin flips had asked for a temperature
of .07."""

ROWS_A_PARAMETER = 5
"""Rows for each parameter from which a full matrix is tried for labels."""

RIDGE = 1e-3
"""Penalty on the squared distance of A from the identity and of b from 0, which keeps both finite."""

SMALLEST = 1e-300
"""Least probability that a logarithm is taken of."""


@persistable("auto.ScoreMixture")
class ScoreMixture(NamedTuple):
    """A mixture of K Gaussians that normal scores have: shares, means, sds, (K,) each."""

    shares: Float64[np.ndarray, " K"]
    means: Float64[np.ndarray, " K"]
    sds: Float64[np.ndarray, " K"]

    def law(self, base: PredictiveDistribution) -> PredictiveDistribution:
        """The calibrated laws of rows whose laws are `base`."""
        logs, means, sds = np.log(self.shares), self.means, self.sds

        def components(rows: NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
            size = (len(rows), len(logs))
            return (
                np.broadcast_to(logs, size),
                np.broadcast_to(means, size)[..., None],
                np.broadcast_to(sds, size)[..., None],
            )

        mean = float(self.shares @ means)
        variance = float(self.shares @ (sds**2 + (means - mean) ** 2))
        one = np.ones((len(base), 1))
        scores = GaussianMixtureDistribution(
            mean * one, variance * one, components, squeeze=True, n_components=len(logs)
        )
        return recalibrated(base, scores)


def fit_scores(law: PredictiveDistribution, y: FloatArray, weight: FloatArray) -> ScoreMixture | None:
    """The calibration that targets y (N,) of rows left out of their laws pay for; None if there is none."""
    if weight.sum() < FEWEST_ROWS:
        return None
    reach = reach_of(law)
    at = score_interval(law, y)
    z = np.clip(at.high, -reach, reach)
    with np.errstate(invalid="ignore"):
        plain = np.where(at.jumps, log_normal_interval(at.low, at.high), -0.5 * z * z)
    gains = []
    for mean, sd in zip(SCORE_MEANS, SCORE_SDS, strict=True):
        density = -0.5 * ((z - mean) / sd) ** 2 - np.log(sd)
        beyond = log_ndtr((-reach - np.sign(z) * mean) / sd) - log_ndtr(
            -reach
        )  # of tails that are the base's
        with np.errstate(invalid="ignore"):
            mass = log_normal_interval((at.low - mean) / sd, (at.high - mean) / sd)
            own = np.where(at.jumps, mass, density) - plain
        gains.append(np.where(~at.jumps & (np.abs(at.high) > reach), beyond, own))
    shares = stacked(np.stack(gains), weight)
    kept = np.flatnonzero(shares)
    if kept.tolist() == [0]:
        return None
    return ScoreMixture(shares[kept], np.array(SCORE_MEANS)[kept], np.array(SCORE_SDS)[kept])


@persistable("auto.LabelCalibration")
class LabelCalibration(NamedTuple):
    """A map of C probabilities: `form` "none", "temperature", "offsets" or "matrix"; A (C, C), b (C,)."""

    form: str
    matrix: Float64[np.ndarray, "C C"]
    offset: Float64[np.ndarray, " C"]

    def __call__(self, probabilities: FloatArray) -> FloatArray:
        """Calibrated probabilities (N, C), rows summing to 1."""
        if self.form == "none":
            return probabilities
        out = np.exp(_log_shares(_logs(probabilities), self.matrix, self.offset))
        shares: FloatArray = out / out.sum(axis=1, keepdims=True)
        return shares

    @property
    def temperature(self) -> float:
        """T of A = I / T: above 1 it blunts, below it sharpens; of a full A one over its mean diagonal."""
        return float(1.0 / np.mean(np.diag(self.matrix)))


def no_calibration(n_classes: int) -> LabelCalibration:
    """What leaves probabilities as they are."""
    return LabelCalibration("none", np.eye(n_classes), np.zeros(n_classes))


def fit_labels(probabilities: FloatArray, codes: NDArray[np.intp], weight: FloatArray) -> LabelCalibration:
    """The calibration that rows left out of their probabilities (N, C) pay for, from their class numbers."""
    n, n_classes = probabilities.shape
    logs, eye, none = _logs(probabilities), np.eye(n_classes), np.zeros(n_classes)
    price = 0.5 * np.log(max(float(weight.sum()), 2.0))
    forms: list[tuple[str, int, Callable[[FloatArray], tuple[FloatArray, FloatArray]]]] = [
        ("temperature", 1, lambda t: ((1.0 + t[0]) * eye, none)),
        ("offsets", n_classes, lambda t: ((1.0 + t[0]) * eye, np.append(0.0, t[1:]))),
    ]
    size = n_classes**2
    if ROWS_A_PARAMETER * size <= n:
        forms.append(("matrix", size - 1, lambda t: (eye + t[:size].reshape(eye.shape), t[size:])))
    best = no_calibration(n_classes)
    if weight.sum() < FEWEST_ROWS:
        return best
    best_value = _loss(logs, codes, weight, best.matrix, best.offset)[0]
    for form, n_free, build in forms:
        n_given = size + n_classes if form == "matrix" else n_free
        matrix, offset = _fitted(logs, codes, weight, n_given, build)
        value = _loss(logs, codes, weight, matrix, offset)[0] + price * n_free
        if value < best_value:
            best, best_value = LabelCalibration(form, matrix, offset), value
    return best


def _fitted(
    logs: FloatArray,
    codes: NDArray[np.intp],
    weight: FloatArray,
    n_given: int,
    build: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    """A and b of the form `build`, a linear function of `n_given` numbers, 0 where nothing is done."""
    at_0 = np.concatenate([part.ravel() for part in build(np.zeros(n_given))])
    slopes = np.stack(
        [np.concatenate([part.ravel() for part in build(unit)]) - at_0 for unit in np.eye(n_given)]
    )
    n_classes = logs.shape[1]

    def loss(t: FloatArray) -> tuple[float, FloatArray]:
        value, by_matrix, by_offset = _loss(logs, codes, weight, *build(t))
        slope = slopes @ np.concatenate([by_matrix.ravel(), by_offset]) + 2.0 * RIDGE * t
        return value + RIDGE * float(t @ t), slope

    found = minimize(loss, np.zeros(n_given), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    matrix, offset = build(found.x)
    return matrix, offset - offset.mean() if n_given > n_classes else offset


def _loss(
    logs: FloatArray, codes: NDArray[np.intp], weight: FloatArray, matrix: FloatArray, offset: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """-sum_n w_n log P'(c_n) in nats, and its gradients by A (C, C) and b (C,)."""
    shares = _log_shares(logs, matrix, offset)
    rows = np.arange(len(codes))
    excess = np.exp(shares)
    excess[rows, codes] -= 1.0
    excess *= weight[:, None]
    return -float(weight @ shares[rows, codes]), excess.T @ logs, excess.sum(axis=0)


def _log_shares(logs: FloatArray, matrix: FloatArray, offset: FloatArray) -> FloatArray:
    """log P' (N, C) from log P (N, C)."""
    own = logs @ matrix.T + offset
    out: FloatArray = own - logsumexp(own, axis=1, keepdims=True)
    return out


def _logs(probabilities: FloatArray) -> FloatArray:
    """Logarithms of probabilities (N, C)."""
    return np.log(np.maximum(probabilities, SMALLEST))

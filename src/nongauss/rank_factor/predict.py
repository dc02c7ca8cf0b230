"""What a fit says about new rows: factors from ranks or values alone, decision values, probabilities.

The model is the same for every permutation and reflection of its factors, so draws are put in one order,
with one sign.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, softmax

from nongauss.core.errors import InputError
from nongauss.core.records import persistable
from nongauss.core.schema import refuse_huge
from nongauss.rank_factor import data, svm_mixture
from nongauss.rank_factor.config import RankConfig
from nongauss.rank_factor.data import CellCoding, FloatArray, RankRows
from nongauss.rank_factor.params import (
    Experts,
    Gate,
    NeighbourScores,
    Normal,
    first_shrinkage,
    joined,
    point,
    solve,
)
from nongauss.rank_factor.rank_likelihood import (
    CellQuadratics,
    LoadingMoments,
    expected_quadratics,
    expected_weights,
    hinges,
    moments_of,
    moments_of_draw,
    quadratic,
    with_prior,
    z_system,
)

N_STEPS = 15
"""Steps of a row's factors: always as many, so that a row's do not depend on the rows beside it."""
EVEN = 24
"""Rows go by multiples of this: the last bits of a product of matrices differ for rows that are left over."""
SOFT = 0.1
"""Softness of the hinge in unrolled steps: |u| in a weight is sqrt(u^2 + SOFT^2)."""


@persistable("rank_factor.Draw", "nongauss.rank_factor.predict:Draw")
class PosteriorDraw(NamedTuple):
    """One point of the posterior, or its variational summary: all that a prediction needs.

    A (D, K) with covariance (D, K, K), or None; scores of the levels as neighbours (D, Q), noise (D,), mean
    factors of the levels (D, Q, K) or None; beta (T, C, K + 1), its covariance or None; gate or None.
    `steps`: how many unrolled steps a row's factors take after training for prediction, whose `noise` is a
    precision; 0: until they settle.
    """

    A: Float[np.ndarray, "D K"]
    covariance: Float[np.ndarray, "D K K"] | None
    lower: Float[np.ndarray, "D Q"]
    upper: Float[np.ndarray, "D Q"]
    noise: Float[np.ndarray, " D"]
    means: Float[np.ndarray, "D Q K"] | None
    beta: Float[np.ndarray, "T C K+1"]
    beta_covariance: FloatArray | None
    gate: Gate | None
    steps: int = 0

    def check_fields(self) -> None:
        """Raises ValueError for numbers whose squares, summed in single precision, are none."""
        refuse_huge(self, infinite=True)

    def loading_moments(self, dtype: Any) -> LoadingMoments:
        """What rows need of the loadings."""
        scale = NeighbourScores(self.lower, self.upper, self.noise, self.means)
        if self.covariance is None:
            return moments_of_draw(np.asarray(self.A, np.float64), scale, dtype)
        return moments_of(Normal(self.A, self.covariance), scale, dtype)

    def experts(self) -> Experts:
        """The classifier, without the hierarchy of its coefficients."""
        beta = point(self.beta) if self.beta_covariance is None else Normal(self.beta, self.beta_covariance)
        return Experts(beta, first_shrinkage((0, 0)), self.gate)


def factors(draw: PosteriorDraw, rows: RankRows, config: RankConfig, dtype: Any) -> Normal:
    """q(z) of new rows, without labels: (N, K)."""
    loadings = draw.loading_moments(np.float64 if draw.steps else dtype)
    settle = _unrolled if draw.steps else _settled
    return joined([settle(draw, loadings, rows.take(part), config) for part in blocks(*rows.shape)])


def blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Rows in blocks of about `data.BLOCK` numbers, `width` a row, and a multiple of EVEN rows."""
    height = EVEN * max(1, data.BLOCK // (width * EVEN))
    for begin in range(0, n_rows, height):
        yield slice(begin, min(begin + height, n_rows))


def _settled(draw: PosteriorDraw, loadings: LoadingMoments, rows: RankRows, config: RankConfig) -> Normal:
    """q(z) by N_STEPS re-weighted steps from N(0, I); of values under a normal prior one is exact."""
    K = config.n_factors
    n_rows = rows.shape[0]
    z = Normal(np.zeros((n_rows, K)), np.tile(np.eye(K), (n_rows, 1, 1)))
    for _ in range(1 if draw.gate is None and rows.cells is None else N_STEPS):
        shares = svm_mixture.shares_of(draw.gate, z)
        at = expected_quadratics(z, loadings, rows, config)
        prior = svm_mixture.factor_prior(draw.gate, shares, K)
        z = solve(*with_prior(z_system(at, loadings), prior))
    return z


def _unrolled(draw: PosteriorDraw, loadings: LoadingMoments, rows: RankRows, config: RankConfig) -> Normal:
    """Factors as training for prediction made those of its own rows: few steps from zero, no covariance.

    The weight of a hinge is (u^2 + SOFT^2)^{-1/2}; see `unrolled_factors.factors`, which is differentiated.
    """
    n_rows, K = rows.shape[0], config.n_factors
    z = np.zeros((n_rows, K))
    prior = np.ones(n_rows), z
    for _ in range(1 if rows.cells is None else draw.steps):
        at = _soft_quadratics(draw, loadings, rows, z, config)
        precision, linear = with_prior(z_system(at, loadings), prior)
        z = np.linalg.solve(precision, linear[..., None])[..., 0]
    return point(z)


def _soft_quadratics(
    draw: PosteriorDraw, loadings: LoadingMoments, rows: RankRows, z: FloatArray, config: RankConfig
) -> CellQuadratics:
    """The cells' quadratics at factors z (B, K): softened hinges, or values with precision `draw.noise`."""
    none = np.zeros(len(z))
    if rows.cells is None:
        assert rows.values is not None
        precision = ~np.isnan(rows.values) * draw.noise
        return CellQuadratics(precision, precision * np.nan_to_num(rows.values), None, none)
    score = z @ loadings.mean.T
    at = hinges(score, loadings.scale.lower, loadings.scale.upper, rows.cells, config.eps)
    g = expected_weights(at, (np.full((1, 1), SOFT**2),) * 2, 0.0)
    return CellQuadratics(*quadratic(at, g, score), g, none)


def decisions(draw: PosteriorDraw, z: Normal) -> FloatArray:
    """Decision values (N, C); of a draw of the posterior over sqrt(1 + |slopes|^2) of each output.

    Where classes lie apart only a heavy-tailed prior limits the slopes, and the draws' sizes are orders of
    magnitude apart: one curve of probabilities would suit one of them.
    """
    f = svm_mixture.decision_values(draw.experts(), z)
    if draw.beta_covariance is not None or draw.steps:
        return f
    scaled: FloatArray = f / np.sqrt(1.0 + (draw.beta[..., :-1] ** 2).sum(axis=2).mean(axis=0))
    return scaled


@persistable("rank_factor.Calibration", "nongauss.rank_factor.calibration:Calibration")
class OutputCalibration(NamedTuple):
    """Log odds slope_c f_c + offset_c of one output, or of each of C classes up to a constant: (C,) each."""

    slope: Float[np.ndarray, " C"]
    offset: Float[np.ndarray, " C"]

    def probabilities(self, f: FloatArray) -> FloatArray:
        """Probabilities (N, C) from decision values (N, C): of one output, or of classes with the sum 1."""
        odds = self.slope * f + self.offset
        found: FloatArray = expit(odds) if odds.shape[1] == 1 else softmax(odds, axis=1)
        return found


class FittedFactors(NamedTuple):
    """What came of a fit: it turns raw cells of new rows into factors and probabilities.

    draws (S,) in one order of factors, chain (S,) of each; watched (chains, T, n): numbers of kept sweeps.
    `calibration`: of a classifier. `cell_type`: the precision in which cells are held.
    """

    coding: CellCoding
    config: RankConfig
    draws: tuple[PosteriorDraw, ...]
    chain: np.ndarray
    watched: FloatArray
    calibration: OutputCalibration | None
    cell_type: str

    def factors(self, cells: FloatArray) -> FloatArray:
        """Mean factors (N, K) of raw cells (N, D), over draws."""
        return self._mean_over_draws(cells, lambda draw, z: z.mean)

    def probabilities(self, cells: FloatArray) -> FloatArray:
        """Mean calibrated probability (N, C) of each output, over draws: strictly between 0 and 1."""
        calibration = self.calibration
        assert calibration is not None
        p = self._mean_over_draws(cells, lambda draw, z: calibration.probabilities(decisions(draw, z)))
        return np.clip(p, 1e-12, 1.0 - 1e-12)

    def loadings(self) -> FloatArray:
        """Posterior mean loadings: (D, K)."""
        found: FloatArray = np.mean([np.asarray(draw.A, np.float64) for draw in self.draws], axis=0)
        return found

    def typical(self, z: FloatArray) -> FloatArray:
        """Typical cells (N, D) in original units of factors (N, K)."""
        tables = np.mean([np.asarray(draw.lower, np.float64) for draw in self.draws], axis=0)
        return self.coding.typical(z @ self.loadings().T, tables)

    def _mean_over_draws(
        self, cells: FloatArray, of: Callable[[PosteriorDraw, Normal], FloatArray]
    ) -> FloatArray:
        """The mean of of(draw, q(z) of the rows) over draws, of some rows at a time: (N, ...)."""
        return np.concatenate(
            [self._block(cells[part], of) for part in blocks(len(cells), self.config.n_factors**2)]
        )

    def _block(self, cells: FloatArray, of: Callable[[PosteriorDraw, Normal], FloatArray]) -> FloatArray:
        """`_mean_over_draws` of one block, filled up to EVEN rows."""
        full = np.pad(cells, ((0, -len(cells) % EVEN), (0, 0)), mode="edge")
        rows = self.coding.rows(full)
        each = (of(draw, factors(draw, rows, self.config, self.cell_type)) for draw in self.draws)
        total: FloatArray = reduce(np.add, each)
        return total[: len(cells)] / len(self.draws)


def checked_coverage(coverage: float) -> float:
    """The share of an interval as a float. Raises InputError unless it lies between 0 and 1."""
    if not (isinstance(coverage, numbers.Real) and 0 < coverage < 1):
        raise InputError(f"coverage must lie between 0 and 1, got {coverage!r}; for example 0.9.")
    return float(coverage)


def interval(draws: FloatArray, coverage: float) -> FloatArray:
    """Central intervals of S draws (S, ...): (..., 2)."""
    tail = 0.5 - 0.5 * coverage
    return np.moveaxis(np.quantile(draws, [tail, 1.0 - tail], axis=0), 0, -1)


def canonical_order(A: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Order (K,) by falling size of the loadings (D, K), and signs that make the largest of each positive."""
    order = np.argsort(-(A**2).sum(axis=0), kind="stable")
    largest = A[np.abs(A).argmax(axis=0), np.arange(A.shape[1])]
    return order, np.where(largest < 0, -1.0, 1.0)[order]


def order_like(A: FloatArray, reference: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """The order and signs of loadings (D, K) that bring them nearest to a reference, by one assignment."""
    size = np.sqrt((A**2).sum(axis=0)[:, None] * (reference**2).sum(axis=0)) + 1e-300
    cosine = (A.T @ reference) / size
    own, like = linear_sum_assignment(-np.abs(cosine))
    order = own[np.argsort(like)]
    return order, np.where(cosine[order, np.arange(len(order))] < 0, -1.0, 1.0)


def turned(draw: PosteriorDraw, order: NDArray[np.intp], sign: FloatArray) -> PosteriorDraw:
    """A draw with its factors in this order and with these signs.

    Its arrays lie row after row as those of a saved model do, so that products of both agree to the bit.
    """
    both = sign[:, None] * sign

    def covariance(C: FloatArray | None, rank: NDArray[np.intp], square: FloatArray) -> FloatArray | None:
        """A covariance with its last two axes in that order, times the products of signs."""
        return None if C is None else C[..., rank[:, None], rank] * square

    last = np.append(order, len(order))
    signs = np.append(sign, 1.0)
    gate = draw.gate
    found = draw._replace(
        A=draw.A[:, order] * sign.astype(draw.A.dtype),
        covariance=covariance(draw.covariance, order, both),
        means=None if draw.means is None else draw.means[..., order] * sign,
        beta=draw.beta[..., last] * signs,
        beta_covariance=covariance(draw.beta_covariance, last, signs[:, None] * signs),
        gate=None if gate is None else gate._replace(mean=np.ascontiguousarray(gate.mean[:, order] * sign)),
    )
    arrays: dict[str, Any] = {
        name: np.ascontiguousarray(part)
        for name, part in found._asdict().items()
        if isinstance(part, np.ndarray) and part.ndim
    }
    return found._replace(**arrays)


def rotated(draw: PosteriorDraw, rotation: FloatArray) -> PosteriorDraw:
    """A draw, known values alone, with its factors turned by an orthogonal matrix (K, K): A R, R'z, R'beta.

    Scores, decisions and the prior of the factors stay as they are.
    """
    gate = draw.gate
    slopes = draw.beta[..., :-1] @ rotation
    return draw._replace(
        A=(draw.A @ rotation).astype(draw.A.dtype),
        means=None if draw.means is None else draw.means @ rotation,
        beta=np.concatenate([slopes, draw.beta[..., -1:]], axis=-1),
        gate=None if gate is None else gate._replace(mean=gate.mean @ rotation),
    )


def rotation_to(A: FloatArray, reference: FloatArray) -> FloatArray:
    """The orthogonal matrix (K, K) that turns loadings (D, K) next to a reference: U V' of A'B = U s V'."""
    left, _, right = np.linalg.svd(A.T @ reference)
    found: FloatArray = left @ right
    return found


def in_order(draw: PosteriorDraw) -> PosteriorDraw:
    """A draw with its factors in canonical order."""
    return turned(draw, *canonical_order(draw.A))

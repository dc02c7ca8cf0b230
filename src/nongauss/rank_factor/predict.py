"""What a fit says about new rows: their factors from ranks or values alone, and decision values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from nongauss.core.records import persistable
from nongauss.rank_factor import rank_likelihood as cells
from nongauss.rank_factor import svm_mixture as experts
from nongauss.rank_factor.params import Config, FloatArray, Normal, solve
from nongauss.rank_factor.rank_likelihood import Rows, Scale, Terms
from nongauss.rank_factor.shrinkage import Shrinkage
from nongauss.rank_factor.svm_mixture import Experts, Gate

N_STEPS = 15
"""Steps of a row's factors: always as many, so that a row's do not depend on the rows beside it."""
EVEN = 24
"""Rows go by multiples of this: the last bits of a product of matrices differ for rows that are left over."""


@persistable("rank_factor.Draw", "nongauss.rank_factor.predict:Draw")
class Draw(NamedTuple):
    """One point of the posterior, or its variational summary: all that a prediction needs.

    A (D, K) with covariance (D, K, K), or None; scores of the levels as neighbours (D, Q), noise (D,), mean
    factors of the levels (D, Q, K) or None; beta (T, C, K + 1), its covariance or None; gate or None.
    `steps`: how many soft steps a row's factors take, in the predictive fit; 0: until they settle.
    """

    A: FloatArray
    covariance: FloatArray | None
    lower: FloatArray
    upper: FloatArray
    noise: FloatArray
    means: FloatArray | None
    beta: FloatArray
    beta_covariance: FloatArray | None
    gate: Gate | None
    steps: int = 0

    def terms(self, dtype: Any) -> Terms:
        """What rows need of the loadings."""
        scale = Scale(self.lower, self.upper, self.noise, self.means)
        if self.covariance is None:
            return cells.terms_of_draw(np.asarray(self.A, np.float64), scale, dtype)
        return cells.terms_of(Normal(self.A, self.covariance), scale, dtype)

    def experts(self) -> Experts:
        """The classifier."""
        covariance = self.beta_covariance
        if covariance is None:
            covariance = np.zeros((*self.beta.shape, self.beta.shape[-1]))
        none = np.zeros((0, 0))
        empty = Shrinkage(none, none, np.zeros(0), 0.0)
        return Experts(Normal(self.beta, covariance), empty, self.gate)


def factors(draw: Draw, rows: Rows, config: Config, dtype: Any) -> Normal:
    """q(z) of new rows, without labels: (N, K)."""
    if draw.steps:
        from nongauss.rank_factor import unrolled_factors as predictive

        return predictive.host_factors(draw, rows, config)
    terms = draw.terms(dtype)
    parts = [_settle(terms, rows.take(part), draw.gate, config) for part in blocks(*rows.shape)]
    return Normal(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Rows in blocks of about `cells.BLOCK` numbers, `width` a row, and a multiple of EVEN rows."""
    height = EVEN * max(1, cells.BLOCK // (width * EVEN))
    for begin in range(0, n_rows, height):
        yield slice(begin, min(begin + height, n_rows))


def _settle(terms: Terms, rows: Rows, gate: Gate | None, config: Config) -> Normal:
    K = config.n_factors
    n_rows = rows.shape[0]
    z = Normal(np.zeros((n_rows, K)), np.tile(np.eye(K), (n_rows, 1, 1)))
    for _ in range(1 if gate is None and rows.cells is None else N_STEPS):
        shares = experts.shares_of(gate, z)
        at = cells.expected_sites(z, terms, rows, config)
        prior = experts.prior_of(gate, shares, K)
        z = solve(*cells.with_prior(cells.z_system(at, terms), prior))
    return z


def decisions(draw: Draw, z: Normal) -> FloatArray:
    """Decision values (N, C)."""
    return experts.scores(draw.experts(), z)

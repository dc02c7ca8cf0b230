"""Two inferences that run the same sweep: variational Bayes takes expectations, Gibbs draws."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import geninvgauss

from nongauss.prob import inverse_gaussian
from nongauss.rank_factor import shrinkage, svm_mixture
from nongauss.rank_factor.config import RankConfig, ShrinkagePrior
from nongauss.rank_factor.data import FloatArray, RankRows
from nongauss.rank_factor.params import (
    Gate,
    NeighbourScores,
    Normal,
    Shrinkage,
    System,
    cholesky_draw,
    point,
    solve,
)
from nongauss.rank_factor.rank_likelihood import (
    CellQuadratics,
    LoadingMoments,
    drawn_quadratics,
    expected_quadratics,
    moments_of,
    moments_of_draw,
)

Rescaled = tuple[Normal, Normal, Shrinkage]


class VariationalBayes(NamedTuple):
    """Every quantity is a q, and the next one is the best given the others. Cells are held in `dtype`."""

    dtype: Any = np.float64

    def loading_moments(self, A: Normal, scale: NeighbourScores) -> LoadingMoments:
        """What rows need of the loadings."""
        return moments_of(A, scale, self.dtype)

    def quadratics(
        self, z: Normal, loadings: LoadingMoments, rows: RankRows, config: RankConfig
    ) -> CellQuadratics:
        """Quadratics of the cells in their scores, given the factors of their rows."""
        return expected_quadratics(z, loadings, rows, config)

    def normal(self, system: System) -> Normal:
        """q of normals from precision and linear term."""
        return solve(*system)

    def shrink(self, now: Shrinkage, c: Normal, prior: ShrinkagePrior) -> Shrinkage:
        """The hierarchy of coefficients (D, K)."""
        return shrinkage.expected(now, c.squares, prior)

    def rescale(self, A: Normal, z: Normal, shrink: Shrinkage, slab: float) -> Rescaled:
        """Factors, loadings and their shrinkage on another scale: left alone, as the bound is at its best."""
        return A, z, shrink

    def noise(self, rate: FloatArray, shape: FloatArray) -> FloatArray:
        """A variance whose inverse is Ga(shape, rate): one over the expected inverse."""
        return rate / shape

    def label_weights(self, u: FloatArray, second: FloatArray) -> FloatArray:
        """<1/lambda> of labels or pairs, <u^2>^{-1/2}."""
        return svm_mixture.expected_weights(second)

    def shares(self, logs: FloatArray) -> FloatArray:
        """q(t) of each row from logs (N, T)."""
        return svm_mixture.softmax(logs)

    def gate(self, gate: Gate, z: Normal, shares: FloatArray, weight: FloatArray) -> Gate:
        """The mixture's parameters."""
        return svm_mixture.update_gate(gate, z, shares, weight)


class Gibbs(NamedTuple):
    """Every quantity is a draw given the others. A row of weight w counts w times in sums."""

    rng: np.random.Generator
    dtype: Any = np.float64

    def loading_moments(self, A: Normal, scale: NeighbourScores) -> LoadingMoments:
        """What rows need of the loadings."""
        return moments_of_draw(A.mean, scale, self.dtype)

    def quadratics(
        self, z: Normal, loadings: LoadingMoments, rows: RankRows, config: RankConfig
    ) -> CellQuadratics:
        """Quadratics of the cells in their scores, given the factors of their rows."""
        return drawn_quadratics(self.rng, z.mean, loadings, rows, config)

    def normal(self, system: System) -> Normal:
        """Draws of normals from precision and linear term."""
        return point(cholesky_draw(self.rng, *system))

    def shrink(self, now: Shrinkage, c: Normal, prior: ShrinkagePrior) -> Shrinkage:
        """The hierarchy of coefficients (D, K)."""
        return shrinkage.drawn(self.rng, now, c.mean, prior)

    def rescale(self, A: Normal, z: Normal, shrink: Shrinkage, slab: float) -> Rescaled:
        """A z keeps its value, and the two are drawn anew along (c A_k, z_k / c) for each factor k.

        The variances go along, xi c^2, eta / c^2, phi c^2, so that of the density only the priors of z and
        phi and the slab change. The Haar measure dc / c leaves the posterior as it is (Liu and
        Sabatti 2000): s = c^2 is generalised inverse Gaussian. Without it the scale creeps.
        """
        a = slab * (A.mean**2).sum(axis=0) + 2.0 * shrink.hyper * shrink.scale
        b = np.maximum((z.mean**2).sum(axis=0), 1e-300)
        p = 0.5 * (1.0 - len(z.mean))
        s = geninvgauss.rvs(p, np.sqrt(a * b), scale=np.sqrt(b / a), random_state=self.rng)
        moved = Shrinkage(shrink.precision / s, shrink.rate / s, shrink.scale * s, shrink.hyper)
        return point(A.mean * np.sqrt(s)), point(z.mean / np.sqrt(s)), moved

    def noise(self, rate: FloatArray, shape: FloatArray) -> FloatArray:
        """A variance whose inverse is Ga(shape, rate)."""
        return rate / np.maximum(self.rng.gamma(shape), 1e-300)

    def label_weights(self, u: FloatArray, second: FloatArray) -> FloatArray:
        """1/lambda of labels or pairs, inverse Gaussian(1 / |u|, 1)."""
        return inverse_gaussian.draw(self.rng, u)

    def shares(self, logs: FloatArray) -> FloatArray:
        """t of each row from logs (N, T), as 0 and 1, by Gumbel noise."""
        noisy = logs + self.rng.gumbel(size=logs.shape)
        found: FloatArray = np.eye(logs.shape[1])[noisy.argmax(axis=1)]
        return found

    def gate(self, gate: Gate, z: Normal, shares: FloatArray, weight: FloatArray) -> Gate:
        """The mixture's parameters."""
        return svm_mixture.draw_gate(self.rng, gate, z.mean, shares, weight)


Inference = VariationalBayes | Gibbs

r"""Two inferences that run the same sweep: variational Bayes takes expectations, Gibbs draws.

Coefficients c (D, K) are shrunk by a three-parameter-beta prior with one global scale a column, gammas having
shape and rate:

    c_ik ~ N(0, xi_ik),  xi_ik ~ Ga(r, eta_ik),  eta_ik ~ Ga(s, phi_k),  phi_k ~ Ga(1/2, t),  t ~ Ga(1/2, 1)

r = s = 1/2 is the horseshoe.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import geninvgauss

from nongauss.prob import inverse_gaussian
from nongauss.prob.gig import moments
from nongauss.rank_factor import svm_mixture
from nongauss.rank_factor.config import RankConfig, ShrinkagePrior
from nongauss.rank_factor.data import RankRows
from nongauss.rank_factor.objective import TINY
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


def expected_shrinkage(now: Shrinkage, square: Float[np.ndarray, "D K"], prior: ShrinkagePrior) -> Shrinkage:
    """One round of coordinate ascent on (B3), given the second moments of the coefficients (D, K).

    xi is generalised inverse Gaussian of order r - 1/2; eta ~ Ga(r + s, <xi> + phi);
    phi ~ Ga(1/2 + s D, t + sum of eta); t ~ Ga(1/2 + K / 2, 1 + sum of phi).
    """
    variance, precision = moments(prior.r - 0.5, 2.0 * now.rate, np.maximum(square, TINY))
    rate = (prior.r + prior.s) / (variance + now.scale)
    scale = (0.5 + prior.s * len(square)) / (now.hyper + rate.sum(axis=0))
    hyper = (0.5 + 0.5 * len(scale)) / (1.0 + scale.sum())
    return Shrinkage(precision, rate, scale, float(hyper))


def drawn_shrinkage(
    rng: np.random.Generator, now: Shrinkage, value: Float[np.ndarray, "D K"], prior: ShrinkagePrior
) -> Shrinkage:
    """One Gibbs draw given the coefficients `value` (D, K).

    The variance xi is a Beta-prime variable times phi. Seen as xi | k ~ inverse Ga(s, k), k ~ Ga(r, 1/phi),
    its conditionals are gammas for every r and s; phi is then drawn with a fresh eta given xi, as the model
    is written. Both views have the same p(xi | phi).
    """
    r, s = prior.r, prior.s
    kappa = rng.gamma(r + s, 1.0, value.shape) / (now.precision + 1.0 / now.scale)
    rate_of_precision = kappa + np.maximum(0.5 * value**2, TINY)
    precision = np.maximum(rng.gamma(s + 0.5, 1.0, value.shape), 1e-30) / rate_of_precision
    rate = rng.gamma(r + s, 1.0, value.shape) / (1.0 / precision + now.scale)
    scale = rng.gamma(0.5 + s * len(value), 1.0, value.shape[1]) / (now.hyper + rate.sum(axis=0))
    hyper = rng.gamma(0.5 + 0.5 * len(scale)) / (1.0 + scale.sum())
    return Shrinkage(precision, rate, np.maximum(scale, 1e-300), float(hyper))


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
        return expected_shrinkage(now, c.squares, prior)

    def rescale(self, A: Normal, z: Normal, shrink: Shrinkage, slab: float) -> Rescaled:
        """Factors, loadings and their shrinkage on another scale: left alone, as the bound is at its best."""
        return A, z, shrink

    def noise(self, rate: Float[np.ndarray, " D"], shape: Float[np.ndarray, " D"]) -> Float[np.ndarray, " D"]:
        """A variance whose inverse is Ga(shape, rate): one over the expected inverse."""
        variance: Float[np.ndarray, " D"] = rate / shape
        return variance

    def label_weights(
        self, u: Float[np.ndarray, "*B"], second: Float[np.ndarray, "*B"]
    ) -> Float[np.ndarray, "*B"]:
        """<1/lambda> of labels or pairs, <u^2>^{-1/2}."""
        return svm_mixture.expected_weights(second)

    def shares(self, logs: Float[np.ndarray, "N T"]) -> Float[np.ndarray, "N T"]:
        """q(t) of each row from logs (N, T)."""
        return svm_mixture.softmax(logs)

    def gate(
        self, gate: Gate, z: Normal, shares: Float[np.ndarray, "N T"], weight: Float[np.ndarray, " N"]
    ) -> Gate:
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
        return drawn_shrinkage(self.rng, now, c.mean, prior)

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

    def noise(self, rate: Float[np.ndarray, " D"], shape: Float[np.ndarray, " D"]) -> Float[np.ndarray, " D"]:
        """A variance whose inverse is Ga(shape, rate)."""
        return rate / np.maximum(self.rng.gamma(shape), 1e-300)

    def label_weights(
        self, u: Float[np.ndarray, "*B"], second: Float[np.ndarray, "*B"]
    ) -> Float[np.ndarray, "*B"]:
        """1/lambda of labels or pairs, inverse Gaussian(1 / |u|, 1)."""
        return inverse_gaussian.draw(self.rng, u)

    def shares(self, logs: Float[np.ndarray, "N T"]) -> Float[np.ndarray, "N T"]:
        """t of each row from logs (N, T), as 0 and 1, by Gumbel noise."""
        noisy = logs + self.rng.gumbel(size=logs.shape)
        found: Float[np.ndarray, "N T"] = np.eye(logs.shape[1])[noisy.argmax(axis=1)]
        return found

    def gate(
        self, gate: Gate, z: Normal, shares: Float[np.ndarray, "N T"], weight: Float[np.ndarray, " N"]
    ) -> Gate:
        """The mixture's parameters."""
        return svm_mixture.draw_gate(self.rng, gate, z.mean, shares, weight)


Inference = VariationalBayes | Gibbs

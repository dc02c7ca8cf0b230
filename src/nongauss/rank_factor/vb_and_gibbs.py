"""Two ways to run the same sweep: take expectations (variational Bayes) or draw (Gibbs)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import geninvgauss

from nongauss.prob import inverse_gaussian
from nongauss.rank_factor import rank_likelihood as cells
from nongauss.rank_factor import shrinkage
from nongauss.rank_factor import svm_mixture as experts
from nongauss.rank_factor.params import Config, FloatArray, Normal, cholesky_draw, solve
from nongauss.rank_factor.rank_likelihood import Rows, Scale, Sites, Terms
from nongauss.rank_factor.shrinkage import Prior, Shrinkage
from nongauss.rank_factor.svm_mixture import Experts, Gate

System = tuple[FloatArray, FloatArray]
Scaled = tuple[Normal, Normal, Shrinkage]


class Expect(NamedTuple):
    """Variational Bayes: every quantity is a q, and the next one is the best given the others."""

    dtype: Any = np.float64

    def terms(self, A: Normal, scale: Scale) -> Terms:
        """What rows need of the loadings."""
        return cells.terms_of(A, scale, self.dtype)

    def sites(self, z: Normal, terms: Terms, rows: Rows, config: Config) -> Sites:
        """Quadratics of the cells."""
        return cells.expected_sites(z, terms, rows, config)

    def normal(self, system: System) -> Normal:
        """From precision and linear term."""
        return solve(*system)

    def shrink(self, now: Shrinkage, c: Normal, prior: Prior) -> Shrinkage:
        """Of coefficients (D, K)."""
        return shrinkage.expect(now, c.mean**2 + np.einsum("dkk->dk", c.covariance), prior)

    def rescale(self, A: Normal, z: Normal, shrink: Shrinkage, slab: float) -> Scaled:
        """Factors, loadings and their shrinkage on another scale: left alone, as the bound is at its best."""
        return A, z, shrink

    def noise(self, rate: FloatArray, shape: FloatArray) -> FloatArray:
        """A variance whose inverse is Ga(shape, rate)."""
        return rate / shape

    def label_weights(self, u: FloatArray, square: FloatArray) -> FloatArray:
        """1/lambda of labels."""
        return experts.floored(square)

    def shares(self, logs: FloatArray) -> FloatArray:
        """q(t) from logs (N, T)."""
        return experts.softmax(logs)

    def gate(self, gate: Gate, z: Normal, shares: FloatArray, weight: FloatArray) -> Gate:
        """The mixture's parameters."""
        return experts.update_gate(gate, z, shares, weight)


class Draw(NamedTuple):
    """Gibbs: every quantity is a draw given the others. A row of weight w counts w times in sums."""

    rng: np.random.Generator
    dtype: Any = np.float64

    def terms(self, A: Normal, scale: Scale) -> Terms:
        """What rows need of the loadings."""
        return cells.terms_of_draw(A.mean, scale, self.dtype)

    def sites(self, z: Normal, terms: Terms, rows: Rows, config: Config) -> Sites:
        """Quadratics of the cells."""
        return cells.drawn_sites(self.rng, z.mean, terms, rows, config)

    def normal(self, system: System) -> Normal:
        """From precision and linear term."""
        return point(cholesky_draw(self.rng, *system))

    def shrink(self, now: Shrinkage, c: Normal, prior: Prior) -> Shrinkage:
        """Of coefficients (D, K)."""
        return shrinkage.draw(self.rng, now, c.mean, prior)

    def rescale(self, A: Normal, z: Normal, shrink: Shrinkage, slab: float) -> Scaled:
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

    def label_weights(self, u: FloatArray, square: FloatArray) -> FloatArray:
        """1/lambda of labels."""
        return inverse_gaussian.draw(self.rng, u)

    def shares(self, logs: FloatArray) -> FloatArray:
        """t of each row from logs (N, T), as 0 and 1."""
        noisy = logs + self.rng.gumbel(size=logs.shape)
        return np.eye(logs.shape[1])[noisy.argmax(axis=1)]

    def gate(self, gate: Gate, z: Normal, shares: FloatArray, weight: FloatArray) -> Gate:
        """The mixture's parameters."""
        return experts.draw_gate(self.rng, gate, z.mean, shares, weight)


Way = Expect | Draw


def point(mean: FloatArray) -> Normal:
    """A known value as a normal without variance."""
    return Normal(mean, np.broadcast_to(0.0, (*mean.shape, mean.shape[-1])))


def update_experts(
    way: Way, now: Experts, z: Normal, shares: FloatArray, y: FloatArray, weight: FloatArray, prior: Prior
) -> Experts:
    """Coefficients, their shrinkage and the gate, given the factors."""
    g = way.label_weights(*experts.margins(now, z, y))
    beta = way.normal(experts.beta_system(now, z, g, shares, y, weight))
    T, C, K1 = beta.mean.shape
    flat = Normal(
        beta.mean[..., :-1].reshape(T * C, K1 - 1).T,
        np.zeros((K1 - 1, T * C, T * C)),
    )
    variance = np.einsum("tckk->tck", beta.covariance)[..., :-1].reshape(T * C, K1 - 1).T
    flat.covariance[:, np.arange(T * C), np.arange(T * C)] = variance
    shrink = way.shrink(now.shrink, flat, prior)
    gate = None if now.gate is None else way.gate(now.gate, z, shares, weight)
    return Experts(beta, shrink, gate)

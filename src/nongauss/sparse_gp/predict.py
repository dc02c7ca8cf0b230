"""What models say about new rows: moments of the latent functions, in blocks of rows, and the law of y."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from nongauss.core.records import persistable
from nongauss.core.schema import LARGEST_LOG
from nongauss.optimise.course import FitResult
from nongauss.predictive.combined import mixture
from nongauss.predictive.distribution import PredictiveDistribution
from nongauss.sparse_gp.buffers import recycled
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.hyper_draws import HyperParameters
from nongauss.sparse_gp.kernels import FloatArray, Kernel, Space, Sum
from nongauss.sparse_gp.likelihoods import Likelihood
from nongauss.sparse_gp.objective import latent_moments
from nongauss.sparse_gp.params import GPModel, basis, row_slices

if TYPE_CHECKING:
    from nongauss.sparse_gp.neighbours import NearResiduals

LONE = 0.5
"""Share of a term's variance at a row from which it counts as noise, where no other row tells of it."""


@persistable("sparse_gp.Posterior", "nongauss.sparse_gp.predict:Posterior")
class GPPosterior(NamedTuple):
    """All that a prediction needs: f_l(x) ~ N(offset_l + k' alpha_l, k(x, x) - k' W_l k), k = k(Z, x).

    `thetas`: log parameters of each kernel. `kernel_of`: the kernel of each latent function. `psi`: the
    likelihood's parameters. `alpha` (C, L, M), `W` (C, L, M, M): C equally weighted components of q.
    """

    kernels: tuple[Kernel, ...]
    kernel_of: tuple[int, ...]
    space: Space
    likelihood: Likelihood
    offset: Float64[np.ndarray, " L"]
    thetas: tuple[FloatArray, ...]
    psi: Float64[np.ndarray, " psi"]
    Z: Float64[np.ndarray, "M D"]
    alpha: Float64[np.ndarray, "C L M"]
    W: Float64[np.ndarray, "C L M M"]

    def check_fields(self) -> None:
        """Raises ValueError where kernels, their parameters, columns and latent functions do not fit."""
        D, L = self.Z.shape[1], len(self.offset)
        sizes = [len(theta) for theta in self.thetas]
        fits = len(self.space.group) == D and set(self.space.group) <= set(range(len(self.space.names)))
        fits = fits and len(self.Z) and sizes == [kernel.size(self.space) for kernel in self.kernels]
        fits = fits and len(self.psi) == len(self.likelihood.bounds())
        fits = fits and len(self.kernel_of) == L and set(self.kernel_of) <= set(range(len(self.kernels)))
        largest = max(np.abs(logs).max(initial=0.0) for logs in (*self.thetas, self.psi))
        if not fits or self.likelihood.n_latent != L or largest > LARGEST_LOG:
            raise ValueError("kernels, their parameters, columns and latent functions do not fit each other")

    @recycled()
    def mean(self, X: FloatArray) -> FloatArray:
        """Mean of each latent function at encoded rows X (N, D): (N, L)."""
        out = np.empty((len(X), len(self.offset)))
        for rows in row_slices(len(X), len(self.Z)):
            for number, kernel in enumerate(self.kernels):
                K, _ = kernel.forward(self.thetas[number], self.space, self.Z, X[rows])
                for l in self.latents_of(number):
                    out[rows, l] = self.offset[l] + K.T @ self.alpha[:, l].mean(axis=0)
        return out

    @recycled()
    def moments(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each latent function under each component of q: (C, N, L) each."""
        n_components = len(self.alpha)
        mean, variance = np.empty((2, n_components, len(X), len(self.offset)))
        for rows in row_slices(len(X), len(self.Z)):
            for number, kernel in enumerate(self.kernels):
                at = basis(kernel, self.thetas[number], self.space, self.Z, X[rows])
                for c, l in product(range(n_components), self.latents_of(number)):
                    moments = latent_moments(at, self.alpha[c, l], self.W[c, l])
                    mean[c, rows, l], variance[c, rows, l] = moments[:2]
        return mean + self.offset, variance

    def readable(self) -> tuple[dict[str, float], dict[str, float]]:
        """Kernel parameters by name, and the length-scale of each column."""
        params: dict[str, float] = {}
        for number, (kernel, theta) in enumerate(zip(self.kernels, self.thetas, strict=True)):
            prefix = self.likelihood.latent_names[self.latents_of(number)[0]]
            labels = kernel.labels(self.space)
            params |= {prefix + label: float(np.exp(t)) for label, t in zip(labels, theta, strict=True)}
        return params, self.kernels[0].lengthscales(self.thetas[0], self.space)

    def lone_variance(self) -> float:
        """Variance of f_1 at a row that no other row could tell: noise by another name.

        Of a sum of kernels, terms of which the other inducing inputs leave more than `LONE` of the variance
        open at one of them, even if they showed the term without noise: 1 / (K^-1)_nn. 0 of a single kernel.
        """
        kernel = self.kernels[0]
        if not isinstance(kernel, Sum) or len(self.Z) < 2:
            return 0.0
        total = 0.0
        for part, theta in kernel.pieces(self.thetas[0], self.space):
            size = float(part.diagonal(theta, self.space, self.Z).mean())
            K, _ = part.forward(theta, self.space, self.Z, self.Z)
            inverse = np.linalg.inv(K + 1e-6 * size * np.eye(len(K)))
            left = float((1.0 / inverse.diagonal()).mean())
            total += left if left > LONE * size else 0.0
        return total

    def latents_of(self, kernel: int) -> list[int]:
        """The latent functions that have this kernel."""
        return [l for l, own in enumerate(self.kernel_of) if own == kernel]


class HyperSpread(NamedTuple):
    """The normal about the best hyper-parameters, and posteriors at draws of them."""

    at: HyperParameters
    posteriors: tuple[GPPosterior, ...]


class FittedGP(NamedTuple):
    """One of the models that are averaged, fitted."""

    model: GPModel
    result: FitResult
    posterior: GPPosterior
    spread: HyperSpread | None = None
    first_bound: float = math.nan
    """F where the fit began, of one that made no step."""

    @property
    def posteriors(self) -> tuple[GPPosterior, ...]:
        """At the best hyper-parameters, then at draws of them, if there are any."""
        return (self.posterior, *(self.spread.posteriors if self.spread else ()))

    @property
    def bound(self) -> float:
        """F at the end of the fit, which is where it began if no step led on; NaN where there is none."""
        return float(self.result.trace[-1]["bound"]) if self.result.trace else self.first_bound

    def is_exact(self, rows: GPRows) -> bool:
        """Is it the exact Gaussian process of the rows that it was fitted to?"""
        return self.model.likelihood.conjugate and len(self.posterior.Z) == len(rows.y)


class GPAverage(NamedTuple):
    """Fitted models and their shares (C,), the greatest first: predictions are averages of theirs."""

    posteriors: tuple[GPPosterior, ...]
    weights: FloatArray

    def likelihood_params(self, scale: float, near: NearResiduals | None = None) -> dict[str, float]:
        """The likelihood's parameters by name, averaged, in units of a target that came divided by `scale`.

        Noise is all that another row at the same place does not share, so `lone_variance` is part of it, and
        what neighbours tell is not.
        """
        total: dict[str, float] = {}
        for posterior, share in zip(self.posteriors, self.weights, strict=True):
            likelihood = posterior.likelihood
            psi = posterior.psi if near is None else posterior.psi + near.psi_shift
            if likelihood.conjugate:
                psi = np.log(np.exp(psi) + posterior.lone_variance())
            for name, value in likelihood.readable(psi, scale).items():
                total[name] = total.get(name, 0.0) + float(share) * value
        return total

    def mean(self, X: FloatArray) -> FloatArray:
        """The average of the means of the first latent function: (N,)."""
        out: FloatArray = self.weights @ [posterior.mean(X)[:, 0] for posterior in self.posteriors]
        return out

    def probabilities(self, moments: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
        """The average of the classes' probabilities (N, C), from each model's moments of f (1, N, L)."""
        total: FloatArray = sum(
            share * posterior.likelihood.probabilities(*own, posterior.psi)
            for posterior, share, own in zip(self.posteriors, self.weights, moments, strict=True)
        )
        return total

    def law(
        self,
        X: FloatArray,
        shift: FloatArray,
        centre: float = 0.0,
        scale: float = 1.0,
        trials: FloatArray | None = None,
        near: NearResiduals | None = None,
    ) -> PredictiveDistribution:
        """The distribution of centre + scale * y at encoded rows X, `shift` (N,) added to the latent mean.

        `trials` (N,): of a likelihood that takes them, 1 each without. `near`: what neighbours add.
        """
        parts: list[Any] = []
        told = None if near is None else near.at(X)
        for posterior in self.posteriors:
            mean, variance = posterior.moments(X)
            if near is not None and told is not None:
                posterior, mean, variance = near.beside(posterior, mean, variance, told)
            mean += shift[:, None] * posterior.likelihood.rates
            likelihood: Any = posterior.likelihood
            if trials is not None:
                likelihood = likelihood.with_trials(trials)
            parts.append(likelihood.predictive(mean, variance, posterior.psi, centre=centre, scale=scale))
        return mixture(parts, self.weights)

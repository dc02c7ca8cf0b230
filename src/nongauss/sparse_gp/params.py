"""What is estimated, and everything that stays fixed while it is: rows, kernels, likelihood."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nongauss.sparse_gp.kernels.algebra import PRIOR_SD, FloatArray, Kernel, Space
from nongauss.sparse_gp.likelihoods.base import Likelihood

WIDEST = 12.0
"""Log parameters of kernels stay within this of 0."""

LATENT_SD = 3.0
"""Prior sd of the log variance of a function that is not on the target's scale: labels that are nearly
separable want it large, and held-out log-loss of five binary sets is on average a little lower so."""

INPUT_UNIT = 4.0
"""An optimiser sees inducing inputs divided by this: each matters to fewer rows than a log parameter does,
and so takes longer steps. A fit needs about two thirds of the iterations."""


class Model(NamedTuple):
    """The fixed parts of a model.

    `kernels`: one for each independent covariance; `kernel_of` gives each of the L latent functions its own.
    `offset` (L,): the latent functions' constant mean c.
    """

    kernels: tuple[Kernel, ...]
    kernel_of: tuple[int, ...]
    space: Space
    likelihood: Likelihood
    offset: FloatArray

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of log parameters of each kernel."""
        return tuple(kernel.size(self.space) for kernel in self.kernels)

    @property
    def n_leaves(self) -> int:
        """Number of kernel matrices that an evaluation makes."""
        return sum(kernel.n_leaves for kernel in self.kernels)

    def latents_of(self, kernel: int) -> list[int]:
        """The latent functions that have this kernel."""
        return [latent for latent, own in enumerate(self.kernel_of) if own == kernel]


class Rows(NamedTuple):
    """Encoded rows X (N, D), y (N,), weight (N,), and what is added to the latent mean: shift (N,)."""

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    shift: FloatArray

    def take(self, index: np.ndarray | slice) -> Rows:
        """Some of the rows."""
        return Rows(*(part[index] for part in self))


class Params(NamedTuple):
    """Kernel parameters (one array each kernel), likelihood parameters psi (K,), inducing inputs Z (M, D)."""

    thetas: tuple[FloatArray, ...]
    psi: FloatArray
    Z: FloatArray

    def flat(self, with_inputs: bool) -> FloatArray:
        """All numbers in one vector, for an optimiser; Z only if it is to move."""
        inputs = self.Z.ravel() / INPUT_UNIT if with_inputs else np.zeros(0)
        return np.concatenate([*self.thetas, self.psi, inputs])

    def like(self, flat: FloatArray) -> Params:
        """The inverse of `flat`."""
        cuts = np.cumsum([*(len(theta) for theta in self.thetas), len(self.psi)])
        *thetas, psi, Z = np.split(flat, cuts)
        return Params(tuple(thetas), psi, INPUT_UNIT * Z.reshape(self.Z.shape) if len(Z) else self.Z)


def start(model: Model, psi: FloatArray, Z: FloatArray) -> Params:
    """Every kernel where it starts."""
    return Params(tuple(kernel.start(model.space) for kernel in model.kernels), psi, Z)


def box(model: Model, n_inputs: int) -> list[tuple[float | None, float | None]]:
    """Bounds of each element of `Params.flat`."""
    bounds: list[tuple[float | None, float | None]] = [(-WIDEST, WIDEST)] * sum(model.sizes)
    return [*bounds, *model.likelihood.bounds(), *[(None, None)] * n_inputs]


def log_prior(model: Model, params: Params) -> tuple[float, list[FloatArray], FloatArray]:
    """Log density, up to a constant, of kernel and likelihood parameters, and its derivatives by them.

    Log length-scales and variances are normal about the kernel's own mean; so none runs off on its own. How
    large f is is known roughly where the target is standardised, and hardly where f is a logit or a log rate.
    """
    of_variance = PRIOR_SD if model.likelihood.target == "standardised" else LATENT_SD
    value, by_psi = model.likelihood.log_prior(params.psi)
    by_thetas = []
    for kernel, theta in zip(model.kernels, params.thetas, strict=True):
        sd = kernel.prior_sd(model.space, of_variance)
        z = (theta - kernel.prior_mean(model.space)) / sd
        value -= 0.5 * float(z @ z)
        by_thetas.append(-z / sd)
    return value, by_thetas, by_psi

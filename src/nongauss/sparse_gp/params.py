"""What is estimated, with its start values and constraints, and everything that stays fixed meanwhile."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.kernels import FloatArray, Kernel, Space
from nongauss.sparse_gp.likelihoods import Expectation, Likelihood

WIDEST = 12.0
"""Log parameters of kernels stay within this of 0."""

INPUT_UNIT = 4.0
"""An optimiser sees inducing inputs divided by this: each matters to fewer rows than a log parameter does,
and so takes longer steps. A fit needs about two thirds of the iterations."""


class GPModel(NamedTuple):
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


class GPParams(NamedTuple):
    """Kernel parameters (one array each kernel), likelihood parameters psi (K,), inducing inputs Z (M, D)."""

    thetas: tuple[FloatArray, ...]
    psi: FloatArray
    Z: FloatArray

    def flat(self, with_inputs: bool) -> FloatArray:
        """All numbers in one vector, for an optimiser; Z only if it is to move."""
        inputs = self.Z.ravel() / INPUT_UNIT if with_inputs else np.zeros(0)
        return np.concatenate([*self.thetas, self.psi, inputs])

    def like(self, flat: FloatArray) -> GPParams:
        """The inverse of `flat`."""
        cuts = np.cumsum([*(len(theta) for theta in self.thetas), len(self.psi)])
        *thetas, psi, Z = np.split(flat, cuts)
        return GPParams(tuple(thetas), psi, INPUT_UNIT * Z.reshape(self.Z.shape) if len(Z) else self.Z)


class GaussianSites(NamedTuple):
    """lambda and beta (N, L), weights included: observations of c + lambda / beta with precision beta."""

    linear: FloatArray
    precision: FloatArray

    def towards(self, other: GaussianSites, step: float) -> GaussianSites:
        """Sites that are a share `step` of the way to other sites."""
        return GaussianSites(*(mine + step * (its - mine) for mine, its in zip(self, other, strict=True)))


def start(model: GPModel, psi: FloatArray, Z: FloatArray) -> GPParams:
    """Parameters with every kernel where it starts."""
    return GPParams(tuple(kernel.start(model.space) for kernel in model.kernels), psi, Z)


def box(model: GPModel, n_inputs: int) -> list[tuple[float | None, float | None]]:
    """Bounds of each element of `GPParams.flat`."""
    bounds: list[tuple[float | None, float | None]] = [(-WIDEST, WIDEST)] * sum(model.sizes)
    return [*bounds, *model.likelihood.bounds(), *[(None, None)] * n_inputs]


def first_sites(model: GPModel, rows: GPRows, psi: FloatArray) -> GaussianSites:
    """Sites from each row's own target alone; none is negative, so that there is a q to begin with."""
    centre = model.offset + rows.shift[:, None]
    mean, variance = model.likelihood.first_moments(rows.y, centre)
    of = model.likelihood.expected_log_prob(rows.y, mean, variance, psi)
    return sites_at(mean - centre, of._replace(d_variance=np.minimum(of.d_variance, 0.0)), rows.weight)


def sites_at(centred: FloatArray, expectation: Expectation, weight: FloatArray) -> GaussianSites:
    """Where the expectations' derivatives put the sites of rows with mu - c = `centred` (N, L).

    beta = -2 w h and lambda = w g + beta (mu - c), with g and h the derivatives by mean and variance.
    """
    precision = -2.0 * weight[:, None] * expectation.d_variance
    return GaussianSites(weight[:, None] * expectation.d_mean + precision * centred, precision)

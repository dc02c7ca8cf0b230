"""What the model says about new rows: moments of the latent functions, in blocks of rows."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from nongauss.core.records import persistable
from nongauss.sparse_gp.blocks import row_slices
from nongauss.sparse_gp.kernels.algebra import FloatArray, Kernel, Space
from nongauss.sparse_gp.likelihoods.base import Likelihood
from nongauss.sparse_gp.objective import basis, conditional


@persistable("sparse_gp.Posterior", "nongauss.sparse_gp.predict:Posterior")
class Posterior(NamedTuple):
    """All that a prediction needs: f_l(x) ~ N(offset_l + k' alpha_l, k(x, x) - k' W_l k), k = k(Z, x).

    `thetas`: log parameters of each kernel. `kernel_of`: the kernel of each latent function. `psi`: the
    likelihood's parameters. `alpha` (C, L, M), `W` (C, L, M, M): C equally weighted components of q.
    """

    kernels: tuple[Kernel, ...]
    kernel_of: tuple[int, ...]
    space: Space
    likelihood: Likelihood
    offset: FloatArray
    thetas: tuple[FloatArray, ...]
    psi: FloatArray
    Z: FloatArray
    alpha: FloatArray
    W: FloatArray

    def mean(self, X: FloatArray) -> FloatArray:
        """Mean of each latent function at encoded rows X (N, D): (N, L)."""
        out = np.empty((len(X), len(self.offset)))
        for rows in row_slices(len(X), len(self.Z)):
            for number, kernel in enumerate(self.kernels):
                K, _ = kernel.forward(self.thetas[number], self.space, self.Z, X[rows])
                for l in self._latents_of(number):
                    out[rows, l] = self.offset[l] + K.T @ self.alpha[:, l].mean(axis=0)
        return out

    def moments(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each latent function under each component of q: (C, N, L) each."""
        n_components = len(self.alpha)
        mean, variance = np.empty((2, n_components, len(X), len(self.offset)))
        for rows in row_slices(len(X), len(self.Z)):
            for number, kernel in enumerate(self.kernels):
                at = basis(kernel, self.thetas[number], self.space, self.Z, X[rows])
                for c, l in product(range(n_components), self._latents_of(number)):
                    moments = conditional(at, self.alpha[c, l], self.W[c, l])
                    mean[c, rows, l], variance[c, rows, l] = moments[:2]
        return mean + self.offset, variance

    def _latents_of(self, kernel: int) -> list[int]:
        return [l for l, own in enumerate(self.kernel_of) if own == kernel]

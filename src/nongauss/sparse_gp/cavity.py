"""q without the site of one row (the cavity of expectation propagation), at that row or at another place.

At the sites' fixed point row n adds g f_n + h f_n^2 to log q(f), g and h the derivatives of its expectation
by mean and variance. With beta = -2 w h, b the variance of f_n that q(u) leaves open, and c the covariance of
that with f at a place x, what remains there without the row is

    mean m - c w g / (1 - beta b),   variance v + c^2 beta / (1 - beta b)

and c = b at the row itself. A row whose cells were missing was in the fit where a draw put it, given its
target; it is predicted where draws without the target put it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from nongauss.core.records import persistable
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.objective import exact_solution, latent_moments
from nongauss.sparse_gp.params import GPModel, GPParams, basis, inducing, row_slices
from nongauss.sparse_gp.predict import GPPosterior

SMALLEST_REST = 1e-9
"""Share of what is known of f_n that is not from the row's own target: rounding leaves less."""

MOST_APART = 3.0
"""Prior sds by which the mean of f without a row may lie beyond the means at all rows."""

Places = NDArray[np.intp]
Moments = tuple[Float[np.ndarray, "C N L"], Float[np.ndarray, "C N L"]]


class Cavities(Protocol):
    """What a posterior says without each of the rows that it was fitted to."""

    def at(self, X: FloatArray, own: Places) -> Moments:
        """Mean and variance (1, N, L) of the latent functions at encoded rows X, row own[n] left out of q."""


def left_out_moments(posterior: GPPosterior, rows: GPRows) -> Moments:
    """Mean and variance of each latent function at each row without the row's own site: (1, N, L) each."""
    return SparseCavities.of(posterior, rows).at(rows.X, np.arange(len(rows.X)))


@dataclass(frozen=True, eq=False)
class SparseCavities:
    """By the sites of rows of which u tells; (N, L) each.

    Without a row the others cannot leave more open than the prior does, k_nn - a with a the variance given u:
    that bounds 1 - beta b from below, which where the row alone tells f is a difference of nearly equal
    numbers, and of one that is not quite converged.
    """

    posterior: GPPosterior
    rows: GPRows
    mean: FloatArray
    """m."""
    given: FloatArray
    """a, which a site does not reach; 0 where every row is an inducing input."""
    open_part: FloatArray
    """b."""
    pull: FloatArray
    """w g."""
    precision: FloatArray
    """beta."""
    rest: FloatArray
    """1 - beta b."""
    reach: tuple[FloatArray, FloatArray]
    """Between what means without a row lie (L,): where it alone tells f, g is what rounding leaves."""

    @classmethod
    def of(cls, posterior: GPPosterior, rows: GPRows) -> SparseCavities:
        """Of rows that a posterior was fitted to, each left out with its weight."""
        at = _moments(posterior, rows.X)
        mean = at.mean + rows.shift[:, None]
        sites = posterior.likelihood.expected_log_prob(rows.y, mean, at.variance, posterior.psi)
        open_part = np.maximum(at.variance - at.given, 0.0)
        weight = rows.weight[:, None]
        precision = -2.0 * weight * sites.d_variance
        least = np.minimum(open_part / np.maximum(at.prior - at.given, SMALLEST_REST * at.prior), 1.0)
        rest = np.maximum(1.0 - precision * open_part, np.maximum(least, SMALLEST_REST))
        wide = MOST_APART * np.sqrt(at.prior.max(axis=0))
        reach = (at.mean.min(axis=0) - wide, at.mean.max(axis=0) + wide)
        return cls(posterior, rows, mean, at.given, open_part, weight * sites.d_mean, precision, rest, reach)

    def at(self, X: FloatArray, own: Places) -> Moments:
        """Latent moments at encoded rows X, each without the row at its place in `own`; see `Cavities.at`."""
        if np.array_equal(X, self.rows.X[own]):
            more = self.open_part[own] / self.rest[own]
            mean = self._within_reach(self.mean[own] - more * self.pull[own], own)
            return mean[None], (more + self.given[own])[None]
        at = _moments(self.posterior, X)
        shared = self._shared(X, own)
        mean = at.mean + self.rows.shift[own, None] - shared * self.pull[own] / self.rest[own]
        variance = at.variance + shared**2 * self.precision[own] / self.rest[own]
        mean = self._within_reach(mean, own)
        return mean[None], np.clip(variance, SMALLEST_REST * at.prior, at.prior)[None]

    def _within_reach(self, mean: FloatArray, own: Places) -> FloatArray:
        """Means (N, L) of rows `own`, but for their shift between the ends of `reach`."""
        shift = self.rows.shift[own, None]
        out: FloatArray = np.clip(mean - shift, *self.reach) + shift
        return out

    def _shared(self, X: FloatArray, own: Places) -> Float[np.ndarray, "N L"]:
        """c = k_x' (K_zz^-1 - W) k_n of places X and rows `own`."""
        posterior, order = self.posterior, np.argsort(own, kind="stable")
        out = np.empty((len(X), len(posterior.offset)))
        for number, kernel in enumerate(posterior.kernels):
            theta, space, Z = posterior.thetas[number], posterior.space, posterior.Z
            root = inducing(kernel, theta, space, Z).inverse
            for part in row_slices(len(X), len(Z)):
                places = order[part]
                rows, number_of = np.unique(own[places], return_inverse=True)
                K, _ = kernel.forward(theta, space, Z, X[places])
                there, _ = kernel.forward(theta, space, Z, self.rows.X[rows])
                told = root.T @ (root @ there)
                for l in posterior.latents_of(number):
                    left = told - posterior.W[0, l] @ there
                    out[places, l] = np.einsum("mn,mn->n", K, left[:, number_of])
        return out


class _Moments(NamedTuple):
    """(N, L) of latent functions: mean, variance, variance given u (k_nn - k_n' K_zz^-1 k_n), k_nn."""

    mean: FloatArray
    variance: FloatArray
    given: FloatArray
    prior: FloatArray


def _moments(posterior: GPPosterior, X: Float[np.ndarray, "N D"]) -> _Moments:
    mean, variance, given, prior = np.zeros((4, len(X), len(posterior.offset)))
    for number, kernel in enumerate(posterior.kernels):
        theta, latents = posterior.thetas[number], posterior.latents_of(number)
        root = inducing(kernel, theta, posterior.space, posterior.Z).inverse
        for rows in row_slices(len(X), len(posterior.Z)):
            at = basis(kernel, theta, posterior.space, posterior.Z, X[rows])
            white = root @ at.K
            prior[rows, latents] = at.diagonal[:, None]
            left = np.maximum(at.diagonal - np.einsum("mn,mn->n", white, white), 0.0)
            given[rows, latents] = left[:, None]
            for l in latents:
                mean[rows, l], variance[rows, l], _ = latent_moments(
                    at, posterior.alpha[0, l], posterior.W[0, l]
                )
    return _Moments(mean + posterior.offset, variance, given, prior)


@persistable("sparse_gp.ExactRows")
class ExactRows(NamedTuple):
    """Targets and weights (N,) of the rows of an exact process, in the order of its inducing inputs."""

    y: Float64[np.ndarray, " N"]
    weight: Float64[np.ndarray, " N"]
    shift: Float64[np.ndarray, " N"]


@dataclass(frozen=True, eq=False)
class ExactCavities:
    """By the inverse P of the targets' covariance, without differences of nearly equal numbers.

    Of a row of weight W, whose noise is t = s^2 / W, a share r = w / W is left out. With d = 1 - r + r t P_nn
    the row's target is t a_n / d above its mean without it, and b = t (1 - t P_nn) becomes b / d (for r = 1
    Rasmussen and Williams 2006, eq. 5.12); c = (k_x' P)_n t.
    """

    posterior: GPPosterior
    Z: FloatArray
    centred: FloatArray
    """Targets less the constant mean (N,)."""
    noise: FloatArray
    alpha: FloatArray
    inverse: FloatArray
    number: Places
    """The inducing input that each row is."""
    share: FloatArray
    """r of each row."""
    shift: FloatArray

    @classmethod
    def of(cls, posterior: GPPosterior, known: ExactRows, rows: GPRows) -> ExactCavities:
        """Of the rows of an exact process, each left out with its weight."""
        Z = posterior.Z
        model = GPModel(
            posterior.kernels, posterior.kernel_of, posterior.space, posterior.likelihood, posterior.offset
        )
        params = GPParams(posterior.thetas, posterior.psi, Z)
        at = exact_solution(model, params, GPRows(Z, *known))
        number = row_numbers(Z, known.y, rows.X, rows.y)
        share = np.minimum(rows.weight / known.weight[number], 1.0)
        return cls(posterior, Z, at.centred, at.noise, at.alpha, at.inverse, number, share, rows.shift)

    def at(self, X: FloatArray, own: Places) -> Moments:
        """Latent moments at encoded rows X, each without the row at its place in `own`; see `Cavities.at`."""
        n, r = self.number[own], self.share[own]
        noise = self.noise[n]
        left = noise * self.inverse[n, n]
        d = 1.0 - r + r * left
        pull = self.alpha[n] * noise / d
        in_place = (self.Z[n] == X).all(axis=1)
        kernel, theta, space = self.posterior.kernels[0], self.posterior.thetas[0], self.posterior.space
        K, _ = kernel.forward(theta, space, self.Z, X[~in_place])
        told = self.inverse @ K
        shared, kept = told[n[~in_place], np.arange(K.shape[1])], ~in_place
        prior = kernel.diagonal(theta, space, X[kept])
        mean, variance = self.centred[n] - pull, noise * (1.0 - left) / d
        mean[kept] = K.T @ self.alpha - shared * (r * self.alpha[n] * noise / d)[kept]
        spread = prior - np.einsum("mn,mn->n", K, told) + shared**2 * (r * noise / d)[kept]
        variance[kept] = np.clip(spread, 0.0, prior)
        mean += self.posterior.offset[0] + self.shift[own]
        return mean[None, :, None], np.maximum(variance, 0.0)[None, :, None]


def row_numbers(Z: FloatArray, y: FloatArray, X: FloatArray, targets: FloatArray) -> Places:
    """The number among rows Z (M, D), y (M,) of each row X (N, D): at its place that with the nearest target.

    Of rows at no place of these the nearest.
    """
    _, group = np.unique(np.concatenate([Z, X]), axis=0, return_inverse=True)
    known, new = np.split(group.ravel(), [len(Z)])
    order = np.lexsort((y, known))
    first, last = (np.searchsorted(known[order], new, side) for side in ("left", "right"))
    out = order[np.minimum(first, len(Z) - 1)]
    by_place = np.argsort(new, kind="stable")
    for at_place in np.split(by_place, np.flatnonzero(np.diff(new[by_place])) + 1):
        same = order[first[at_place[0]] : last[at_place[0]]]
        if len(same) > 1:
            middles = 0.5 * (y[same[1:]] + y[same[:-1]])
            out[at_place] = same[np.searchsorted(middles, targets[at_place])]
    away = last == first
    if away.any():
        tree = cKDTree(np.column_stack([Z, y]))
        out[away] = tree.query(np.column_stack([X, targets])[away])[1]
    return out

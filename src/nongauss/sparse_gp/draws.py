"""Draws of whole functions from a fitted Gaussian process: values at many rows that belong together.

Up to `MOST_JOINT` distinct rows are drawn at once, from the exact joint posterior, with covariance

    k_q(x, x') = k(x, x') - k(x, Z) W k(Z, x')

Of more rows as many, far from one another, are drawn so. The others then follow given these, each with what
is left of its own variance: O(M) numbers a row and draw. What neighbours tell is drawn row by row, each given
its nearest training rows and the nearest of those drawn before (Vecchia 1988).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from nongauss.sparse_gp.group_effects import effect_variance, strangers
from nongauss.sparse_gp.kernels import FloatArray
from nongauss.sparse_gp.likelihoods import Likelihood
from nongauss.sparse_gp.neighbours import N_NEAR, NearResiduals
from nongauss.sparse_gp.params import inducing_inputs, row_slices
from nongauss.sparse_gp.predict import GPPosterior
from nongauss.tables.completion import N_COMPLETIONS

MOST_JOINT = 1000
"""Distinct rows that are drawn at once."""

_JITTER = 1e-9  # of the mean variance, on the diagonal of a covariance


class _Functions(NamedTuple):
    """Draws of numbers `own` (n,) of the latent functions: f (n, N, L), and what says y given these."""

    own: NDArray[np.intp]
    likelihood: Likelihood
    f: FloatArray
    psi: FloatArray


def function_draws(
    posterior: GPPosterior,
    X: FloatArray,
    n: int,
    rng: np.random.Generator,
    stranger: NDArray[np.intp] | None = None,
) -> NDArray[np.float64]:
    """n draws of the latent functions at encoded rows X (N, D): (n, N, L). Equal rows have equal values.

    `stranger` (N,): the number of a row's group if the fit has not seen it, else -1. Rows of one such group
    share its effect, and those of two do not.
    """
    own_group = np.full(len(X), -1.0) if stranger is None else stranger
    distinct, place = np.unique(np.column_stack([own_group, X]), axis=0, return_inverse=True)
    anchors = inducing_inputs(distinct, MOST_JOINT, int(rng.integers(2**31)))
    component = rng.integers(0, len(posterior.alpha), n)
    out = np.empty((n, len(distinct), len(posterior.offset)))
    for l in range(len(posterior.offset)):
        for c in np.unique(component):
            own = np.flatnonzero(component == c)
            out[own, :, l] = posterior.offset[l] + _draws(posterior, (int(c), l), distinct, anchors, own, rng)
    return out[:, place.ravel()]


def _draws(
    posterior: GPPosterior,
    which: tuple[int, int],
    X: FloatArray,
    anchors: FloatArray,
    own: NDArray[np.intp],
    rng: np.random.Generator,
) -> FloatArray:
    """Draws of one latent function under one component, less its constant mean, at distinct rows: (n, N).

    The first column of rows and anchors is the number of a group that the fit has not seen, or -1.
    """
    c, l = which
    number = posterior.kernel_of[l]
    kernel, theta, space = posterior.kernels[number], posterior.thetas[number], posterior.space
    alpha, W, shared = posterior.alpha[c, l], posterior.W[c, l], effect_variance(kernel, theta, space)
    (stranger, X), (other, anchors) = ((rows[:, 0], rows[:, 1:]) for rows in (X, anchors))
    Kz, _ = kernel.forward(theta, space, posterior.Z, anchors)
    WK = W @ Kz
    covariance, _ = kernel.forward(theta, space, anchors, anchors)
    covariance = covariance + shared * _same(other, other) - Kz.T @ WK
    diagonal = kernel.diagonal(theta, space, anchors) - np.einsum("mn,mn->n", Kz, WK)
    np.fill_diagonal(covariance, np.maximum(diagonal, 0.0) + _JITTER * max(float(diagonal.mean()), 1e-300))
    root = _root(covariance)
    white = root @ rng.standard_normal((len(anchors), len(own)))  # above the mean, (A, n)
    if len(anchors) == len(X):
        every: FloatArray = Kz.T @ alpha + white.T  # both in the order of `np.unique`
        return every
    factor = cho_factor(root @ root.T, lower=True, check_finite=False)
    solved = cho_solve(factor, white, check_finite=False)
    out = np.empty((len(own), len(X)))
    for rows in row_slices(len(X), len(posterior.Z) + len(anchors)):
        Kx, _ = kernel.forward(theta, space, posterior.Z, X[rows])
        WKx = W @ Kx
        cross, _ = kernel.forward(theta, space, anchors, X[rows])
        cross = cross + shared * _same(other, stranger[rows]) - Kz.T @ WKx
        left = kernel.diagonal(theta, space, X[rows]) - np.einsum("mn,mn->n", Kx, WKx)
        left = left - np.einsum("an,an->n", cross, cho_solve(factor, cross, check_finite=False))
        noise = rng.standard_normal((len(own), left.size)) * np.sqrt(np.maximum(left, 0.0))
        out[:, rows] = Kx.T @ alpha + (cross.T @ solved).T + noise
    return out


def _same(a: FloatArray, b: FloatArray) -> NDArray[np.bool_]:
    """Which rows are of one group that the fit has not seen: (A, B)."""
    same: NDArray[np.bool_] = (a[:, None] == b) & (b >= 0.0)
    return same


def _root(covariance: FloatArray) -> FloatArray:
    """A lower factor of a covariance; of one that rounding has left without, by more on its diagonal."""
    more = 0.0
    for _ in range(8):
        try:
            out: FloatArray = cholesky(
                covariance + more * np.eye(len(covariance)), lower=True, check_finite=False
            )
            return out
        except np.linalg.LinAlgError:
            more = 10.0 * more if more else 1e-8 * float(np.abs(covariance.diagonal()).mean())
    raise np.linalg.LinAlgError("The covariance of the rows that are drawn has no factor.")


def target_draws(
    model: Any, X: Any, n: int, rng: np.random.Generator, with_noise: bool
) -> NDArray[np.float64]:
    """n draws at rows of a table of the mean of y given the functions, or with noise of y itself: (N, n)."""
    centre, scale = float(model._scaler.centre[0]), float(model._scaler.scale[0])
    new = model._new_rows(X)
    tables = _completions(model, new, n)
    out = np.empty((len(tables[0]), n))
    for own, likelihood, f, psi in _functions(model, new, tables, n, rng):
        flat = f.reshape(-1, f.shape[2])
        law = likelihood.predictive(flat, np.zeros_like(flat), psi, centre=centre, scale=scale)
        values = law.sample(1, int(rng.integers(2**31)))[:, 0] if with_noise else law.mean
        out[:, own] = values.reshape(f.shape[:2]).T
    return out


def probability_draws(model: Any, X: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """n draws at rows of a table of the classes' probabilities given the functions: (N, C, n)."""
    new = model._new_rows(X)
    tables = _completions(model, new, n)
    out = np.empty((len(tables[0]), len(model.classes_), n))
    for own, likelihood, f, psi in _functions(model, new, tables, n, rng):
        label: Any = likelihood
        flat = f.reshape(-1, f.shape[2])
        values = label.probabilities_given(flat, psi)
        out[:, :, own] = np.moveaxis(values.reshape(*f.shape[:2], -1), 0, -1)
    return out


def _functions(
    model: Any, new: Any, tables: Sequence[FloatArray], n: int, rng: np.random.Generator
) -> Iterator[_Functions]:
    """n draws of the latent functions at rows of a table, given completions of these, in parts.

    Each draw is of one of the models that are averaged, and of one completion of rows with missing cells.
    """
    stranger = None if model.group is None else strangers(model._encoder, model.group, new)
    which = rng.choice(len(model.posteriors_), n, p=model.weights_)
    for number, posterior in enumerate(model.posteriors_):
        for s, encoded in enumerate(tables):
            own = np.flatnonzero((which == number) & (np.arange(n) % len(tables) == s))
            if not len(own):
                continue
            f, psi = function_draws(posterior, encoded, len(own), rng, stranger), posterior.psi
            if model._near is not None:
                psi = psi + model._near.psi_shift
                f += near_draws(model._near, encoded, len(own), rng)[:, :, None]
            yield _Functions(own, posterior.likelihood, f, psi)


def near_draws(near: NearResiduals, X: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """n draws of what neighbours add to f at encoded rows X (N, D): (n, N). Equal rows have equal values."""
    distinct, place = np.unique(X, axis=0, return_inverse=True)
    places = distinct * near.unit
    known, _ = near.nearest(places)
    others = cKDTree(places).query(places, min(N_NEAR + 1, len(places)))[1].reshape(len(places), -1)
    rank = rng.permutation(len(places))
    out = np.empty((len(places), n))
    for row in np.argsort(rank):
        before = others[row][rank[others[row]] < rank[row]]
        at = np.concatenate([near.X[known[row]], places[before]])
        noise = np.concatenate([near.noise[known[row]], np.full(len(before), _JITTER)])
        C = near.ratio * np.exp(cdist(at, at) / -near.length) + np.diag(noise)
        k = near.ratio * np.exp(cdist(at, places[row : row + 1])[:, 0] / -near.length)
        solved = np.linalg.solve(C, k)
        mean = solved[: len(noise) - len(before)] @ near.residual[known[row]]
        left = near.variance * max(near.ratio - float(solved @ k), 0.0)
        z = rng.standard_normal(n)
        out[row] = mean + solved[len(noise) - len(before) :] @ out[before] + np.sqrt(left) * z
    return out[place.ravel()].T


def _completions(model: Any, new: Any, n: int) -> list[FloatArray]:
    """Encoded rows (N, D); where cells are missing, several times with draws in their places."""
    donors = getattr(model, "_donors", None)
    if donors is None:
        return [model._encode(new)]
    encoded, missing = model._with_gaps(new)
    rows = model._as_rows(encoded)
    if not missing.any():
        return [rows]
    gaps = np.flatnonzero(missing.any(axis=1))
    several = np.tile(rows, (min(n, N_COMPLETIONS), 1, 1))
    several[:, gaps] = donors.completions(rows[gaps], missing[gaps], len(several))
    return list(several)

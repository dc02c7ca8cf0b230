"""Tiny models with known numbers, and exact answers by quadrature, for the tests of the model."""

from __future__ import annotations

import itertools
from functools import partial

import jax
import numpy as np
from scipy import stats
from scipy.special import log_ndtr, ndtr

from nongauss.tggm import mean_field as mf
from nongauss.tggm.config import NetworkConfig, TrainingRecipe
from nongauss.tggm.data import NetworkRows
from nongauss.tggm.params import HiddenLayer, NetworkParams

NUMBER = mf.posterior_phase(0)


@partial(jax.jit, static_argnames=("n_sweeps", "n_classes"))
def mean_field(params, x, y, n_sweeps, n_classes=0):
    """The factorised posterior of a row."""
    return mf.phases(params, x, y, n_classes, n_sweeps)[0]


@partial(jax.jit, static_argnames="n_classes")
def mean_field_bound(params, q, x, y, n_classes=0):
    """The evidence lower bound of a model with one layer, at any posterior q; its prior is exact."""
    prior = mf.factorised_at(mf.PRIOR, params, params.W0 @ x + params.b0, y)
    return mf.bound_difference(params, q, prior, x, y, n_classes)


CONFIG = NetworkConfig(
    layers=(2,),
    method="ml",
    posterior="moments",
    n_sweeps=60,
    hidden_variance=None,
    noise_variance=None,
)


RECIPE = TrainingRecipe(
    n_members=3,
    batch_size=16,
    learning_rate=0.01,
    max_epochs=3,
    n_iter_no_change=10,
    tol=0.0,
    validation_fraction=0.1,
)


def made_rows(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2)).astype(np.float32)
    Y = (np.abs(X[:, :1]) - 0.8 + 0.2 * rng.normal(size=(n_rows, 1))).astype(np.float32)
    return NetworkRows(X, Y, np.ones(n_rows))


def member(seed, n_hidden=2, n_outputs=1, n_inputs=2, strength=1.0, noise=0.5, hidden=0.7):
    """Parameters of one member, float64; `strength` scales W1."""
    rng = np.random.default_rng(seed)
    return NetworkParams(
        W0=rng.normal(size=(n_hidden, n_inputs)),
        b0=0.5 * rng.normal(size=n_hidden),
        W1=strength * rng.normal(size=(n_outputs, n_hidden)),
        b1=0.3 * rng.normal(size=n_outputs),
        log_sd0=np.log(hidden) + 0.2 * rng.normal(size=n_hidden),
        log_sd1=np.log(noise) + 0.2 * rng.normal(size=n_outputs),
    )


def deep_member(seed, sizes, n_outputs=1, strength=1.0, n_inputs=2):
    """A member with several hidden layers; `strength` scales the weights between units."""
    rng = np.random.default_rng(500 + seed)
    params = member(seed, sizes[0], n_outputs, n_inputs)
    deeper = tuple(
        HiddenLayer(
            strength * rng.normal(size=(size, below)),
            0.5 * rng.normal(size=size),
            np.log(0.7) + 0.2 * rng.normal(size=size),
        )
        for below, size in itertools.pairwise(sizes)
    )
    W1 = strength * rng.normal(size=(n_outputs, sizes[-1]))
    return params._replace(W1=W1, deeper=deeper)


def for_labels(params):
    """The same with the noise that labels have."""
    return params._replace(log_sd1=np.zeros_like(params.log_sd1))


def finite_differences(value, params, step=1e-5):
    """Central differences of value(params) for every number of the parameters."""
    leaves, structure = jax.tree.flatten(params)
    out = []
    for number, leaf in enumerate(leaves):
        slope = np.zeros_like(leaf)
        for at in np.ndindex(leaf.shape):
            ends = []
            for sign in (1.0, -1.0):
                moved = leaf.copy()
                moved[at] += sign * step
                changed = [*leaves[:number], moved, *leaves[number + 1 :]]
                ends.append(float(value(jax.tree.unflatten(structure, changed))))
            slope[at] = (ends[0] - ends[1]) / (2.0 * step)
        out.append(slope)
    return jax.tree.unflatten(structure, out)


def half_normal(mu, sd):
    """Mean and variance of N_T(mu, sd^2) by the textbook form: good enough where mu/sd > -20."""
    a = mu / sd
    r = np.exp(-0.5 * a * a - 0.5 * np.log(2.0 * np.pi) - log_ndtr(a))
    return mu + sd * r, sd**2 * (1.0 - a * r - r**2)


def one_unit(c, sd, weight, noise, b1=0.0):
    """A member with one unit, whose drive is c at x = 1, and one output."""
    return NetworkParams(
        W0=np.array([[c]]),
        b0=np.zeros(1),
        W1=np.array([[weight]]),
        b1=np.array([b1]),
        log_sd0=np.log([sd]),
        log_sd1=np.log([noise]),
    )


def ensemble_of(*members):
    """The members stacked along a leading axis."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *members)


def row(seed, params):
    """An input (D,) and an output (P,) near what the member says."""
    rng = np.random.default_rng(1000 + seed)
    return rng.normal(size=params.W0.shape[1]), 1.5 * rng.normal(size=params.b1.shape[0])


def joint_density(h, params, x, y):
    """p(y, h | x) at each h (R, M), by the definition of the model: (R,)."""
    c, sd, noise = params.W0 @ x + params.b0, np.exp(params.log_sd0), np.exp(params.log_sd1)
    prior = stats.norm.logpdf(h, c, sd).sum(axis=1) - log_ndtr(c / sd).sum()
    return np.exp(prior + stats.norm.logpdf(y, h @ params.W1.T + params.b1, noise).sum(axis=1))


def exact_log_likelihood(params, x, y):
    """log p(y|x), the integral of eq. 8 over h >= 0 by Gauss-Legendre quadrature; one unit or two."""
    top = np.maximum(params.W0 @ x + params.b0, 0.0) + 9.0 * np.exp(params.log_sd0)
    nodes, weights = np.polynomial.legendre.leggauss(160)
    axes = [0.5 * t * (nodes + 1.0) for t in top]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(top))
    joint = joint_density(grid, params, x, y).reshape((160,) * len(top))
    for t in top:
        joint = 0.5 * t * (weights @ joint)
    return float(np.log(joint))


def closed_form_log_likelihood(params, x, y):
    """The same by eq. 4: a Gaussian, an orthant probability and the normalisers; one unit or two."""
    c, prior = params.W0 @ x + params.b0, np.exp(-2.0 * params.log_sd0)
    noise = np.exp(-2.0 * params.log_sd1)
    S = np.linalg.inv(np.diag(prior) + params.W1.T @ np.diag(noise) @ params.W1)
    mu = S @ (prior * c + params.W1.T @ (noise * (y - params.b1)))
    cover = params.W1 @ np.diag(1.0 / prior) @ params.W1.T + np.diag(1.0 / noise)
    log_gauss = stats.multivariate_normal.logpdf(y, params.W1 @ c + params.b1, cover)
    orthant = stats.norm.cdf(mu[0] / np.sqrt(S[0, 0]))
    if len(c) == 2:  # P(both >= 0): the second given the first, over the first
        nodes, weights = np.polynomial.legendre.leggauss(200)
        top = max(mu[0], 0.0) + 9.0 * np.sqrt(S[0, 0])
        first = 0.5 * top * (nodes + 1.0)
        second = mu[1] + S[0, 1] / S[0, 0] * (first - mu[0])
        rest = np.sqrt(S[1, 1] - S[0, 1] ** 2 / S[0, 0])
        density = stats.norm.pdf(first, mu[0], np.sqrt(S[0, 0])) * ndtr(second / rest)
        orthant = 0.5 * top * weights @ density
    return float(log_gauss + np.log(orthant) - log_ndtr(c * np.sqrt(prior)).sum())

"""A small model of the family, for tests: rows, parameters, and finite differences."""

from __future__ import annotations

import numpy as np

from nongauss.sparse_gp.config import GPRecipe
from nongauss.sparse_gp.data import GPRows
from nongauss.sparse_gp.kernels import Matern52, Space, parse
from nongauss.sparse_gp.likelihoods import Gaussian
from nongauss.sparse_gp.params import GPModel, GPParams

SPACE = Space(("a", "b"), (0, 1))


def rows(n=40, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    weight = rng.integers(1, 3, n).astype(float) if weighted else np.ones(n)
    return GPRows(X, y, weight, np.zeros(n))


def model(likelihood=None, kernel="matern52", n_kernels=1, offset=None):
    likelihood = likelihood or Gaussian()
    n_latent = likelihood.n_latent
    kernel_of = tuple(range(n_latent)) if n_kernels > 1 else (0,) * n_latent
    return GPModel(
        (parse(kernel),) * n_kernels,
        kernel_of,
        SPACE,
        likelihood,
        np.zeros(n_latent) if offset is None else offset,
    )


def params(own, psi, Z, seed=0):
    rng = np.random.default_rng(seed)
    thetas = tuple(k.prior_mean(SPACE) + 0.2 * rng.normal(size=k.size(SPACE)) for k in own.kernels)
    return GPParams(thetas, np.asarray(psi, float), np.asarray(Z, float))


def differences(function, x, step=1e-5):
    """Central differences of a scalar function."""
    x = np.asarray(x, float)
    return np.array([(function(x + step * d) - function(x - step * d)) / (2 * step) for d in np.eye(len(x))])


def hard_tables():
    """200 columns, an outlier of 1e3, 8 rows, a constant column, repeated rows."""
    rng = np.random.default_rng(0)
    outlier = rng.normal(size=(30, 2))
    outlier[3] = 1e3
    return {
        "200 columns": rng.normal(size=(30, 200)),
        "outlier": outlier,
        "8 rows": rng.normal(size=(8, 1)),
        "constant": np.ones((12, 1)),
        "repeated": np.repeat(rng.normal(size=(5, 1)), 4, 0),
    }


def recipe(n_inducing, max_iter=200, tol=1e-3, n_components=1):
    return GPRecipe(Matern52(), 1, n_inducing, max_iter, tol, n_components)

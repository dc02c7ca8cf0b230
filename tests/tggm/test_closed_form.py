"""The closed gradient on the host beside JAX's derivative of the objective."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nongauss.core.device import double_precision
from nongauss.tggm import closed_form, objective
from nongauss.tggm.config import NetworkConfig
from nongauss.tggm.params import start, with_heads

PLAIN = NetworkConfig((6,), "ml", "moments", 1, None, None)


@pytest.mark.parametrize("n_heads", [1, 3])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("posterior", ["moments", "exact"])
def test_density_and_gradient_are_those_of_the_objective(posterior, skip, n_heads):
    """Each member's summed log density, and its gradient by every parameter, rows far out among them."""
    if posterior == "exact" and n_heads > 1:
        pytest.skip("heads are fitted by moments")
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(20, 3)), rng.normal(size=20), rng.uniform(0.0, 2.0, (2, 20))
    X[0] *= 50.0
    config = replace(PLAIN, posterior=posterior, skip=skip, n_heads=n_heads)
    params = start(rng, config, 2, 3, y[:, None])
    params = with_heads(rng, params, n_heads, y) if n_heads > 1 else params
    params = jax.tree.map(lambda leaf: leaf + 0.2 * rng.normal(size=leaf.shape), params)  # float64

    with double_precision():

        def member(one, count):
            each = jax.vmap(lambda x, t: objective.predictive_log_likelihood(one, config, x, t))
            found = each(jnp.asarray(X), jnp.asarray(y)[:, None])
            return jnp.sum(count * found), found

        grad = jax.vmap(jax.value_and_grad(member, has_aux=True))
        (_, expected), slopes = grad(jax.tree.map(jnp.asarray, params), jnp.asarray(weight))
        expected, slopes = jax.tree.map(np.asarray, (expected, slopes))
    found, gradient = closed_form.value_and_gradient(params, config, np.c_[X, np.ones(20)], y, weight)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert jax.tree.structure(gradient) == jax.tree.structure(slopes)
    for mine, its in zip(jax.tree.leaves(gradient), jax.tree.leaves(slopes), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-7, atol=1e-9 * np.abs(its).max())

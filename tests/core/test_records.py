import dataclasses

import jax
import jax.numpy as jnp
import pytest

from nongauss.core.records import record, replace, static, value


@record
class Params:
    mean: jax.Array
    kind: str = static(default="a")


@value
class Power:
    exponent: int

    def __call__(self, x):
        return x**self.exponent


def test_record_is_a_frozen_pytree_whose_static_fields_are_structure():
    params = Params(jnp.arange(3.0), kind="b")
    doubled = jax.jit(lambda p: jax.tree.map(lambda leaf: 2 * leaf, p))(params)
    assert doubled.kind == "b"
    assert doubled.mean.tolist() == [0.0, 2.0, 4.0]
    assert jax.tree.structure(params) != jax.tree.structure(replace(params, kind="a"))
    ((path, _),) = jax.tree_util.tree_leaves_with_path(params)
    assert jax.tree_util.keystr(path) == ".mean"
    with pytest.raises(dataclasses.FrozenInstanceError):
        params.mean = None


def test_record_equality_is_identity_so_that_it_never_compares_arrays():
    params = Params(jnp.arange(3.0))
    assert params == params
    assert params != Params(params.mean)


def test_equal_values_share_one_compilation_and_are_no_pytree():
    compiled = jax.jit(lambda f, x: f(x), static_argnums=0)
    assert compiled(Power(2), 3.0) == compiled(Power(2), 3.0) == 9.0
    assert compiled._cache_size() == 1
    compiled(Power(3), 3.0)
    assert compiled._cache_size() == 2
    assert jax.tree.leaves(Power(2)) == [Power(2)]

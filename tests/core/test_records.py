import dataclasses
import enum

import jax
import jax.numpy as jnp
import pytest

from nongauss.core.device import record, replace, static
from nongauss.core.records import is_persistable, persistable, record_name, registered_class, value


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


@persistable("test.Marked", "nongauss.nowhere:Marked")
class Marked(enum.Enum):
    A = 1


class Child:
    pass


def test_a_marked_class_is_found_by_its_names_and_only_itself():
    assert record_name(Marked) == "test.Marked"
    assert registered_class("test.Marked") is registered_class("nongauss.nowhere:Marked") is Marked
    assert is_persistable(Marked)
    assert not is_persistable(Child)
    assert registered_class("nongauss.nowhere:Nothing") is None


def test_two_classes_cannot_have_one_name():
    with pytest.raises(ValueError, match=r"Marked and Child are both named 'test\.Marked'"):
        persistable("test.Marked")(Child)


def test_marking_does_not_reach_subclasses():
    @persistable("test.Parent")
    class Parent:
        pass

    class Heir(Parent):
        pass

    assert is_persistable(Parent)
    assert not is_persistable(Heir)

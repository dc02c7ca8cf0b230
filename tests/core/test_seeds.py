import jax
import numpy as np
import pytest

from nongauss.core.device import double_precision, key_from_seed, split_named
from nongauss.core.seeds import generator_at, generator_state


def bits(key):
    return tuple(np.asarray(jax.random.key_data(key)).tolist())


def test_a_name_gives_its_key_whatever_the_other_names():
    key = key_from_seed(7)
    alone = split_named(key, "local")["local"]
    among = split_named(key, "order", "local", "finish")
    assert bits(among["local"]) == bits(alone)
    assert len({bits(k) for k in (key, *among.values())}) == 4


def test_seeds_of_any_size_differ_and_do_not_depend_on_precision():
    seeds = [0, 1, 2**32, 2**32 + 1, 2**40 + 1, 2**70 + 1]
    keys = [bits(key_from_seed(seed)) for seed in seeds]
    assert len(set(keys)) == len(seeds)
    with double_precision():
        assert [bits(key_from_seed(seed)) for seed in seeds] == keys
    with pytest.raises(ValueError, match="non-negative"):
        key_from_seed(-1)


def test_a_generator_goes_on_from_its_state():
    rng = np.random.default_rng(3)
    rng.integers(0, 9, 5, dtype=np.uint32)  # leaves half a word
    state = generator_state(rng)
    again = generator_at(state)
    assert state.shape == (6,)
    assert (
        rng.integers(0, 9, 5, dtype=np.uint32).tolist() == again.integers(0, 9, 5, dtype=np.uint32).tolist()
    )
    assert rng.normal() == again.normal()

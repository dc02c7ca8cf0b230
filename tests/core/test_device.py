import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from nongauss.core.device import double_precision


def test_double_inside_and_the_users_setting_outside_even_after_an_error():
    before = dict(jax.config.values)
    outside = jnp.asarray(1.0).dtype
    with double_precision():
        inside = jnp.asarray(1.0)
        assert jax.jit(lambda x: x / 3)(inside).dtype == jnp.float64
    with pytest.raises(RuntimeError), double_precision():
        raise RuntimeError
    assert inside.dtype == jnp.float64
    assert jnp.asarray(1.0).dtype == outside
    assert dict(jax.config.values) == before


def test_importing_changes_no_setting_of_jax():
    program = """
import jax
before = dict(jax.config.values)
import nongauss.core.device, nongauss.core.records, nongauss.core.seeds
import nongauss.optimise.minibatch, nongauss.optimise.compiled
from nongauss.core.device import double_precision
with double_precision():
    jax.numpy.ones(3)
assert dict(jax.config.values) == before
assert jax.numpy.ones(3).dtype == "float32"
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)

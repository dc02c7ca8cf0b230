"""Where a fit starts, and the limits of its parameters."""

from __future__ import annotations

import jax
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from nongauss.core.device import replace
from nongauss.tggm.params import LARGEST_LOG_SD, SMALLEST_LOG_SD, NetworkParams, constrain, start
from tggm.small import CONFIG, member


def test_start_has_the_promised_shapes_and_sizes():
    config = replace(CONFIG, layers=(200,))
    Y = np.random.default_rng(0).normal(size=(30, 2))
    params = start(np.random.default_rng(1), config, 3, 16, Y)
    parts = {name: part for name, part in params._asdict().items() if not isinstance(part, tuple)}
    shapes = {name: part.shape for name, part in parts.items()}
    assert shapes == {
        "W0": (3, 200, 16),
        "b0": (3, 200),
        "W1": (3, 2, 200),
        "b1": (3, 2),
        "log_sd0": (3, 200),
        "log_sd1": (3, 2),
    }
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {np.dtype(np.float32)}
    assert_allclose(params.W0.std(), 1 / 4, rtol=0.05)
    assert_allclose(params.W1.std(), 1 / np.sqrt(200), rtol=0.1)
    assert not np.array_equal(params.W0[0], params.W0[1])  # members start at different places
    again = start(np.random.default_rng(1), config, 3, 16, Y)
    assert_array_equal(params.W0, again.W0)


def test_start_without_inputs_and_with_a_constant_output():
    Y = np.column_stack([np.arange(5.0), np.ones(5)])
    params = start(np.random.default_rng(1), CONFIG, 2, 0, Y)
    assert params.W0.shape == (2, 2, 0)
    assert (params.W1[:, 1] == 0).all()
    assert (params.W1[:, 0] != 0).all()


def test_constrain_puts_fixed_variances_back_and_keeps_the_others_legal():
    fixed = replace(CONFIG, hidden_variance=0.25, noise_variance=4.0)
    Y = np.arange(4.0)[:, None]
    begun = start(np.random.default_rng(0), fixed, 1, 2, Y)
    assert_allclose(begun.log_sd0, np.log(0.5), rtol=1e-6)
    assert_allclose(begun.log_sd1, np.log(2.0), rtol=1e-6)
    wild = member(0)._replace(log_sd0=np.array([-50.0, 50.0]), log_sd1=np.array([0.1]))
    kept = constrain(wild, CONFIG)
    assert_allclose(kept.log_sd0, [SMALLEST_LOG_SD, LARGEST_LOG_SD])
    assert_allclose(kept.log_sd1, [0.1], rtol=1e-6)
    back = constrain(wild, fixed)
    assert_allclose(back.log_sd0, np.log([0.5, 0.5]), rtol=1e-6)
    assert_allclose(back.log_sd1, np.log([2.0]), rtol=1e-6)
    for name in ("W0", "b0", "W1", "b1"):
        assert getattr(kept, name) is getattr(wild, name)
    assert isinstance(kept, NetworkParams)

"""Scales that a few far cells do not move."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.tables.clipped_scale import clipped_scale, reaches_beyond
from nongauss.tables.kinds.number import Moments


def scale_of(x, weight=None):
    x = np.asarray(x, float)
    weight = np.ones(len(x)) if weight is None else weight
    return clipped_scale(x, weight, Moments.of(x, weight).scale())


@pytest.fixture(scope="module")
def near():
    return 10.0 + 3.0 * np.random.default_rng(0).standard_normal(199)


@pytest.mark.parametrize("far", [1e3, 1e9, -1e9, 1e300])
def test_a_far_cell_moves_the_scale_by_what_its_clipped_value_does(near, far):
    scale = scale_of(np.append(near, far))
    m, s = scale.centre, abs(scale.step)
    clipped = np.clip(np.append(near, far), m - 5 * s, m + 5 * s)
    assert_allclose([clipped.mean(), clipped.std()], [m, s], rtol=1e-5)
    assert abs(m - near.mean()) < 0.1 * near.std()
    assert 1.0 < s / near.std() < 1.1


def test_the_direction_is_that_of_the_clipped_cells(near):
    low = np.append(np.exp(-near / 5.0), -1e9)
    assert scale_of(low).step > 0.0
    assert_allclose(scale_of(-low).step, -scale_of(low).step, rtol=1e-5)


def test_weights_are_repetitions_to_the_width_of_the_bulk(near):
    x, weight = np.append(near[:40], 1e6), np.append(np.full(40, 3.0), 1.0)
    again = np.append(np.repeat(near[:40], 3), 1e6)
    assert_allclose(scale_of(x, weight).centre, scale_of(again).centre, rtol=1e-5)
    assert_allclose(scale_of(x, weight).step, scale_of(again).step, rtol=1e-5)


def test_a_column_whose_bulk_is_one_value_keeps_its_scale():
    x = np.append(np.zeros(194), np.arange(1.0, 7.0))
    assert scale_of(x) == Moments.of(x, np.ones(200)).scale()


def test_a_long_tail_keeps_its_scale():
    x = np.random.default_rng(0).lognormal(size=500)
    assert reaches_beyond(Moments.of(x, np.ones(500)))
    assert scale_of(x) == Moments.of(x, np.ones(500)).scale()


def test_a_column_of_which_one_cell_has_all_the_weight_keeps_its_scale():
    x, weight = np.array([0.0, 5e7, 1e8]), np.array([1e-60, 1e32, 1e-30])
    with np.errstate(all="raise"):
        assert scale_of(x, weight) == Moments.of(x, weight).scale()

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nongauss.rank_factor.levels import NONE, find_levels, neighbours_of


def test_levels_are_of_about_equal_weight_and_a_frequent_value_is_one_of_its_own():
    x = np.concatenate([np.zeros(60), np.arange(1, 41)])[:, None]
    levels = find_levels(x, np.ones(100), 5)
    assert_array_equal(levels.low[0], [0, 1, 11, 21, 31])
    assert_array_equal(levels.high[0], [0, 10, 20, 30, 40])
    late = find_levels(-x, np.ones(100), 5)
    assert late.low[0, -1] == 0
    assert late.high[0, -2] < 0


def test_weights_count_like_repeated_rows():
    rng = np.random.default_rng(0)
    x, weight = rng.integers(0, 30, (50, 1)).astype(float), rng.integers(1, 4, 50)
    weighted = find_levels(x, weight.astype(float), 6)
    repeated = find_levels(np.repeat(x, weight, axis=0), np.ones(weight.sum()), 6)
    assert_array_equal(weighted.low, repeated.low)


@pytest.mark.parametrize("distort", [np.exp, np.cbrt, lambda x: np.arctan(5 * x)])
def test_an_increasing_transform_changes_no_level(distort):
    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((80, 3)), rng.standard_normal((20, 3))
    plain, other = (find_levels(g(X), np.ones(80), 8) for g in (lambda x: x, distort))
    assert_array_equal(plain.codes(X), other.codes(distort(X)))
    for a, b in zip(plain.place(new), other.place(distort(new)), strict=True):
        assert_array_equal(a, b)


def test_new_values_lie_in_a_level_between_two_or_beyond():
    levels = find_levels(np.array([[1.0], [2.0], [5.0], [6.0], [9.0]]), np.ones(5), 3)
    assert_array_equal(levels.high[0], [2, 6, 9])
    lower, upper = levels.place(np.array([[0.0], [1.5], [3.0], [6.0], [99.0], [np.nan]]))
    assert_array_equal(lower[:, 0], [NONE, NONE, 0, 0, 2, NONE])
    assert_array_equal(upper[:, 0], [0, 1, 1, 2, NONE, NONE])


def test_training_cells_have_the_neighbours_of_new_ones():
    X = np.random.default_rng(0).integers(0, 9, (40, 4)).astype(float)
    X[3, 2] = np.nan
    levels = find_levels(X, np.ones(40), 4)
    for a, b in zip(neighbours_of(levels.codes(X), levels.counts), levels.place(X), strict=True):
        assert_array_equal(a, b)

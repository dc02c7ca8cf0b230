import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nongauss.core.errors import InputError
from nongauss.rank_factor.coding import Coding, has_lone_row, repeated, scale_of, with_a_column
from nongauss.rank_factor.levels import NONE, find_levels
from nongauss.tables.rows import canonical_rows


def test_values_are_standardised_without_a_mirror_and_come_back():
    x = -np.random.default_rng(0).gamma(0.5, 3.0, 500)
    scale = scale_of(x, np.ones(500))
    coding = Coding(None, ((scale.unit, scale.mean, scale.sd),))
    z = coding.standardised(x[:, None])
    assert np.corrcoef(z[:, 0], x)[0, 1] > 0.999
    assert_allclose(coding.typical(z, np.zeros((1, 0))), x[:, None])


def test_levels_come_back_as_their_middles():
    levels = find_levels(np.arange(12.0)[:, None], np.ones(12), 3)
    coding = Coding(levels, ())
    assert_allclose(
        coding.typical(np.array([[-1.0], [0.0], [1.0]]), np.array([[-1.0, 0.0, 1.0]]))[:, 0], [1.5, 5.5, 9.5]
    )


def test_equal_rows_are_held_apart_as_often_as_they_count():
    merged = canonical_rows(np.array([[1.0], [2.0], [1.0]]), np.zeros((3, 1)), np.array([1.0, 2.0, 1.0]))
    assert len(merged.X) == 2
    apart = repeated(merged, "this")
    assert_array_equal(np.sort(apart.X[:, 0]), [1, 1, 2, 2])
    assert_array_equal(apart.weight, np.ones(4))
    with pytest.raises(InputError, match="this repeats each row"):
        repeated(canonical_rows(np.ones((1, 1)), np.zeros((1, 1)), np.array([0.5])), "this")


def test_a_level_of_one_row_is_noticed():
    codes = np.array([[0, 0], [0, 1], [1, NONE], [1, 1], [1, 0]], np.uint8)
    assert not has_lone_row(codes)
    codes[0, 0] = 1
    assert has_lone_row(codes)


def test_a_table_without_columns_gets_one():
    assert with_a_column(np.zeros((3, 0))).shape == (3, 1)

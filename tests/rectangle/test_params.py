import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from nongauss.rectangle.objective import log_box_prior
from nongauss.rectangle.params import Boxes, Labels, Stated, box_prior
from rectangle.small import boxes, rows


def test_levels_stand_side_by_side_and_a_gap_has_none():
    coded = Labels(np.array([[0, 1], [2, -1]]), (3, 2))
    assert_array_equal(coded.one_hot(), [[1, 0, 0, 0, 1], [0, 0, 1, 0, 0]])


def test_rows_are_grouped_by_their_gaps():
    data = rows()
    groups = data.groups
    assert sorted(np.concatenate([rows_ for rows_, _ in groups])) == list(range(len(data)))
    for members, present in groups:
        expected = np.isin(np.arange(3), present)
        assert (~np.isnan(data.Y[members]) == expected).all()


def test_boxes_survive_flattening():
    there = boxes()
    for part, again in zip(there, Boxes.of(there.flat(), 2), strict=True):
        assert_array_equal(part, again)


def test_a_stated_width_is_not_shrunk():
    """The mode of the prior is the stated rectangle; the paper's precisions would shrink a width of 2 to
    0.095."""
    stated = [Stated(0, 0, -0.5, 100.0), Stated(0, 1, 1.5, 100.0)]
    prior = box_prior(1, 1, 0, stated)
    at = Boxes(np.full((1, 1, 1), -0.5), np.full((1, 1, 1), 1.5), np.zeros((1, 1, 0)))
    assert_allclose(log_box_prior(at, prior)[1], 0.0, atol=1e-12)
    free = log_box_prior(at, box_prior(1, 1, 0))[1]
    assert (free[..., 0] > 0).all()
    assert (free[..., 1] < 0).all()

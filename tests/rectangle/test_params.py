import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from nongauss.rectangle.objective import log_box_prior
from nongauss.rectangle.params import SoftBoxes, StatedBound, box_prior
from rectangle.small import boxes


def test_boxes_survive_flattening():
    there = boxes()
    for part, again in zip(there, SoftBoxes.of(there.flat(), 2), strict=True):
        assert_array_equal(part, again)


def test_a_stated_width_is_not_shrunk():
    """The mode of the prior is the stated rectangle; the paper's precisions would shrink a width of 2 to
    0.095."""
    stated = [StatedBound(0, 0, -0.5, 100.0), StatedBound(0, 1, 1.5, 100.0)]
    prior = box_prior(1, 1, 0, stated)
    at = SoftBoxes(np.full((1, 1, 1), -0.5), np.full((1, 1, 1), 1.5), np.zeros((1, 1, 0)))
    assert_allclose(log_box_prior(at, prior)[1], 0.0, atol=1e-12)
    free = log_box_prior(at, box_prior(1, 1, 0, ()))[1]
    assert (free[..., 0] > 0).all()
    assert (free[..., 1] < 0).all()

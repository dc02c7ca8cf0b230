import numpy as np
from numpy.testing import assert_allclose

from nongauss.rank_factor import predict
from nongauss.rank_factor import rotate as align
from nongauss.rank_factor.fit import summary
from rank_factor.small import problem


def test_a_turned_draw_says_the_same_and_is_turned_back():
    state, rows, _, config = problem(n_outputs=1)
    draw = summary(state)
    turned = align.turned(draw, np.array([1, 0]), np.array([-1.0, 1.0]))
    plain, other = (predict.factors(d, rows, config, np.float64) for d in (draw, turned))
    assert_allclose(other.mean, plain.mean[:, [1, 0]] * [-1.0, 1.0], atol=1e-12)
    assert_allclose(predict.decisions(turned, other), predict.decisions(draw, plain), atol=1e-12)
    first, second = align.aligned((draw, turned))
    assert_allclose(first.A, second.A)
    sizes = (first.A**2).sum(axis=0)
    assert (np.diff(sizes) <= 0).all()
    assert (first.A[np.abs(first.A).argmax(axis=0), [0, 1]] > 0).all()

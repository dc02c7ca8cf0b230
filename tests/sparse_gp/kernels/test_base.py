import numpy as np
from numpy.testing import assert_allclose

from nongauss.sparse_gp.kernels import Categorical, RationalQuadratic, Space

SPACE = Space(("a", "b"), (0, 1))


def test_a_start_shifts_lengthscales_alone():
    kernel = RationalQuadratic()
    mean = kernel.prior_mean(SPACE)
    assert_allclose(mean, [0.0, 0.5 * np.log(2.0), 0.5 * np.log(2.0), 0.0])
    assert_allclose(kernel.start(SPACE, 0.3) - mean, [0.0, 0.3, 0.3, 0.0])
    assert_allclose(Categorical().start(SPACE, 0.3), Categorical().prior_mean(SPACE))


def test_one_column_is_a_tuple_of_one_and_variance_comes_first():
    kernel = RationalQuadratic("b")
    assert kernel.columns == ("b",)
    theta = np.log([2.0, 3.0, 1.0])
    assert_allclose([kernel.variance(theta, SPACE), *kernel.lengthscales(theta, SPACE).values()], [2.0, 3.0])

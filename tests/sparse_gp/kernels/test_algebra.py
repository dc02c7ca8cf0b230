import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.core.errors import InputError
from nongauss.sparse_gp.kernels import (
    Categorical,
    Constant,
    Linear,
    Matern52,
    Product,
    Space,
    SquaredExponential,
    Sum,
)
from nongauss.sparse_gp.kernels.base import APART
from nongauss.sparse_gp.kernels.leaf import chosen

SPACE = Space(("a", "c"), (0, 1, 1))


def test_sums_and_products_add_and_multiply():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(3, 3)), rng.normal(size=(4, 3))
    one, other = Matern52(), SquaredExponential()
    t, u = rng.normal(size=one.size(SPACE)), rng.normal(size=other.size(SPACE))
    parts = one.forward(t, SPACE, A, B)[0], other.forward(u, SPACE, A, B)[0]
    both = np.concatenate([t, u])
    assert_allclose((one + other).forward(both, SPACE, A, B)[0], parts[0] + parts[1])
    assert_allclose((one * other).forward(both, SPACE, A, B)[0], parts[0] * parts[1])


def test_nested_sums_are_flat():
    assert (Matern52() + Linear() + Linear()) == Sum((Matern52(), Linear(), Linear()))
    assert (Matern52() * Linear() * Linear()) == Product((Matern52(), Linear(), Linear()))


def test_repeated_parameters_are_numbered():
    labels = (Matern52() + Matern52()).labels(SPACE)
    assert len(set(labels)) == len(labels) == 6
    assert "matern52 lengthscale a (2)" in labels


def test_columns_are_found_by_name_and_position():
    index, local, used = chosen(("c",), SPACE)
    assert index.tolist() == [1, 2]
    assert local.tolist() == [0, 0]
    assert used == (1,)
    assert chosen((-1,), SPACE)[2] == (1,)


def test_an_absent_column_is_named():
    with pytest.raises(InputError, match="'z'"):
        chosen(("z",), SPACE)


def test_encoded_columns_of_one_column_share_a_lengthscale():
    assert Matern52().size(SPACE) == 3


def test_lengthscales_of_a_sum_weigh_terms_and_of_a_product_are_the_shortest():
    kernel = Matern52() + Matern52(("a",)) * Categorical(("c",)) + Constant()
    theta = np.log([1.0, 2.0, 3.0, 0.5, 0.5, 1.0, 1.0, 1.0])
    scales = kernel.lengthscales(theta, SPACE)
    assert scales == pytest.approx({"a": np.sqrt(1.5 / (1.0 / 2.0**2 + 0.5 / 0.5**2)), "c": 3.0})
    assert kernel.parts[1].lengthscales(theta[3:7], SPACE) == {"a": 0.5}
    nothing = np.log([1.0, 2.0, 3.0, 1e-9, 0.1, 0.1])
    assert (Matern52() + Matern52()).lengthscales(nothing, SPACE) == pytest.approx({"a": 2.0, "c": 3.0})


def test_equal_terms_start_apart_and_others_do_not():
    kernel = Matern52() + Constant() + Matern52()
    start, mean = kernel.start(SPACE), kernel.prior_mean(SPACE)
    half = 0.5 * APART
    assert_allclose(start - mean, [0.0, half, half, 0.0, 0.0, -half, -half])
    other = Matern52() + Matern52(("a",))
    assert_allclose(other.start(SPACE), other.prior_mean(SPACE))

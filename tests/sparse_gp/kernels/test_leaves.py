"""Every kernel against finite differences, symmetry, positive definiteness and scikit-learn's."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process import kernels as sk

from nongauss.core.errors import InputError
from nongauss.sparse_gp.kernels import LEAVES, Space, parse
from sparse_gp.small import differences

SPACE = Space(("a", "b", "c"), (0, 1, 2, 2, 2), flags=(4,), turns=(-1.0, -1.0, 0.0, 0.3, -1.0))
TEXTS = [
    *LEAVES,
    "matern52 + linear(a, b)",
    "(matern32(a) + linear) * categorical(c) * rational_quadratic(1)",
    "periodic(0) * matern52 + white + constant",
]


def setting(text, seed=0):
    rng = np.random.default_rng(seed)
    kernel = parse(text)
    theta = kernel.prior_mean(SPACE) + 0.3 * rng.normal(size=kernel.size(SPACE))
    return kernel, theta, rng.normal(size=(5, 5)), rng.normal(size=(7, 5)), rng.normal(size=(5, 7))


@pytest.mark.parametrize("text", TEXTS)
def test_derivatives_are_those_of_finite_differences(text):
    kernel, theta, A, B, cotangent = setting(text)

    def value(theta, A):
        return float((kernel.forward(theta, SPACE, A, B)[0] * cotangent).sum())

    _, cache = kernel.forward(theta, SPACE, A, B)
    by_theta, by_A = kernel.backward(theta, SPACE, cache, cotangent)
    assert_allclose(by_theta, differences(lambda t: value(t, A), theta), atol=1e-7)
    assert_allclose(
        by_A.ravel(), differences(lambda a: value(theta, a.reshape(A.shape)), A.ravel()), atol=1e-7
    )


@pytest.mark.parametrize("text", TEXTS)
def test_derivatives_of_the_diagonal(text):
    kernel, theta, _, B, cotangent = setting(text)
    by_theta = kernel.diagonal_backward(theta, SPACE, B, cotangent[0])
    expected = differences(lambda t: float(kernel.diagonal(t, SPACE, B) @ cotangent[0]), theta)
    assert_allclose(by_theta, expected, atol=1e-7)


@pytest.mark.parametrize("text", [t for t in TEXTS if not re.search("categorical|cyclic|group|white", t)])
def test_diagonal_agrees_with_the_matrix_which_is_positive(text):
    kernel, theta, _, B, _ = setting(text)
    K, _ = kernel.forward(theta, SPACE, B, B)
    assert_allclose(K.diagonal(), kernel.diagonal(theta, SPACE, B), atol=1e-7)
    assert_allclose(K, K.T, atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-9


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("squared_exponential", sk.RBF(1.3)),
        ("matern12", sk.Matern(1.3, nu=0.5)),
        ("matern32", sk.Matern(1.3, nu=1.5)),
        ("matern52", sk.Matern(1.3, nu=2.5)),
    ],
)
def test_stationary_kernels_are_those_of_scikit_learn(name, theirs):
    space = Space(("a", "b"), (0, 1))
    X = np.random.default_rng(0).normal(size=(6, 2))
    theta = np.log([1.0, 1.3, 1.3])
    assert_allclose(parse(name).forward(theta, space, X, X)[0], theirs(X), atol=1e-7)


def test_rational_quadratic_and_periodic_are_those_of_scikit_learn():
    space = Space(("a",), (0,))
    X = np.random.default_rng(0).normal(size=(6, 1))
    ours = parse("rational_quadratic").forward(np.log([1.0, 0.7, 2.0]), space, X, X)[0]
    assert_allclose(ours, sk.RationalQuadratic(0.7, 2.0)(X), atol=1e-12)
    ours = parse("periodic").forward(np.log([1.0, 0.7, 2.0]), space, X, X)[0]
    assert_allclose(ours, sk.ExpSineSquared(0.7, 2.0)(X), atol=1e-12)


def test_categorical_is_one_where_labels_agree():
    space = Space(("colour", "town"), (0, 0, 0, 1))
    codes = np.array([[1.0, 0, 0, 0], [1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 0, 1]])
    K = parse("categorical(colour)").forward(np.zeros(2), space, codes, codes)[0]
    assert_allclose(K, [[1, 1, 0.5, 0.5], [1, 1, 0.5, 0.5], [0.5, 0.5, 1, 0.5], [0.5, 0.5, 0.5, 0.5]])
    pair = parse("categorical(town)").forward(np.zeros(2), space, codes, codes)[0]
    assert_allclose(pair[0], [1, 0.5, 0.5, 0.5])


def test_hours_are_alike_round_the_clock():
    """The formula on the angle between two hours; those of two columns are averaged; one missing is alone."""
    hours = np.array([0.0, 6.0, 23.0]) / 24
    space = Space(("hour", "month"), (0, 0, 0, 1, 1, 1), turns=(*hours, 0.0, 0.5, 0.75))
    codes = np.zeros((4, 6))
    codes[[0, 1, 2], [0, 1, 2]] = 1.0
    codes[[0, 1, 2], [3, 3, 5]] = 1.0
    theta = np.log([1.7, 0.8, 2.0])

    def of(turns, scale):
        return np.exp(-2 * np.sin(np.pi * (turns[:, None] - turns)) ** 2 / scale**2)

    K, _ = parse("cyclic").forward(theta, space, codes, codes)
    expected = 1.7 * 0.5 * (of(hours, 0.8) + of(np.array([0.0, 0.0, 0.75]), 2.0))
    assert_allclose(K[:3, :3], expected)
    assert_allclose(K[3], 0.0)
    one, _ = parse("cyclic(hour)").forward(theta[:2], space, codes, codes)
    assert one[0, 2] > one[0, 1]
    with pytest.raises(InputError, match="'a' holds others"):
        parse("cyclic(a)").labels(SPACE)
    with pytest.raises(InputError, match="the table has none"):
        parse("cyclic").labels(Space(("a",), (0,)))


def test_one_lengthscale_begins_at_the_distance_between_rows_of_all_columns():
    """Standardised rows are sqrt(2 D) apart, however many columns share the length-scale."""
    numbers = Space(tuple(map(str, range(100))), tuple(range(100)))
    X = np.random.default_rng(0).normal(size=(200, 100))
    distance = np.sqrt(np.mean(np.sum((X[:100] - X[100:]) ** 2, axis=1)) / 2.0)
    for space in (numbers, numbers.as_one, numbers.as_one.as_one):
        assert_allclose(np.exp(parse("matern52").start(space))[1:], distance, rtol=0.03)
    labels = Space(("a", "colour"), (0, 1, 1, 1), flags=(3,))
    for space in (labels, labels.as_one):
        assert_allclose(np.exp(parse("linear").start(space))[1:], np.sqrt(2.0))

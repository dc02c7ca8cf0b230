import numpy as np
from numpy.testing import assert_allclose

from nongauss.harmonium import summaries as readable
from nongauss.harmonium.chain_graph import ACTIVE, DUPLICATE


def test_each_unit_is_in_use_or_has_a_reason():
    rng = np.random.default_rng(0)
    a, b = rng.random(50), rng.random(50)
    hidden = np.column_stack([a, np.full(50, 0.999999), b, 1 - a, np.full(50, 1e-7)])
    status = readable.status_of(hidden, np.ones(50))
    assert status == (ACTIVE, readable.ON, ACTIVE, DUPLICATE, readable.OFF)
    sizes = np.column_stack([a - a.mean(), b - 1.0, np.full(50, 0.5)])
    assert readable.status_of(sizes, np.ones(50), "real") == (ACTIVE, ACTIVE, readable.ON)


def test_top_columns_are_ranked_by_lift_and_lowered_ones_left_out():
    weights = np.array([[2.0, -1.0], [3.0, 0.5], [1.0, 0.4]])
    tops = readable.top(weights, np.array([1.0, 0.1, 1.0]), ("a", "b", "c"), 2)
    assert tops == [["a", "c"], ["c", "b"]]


def test_class_means_and_spreads():
    hidden = np.array([[0.0], [1.0], [0.2]])
    mean, spread = readable.class_means(hidden, np.array([1.0, 3.0, 1.0]), np.array([0, 0, 1]), 3)
    assert_allclose(mean[:, 0], [0.75, 0.2, 0.0])
    assert_allclose(spread[:, 0], [np.sqrt(0.1875), 0.0, 0.0])


def test_the_description_counts_what_is_in_use_and_names_classes_and_columns():
    status = (ACTIVE, ACTIVE, readable.OFF, readable.OFF)
    text = readable.described(status, np.array([0.5, 0.123]), [["a", "b"], []], ["yes", "no"], most=1)
    assert text.splitlines() == [
        "2 features in use",
        f"2 not in use: {readable.OFF}",
        "F0  mean 0.50  most in yes  raises a, b",
        "and 1 more",
    ]

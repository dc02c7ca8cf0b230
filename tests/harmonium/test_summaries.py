import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from nongauss import Harmonium
from nongauss.harmonium.chain_graph import ACTIVE, DUPLICATE
from nongauss.harmonium.predict import OFF, ON, class_means, component_status, description, top_columns


def test_each_unit_is_in_use_or_has_a_reason():
    rng = np.random.default_rng(0)
    a, b = rng.random(50), rng.random(50)
    hidden = np.column_stack([a, np.full(50, 0.999999), b, 1 - a, np.full(50, 1e-7)])
    status = component_status(hidden, np.ones(50))
    assert status == (ACTIVE, ON, ACTIVE, DUPLICATE, OFF)
    sizes = np.column_stack([a - a.mean(), b - 1.0, np.full(50, 0.5)])
    assert component_status(sizes, np.ones(50), "real") == (ACTIVE, ACTIVE, ON)


def test_top_columns_are_ranked_by_lift_and_lowered_ones_left_out():
    weights = np.array([[2.0, -1.0], [3.0, 0.5], [1.0, 0.4]])
    tops = top_columns(weights, np.array([1.0, 0.1, 1.0]), ("a", "b", "c"), 2)
    assert tops == [["a", "c"], ["c", "b"]]


def test_class_means_and_spreads():
    hidden = np.array([[0.0], [1.0], [0.2]])
    mean, spread = class_means(hidden, np.array([1.0, 3.0, 1.0]), np.array([0, 0, 1]), 3)
    assert_allclose(mean[:, 0], [0.75, 0.2, 0.0])
    assert_allclose(spread[:, 0], [np.sqrt(0.1875), 0.0, 0.0])


def test_the_description_counts_what_is_in_use_and_names_classes_and_columns():
    status = (ACTIVE, ACTIVE, OFF, OFF)
    text = description(status, np.array([0.5, 0.123]), [["a", "b"], []], ["yes", "no"], most=1)
    assert text.splitlines() == [
        "2 features in use",
        f"2 not in use: {OFF}",
        "F0  mean 0.50  most in yes  raises a, b",
        "and 1 more",
    ]


def test_a_feature_lowers_what_has_a_left_tail_and_raises_what_has_a_right_one():
    """Columns of negative skew are mirrored inside; what is told of them is in their own direction."""
    rng = np.random.default_rng(0)
    has = rng.random(400) < 0.3
    X = np.where(np.arange(8) < 4, 6.0, -6.0) * has[:, None] + rng.normal(size=(400, 8))
    model = Harmonium(1, reading="chain", random_state=0).fit(X)
    assert set(model.top_features(8)[0]) == {"x0", "x1", "x2", "x3"}
    assert_array_equal(np.sign(model.components_[0]), np.sign(4 - np.arange(8) - 0.5))

import numpy as np
import pandas as pd
import pytest

from nongauss.core.errors import InputError
from nongauss.rectangle.stated import NOTHING_STATED, read_prior
from rectangle.small import viewed


@pytest.fixture
def rule():
    frame = pd.DataFrame({"age": [20.0, 30, 40, 50], "job": ["a", "b", "a", "c"], "size": [1.0, 2, 3, 4]})
    return viewed(frame)


def test_words_become_scaled_bounds(rule):
    there, cells = rule
    prior = read_prior({"mid": {"age": (25, 45)}, "b": {"job": "b", "size": (None, 2.5)}}, there, 50.0)
    assert prior.names == ("mid", "b")
    places = [(item.cluster, item.place) for item in prior.bounds]
    # Two numeric columns, so 0, 1 are lower and 2, 3 upper bounds, and 4, 5, 6 levels.
    assert places == [(0, 0), (0, 2), (1, 4), (1, 5), (1, 6), (1, 3)]
    assert prior.bounds[0].value == pytest.approx(-10 / np.std([20, 30, 40, 50]))
    assert [item.value for item in prior.bounds[2:5]] == [-1.0, 1.0, -1.0]
    margins = prior.margins(cells)
    assert (margins[:, 0] >= 0).tolist() == [False, True, True, False]
    assert (margins[:, 1] >= 0).tolist() == [False, True, False, False]


def test_what_was_stated_stays_with_its_cluster_when_others_are_left_out(rule):
    prior = read_prior({"old": {"age": (45, None)}, "young": {"age": (None, 25)}}, rule[0], 1.0)
    stated, names = prior.of(np.array([1, 2, 4]))
    assert names == ("young", "cluster 1", "cluster 2")
    assert [(item.cluster, item.place) for item in stated] == [(0, 2)]


def test_nothing_stated_is_no_prior(rule):
    assert NOTHING_STATED.margins(rule[1]) is None


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"a": {"agee": (1, 2)}}, "'agee', which makes no rules"),
        ({"a": {"age": 30}}, r"\(lower, upper\)"),
        ({"a": {"age": (45, 30)}}, "below the upper"),
        ({"a": {"age": ("x", 30)}}, r"\(lower, upper\)"),
        ({"a": {"job": ["d"]}}, "must name labels"),
        ({"a": (30, 45)}, "must map cluster names"),
    ],
)
def test_other_statements_are_refused(rule, rules, message):
    with pytest.raises(InputError, match=message):
        read_prior(rules, rule[0], 1.0)

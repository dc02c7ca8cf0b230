"""Rules: what they say of rows, and where their bounds are put."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from nongauss.rectangle.box_search import LOWER, UPPER, hard_boxes, is_whole, rank_columns
from nongauss.rectangle.data import RawCells
from nongauss.rectangle.params import SoftBoxes, StatedBound
from nongauss.rectangle.rules import (
    FAR,
    Condition,
    Rules,
    best_slopes,
    bound_between,
    printed,
    roundest,
)
from nongauss.rectangle.words import rule_texts
from rectangle.small import labels, viewed

AGE = Condition(0, "age", 30.0, 45.0, unit=10.0)
JOB = Condition(1, "job", levels=("a",), all_levels=("a", "b", "c"))


def cells(*lines: tuple[float, int]) -> RawCells:
    numbers, codes = zip(*lines, strict=True)
    return RawCells(np.array(numbers)[:, None], labels(np.array(codes)[:, None], 3))


def test_margins_are_distances_to_the_nearest_bound_and_gaps_break_nothing():
    rules = Rules(("x", "y", "z"), ((AGE,), (AGE, JOB), ()))
    got = rules.margins(cells((40.0, 0), (50.0, 0), (40.0, 2), (np.nan, -1)))
    assert_allclose(got[:, 0], [0.5, -0.5, 0.5, FAR])
    assert_allclose(got[:, 1], [0.5, -0.5, -1.0, FAR])
    assert_allclose(got[:, 2], FAR)


def test_inside_one_rule_only_is_most_probably_that_cluster():
    rng = np.random.default_rng(0)
    margins = rng.normal(size=(200, 4))
    claims = Rules(("a",) * 4, ((),) * 4, slopes=(3.0, 1.0, 9.0, 2.0)).claims(margins)
    proba = softmax(claims, axis=1)
    assert_allclose(proba.sum(axis=1), 1.0)
    only = (margins >= 0).sum(axis=1) == 1
    assert_array_equal(proba[only].argmax(axis=1), (margins[only] >= 0).argmax(axis=1))


def test_the_slopes_are_those_of_the_shares():
    margins = np.random.default_rng(0).normal(size=(4000, 2))
    share = softmax(Rules(("a", "b"), ((), ()), slopes=(5.0, 1.5)).claims(margins), axis=1)
    assert_allclose(best_slopes(margins, share, np.ones(4000)), [5.0, 1.5], rtol=1e-3)


def test_the_surer_rule_decides_rows_in_both_rules_and_in_none():
    """The first rule tells exactly; the second, loose by half a unit to both sides, is then not asked."""
    x = np.random.default_rng(0).uniform(-3, 3, 2000)
    loose = np.where(np.arange(2000) % 2, 0.5, -0.5) - x
    margins = np.column_stack([x, loose])
    share = np.column_stack([x > 0, x <= 0]).astype(float)
    rules = Rules(("a", "b"), ((), ()), best_slopes(margins, share, np.ones(2000)))
    assert (rules.claims(margins).argmax(axis=1) == (x <= 0)).mean() > 0.99
    assert (margins.argmax(axis=1) == (x <= 0)).mean() < 0.97


def table(X: np.ndarray):
    there, cells = viewed(X)
    return there, cells, rank_columns(there, cells, there.scaled(cells.numbers), np.ones(len(X)))


def wide(K: int, D: int) -> SoftBoxes:
    return SoftBoxes(np.full((1, K, D), -16.0), np.full((1, K, D), 16.0), np.zeros((1, K, 0)))


@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_bounds_lie_in_the_gap_whatever_the_offset_of_single_precision_data(offset):
    X = (np.array([[0.1], [0.2], [0.3], [0.7], [0.8]]) + offset).astype(np.float32).astype(float)
    there, _, at = table(X)
    own = np.array([0, 0, 0, 1, 1])
    rules = printed(at, there, hard_boxes(at, wide(2, 1), own, 0.0, ()), ("low", "high"), "auto")
    (low,), (high,) = rules.conditions
    assert low.upper == high.lower
    assert X[2, 0] < low.upper < X[3, 0]
    assert rule_texts(rules, there.codes)["low"] == f"x0 at most {offset + 0.5:.10g}"


def test_only_rows_that_the_other_conditions_let_in_hold_a_bound():
    """Between 1 and 9 in x0 there are rows, but x1 keeps them out: the bound is free to be 5."""
    X = np.array([[0.0, 0.5], [1, 0.25], [3, 8.5], [7, 9.5], [9, 0.75], [10, 0.5], [11, 9.0]])
    there, _, at = table(X)
    own = np.array([0, 0, 1, 1, 1, 1, 1])
    boxes = SoftBoxes(
        np.array([[[-16.0, -16], [-16, -16]]]), np.array([[[-0.9, -0.5], [16, 16]]]), np.zeros((1, 2, 0))
    )
    found = hard_boxes(at, boxes, own, 0.0, ())
    rules = printed(at, there, found, ("a", "b"), "auto")
    assert rules.margins(table(X)[1])[own == 0, 0].min() >= 0
    assert rules.margins(table(X)[1])[own == 1, 0].max() < 0


def test_stated_bounds_are_printed_where_they_were_found():
    X = np.arange(20.0)[:, None] + 0.25
    there, _, at = table(X)
    z = there.scaled(np.array([[7.6]]))[0, 0]
    boxes = wide(1, 1)._replace(upper=np.full((1, 1, 1), z))
    found = hard_boxes(at, boxes, np.zeros(20, int), 0.5, [StatedBound(0, 1, z, 1.0)])
    assert set(found[0].conditions) == {(0, UPPER)}
    condition = printed(at, there, found, ("a",), None).conditions[0][0]
    assert condition.upper == pytest.approx(7.75)
    assert (0, LOWER) not in found[0].conditions


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.6, 1.0, 0.8),
        (58e3, 63e3, 60e3),
        (-3, 4, 0),
        (-4, 3, 0),
        (123.456, 123.478, 123.47),
        (1e5 + 0.1, 1e5 + 0.35, 1e5 + 0.2),
    ],
)
def test_a_person_would_say_this(low, high, expected):
    assert roundest(low, high) == pytest.approx(expected, abs=1e-12)
    assert math.copysign(1.0, roundest(low, high)) == math.copysign(1.0, expected)  # no "-0"


@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e5))
def test_it_is_always_strictly_between(low, width):
    high = low + width
    if math.nextafter(low, math.inf) < high:
        assert low < roundest(low, high) < high


def test_bounds_of_whole_numbers_are_whole_and_share_a_gap():
    assert bound_between(29, 30, whole=True, precision="auto") == 30  # at least 30
    assert bound_between(30, 29, whole=True, precision="auto") == 29  # at most 29
    assert bound_between(0, 1, whole=True, precision="auto") == 1
    low = bound_between(17, 44, whole=True, precision="auto")
    high = bound_between(44, 17, whole=True, precision="auto")
    assert low == high + 1 == 30


def test_decimals_and_middle_can_be_asked_for():
    assert bound_between(1.23, 1.37, whole=False, precision=1) == 1.3
    assert bound_between(1.0, 2.0, whole=False, precision=None) == 1.5
    assert bound_between(12345.0, 12945.0, whole=False, precision=-3) == 13000.0


def test_whole_columns_are_told():
    assert is_whole(np.array([1.0, 5.0]))
    assert not is_whole(np.array([1.0, 5.5]))

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nongauss.rectangle.rounding import is_whole, place, roundest


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
    assert place(29, 30, whole=True, precision="auto") == 30  # at least 30
    assert place(30, 29, whole=True, precision="auto") == 29  # at most 29
    assert place(0, 1, whole=True, precision="auto") == 1
    low, high = place(17, 44, whole=True, precision="auto"), place(44, 17, whole=True, precision="auto")
    assert low == high + 1 == 30


def test_decimals_and_middle_can_be_asked_for():
    assert place(1.23, 1.37, whole=False, precision=1) == 1.3
    assert place(1.0, 2.0, whole=False, precision=None) == 1.5
    assert place(12345.0, 12945.0, whole=False, precision=-3) == 13000.0


def test_whole_columns_are_told():
    assert is_whole(np.array([1.0, 5.0]))
    assert not is_whole(np.array([1.0, 5.5]))

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import DataConversionWarning

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.estimator.persistence import decode, encode
from nongauss.tables.labels import LabelCoder, LabelSummary

ONES = np.ones(4)
TEXT = ["b", "a", "c", "a"]


@pytest.mark.parametrize(
    "y",
    [
        TEXT,
        np.array(TEXT),
        np.array(TEXT, dtype=object),
        pd.Series(TEXT, index=[7, 3, 5, 1]),
        pd.Series(TEXT, dtype="category"),
        pd.DataFrame({"y": TEXT})["y"],
        pl.Series(TEXT),
        pl.Series(TEXT, dtype=pl.Categorical),
    ],
    ids=lambda y: f"{type(y).__module__}-{getattr(y, 'dtype', '')}",
)
def test_text_is_sorted_whatever_it_comes_in(y):
    with pytest.warns(NongaussWarning, match="orders the classes as a < b < c, which is a guess"):
        LabelCoder.fit(y, ONES, ordered=True)
    coder = LabelCoder.fit(y, ONES)
    assert coder.classes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(coder.encode(y, 4), [1.0, 0.0, 2.0, 0.0])


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([True, False, True, True], np.array([False, True])),
        (pd.Series([True, False, True, True], dtype="boolean"), np.array([False, True])),
        (np.array([3, 1, 3, 3], dtype=np.int16), np.array([1, 3], dtype=np.int16)),
        (pd.Series([3, 1, 3, 3], dtype="Int64"), np.array([1, 3])),
        ([1.0, -1.0, 1.0, 1.0], np.array([-1.0, 1.0])),
    ],
)
def test_the_type_of_the_labels_is_kept(y, classes):
    coder = LabelCoder.fit(y, ONES)
    np.testing.assert_array_equal(coder.classes, classes)
    assert coder.classes.dtype == classes.dtype
    np.testing.assert_array_equal(coder.encode(y, 4), [1, 0, 1, 1])


def test_an_ordered_category_keeps_its_order_and_its_unused_levels():
    y = pd.Categorical(["low", "high", "low", "mid"], ["low", "mid", "more", "high"], ordered=True)
    for form in (y, pd.Series(y), pd.DataFrame({"y": y})["y"]):
        coder = LabelCoder.fit(form, ONES, ordered=True)
        assert coder.classes.tolist() == ["low", "mid", "more", "high"]
        np.testing.assert_array_equal(coder.encode(form, 4), [0, 3, 0, 1])
    assert LabelCoder.fit(y, ONES).classes.tolist() == ["high", "low", "mid"]
    grades = pd.Categorical([3, 1, 1, 3], [3, 2, 1], ordered=True)
    assert LabelCoder.fit(grades, ONES, ordered=True).classes.tolist() == [3, 2, 1]


def test_an_order_that_is_known_is_taken_and_one_that_is_guessed_is_said():
    def order(y):
        return LabelCoder.fit(y, ONES, ordered=True).classes.tolist()

    assert order(["low", "high", "medium", "low"]) == ["low", "medium", "high"]
    assert order(["10", "9", "2", "9"]) == ["2", "9", "10"]
    assert order([2.5, 1.0, 2.5, 1.0]) == [1.0, 2.5]
    listed = pd.Categorical(TEXT, categories=["c", "x", "b", "a"])
    with pytest.warns(
        NongaussWarning, match="c < b < a.*the order in which the category lists them.*ordered=True"
    ):
        assert order(listed) == ["c", "b", "a"]
    for y in ([2.5, 1.0, 1.5, 3.5], [2.5, 1.0, 2.5, 1.0]):  # all different; not for grades
        with pytest.raises(ValueError, match="continuous"):
            LabelCoder.fit(y, ONES, ordered=len(set(y)) > 2)


def test_of_numbers_those_that_occur_are_classes():
    assert LabelCoder.fit([3, 0, 1, 1], ONES, ordered=True).classes.tolist() == [0, 1, 3]


def test_numbers_that_are_too_many_for_grades_are_refused_with_the_remedy():
    y = np.arange(100) / 10
    with pytest.raises(InputError, match=r"Unknown label type: continuous.*100 different.*round them"):
        LabelCoder.fit(y, np.ones(100), ordered=True)


def test_given_levels_overrule_what_occurs_and_one_class_is_enough():
    coder = LabelCoder.fit(["a"] * 4, ONES, levels=["c", "a"])
    assert coder.classes.tolist() == ["c", "a"]
    assert coder.encode(["a", "c"], 2).tolist() == [1, 0]
    with pytest.raises(InputError, match=r"label 'b' in row 1 \(counted from 0\).*'c', 'a'"):
        coder.encode(["a", "b", "x"], 3)
    for levels in (["a"], ["a", "a"], [["a", "b"]]):
        with pytest.raises(InputError, match="different labels"):
            LabelCoder.fit(["a"] * 4, ONES, levels=levels)


def test_rows_of_weight_zero_leave_no_trace():
    y, weight = [5, 2, 1, 2], np.array([0.0, 1.0, 2.0, 1.0])
    coder = LabelCoder.fit(y, weight)
    assert coder.classes.tolist() == [1, 2]
    assert coder.encode(y, 4, weight=weight).tolist() == [0, 1, 0, 1]
    with pytest.raises(InputError, match="label 5 in row 0"):
        coder.encode(y, 4)
    with pytest.raises(InputError, match="1 class: 2"):
        LabelCoder.fit(y, np.array([0.0, 1.0, 0.0, 1.0]))


def test_a_column_vector_warns_once():
    with pytest.warns(DataConversionWarning) as caught:
        coder = LabelCoder.fit([[1], [2], [1], [2]], ONES)
    assert coder.encode([[1], [2], [1], [2]], 4).tolist() == [0, 1, 0, 1]
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "Model requires y to be passed, but the target y is None"),
        (["b", None, "a", "a"], r"NaN \(a missing label\) in row 1"),
        (["b", "a", np.nan, "a"], r"NaN \(a missing label\) in row 2"),
        ([1.0, np.nan, 2.0, 1.0], r"NaN \(a missing label\) in row 1"),
        (pd.Series([1, 2, None, 2], dtype="Int64"), r"NaN \(a missing label\) in row 2"),
        ([1.0, 2.0, 1.0, np.inf], "infinity in row 3"),
        (["a"] * 4, "at least two classes in y, got 1 class: 'a'"),
        ([0.1, 0.2, 0.3, 0.4], "Unknown label type: continuous"),
        (["a", "b", 1, "b"], "mixes texts with others .'a' in row 0, 1 in row 2"),
        (np.array([{}, {}, {}, {}]), "Unknown label type"),
        ([1j, 2j, 1j, 2j], "Complex data not supported"),
        (np.zeros((4, 2)), r"one label a row.*\(4, 2\)"),
        ([1, 2, 1], "X has 4 rows, y has 3"),
    ],
)
def test_bad_targets_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        LabelCoder.fit(y, ONES, "Model")


@pytest.mark.parametrize("y", [TEXT, np.array(TEXT), [2, 1, 3, 1], [True, False, True, False]])
def test_a_file_can_hold_it(y):
    coder, tensors = LabelCoder.fit(y, ONES), {}
    again = decode(encode(coder, tensors, "coder"), tensors, lambda name: LabelCoder)
    np.testing.assert_array_equal(again.classes, coder.classes)
    assert again.classes.dtype == coder.classes.dtype


def test_labels_of_parts_add_up_to_those_of_all_rows():
    y, weight = np.array(["b", "a", "c", "a", "d"]), np.array([1.0, 2.0, 0.0, 3.0, 1.0])
    parts = [LabelSummary.of(y[a:b], weight[a:b], "test", f"part {a}") for a, b in ((0, 2), (2, 3), (3, 5))]
    total = parts[0] + parts[1] + parts[2]
    assert total.labels.tolist() == ["a", "b", "d"]
    assert total.mass.tolist() == [5.0, 1.0, 1.0]
    assert total.coder("test").classes.tolist() == LabelCoder.fit(y, weight).classes.tolist()
    numbers = LabelSummary.of(np.array([1, 2]), np.ones(2), "test", "part 9")
    with pytest.raises(InputError, match="y holds texts in one of part 0 and part 9 but not in the other"):
        total + numbers


def test_an_ordered_category_keeps_its_levels_over_parts():
    def part(levels, number=0):
        y = pd.Series(pd.Categorical(["low", "high"], categories=levels, ordered=True))
        return LabelSummary.of(y, np.ones(2), "test", f"part {number}")

    few, all_ = part(["low", "high"]), part(["low", "mid", "high"], 1)
    for summary in (few + all_, all_ + few + all_):
        assert summary.coder("test", ordered=True).classes.tolist() == ["low", "mid", "high"]
    with pytest.raises(
        InputError, match="y is ordered as 'low', 'mid', 'high' in part 1 but as 'high', 'low"
    ):
        all_ + part(["high", "low"], 2)


def test_intervals_are_refused_with_what_keeps_their_order():
    y = pd.Series(pd.cut([1.0, 5.0, 9.0, 5.0], [0, 3, 6, 10]))
    with pytest.raises(InputError, match=r"objects of type Interval .*rename_categories\(str\)"):
        LabelCoder.fit(y, ONES, ordered=True)
    coder = LabelCoder.fit(y.cat.rename_categories(str), ONES, ordered=True)
    assert coder.classes.tolist() == ["(0, 3]", "(3, 6]", "(6, 10]"]

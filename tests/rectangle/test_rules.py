import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nongauss.rectangle.columns import Cells
from nongauss.rectangle.rules import FAR, Condition, Rules, best_slopes, plain_number
from rectangle.small import labels

AGE = Condition(0, "age", 30.0, 45.0, unit=10.0)
JOB = Condition(1, "job", levels=("a",), all_levels=("a", "b", "c"))


def cells(*lines: tuple[float, int]) -> Cells:
    numbers, codes = zip(*lines, strict=True)
    return Cells(np.array(numbers)[:, None], labels(np.array(codes)[:, None], 3))


def test_margins_are_distances_to_the_nearest_bound_and_gaps_break_nothing():
    rules = Rules(("x", "y", "z"), ((AGE,), (AGE, JOB), ()))
    got = rules.margins(cells((40.0, 0), (50.0, 0), (40.0, 2), (np.nan, -1)))
    assert_allclose(got[:, 0], [0.5, -0.5, 0.5, FAR])
    assert_allclose(got[:, 1], [0.5, -0.5, -1.0, FAR])
    assert_allclose(got[:, 2], FAR)


def test_inside_one_rule_only_is_most_probably_that_cluster():
    rng = np.random.default_rng(0)
    margins = rng.normal(size=(200, 4))
    proba = Rules(("a",) * 4, ((),) * 4, slopes=(3.0, 1.0, 9.0, 2.0)).proba(margins)
    assert_allclose(proba.sum(axis=1), 1.0)
    only = (margins >= 0).sum(axis=1) == 1
    assert_array_equal(proba[only].argmax(axis=1), (margins[only] >= 0).argmax(axis=1))


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (AGE, "age 30 to 45"),
        (Condition(0, "age", lower=0.1), "age at least 0.1"),
        (Condition(0, "pay", upper=60000.0), "pay at most 60000"),
        (JOB, "job a"),
        (Condition(1, "job", levels=("a", "b", "c"), all_levels=("a", "b", "c", "d")), "job not d"),
        (Condition(1, "job", levels=("a", "b"), all_levels=("a", "b", "c", "d")), "job a or b"),
        (Condition(0, "legs", 4.0, 4.0), "legs 4"),
    ],
)
def test_conditions_are_said_plainly(condition, text):
    assert condition.text() == text


def test_rules_as_sentences_and_as_a_table():
    rules = Rules(("young", "rest"), ((AGE, JOB), ()))
    assert rules.texts() == {"young": "age 30 to 45 and job a", "rest": "every row"}
    table = rules.table()
    assert table["column"].tolist() == ["age", "job"]
    assert table["levels"].tolist() == [None, ("a",)]
    assert table.loc[0, ["lower", "upper"]].tolist() == [30, 45]


def test_the_slopes_are_those_of_the_shares():
    margins = np.random.default_rng(0).normal(size=(4000, 2))
    share = Rules(("a", "b"), ((), ()), slopes=(5.0, 1.5)).proba(margins)
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


@pytest.mark.parametrize(
    ("x", "text"), [(30.0, "30"), (1e5 + 0.25, "100000.25"), (-0.5, "-0.5"), (2e-9, "2e-09")]
)
def test_numbers_have_no_empty_digits(x, text):
    assert plain_number(x) == text

"""What a person reads of the clusters."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sklearn.datasets import load_iris

from nongauss import RectangleMixture
from nongauss.rectangle.predict import RuleTally, tally_of
from nongauss.rectangle.rules import Condition, Rules
from nongauss.rectangle.words import cluster_table, condition_text, description, rule_table, rule_texts
from nongauss.tables.column_code import ColumnCode
from nongauss.tables.source import Part

CODES = (ColumnCode("age", "numeric"), ColumnCode("job", "labels", levels=("a", "b", "c")))
AGE = Condition(0, "age", 30.0, 45.0, unit=10.0)
JOB = Condition(1, "job", levels=("a",), all_levels=("a", "b", "c"))


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
    assert condition_text(condition, CODES[condition.column]) == text


def test_rules_as_sentences_and_as_a_table():
    rules = Rules(("young", "rest"), ((AGE, JOB), ()))
    assert rule_texts(rules, CODES) == {"young": "age 30 to 45 and job a", "rest": "every row"}
    table = rule_table(rules)
    assert table["column"].tolist() == ["age", "job"]
    assert table["levels"].tolist() == [None, ("a",)]
    assert table.loc[0, ["lower", "upper"]].tolist() == [30, 45]


@pytest.mark.parametrize(
    ("x", "text"), [(30.0, "30"), (1e5 + 0.25, "100000.25"), (-0.5, "-0.5"), (2e-9, "2e-09")]
)
def test_bounds_have_no_empty_digits(x, text):
    assert condition_text(Condition(0, "age", lower=x), CODES[0]) == f"age at least {text}"


def test_precision_and_recall_are_those_of_the_rule():
    margins = np.array([[1.0, -1], [1, -1], [1, 0.5], [-1, 1], [-1, -2]])
    share = np.array([[1.0, 1, 0, 0, 1], [0, 0, 1, 1, 0]])
    table = cluster_table(["a", "b"], RuleTally.of(margins, margins >= 0, share, np.array([1.0, 1, 1, 1, 2])))
    assert table["rows"].tolist() == [5, 1]
    assert table["inside"].tolist() == [3, 2]
    assert table["precision"].tolist() == [2 / 3, 1.0]
    assert table["recall"].tolist() == [0.5, 1.0]
    text = description({"a": "x at most 1", "b": "x at least 1"}, table, 0.75)
    assert text.splitlines()[0] == "2 clusters; 75.0 % of 6 rows are inside exactly one rule."
    assert "a: 5 rows, precision 67 %, recall 50 %\n  x at most 1" in text
    text = description({"a": "", "b": ""}, table, 0.75, "2 clusters, since two.")
    assert text.splitlines()[1] == "2 clusters, since two."


def test_rules_are_judged_on_all_rows_of_all_parts(tmp_path):
    X: pd.DataFrame = load_iris(as_frame=True).data
    X.to_parquet(tmp_path / "iris.parquet", row_group_size=40, index=False)
    model = RectangleMixture(3, n_init=2, random_state=0)
    whole, inside = model.fit(X).clusters_, model.inside_one_
    model.fit(tmp_path / "iris.parquet")
    assert_frame_equal(model.clusters_, whole)
    assert model.inside_one_ == inside
    assert model.labels_ is None
    np.testing.assert_array_equal(model.fit_predict(tmp_path / "iris.parquet"), model.predict(X))
    assert np.isfinite(model.predict_posterior(str(tmp_path)).sum())


def test_a_part_without_rows_adds_nothing():
    nothing = Part("part", load_iris(as_frame=True).data[:0], None, None)
    assert tally_of(nothing, None, "model", None, None) is None

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nongauss.core.errors import InputError
from nongauss.rectangle.columns import merge, n_distinct, names_of_rows, places_of, view
from nongauss.tables.encoder import TableEncoder


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [1.0, 2, 3, 4, 1],
            "job": ["a", "b", "a", None, "a"],
            "pay": [5.0, np.nan, 7, 9, 5],
            "one": 1.0,
        }
    )


@pytest.fixture
def whole() -> TableEncoder:
    with pytest.warns(UserWarning, match="'one'"):
        return TableEncoder.fit(frame())


def test_a_view_reads_its_columns_as_they_are(whole):
    rule, cells = view(frame(), whole, (0, 1, 2, 3), np.ones(5), "standard", "model")
    assert [code.name for code in rule.codes] == ["age", "pay", "job"]
    assert_array_equal(cells.numbers[:, 1], [5, np.nan, 7, 9, 5])
    assert_array_equal(cells.labels.codes[:, 0], [0, 1, 0, -1, 0])
    z = rule.scaled(cells.numbers)
    assert_allclose(z.std(axis=0)[0], 1.0, rtol=1e-6)
    assert np.isnan(z[1, 1])


def test_labels_that_name_rows_are_left_out():
    frame = pd.DataFrame({"animal": [f"a{i // 2 * 2 if i < 4 else i}" for i in range(30)], "legs": range(30)})
    whole = TableEncoder.fit(frame)
    there, _ = view(frame, whole, (0, 1), np.ones(30), "standard", "model")
    assert [code.name for code in there.codes] == ["legs"]
    assert names_of_rows((there, there)) == ["animal"]
    often, _ = view(frame, whole, (0, 1), np.full(30, 3.0), "standard", "model")
    assert names_of_rows((often,)) == []


def test_new_rows_need_only_the_columns_of_the_view(whole):
    rule, _ = view(frame(), whole, (0, 1), np.ones(5), "standard", "model")
    alone = rule.read(frame()[["job", "age"]], whole, "model")
    assert_array_equal(alone.numbers[:, 0], frame()["age"])
    with pytest.raises(InputError, match="lacks column 'age'"):
        rule.read(frame()[["job", "pay"]], whole, "model")


def test_arrays_may_have_all_columns_or_those_of_the_view():
    X = np.random.default_rng(0).normal(size=(9, 3))
    whole = TableEncoder.fit(X)
    rule, _ = view(X, whole, (2, 0), np.ones(9), "standard", "model")
    assert_array_equal(rule.read(X, whole, "model").numbers, X[:, [2, 0]])
    assert_array_equal(rule.read(X[:, [2, 0]], whole, "model").numbers, X[:, [2, 0]])
    with pytest.raises(InputError, match="1 features, but model is expecting 3"):
        rule.read(X[:, :1], whole, "model")


def test_ranks_spread_values_evenly_whatever_their_scale():
    x = np.random.default_rng(0).normal(size=200)
    X = np.column_stack([x, np.exp(5 * x)])
    X[7] = 1e12
    rule, cells = view(X, TableEncoder.fit(X), (0, 1), np.ones(200), "rank", "model")
    z = rule.scaled(cells.numbers)
    assert_allclose(z[:, 0], z[:, 1], atol=1e-6)
    assert np.abs(z).max() < 1.75


def test_equal_rows_are_merged_gaps_included(whole):
    everything = (0, 1, 2)
    rule, cells = view(frame(), whole, everything, np.ones(5), "standard", "model")
    merged = merge(rule, cells, rule, cells, np.array([1.0, 1, 1, 0, 2]))
    assert sorted(merged.rows.weight) == [1, 1, 3]
    assert set(merged.first) == {0, 1, 2}
    assert n_distinct(merged.rows.X, merged.rows.X_labels) == 3


@pytest.mark.parametrize(
    ("chosen", "places"), [(None, (0, 1, 2, 3)), (["pay", "age"], (2, 0)), ([1, -1], (1, 3)), ("job", (1,))]
)
def test_columns_are_named_or_numbered(whole, chosen, places):
    assert places_of(chosen, whole, "rule_columns") == places


@pytest.mark.parametrize(
    ("chosen", "message"),
    [(["agee"], "'agee', which X does not have"), ([], "is empty"), (["age", 0], "twice"), ([7], "7")],
)
def test_other_names_are_refused(whole, chosen, message):
    with pytest.raises(InputError, match=message):
        places_of(chosen, whole, "rule_columns")

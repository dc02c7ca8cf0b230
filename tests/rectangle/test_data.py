import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from encoding import encoder_of
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.rectangle.data import (
    ColumnViews,
    LevelCodes,
    merge,
    n_distinct,
    names_of_rows,
    places_of,
    read_columns,
)
from nongauss.tables.encoder import TableEncoder
from rectangle.small import rows, viewed


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
        return encoder_of(frame())


def test_a_view_reads_its_columns_as_they_are(whole):
    rule, cells = viewed(frame(), whole)
    assert [code.name for code in rule.codes] == ["age", "pay", "job"]
    assert_array_equal(cells.numbers[:, 1], [5, np.nan, 7, 9, 5])
    assert_array_equal(cells.labels.codes[:, 0], [0, 1, 0, -1, 0])
    z = rule.scaled(cells.numbers)
    assert_allclose(z.std(axis=0)[0], 1.0, rtol=1e-6)
    assert np.isnan(z[1, 1])


def test_labels_that_name_rows_are_left_out():
    animals = [f"a{i // 2 * 2 if i < 14 else i}" for i in range(30)]
    frame = pd.DataFrame({"animal": animals, "legs": range(30)})
    whole = encoder_of(frame)
    there, _ = viewed(frame, whole)
    assert [code.name for code in there.codes] == ["legs"]
    assert names_of_rows((there, there)) == ["animal"]
    often, _ = viewed(frame, whole, weight=np.full(30, 3.0))
    assert names_of_rows((often,)) == []


def test_new_rows_need_only_the_columns_of_the_view(whole):
    rule, _ = viewed(frame(), whole, (0, 1))
    alone = rule.read(frame()[["job", "age"]], whole, "model")
    assert_array_equal(alone.numbers[:, 0], frame()["age"])
    with pytest.raises(InputError, match="lacks column 'age'"):
        rule.read(frame()[["job", "pay"]], whole, "model")


def test_arrays_may_have_all_columns_or_those_of_the_view():
    X = np.random.default_rng(0).normal(size=(9, 3))
    whole = encoder_of(X)
    rule, _ = viewed(X, whole, (2, 0))
    assert_array_equal(rule.read(X, whole, "model").numbers, X[:, [2, 0]])
    assert_array_equal(rule.read(X[:, [2, 0]], whole, "model").numbers, X[:, [2, 0]])
    with pytest.raises(InputError, match="1 features, but model is expecting 3"):
        rule.read(X[:, :1], whole, "model")


def test_ranks_spread_values_evenly_whatever_their_scale():
    x = np.random.default_rng(0).normal(size=200)
    X = np.column_stack([x, np.exp(5 * x)])
    X[7] = 1e12
    with pytest.warns(NongaussWarning, match="holds 1e.12, so far from all other values"):
        rule, cells = viewed(X, scaling="rank")
    z = rule.scaled(cells.numbers)
    assert_allclose(z[:, 0], z[:, 1], atol=1e-6)
    assert np.abs(z).max() < 1.75


def test_equal_rows_are_merged_gaps_included(whole):
    rule, _ = viewed(frame(), whole, (0, 1, 2))
    columns = read_columns(frame(), whole, (0, 1, 2), "model")
    rows, cells = merge(ColumnViews(rule, rule), columns, np.array([1.0, 1, 1, 0, 2]))
    assert sorted(rows.weight) == [1, 1, 3]
    assert sorted(cells.numbers[:, 0]) == [1, 2, 3]
    assert_array_equal(rule.scaled(cells.numbers), rows.X)
    assert_array_equal(cells.labels.codes, rows.X_labels.codes)
    assert n_distinct(rows.X, rows.X_labels) == 3


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


def test_levels_stand_side_by_side_and_a_gap_has_none():
    coded = LevelCodes(np.array([[0, 1], [2, -1]]), (3, 2))
    assert_array_equal(coded.one_hot(), [[1, 0, 0, 0, 1], [0, 0, 1, 0, 0]])


def test_rows_are_grouped_by_their_gaps():
    data = rows()
    patterns = data.gap_patterns
    assert sorted(np.concatenate(patterns.rows)) == list(range(len(data)))
    for members, seen in zip(patterns.rows, patterns.seen, strict=True):
        assert (~np.isnan(data.Y[members]) == seen).all()

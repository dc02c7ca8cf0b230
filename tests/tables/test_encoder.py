import warnings

import numpy as np
import pandas as pd
import pytest

from encoding import encoder_of
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.tables.learn import learn
from nongauss.tables.source import Part, Stream


def frame(n=12):
    rng = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "colour": pd.Categorical(np.resize(["red", "green", "blue"], n)),
            "smoker": np.resize([True, False], n),
            "city": np.resize(["Bern", "Oslo"], n),
            "age": pd.array([None, *rng.randint(20, 60, n - 1)], dtype="Int64"),
            "height": rng.gamma(2.0, size=n),
        }
    )


def test_frame_columns_are_encoded_and_named():
    X = frame()
    encoder = encoder_of(X)
    assert encoder.feature_names == tuple(X.columns)
    assert encoder.n_features == 5
    assert encoder.encoded_names == (
        *("colour=blue", "colour=green", "colour=red", "smoker=True", "city=Oslo"),
        *("age", "age=missing", "height"),
    )
    Z = encoder.as_scaled(X)
    assert Z.dtype == np.float64
    np.testing.assert_array_equal(Z[:2, :5], [[0, 0, 1, 1, 0], [0, 1, 0, 0, 1]])
    np.testing.assert_allclose(Z[:, 5].mean(), 0, atol=1e-14)
    assert Z[0, 5:7].tolist() == [0, 1]
    assert Z[:, 6].sum() == 1
    np.testing.assert_allclose([Z[:, 7].mean(), Z[:, 7].std()], [0, 1], atol=1e-14)


def test_polars_gives_the_same_matrix():
    pl = pytest.importorskip("polars")
    X = frame()
    encoder = encoder_of(X)
    Z = encoder.as_scaled(X)
    other = pl.DataFrame({name: [None if pd.isna(v) else v for v in X[name]] for name in X})
    np.testing.assert_array_equal(encoder.as_scaled(other), Z)
    assert encoder_of(other).encoded_names == encoder.encoded_names


@pytest.mark.parametrize("scale", [1e6, -3.7, 1e300, -1e-300])
def test_any_units_give_the_same_matrix(scale):
    X = np.random.RandomState(0).gamma(2.0, size=(30, 3))
    X[3, 1] = np.nan
    Z = encoder_of(X).as_scaled(X)
    moved = X * scale + (5.0 if 1 < abs(scale) < 1e7 else 0.0)
    np.testing.assert_allclose(encoder_of(moved).as_scaled(moved), Z, atol=1e-12)


def test_integer_weights_equal_repetition_and_zero_weight_equals_removal():
    X = frame()
    X.loc[5, ["colour", "height"]] = [None, np.nan]
    weight = np.resize([2.0, 1.0, 0.0, 3.0, 1.0, 0.0], len(X))
    weighted = encoder_of(X, weight)
    repeated = X.loc[np.repeat(np.arange(len(X)), weight.astype(int))]
    expected = encoder_of(repeated)
    assert weighted.encoded_names == expected.encoded_names
    assert "height=missing" not in weighted.encoded_names
    np.testing.assert_allclose(weighted.as_scaled(repeated), expected.as_scaled(repeated), atol=1e-13)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weighted.as_scaled(X, warn=False)
    with pytest.raises(InputError, match=r"sample_weight.shape == \(2,\), expected"):
        encoder_of(X, np.ones(2))


def test_constant_and_empty_columns_are_ignored():
    X = pd.DataFrame({"v": [1.0, 2.0, 4.0], "one": 1, "same": "a", "none": [None] * 3, "gap": [5, None, 5]})
    with pytest.warns(NongaussWarning, match=r"column 'none' \(all cells.*columns 'one', 'same' \(only one"):
        encoder = encoder_of(X)
    assert encoder.ignored == ("one", "same", "none")
    assert encoder.encoded_names == ("v", "gap=missing")
    np.testing.assert_array_equal(encoder.as_scaled(X)[:, 1], [0, 1, 0])
    np.testing.assert_array_equal(encoder.as_scaled(X)[:, 0], encoder_of(X[["v"]]).as_scaled(X[["v"]])[:, 0])
    quiet = encoder_of(np.ones((3, 2)))  # an array: no warning
    assert quiet.ignored == ("x0", "x1")
    assert quiet.as_scaled(np.zeros((4, 2))).shape == (4, 0)
    with pytest.warns(NongaussWarning, match="'x1' .all cells are missing"):
        encoder_of(np.array([[1.0, np.nan], [2.0, np.nan]]))


def test_identifiers_are_ignored():
    n = 40
    X = pd.DataFrame({"id": [f"row {i}" for i in range(n)], "v": np.arange(n)})
    with pytest.warns(NongaussWarning, match="'id' .text that is different in every row"):
        assert encoder_of(X).encoded_names == ("v",)
    with pytest.warns(NongaussWarning, match="'id'"):
        assert encoder_of(pd.concat([X, X[:1]])).encoded_names == ("v",)
    with pytest.warns(NongaussWarning, match="'id'"):
        assert encoder_of(X, np.where(np.arange(n) == 0, 2.0, 1.0)).encoded_names == ("v",)


@pytest.mark.filterwarnings("ignore:X has columns that are ignored")
@pytest.mark.parametrize("weight", [None, "fractions", "whole"])
def test_labels_of_which_nearly_all_occur_once_are_an_identifier(weight):
    n = 150
    names = np.array([f"n{i}" for i in range(n)], dtype=object)
    with_gaps, twice = np.where(np.arange(n) % 25 == 0, None, names), np.where(names == "n1", "n0", names)
    cities = np.array([f"c{i // 2}" for i in range(n)], dtype=object)
    rng = np.random.default_rng(0)
    given = {None: None, "fractions": rng.uniform(0.5, 1.5, n), "whole": 1.0 + (np.arange(n) < 10)}[weight]
    X = pd.DataFrame({"gaps": with_gaps, "twice": twice, "city": cities, "v": np.arange(n)})
    roles = [code.role for code in encoder_of(X, given).columns]
    assert roles == ["identifier", "identifier", "labels", "numeric"]
    halves = Stream([Part(f"part {i}", X[i::2], None, None) for i in range(2)], in_memory=False)
    assert [code.role for code in learn(halves).encoder.columns] == roles


def test_few_rows_keep_their_labels():
    X = pd.DataFrame({"colour": ["a", "b", "c", "d", "e", "a", "b", "c"], "name": list("stuvwxyz")})
    assert [code.role for code in encoder_of(X).columns] == ["labels", "labels"]


def test_frames_are_matched_by_name():
    X = frame()
    encoder = encoder_of(X)
    Z = encoder.as_scaled(X)
    np.testing.assert_array_equal(encoder.as_scaled(X[X.columns[::-1]]), Z)
    with pytest.warns(NongaussWarning, match="ignored: column 'extra'"):
        np.testing.assert_array_equal(encoder.as_scaled(X.assign(extra=[{}] * len(X))), Z)
    with pytest.raises(InputError, match="X lacks column 'city', which Model was fitted with"):
        encoder.as_scaled(X.drop(columns="city"), estimator_name="Model")


def test_new_labels_and_new_gaps():
    X = frame()
    encoder = encoder_of(X)
    new = X.astype({"colour": object})[:3]
    new.loc[1, "colour"] = "pink"
    new.loc[2, "city"] = "Rome"
    new.loc[0, "height"] = np.nan
    with pytest.warns(NongaussWarning) as caught:
        Z = encoder.as_scaled(new)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert "'pink' in column 'colour' (first in row 1)" in text
    assert "'Rome' in column 'city' (first in row 2)" in text
    assert (
        "missing in column 'height', where there were none in training; they are replaced by the mean" in text
    )
    assert caught[0].filename == __file__
    assert Z[1, :3].tolist() == [0, 0, 0]
    assert Z[2, 4] == 0.5  # the share of the second of two labels
    assert Z[0, 7] == 0


def test_arrays_are_matched_by_position():
    X = np.random.RandomState(0).randn(10, 2)
    encoder = encoder_of(X)
    with pytest.raises(
        ValueError, match="X has 3 features, but TGGMRegressor is expecting 2 features as input"
    ):
        encoder.as_scaled(np.zeros((1, 3)), estimator_name="TGGMRegressor")
    with pytest.raises(InputError, match="column 'x1', row 1"):
        encoder.as_scaled([[0, 0], [0, -np.inf]])
    named = pd.DataFrame(X, columns=["a", "b"])
    with pytest.warns(NongaussWarning, match="X has feature names, but"):
        np.testing.assert_array_equal(encoder.as_scaled(named), encoder.as_scaled(X))
    with pytest.warns(NongaussWarning, match="does not have valid feature names"):
        encoder_of(named).as_scaled(X)
    unnamed = pd.DataFrame(X)
    assert encoder_of(unnamed).feature_names is None
    np.testing.assert_array_equal(encoder_of(unnamed).as_scaled(X), encoder.as_scaled(X))


def test_a_column_that_changes_its_type():
    numbers = encoder_of(pd.DataFrame({"a": [1.0, 2.0, 5.0]}))
    with pytest.raises(InputError, match=r"Column 'a' held numbers.*'many' in row 1"):
        numbers.as_scaled(pd.DataFrame({"a": ["0", "many"]}).replace("0", None))
    labels = encoder_of(pd.DataFrame({"a": pd.Categorical([1, 2, 3])}))
    np.testing.assert_array_equal(labels.as_scaled(pd.DataFrame({"a": [3.0, 1.0]})), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(labels.as_scaled(pd.DataFrame({"a": [None]})), [[0, 0, 0]])


def test_columns_can_be_read_as_they_are_in_the_order_and_levels_of_the_fit():
    frame = pd.DataFrame({"age": [1.0, np.nan, 3.0], "job": ["b", "a", None]})
    encoder = encoder_of(frame)
    with pytest.warns(NongaussWarning, match="'c' in column 'job'"):
        age, job = encoder.raw(pd.DataFrame({"job": ["a", "c", "b"], "age": [1, 2, 3]}))
    np.testing.assert_array_equal(age.values, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(job.codes, [0, -1, 1])
    assert job.levels == ("a", "b")
    np.testing.assert_array_equal(encoder.raw(frame)[1].codes, [1, 0, -1])


@pytest.mark.parametrize("view", ["as_one_hot", "as_ranks"])
def test_two_labels_are_one_column_and_a_missing_one_is_nan(view):
    X = pd.DataFrame(
        {
            "pair": ["b", "a", None, "b"],
            "three": ["r", "g", "b", None],
            "grade": pd.Categorical(["low", None, "high", "mid"], ["low", "mid", "high"], ordered=True),
        }
    )
    encoder = encoder_of(X)
    cells = getattr(encoder, view)(X)
    nan = np.nan
    pair, three = [1, 0, nan, 1], [[0, 0, 1], [0, 1, 0], [1, 0, 0], [nan] * 3]
    grade = [[0, 1, 0], [nan] * 3, [1, 0, 0], [0, 0, 1]]  # levels sorted: high, low, mid
    names = ["pair=b", "three=b", "three=g", "three=r", "grade=high", "grade=low", "grade=mid"]
    if view == "as_ranks":
        grade, names = [[0], [nan], [2], [1]], [*names[:4], "grade"]
    assert list(encoder.one_hot_names if view == "as_one_hot" else encoder.rank_names) == names
    np.testing.assert_array_equal(cells, np.column_stack([pair, three, grade]))
    assert cells.dtype == np.float64
    new = pd.DataFrame({"pair": ["c", "a"], "three": ["x", "r"], "grade": ["low", "worst"]})
    with pytest.warns(NongaussWarning, match="did not occur in training .* 'c' in column 'pair'"):
        cells = getattr(encoder, view)(new)
    np.testing.assert_array_equal(cells[:, :4], [[nan] * 4, [0, 0, 0, 1]])
    np.testing.assert_array_equal(cells[0, 4:], grade[0])
    assert np.isnan(cells[1, 4:]).all()


def test_the_input_columns_of_flat_ones_are_found_once():
    """Wide tables ask for them once a column: 5,000 words took 25 million steps."""
    encoder = encoder_of(np.eye(4))
    assert encoder.places == (0, 1, 2, 3)
    assert encoder.places is encoder.places

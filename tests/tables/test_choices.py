"""Lists of choices are a column of 0 and 1 for each choice, in parts as in the whole, and in new rows."""

import warnings

import numpy as np
import pandas as pd
import pytest

from nongauss.core.errors import NongaussWarning
from nongauss.tables.kinds import decode
from nongauss.tables.learn import as_source, learn

CELLS = ["red; blue", "red", "blue", "green; red", "blue; green", None] * 4
HAS = {
    "blue": [1, 0, 1, 0, 1, np.nan] * 4,
    "green": [0, 0, 0, 1, 1, np.nan] * 4,
    "red": [1, 1, 0, 1, 0, np.nan] * 4,
}


def encoder_of(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learn(as_source(X)).encoder


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame({"ticked": CELLS, "x": np.arange(24.0)})


def test_each_choice_is_a_column_with_gaps_where_there_is_no_cell(frame):
    encoder = encoder_of(frame)
    assert encoder.one_hot_names == ("ticked (blue)", "ticked (green)", "ticked (red)", "x")
    np.testing.assert_array_equal(encoder.as_one_hot(frame)[:, :3].T, list(HAS.values()))
    assert [encoder.columns[0].shown(v) for v in (0.0, 1.0, 0.25)] == ["no", "yes", "0.25"]


def test_parts_agree_with_the_whole(frame, tmp_path):
    frame[:7].to_parquet(tmp_path / "0.parquet")
    frame[7:].to_parquet(tmp_path / "1.parquet")
    whole, parts = encoder_of(frame), encoder_of(str(tmp_path))
    assert whole.one_hot_names == parts.one_hot_names
    np.testing.assert_allclose(whole.as_scaled(frame), parts.as_scaled(frame), rtol=0, atol=1e-12)


def test_new_rows_are_split_as_in_the_fit_and_unknown_choices_are_said(frame):
    encoder = encoder_of(frame)
    later = pd.DataFrame({"ticked": ["red ;green", "pink; blue"], "x": [0.0, 1.0]})
    with pytest.warns(
        NongaussWarning,
        match="Choices that did not occur in training .* ignored: 'pink' in column 'ticked'",
    ):
        cells = encoder.as_one_hot(later)
    np.testing.assert_array_equal(cells[:, :3], [[0, 1, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["a|b", "a", "b|c", "c|a"] * 3, "choices"),
        (["['new', 'sale']", "['new']", "['sale', 'old']", "['old']"] * 3, "choices"),
        (["1;3", "2", "1;2;3", "3;2"] * 3, "choices"),
        (["Paris, France", "Berlin, Germany", "Nice, France"] * 9, "label"),
        (["Smith, John", "Doe, Jane"] * 9, "label"),
        (["Yes, often", "Yes, rarely", "No"] * 9, "label"),
        (["red", "blue", "green"] * 9, "label"),
    ],
)
def test_what_is_a_list_of_choices(cells, kind):
    assert decode("c", pd.Series(cells)).kind == kind


@pytest.mark.parametrize("sort", [list, tuple, set, frozenset, np.array])
def test_lists_of_texts_are_choices_whatever_holds_them(frame, sort):
    cells = pd.Series([None if cell is None else sort(cell.split("; ")) for cell in CELLS], dtype=object)
    listed = frame.assign(ticked=cells)
    np.testing.assert_array_equal(encoder_of(listed).as_one_hot(listed), encoder_of(frame).as_one_hot(frame))


def test_a_choice_with_a_semicolon_is_one_choice():
    cells = [["tea; hot", "milk"], ["milk"], ["tea; hot", "sugar"], ["sugar", "milk"]] * 4
    frame = pd.DataFrame({"ticked": cells, "x": np.arange(16.0)})
    encoder = encoder_of(frame)
    assert encoder.one_hot_names == ("ticked (milk)", "ticked (sugar)", "ticked (tea, hot)", "x")
    later = pd.DataFrame({"ticked": [["tea; hot"], ["milk"]], "x": [0.0, 1.0]})
    np.testing.assert_array_equal(encoder.as_one_hot(later)[:, :3], [[0, 0, 1], [1, 0, 0]])

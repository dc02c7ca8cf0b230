import numpy as np
import pandas as pd
import pytest

from nongauss.core.errors import InputError
from nongauss.tables.column import listed
from nongauss.tables.frame import check_width, match_columns, read_input


def matched(X, feature_names):
    notes: list[str] = []
    return match_columns(read_input(X), feature_names, 2, "Model", notes), " ".join(notes)


def test_by_name_in_the_order_of_the_fit():
    frame = pd.DataFrame({"b": [1.0], "c": [2.0], "a": [3.0]})
    assert matched(frame, ("a", "b")) == (
        [2, 0],
        "Columns that did not exist in training are ignored: column 'c'.",
    )
    with pytest.raises(
        InputError, match=r"X lacks column 'z', which Model was fitted with; .* X has columns 'b'"
    ):
        matched(frame, ("a", "z"))


def test_by_position_where_one_side_has_no_names():
    places, note = matched(np.ones((1, 2)), ("a", "b"))
    assert places == [0, 1]
    assert "does not have valid feature names" in note
    assert "X has feature names" in matched(pd.DataFrame({"b": [1.0], "a": [2.0]}), None)[1]
    assert matched(np.ones((1, 2)), None) == ([0, 1], "")


def test_another_number_of_columns_is_refused():
    check_width(2, 2, "Model")
    with pytest.raises(InputError, match="X has 3 features, but Model is expecting 2 features as input"):
        matched(np.ones((1, 3)), None)


def test_many_names_are_cut():
    assert listed(["a"]) == "column 'a'"
    assert listed([str(i) for i in range(10)]).endswith("'7' and 2 more")


def test_a_renamed_column_is_offered():
    frame = pd.DataFrame({"M2 ": [1.0], "Year_Built": [2.0], "beds": [3.0]})
    with pytest.raises(InputError, match="did you mean 'M2 ' for 'm2' and 'Year_Built' for 'year built'"):
        matched(frame, ("m2", "year built"))

"""Cells of two numbers are two columns of numbers, in new rows as in the fit; a few ranges stay labels."""

import warnings

import numpy as np
import pandas as pd
import pytest

from nongauss.tables.kinds import decode
from nongauss.tables.learn import as_source, learn

HIGH, LOW = np.arange(100, 160), np.arange(60, 120)
PRESSURE = [f"{a}/{b}" for a, b in zip(HIGH, LOW, strict=True)]


def encoder_of(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learn(as_source(X)).encoder


def test_pairs_are_two_columns_with_gaps_where_there_is_none():
    frame = pd.DataFrame({"bp": [*PRESSURE, None, "n/a"], "x": np.arange(62.0)})
    encoder = encoder_of(frame)
    assert encoder.one_hot_names == ("bp (first)", "bp (second)", "x")
    cells = encoder.as_one_hot(frame, warn=False)
    np.testing.assert_array_equal(cells[:60, 0], HIGH)
    np.testing.assert_array_equal(cells[:60, 1], LOW)
    assert np.isnan(cells[60:, :2]).all()
    np.testing.assert_array_equal(encoder.as_one_hot(frame[:2], warn=False)[:, 1], [60, 61])


def test_parts_agree_with_the_whole(tmp_path):
    frame = pd.DataFrame({"bp": PRESSURE, "x": np.arange(60.0)})
    frame[:25].to_parquet(tmp_path / "0.parquet")
    frame[25:].to_parquet(tmp_path / "1.parquet")
    names = [code.name for code in encoder_of(str(tmp_path)).columns]
    assert names == ["bp (first)", "bp (second)", "x"]


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("score", ["2-1", "0-0", "1-3", "2 - 2"], "pair"),
        ("score", ["2:1", "0:0", "1:3"], "pair"),
        ("size", ["20x30", "20 × 40.5"], "pair"),
        ("done", ["3/10", "7/10", "10/10"], "pair"),
        ("age", ["18-25", "26-35", "36-45"], "label"),
        ("phone", ["555-123", "556-124"], "label"),
        ("bin", ["(0.5, 2.0]", "(2.0, 3.5]", "(3.5, 5.0]"], "label"),
        ("bin", [f"({i}.5, {i + 1}.5]" for i in range(30)], "label"),
        ("bin", ["[0.51, 0.92]", "[0.11, 0.62]"], "label"),
        ("place", [f"({50 + i / 8}, {10 + i / 4})" for i in range(30)], "pair"),
        ("place", [f"[{10 + i / 8}, {50 + i / 4}]" for i in range(30)], "pair"),
        ("postcode", ["12/34", "56/12"], "label"),
        ("day", ["12/2023", "01/2024"], "date"),
        ("at", ["12:30", "01:15"], "clock"),
    ],
)
def test_what_is_a_pair(name, cells, kind):
    assert decode(name, pd.Series(cells)).kind == kind


def test_other_cells_in_new_rows_are_refused_in_a_sentence():
    encoder = encoder_of(pd.DataFrame({"bp": PRESSURE, "x": np.arange(60.0)}))
    with pytest.raises(ValueError, match="held pairs of numbers"):
        encoder.as_one_hot(pd.DataFrame({"bp": ["high", "low"], "x": [1.0, 2.0]}))

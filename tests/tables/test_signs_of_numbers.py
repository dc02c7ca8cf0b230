"""Letters, arrows and plus signs behind numbers are signs only where the whole column says so."""

import numpy as np
import pandas as pd
import pytest

from nongauss.tables.kinds import decode, flat


@pytest.mark.parametrize(
    ("cells", "right"), [(["12.50 S", "9.80 S"], [12.5, 9.8]), (["12.5 S", "9.75 S"], [12.5, 9.75])]
)
def test_seconds_are_no_amounts_owed(cells, right):
    column = decode("time", pd.Series(cells * 9))
    np.testing.assert_array_equal(column.values[:2], right)
    assert (column.unit, column.note) == (".# S", "")


def test_results_of_resistance_are_no_amounts_owed():
    assert decode("mic", pd.Series(["0.25 S", "2.00 R"] * 9)).kind == "label"


def test_sides_of_accounts_are_said_and_kept_in_the_form():
    column = decode("amount", pd.Series(["573.63 H", "243.54 S", "1,037.84 H", "n/a"] * 9))
    np.testing.assert_array_equal(column.values[:4], [573.63, -243.54, 1037.84, np.nan])
    assert "S or H behind them" in column.note
    new = decode("amount", pd.Series(["5.5 S", "7.25 S", "3 H"]))
    np.testing.assert_array_equal(flat(new, "quantity", column.unit, 0.0).values, [-5.5, -7.25, 3.0])


@pytest.mark.parametrize("cells", [["3.2↓", "7.1↑", "4.4", "5.0"], ["5.3% ▼", "2.1% ▲"]])
def test_arrows_behind_numbers_are_no_signs(cells):
    assert decode("x", pd.Series(cells * 9)).kind == "label"


def test_a_plus_beside_a_dash_for_a_gap_is_a_mark():
    column = decode("x", pd.Series([f"{i}.99+" if i > 20 else f"{i}.50" for i in range(30)] + ["-"]))
    np.testing.assert_allclose(column.values[[0, 25, 30]], [0.5, 25.99, np.nan])
    assert "numbers with a mark" in column.note

"""What exports of surveys, watches, laboratories and spreadsheets hold is read as people mean it."""

import warnings

import numpy as np
import pandas as pd
import pytest

from nongauss.tables.files import read_table
from nongauss.tables.kinds import decode
from nongauss.tables.learn import as_source, learn
from nongauss.tables.words import known_order


@pytest.mark.parametrize(
    ("cells", "values", "unit"),
    [
        (["1 1/2", "3/4", "2", "2 1/4"], [1.5, 0.75, 2, 2.25], ".#"),
        (["½", "1½", "2 ¾"], [0.5, 1.5, 2.75], ".#"),
        (["1/2", "1/4", "3"], [0.5, 0.25, 3], ".#"),
        (["1-1/2 in", "3/8 in", "2 in"], [1.5, 0.375, 2], ".# in"),
        (['1 1/2"', '3/8"', '2"'], [1.5, 0.375, 2], ".# in"),
        (["5:30 /km", "4:06 /km"], [5.5, 4.1], ".# min/km"),
        (["210 H", "30 L", "100", "110"], [210, 30, 100, 110], ".#"),
        (["12", "ERR", "3", "Overflow", "5"], [12, np.nan, 3, np.nan, 5], ".#"),
    ],
)
def test_texts_that_are_numbers(cells, values, unit):
    found = decode("c", pd.Series(cells))
    assert (found.kind, found.unit) == ("quantity", unit)
    np.testing.assert_allclose(found.values, values, rtol=1e-15)


@pytest.mark.parametrize("cells", [["120/80", "130/85"], ["1/2", "3/2"], ["3/10", "7/10"]])
def test_two_numbers_are_no_fraction(cells):
    assert decode("c", pd.Series(cells)).kind == "pair"


def test_a_fraction_alone_in_new_rows_is_a_number_where_the_column_has_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = learn(as_source(pd.DataFrame({"size": ["1 1/2", "3/4", "2"] * 9}))).encoder
    later = encoder.raw(pd.DataFrame({"size": ["1/2", "2/3"]}))[0].values
    np.testing.assert_allclose(later, [0.5, 2 / 3], rtol=1e-14)


@pytest.mark.parametrize(
    "order",
    [
        ("<10", "10-20", "20-30", ">30"),
        ("Under 18", "18 to 24", "25 to 64", "65 and older"),
        ("< $25k", "$25k - $50k", "$50k - $100k", "$100k+"),
        ("0", "1", "2", "3 or more"),
        ("0-1,000", "1,000-10,000", "10,000+"),
        ("1-9 employees", "10-49 employees", "250+ employees"),
        ("(0, 10]", "(10, 20]", "(100, 200]"),
    ],
)
def test_ranges_are_in_the_order_of_their_numbers(order):
    assert known_order(sorted(order)) == (order, "ranges of numbers")


def test_ranges_of_an_input_are_ordered_levels():
    ages = ["18-24", "25-34", "100+", "65-99"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = learn(as_source(pd.DataFrame({"age": ages * 5, "town": ["a", "b", "c", "d"] * 5}))).encoder
    assert encoder.rank_names[0] == "age"  # one column of ranks; towns stay one for each level
    assert encoder.as_ranks(pd.DataFrame({"age": ages, "town": ["a"] * 4}))[:, 0].tolist() == [0, 1, 3, 2]
    assert len(encoder.rank_names) == 5


def lines(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return read_table(path), " ".join(str(one.message) for one in said)


def test_a_second_line_of_names_names_what_has_none(tmp_path):
    rows = "".join(f"{i},x,{i / 7:.2f}\n" for i in range(9))
    frame, said = lines(tmp_path, "age,Q2,Q2\nHow old?,Which - Phone,Which - Hours\n" + rows)
    assert list(frame.columns) == ["age", "Q2 Which - Phone", "Q2 Which - Hours"]
    assert len(frame) == 9
    assert frame["age"].tolist() == list(range(9))
    assert "second line of column names" in said


@pytest.mark.parametrize("first", ["n/a,?,1.5", "12,unknown,2.5", "Ann,n/a,n/a"])
def test_a_row_of_gaps_is_no_line_of_names(tmp_path, first):
    rows = "".join(f"{i},{2 * i},{i / 7:.2f}\n" for i in range(9))
    frame, _ = lines(tmp_path, f"a,b,c\n{first}\n" + rows)
    assert len(frame) == 10


def test_totals_of_some_rows_are_left_out_and_rows_called_total_are_not(tmp_path):
    body = "".join(f"{r},p{i},{i}\n" * (i > 0) for r in ("N", "S") for i in range(4))
    frame, said = lines(tmp_path, f"region,item,sold\n{body}N Total,,6\nS Total,,6\n")
    assert frame["region"].tolist() == ["N"] * 3 + ["S"] * 3
    assert "as subtotals" in said
    whole, _ = lines(tmp_path, f"region,item,sold\n{body}Total Cereal,p9,6\nTotal Wheat,p8,6\n")
    assert len(whole) == 8

"""Cells as people and programs write them: one kind of writing a row, with the values that are right."""

import math

import numpy as np
import pandas as pd
import pytest

from nongauss.tables.files import read_table
from nongauss.tables.kinds import decode, flat
from nongauss.tables.labels import LabelCoder
from nongauss.tables.words import known_order, one_case

COMPOUND = [
    ("spans", ["1h 30m", "45m", "2 h"], [1.5, 0.75, 2.0]),
    ("spans in words", ["1 day 2 hours", "3 hours and 30 minutes"], [26.0, 3.5]),
    ("spans of databases", ["2 days 03:00:00", "1 day 12:30:00"], [51.0, 36.5]),
    (
        "units of time in any case and length",
        ["1H 30M", "2 hrs 15 mins", "1 Day 30 S", "2 weeks, 3 d", "90 secs 1 m"],
        [1.5, 2.25, 24 + 1 / 120, 17 * 24, 150 / 3600],
    ),
    ("spans of ISO 8601", ["PT1H30M", "P1DT2H"], [1.5, 26.0]),
    ("minutes and seconds", ["5'30\"", "5:07.5", "12'45\""], [330.0, 307.5, 765.0]),
    ("angles", ["52°30'N", "10°15'36\"S", "5°"], [52.5, -10.26, 5.0]),
    ("sides", ["5.5W", "3.25E"], [-5.5, 3.25]),
    ("power", ["5.5W", "3.25 W"], [5.5, 3.25]),
    ("feet", ["5'11\"", "6 ft 0 in", "5'"], [71 / 12, 6.0, 5.0]),
    ("pounds", ["3 lb 4 oz", "2 lbs"], [3.25, 2.0]),
    ("accounts", ["1,200.50 CR", "30.00 DR"], [1200.5, -30.0]),
    ("powers of ten", ["1.2×10^4", "3 x 10^-2", "1e+3"], [12000.0, 0.03, 1000.0]),
    ("quotes of spreadsheets", ['="5"', "'7", "8"], [5.0, 7.0, 8.0]),
]


@pytest.mark.parametrize(("cells", "right"), [row[1:] for row in COMPOUND], ids=[row[0] for row in COMPOUND])
def test_numbers_of_several_parts(cells, right):
    column = decode("x", pd.Series(cells))
    assert column.kind == "quantity"
    np.testing.assert_allclose(column.values, right, rtol=1e-12)


def test_new_rows_of_one_part_are_read_as_in_the_fit():
    form = decode("x", pd.Series(["1h 30m", "45m"])).unit
    np.testing.assert_allclose(
        flat(decode("x", pd.Series(["45m", "30m"])), "quantity", form, 0.0).values, [0.75, 0.5]
    )
    form = decode("x", pd.Series(["5.5W", "3.25E"])).unit
    np.testing.assert_allclose(
        flat(decode("x", pd.Series(["4W", "2W"])), "quantity", form, 0.0).values, [-4.0, -2.0]
    )


def test_sides_of_a_street_are_no_angles():
    assert decode("x", pd.Series(["12N", "14S", "3N"])).kind == "label"


def test_bounds_are_numbers_with_a_note_unless_they_are_steps():
    cells = [f"{i}.5" for i in range(20)] + ["<0.1", ">19", "~7", "12*"]
    column = decode("x", pd.Series(cells))
    np.testing.assert_allclose(column.values[-4:], [0.1, 19.0, 7.0, 12.0])
    assert "'<0.1' (1 cell)" in column.note
    assert decode("children", pd.Series(["0", "1", "2", "3+"] * 5)).kind == "label"


STAMPS = ["2024-01-31 23:59:59", "2024-02-01", "2024-03-01 12:00"]
MINUTES = ["2024-01-31 23:59", "2024-02-01", "2024-03-01 12:00"]
SEEN = ["2023-11-14 22:13:20", "2023-11-14 23:13:20"]
DATES = [
    (["3. März 2024", "24. Dezember 2023"], ["2024-03-03", "2023-12-24"]),
    (["1er janvier 2024", "lundi 5 août 2024"], ["2024-01-01", "2024-08-05"]),
    (["15 de enero de 2024", "2 de agosto de 2023"], ["2024-01-15", "2023-08-02"]),
    (["5 gen 2024", "6 dic 2024"], ["2024-01-05", "2024-12-06"]),
    (["segunda-feira, 5 de fevereiro de 2024", "1º de março de 2024"], ["2024-02-05", "2024-03-01"]),
    (["7 mei 2024 14:05", "8 maart 2024"], ["2024-05-07 14:05", "2024-03-08"]),
    (["Okt 2023", "Mai 2024"], ["2023-10-01", "2024-05-01"]),
    (["7 grudnia 2023", "8 lis 2024"], ["2023-12-07", "2024-11-08"]),
    (["5 декабря 2023 г.", "6 фев 2024"], ["2023-12-05", "2024-02-06"]),
    (["1 Ocak 2024", "2 Ağu 2024"], ["2024-01-01", "2024-08-02"]),
    (["3. joulukuuta 2023", "4. maaliskuuta 2024"], ["2023-12-03", "2024-03-04"]),
    (["Do, 29.02.2024", "Fr, 01.03.2024 14:05 Uhr"], ["2024-02-29", "2024-03-01 14:05"]),
    (["lun. 05/02/2024", "mar. 20/02/2024"], ["2024-02-05", "2024-02-20"]),
    (["lun. 03/06/2024", "mar. 04/06/2024"], ["2024-06-03", "2024-06-04"]),  # by the days of the week
    (["Mon 03/06/2024", "Tue 04/06/2024"], ["2024-06-03", "2024-06-04"]),
    (["Wed 03-06-2024", "Sat 04-06-2024"], ["2024-03-06", "2024-04-06"]),
    (["So 06.03.2024", "Mi 07.04.2024"], ["2024-03-06", "2024-04-07"]),  # neither: the usual order
    (
        ["20240131235959", "20240201000000", "20240301120000"],
        ["2024-01-31 23:59:59", "2024-02-01", "2024-03-01 12:00"],
    ),
]


@pytest.mark.parametrize(("cells", "right"), DATES)
def test_dates_in_other_languages_and_without_marks(cells, right):
    column = decode("x", pd.Series(cells))
    assert column.kind == "date"
    np.testing.assert_allclose(column.values, _days(right), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "cells", "right"),
    [
        (
            "x",
            [20240131235959, 20240201000000, 20240301120000],
            ["2024-01-31 23:59:59", "2024-02-01", "2024-03-01 12:00"],
        ),
        (
            "x",
            [202401310530, 202402010000, 202403011200],
            ["2024-01-31 05:30", "2024-02-01", "2024-03-01 12:00"],
        ),
        ("created_at", [1700000000, 1700003600], SEEN),
        ("seenAt", [1700000000000, 1700003600000], SEEN),
        ("event_time", [1700000000000000, 1700003600000000], SEEN),
    ],
)
def test_numbers_that_are_dates(name, cells, right):
    column = decode(name, pd.Series(cells))
    assert column.kind == "date"
    np.testing.assert_allclose(column.values, _days(right), rtol=1e-9)
    form = f"time|{column.unit}"
    np.testing.assert_allclose(
        flat(decode(name, pd.Series(cells[:1])), "date", form, 0.0).values, _days(right)[:1]
    )


def test_days_of_the_week_that_settle_the_order_need_no_note():
    assert decode("x", pd.Series(["lun. 03/06/2024", "mar. 04/06/2024"])).note == ""
    assert "'Sun 03/06/2024'" in decode("x", pd.Series(["Sun 03/06/2024", "Sun 04/06/2024"])).note
    fitted = decode("x", pd.Series(["Mon 03/06/2024", "Tue 04/06/2024"]))
    later = flat(decode("x", pd.Series(["Wed 06/03/2024"])), "date", f"day|{fitted.unit}", 0.0)
    np.testing.assert_allclose(later.values, _days(["2024-03-06"]))


@pytest.mark.parametrize(
    "cells",
    [
        ["Pro 2019", "Pro 2021"],
        ["Elo 1600", "Elo 1800"],
        ["LED 2020", "PRO 1000"],
        ["out 2019", "led 2020", "pro 2021", "sub 2019"],  # months of four languages
        ["huh 2019", "maa 2020", "syy 2021"],  # beginnings of months
        ["Mai 2019", "Kas 2020"],
        ["Mai 1519", "Okt 1620"],
        ["2024-01-02:5", "2024-01-03:7"],
        ["12.3.2020:1", "12.5.2020:3"],
        ["3/4/2024:5", "5/6/2024:7"],
    ],
)
def test_labels_that_look_like_dates(cells):
    assert decode("x", pd.Series(cells * 6)).kind == "label"


def test_a_few_odd_cells_leave_months_alone_dates():
    months = [f"{month} {year}" for year in range(2000, 2020) for month in ("Januar", "Mai", "Oktober")]
    column = decode("x", pd.Series([*months, "May 2024", "Janur 2001", "Mai 20200"]))
    assert column.kind == "date"
    np.testing.assert_allclose(column.values[[0, 1, 60]], _days(["2000-01-01", "2000-05-01", "2024-05-01"]))


def test_a_month_alone_is_a_date_in_new_rows_of_a_column_of_dates():
    form = f"day|{decode('x', pd.Series(['Okt 2023', 'Mai 2024'])).unit}"
    later = flat(decode("x", pd.Series(["Mai 2024"])), "date", form, 0.0)
    np.testing.assert_allclose(later.values, _days(["2024-05-01"]))


def test_numbers_that_are_no_dates():
    assert decode("bytes_received", pd.Series([1_700_000_000, 1_800_000_000])).kind == "number"
    assert decode("x", pd.Series([20241331000000, 20240201000000, 20240301000000])).kind == "number"


def _days(stamps):
    return (pd.to_datetime(pd.Series(stamps), format="mixed") - pd.Timestamp(0)) / pd.Timedelta(days=1)


ORDERS = [
    ["1 - poor", "2", "3 - good", "5 - excellent"],
    ["D", "CCC", "B-", "B", "A+", "AA", "AAA"],
    ["C", "Caa", "Baa3", "A1", "Aaa"],
    ["L", "M", "H"],
    ["XS", "S", "M", "L", "XL", "XXL", "3XL"],
    ["stimme überhaupt nicht zu", "neutral", "Stimme voll und ganz zu"],
    ["Pas du tout d'accord", "pas d’accord", "neutre", "d'accord", "Tout à fait d'accord"],
    ["nunca", "a veces", "siempre"],
    ["molto insoddisfatto", "neutrale", "soddisfatto"],
    ["muito ruim", "regular", "bom", "ótimo"],
    ["zelden", "soms", "vaak", "altijd"],
    ["Poor", "Fair", "Average", "Good", "Excellent"],
    ["★", "★★", "★★★"],
    ["★☆☆", "★★☆", "★★★"],
    ["$", "$$", "$$$"],
    ["1/10", "2/10", "10/10"],
    ["2 out of 5", "3 out of 5"],
]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order[-1])
def test_scales_are_known(order):
    found = known_order(sorted(order))
    assert found is not None
    assert list(found[0]) == order


@pytest.mark.parametrize(
    "labels",
    [
        ["1 = married", "2 = single", "3 = divorced"],
        ["A", "B", "C"],
        ["a", "b"],
        ["$", "€", "$$"],
        ["1/2", "3/4"],
        ["120/80", "130/80"],
    ],
)
def test_labels_without_an_order(labels):
    assert known_order(labels) is None


def test_words_in_several_cases_are_one_label_in_a_column_and_in_new_rows():
    column = decode("smoker", pd.Series(["yes", "Yes", " YES", "no", "Yes"]))
    assert column.levels == ("Yes", "no")
    assert "the same label" in column.note
    assert one_case(["Y", "n", "N"]) == {"Y": "y", "n": "n", "N": "n"}
    assert one_case(["A", "a", "b"]) == {}
    sexes = one_case(["M", "m", "F", "female", "Prefer not to say"])
    assert sexes == {"M": "m", "m": "m", "F": "f", "female": "female"}
    assert one_case(["m", "M", "km"]) == {}
    assert len(decode("gene", pd.Series(["abc", "ABC"])).levels) == 2


FEET = "\n\nSource: Statistics office, 2024\n* provisional\n"


@pytest.mark.parametrize(
    ("below", "said"),
    [
        ("Total,30,300\n", "totals"),
        (FEET, "notes"),
        ("(4 rows affected)\n", "notes"),
    ],
)
def test_what_stands_below_the_rows_is_left_out_and_said(tmp_path, below, said):
    path = tmp_path / "a.csv"
    path.write_text("city,n,y\n" + "".join(f"c{i},{i},{10 * i}\n" for i in range(4)) + below)
    with pytest.warns(UserWarning, match=f"left out of a.csv as {said}"):
        frame = read_table(path)
    assert frame["y"].tolist() == [0, 10, 20, 30]


def test_totals_above_notes_are_left_out_too(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("city,n,y\n" + "".join(f"c{i},{i},{10 * i}\n" for i in range(4)) + "Total,6,60" + FEET)
    with pytest.warns(UserWarning, match="left out") as said:
        frame = read_table(path)
    assert len(frame) == 4
    assert len(said) == 2


def test_a_row_that_was_cut_off_is_no_footnote(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("city,n,y\n" + "".join(f"c{i},{i},{10 * i}\n" for i in range(4)) + "c5,7\n")
    with pytest.raises(ValueError, match="expected 3 fields"):
        read_table(path)


def test_rows_of_few_cells_are_no_footnotes_where_many_rows_are_so(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n" + ",,3\n,2,\n1,,\n,,\n" * 10 + ",,\n,5,\n4,,\n")
    assert len(read_table(path)) == 43


def test_errors_of_spreadsheets_are_no_comments(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n#N/A,3\n#DIV/0!,4\n")
    frame = read_table(path)
    assert len(frame) == 3
    assert math.isnan(decode("x", frame["x"]).values[1])


def test_an_open_quotation_is_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('name,y\n"a",1\n"b,2\n"c",3\n')
    with pytest.warns(UserWarning, match="odd number of quotation marks"):
        read_table(path)


def test_words_of_a_target_in_several_cases_are_warned_of():
    y = np.array(["yes", "Yes", "no", "no"])
    with pytest.warns(UserWarning, match="'Yes' and 'yes' in y as different classes"):
        coder = LabelCoder.fit(y, np.ones(4), "a model")
    assert coder.classes.tolist() == ["Yes", "no", "yes"]


def test_lists_in_a_frame_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match="Column 'l' of X holds lists, the first in row 0"):
        decode("l", pd.Series([[1], [2, 3]]))

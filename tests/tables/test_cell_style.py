"""Numbers and dates written as those of a column are."""

import numpy as np
import pandas as pd
import pytest

from nongauss.tables.cell_style import date_writer, number_writer
from nongauss.tables.csv_splice import RawFields

VALUES = np.round(np.exp(np.random.default_rng(0).normal(8.0, 2.0, 60)), 2)
COMMAS = str.maketrans(",.", ".,")


@pytest.mark.parametrize(
    ("texts", "values", "new", "told"),
    [
        ([f"€ {x:,.2f}" for x in VALUES], VALUES, 12345.678, "€ 12,345.68"),
        ([f"$({x:,.0f})" for x in VALUES], VALUES.round(), 1234.5678, "$(1,235)"),
        ([f"{x:.1f} kg" for x in VALUES], VALUES, -3.21, "-3.2 kg"),
        (
            [f"{x:,.2f}".translate(str.maketrans(",.", ".,")) for x in VALUES],
            VALUES,
            1234567.891,
            "1.234.567,89",
        ),
        ([f"{x % 100:.0f}%" for x in VALUES], (VALUES % 100).round() / 100, 0.126, "13%"),
        (
            [f"{x:.3e}" for x in VALUES],
            np.array([float(f"{x:.3e}") for x in VALUES]),
            0.00123456,
            "1.235e-03",
        ),
        (["1.5", "2", "3.25", "4.75", "10"], np.array([1.5, 2.0, 3.25, 4.75, 10.0]), 4.0, "4"),
    ],
)
def test_numbers_are_written_as_those_that_are_there(texts, values, new, told):
    write = number_writer(texts, values)
    assert write(new) == told
    assert np.mean([write(v) == t for t, v in zip(texts, values, strict=True)]) > 0.9


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("%d/%m/%Y", "03/04/2019"),
        ("%m/%d/%Y", "04/03/2019"),
        ("%Y-%m-%d", "2019-04-03"),
        ("%d.%m.%y", "03.04.19"),
        ("%b %d, %Y", "Apr 03, 2019"),
        ("%Y%m%d", "20190403"),
        ("%d-%b-%Y", "03-Apr-2019"),
        ("%Y-%m-%d %H:%M", "2019-04-03 18:00"),
    ],
)
def test_dates_are_written_as_those_that_are_there(form, told):
    days = np.random.default_rng(0).integers(15000, 20000, 60) + 0.25
    texts = [(pd.Timestamp(0) + pd.Timedelta(days=day)).strftime(form) for day in days]
    known = days if "%H" in form else np.floor(days)
    day = (pd.Timestamp("2019-04-03 18:00") - pd.Timestamp(0)) / pd.Timedelta(days=1)
    assert date_writer(texts, known)(day if "%H" in form else np.floor(day)) == told


def test_texts_without_a_rule_have_no_writer():
    assert number_writer(["about 3", "3 or 4", "five (5)"], np.array([3.0, 3.5, 5.0])) is None
    assert number_writer(["none"], np.array([0.0])) is None
    assert date_writer(["Easter", "Whitsun"], np.array([18000.0, 18049.0])) is None


def test_fields_are_replaced_and_all_others_stay_to_the_byte(tmp_path):
    path = tmp_path / "a.csv"
    text = 'x;"the name";z\n1,50;"a ""b""";7\n ;"";NA\n2,00;"c;\nd"; 8\n'
    path.write_text(text)
    fields = RawFields(path)
    assert fields.fits(3, ["x", "the name", "z"])
    assert fields.column("the name") == ['a "b"', "", "c;\nd"]
    assert fields.replaced({}) == text
    new = fields.replaced({"x": {1: "1,75"}, "the name": {1: 'e"'}, "z": {1: "9"}})
    assert new == text.replace(' ;"";NA', '1,75;"e""";9')


@pytest.mark.parametrize("separator", [",", "\t"])
def test_an_empty_field_before_a_quoted_one_is_a_field_of_its_own(tmp_path, separator):
    path = tmp_path / ("a.tsv" if separator == "\t" else "a.csv")
    text = (
        separator.join("xyz")
        + "\n"
        + "".join(
            separator.join(row) + "\n"
            for row in (('"a, b"', "1", ""), ('"c, d"', "", '"e, f"'), ('"g, h"', "2", ""))
        )
    )
    path.write_text(text)
    fields = RawFields(path)
    assert fields.fits(3, ["x", "y", "z"])
    assert fields.column("x") == ["a, b", "c, d", "g, h"]
    assert fields.column("z") == ["", "e, f", ""]
    assert fields.replaced({}) == text

"""Texts that are numbers: each way of writing one by its exact value, and what a column of them becomes."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from encoding import encoder_of
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.tables.column import ColumnKind
from nongauss.tables.files import read_table
from nongauss.tables.kinds import decode
from nongauss.tables.number_text import COMMA, POINT, read_numbers, unit_key
from nongauss.tables.target_kinds import column_kind

nan = np.nan
CELLS = [  # text, number in point style, number in comma style, pattern of the unit
    ("$1,234.50", 1234.5, nan, "$#"),
    ("-$5", -5, -5, "$#"),
    ("$-5", -5, -5, "$#"),
    ("($1,234.00)", -1234, nan, "$#"),
    ("(3.2%)", -3.2, nan, "#%"),
    ("45 %", 45, 45, "# %"),
    ("1.2k", 1200, nan, "#"),
    ("1,2k", nan, 1200, "#"),
    ("3.4M", 3.4e6, nan, "#"),
    ("$3.4m", 3.4e6, nan, "$#"),
    ("3.4 m", 3.4, nan, "# m"),
    ("12m", 12, 12, "#m"),
    ("1.5 million USD", 1.5e6, nan, "# USD"),
    ("2,5 Mio. €", nan, 2.5e6, "# €"),
    ("USD 2bn", 2e9, 2e9, "USD #"),
    ("3 kg", 3, 3, "# kg"),
    ("9.81 m/s^2", 9.81, nan, "# m/s^2"),
    ("5 m2", 5, 5, "# m2"),
    ("850 sq ft", 850, 850, "# sq ft"),
    ("21 °C", 21, 21, "# °C"),
    ("1.2k views", 1200, nan, "# views"),
    ("1.234,5", nan, 1234.5, "#"),
    ("1.234", 1.234, 1234, "#"),
    ("1,234", 1234, 1.234, "#"),
    ("0,123", nan, 0.123, "#"),
    ("0.123", 0.123, nan, "#"),
    ("1,234,567.25", 1234567.25, nan, "#"),
    ("1.234.567,25", nan, 1234567.25, "#"),
    ("1'234.5", 1234.5, nan, "#"),
    ("1’234,5", nan, 1234.5, "#"),
    ("12 345", 12345, 12345, "#"),
    ("12\u202f345,5", nan, 12345.5, "#"),
    ("12\u00a0345\u00a0€", 12345, 12345, "# €"),
    ("12,34,567", 1234567, nan, "#"),
    ("\u22125", -5, -5, "#"),
    ("5-", -5, -5, "#"),
    ("100.-", 100, 100, "#"),
    ("CHF 1'200.50", 1200.5, nan, "CHF #"),
    ("Rs.500", 500, 500, "Rs#"),
    ("  7 ", 7, 7, "#"),
    ("+7", 7, 7, "#"),
    (".5", 0.5, nan, "#"),
    ("-.5", -0.5, nan, "#"),
    ("5e3", 5000, 5000, "#"),
    ("1e-7", 1e-7, 1e-7, "#"),
    ("300 K", 300, 300, "# K"),
]
NO_NUMBERS = [
    *(
        "",
        "-",
        "unknown",
        "n/a",
        "1.2.3",
        "12.3.4",
        "1st",
        "2024 Q1",
        "12/31/2024",
        "31.12.2024",
        "2024-01-01",
    ),
    *(
        "12:30",
        "5 PM",
        "(5",
        "5)",
        "--5",
        "(-5)",
        "1,2,3",
        "10-20",
        "$5 USD",
        "Group 1",
        "A1",
        "2.5e3k",
        "#5",
    ),
]


def test_each_way_of_writing_a_number_has_its_value():
    found = read_numbers([text for text, *_ in CELLS])
    for i, (text, point, comma, pattern) in enumerate(CELLS):
        got = (found.point[i], found.comma[i], found.patterns[i])
        assert_array_equal(got[:2], (point, comma), text)
        assert got[2] == pattern, text


def test_other_texts_are_no_numbers():
    found = read_numbers(NO_NUMBERS)
    assert_array_equal(np.isnan(found.point) & np.isnan(found.comma), True, str(NO_NUMBERS))


@pytest.mark.parametrize("style", [POINT, COMMA])
@pytest.mark.parametrize("mark", ["", "thousands", "'", " ", "\u202f"])
@pytest.mark.parametrize("form", ["{}", "${}", "{} kg", "{}%", "EUR {}", "({})", "{}-"])
def test_numbers_that_are_written_are_read_back_to_the_bit(style, mark, form):
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=300) * 10 ** rng.uniform(0, 8, 300), 2)
    values = -np.abs(values) if form in ("({})", "{}-") else values
    other = COMMA if style == POINT else POINT
    between = other if mark == "thousands" else mark

    def written(x):
        bare = f"{abs(x):,.2f}".replace(".", "P").replace(",", between).replace("P", style)
        text = form.format(bare)
        return text if form in ("({})", "{}-") or x >= 0 else "-" + text

    texts = pd.Series([written(x) for x in values])
    assert_array_equal(decode("a", texts).values, values)
    assert_array_equal(read_numbers(list(texts)).of_style(style), values)


def test_the_style_is_that_of_the_whole_column():
    assert_array_equal(decode("a", pd.Series(["1,234", "2.5"])).values, [1234, 2.5])
    assert_array_equal(decode("a", pd.Series(["1,234", "2,5"])).values, [1.234, 2.5])
    assert_array_equal(decode("a", pd.Series(["1.234", "2,5"])).values, [1234, 2.5])
    assert_array_equal(decode("a", pd.Series(["1,234", "0,123"])).values, [1.234, 0.123])
    with pytest.warns(NongaussWarning, match="'a' holds numbers such as '1,234', read as 1234 and not as"):
        encoder = encoder_of(pd.DataFrame({"a": ["1,234", "2,500"]}))
    assert_array_equal(encoder.raw(pd.DataFrame({"a": ["3,000"]}))[0].values, [3000])


def test_new_rows_are_read_in_the_style_of_the_fit():
    encoder = encoder_of(pd.DataFrame({"a": ["1,5", "2,5", "3,5"]}))
    assert_array_equal(encoder.raw(pd.DataFrame({"a": ["1,234"]}))[0].values, [1.234])
    assert_array_equal(encoder.raw(pd.DataFrame({"a": [1.25]}))[0].values, [1.25])


FEW = [*("unknown", "-", "12.3.4"), *(f"{i}.5" for i in range(97))]


def test_a_few_texts_among_numbers_are_missing_and_named():
    with pytest.warns(
        NongaussWarning,
        match=r"'a' has cells without a value, which count as missing: '-' \(1 cell\), '12.3.4' \(1 cell\)",
    ):
        encoder = encoder_of(pd.DataFrame({"a": sorted(FEW)}))
    (code,) = encoder.columns
    assert (code.kind, code.role, code.gaps) == ("quantity", "numeric", True)
    new = pd.DataFrame({"a": ["1.5", "unknown"]})
    with pytest.warns(NongaussWarning, match=r"treated as missing: 'unknown' \(1 cell\) in column 'a'"):
        assert_array_equal(encoder.raw(new)[0].values, [1.5, nan])
    with pytest.raises(InputError, match=r"'a' held numbers when .* holds the label 'red' in row 1"):
        encoder.raw(pd.DataFrame({"a": ["1.5", "red"]}))


def test_a_column_of_numbers_takes_new_rows_with_a_few_texts():
    encoder = encoder_of(pd.DataFrame({"a": [1.0, 2.0, 5.0]}))
    with pytest.warns(NongaussWarning, match=r"treated as missing: '-' \(1 cell\), '12.3.4' \(1 cell\)"):
        values = encoder.raw(pd.DataFrame({"a": FEW}))[0].values
    assert_array_equal(values, [nan, nan, nan, *(i + 0.5 for i in range(97))])
    with pytest.warns(NongaussWarning, match="'n/a'"):
        assert_array_equal(encoder.raw(pd.DataFrame({"a": ["n/a", "$3"]}))[0].values, [nan, 3])


def test_a_column_that_is_only_mostly_numbers_is_one_of_labels_with_a_warning():
    cells = ["none"] * 6 + [str(i % 4) for i in range(34)]
    with pytest.warns(
        NongaussWarning, match=r"treated as labels, although 85% .* 'none' \(6 cells\) are not"
    ):
        encoder = encoder_of(pd.DataFrame({"a": cells}))
    assert encoder.columns[0].levels == ("0", "1", "2", "3", "none")


def test_numbers_and_texts_in_one_column_of_objects():
    cells = [float(i) for i in range(38)] + ["unknown", "$5"]
    column = decode("a", pd.Series(cells, dtype=object))
    assert_array_equal(column.values, [*range(38), nan, 5])
    assert column.lost == "'unknown' (1 cell)"
    assert_array_equal(decode("a", np.array(cells, object)).values, [*range(38), nan, 5])
    with pytest.raises(InputError, match="mixes numbers and text, first 'unknown' in row 2"):
        decode("a", pd.Series([1.5, 2, "unknown"], dtype=object))
    decimals = pd.Series([Decimal("1.25")] * 30 + ["-"], dtype=object)
    assert_array_equal(decode("a", decimals).values, [1.25] * 30 + [nan])


def test_units_are_kept_for_display_and_must_stay_the_same():
    encoder = encoder_of(
        pd.DataFrame({"w": [f"{i} kg" for i in range(9)], "p": [f"${i}.5" for i in range(9)]})
    )
    w, p = encoder.columns
    assert (w.shown(2.5), p.shown(-1200.0), w.shown(np.inf)) == ("2.5 kg", "-$1200", "inf kg")
    assert_array_equal(encoder.raw(pd.DataFrame({"w": ["3 Kgs"], "p": [4]}))[0].values, [3])
    with pytest.raises(InputError, match=r"'w' had the form '# kg' when .* but has '# cm' now"):
        encoder.raw(pd.DataFrame({"w": ["3 cm"], "p": [4]}))
    assert unit_key("# Years") == unit_key("#year")


def test_mixed_units_are_warned_of():
    cells = [f"{i} kg" for i in range(10)] + [f"{i} cm" for i in range(10)]
    with pytest.warns(NongaussWarning, match="mixes the units 'cm', 'kg' and is treated as labels"):
        assert encoder_of(pd.DataFrame({"w": cells})).columns[0].kind == "label"
    with pytest.warns(
        NongaussWarning, match="has 2 cells without the unit 'kg', which are treated as in that unit"
    ):
        encoder_of(pd.DataFrame({"w": [*cells[:10], "0", "4", "5"]}))
    for labels in (["1st", "2nd", "3rd"] * 5, ["12A", "13B", "14C"] * 5):
        assert encoder_of(pd.DataFrame({"w": labels})).columns[0].kind == "label"


def test_codes_with_leading_zeros_stay_labels():
    assert decode("zip", pd.Series(["01234", "94110", "10001"])).levels == ("01234", "10001", "94110")
    assert_array_equal(decode("a", pd.Series(["01", "12"])).values, [1, 12])
    assert_array_equal(decode("a", pd.Series(["007.5", "12"])).values, [7.5, 12])


def test_spans_of_time_are_days():
    spans = pd.Series(pd.to_timedelta(["36h", "1D", None]))
    for cells in (
        spans,
        spans.to_numpy(),
        pd.Series([dt.timedelta(hours=36), dt.timedelta(1), None], dtype=object),
    ):
        column = decode("a", cells)
        assert_array_equal(column.values, [1.5, 1, nan])
    encoder = encoder_of(pd.DataFrame({"a": spans}))
    assert encoder.columns[0].shown(1.5) == "1.5 days"


def test_texts_that_are_numbers_have_the_kind_of_numbers():
    assert (
        column_kind([f"${x:,.2f}" for x in np.exp(np.random.RandomState(0).randn(200))])
        is ColumnKind.POSITIVE
    )
    assert column_kind(["4%", "5.5%", "60%", "4%", "5%", "6%"]) is ColumnKind.SHARE


def test_parts_of_a_column_of_quantities(tmp_path):
    cells = [f"{i}.5 kg" for i in range(20)] + ["3"] * 10
    frame = pd.DataFrame({"w": cells, "x": np.arange(30.0)})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=20)
    whole, parts = (encoder_of(table) for table in (frame.iloc[:20], tmp_path))
    assert parts.columns[0].part == whole.columns[0].part == ".# kg"
    assert_array_equal(parts.raw(frame)[0].values, [*(i + 0.5 for i in range(20)), *[3] * 10])


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["$125,900", "$14,000"], [125_900, 14_000]),
        (["$1,659", "$9,702"], [1_659, 9_702]),
        (["125.900 €", "14.000 €"], [125_900, 14_000]),
        (["12.345 %", "14.001 %"], [12.345, 14.001]),
        (["12,345%", "14,001%"], [12.345, 14.001]),
    ],
)
def test_three_digits_behind_a_mark_are_thousands_of_money_and_decimals_of_a_percentage(texts, values):
    column = decode("x", pd.Series(texts))
    assert column.note == ""
    np.testing.assert_allclose(column.values, values, rtol=1e-15)


@pytest.mark.parametrize("texts", [["1,659 €", "1,702 €"], ["$1.234M", "$1.702M"], ["125,900", "14,000"]])
def test_small_amounts_and_numbers_without_a_currency_stay_open_and_are_noted(texts):
    assert "which no cell settles" in decode("x", pd.Series(texts)).note


def test_a_style_that_other_columns_of_the_file_settle_is_not_warned_of(tmp_path, recwarn):
    (tmp_path / "t.csv").write_text("weight,height\n12.345 kg,1.25\n14.001 kg,2.5\n")
    weight = decode("weight", read_table(tmp_path / "t.csv")["weight"])
    np.testing.assert_allclose(weight.values, [12.345, 14.001], rtol=1e-15)
    assert weight.note == ""
    assert not recwarn.list

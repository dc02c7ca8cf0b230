"""Numbers as accounts, laboratories, shops, sport and schools write them, and targets that hold such."""

import numpy as np
import pandas as pd
import pytest

from encoding import encoder_of
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.tables.column import ColumnKind
from nongauss.tables.files import read_table
from nongauss.tables.kinds import decode, flat, kind_of
from nongauss.tables.kinds.label import order_of_features
from nongauss.tables.target_kinds import understand_target
from nongauss.tables.words import known_order

READINGS = [
    ("debit and credit sides", ["573.63 H", "243.54 S", "37.84 H"], [573.63, -243.54, 37.84]),
    ("signs behind", ["807.22 -", "525.40 +", "37.16 +"], [-807.22, 525.4, 37.16]),
    ("lakhs and crores", ["₹45.3 Lac", "₹1.20 crore", "₹2 crore"], [45.3e5, 1.2e7, 2e7]),
    ("pieces", ["12 ST", "1 ST", "40 ST"], [12.0, 1.0, 40.0]),
    ("years and months", ["2y 3m", "5 yrs 6 mos", "8m", "4 years"], [2.25, 5.5, 8 / 12, 4.0]),
    ("weeks and days", ["22w 0d", "27w6d"], [22 * 168.0, 27 * 168.0 + 144.0]),
    (
        "seconds beside minutes",
        ["1:02.34", "58.07", "2:00.50"],
        [62.34, 58.07, 120.5],
    ),
]


@pytest.mark.parametrize(("cells", "right"), [row[1:] for row in READINGS], ids=[row[0] for row in READINGS])
def test_numbers_with_marks(cells, right):
    column = decode("x", pd.Series(cells))
    assert column.kind == "quantity"
    np.testing.assert_allclose(column.values, right, rtol=1e-12)
    again = flat(decode("x", pd.Series(cells[::-1])), "quantity", column.unit, 0.0)
    np.testing.assert_allclose(again.values, right[::-1], rtol=1e-12)


@pytest.mark.parametrize(("cell", "right"), [("58.07", 58.07), ("8 months", 8 / 12), ("243.54 S", -243.54)])
def test_a_new_row_alone_is_read_as_in_the_fit(cell, right):
    fitted = next(cells for _, cells, values in READINGS if np.isclose(values, right).any())
    form = decode("x", pd.Series(fitted)).unit
    values = flat(decode("x", pd.Series([cell])), "quantity", form, 0.0).values
    np.testing.assert_allclose(values, [right], rtol=1e-12)


def test_errors_behind_numbers_are_dropped_and_said():
    cells = [f"{i / 7:.2f} ± 0.1 kg" if i % 2 else f"{i / 7:.2f}±{i}" for i in range(20)]
    column = decode("mass", pd.Series(cells))
    np.testing.assert_allclose(column.values, [round(i / 7, 2) for i in range(20)])
    assert "± 0.1 kg" in column.note


def test_letters_behind_numbers_are_no_units_that_get_lost():
    assert set(decode("class", pd.Series(["7a", "7b", "8a"] * 9)).levels) == {"7a", "7b", "8a"}


def test_fractions_have_no_style_of_decimals(tmp_path):
    path = tmp_path / "rooms.csv"
    path.write_text("rooms;y\n" + "2,5;1\n3½;2\n4;3\n" * 9, encoding="utf-8")
    np.testing.assert_allclose(decode("rooms", read_table(path)["rooms"]).values[:3], [2.5, 3.5, 4.0])


@pytest.mark.parametrize(
    "order",
    [
        ("<30k", "30-40k", "40-50k", "50-75k", "75k+"),
        ("under $0.5M", "$0.5-1.5M", "$1.5-2M", "$2M+"),
        ("<1:10", "1:10", "1:20", "1:160"),
        ("1.0 out of 5 stars", "3.0 out of 5 stars", "5.0 out of 5 stars"),
    ],
)
def test_orders_of_ranges_titres_and_stars(order):
    assert known_order(sorted(order))[0] == order


def test_durations_below_an_hour_are_no_shares():
    cells = pd.Series([f"00:{i % 50:02d}:{7 * i % 60:02d}" for i in range(60)])
    assert understand_target(cells, "duration").kind is not ColumnKind.SHARE
    assert understand_target(cells.str[3:] + ".5", "lap").kind is not ColumnKind.SHARE


def test_a_target_of_titres_keeps_those_below_the_limit():
    found = understand_target(pd.Series(["1:20", "1:40", "<1:10", "1:80"] * 9), "titre")
    assert found.kind is ColumnKind.GRADE
    assert found.levels == ("<1:10", "1:20", "1:40", "1:80")


def test_titres_that_double_are_no_times_of_the_day():
    found = understand_target(pd.Series(["1:10", "1:20", "1:40"] * 9), "titre")
    assert found.levels == ("1:10", "1:20", "1:40")
    assert decode("start", pd.Series(["1:15", "1:30", "1:45"] * 9)).kind == "clock"


def test_ratios_of_one_to_so_many_are_not_said_to_be_out_of_the_same_number():
    found = understand_target(pd.Series(["1:25", "1:50", "1:100"] * 9), "dilution")
    assert found.levels == ("1:25", "1:50", "1:100")
    assert "ratios of one to so many" in found.reason


def test_percent_beside_a_word_are_no_classes():
    found = understand_target(
        pd.Series(["ill", *(f"{40 + i % 45}%" for i in range(300)), "ill"] * 9), "score"
    )
    assert found.kind is not ColumnKind.LABEL
    mostly = pd.Series([f"{40 + i % 45}%" if i % 12 else "ill" for i in range(400)])
    found = understand_target(mostly, "score")
    assert found.kind is ColumnKind.TEXT
    assert "--missing score=ill" in found.reason


UNITS = [
    (["950ms", "1.2s", "700ms"], [950.0, 1200.0, 700.0], "ms"),
    (["3 years", "18 months", "5 years"], [3.0, 1.5, 5.0], "years"),
    (["3y", "5y", "6m"], [3.0, 5.0, 0.5], "y"),
    (["500 B", "900B", "1.5 KB", "2 MB", "3.4 MB", "5 MB"], [5e-4, 9e-4, 1.5e-3, 2.0, 3.4, 5.0], "MB"),
    (["5 kg", "3 kg", "700 g"], [5.0, 3.0, 0.7], "kg"),
]


@pytest.mark.parametrize(("cells", "right", "unit"), UNITS)
def test_units_of_one_quantity_are_converted_to_the_most_frequent(cells, right, unit):
    column = decode("x", pd.Series(cells))
    np.testing.assert_allclose(column.values, right, rtol=1e-12)
    assert column.unit[1:].replace("#", "").strip() == unit
    assert f"converted to {unit!r}" in column.note
    for cell, value in zip(cells, right, strict=True):
        alone = flat(decode("x", pd.Series([cell])), "quantity", column.unit, 0.0)
        np.testing.assert_allclose(alone.values, [value], rtol=1e-12)


def test_other_quantities_in_new_rows_are_refused_beside_those_of_the_fit_too():
    form = decode("x", pd.Series(["5 kg", "3 kg"])).unit
    for cells in (["2 cm"], ["5 kg", "3 cm"]):
        with pytest.raises(InputError, match="cm"):
            flat(decode("x", pd.Series(cells)), "quantity", form, 0.0)


def test_a_unit_of_two_quantities_is_not_converted():
    assert "mixes the units" in decode("x", pd.Series(["5 d", "3 m", "1 m", "2 d"])).note


SCALES = [
    (("Disagree", "Neutral", "Agree"), "Don't know"),
    (("En desacuerdo", "De acuerdo", "Muy de acuerdo"), "NS/NC"),
    (("trifft nicht zu", "trifft eher zu", "trifft zu"), "keine Angabe"),
]


@pytest.mark.parametrize(("words", "none"), SCALES)
def test_no_answer_beside_a_scale_is_missing_and_said(words, none):
    column = decode("q", pd.Series([*words, none] * 9))
    assert set(column.levels) == set(words)
    assert column.missing.sum() == 9
    assert none in column.lost
    assert understand_target(pd.Series([*words, none] * 9), "q").levels == words


def test_a_middle_that_gives_no_answer_is_a_step_beside_other_missing_answers():
    steps = ("zdecydowanie nie", "raczej nie", "trudno powiedzieć", "raczej tak", "zdecydowanie tak")
    assert set(decode("q", pd.Series([*steps, "nie wiem"] * 9)).levels) == set(steps)
    assert understand_target(pd.Series([*steps, "nie wiem"] * 9), "q").levels == steps
    without = (*steps[:2], "ani tak ani nie", *steps[3:])
    assert set(decode("q", pd.Series([*without, steps[2], "nie wiem"] * 9)).levels) == set(without)


@pytest.mark.parametrize("words", [("yes", "no"), ("red", "green", "blue"), ("no", "maybe", "unsure")])
def test_no_answer_beside_other_labels_is_a_label(words):
    assert "Don't know" in decode("q", pd.Series([*words, "Don't know"] * 9)).levels


def test_no_answer_among_numbers_is_missing():
    cells = [str(i % 7 + 1) if i % 4 else "Prefer not to say" for i in range(80)]
    column = decode("q", pd.Series(cells))
    assert column.kind == "quantity"
    assert column.missing.sum() == 20


@pytest.mark.parametrize(
    ("cells", "yes"),
    [
        (["Y", "N", "yes", "no", "1", "0"], {"Y", "yes", "1"}),
        (["TRUE", "false", "1", "0"], {"TRUE", "1"}),
        (["oui", "non", "O", "N"], {"oui", "O"}),
    ],
)
def test_many_words_for_yes_and_no_are_two_labels_and_said(cells, yes):
    column = decode("x", pd.Series(cells * 5))
    said = [column.levels[code] for code in column.codes[: len(cells)]]
    assert len(column.levels) == 2
    assert len({label for cell, label in zip(cells, said, strict=True) if cell in yes}) == 1
    assert "treated as two labels" in column.note
    assert understand_target(pd.Series(cells * 5), "x").kind is ColumnKind.BINARY


@pytest.mark.parametrize(
    "cells",
    [
        ["T", "N", "F", "Y"],
        ["yes", "no", "maybe"],
        ["yes", "no", "2", "1"],
        ["N", "NO", "O"],
        ["N", "NO", "S"],
        ["0", "1", "no"],
    ],
)
def test_other_words_are_labels_of_their_own(cells):
    assert len(decode("x", pd.Series(cells * 5)).levels) == len(cells)


def test_new_rows_may_say_yes_in_another_word():
    encoder = encoder_of(pd.DataFrame({"x": ["Y", "N"] * 20, "z": range(40)}))
    codes = [
        encoder.raw(pd.DataFrame({"x": [word], "z": [1]}))[0].codes[0] for word in ("Y", "yes", "TRUE", "no")
    ]
    assert codes[0] == codes[1] == codes[2] != codes[3]


@pytest.mark.parametrize(
    ("known", "new"),
    [
        (["N", "S"], ["O", "V", "E", "NO", "SI", "1"]),
        (["Y", "N"], ["S", "T", "O", "V", "J", "F"]),
        (["T", "F"], ["N", "Y", "S", "V", "1"]),
        (["yes", "no"], ["F", "on", "disabled", "oui"]),
    ],
)
def test_letters_that_may_mean_something_else_are_labels_that_did_not_occur(known, new):
    encoder = encoder_of(pd.DataFrame({"x": known * 20, "z": range(40)}))
    for label in new:
        with pytest.warns(UserWarning, match=f"'{label}' in column 'x'"):
            column = encoder.raw(pd.DataFrame({"x": [label], "z": [1]}))[0]
        assert column.codes.tolist() == [-1]


@pytest.mark.parametrize(
    ("form", "decimals"),
    [
        ("{}/20", 1),
        ("{} / 10", 2),
        ("{} out of 5 stars", 1),
        ("{}★", 1),
        ("{} per 100k", 1),
        ("{} per 1,000", 0),
    ],
)
def test_what_stands_behind_every_number_is_a_unit(form, decimals):
    values = np.round(np.linspace(0.5, 9.0, 30), decimals)
    column = decode("x", pd.Series([form.format(f"{value:.{decimals}f}") for value in values]))
    assert column.kind == "quantity"
    np.testing.assert_allclose(column.values, values)
    again = flat(decode("x", pd.Series([form.format(5)])), "quantity", column.unit, 0.0)
    np.testing.assert_allclose(again.values, [5.0])


def test_numbers_with_bars_stay_pairs_and_dates():
    assert decode("bp", pd.Series([f"{120 + i}/80" for i in range(9)])).kind == "pair"
    assert decode("bp", pd.Series([f"{120 + i}.5/{80 + i % 5}" for i in range(9)])).kind == "pair"
    assert decode("day", pd.Series([f"{i}/3/2024" for i in range(1, 29)])).kind == "date"


@pytest.mark.parametrize("form", ["{}, {}", "({},{})", "[{}; {}]", "POINT({} {})", "{} {}"])
def test_two_numbers_with_decimals_are_a_pair(form):
    values = np.array([[52.5, 13.4], [-33.86, 151.25], [0.5, -0.25]])
    column = decode("place", pd.Series([form.format(*pair) for pair in values]))
    for at, part in enumerate(("first", "second")):
        np.testing.assert_allclose(flat(column, "pair", part, 0.0).values, values[:, at])


def test_stamps_of_logs_may_stand_in_brackets():
    column = decode("time", pd.Series([f"[{day:02d}/Mar/2024:05:00:00 +0000]" for day in range(1, 29)]))
    assert column.kind == "date"
    assert column.values[1] - column.values[0] == 1


def test_codes_of_post_are_no_ranges():
    assert order_of_features(["02139", "10001", "94105-1234", "60601"]) is None


def test_labels_in_another_case_are_those_of_the_fit_and_all_unseen_ones_are_named():
    with pytest.warns(NongaussWarning, match="kept apart"):
        encoder = encoder_of(pd.DataFrame({"x": ["Sales", "IT", "HR", "hr"] * 9, "z": range(36)}))
    new = pd.DataFrame({"x": ["SALES", "it", "Legal", "Hr", "Legal", "IT"], "z": range(6)})
    with pytest.warns(NongaussWarning, match=r"'Legal', 'Hr' in column 'x', 3 rows \(first in row 2\)"):
        codes = encoder.raw(new)[0]
    assert [codes.levels[code] if code >= 0 else None for code in codes.codes] == [
        "Sales",
        "IT",
        None,
        None,
        None,
        "IT",
    ]


@pytest.mark.parametrize("word", ["Undetermined", "not done", "DNF", "absent"])
def test_words_of_instruments_and_sport_among_numbers_are_gaps(word):
    column = decode("cq", pd.Series([word if i % 9 == 0 else f"{20 + i / 7:.2f}" for i in range(90)]))
    assert column.kind == "quantity"
    assert column.lost == f"{word!r} (10 cells)"


def test_lists_of_codes_are_no_ranges():
    assert known_order(["62012, 62020", "47110", "86900, 87100"]) is None
    assert known_order(["(10, 20]", "(0, 10]", "(20, 30]"])[0] == ("(0, 10]", "(10, 20]", "(20, 30]")


def test_steps_with_an_end_are_not_asked_to_be_corrected():
    assert "correct" not in decode("doses", pd.Series(["0 doses", "1 dose", "2 doses", "3+ doses"] * 9)).note


@pytest.mark.parametrize(
    ("cells", "right"),
    [
        (["(0.2)%", "1.5%", "(3.25) %"], [-0.2, 1.5, -3.25]),
        (["▲ 0.5%", "▼ 1.25%", "▼-2%"], [0.5, -1.25, -2.0]),
        (["120.5 kWh/(m²·a)", "80 kWh/(m²·a)"], [120.5, 80.0]),
        (["3.5 of 5 bubbles", "4.0 of 5 bubbles"], [3.5, 4.0]),
    ],
)
def test_signs_and_units_of_reports(cells, right):
    np.testing.assert_allclose(decode("x", pd.Series(cells)).values, right)


def test_sizes_with_a_unit_are_pairs():
    assert decode("size", pd.Series([f"{i}x{2 * i} mm" for i in range(1, 9)])).kind == "pair"


@pytest.mark.parametrize("labels", [("<30", ">30", "NO"), ("19%", "7%", "exempt")])
def test_a_few_bounds_and_rates_beside_a_word_are_labels(labels):
    assert understand_target(pd.Series([*labels, *labels[:2]] * 20), "x").kind is ColumnKind.LABEL


def test_letters_of_codes_are_no_thousands():
    assert decode("block", pd.Series(["1A", "7B", "2K", "3A"] * 9)).kind == "label"
    np.testing.assert_allclose(decode("views", pd.Series(["1K", "7B", "2M"])).values, [1e3, 7e9, 2e6])


@pytest.mark.parametrize(
    "cells",
    [
        ["10D", "5D", "3M", "1Y", "30D"],
        ["38 S", "40 M", "42 M"],
        ["8 D", "9 W", "8.5 D"],
        ["300 mHz", "2 Hz"],
        ["300 mWh", "2 Wh"],
        ["45.3 Lac", "1.20 Cr"],
    ],
    ids=["terms", "sizes", "widths", "millihertz", "milliwatt hours", "crores or credits"],
)
def test_letters_that_may_be_units_are_not_guessed(cells):
    assert decode("x", pd.Series(cells * 9)).kind == "label"


@pytest.mark.parametrize(
    ("fitted", "new", "right"),
    [
        (["5 ft", "6 ft", "70 in"], ["70 in", "1 m"], [70 / 12, 1 / 0.3048]),
        (["5 lb", "70 oz"], ["2 kg"], [2 / 0.45359237]),
        (["3 years", "18 months", "5 years"], ["73.0485 days"], [0.2]),
        (["1 h", "2 h", "45 min"], ["900 s", "2 weeks"], [0.25, 336.0]),
        (["1h", "2h", "3h"], ["2", "90 min"], [2.0, 1.5]),
        (["1:02.34", "58.07", "2:00.50"], [58.07, 59.1], [58.07, 59.1]),
        (["1:02.34", "58.07", "2:00.50"], ["0.5 min"], [30.0]),
    ],
)
def test_units_of_new_rows_are_converted_to_that_of_the_fit(fitted, new, right):
    form = decode("x", pd.Series(fitted)).unit
    values = flat(decode("x", pd.Series(new)), "quantity", form, 0.0).values
    np.testing.assert_allclose(values, right, rtol=1e-9)


@pytest.mark.parametrize(
    ("fitted", "new"),
    [("40 W", "5 kg"), ("3 GB", "5 Hz"), ("3 dB", "5 Hz"), ("300 RUB", "5 USD"), ("3 years", "5 kg")],
)
def test_another_quantity_in_new_rows_is_refused(fitted, new):
    form = decode("x", pd.Series([fitted] * 2)).unit
    with pytest.raises(InputError, match="when the model was fitted, but has"):
        flat(decode("x", pd.Series([new] * 2)), "quantity", form, 0.0)


def test_parts_in_units_of_one_quantity_have_the_moments_of_the_whole():
    cells = [[f"{200 + 7.5 * i} ms" for i in range(90)], [f"{1 + i / 8} s" for i in range(50)]]
    kind = kind_of("quantity")
    first, second = (decode("x", pd.Series(part)) for part in cells)
    both = [kind.summarise(part, np.ones(len(part.values))) for part in (first, second)]
    numbers = (both[0] + both[1]).numbers
    whole = np.concatenate([first.values, 1000 * second.values])
    right = kind.summarise(decode("x", pd.Series([f"{v} ms" for v in whole])), np.ones(len(whole))).numbers
    np.testing.assert_allclose(numbers.unit * numbers.mean, right.unit * right.mean, rtol=1e-12)
    np.testing.assert_allclose(numbers.unit**2 * numbers.variance, right.unit**2 * right.variance, rtol=1e-12)
    assert (numbers.low, numbers.high, numbers.whole) == (right.low, right.high, right.whole)

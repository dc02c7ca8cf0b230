"""Words for a gap, and dates that stand for none, leave a column what its other cells are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from encoding import encoder_of
from nongauss.auto.imputer import AutoImputer
from nongauss.cli.read import prepare
from nongauss.core.errors import NongaussWarning
from nongauss.tables.kinds import decode, kind_of


@pytest.mark.parametrize("word", ["unknown", "-", ".", "missing", "n/a", "#VALUE!", "NULL "])
def test_words_that_say_a_value_is_not_known_are_gaps_however_many(word):
    cells = [word if i % 4 == 0 else str(i / 8) for i in range(80)]
    column = decode("a", pd.Series(cells))
    want = [np.nan if i % 4 == 0 else i / 8 for i in range(80)]
    assert column.kind == "quantity"
    assert_array_equal(column.values, want)
    assert f"{word.strip()!r} (20 cells)" in column.lost.replace(f"{word!r}", f"{word.strip()!r}")


def test_other_words_and_more_gaps_than_values_leave_labels():
    for word, every in (("red", 8), ("none", 8), ("unknown", 1.5)):
        cells = [word if i % every < 1 else str(i % 7) for i in range(90)]
        assert decode("a", pd.Series(cells)).kind == "label"


@pytest.mark.parametrize("odd", ["0000-00-00", "9999-12-31", "unknown", "00.00.0000"])
def test_dates_that_stand_for_none_are_gaps(odd):
    days = pd.date_range("2021-01-01", periods=60).strftime("%Y-%m-%d").to_numpy(dtype=object)
    days[::6] = odd
    column = decode("when", pd.Series(days))
    assert column.kind == "date"
    assert_array_equal(np.isnan(column.values), np.arange(60) % 6 == 0)
    assert f"{odd!r} (10 cells)" in column.lost


def test_times_of_day_with_gaps():
    column = decode("at", pd.Series(["unknown" if i % 5 == 0 else f"{i % 24}:30" for i in range(60)]))
    assert column.kind == "clock"
    assert np.isnan(column.values).sum() == 12


def test_a_dash_behind_a_currency_is_nothing_of_it():
    column = decode("paid", pd.Series(["$ -", "$ 5.00", "$ (2.50)", "¥-"][:3] * 5))
    assert_array_equal(column.values, [0.0, 5.0, -2.5] * 5)


@pytest.mark.parametrize("mark", ["-", "?", "--", ".", "–", " - "])
@pytest.mark.parametrize("dtype", ["object", "category", "str"])
def test_bare_signs_are_gaps_among_labels_too(mark, dtype):
    cells = [mark if i % 6 == 0 else ("poor", "fair", "good")[i % 3] for i in range(60)]
    column = decode("health", pd.Series(cells, dtype=dtype))
    assert column.levels == ("fair", "good", "poor")
    assert_array_equal(column.missing, np.arange(60) % 6 == 0)
    assert column.lost == f"{mark.strip()!r} (10 cells)"


@pytest.mark.parametrize("words", [("-", "+"), ("-", "x"), ("+", "-", "++"), ("unknown", "red", "blue")])
def test_signs_that_say_something_stay_labels(words):
    column = decode("rhesus", pd.Series([words[i % len(words)] for i in range(60)]))
    assert set(column.levels) == set(words)
    assert column.lost == ""


def test_a_sign_that_one_part_of_the_rows_left_a_label_is_none_in_all():
    kind = kind_of("label")
    parts = [decode("a", pd.Series(cells)) for cells in (["x", "-", "x"], ["y", "z", "-"])]
    facts = [kind.summarise(part.take(~part.missing), np.ones((~part.missing).sum())) for part in parts]
    ((summary),) = kind.columns("a", facts[0] + facts[1], False)
    assert (list(summary.levels), summary.gaps) == (["x", "y", "z"], True)


def test_a_question_mark_says_nothing_beside_a_single_label():
    assert decode("sold", pd.Series(["x", "?", "x", "?"])).levels == ("x",)


def test_grades_with_bare_signs_keep_their_order_and_their_gaps_are_told():
    cells = ["-" if i % 6 == 0 else ("poor", "fair", "good", "excellent")[i % 4] for i in range(80)]
    frame = pd.DataFrame({"health": cells, "y": np.random.RandomState(0).normal(size=80).round(2)})
    table = prepare(frame, "y")
    assert [role.role for role in table.before.roles] == ["grade"]
    assert any("'-' (14 cells)" in note and "'health'" in note for note in table.notes)
    assert table.X["health"].isna().sum() == 14
    with pytest.warns(NongaussWarning, match=r"count as missing: '-' \(14 cells\)"):
        encoder = encoder_of(frame[["health"]])
    grade = encoder.columns[0]
    assert [grade.levels[at] for at in np.argsort(grade.ranks)] == ["poor", "fair", "good", "excellent"]
    assert any("=missing" in name for name in encoder.encoded_names)


@pytest.mark.filterwarnings("ignore:Cells without a value")
def test_a_filled_table_holds_no_bare_sign():
    rng = np.random.RandomState(0)
    x = rng.normal(size=120)
    sex = np.where(x + 0.3 * rng.normal(size=120) > 0, "male", "female").astype(object)
    sex[::5], x[::7] = "-", np.nan
    frame = pd.DataFrame({"sex": sex, "x": x})
    full = AutoImputer(["harmonium"], random_state=0).fit(frame)
    assert set(full.impute(frame)["sex"]) == {"male", "female"}

"""What a target is taken for: the kind of each column of `target_columns`, in whatever form it comes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nongauss.core.errors import InputError
from nongauss.tables.column import ColumnKind, label_of
from nongauss.tables.target_kinds import column_kind, kind_named, target_values, understand_target
from tables.target_columns import ALL, GRADES

rng = np.random.default_rng(1)


def id_of(row):
    name, cells, kind = row
    return f"{name}-{kind}-{len(cells)}"


@pytest.mark.parametrize("row", ALL, ids=id_of)
def test_each_column_is_what_it_is_in_every_form(row):
    name, cells, kind = row
    rng = np.random.default_rng(1)  # its own, so that a run of some tests has the same draws as a run of all
    column = pd.Series(cells).reset_index(drop=True)
    found = understand_target(column, name)
    assert found.kind.value == kind, found
    assert found.reason.startswith("It ")
    assert found.reason.endswith(".")
    order = rng.permutation(len(column))
    assert understand_target(column.iloc[order], name).kind is found.kind
    if len(column) > 20:
        gaps = column.astype(object).where(rng.random(len(column)) > 0.04, None)
        assert understand_target(gaps, name).kind is found.kind
    if found.kind.value not in ("date", "constant"):
        gaps = pd.concat([column.astype(object), pd.Series([None] * 5)], ignore_index=True)
        assert understand_target(gaps.convert_dtypes(), name).kind is found.kind
    if kind != "date" and not pd.api.types.is_numeric_dtype(column.dtype):
        assert understand_target(column.astype("category"), name).kind is found.kind


def test_polars_and_frames_of_one_column():
    pl = pytest.importorskip("polars")
    assert column_kind(pl.Series([1, 2, None, 2])) is ColumnKind.BINARY
    assert column_kind(pl.DataFrame({"y": ["a", "b", "c", "c"]})) is ColumnKind.LABEL
    with pytest.raises(InputError, match="One column"):
        column_kind(pd.DataFrame({"a": [1], "b": [2]}))
    assert column_kind(pd.Series(pd.period_range("2020-01-01", periods=5))) is ColumnKind.DATE


def test_an_ordered_category_keeps_its_order():
    y = pd.Categorical(["lo", "hi", "mid"], categories=["lo", "mid", "more", "hi"], ordered=True)
    found = understand_target(y)
    assert (found.kind, found.levels) == (ColumnKind.GRADE, ("lo", "mid", "more", "hi"))
    assert list(target_values(y, found).cat.categories) == ["lo", "mid", "more", "hi"]


@pytest.mark.parametrize("row", GRADES, ids=id_of)
def test_grades_go_from_low_to_high(row):
    """The order is that of the numbers, or that in which the table of columns lists the words."""
    name, cells, _ = row
    found = understand_target(cells, name)
    y = target_values(cells, found)
    order = np.unique(y).tolist() if isinstance(y, np.ndarray) else list(y.cat.categories)
    assert [label_of(level) for level in order] == list(found.levels)
    numbers = pd.to_numeric(pd.Series(found.levels), errors="coerce")
    if numbers.notna().all():
        assert numbers.is_monotonic_increasing
    else:
        assert list(found.levels) in LISTED


LISTED = [
    ["strongly disagree", "disagree", "neutral", "agree", "strongly agree"],
    ["Poor", "Fair", "Good", "Excellent"],
    ["low", "medium", "high"],
    ["S", "M", "L", "XL"],
    ["never", "rarely", "sometimes", "often", "always"],
    ["mild", "moderate", "severe"],
    ["no", "maybe", "yes"],
    ["Primary school", "High school", "Bachelor's", "Master's", "PhD"],
    ["unlikely", "likely", "very likely"],
    ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    ["<18", "18-25", "26-40", "41-65", "65+"],
    ["Stage I", "Stage II", "Stage III", "Stage IV"],
    ["D", "C", "B", "A"],
]


def test_a_relation_to_the_other_columns_shows_steps():
    """Codes whose order goes with a column are grades; dealt at random they are labels; four are too few."""
    from nongauss.tables.frame import read_input

    a = rng.normal(size=(400, 3))
    inputs = read_input(a)
    deal = np.array([0, 3, 5, 1, 4, 2])
    # Five codes, 80 rows each: the frequencies say nothing.
    flat = np.argsort(np.argsort(a[:, 1] + 0.3 * rng.normal(size=400))) // 80 + 1
    assert understand_target(flat, "y", inputs=inputs).kind is ColumnKind.GRADE
    assert understand_target(deal[flat], "y", inputs=inputs).kind is ColumnKind.LABEL
    assert understand_target(flat, "y").kind is ColumnKind.LABEL
    assert understand_target(np.minimum(flat, 4), "y", inputs=inputs).kind is ColumnKind.LABEL


def test_what_is_declared_goes_before_the_look():
    codes = [0, 1, 2] * 20
    assert understand_target(codes, "y", kind="ordinal").levels == ("0", "1", "2")
    assert understand_target(codes, "y", kind="count").kind is ColumnKind.COUNT
    assert understand_target(codes, "y", counted=True).kind is ColumnKind.COUNT
    assert understand_target(codes, "species", kind="real").kind is ColumnKind.REAL
    words = ["b", "a", "c"] * 20
    found = understand_target(words, "y", levels=["c", "b", "a"])
    assert (found.kind, found.levels, found.order) == (ColumnKind.GRADE, ("c", "b", "a"), "")
    assert "alphabet" in understand_target(words, "y", kind="grade").order
    texts = [f"town {i}" for i in range(60)]
    assert understand_target(texts, "y", kind="label").kind is ColumnKind.LABEL
    percent = understand_target([10.0, 50.0, 90.0, 20.0], "y", kind="share")
    assert target_values([10.0, 50.0], percent).tolist() == [0.1, 0.5]


@pytest.mark.parametrize(
    ("cells", "declared", "message"),
    [
        ([1.0, 2.0, 2.5], {"kind": "count"}, r"declared count, but holds 2.5 in row 3 .* whole"),
        ([1.0, -2.0, 2.5], {"kind": "positive"}, r"declared positive, but holds -2 in row 2"),
        ([1.0, None, -2.5], {"kind": "zeros"}, r"positive with zeros, but holds -2.5 in row 3"),
        ([1.0, 101.0, 3.0], {"kind": "share"}, r"holds 101 in row 2"),
        ([None, "a", "b"], {"kind": "real"}, r"are numbers, but holds 'a' in row 2"),
        (["a", "b", "c"], {"levels": ["a", "b"]}, r"'c' in row 3 .* none of the levels a, b"),
        (["a", "b", "c"], {"levels": ["a", "a"]}, r"two or more different"),
        (["a", "b"], {"kind": "cuont"}, r"no kind of target 'cuont'; .*count"),
    ],
)
def test_what_cannot_be_as_declared_is_named(cells, declared, message):
    with pytest.raises(InputError, match=message):
        understand_target(cells, "y", **declared)


def test_words_for_kinds():
    assert kind_named("Ordinal") is kind_named("grade") is ColumnKind.GRADE
    assert kind_named("positive-with-zeros") is ColumnKind.ZEROS


def test_a_text_target_is_told_with_its_likely_cause():
    amounts = [f"{i}-{i + 9} florins" for i in range(70)]
    assert "units or dates in a form that was not read" in understand_target(amounts, "y").reason
    assert "free text" in understand_target([f"she came on foot today {i}" for i in range(70)], "y").reason
    mixed = ["1", "2", "x"] * 20
    assert "'x' in row 3 below the names (20 of 60" in understand_target(mixed, "y").reason


def test_codes_of_known_sets_have_no_order_in_their_columns():
    from sklearn.datasets import load_digits, load_iris, load_wine

    from nongauss.tables.frame import read_input

    for load in (load_digits, load_iris, load_wine):
        X, y = load(return_X_y=True)
        assert understand_target(y, "y", inputs=read_input(X)).kind is ColumnKind.LABEL


def test_a_target_of_times_is_hours():
    cells = [f"{1 + i % 4}:{i % 60:02d}:30" for i in range(60)]
    found = understand_target(cells, "finish")
    want = [1 + i % 4 + (i % 60) / 60 + 30 / 3600 for i in range(60)]
    np.testing.assert_allclose(target_values(pd.Series(cells), found, "finish"), want)
    assert "hours" in found.notes[0]


def test_a_number_that_is_never_seen_between_frequent_ones_makes_codes_of_them() -> None:
    rng = np.random.default_rng(0)
    found = understand_target(
        rng.choice([1, 2, 3, 5, 6, 7], 210, p=[0.33, 0.35, 0.08, 0.06, 0.04, 0.14]), "y"
    )
    assert found.kind is ColumnKind.LABEL
    assert "gaps between" in found.reason
    assert understand_target(rng.choice([3, 7, 21], 200), "dx").kind is ColumnKind.LABEL
    counts = rng.negative_binomial(2, 0.4, 400)  # a rare count that happens to be missing says nothing
    assert understand_target(counts[counts != counts.max() - 1], "y").kind is ColumnKind.COUNT


def test_a_rating_out_of_a_number_is_a_grade_and_no_pair():
    found = understand_target([f"{k}/5" for k in (1, 3, 5, 4, 2) * 8], "score")
    assert found.kind is ColumnKind.GRADE
    assert found.levels == ("1/5", "2/5", "3/5", "4/5", "5/5")
    assert found.notes == ()

"""What input columns are for: a role for each, and what is warned of."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nongauss.core.errors import InputError
from nongauss.tables.frame import read_input
from nongauss.tables.gap_values import gap_warnings
from nongauss.tables.roles import understand_columns, with_gaps

rng = np.random.default_rng(0)
N = 120


def pick(values):
    return rng.choice(np.array(values, dtype=object), N)


def shuffled(values):
    return rng.permutation(np.asarray(values))


NUMBERS = [
    ("age", rng.integers(18, 90, N)),
    ("x", rng.normal(size=N)),
    ("t", np.arange(N)),
    ("day", np.arange(1, N + 1)),
    ("year", rng.integers(1990, 2020, N)),
    ("rooms", rng.integers(1, 9, N)),
    ("account length", rng.integers(1, 200, N)),
    ("code rate", rng.integers(0, 100, N)),
    ("price", [f"${n:,}" for n in rng.integers(1000, 90000, N)]),
    ("share", [f"{n}%" for n in rng.integers(1, 99, N)]),
    ("rank", shuffled(np.arange(1, N + 1))),
    ("flag", rng.integers(0, 2, N)),
]
LABELS = [
    ("region", pick(["a", "b", "c"])),
    ("zip", rng.choice([10115, 20095, 80331], N)),
    ("Postal Code", rng.choice([10115, 20095, 80331], N)),
    ("area code", rng.choice([408, 415, 510], N)),
    ("store_id", rng.integers(1, 20, N)),
    ("plz", pick(["01234", "01067", "80331"])),
    ("smoker", [True, False] * (N // 2)),
    ("town", pick([f"town {i}" for i in range(40)])),
    ("icd", pick(["A01", "B20", "C34"])),
]
IDS = [
    ("PassengerId", np.arange(1, N + 1)),
    ("id", shuffled(np.arange(1, N + 1))),
    ("Unnamed: 0", np.arange(N)),
    ("customer id", shuffled(np.arange(5000, 5000 + 3 * N, 3))),
    ("phone", rng.choice(10**9, N, replace=False)),
    ("row", np.arange(1, N + 1)),
    ("number", np.arange(1.0, N + 1)),
    ("account_number", 4 * 10**18 + rng.permutation(10**6)[:N]),
    ("name", [f"person-{i}" for i in range(N)]),
]
OTHERS = [
    ("when", pd.date_range("2020-01-01", periods=N), "date"),
    (
        "born",
        rng.permutation(pd.date_range("1950-01-01", periods=N, freq="31D").strftime("%Y-%m-%d")),
        "date",
    ),
    ("flat", np.full(N, 3.0), "constant"),
    ("one", ["a"] * N, "constant"),
    ("none", [np.nan] * N, "empty"),
    ("nothing", [None] * N, "empty"),
    ("comment", [f"the client called on day {i}" for i in range(N)], "text"),
    ("size", pd.Categorical(pick(["S", "M"]), ["S", "M", "L"], ordered=True), "grade"),
]
CASES = [
    *((name, cells, "number") for name, cells in NUMBERS),
    *((name, cells, "label") for name, cells in LABELS),
    *((name, cells, "id") for name, cells in IDS),
    *OTHERS,
]


def roles_of(**columns):
    frame = pd.DataFrame({**columns, "other": rng.normal(size=N)})
    return {role.name: role for role in understand_columns(read_input(frame))}


@pytest.mark.parametrize(("name", "cells", "role"), CASES, ids=[case[0] for case in CASES])
def test_each_column_has_its_role(name, cells, role):
    found = roles_of(**{name: cells})[name]
    assert found.role == role, found
    assert found.used == (role in ("number", "label", "date", "grade"))
    assert found.reason
    column = pd.Series(cells).reset_index(drop=True)
    if found.used:
        gaps = column.astype(object).where(rng.random(N) > 0.1, None)
        gaps = gaps if role != "grade" else column.where(rng.random(N) > 0.1)
        assert roles_of(**{name: gaps})[name].role == role
        assert roles_of(**{name: column.iloc[rng.permutation(N)].array})[name].role == role


def test_codes_are_labels_and_the_only_column_is_used():
    roles = roles_of(zip=rng.choice([10115, 20095], N), age=rng.integers(18, 90, N))
    assert roles["zip"].as_label
    assert not roles["age"].as_label
    alone = understand_columns(read_input(pd.DataFrame({"number": np.arange(N)})))
    assert alone[0].used
    asked = understand_columns(read_input(pd.DataFrame({"id": np.arange(N), "x": NUMBERS[1][1]})), use=["id"])
    assert asked[0].used
    zeros = roles_of(plz=LABELS[5][1])["plz"]
    assert "leading 0" in zeros.reason


def test_copies_are_left_out():
    x = rng.normal(size=N)
    found = roles_of(x=x, y=x.copy(), z=-x, a=pick(["u", "v"]), b=list("ab") * (N // 2))
    assert (found["y"].role, found["y"].reason) == ("copy", "the same cells as 'x'")
    assert found["z"].used
    assert found["a"].used


def warned(sort, target=None, target_name="y", **columns):
    frame = pd.DataFrame({**columns, "other": rng.normal(size=N)})
    roles = understand_columns(read_input(frame), target=target, target_name=target_name)
    return {role.name: text for role in roles for what, text in role.warnings if what == sort}


@pytest.mark.parametrize("value", [-999, 9999, -99, 1e9, 999999])
def test_values_that_stand_for_gaps(value):
    x = rng.integers(0, 60, N).astype(float)
    x[[3, 7, 50]] = value
    text = warned("gap", a=x, b=rng.normal(size=N))
    assert list(text) == ["a"]
    assert f"--missing a={value:.12g}" in text["a"]
    assert "3 rows" in text["a"]


@pytest.mark.parametrize("value", [-1, -9, 99, 0, -999])
def test_codes_for_a_gap_near_other_values(value):
    x = rng.integers(25, 70, N).astype(float)
    x[[3, 7, 50]] = value
    assert list(warned("gap", a=x)) == ["a"]
    skewed = rng.lognormal(9, 1, N).round()
    skewed[[3, 7, 50]] = value
    assert bool(warned("gap", a=skewed)) == (value < 0)


@pytest.mark.parametrize(
    ("steps", "codes"),
    [((1, 2, 3, 4, 5), (98, 99)), ((1, 2, 3, 4), (-9,)), ((0, 1, 2, 3), (99,)), ((1, 2, 3, 4, 5), (-9, -8))],
)
def test_codes_of_surveys_for_no_answer(steps, codes):
    x = rng.choice(steps, N).astype(float)
    x[5 : 5 + 2 * len(codes)] = codes * 2
    text = warned("gap", a=x)["a"]
    assert all(f"--missing a={code}" in text for code in codes)


@pytest.mark.parametrize("levels", [(0, 1, 2, 9), (-1, 0, 1, 2), (1, 2, 3, 5, 6, 7), (0, 1, 2, 3, 5, 8)])
def test_counts_and_codes_are_no_missing_answers(levels):
    assert warned("gap", a=rng.choice(levels, N).astype(float)) == {}


def test_counts_from_one_on_hold_no_missing_answers():
    samples = np.random.default_rng(0).geometric(0.5, (100, 150)).astype(float)
    assert [gap_warnings(sample, "a") for sample in samples] == [()] * 100
    rooms = [1.0, 2.0, 3.0, 4.0, 5.0] * 30
    assert gap_warnings(np.array([*rooms, 7.0]), "a") == ()
    assert "holds 77 in one row beside" in gap_warnings(np.array([*rooms, 77.0]), "a")[0][1]


def test_what_only_lies_far_out_stands_for_no_gap():
    skewed = rng.lognormal(0, 2, N)
    flags = np.where(rng.random(N) < 0.05, 1.0, 0.0)
    zeros = np.where(rng.random(N) < 0.3, 0.0, rng.normal(100, 10, N))
    counts = np.where(rng.random(N) < 0.05, 9, rng.integers(0, 3, N))
    heavy = rng.standard_t(2, N)
    assert warned("gap", a=skewed, b=flags, d=counts, e=heavy) == {}
    assert list(warned("gap", c=zeros)) == ["c"]


def test_copies_of_the_target_are_warned_of():
    y = rng.normal(size=N)
    grown, fallen, rounded = np.exp(y), -(y**3), np.round(3 * y)
    near = y + 0.3 * rng.normal(size=N)
    text = warned("leak", y, a=grown, b=fallen, c=rounded, d=near, e=(y > 0) * 1.0, f=rng.normal(size=N))
    assert list(text) == ["a", "b", "c", "e"]
    assert "--ignore a" in text["a"]
    grade = pick(["low", "mid", "high"])
    codes = pd.Series(grade).map({"low": 7, "mid": 3, "high": 4})
    assert list(warned("leak", grade, a=codes, b=pick([1, 2, 3]))) == ["a"]
    binary = rng.integers(0, 2, N)
    apart = np.where(binary == 1, 5.0, 1.0) + 0.1 * rng.normal(size=N)
    assert list(warned("leak", binary, a=apart, b=1 - binary)) == ["b"]


def test_rows_in_order_of_time_and_columns_of_events():
    dates = pd.date_range("2020-01-01", periods=N)
    text = warned("time", when=dates, back=dates[::-1], mixed=dates[rng.permutation(N)])
    assert list(text) == ["when", "back"]
    assert "--split last" in text["when"]
    time, event = rng.exponential(size=N), rng.integers(0, 2, N)
    text = warned("censoring", time, "survival time", event=event, age=rng.integers(18, 90, N))
    assert "--censored event" in text["event"]
    assert warned("censoring", time, "price", event=event) == {}


def test_cells_of_a_value_become_gaps():
    frame = pd.DataFrame({"a": [1.0, -999.0, 3.0], "b": ["x", "-999", "none"], "c": [-999, 2, 3]})
    out = with_gaps(frame, {"a": ["-999"], "b": ["none"]})
    assert out.isna().to_numpy().tolist() == [
        [False, False, False],
        [True, False, False],
        [False, True, False],
    ]
    assert with_gaps(frame, {"": [-999]}).isna().sum().tolist() == [1, 1, 1]
    assert not frame.isna().any().any()
    with pytest.raises(InputError, match="no column 'd'"):
        with_gaps(frame, {"d": [1]})


def test_five_thousand_columns_are_understood_in_seconds():
    frame = pd.DataFrame(rng.normal(size=(50, 5000)), columns=[f"c{i}" for i in range(5000)])
    roles = understand_columns(read_input(frame), target=rng.normal(size=50), target_name="y")
    assert sum(role.used for role in roles) == 5000
    assert not any(role.warnings for role in roles)


def test_labels_of_hardly_any_rows_are_left_out_unless_asked_for():
    table = read_input(pd.DataFrame({"town": [f"town {i % 60}" for i in range(N)], "a": rng.normal(size=N)}))
    town = understand_columns(table)[0]
    assert not town.used
    assert "60 labels in 120 rows" in town.reason
    assert "--use town" in town.reason
    assert understand_columns(table, use=["town"])[0].used


def test_labels_with_few_rows_each_are_warned_of():
    towns = np.array([f"town {i}" for i in range(30)])[np.arange(N) % 30]
    assert "30 labels in 120 rows" in warned("many labels", town=towns, region=LABELS[0][1])["town"]

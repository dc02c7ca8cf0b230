"""What is declared of a table, and what is said before the fit."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from nongauss.cli.read import Declared, prepare
from nongauss.core.errors import InputError
from nongauss.report.text import to_json

N = 80
rng = np.random.default_rng(0)
TIME = rng.exponential(size=N) + 0.1
EVENT = rng.integers(0, 2, N)


def frame(**columns):
    return pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N), **columns})


COUNTS = frame(y=rng.poisson(2.0, N), years=rng.uniform(0.5, 2, N), who=np.arange(N) % 7)


def test_columns_beside_the_inputs_are_no_inputs():
    declared = Declared(exposure="years", group="who", ignore=("b",))
    table = prepare(COUNTS, "y", declared=declared)
    assert list(table.X) == ["a"]
    np.testing.assert_array_equal(table.fit_params["exposure"], COUNTS["years"])
    np.testing.assert_array_equal(table.groups, COUNTS["who"])
    assert (table.choice.model, table.kind.value) == ("auto", "count")
    assert "Beside     exposure: years, group: who" in str(table.before)
    assert [role.role for role in table.before.roles] == ["number", "ignored"]


def test_they_go_with_their_rows():
    gaps = COUNTS.assign(y=COUNTS["y"].where(COUNTS["a"] > 0))
    table = prepare(gaps, "y", declared=Declared(exposure="years", group="who"))
    np.testing.assert_array_equal(table.fit_params["exposure"], COUNTS["years"][COUNTS["a"] > 0])
    assert len(table.groups) == len(table.y) == len(table.X) == (COUNTS["a"] > 0).sum()


@pytest.mark.parametrize(
    ("name", "cells", "option", "right"),
    [
        ("event", EVENT, "event", EVENT == 0),
        ("status", EVENT + 1, "status", EVENT == 0),
        ("died", EVENT == 1, "died", EVENT == 0),
        ("censored", EVENT, "censored", EVENT == 1),
        ("churn", np.where(EVENT == 1, "Yes", "No"), "churn", EVENT == 0),
        ("how", np.where(EVENT == 1, "right", "none"), "how", EVENT == 1),
        ("z", EVENT, "z=0", EVENT == 0),
        ("state", np.where(EVENT == 1, "seen", "still waiting"), "state", EVENT == 0),
        ("state", np.where(EVENT == 1, "Died", "Lost to follow-up"), "state", EVENT == 0),
    ],
)
def test_censored_rows_are_read_from_a_column(name, cells, option, right):
    table = prepare(frame(time=TIME, **{name: cells}), "time", declared=Declared(censored=option))
    np.testing.assert_array_equal(table.fit_params["censoring"], right.astype(int))
    assert table.kind.value == "censored time"
    assert list(table.X) == ["a", "b"]
    assert any(f"{right.sum()} rows have a true target above the given one" in note for note in table.notes)


def test_left_and_interval_censoring():
    sides = np.where(EVENT == 1, "left", "none")
    table = prepare(frame(t=TIME, side=sides), "t", declared=Declared(censored="side", kind="real"))
    np.testing.assert_array_equal(table.fit_params["censoring"], -EVENT)
    upper = np.where(EVENT == 1, TIME, TIME + rng.uniform(0.1, 1, N))
    upper[3] = np.nan
    table = prepare(frame(t=TIME, upper=upper), "t", declared=Declared(censored="upper"))
    np.testing.assert_array_equal(table.fit_params["y_upper"], np.where(np.isnan(upper), np.inf, upper))


@pytest.mark.parametrize(
    ("columns", "declared", "message"),
    [
        ({"y": EVENT, "t": TIME}, Declared(exposure="tt"), "no column 'tt'; did you mean 't'"),
        ({"y": TIME}, Declared(exposure="y"), "is the target and cannot have a second role"),
        ({"y": EVENT, "t": TIME - 1}, Declared(exposure="t"), r"above 0 in every row, but is -"),
        ({"y": TIME, "z": EVENT}, Declared(censored="z"), "give --censored z=VALUE"),
        ({"y": TIME, "z": EVENT}, Declared(censored="z=7"), "no value '7'; it has 0, 1"),
        ({"y": TIME}, Declared(missing=("c=7",)), "--missing names the column 'c'"),
        ({"y": TIME}, Declared(kind="cuont"), "no kind of target 'cuont'"),
    ],
)
def test_what_cannot_be_declared_is_named(columns, declared, message):
    with pytest.raises(InputError, match=message):
        prepare(frame(**columns), "y", declared=declared)


def test_a_model_that_does_not_take_what_is_declared():
    said = "'tggm' does not accept exposure for regression; give --model sparse_gp"
    with pytest.raises(InputError, match=said):
        prepare(COUNTS, "y", "tggm", declared=Declared(exposure="years"))


def test_gap_values_kind_and_levels():
    x = np.where(EVENT == 1, -999.0, TIME)
    table = prepare(frame(x=x, y=TIME), "y", declared=Declared(missing=("x=-999",)))
    assert table.X["x"].isna().sum() == EVENT.sum()
    assert [note for note in table.notes if "--missing" in note] == [
        f"--missing x=-999: {EVENT.sum()} cells count as missing."
    ]
    words = np.array(["lo", "hi", "mid"])[np.arange(N) % 3]
    table = prepare(frame(y=words), "y", declared=Declared(levels=("lo", "mid", "hi")))
    assert (table.choice.task, table.levels.tolist()) == ("ordinal", ["lo", "mid", "hi"])
    table = prepare(frame(y=words), "y", declared=Declared(kind="grade"))
    assert "Order: hi < lo < mid (a guess: alphabetical order; --levels hi,lo,… to change it)" in " ".join(
        str(table.before).split()
    )


def test_a_table_without_a_usable_column_says_what_was_left_out():
    table = pd.DataFrame({"id": np.arange(N), "flat": 1.0, "name": [f"p-{i}" for i in range(N)], "y": TIME})
    with pytest.raises(
        InputError, match=r"No column is left.*--use NAME.*2 ids: id .*name .*1 constant: flat"
    ):
        prepare(table, "y")
    assert list(prepare(table, "y", declared=Declared(use=("id",))).X) == ["id"]
    with pytest.raises(InputError, match="No column is left in table to predict 'y' from; add inputs"):
        prepare(table[["y"]], "y")


def test_codes_reach_the_model_as_labels():
    table = prepare(frame(zip=np.array([10115, 20095, 80331])[np.arange(N) % 3], y=TIME), "y")
    assert table.rows.column(2).levels == ("10115", "20095", "80331")
    assert table.X["zip"].tolist()[:3] == ["10115", "20095", "80331"]


def test_the_block_is_as_short_for_many_columns_and_the_record_has_all():
    many = pd.DataFrame(rng.normal(size=(30, 5000)), columns=[f"c{i}" for i in range(5000)])
    many.iloc[:3, :20] = -999.0
    before = prepare(many.assign(y=rng.normal(size=30)), "y").before
    text = str(before)
    assert len(text) < 2500
    assert "5,000 numbers: c0, c1, c2, c3, c4, c5, c6, c7 and 4,992 more" in text
    assert text.count("-999 in 3 rows") == 3
    assert "The same goes for c3, c4" in text
    record = json.loads(to_json(before.record()))
    assert len(record["columns"]) == 5000
    assert record["target"]["kind"] == "real"
    assert record["candidates"][0] == {"model": "auto", "task": "regression", "settings": {}}


def test_near_kinds_are_candidates():
    counts = COUNTS.drop(columns=["years", "who"])
    before = prepare(counts, "y").before
    weighed = [("auto", "regression"), ("auto", "classification")]
    assert [(choice.model, choice.task) for choice in before.candidates] == weighed
    alone = [("sparse_gp", "regression"), ("tggm", "regression"), ("sparse_gp", "classification")]
    found = prepare(counts, "y", "sparse_gp").before.candidates
    assert [(choice.model, choice.task) for choice in found] == alone
    assert "It could also be real or label: --kind WORD overrides this." in " ".join(str(before).split())


def test_rows_without_a_target_and_values_of_it_that_stand_for_a_gap_are_said():
    y = TIME.copy()
    y[:4], y[4:8] = np.nan, -999.0
    notes = prepare(frame(y=y), "y").notes
    assert "4 of 80 rows have no 'y' and were dropped." in notes
    assert any("Column 'y' holds -999 in 4 rows" in note for note in notes)
    ready = prepare(frame(y=y), "y", declared=Declared(missing=("y=-999",)))
    assert len(ready.y) == 72

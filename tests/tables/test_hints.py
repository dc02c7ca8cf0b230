"""Columns that look like groups of rows and exposures are told of, others are not."""

import shlex

import numpy as np
import pandas as pd
import pytest

from nongauss.cli.options import listed
from nongauss.cli.read import Declared, prepare
from nongauss.tables.words import typed

N = 120


def notes(declared=None, **columns):
    rng = np.random.default_rng(0)
    x = rng.normal(size=N).round(2)
    frame = pd.DataFrame({"x": x, **columns, "claims": rng.poisson(np.exp(0.3 * x))})
    return " ".join(prepare(frame, "claims", declared=declared or Declared()).before.notes)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("patient_id", [f"P{i // 4}" for i in range(N)]),
        ("household", np.arange(N) // 3),
        ("Patientennr", [f"{i // 2:05d}" for i in range(N)]),
        ("Driver No", [f"D{i // 4}" for i in range(N)]),
        ("School name", [f"S{i // 4}" for i in range(N)]),
    ],
)
def test_names_of_what_rows_belong_to_are_hinted_at(name, cells):
    assert f"--group {typed(name)}" in notes(**{name: cells})
    assert "--group" not in notes(Declared(group=name), **{name: cells})


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("rating", np.arange(N) // 4),
        ("school", np.arange(N) % 3),
        ("person_height", np.linspace(1.5, 2.0, N)),
        ("patient_id", np.arange(N) + 1000),
        ("Driver age", 18 + np.arange(N) // 3),
        ("class size", 12 + np.arange(N) // 4),
        ("customer_satisfaction", np.arange(N) // 6),
    ],
)
def test_what_is_no_group_is_not(name, cells):
    assert "--group" not in notes(**{name: cells})


def test_exposures_of_counts_are_hinted_at():
    years = np.random.default_rng(1).uniform(0.2, 5, N)
    for name in ("exposure", "person_years", "Population", "followUpDays"):
        assert f"--exposure {name}" in notes(**{name: years})
    assert "--exposure" not in notes(distance=years)
    assert "--exposure" not in notes(exposure=years - 0.5)


def test_a_mark_or_nothing_is_a_label_of_two_values():
    rng = np.random.default_rng(0)
    x = rng.normal(size=N).round(2)
    mark = np.where(x > 0, "x", None)
    table = prepare(pd.DataFrame({"x": x, "paid": mark, "y": x + rng.normal(size=N)}), "y")
    assert set(table.rows.column(1).levels) == {"x", "(empty)"}
    assert "'x' or nothing" in " ".join(table.before.notes)
    target = prepare(pd.DataFrame({"x": x, "paid": mark}), "paid")
    assert target.kind.value == "binary"
    assert len(target.y) == N
    city = prepare(pd.DataFrame({"x": x, "city": np.where(x > 0, "Berlin", None), "y": x * x}), "y")
    assert city.ignored == [("city", f"one value, and {(x <= 0).sum()} empty cells")]


def test_a_text_in_few_rows_or_nothing_is_a_label_of_two_values():
    x = np.random.default_rng(0).normal(size=N).round(2)
    note = np.where(np.arange(N) % 30 == 7, "staff ill", None)
    table = prepare(pd.DataFrame({"x": x, "note": note, "y": x * x}), "y")
    assert table.rows.column(1).levels == ("(empty)", "staff ill")
    assert "Column 'note' holds 'staff ill' or nothing" in " ".join(table.before.notes)
    assert len(prepare(pd.DataFrame({"x": x, "y": np.where(x > 1, x, np.nan)}), "y").y) == (x > 1).sum()


def test_two_rows_are_no_shares():
    assert prepare(pd.DataFrame({"x": [1.0, 2.0], "y": [0.2, 0.7]}), "y").kind.value != "share"
    few = pd.DataFrame({"x": [1.0, 2.0], "share": [0.2, 0.7]})
    assert prepare(few, "share").kind.value in ("share", "binary")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("age", "", "age"),
        ("temp_C", "-999", "temp_C=-999"),
        ("Stay No", "", '"Stay No"'),
        ("Area (sqft)", "-1", '"Area (sqft)=-1"'),
        ('5" pipe', "", "'5\" pipe'"),
    ],
)
def test_names_are_said_as_a_shell_takes_them(name, value, text):
    assert typed(name, value) == text
    assert shlex.split(text) == [f"{name}={value}" if value else name]


def test_a_name_with_a_comma_stays_one_name_in_a_list():
    assert listed(shlex.split(typed("price, net", listed=True))) == ("price, net",)


def test_numbers_that_rise_by_one_are_told_of():
    rows = np.arange(N)
    assert '--ignore "Stay No"' in notes(**{"Stay No": 10001 + rows})
    assert "rises by one" not in notes(year=1800 + rows)
    assert "rises by one" not in notes(**{"Stay No": 10001 + 2 * rows})


def test_labels_of_rows_that_have_not_ended_are_told_of():
    rng = np.random.default_rng(0)
    outcome = np.where(rng.random(N) < 0.2, "still in", "discharged")
    frame = pd.DataFrame({"age": rng.integers(20, 90, N), "outcome": outcome, "days": rng.exponential(9, N)})

    def told(target="days", **declared):
        return " ".join(prepare(frame, target, declared=Declared(**declared)).before.notes)

    n = (outcome == "still in").sum()
    assert f"Column 'outcome' says 'still in' in {n} rows" in told()
    assert "--censored outcome" in told()
    assert "--censored" not in told(censored="outcome")
    frame = frame.rename(columns={"days": "price"})
    assert "--censored" not in told("price")

"""Of a large table a random part is fitted to, which is said."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import nongauss
from nongauss.cli import large
from nongauss.cli.read import prepare


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(large, "MOST_ROWS", {"sparse_gp": 60, "tggm": 60})
    monkeypatch.setattr(large, "_FEWEST", 20)


def table(target, **columns):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"x": np.arange(200.0), "size": 1.0 + rng.rand(200), "y": target, **columns})
    return prepare(frame, "y", "sparse_gp")


def test_rows_targets_and_what_goes_with_them_stay_together():
    whole = table(np.arange(200.0) + 0.5)
    part = large.enough_rows(whole, None, 0)
    x = np.asarray(part.X["x"])
    assert len(x) == len(part.y) == 60
    np.testing.assert_allclose(part.y, x + 0.5)
    assert (np.diff(x) > 0).all()  # in the order of the file
    assert "60 of the 200 rows" in part.notes[-1]
    assert "60 of the 200 rows" in str(part.before)
    assert not np.array_equal(x, np.asarray(large.enough_rows(whole, None, 1).X["x"]))


def test_all_rows_on_request_and_of_a_small_table():
    whole = table(np.arange(200.0) + 0.5)
    assert large.enough_rows(whole, 0, 0) is whole
    assert large.enough_rows(whole, 200, 0) is whole
    assert len(large.enough_rows(whole, 70, 0).y) == 70


def test_each_label_keeps_a_row_and_many_classes_take_fewer_rows():
    labels = np.array(["a", "b", "c"] * 66 + ["rare", "a"], dtype=object)
    part = large.enough_rows(table(labels), None, 0)
    assert len(part.y) <= 24  # the fewest, and the first of each label
    assert set(part.y) == {"a", "b", "c", "rare"}


def test_a_network_takes_fewer_epochs_of_many_rows(monkeypatch):
    monkeypatch.setattr(large, "ROWS_SEEN", 20_000)
    whole = prepare(table(np.arange(200.0) + 0.5).X.assign(y=np.arange(200.0) + 0.5), "y", "tggm")
    part = large.enough_epochs(whole)
    assert part.choice.settings["max_epochs"] == 100
    assert "100 epochs are used instead of 400" in str(part.before).replace("\n           ", " ")
    monkeypatch.setattr(large, "ROWS_SEEN", 4_000_000)
    assert large.enough_epochs(whole) is whole
    assert nongauss.TGGMRegressor().max_epochs == large.USUAL_EPOCHS


def wide_table(**asked):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.rand(30, 201), columns=[f"g{j}" for j in range(201)])
    return prepare(frame.assign(y=rng.rand(30)), "y", **asked)


def test_of_more_columns_than_rows_it_is_said_which_are_looked_at():
    part = large.telling_columns(wide_table(), [])
    assert "201 columns for 30 rows" in part.notes[-1]
    assert "--set keep_columns=all" in part.notes[-1]
    assert "keep_columns" not in part.choice.settings
    assert large.telling_columns(wide_table(), ["g3"]).choice.settings["keep_columns"] == ["g3"]
    whole = wide_table(settings=["keep_columns=all"])
    assert large.telling_columns(whole, ["g3"]) is whole
    rng = np.random.RandomState(0)
    near = pd.DataFrame(rng.rand(250, 201), columns=[f"g{j}" for j in range(201)]).assign(y=rng.rand(250))
    part = large.telling_columns(prepare(near, "y"), [])
    assert part.choice.settings["keep_columns"] == "all"  # the fit that is judged has fewer rows than columns
    assert "all are used" in part.notes[-1]
    narrow = table(np.arange(200.0) + 0.5)
    assert large.telling_columns(narrow, ["x"]) is narrow

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from nongauss.report.text import model_record, summary, text_table, to_json
from report.stand_in import StandIn, small_data


def test_summary_says_what_was_fitted_and_how_it_ended():
    model = StandIn(n_sweeps=7).fit(*small_data())
    text = summary(model, metrics={"rmse": 1.25, "coverage_90": 0.9}, target="price", n_rows=120)
    lines = dict(line.split("  ", 1) for line in text.splitlines() if "  " in line.strip())
    assert lines["Model"].strip() == "StandIn"
    assert lines["Target"].strip() == "price"
    assert lines["Rows"].strip() == "120"
    assert lines["Columns"].strip() == "3"
    assert lines["Iterations"].strip() == str(model.n_iter_)
    assert model.stop_reason_ in text
    assert "n_sweeps" in text
    assert "callbacks" not in text
    assert "90.0 %" in text
    starts = {
        line.index(value)
        for line, value in zip(text.splitlines()[:3], ["StandIn", "price", "120"], strict=True)
    }
    assert len(starts) == 1  # aligned


def test_summary_of_an_estimator_that_tells_little():
    assert summary(object()).split() == ["Model", "object"]


def test_table_is_aligned():
    table = text_table(["model", "x"], [["long name", "1"], ["b", "22"]])
    assert table.splitlines() == ["model       x", "---------  --", "long name   1", "b          22"]


def test_json_has_null_for_what_is_no_number_and_plain_types_for_the_rest():
    table = pd.DataFrame({"x": [1.0, np.nan]}, index=pd.Index(["a", "b"], name="model"))
    record = {
        "a": np.float64("inf"),
        "b": np.arange(2),
        "c": Path("x"),
        "d": (True, None),
        "e": table,
        "f": np.int8(3),
    }
    assert json.loads(to_json(record)) == {
        "a": None, "b": [0, 1], "c": "x", "d": [True, None],
        "e": [{"model": "a", "x": 1.0}, {"model": "b", "x": None}], "f": 3,
    }  # fmt: skip


def test_model_record_is_json():
    model = StandIn().fit(*small_data())
    record = json.loads(to_json(model_record(model)))
    assert record["model"] == "StandIn"
    assert record["converged"] is True
    assert record["columns"] is None
    assert record["settings"] == {"n_sweeps": "10"}

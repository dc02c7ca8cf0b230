from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from nongauss.report.records import model_record, to_json
from report.stand_in import StandIn, small_data


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

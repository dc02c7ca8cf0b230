"""A served model answers as `nongauss predict` writes, whatever serves it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import nongauss
from nongauss.cli.predict import prediction_frame
from nongauss.cli.served import _load_pyfunc

ROWS = pd.DataFrame({"x": [0.1, 0.5, 0.9]}, index=[7, 3, 5])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    x = np.linspace(0, 1, 30)
    model = nongauss.AutoRegressor(candidates=["linear"], calibrate=False, random_state=0)
    model.fit(pd.DataFrame({"x": x}), 3 * x + np.random.default_rng(0).normal(size=30))
    path = tmp_path_factory.mktemp("served") / "line.nongauss"
    nongauss.save(model, path)
    return path


def test_answers_are_those_of_the_command_line_with_the_index_of_the_request(path):
    answer = _load_pyfunc(str(path)).predict(ROWS)
    expected = prediction_frame(nongauss.load(path), ROWS.reset_index(drop=True))
    assert list(answer.index) == [7, 3, 5]
    np.testing.assert_array_equal(answer.to_numpy(), expected.to_numpy())
    assert list(answer.columns) == ["mean", "sd", "lower_90", "upper_90"]


def test_parameters_ask_for_other_columns(path):
    model = _load_pyfunc(str(path.parent))
    answer = model.predict(ROWS, {"keep": "x", "coverage": [50], "quantiles": [0.5]})
    assert list(answer.columns) == ["x", "mean", "sd", "lower_50", "upper_50", "q_0.5"]
    assert list(answer["x"]) == [0.1, 0.5, 0.9]


def test_an_unknown_parameter_is_named(path):
    with pytest.raises(ValueError, match="keep, coverage, quantiles; got 'level'"):
        _load_pyfunc(str(path)).predict(ROWS, {"level": 0.5})

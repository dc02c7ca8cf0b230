from __future__ import annotations

from nongauss.report.text import summary, text_table
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

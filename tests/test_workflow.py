from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nongauss import workflow
from nongauss.core.contracts import InputError
from report.stand_in import StandIn, small_data


def frame(n=60):
    X, y = small_data(n)
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)


def test_rows_without_target_and_ids_are_dropped_with_a_note():
    table = frame().assign(code=[f"id{i}" for i in range(60)], label=["u", "v"] * 30, flat=1.0)
    table.loc[[3, 7], "y"] = np.nan
    ready = workflow.prepare(table, "y")
    assert len(ready.y) == 58
    assert list(ready.X.columns) == ["a", "b", "c", "label", "flat"]
    assert ready.kind == "real"
    assert ready.model == "tggm"
    notes = " ".join(ready.notes)
    assert "2 of 60 rows have no 'y'" in notes
    assert "'code'" in notes
    assert "--model NAME to overrule" in notes
    assert ready.info().used == [("a", "real"), ("b", "real"), ("c", "real"), ("label", "binary")]
    assert [name for name, _ in ready.info().ignored] == ["code", "flat"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "Y_"}, "did you mean 'y'"),
        ({"target": "zzz"}, "there are: 'a', 'b', 'c', 'y'"),
        ({"table": frame().assign(y=np.nan)}, "missing in every row"),
        ({"table": frame().assign(y=["no", "yes"] * 30)}, "no model for that kind"),
        ({"table": frame().assign(y=["no", "yes"] * 30), "model": "tggm"}, "no numbers"),
        ({"table": frame()[["y"]]}, "No column is left"),
        ({"table": frame().iloc[:0]}, "no rows"),
        ({"model": "tgm"}, "did you mean 'tggm'"),
        ({"table": pd.concat([frame(), frame()[["a"]]], axis=1)}, "more than one column named 'a'"),
    ],
)
def test_what_cannot_be_fitted_is_named(change, message):
    arguments = {"table": frame(), "target": "y", "model": "auto", **change}
    with pytest.raises(InputError, match=message):
        workflow.prepare(arguments["table"], arguments["target"], arguments["model"])


def test_numbers_asked_for_as_numbers_overrule_the_kind():
    ready = workflow.prepare(frame().assign(y=[0, 1] * 30), "y", "tggm")
    assert (ready.kind, ready.model) == ("binary", "tggm")


def test_held_out_rows_are_not_seen_and_the_kept_model_has_seen_all():
    ready = workflow.prepare(frame(), "y")
    outcome = workflow.fit_and_judge(StandIn(), ready, test_size=0.25, seed=3, rivals={"other": StandIn()})
    X, y = outcome.held_out
    assert len(y) == 15
    seen = ready.X.index.difference(X.index)
    expected = StandIn().fit(ready.X.loc[seen], ready.y[seen]).predict(X)
    np.testing.assert_allclose(outcome.judged.predict(X), expected)
    np.testing.assert_allclose(outcome.final.predict(X), StandIn().fit(ready.X, ready.y).predict(X))
    assert outcome.metrics["StandIn"]["rmse"] == pytest.approx(np.sqrt(np.mean((expected - y) ** 2)))
    assert set(outcome.metrics) == {"StandIn", "other"}
    assert "fitted on all 60" in outcome.notes[0]


def test_without_refit_the_judged_model_is_kept():
    outcome = workflow.fit_and_judge(StandIn(), workflow.prepare(frame(), "y"), refit=False)
    assert outcome.final is outcome.judged
    assert outcome.n_rows == 48


@pytest.mark.parametrize(("rows", "test_size"), [(9, 0.2), (60, 0)])
def test_nothing_is_held_out_of_few_rows_or_on_request(rows, test_size):
    outcome = workflow.fit_and_judge(
        StandIn(), workflow.prepare(frame(rows), "y", "tggm"), test_size=test_size
    )
    assert outcome.metrics == {}
    assert outcome.held_out is None
    assert "no held-out figures" in outcome.notes[0]


@pytest.mark.parametrize("test_size", [-0.1, 1, 1.5, float("nan")])
def test_share_held_out_must_make_sense(test_size):
    with pytest.raises(InputError, match="held-out share"):
        workflow.fit_and_judge(StandIn(), workflow.prepare(frame(), "y"), test_size=test_size)


@pytest.fixture
def stand_in_model(monkeypatch):
    monkeypatch.setitem(workflow.MODELS, "tggm", ("report.stand_in", "StandIn"))


@pytest.mark.usefixtures("stand_in_model")
def test_settings_reach_the_model():
    model = workflow.build_model("tggm", ["n_sweeps=(3, 4)", "callbacks=none"], seed=5)
    assert model.get_params() == {"n_sweeps": (3, 4), "callbacks": None, "random_state": 5}


@pytest.mark.usefixtures("stand_in_model")
@pytest.mark.parametrize(
    ("setting", "message"), [("n_sweep=3", "did you mean 'n_sweeps'"), ("n_sweeps", "name=value")]
)
def test_settings_that_are_none(setting, message):
    with pytest.raises(InputError, match=message):
        workflow.build_model("tggm", [setting])


def test_outputs_are_checked_before_any_work(tmp_path):
    there, new = tmp_path / "there", tmp_path / "new"
    there.write_text("x")
    workflow.check_outputs({"--out": new})
    workflow.check_outputs({"--out": there}, force=True)
    for outputs, inputs, force, message in (
        ({"--out": there}, [], False, "--force"),
        ({"--out": there}, [there], True, "write over the input"),
        ({"--out": tmp_path}, [], True, "is a folder"),
        ({"--save": new, "--report": tmp_path / "." / "new"}, [], True, "same file"),
        ({"--save": there / "deeper" / "model"}, [], True, "no folder"),
    ):
        with pytest.raises(InputError, match=message):
            workflow.check_outputs(outputs, inputs, force=force)
    assert there.read_text() == "x"


def test_demo_data_are_real():
    table = workflow.demo_table()
    assert table.X.shape == (442, 10)
    assert table.X["age"].between(18, 80).all()

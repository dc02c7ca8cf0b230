"""Model and report are written both or not at all."""

from __future__ import annotations

import pytest

import nongauss
from cli.test_judge import frame
from nongauss.cli import fit_and_report as workflow
from nongauss.cli.judge import fit_and_judge
from nongauss.cli.read import prepare


def outcome_of(ready):
    return fit_and_judge(nongauss.SparseGPRegressor(n_inducing=5, max_iter=5), ready, refit=False)


@pytest.mark.filterwarnings("ignore:.*largest number of iterations")
def test_a_report_that_cannot_be_drawn_does_not_cost_the_model(tmp_path, monkeypatch):
    def no_plot(*_, **__):
        raise RuntimeError("no plot")

    monkeypatch.setattr(workflow, "report_figures", no_plot)
    ready = prepare(frame(), "y", "sparse_gp")
    paths = {"--save": tmp_path / "model", "--report": tmp_path / "report"}
    with pytest.raises(RuntimeError, match="no plot"):
        workflow.save_and_report(outcome_of(ready), ready, paths=paths, title="t")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert nongauss.load(tmp_path / "model").n_features_in_ == 3


@pytest.mark.filterwarnings("ignore:.*largest number of iterations")
def test_a_stop_while_the_report_is_drawn_leaves_neither(tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(workflow, "report_figures", stop)
    ready = prepare(frame(), "y", "sparse_gp")
    paths = {"--save": tmp_path / "model", "--report": tmp_path / "report"}
    with pytest.raises(KeyboardInterrupt):
        workflow.save_and_report(outcome_of(ready), ready, paths=paths, title="t")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.*largest number of iterations")
def test_what_is_being_drawn_is_told(tmp_path, monkeypatch):
    def drawn(*_, **__):
        return []

    monkeypatch.setattr(workflow, "report_figures", drawn)
    monkeypatch.setattr(workflow, "learned_figures", drawn)
    ready, told = prepare(frame(), "y", "sparse_gp"), []
    paths = {"--save": tmp_path / "model", "--report": tmp_path / "report"}
    workflow.save_and_report(outcome_of(ready), ready, paths=paths, title="t", step=told.append)
    assert told == ["drawing the report: what columns do", "drawing the report: rows worth a look"]
    assert {path.name for path in tmp_path.iterdir()} == {"model", "report"}

from __future__ import annotations

import pytest

from cli.test_judge import frame
from nongauss.cli import fit_and_report as workflow
from nongauss.cli.judge import fit_and_judge
from nongauss.cli.read import prepare
from report.stand_in import StandIn


def test_the_model_is_saved_before_the_report_is_drawn(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr("nongauss.estimator.persistence.save", lambda model, path: saved.append(path))

    def no_plot(*_, **__):
        assert saved == [tmp_path / "model"]
        raise RuntimeError("no plot")

    monkeypatch.setattr(workflow, "report_figures", no_plot)
    ready = prepare(frame(), "y")
    outcome = fit_and_judge(StandIn(), ready)
    with pytest.raises(RuntimeError, match="no plot"):
        workflow.save_and_report(
            outcome, ready, model_path=tmp_path / "model", report_path=tmp_path / "report", title="t"
        )

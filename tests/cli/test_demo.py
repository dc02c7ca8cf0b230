"""The demo: counts, a Gaussian rival that is visibly wrong, and a verdict that says by how much."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nongauss.cli.app import app
from nongauss.cli.demo import GAUSSIAN, calls, demo_table


def test_the_calls_follow_the_law_that_is_stated():
    table = calls(200_000, seed=1)
    night = table.query("hour == 3 and day == 'Tue' and 2 < temperature < 18")["calls"]
    rate = np.exp(0.6 + 1.5 * np.cos(2 * np.pi * 10 / 24) + 0.7 * np.cos(2 * np.pi * 6 / 12))
    assert night.mean() == pytest.approx(rate, rel=0.1)
    assert night.var() == pytest.approx(rate + rate**2 / 3, rel=0.25)  # Poisson with a gamma of variance 1/3
    peak = table.query("hour == 12 and day == 'Tue' and 2 < temperature < 18")["calls"]
    weekend = table.query("hour == 12 and day == 'Sun' and 2 < temperature < 18")["calls"]
    assert peak.mean() > 3 * weekend.mean()


def test_it_is_read_as_any_table():
    table = demo_table()
    assert (table.kind.value, len(table.y)) == ("count", 1000)
    assert table.choice.settings["likelihood"] == "negative_binomial"


README_ROWS = {
    "`SparseGPRegressor`, negative binomial": "SparseGPRegressor",
    "the same with Gaussian noise": GAUSSIAN,
    "gradient-boosted trees": "gradient-boosted trees",
    "log-linear regression": "log-linear regression",
}
"""The rows of the README's table, and the names of the models in the demo's figures."""


def readme_row(name: str) -> list[str]:
    """The cells of the row of the README's first table that begins with `name`."""
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    line = next(line for line in text.split("\n") if line.startswith(f"| {name} |"))
    return line.strip("|").split("|")[1:]


@pytest.mark.gate
def test_the_verdict_says_how_far_ahead_of_a_gaussian(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["verdict"]["worth"] == "better"
    assert f"Better than {GAUSSIAN}" in record["verdict"]["sentences"][-1]
    ours, theirs = (record["held_out"][name]["log_density"] for name in ("SparseGPRegressor", GAUSSIAN))
    assert ours > theirs + 0.3
    assert record["held_out"]["SparseGPRegressor"]["coverage_90"] > 0.85
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.nongauss", "report.html"]
    assert "90 % intervals of both models" in (tmp_path / "report.html").read_text(encoding="utf-8")
    for row, name in README_ROWS.items():
        shown = [float(cell.strip(" *%")) for cell in readme_row(row)]
        found = record["held_out"][name]
        assert shown == pytest.approx(
            [found["log_density"], found["crps"], 100 * found["coverage_90"]], rel=0.02, abs=0.01
        )
    again = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert again.exit_code == 2
    assert "--force" in again.stderr

"""How often `nongauss fit` and `nongauss predict` read a table."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from nongauss.cli.app import app
from nongauss.tables import frame

MOST_READINGS = 7
"""Of a column: to understand it, for one panel, and by each of five folds for the band of that panel."""

N_ROWS, FEW = 80, 16
"""Rows of the table, and those that a model keeps to explain with: how it reads these is checked alone."""


@pytest.fixture
def readings(monkeypatch):
    """Counts, by column, how often its cells are decoded; the values of a dependence plot count as well.

    A few rows alone are no reading of the table.
    """
    counts = Counter()
    decode = frame.decode

    def counted(name, raw):
        counts[name] += len(raw) > FEW
        return decode(name, raw)

    monkeypatch.setattr(frame, "decode", counted)
    return counts


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    x = pd.DataFrame(
        {"a": rng.normal(size=N_ROWS), "b": rng.normal(size=N_ROWS), "c": rng.choice(list("xyz"), N_ROWS)}
    )
    y = 2 * x["a"] + rng.normal(size=N_ROWS)
    path = tmp_path / "x.csv"
    x.assign(y=y, kind=np.where(y > 0, "up", "down"), n=rng.poisson(np.exp(0.5 * x["a"]))).to_csv(
        path, index=False
    )
    return path


def run(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("target", "options"),
    [
        pytest.param("y", ["--model", "tggm", "--max-epochs", "2"], marks=pytest.mark.gate),
        pytest.param(
            "n",
            ["--model", "sparse_gp", "--max-epochs", "2", "--set", "n_inducing=5"],
            marks=pytest.mark.gate,
        ),
        ("kind", ["--model", "sparse_gp", "--max-epochs", "2", "--set", "n_inducing=5"]),
        pytest.param(
            "kind",
            ["--model", "harmonium", "--max-epochs", "2", "--set", "n_components=3"],
            marks=pytest.mark.gate,
        ),
        pytest.param(
            "kind",
            ["--model", "rank_factor", "--max-epochs", "2", "--set", "n_factors=1"],
            marks=pytest.mark.gate,
        ),
    ],
)
def test_a_fit_with_its_report_reads_the_table_few_times(table, tmp_path, readings, target, options):
    run("fit", table, "--target", target, "--out", tmp_path / "out", *options)
    assert {"a", "b", "c"} <= set(readings)
    assert max(readings.values()) <= MOST_READINGS, readings


@pytest.mark.gate
def test_predictions_read_it_once(table, tmp_path, readings):
    out = tmp_path / "out"
    run("fit", table, "--target", "kind", "--out", out, "--max-epochs", "2", "--set", "n_inducing=5")
    readings.clear()
    run("predict", out / "model.nongauss", table, "--out", tmp_path / "p.csv")
    assert max(readings.values()) == 1, readings

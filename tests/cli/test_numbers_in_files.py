"""Tables of strange numbers through the command line: an exit code, one sentence, and finite answers."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from nongauss.cli.app import app

N = 40
RNG = np.random.default_rng(0)
A, Y = RNG.normal(size=(2, N)).round(3)
SPAN = RNG.integers(1, 1000, N)
COLUMNS = {
    "huge": pa.array(np.where(np.arange(N) == 3, 1e200, A)),
    "subnormal": pa.array(A * 5e-320),
    "integers beyond 2**53": pa.array(2**53 + 1 + SPAN),
    "unsigned": pa.array(np.where(A > 0, np.iinfo(np.uint64).max, SPAN).astype(np.uint64)),
    "decimal": pa.array([Decimal(str(x)) for x in A], pa.decimal128(10, 3)),
    "decimal256": pa.array([Decimal(10) ** 60 + int(x) for x in SPAN], pa.decimal256(70, 0)),
    "duration": pa.array([dt.timedelta(minutes=int(x)) for x in SPAN]),
    "time of day": pa.array([dt.time(int(x) % 24, int(x) % 60) for x in SPAN]),
    "half": pa.array(A.astype(np.float16)),
    "bytes": pa.array([bytes([int(x) % 256]) for x in SPAN]),
    "nothing": pa.nulls(N),
}
COMMANDS = {
    "sparse_gp": ["fit", "t.parquet", "--target", "y", "--model", "sparse_gp", "--set", "max_iter=3"],
    "cluster": ["cluster", "t.parquet", "--clusters", "2"],
    "impute": ["impute", "t.parquet", "--model", "rank_factor"],
}


def run(folder, monkeypatch, command, column):
    monkeypatch.chdir(folder)
    pq.write_table(pa.table({"a": A, "b": COLUMNS[column], "y": Y}), "t.parquet")
    out = ["--out", "f.parquet"] if command == "impute" else ["--out", "o"]
    outcome = CliRunner().invoke(app, [*COMMANDS[command], *out])
    if outcome.exit_code:
        assert outcome.exit_code == 2, (outcome.output, outcome.exception)
        said = [line for line in outcome.stderr.splitlines() if not re.match(r"\d+ s  ", line)]  # of progress
        assert len(said) == 1
        assert said[0].startswith("Error: ")
        assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == ["t.parquet"]
        return
    if command == "impute":
        answers = pd.read_parquet("f.parquet")
    else:
        told = CliRunner().invoke(app, ["predict", "o/model.nongauss", "t.parquet", "--out", "p.csv"])
        assert told.exit_code == 0, (told.output, told.exception)
        answers = pd.read_csv("p.csv")
    numbers = answers.drop(columns="b", errors="ignore").select_dtypes("number")
    assert len(numbers) == N
    assert np.isfinite(numbers.to_numpy()).all()


@pytest.mark.gate
@pytest.mark.parametrize("number", range(len(COLUMNS)), ids=list(COLUMNS))
def test_such_a_column_in_a_file(tmp_path, monkeypatch, number):
    """Each column by one command, in turn."""
    run(tmp_path, monkeypatch, list(COMMANDS)[number % len(COMMANDS)], list(COLUMNS)[number])

"""Where commands may not write or read: each refused by its name, with every file as it was."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import nongauss
from nongauss.cli.app import app

WRITERS = {
    "predict": ["predict", "m", "t.csv", "--force", "--out"],
    "impute": ["impute", "t.csv", "--force", "--out"],
    "cluster": ["cluster", "t.csv", "--force", "--save"],
    "fit": ["fit", "t.csv", "--target", "y", "--force", "--save"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table, a model, and all that is no file."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 4)), columns=list("abcy"))
    table.to_csv(tmp_path / "t.csv", index=False)
    model = nongauss.SparseGPRegressor(n_inducing=3, max_iter=2)
    with pytest.warns(UserWarning, match="iterations"):
        nongauss.save(model.fit(table[["a", "b", "c"]], table["y"]), tmp_path / "m")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("pool")
    (tmp_path / "pool").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    os.link(tmp_path / "t.csv", tmp_path / "other-name.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(*words):
    """The sentence that a command ends with."""
    outcome = CliRunner().invoke(app, list(words))
    assert outcome.exit_code == 2, outcome.output
    said = [line for line in outcome.stderr.splitlines() if not re.match(r"\d+ s  ", line)]  # of progress
    assert len(said) == 1
    assert said[0].startswith("Error: ")
    return said[0]


@pytest.mark.parametrize("command", WRITERS)
def test_a_command_writes_only_to_files_that_are_no_input(folder, command):
    before = {path.name: path.lstat().st_mtime_ns for path in folder.iterdir()}
    for place, why in (
        ("pipe", "device or a pipe"),
        ("/dev/null", "device or a pipe"),
        ("folder", "folder"),
        ("loop", "leads back to itself"),
        ("t.csv", "write over the input"),
        ("other-name.csv", "write over the input"),
        ("t.csv/deeper", "no folder"),
    ):
        said = refused(*WRITERS[command], place)
        assert why in said, said
        assert place.split("/deeper")[0] in said
    assert {path.name: path.lstat().st_mtime_ns for path in folder.iterdir()} == before


READERS = [["predict", "m"], ["cluster"], ["score", "m"], ["describe"], ["impute"]]


@pytest.mark.parametrize("command", READERS, ids=lambda words: words[0])
def test_a_command_reads_only_files(folder, command):
    out = [] if command[0] in ("describe", "score") else ["--out", "new.csv"]
    for place in ("pipe", "/dev/null", "loop", "nowhere.csv"):
        assert place.split("/")[-1] in refused(*command, place, *out)
    assert not (folder / "new.csv").exists()


@contextlib.contextmanager
def files_of_at_most(size):
    """No file of this process may grow past this size, as on a full disk."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize(
    ("command", "out"),
    [
        (["predict", "m", "t.csv", "--out"], "p.csv"),
        (["predict", "m", "t.csv", "--out"], "p.parquet"),
        (["predict", "m", "t.csv", "--out"], "p.csv.gz"),
        pytest.param(["impute", "t.csv", "--model", "rank_factor", "--out"], "p.csv", marks=pytest.mark.gate),
        pytest.param(["cluster", "t.csv", "--clusters", "2", "--out"], "o", marks=pytest.mark.gate),
    ],
)
def test_a_full_disk_names_the_file_and_leaves_none(folder, command, out):
    before = sorted(path.name for path in folder.iterdir())
    with files_of_at_most(1000):
        said = refused(*command, out)
    assert out in said
    assert "too large" in said
    assert sorted(path.name for path in folder.iterdir() if path.name != "o") == before
    assert not (folder / "o").exists() or list((folder / "o").iterdir()) == []

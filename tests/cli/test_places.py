"""Where commands may not write or read: each refused by its name, with every file as it was."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import nongauss
from nongauss.cli.app import app
from nongauss.cli.conduct import command
from nongauss.cli.fit_and_report import write_both

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


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_a_command_writes_only_to_files_that_are_no_input(folder, words):
    before = {path.name: path.lstat().st_mtime_ns for path in folder.iterdir()}
    for place, why in (
        ("pipe", "device or a pipe"),
        ("/dev/null", "device or a pipe"),
        ("folder", "folder"),
        ("loop", "leads back to itself"),
        ("t.csv", "write over the input"),
        ("other-name.csv", "write over the input"),
        ("t.csv/deeper", "not a folder"),
    ):
        said = refused(*words, place)
        assert why in said, said
        assert place.split("/deeper")[0] in said
    assert {path.name: path.lstat().st_mtime_ns for path in folder.iterdir()} == before


READERS = [["predict", "m"], ["cluster"], ["score", "m"], ["describe"], ["impute"]]


@pytest.mark.parametrize("words", READERS, ids=lambda words: words[0])
def test_a_command_reads_only_files(folder, words):
    out = [] if words[0] in ("describe", "score") else ["--out", "new.csv"]
    for place in ("pipe", "/dev/null", "loop", "nowhere.csv"):
        assert place.split("/")[-1] in refused(*words, place, *out)
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
    ("words", "out"),
    [
        (["predict", "m", "t.csv", "--out"], "p.csv"),
        (["predict", "m", "t.csv", "--out"], "p.parquet"),
        (["predict", "m", "t.csv", "--out"], "p.csv.gz"),
        pytest.param(["impute", "t.csv", "--model", "rank_factor", "--out"], "p.csv", marks=pytest.mark.gate),
        pytest.param(["cluster", "t.csv", "--clusters", "2", "--out"], "o", marks=pytest.mark.gate),
    ],
)
def test_a_full_disk_names_the_file_and_leaves_none(folder, words, out):
    before = sorted(path.name for path in folder.iterdir())
    with files_of_at_most(1000):
        said = refused(*words, out)
    assert out in said
    assert "too large" in said
    assert sorted(path.name for path in folder.iterdir() if path.name != "o") == before
    assert not (folder / "o").exists() or list((folder / "o").iterdir()) == []


IN_A_FOLDER_OF_OTHERS = """
import contextlib, io, json, sys, warnings
import numpy as np, pandas as pd
import nongauss
from nongauss.cli.app import app
from nongauss.tables.files import read_table, write_table

warnings.simplefilter("ignore")
table, model = pd.read_csv("t.csv"), nongauss.load("m")
X = table[["a", "b"]]

said = {}
for name, work in {
    "save": lambda: nongauss.save(model, "theirs/new"),
    "save over": lambda: nongauss.save(model, "theirs/m"),
    "csv": lambda: write_table(table, "theirs/new.csv"),
    "parquet": lambda: write_table(table, "theirs/new.parquet"),
    "checkpoint": lambda: nongauss.RectangleMixture(2, checkpoint="theirs/state").fit(X),
    "load": lambda: nongauss.load("hidden/m"),
    "load closed": lambda: nongauss.load("closed"),
    "read": lambda: read_table("hidden/t.csv"),
    "read closed": lambda: read_table("closed.csv"),
}.items():
    try:
        work()
        said[name] = "done"
    except (OSError, ValueError) as error:
        said[name] = str(error)
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as heard, contextlib.suppress(SystemExit):
        app(words)
    said[" ".join(words)] = " ".join(heard.getvalue().split())
print(json.dumps(said))
"""


# What is started so may write where its user may, though that be root; no fork of a process with threads.
WITHOUT_THE_RIGHTS_OF_ROOT = """
import ctypes, os, sys

if os.geteuid() == 0:
    for right in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, right, 0, 0, 0)  # PR_CAPBSET_DROP
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@pytest.mark.gate
@pytest.mark.skipif(sys.platform != "linux", reason="how root gives up its rights is Linux's")
def test_a_folder_where_one_may_not_write_is_named_before_any_work(folder):
    for name in ("theirs", "hidden"):
        (folder / name).mkdir()
        shutil.copy(folder / "m", folder / name)
        shutil.copy(folder / "t.csv", folder / name)
    for name in ("closed", "closed.csv"):
        shutil.copy(folder / "t.csv", folder / name)
        (folder / name).chmod(0)
    commands = [[*words[:-2], "--out", "theirs/new.csv"] for words in (WRITERS["predict"], WRITERS["impute"])]
    commands += [
        [*WRITERS[name][:-2], "--out", "theirs", *more]
        for name in ("cluster", "fit")
        for more in ([], ["--force"])
    ]
    commands += [["cluster", "t.csv", "--out", "theirs/deeper"], ["describe", "hidden/m"]]
    commands += [[*WRITERS["fit"][:-2], "--out", ".", "--report", "theirs/new.html"]]
    (folder / "theirs").chmod(0o555)
    (folder / "hidden").chmod(0)
    try:
        ended = subprocess.run(
            [
                sys.executable,
                *("-c", WITHOUT_THE_RIGHTS_OF_ROOT),
                *("-c", IN_A_FOLDER_OF_OTHERS, json.dumps(commands)),
            ],
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
        )
    finally:
        (folder / "hidden").chmod(0o755)
    said = json.loads(ended.stdout.splitlines()[-1])
    for name, sentence in said.items():
        assert "Permission denied" in sentence or "may not write" in sentence or "no right" in sentence, said
        assert ".nongauss-" not in sentence, sentence  # a name of our own
        assert any(place in sentence for place in ("theirs", "hidden", "closed")), sentence
        assert "damaged" not in sentence, sentence
        assert "link" not in sentence, sentence
        assert len(name.split()) < 3 or sentence.count("Error: ") == 1, sentence
    assert sorted(path.name for path in (folder / "theirs").iterdir()) == ["m", "t.csv"]
    assert not (folder / "model.nongauss").exists()


def test_a_model_that_is_there_without_its_report_is_told_of(folder, capsys):
    def full(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    paths = {"--save": folder / "Mine" / "model.nongauss", "--report": folder / "Mine" / "report.html"}
    model = nongauss.load(folder / "m")
    with pytest.raises(typer.Exit), command(quiet=True):
        write_both(model, paths, full)
    at = paths["--save"]
    error = f"Error: {paths['--report']}: No space left on device. Written before: {at}.\n"
    assert capsys.readouterr().err == error
    assert [path.name for path in at.parent.iterdir()] == ["model.nongauss"]
    nongauss.load(at)

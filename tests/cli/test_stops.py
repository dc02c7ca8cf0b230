"""Ctrl-C and SIGTERM in the middle of a command: all of its files or none, one sentence, an exit code."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import nongauss

# The log of the command has a line at once and then without end, so that a test knows where it is.
TALKATIVE = """
from nongauss.cli import progress
progress.FIRST_LINE = progress.NEXT_LINE = 0.002
from nongauss.cli import app
app()
"""
LONG = ["--set", "max_iter=100000", "--set", "tol=0.0", "--set", "n_inducing=60"]
FIT = ["fit", "data.csv", "--target", "y", "--model", "sparse_gp", "--out", "out"]
COMPILED = ["fit", "wide.csv", "--target", "y", "--model", "tggm", "--out", "out"]
CLUSTER = ["cluster", "data.csv", "--out", "out"]
MORE = [
    (FIT, "starting", signal.SIGTERM),
    (FIT, "for comparison: ", signal.SIGTERM),
    (FIT, "fitting all rows", signal.SIGTERM),
    (FIT, "drawing", signal.SIGINT),
    (COMPILED, r"fitting for evaluation: \d+ of", signal.SIGTERM),
    (CLUSTER, "clustering", signal.SIGTERM),
    (CLUSTER, "drawing", signal.SIGTERM),
    (["predict", "m", "many.csv", "--out", "out.csv"], "predicting", signal.SIGTERM),
]


def stopped(folder, arguments, moment, number, in_background=False):
    """The exit code and stderr of a command that gets a signal when its log says `moment`, an expression.

    Shells have what runs `in_background` ignore Ctrl-C from the start.
    """
    ignored = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" * in_background
    command = [sys.executable, "-c", ignored + TALKATIVE, *arguments]
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ.copy()
    ) as process:
        said = []
        for line in process.stderr:
            said.append(line)
            if re.search(moment, line):
                process.send_signal(number)
                break
        else:
            pytest.fail(f"never came to {moment!r}: {said[-3:]}")
        said += process.stderr.readlines()
        assert "Saved" not in process.stdout.read()
        return process.wait(timeout=60), said


@pytest.fixture
def folder(files):
    """The folder of the tables without what a test before may have left."""
    shutil.rmtree(files / "out", ignore_errors=True)
    shutil.rmtree(files / "state", ignore_errors=True)
    return files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stops")
    rng = np.random.RandomState(0)
    X = rng.normal(size=(300, 3))
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=X[:, 0] + 0.1 * rng.normal(size=300))
    table.to_csv(folder / "data.csv", index=False)
    nongauss.save(
        nongauss.SparseGPRegressor(n_inducing=5).fit(table[["a", "b", "c"]], table["y"]), folder / "m"
    )
    pd.concat([table] * 300).to_csv(folder / "many.csv", index=False)
    wide = pd.DataFrame(rng.normal(size=(60_000, 4)), columns=["a", "b", "c", "y"]).round(4)
    wide.to_csv(folder / "wide.csv", index=False)
    return folder


@pytest.mark.parametrize(
    ("arguments", "moment", "number"),
    [
        (FIT, "reading", signal.SIGINT),
        ([*FIT, *LONG], r"fitting for evaluation: \d+ of", signal.SIGTERM),
        ([*FIT, *LONG], r"fitting for evaluation: \d+ of", signal.SIGINT),
        (FIT, "drawing", signal.SIGTERM),
        *(pytest.param(*case, marks=pytest.mark.gate) for case in MORE),
    ],
)
def test_all_files_or_none(folder, arguments, moment, number):
    before = sorted(path.name for path in folder.iterdir())
    code, said = stopped(folder, arguments, moment, number)
    assert code == 128 + number, said[-3:]
    name = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}[number]
    assert said[-1] == f"Error: Stopped by {name}; no file was written.\n"
    assert not any("Traceback" in line for line in said)
    left = [path.name for path in (folder / "out").iterdir()] if (folder / "out").exists() else []
    assert left == []
    assert sorted(path.name for path in folder.iterdir() if path.name != "out") == [
        name for name in before if name != "out"
    ]


@pytest.mark.gate
def test_a_stopped_fit_says_that_its_checkpoint_goes_on(folder):
    long = [*FIT, *LONG, "--checkpoint", "state", "--no-refit"]
    code, said = stopped(folder, long, r"fitting for evaluation: \d+ of", signal.SIGTERM)
    assert code == 143
    assert said[-1].startswith("Error: Stopped by SIGTERM; the state is saved in state")
    assert (folder / "state").exists()


@pytest.mark.gate
def test_a_job_in_the_background_is_stopped_in_a_compiled_fit(folder):
    moment = r"fitting for evaluation: \d+ of"
    code, said = stopped(folder, COMPILED, moment, signal.SIGINT, in_background=True)
    assert code == 130
    assert said[-1] == "Error: Stopped by Ctrl-C; no file was written.\n"
    assert not (folder / "out" / "model.nongauss").exists()


EARLY = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it

class Now:
    def find_spec(self, name, path=None, target=None):
        if name == "nongauss.cli.app":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Now())
import nongauss.cli
"""


def test_ctrl_c_before_the_command_is_imported_ends_it_without_a_traceback():
    ended = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")


IN_A_TEXT = """
import typer
from nongauss.cli.conduct import command

app = typer.Typer()

@app.command()
def go():
    with command(quiet=True):
        exec("import os, signal; os.kill(os.getpid(), signal.SIGTERM); sum(range(9))")

app()
"""


def test_the_exit_code_is_that_of_the_signal_wherever_it_comes(tmp_path):
    """`python -m` ends by SIGINT after a KeyboardInterrupt in a text that is run, as dataclasses do."""
    (tmp_path / "in_a_text.py").write_text(IN_A_TEXT)
    command = [sys.executable, "-m", "in_a_text"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (143, "Error: Stopped by SIGTERM; no file was written.\n")

"""Fits that are stopped, interrupted or killed go on from their file and end as if they had not been."""

import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from nongauss import (
    Harmonium,
    HarmoniumClassifier,
    HarmoniumRegressor,
    RectangleMixture,
    SparseGPClassifier,
    SparseGPOrdinalClassifier,
    SparseGPRegressor,
    TGGMRegressor,
)
from nongauss.core.errors import InputError
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.rectangle import criterion
from nongauss.sparse_gp import params as gp_params
from nongauss.sparse_gp import streamed_posterior as passes

N = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).round(3)
X[RNG.random(X.shape) < 0.05] = np.nan
RATE = np.exp(np.sin(2.0 * np.nan_to_num(X[:, 0])))
COUNT, REAL = RNG.poisson(RATE), RATE + 0.1 * RNG.normal(size=N)
LABEL = np.digitize(RATE, [0.7, 2.0])
REAL_CELLS = np.nan_to_num(X) + 3.0 * (LABEL == 1)[:, None]
BITS = (RNG.random((N, 12)) < 0.2 + 0.6 * (RNG.random((N, 3)) < 0.3)[:, np.arange(12) % 3]).astype(float)

FITS = {  # model, table, target, the call of the callback that stops it
    "gp": (SparseGPRegressor("poisson", n_inducing=8, max_iter=30, random_state=0), X, COUNT, 11),
    "gp_second_member": (SparseGPRegressor(n_inducing=8, max_iter=20, random_state=0), X, REAL, 27),
    "gp_exact": (SparseGPRegressor(max_iter=20, random_state=0), X[:60], REAL[:60], 7),
    "gp_labels": (SparseGPClassifier(n_inducing=6, max_iter=15, random_state=0), X, LABEL, 5),
    "gp_mixture": (
        SparseGPRegressor("poisson", posterior="mixture", n_inducing=5, max_iter=10, random_state=0),
        X[:80],
        COUNT[:80],
        14,
    ),
    "tggm": (TGGMRegressor((5,), n_members=2, max_epochs=40, random_state=0), X, REAL, 1),
    "rectangle": (RectangleMixture(random_state=0), REAL_CELLS, None, 1),
    "harmonium_chain": (Harmonium(max_epochs=60, random_state=0), BITS, None, 15),
    "harmonium_global": (
        Harmonium(truncation=8, reading="global", max_epochs=8, random_state=0),
        BITS,
        None,
        3,
    ),
    "harmonium_chains": (
        Harmonium(5, method="pcd", early_stopping=True, max_epochs=40, random_state=0),
        BITS,
        None,
        4,
    ),
    "harmonium_lbfgs": (
        Harmonium(truncation=6, reading="global", method="lbfgs", max_epochs=40, random_state=0),
        BITS,
        None,
        7,
    ),
    "harmonium_labels": (HarmoniumClassifier(max_epochs=8, random_state=0), BITS, LABEL, 3),
    "harmonium_numbers": (HarmoniumRegressor(4, max_epochs=8, random_state=0), BITS, LABEL, 3),
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*largest number of iterations"),
    pytest.mark.filterwarnings("ignore:.*activations are outside"),
    pytest.mark.filterwarnings("ignore:.*Stopped on request"),
]


class Observer:
    """A callback that hears of iterations, and stops the fit at its call number `last`."""

    def __init__(self, last=None):
        self.last, self.heard = last, []

    def __call__(self, progress):
        self.heard.append(progress.iteration)
        return len(self.heard) == self.last


def answers(model, table):
    """All that a model says of rows."""
    names = [name for name in ("predict_proba", "transform", "predict") if hasattr(model, name)]
    return [getattr(model, name)(table) for name in names]


def assert_same(model, other, table):
    assert_array_equal(model.trace_["bound"], other.trace_["bound"])
    assert model.stop_reason_ == other.stop_reason_
    for mine, its in zip(answers(model, table), answers(other, table), strict=True):
        assert_array_equal(mine, its)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "gp" else pytest.mark.gate) for name in FITS]
)
def test_a_fit_that_was_stopped_goes_on_to_the_same_bits(name, tmp_path):
    model, table, target, last = FITS[name]
    everything, rest, path = Observer(), Observer(), tmp_path / "fit"
    whole = clone(model).set_params(callbacks=[everything]).fit(table, target)
    clone(model).set_params(callbacks=[Observer(last)], checkpoint=path).fit(table, target)
    assert path.exists()
    resumed = clone(model).set_params(callbacks=[rest], checkpoint=path).fit(table, target)
    assert_same(resumed, whole, table)
    if hasattr(whole, "criterion_"):
        assert resumed.criterion_ == whole.criterion_
    if name != "tggm":  # whose chunks are cut by time
        assert rest.heard == everything.heard[last:]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.gate
def test_numbers_of_clusters_that_were_tried_are_not_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    model, cloud = RectangleMixture(n_init=2, random_state=0), np.random.default_rng(0).normal(size=(100, 2))
    whole, tried, tasks, fit = clone(model).fit(cloud), [], [], criterion.fit

    def watched(task, recipe, run):
        tasks.append(task)
        if task is tasks[0]:  # others are tables to compare with
            tried.append(recipe.n_clusters)
            if recipe.n_clusters == broken:
                raise KeyboardInterrupt
        return fit(task, recipe, run)

    monkeypatch.setattr(criterion, "fit", watched)
    model.set_params(checkpoint=tmp_path / "fit")
    numbers = list(whole.criterion_)
    broken = numbers[2]
    with pytest.raises(KeyboardInterrupt):
        clone(model).fit(cloud)
    broken = None
    tried.clear()
    tasks.clear()
    resumed = clone(model).fit(cloud)
    assert tried == numbers[2:]
    assert resumed.criterion_ == whole.criterion_
    assert_same(resumed, whole, cloud)


def test_passes_over_a_table_in_parts_are_not_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    monkeypatch.setattr(gp_params, "KEPT_NUMBERS", 8 * 100)
    for i in range(3):
        frame = pd.DataFrame(X[100 * i : 100 * i + 100], columns=list("abc"))
        frame.assign(y=COUNT[100 * i : 100 * i + 100]).to_parquet(tmp_path / f"{i}.parquet")
    model = SparseGPRegressor("poisson", n_inducing=8, max_iter=10, random_state=0)
    whole, calls, one_pass = clone(model).fit(str(tmp_path), "y"), [], passes.next_sums

    def next_sums(*args):
        calls.append(1)
        if len(calls) == most:
            raise KeyboardInterrupt
        return one_pass(*args)

    monkeypatch.setattr(passes, "next_sums", next_sums)
    kept, most = tmp_path / "kept", 8  # in the third pass
    with pytest.raises(KeyboardInterrupt):
        clone(model).set_params(checkpoint=kept).fit(str(tmp_path), "y")
    calls.clear()
    most, observer = -1, Observer()
    resumed = clone(model).set_params(checkpoint=kept, callbacks=[observer]).fit(str(tmp_path), "y")
    n_resumed = len(calls)
    assert_same(resumed, whole, pd.DataFrame(X, columns=list("abc")))
    assert observer.heard == []
    calls.clear()
    clone(model).fit(str(tmp_path), "y")
    assert n_resumed == len(calls) - 6
    assert not kept.exists()


def test_a_file_of_a_table_in_parts_that_was_changed_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(gp_params, "KEPT_NUMBERS", 8 * 100)
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=COUNT.astype(float))
    frame.to_parquet(tmp_path / "0.parquet", row_group_size=100)
    model = SparseGPRegressor("poisson", n_inducing=8, max_iter=10, random_state=0)
    model.set_params(checkpoint=tmp_path / "kept")
    clone(model).set_params(callbacks=[Observer(2)]).fit(str(tmp_path / "0.parquet"), "y")
    first, second = np.flatnonzero(COUNT[0] != COUNT)[0], 0
    frame.loc[[first, second], "y"] = frame.loc[[second, first], "y"].to_numpy()  # all sums stay
    frame.to_parquet(tmp_path / "0.parquet", row_group_size=100)
    with pytest.raises(InputError, match="other data or parameters"):
        clone(model).fit(str(tmp_path / "0.parquet"), "y")


FIT = """
from nongauss import {imports}
from nongauss.optimise.checkpoint import Checkpoint

Checkpoint.due = lambda self: True
told = [lambda progress: print(progress.iteration, flush=True)]
{model}.set_params(callbacks=told, checkpoint={path!r}).fit({folder!r}, {target!r})
"""


@pytest.mark.gate
@pytest.mark.parametrize(
    ("model", "target"),
    [
        ("SparseGPRegressor('poisson', n_inducing=60, max_iter=40, random_state=0)", "y"),
        ("Harmonium(16, max_epochs=60, random_state=0)", None),
    ],
)
def test_a_killed_process_leaves_what_its_fit_goes_on_from(model, target, tmp_path):
    rng, folder, path = np.random.default_rng(1), tmp_path / "parts", tmp_path / "fit"
    folder.mkdir()
    for i in range(3):
        frame = pd.DataFrame((rng.random((1000, 10)) < 0.3).astype(float)).add_prefix("x")
        frame = frame.assign(y=rng.poisson(np.exp(frame.x0 - frame.x1)))
        frame.drop(columns=[] if target else "y").to_parquet(folder / f"{i}.parquet")
    code = FIT.format(
        imports=model.split("(")[0], model=model, path=str(path), folder=str(folder), target=target
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        while process.stdout.readline().strip() != "8":
            assert process.poll() is None, "the fit ended before it was killed"
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL
    finally:
        process.kill()
        process.stdout.close()
    observer = Observer()
    fresh = eval(model)
    whole = clone(fresh).fit(str(folder), target)
    resumed = fresh.set_params(checkpoint=path, callbacks=[observer]).fit(str(folder), target)
    assert 1 < observer.heard[0] <= 8 + 20  # it ran on until it was dead
    assert len(observer.heard) + observer.heard[0] - 1 == whole.n_iter_
    table = pd.read_parquet(folder / "0.parquet").drop(columns="y", errors="ignore")
    assert_same(resumed, whole, table)
    assert [item.name for item in tmp_path.iterdir()] == ["parts"]


def test_a_file_of_other_rows_or_settings_is_refused(tmp_path):
    path = tmp_path / "fit"
    model = SparseGPRegressor("poisson", n_inducing=8, max_iter=30, random_state=0)
    model.set_params(checkpoint=path, callbacks=[Observer(2)]).fit(X, COUNT)
    for other, table, target in (
        (clone(model), X + 1.0, COUNT[::-1]),
        (clone(model).set_params(tol=0.1), X, COUNT),
        (clone(model).set_params(random_state=1), X, COUNT),
        (SparseGPRegressor(checkpoint=path), X, COUNT),
    ):
        with pytest.raises(InputError, match="other data or parameters") as error:
            other.fit(table, target)
        assert os.fspath(path) in str(error.value)
    grades = [pd.Categorical(LABEL, levels, ordered=True) for levels in ([0, 1, 2], [0, 1, 2, 3])]
    ordinal = SparseGPOrdinalClassifier(n_inducing=6, checkpoint=tmp_path / "grades", random_state=0)
    clone(ordinal).set_params(callbacks=[Observer(2)]).fit(X, grades[0])
    with pytest.raises(InputError, match="other data or parameters"):
        clone(ordinal).fit(X, grades[1])
    with pytest.raises(InputError, match="folder does not exist"):
        model.set_params(checkpoint=tmp_path / "none" / "fit").fit(X, COUNT)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: os.mkfifo(path), "a pipe"),
        (lambda path: path.symlink_to(path), "loop|back to itself"),
        (lambda path: path.mkdir(), "it is a folder"),
        (
            lambda path: path.with_name("state.lock").symlink_to(path.with_name("mine")),
            "state.lock beside it",
        ),
        (lambda path: path.symlink_to(path.with_name("mine")), "cannot be read"),
    ],
)
def test_a_checkpoint_is_a_file_of_its_own_and_nothing_else_is_touched(tmp_path, make, why):
    """A pipe would be waited for without end."""
    (tmp_path / "mine").write_text("keep me")
    make(tmp_path / "state")
    before = sorted(path.name for path in tmp_path.iterdir())
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(InputError, match=f"(?i){why}"):
        RectangleMixture(2, n_init=1, max_iter=3, checkpoint=tmp_path / "state").fit(X)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert (tmp_path / "mine").read_text() == "keep me"

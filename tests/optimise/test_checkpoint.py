import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nongauss.core.device import key_from_seed
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.core.records import leaves_of
from nongauss.core.sealed import write_sealed
from nongauss.optimise.checkpoint import Checkpoint, SetAside, computed_once
from nongauss.optimise.compiled import compiled
from nongauss.optimise.course import Rule, Run, Snapshot, Status
from nongauss.optimise.loop import open_checkpoint, run

SLOW_FIT = """
import jax, jax.numpy as jnp
from nongauss.core.device import key_from_seed
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.compiled import compiled
from nongauss.optimise.course import Rule
from nongauss.optimise.loop import run
from nongauss.optimise.course import Run

def step(key, state, rows):
    x = jax.lax.fori_loop(0, 1000, lambda i, x: jnp.sin(x) + 0.1, state["x"])
    x = x + 0.01 * jax.random.normal(key, x.shape)
    walk, draw = jax.random.split(state["walk"])
    return {"x": x, "walk": walk}, {"bound": x.sum(), "draw": jax.random.normal(draw)}

def fit(checkpoint, *callbacks):
    state = {"x": jnp.zeros(10), "walk": key_from_seed(5)}
    watching, adapter = Run(callbacks, checkpoint), compiled(step, None, air_seconds=0.02)
    return run(adapter, state, watching, Rule(4000), name="walk", key=key_from_seed(0))
"""


def step(key, state, rows):
    return state + 1.0, {"bound": state.sum()}


def counted(key, state, watching, most=9):
    return run(compiled(step, None), state, watching, Rule(most), name="count", key=key_from_seed(key))


def stop_at_once(progress):
    return True


def stopped(path, fingerprint="a", size=3):
    return counted(0, jnp.zeros(size), Run((stop_at_once,), Checkpoint(path, fingerprint)))


@pytest.mark.gate
def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path):
    path = tmp_path / "fit.safetensors"
    never_ends = f"""
import time
wait_late = lambda progress: progress.iteration > 3000 and time.sleep(600)
fit(Checkpoint({os.fspath(path)!r}, 'slow', every_seconds=0.0), wait_late)
"""
    with subprocess.Popen([sys.executable, "-c", SLOW_FIT + never_ends]) as process:
        try:
            while not path.exists():
                assert process.poll() is None, "the fit ended before it was killed"
                time.sleep(0.01)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    module = {}
    exec(SLOW_FIT, module)
    whole = module["fit"](None)
    stored = Checkpoint(path, "slow")
    resumed = module["fit"](stored)
    assert [row["bound"] for row in resumed.trace] == [row["bound"] for row in whole.trace]
    assert [row["draw"] for row in resumed.trace] == [row["draw"] for row in whole.trace]
    assert np.array_equal(resumed.state["x"], whole.state["x"])
    assert np.array_equal(*(jax.random.key_data(fit.state["walk"]) for fit in (resumed, whole)))
    assert resumed.status is Status.COMPLETED
    stored.end(resumed.status)
    assert list(tmp_path.iterdir()) == []  # neither the finished fit's file nor a temporary one


def test_a_stopped_fit_leaves_its_file_and_goes_on_with_the_stored_key(tmp_path):
    path = tmp_path / "fit.safetensors"
    first = stopped(path)
    assert first.status is Status.STOPPED
    file = Checkpoint(os.fspath(path), "a")
    second = counted(1, jnp.zeros(3), Run((), file))
    file.end(second.status)
    assert first.n_iter == 1
    assert second.state.tolist() == [9.0] * 3
    assert [row["bound"] for row in second.trace] == [3.0 * i for i in range(9)]
    assert second.trace[0] == first.trace[0]
    assert not path.exists()


@pytest.mark.parametrize(
    ("fingerprint", "size", "message"),
    [("b", 3, "other data or parameters"), ("a", 4, "other names, shapes")],
)
def test_the_file_of_another_fit_is_refused_by_name(tmp_path, fingerprint, size, message):
    path = tmp_path / "fit.safetensors"
    stopped(path)
    with pytest.raises(InputError, match=message) as error:
        stopped(path, fingerprint, size)
    assert os.fspath(path) in str(error.value)
    assert "delete it or give another path" in str(error.value)


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"hello", lambda b: b""])
def test_a_damaged_file_is_refused(tmp_path, damage):
    path = tmp_path / "fit.safetensors"
    stopped(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match="cannot be read"):
        stopped(path)


def test_a_changed_byte_anywhere_is_refused(tmp_path):
    path = tmp_path / "fit.safetensors"
    stopped(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 5):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        with pytest.raises(InputError, match=r"cannot be read|is not of the format"):
            Checkpoint(path, "a").entry("count")


PROGRESS = {"trace": [], "n_iter": 1, "seconds": 0, "status": None, "has_best": False}


@pytest.mark.parametrize(
    "steps",
    [3, [1, 2], {"count": 3}, {"count": {}}, {"count": {**PROGRESS, "n_iter": "x"}},
     {"count": {**PROGRESS, "status": "HAPPY"}}, {"count": {**PROGRESS, "trace": [1]}}],
)  # fmt: skip
def test_steps_of_an_unknown_form_are_refused(tmp_path, steps):
    path = tmp_path / "fit.safetensors"
    data = {"fingerprint": "a", "steps": steps}
    write_sealed(path, {"0[0]": np.zeros(3)}, "nongauss-checkpoint-4", data)
    with pytest.raises(InputError, match=r"steps of an unknown form|a step of another form"):
        Checkpoint(path, "a").entry("count").load(Snapshot(np.zeros(3), [], 0, 0.0))


def test_a_second_process_is_refused_and_a_dead_one_holds_no_lock(tmp_path):
    """Each process says when it has the file; the first is killed."""
    path = tmp_path / "fit.safetensors"
    code = f"""if True:
        import time
        from nongauss.optimise.checkpoint import Checkpoint
        file = Checkpoint({os.fspath(path)!r}, "a")
        file.entry("b")
        print("mine", flush=True)
        time.sleep(600)
    """
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        try:
            assert first.stdout.readline() == "mine\n"
            with pytest.raises(InputError, match="in use by another process"):
                Checkpoint(path, "a").entry("b")
        finally:
            first.kill()
    mine = Checkpoint(path, "a")
    mine.entry("b")
    Checkpoint(path, "a").entry("b")  # a fit of the same process that goes on after an error
    mine.end(Status.COMPLETED)
    assert list(tmp_path.iterdir()) == []


def test_finished_steps_are_not_taken_again(tmp_path, monkeypatch):
    """A fit of a computation, a loop and another computation, which is interrupted in the last one."""
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    path, calls = tmp_path / "fit", []

    def work(name, value):
        calls.append(name)
        if name in broken:
            raise KeyboardInterrupt
        return {"x": np.full(2, value), "n": 3}

    def fit():
        seed, file = open_checkpoint(path, 5, None, np.arange(3.0), {"C": 1.0})
        first = computed_once(file, "first", lambda: work("first", 1.0), {"x": np.zeros(0), "n": 0})
        calls.append("loop")
        looped = counted(seed, jnp.zeros(1), Run((lambda p: calls.append(p.iteration),), file), 4)
        last = computed_once(
            file, "last", lambda: work("last", float(looped.state[0])), {"x": np.zeros(0), "n": 0}
        )
        file.end(looped.status)
        return first, last, looped

    broken = ["last"]
    with pytest.raises(KeyboardInterrupt):
        fit()
    assert {"first", "loop", 1, 4, "last"} <= set(calls)
    calls.clear()
    broken.clear()
    first, last, looped = fit()
    assert calls == ["loop", "last"]
    assert (first["x"].tolist(), first["n"], last["x"].tolist()) == ([1.0, 1.0], 3, [4.0, 4.0])
    assert (len(looped.trace), looped.status) == (4, Status.COMPLETED)
    assert not path.exists()


def test_steps_after_one_that_failed_keep_their_places(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)

    def work(value):
        if value == 2.0:
            raise np.linalg.LinAlgError
        calls.append(value)
        return value

    def fit():
        file = Checkpoint(tmp_path / "fit", "a")
        for value in (1.0, 2.0, 3.0, 4.0):
            with contextlib.suppress(np.linalg.LinAlgError):
                yield computed_once(file, f"work {value}", partial(work, value), 0.0)

    calls = []
    assert list(islice(fit(), 2)) == [1.0, 3.0]
    assert list(fit()) == [1.0, 3.0, 4.0]
    assert calls == [1.0, 3.0, 4.0]


def test_a_name_is_that_of_one_step_of_the_fit_or_of_a_part_of_it(tmp_path):
    file = Checkpoint(tmp_path / "fit", "a")
    watching = Run((), file)
    computed_once(file, "work", lambda: 1.0, 0.0)
    for part in ("first", "second"):
        own = watching.within(part).checkpoint
        computed_once(own, "work", lambda: 2.0, 0.0)
        with pytest.raises(ValueError, match=f"both named '{part}/work'"):
            computed_once(own, "work", lambda: 3.0, 0.0)
    file.write()
    again = Checkpoint(tmp_path / "fit", "a")
    assert computed_once(Run((), again).within("second").checkpoint, "work", lambda: 4.0, 0.0) == 2.0
    assert computed_once(again, "work", lambda: 4.0, 0.0) == 1.0
    assert computed_once(again, "more", lambda: 4.0, 0.0) == 4.0
    assert Run().within("first") == Run()


def test_what_came_after_a_step_that_goes_on_is_out_of_date(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)

    def fit(callback):
        file = Checkpoint(tmp_path / "fit", "a")
        result = run(lambda n, x: (x + 1.0, {"bound": x}), 0.0, Run((callback,), file), Rule(3), name="loop")
        return result.state, computed_once(file, "after", lambda: 10.0 * result.state, 0.0)

    assert fit(stop_at_once) == (1.0, 10.0)
    assert fit(lambda progress: None) == (3.0, 30.0)


def test_trees_of_all_kinds_are_kept_as_they_were(tmp_path):
    tree = {
        "numbers": (1, 2.5, True, None),
        "arrays": [np.arange(6.0).reshape(2, 3).T, np.zeros((0, 3), np.float32)],
        "pair": Pair(np.arange(3), {"inside": np.ones(2)}),
        "record": Record(np.full(2, 7.0), "name"),
    }
    file = Checkpoint(tmp_path / "fit", "a")
    computed_once(file, "tree", lambda: tree, tree)
    file.write()
    like = {**tree, "record": Record(np.zeros(9), "name")}
    found = computed_once(Checkpoint(tmp_path / "fit", "a"), "tree", lambda: None, like)
    assert found["numbers"] == tree["numbers"]
    assert found["arrays"][0].flags.f_contiguous
    assert type(found["pair"]) is Pair
    assert found["record"].name == "name"
    for path, leaf in leaves_of(tree).items():
        np.testing.assert_array_equal(leaves_of(found)[path], leaf)
        assert np.asarray(leaves_of(found)[path]).dtype == np.asarray(leaf).dtype
    with pytest.raises(InputError, match="other names, shapes or types"):
        computed_once(Checkpoint(tmp_path / "fit", "a"), "tree", lambda: None, {"numbers": 1})


class Pair(NamedTuple):
    """A named tuple of trees."""

    left: object
    right: object


@dataclass(frozen=True)
class Record:
    """A record with a static field."""

    mean: np.ndarray
    name: str = field(metadata={"static": True})


def test_a_fit_is_told_by_its_arrays_settings_and_seed(tmp_path):
    def told(*settings, x=1.0, seed=5, random_state=5):
        return open_checkpoint(tmp_path / "none", seed, random_state, np.full(2, x), *settings)[1].fingerprint

    own = told("a", print_me)
    assert told("a", print_me) == own
    others = [told("b", print_me), told("a", x=2.0), told("a", print_me, seed=6)]
    assert own not in others
    assert told("a", seed=6, random_state=None) == told("a", random_state=None)


def test_a_path_may_begin_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    file = open_checkpoint("~/fit", 5, 5, np.zeros(1))[1]
    file.write()
    assert (tmp_path / "fit").exists()
    assert open_checkpoint("~/fit", 5, 5, np.zeros(1))[1].path == file.path


def test_a_fit_without_a_seed_of_its_own_goes_on_with_its_first(tmp_path):
    path = tmp_path / "fit"
    for seed in (5, 6):
        found, file = open_checkpoint(path, seed, None, np.zeros(1))
        assert found == 5
        file.write()


def print_me(x):
    """A function as a setting: its address is another in each process."""


@pytest.mark.parametrize("spoil", ["foreign", "damaged"])
def test_a_file_that_is_refused_is_set_aside_on_request(tmp_path, spoil):
    path = tmp_path / "fit"
    stopped(path, fingerprint="another")
    before = path.read_bytes()
    if spoil == "damaged":
        before = before[:-9]
        path.write_bytes(before)
    with pytest.warns(NongaussWarning, match="set aside as 'fit.aside-1'"):
        file = open_checkpoint(SetAside(path), 5, 5, np.zeros(1))[1]
    assert computed_once(file, "work", lambda: 2.0, 0.0) == 2.0
    file.write()
    assert (tmp_path / "fit.aside-1").read_bytes() == before
    file.end(Status.COMPLETED)
    assert [each.name for each in tmp_path.iterdir()] == ["fit.aside-1"]

import contextlib
import os
import signal
import subprocess
import sys
from functools import partial
from itertools import islice

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nongauss.core.device import key_from_seed
from nongauss.core.errors import InputError
from nongauss.optimise.checkpoint import Checkpoint, kept, opened
from nongauss.optimise.compiled import run
from nongauss.optimise.result import Status

SLOW_FIT = """
import jax, jax.numpy as jnp
from nongauss.core.device import key_from_seed
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.compiled import run

def step(key, state, rows):
    x = jax.lax.fori_loop(0, 1000, lambda i, x: jnp.sin(x) + 0.1, state["x"])
    x = x + 0.01 * jax.random.normal(key, x.shape)
    walk, draw = jax.random.split(state["walk"])
    return {"x": x, "walk": walk}, {"bound": x.sum(), "draw": jax.random.normal(draw)}

def fit(checkpoint):
    state = {"x": jnp.zeros(10), "walk": key_from_seed(5)}
    options = {"checkpoint": checkpoint, "verbose": 1, "air_seconds": 0.02}
    return run(step, key_from_seed(0), state, None, max_iter=4000, **options)
"""


def step(key, state, rows):
    return state + 1.0, {"bound": state.sum()}


def stop_at_once(progress):
    return True


def stopped(path, fingerprint="a", size=3):
    options = {"callbacks": [stop_at_once], "checkpoint": Checkpoint(path, fingerprint)}
    return run(step, key_from_seed(0), jnp.zeros(size), None, max_iter=9, **options)


def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path):
    path = tmp_path / "fit.safetensors"
    main = f"\nfit(Checkpoint({os.fspath(path)!r}, 'slow', every_seconds=0.0))"
    process = subprocess.Popen([sys.executable, "-c", SLOW_FIT + main], stdout=subprocess.PIPE, text=True)
    try:
        while not path.exists():
            assert process.stdout.readline(), "the fit ended before it was killed"
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL
    finally:
        process.kill()
        process.stdout.close()
    module = {}
    exec(SLOW_FIT, module)
    whole = module["fit"](None)
    stored = Checkpoint(path, "slow")
    resumed = module["fit"](stored)
    assert [row["bound"] for row in resumed.trace] == [row["bound"] for row in whole.trace]
    assert [row["draw"] for row in resumed.trace] == [row["draw"] for row in whole.trace]
    assert np.array_equal(resumed.state["x"], whole.state["x"])
    assert np.array_equal(*(jax.random.key_data(fit.state["walk"]) for fit in (resumed, whole)))
    assert resumed.status is Status.MAX_ITER
    stored.end(resumed.status)
    assert list(tmp_path.iterdir()) == []  # neither the finished fit's file nor a temporary one


def test_a_stopped_fit_leaves_its_file_and_goes_on_with_the_stored_key(tmp_path):
    path = tmp_path / "fit.safetensors"
    first = stopped(path)
    assert first.status is Status.STOPPED
    file = Checkpoint(os.fspath(path), "a")
    second = run(step, key_from_seed(1), jnp.zeros(3), None, max_iter=9, checkpoint=file)
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
        seed, file = opened(path, 5, None, np.arange(3.0), {"C": 1.0})
        first = kept(file, lambda: work("first", 1.0), {"x": np.zeros(0), "n": 0})
        calls.append("loop")
        options = {"max_iter": 4, "checkpoint": file, "callbacks": [lambda p: calls.append(p.iteration)]}
        looped = run(step, key_from_seed(seed), jnp.zeros(1), None, **options)
        last = kept(file, lambda: work("last", float(looped.state[0])), {"x": np.zeros(0), "n": 0})
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
    assert (len(looped.trace), looped.status) == (4, Status.MAX_ITER)
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
                yield kept(file, partial(work, value), 0.0)

    calls = []
    assert list(islice(fit(), 2)) == [1.0, 3.0]
    assert list(fit()) == [1.0, 3.0, 4.0]
    assert calls == [1.0, 3.0, 4.0]


def test_a_fit_is_told_by_its_arrays_settings_and_seed(tmp_path):
    def told(*settings, x=1.0, seed=5, random_state=5):
        return opened(tmp_path / "none", seed, random_state, np.full(2, x), *settings)[1].fingerprint

    own = told("a", print_me)
    assert told("a", print_me) == own
    others = [told("b", print_me), told("a", x=2.0), told("a", print_me, seed=6)]
    assert own not in others
    assert told("a", seed=6, random_state=None) == told("a", random_state=None)


def test_a_path_may_begin_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    file = opened("~/fit", 5, 5, np.zeros(1))[1]
    file.write()
    assert (tmp_path / "fit").exists()
    assert opened("~/fit", 5, 5, np.zeros(1))[1].path == file.path


def test_a_fit_without_a_seed_of_its_own_goes_on_with_its_first(tmp_path):
    path = tmp_path / "fit"
    for seed in (5, 6):
        found, file = opened(path, seed, None, np.zeros(1))
        assert found == 5
        file.write()


def print_me(x):
    """A function as a setting: its address is another in each process."""

import os
import signal
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nongauss.core.contracts import InputError, Status
from nongauss.core.rng import key_from_seed
from nongauss.inference.checkpoint import Checkpoint
from nongauss.inference.loop import run

SLOW_FIT = """
import jax, jax.numpy as jnp
from nongauss.core.rng import key_from_seed
from nongauss.inference.checkpoint import Checkpoint
from nongauss.inference.loop import run

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
    assert list(tmp_path.iterdir()) == []  # neither the finished fit's file nor a temporary one


def test_a_stopped_fit_leaves_its_file_and_goes_on_with_the_stored_key(tmp_path):
    path = tmp_path / "fit.safetensors"
    first = stopped(path)
    assert first.status is Status.STOPPED
    second = run(
        step, key_from_seed(1), jnp.zeros(3), None, max_iter=9, checkpoint=Checkpoint(os.fspath(path), "a")
    )
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

import signal
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nongauss.core.device import key_from_seed
from nongauss.core.records import value
from nongauss.optimise import compiled as chunks
from nongauss.optimise import course, loop
from nongauss.optimise.compiled import compiled
from nongauss.optimise.course import Rule, Run, Status

KEY = key_from_seed(0)
TARGET = np.array([1.0, -2.0, 3.0])


@value
class Descent:
    """x goes a part of the way to the target, shaken by noise; the bound is minus the squared distance."""

    rate: float = 0.5
    noise: float = 0.0
    stop_below: float = 0.0
    nan_at: int = -1
    fall_at: int = -1
    spoil: str = "bound"

    def __call__(self, key, state, rows):
        x = state["x"] + self.rate * (rows - state["x"]) + self.noise * jax.random.normal(key, (3,))
        error = jnp.sum((x - rows) ** 2)
        broken = state["count"] + 1 == self.nan_at
        bound = jnp.where(broken & (self.spoil == "bound"), jnp.nan, -error)
        bound = jnp.where(state["count"] + 1 == self.fall_at, -1e3, bound)
        x = jnp.where(broken & (self.spoil == "state"), jnp.inf, x)
        info = {"bound": bound, "distance": jnp.sqrt(error), "stop": error < self.stop_below}
        return {"x": x, "count": state["count"] + 1}, info


def run(step, key, state, rows, *, air_seconds=0.5, callbacks=(), verbose=0, former=None, **rule):
    """`loop.run` of a compiled step; `tol` is a share of the objective."""
    tol = rule.pop("tol", None)
    least_gain = None if tol is None else lambda objective: tol * max(1.0, abs(objective))
    adapter, watching = compiled(step, rows, air_seconds), Run(tuple(callbacks), None, verbose)
    how = Rule(least_gain=least_gain, **rule)
    return loop.run(adapter, state, watching, how, name="descent", key=key, former=former)


def start():
    return {"x": jnp.zeros(3), "count": jnp.int32(0)}


def bounds(result):
    return [row["bound"] for row in result.trace]


def test_reaches_the_optimum_and_says_converged_at_the_first_iteration_that_gains_too_little():
    result = run(Descent(), KEY, start(), TARGET, max_iter=500, tol=1e-4)
    gains = np.diff(bounds(result))
    assert result.status is Status.CONVERGED
    assert (gains[:-1] > 1e-4).all()
    assert gains[-1] <= 1e-4
    assert int(result.state["count"]) == result.n_iter == len(result.trace) < 20
    np.testing.assert_allclose(result.state["x"], TARGET, atol=0.02)


def test_equal_fits_compile_once_whatever_the_rules_and_lengths():
    before = chunks._advance._cache_size()
    run(Descent(rate=0.25), KEY, start(), TARGET, max_iter=50)
    run(Descent(rate=0.25), key_from_seed(1), start(), 2 * TARGET, max_iter=70, tol=1e-3, patience=2)
    host = {"x": np.zeros(3, np.float32), "count": np.int32(0)}
    run(Descent(rate=0.25), KEY, host, TARGET, max_iter=9, rises=True)
    assert chunks._advance._cache_size() == before + 1


@pytest.mark.parametrize("spoil", ["bound", "state"])
@pytest.mark.parametrize("at", [1, 2, 20])
def test_stops_at_the_first_iteration_that_is_not_finite_and_keeps_the_state_before(spoil, at):
    result = run(Descent(rate=0.1, nan_at=at, spoil=spoil), KEY, start(), TARGET, max_iter=100)
    assert result.status is Status.NONFINITE
    assert int(result.state["count"]) == result.n_iter == len(result.trace) == at - 1
    assert np.isfinite(result.state["x"]).all()
    assert np.isfinite(bounds(result)).all()


def test_the_models_own_stop_keeps_the_iteration_that_asked():
    result = run(Descent(rate=0.1, stop_below=1e-2), KEY, start(), TARGET, max_iter=500)
    distances = [row["distance"] for row in result.trace]
    assert result.status is Status.EARLY_STOPPED
    assert distances[-1] ** 2 < 1e-2 <= distances[-2] ** 2
    assert int(result.state["count"]) == result.n_iter


def test_callbacks_see_progress_and_stop(capsys, monkeypatch):
    monkeypatch.setattr(course, "SAY_SECONDS", 0.0)
    seen = []

    def callback(progress):
        seen.append(progress)
        return progress.iteration >= 10

    result = run(
        Descent(rate=0.1), KEY, start(), TARGET, max_iter=99, callbacks=[callback], verbose=1, air_seconds=0.0
    )
    assert result.status is Status.STOPPED
    assert result.n_iter == 10
    assert [progress.iteration for progress in seen] == list(range(1, 11))
    assert seen[-1].info.keys() == {"distance"}
    assert seen[-1].bound == result.trace[-1]["bound"]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 11
    assert lines[0].startswith("iteration 1/99  bound -")
    assert lines[-1] == f"iteration 10: {Status.STOPPED.value}"


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda key, state, rows: (state, {"loss": 1.0}), "bound"),
        (lambda key, state, rows: (state, {"bound": jnp.zeros(2)}), "scalars"),
        (lambda key, state, rows: (state | {"x": jnp.zeros(4)}, {"bound": jnp.sum(rows)}), r"\['x'\]"),
    ],
)
def test_a_step_that_breaks_its_contract_is_named(step, message):
    with pytest.raises(TypeError, match=message):
        run(step, KEY, start(), TARGET, max_iter=3)


ENDLESS = """
import jax, jax.numpy as jnp
from nongauss.core.device import key_from_seed
from nongauss.optimise.compiled import compiled
from nongauss.optimise.course import Rule
from nongauss.optimise.loop import run
from nongauss.optimise.course import Run

def step(key, state, rows):
    slow = jax.lax.fori_loop(0, 2000, lambda i, x: jnp.sin(x) + 0.1, state)
    return slow, {"bound": slow.sum()}

adapter = compiled(step, None, air_seconds=0.1)
result = run(adapter, jnp.zeros(10), Run(verbose=1), Rule(10**9), name="sine", key=key_from_seed(0))
print(result.status.name, result.n_iter == len(result.trace) > 0, flush=True)
"""


@pytest.mark.gate
def test_ctrl_c_gives_the_result_so_far():
    process = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().startswith("iteration")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert out.splitlines()[-1] == "STOPPED True"
    assert process.returncode == 0

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nongauss.core.device import double_precision, record, replace
from nongauss.optimise import minibatch as gradient
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.compiled import compiled
from nongauss.optimise.course import Rule, Run, Status
from nongauss.optimise.loop import run
from nongauss.optimise.minibatch import Batch, Epoch, minibatch, pad_rows
from nongauss.tables.source import Stream

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X @ [1.0, -2.0, 0.5] + np.sin(X[:, 0])
CUTS = [0, 70, 70, 200, 290, 300]


@record
class State:
    params: jax.Array


def local(key, params, batch):
    x, y = batch.data
    off = jnp.tanh(x @ params) - y
    slope = (batch.weight * off * (1 - jnp.tanh(x @ params) ** 2)) @ x
    return {"bound": -0.5 * jnp.sum(batch.weight * off**2), "gradient": -slope}


def update(state, stats, scale):
    params = state.params + 1e-3 * scale * stats["gradient"]
    return replace(state, params=params), {"size": jnp.sum(params**2)}


def source(dtype=np.float64):
    data = X.astype(dtype), Y.astype(dtype), np.ones(300, dtype)
    parts = [[part[a:b] for part in data] for a, b in itertools.pairwise(CUTS)]
    return Stream([Batch((x, y), w) for x, y, w in parts])


def test_fifty_full_batch_steps_over_parts_are_those_in_memory(monkeypatch):
    monkeypatch.setattr(gradient, "SLICE", 50)
    step = Epoch(local, update, None)
    with double_precision():
        state, key = State(np.zeros(3)), jax.random.key(0)
        whole, parts = (
            run(one, state, Run(), Rule(50), name="epochs", key=key)
            for one in (compiled(step, pad_rows((X, Y), np.ones(300))), minibatch(step, source(), 300))
        )
    assert_allclose(parts.state.params, whole.state.params, rtol=1e-12)
    assert parts.trace[-1]["bound"] == pytest.approx(whole.trace[-1]["bound"], rel=1e-12)
    assert parts.status is Status.COMPLETED
    assert len(parts.trace) == 50


def fit(**watching):
    step = minibatch(Epoch(local, update, 32), source(np.float32), 300)
    state, key = State(np.zeros(3, np.float32)), jax.random.key(1)
    return run(step, state, Run(**watching), Rule(8), name="epochs", key=key)


def halved(key, state, rows):
    return state, {"stop": state.params[0] > 0.5}


def test_the_models_own_stop_is_an_early_one():
    step = minibatch(Epoch(local, update, None, halved), source(np.float32), 300)
    state = State(np.zeros(3, np.float32))
    result = run(step, state, Run(), Rule(99), name="epochs", key=jax.random.key(0))
    assert result.status is Status.EARLY_STOPPED
    assert 1 < result.n_iter < 99
    assert result.state.params[0] > 0.5


@pytest.mark.gate
def test_a_fit_that_was_stopped_goes_on_from_its_file_as_if_it_had_not_been(tmp_path):
    whole = fit()
    stopped = fit(
        checkpoint=Checkpoint(tmp_path / "fit", "mine"), callbacks=(lambda progress: progress.iteration == 3,)
    )
    assert stopped.status is Status.STOPPED
    assert (tmp_path / "fit").exists()
    heard = []
    resumed = fit(
        checkpoint=Checkpoint(tmp_path / "fit", "mine"), callbacks=(lambda p: heard.append(p.iteration),)
    )
    assert heard == [4, 5, 6, 7, 8]
    assert_array_equal(resumed.state.params, whole.state.params)
    assert [row["bound"] for row in resumed.trace] == [row["bound"] for row in whole.trace]
    assert whole.trace[-1]["bound"] > whole.trace[0]["bound"]

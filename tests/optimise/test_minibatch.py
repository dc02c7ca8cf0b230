import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nongauss.core.device import double_precision, key_from_seed, record, replace
from nongauss.core.errors import InputError
from nongauss.core.records import value
from nongauss.optimise import compiled as chunks
from nongauss.optimise import minibatch as gradient
from nongauss.optimise.compiled import compiled
from nongauss.optimise.course import Rule, Run, Status
from nongauss.optimise.loop import run
from nongauss.optimise.minibatch import Epoch, PaddedRows, bucket, over_devices, pad_rows

KEY = key_from_seed(0)


@record
class State:
    params: jax.Array
    seen: jax.Array
    rate: jax.Array


@value
class LeastSquares:
    """Minus half the weighted squared error of y on x, with its gradient: sums over rows."""

    def __call__(self, key, params, batch):
        def bound(params):
            return -0.5 * jnp.sum(batch.weight * (batch.data["y"] - batch.data["x"] @ params) ** 2)

        total, gradient = jax.value_and_grad(bound)(params)
        rows = batch.weight @ batch.data["id"]
        return {"bound": total, "gradient": gradient, "rows": rows}


@value
class Ascend:
    """A step up the estimated gradient a row (of 100); `seen` adds up which rows were met."""

    def __call__(self, state, stats, scale):
        gradient = scale * stats["gradient"]
        state = State(state.params + state.rate / 100 * gradient, state.seen + stats["rows"], state.rate)
        return state, {"slope": jnp.abs(gradient).max(), "scale": scale}


def table(n, seed=0):
    rng = np.random.RandomState(seed)
    x = rng.normal(size=(n, 3))
    y = x @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.normal(size=n)
    return {"x": x, "y": y, "id": np.eye(n, 104)}, rng.randint(1, 3, size=n).astype(float)


def optimum(data, weight):
    root = np.sqrt(weight)
    return np.linalg.lstsq(data["x"] * root[:, None], data["y"] * root, rcond=None)[0]


def epochs(batch_size, rows, *, rate=0.02, max_iter=1, key=KEY, finish=None):
    start = State(jnp.zeros(3), jnp.zeros(104), jnp.asarray(rate))
    step = compiled(Epoch(LeastSquares(), Ascend(), batch_size, finish), rows)
    return run(step, start, Run(), Rule(max_iter), name="epochs", key=key)


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


@pytest.mark.parametrize(("batch_size", "rate", "close"), [(None, 0.5, 1e-6), (16, 0.02, 0.03)])
def test_reaches_the_weighted_least_squares_solution(batch_size, rate, close):
    data, weight = table(100)
    result = epochs(batch_size, pad_rows(data, weight), rate=rate, max_iter=150)
    np.testing.assert_allclose(result.state.params, optimum(data, weight), atol=close)


@pytest.mark.parametrize("batch_size", [None, 16, 99, 103])
def test_an_epoch_meets_each_row_once_and_the_bound_is_their_sum(batch_size):
    data, weight = table(100)
    result = epochs(batch_size, pad_rows(data, weight), rate=0.0)
    size = min(batch_size or 100, 100)
    n_batches = -(-100 // size)
    scales = [100 / size] * (n_batches - 1) + [100 / (100 - (n_batches - 1) * size)]
    np.testing.assert_array_equal(result.state.seen[:100], weight)
    np.testing.assert_allclose(result.trace[0]["bound"], -0.5 * np.sum(weight * data["y"] ** 2), rtol=1e-12)
    np.testing.assert_allclose(result.trace[0]["scale"], np.mean(scales), rtol=1e-12)


@pytest.mark.parametrize(
    ("batch_size", "same"), [(16, np.testing.assert_array_equal), (None, np.testing.assert_allclose)]
)
def test_padding_changes_nothing_and_its_content_does_not_count(batch_size, same):
    data, weight = table(100)
    bare = PaddedRows(jax.tree.map(jnp.asarray, data), jnp.asarray(weight), jnp.int32(100))
    padded = pad_rows(data, weight)
    noisy = replace(padded, weight=jnp.where(jnp.arange(104) < 100, padded.weight, 5.0))
    expected = epochs(batch_size, bare).state.params
    same(epochs(batch_size, padded).state.params, expected)
    same(epochs(batch_size, noisy).state.params, expected)


def test_the_order_is_drawn_anew_from_the_key():
    rows = pad_rows(*table(100))
    first, second = (epochs(16, rows, key=key_from_seed(seed)).state.params for seed in (0, 1))
    assert not np.array_equal(first, second)


def test_data_sets_of_about_one_size_compile_once():
    before = chunks._advance._cache_size()
    for n in (97, 100, 104):
        epochs(17, pad_rows(*table(n)))
    assert chunks._advance._cache_size() == before + 1


@value
class Watch:
    """Stops when the error on held-out rows is below a level; reports it as the bound."""

    level: float

    def __call__(self, key, state, rows):
        error = jnp.mean((rows.held_out["y"] - rows.held_out["x"] @ state.params) ** 2)
        return state, {"bound": -error, "stop": error < self.level}


def test_finish_sees_held_out_rows_and_may_stop_the_fit():
    data, weight = table(100)
    other, _ = table(40, seed=1)
    rows = pad_rows(data, weight, held_out=jax.tree.map(jnp.asarray, other))
    result = epochs(16, rows, max_iter=99, finish=Watch(0.1))
    assert result.status is Status.EARLY_STOPPED
    assert result.trace[-1]["bound"] > -0.1
    assert result.trace[-2]["bound"] <= -0.1


def test_buckets_grow_by_an_eighth_at_most():
    sizes = sorted({bucket(n) for n in range(1, 5000)})
    assert sizes[0] == 64
    assert all(size % 8 == 0 and bucket(size) == size for size in sizes)
    assert max(b / a for a, b in pairwise(sizes)) <= 1.125


@pytest.mark.parametrize("n", [0, 3])
def test_rows_of_unequal_length_or_none_are_refused(n):
    with pytest.raises(InputError, match="one positive length"):
        pad_rows({"x": np.zeros((n, 2)), "y": np.zeros(0)}, np.ones(n))


def test_fifty_steps_in_slices_are_those_of_all_rows_at_once(monkeypatch):
    rows = pad_rows(*table(100))

    def fifty():
        state = State(jnp.zeros(3), jnp.zeros(104), jnp.asarray(0.1))
        step = jax.jit(lambda state: Epoch(LeastSquares(), Ascend(), None)(KEY, state, rows))
        for _ in range(50):
            state, info = step(state)
        return state, info["bound"]

    whole, bound = fifty()
    monkeypatch.setattr(gradient, "SLICE", 24)  # 104 rows are four slices and a third
    found, its = fifty()
    np.testing.assert_allclose(found.params, whole.params, rtol=1e-12)
    np.testing.assert_array_equal(found.seen, whole.seen)
    np.testing.assert_allclose(its, bound, rtol=1e-12)


def layers(key, params, batch):
    """Two layers of 128 units, which are what a row needs."""

    def bound(W):
        return jnp.sum(batch.weight * jnp.sum(jnp.tanh(jnp.tanh(batch.data @ W) @ W.T), 1))

    total, gradient = jax.value_and_grad(bound)(params)
    return {"bound": total, "gradient": gradient}


def sums(W, rows):
    """What a step that takes all rows finds."""
    step = Epoch(layers, lambda state, stats, scale: (stats, {}), None)
    return step(KEY, State(W, W, W), rows)[0]


def large(n):
    """Weights of `layers`, and n rows on all devices."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    return rng.normal(size=(3, 128)).astype(np.float32), over_devices(pad_rows(x, np.ones(n, np.float32)))


def temporary(n):
    """Bytes that the step needs on a device besides its arguments."""
    return jax.jit(sums).lower(*large(n)).compile().memory_analysis().temp_size_in_bytes


def test_what_a_step_needs_does_not_grow_with_the_rows_past_a_slice():
    assert 2_000_000 < temporary(65_536) < 1.1 * temporary(16_384)


@pytest.mark.gate
def test_each_of_two_devices_goes_over_its_own_rows_and_their_sum_is_that_of_one():
    code = (
        "from test_minibatch import gradient, jax, large, np, sums, temporary\n"
        "W, rows = large(40_000)\n"
        "both, size = jax.jit(sums)(W, rows), temporary(16_384)\n"
        "gradient._n_sharing = lambda n: 1\n"
        "jax.clear_caches()\n"
        "one = jax.jit(sums)(*large(40_000))\n"
        "np.testing.assert_allclose(both['bound'], one['bound'], rtol=1e-4)\n"
        "np.testing.assert_allclose(both['gradient'], one['gradient'], rtol=1e-4, atol=1e-2)\n"
        "print(len(rows.weight.sharding.device_set), size < 1.1 * temporary(8_192))\n"
    )
    assert on_two_devices(code) == ["2", "True"]


@pytest.mark.gate
def test_a_sum_over_two_devices_is_that_of_one():
    code = (
        "import jax, numpy as np\n"
        "from nongauss.optimise.minibatch import over_devices, pad_rows\n"
        "x = np.random.default_rng(0).normal(size=(100, 3)).astype('f')\n"
        "rows = pad_rows((x,), np.ones(100, 'f'))\n"
        "shared = over_devices(rows)\n"
        "gram = jax.jit(lambda rows: (rows.data[0] * rows.weight[:, None]).T @ rows.data[0])\n"
        "np.testing.assert_allclose(gram(shared), gram(rows), rtol=1e-5)\n"
        "print(jax.device_count(), len(shared.weight.sharding.device_set))\n"
    )
    assert on_two_devices(code) == ["2", "2"]


def on_two_devices(code):
    """What a process with two devices prints, in words."""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **flags},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()

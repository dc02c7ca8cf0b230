import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import nongauss
from nongauss.core.device import double_precision
from nongauss.core.errors import NongaussWarning


def test_double_inside_and_the_users_setting_outside_even_after_an_error():
    before = dict(jax.config.values)
    outside = jnp.asarray(1.0).dtype
    with double_precision():
        inside = jnp.asarray(1.0)
        assert jax.jit(lambda x: x / 3)(inside).dtype == jnp.float64
    with pytest.raises(RuntimeError), double_precision():
        raise RuntimeError
    assert inside.dtype == jnp.float64
    assert jnp.asarray(1.0).dtype == outside
    assert dict(jax.config.values) == before


@pytest.mark.gate
def test_importing_changes_no_setting_of_jax():
    program = """
import jax
before = dict(jax.config.values)
import nongauss.core.device, nongauss.core.records, nongauss.core.seeds
import nongauss.optimise.minibatch, nongauss.optimise.compiled
from nongauss.core.device import double_precision
with double_precision():
    jax.numpy.ones(3)
assert dict(jax.config.values) == before
assert jax.numpy.ones(3).dtype == "float32"
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


FIT = """
import jax, nongauss
events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event))
print(nongauss.cache_compiled())
jax.jit(lambda x: jax.numpy.sin(x) @ x)(jax.numpy.ones((9, 9)))
print(*(sum(event.endswith(name) for event in events) for name in ("cache_hits", "cache_misses")))
"""


@pytest.mark.gate
def test_compiled_functions_are_kept_for_the_next_process(tmp_path):
    told = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", FIT], capture_output=True, text=True, env=told, check=True
        )
        folder, counts = done.stdout.splitlines()
        assert folder == str(tmp_path / "nongauss" / "compiled")
        said.append(tuple(map(int, counts.split())))
    assert said[0][0] == said[1][1] == 0
    assert said[0][1] == said[1][0] > 0


def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path):
    before = dict(jax.config.values)
    (tmp_path / "file").write_text("")
    with pytest.warns(NongaussWarning, match="give another folder"):
        assert nongauss.cache_compiled(tmp_path / "file" / "inside") is None
    assert dict(jax.config.values) == before


FORKED = """
import multiprocessing, sys, warnings
import numpy as np
import nongauss

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
model = nongauss.TGGMRegressor((3, 2), n_members=1, max_epochs=2, random_state=0).fit(X, y)

def tried(work, told):
    try:
        work()
    except nongauss.core.errors.InputError as error:
        told.put(str(error))
    else:
        told.put("done")

for work in (lambda: model.predict(X), lambda: model.fit(X, y)):
    told = multiprocessing.get_context("fork").SimpleQueue()
    child = multiprocessing.get_context("fork").Process(target=tried, args=(work, told))
    child.start()
    child.join(60)
    if child.is_alive():
        child.kill()
        sys.exit("it hangs")
    print(told.get())
"""


@pytest.mark.gate
def test_a_process_that_was_forked_after_a_compiled_fit_is_told_instead_of_hanging():
    said = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr[-500:]
    lines = said.stdout.splitlines()
    assert len(lines) == 2
    assert all("forked from one in which JAX had computed" in line and "spawn" in line for line in lines)

"""A fit, a prediction and a saved file leave the process as it was, and other threads and processes alone."""

from __future__ import annotations

import locale
import os
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from threadpoolctl import threadpool_info

import nongauss
from catalogue import CATALOGUE

every = pytest.mark.parametrize("entry", CATALOGUE, ids=lambda e: e.name)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def state_of_the_process():
    """All that other code of this process would notice, but for modules that were loaded."""
    import jax

    pools = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    return {
        "numpy's generator": [str(part) for part in np.random.get_state()],
        "numpy's errors": np.geterr(),
        "numpy's printing": np.get_printoptions(),
        "warnings": (list(warnings.filters), warnings.showwarning),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "locale": locale.setlocale(locale.LC_ALL),
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "recursion": sys.getrecursionlimit(),
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook),
        "mask": os.umask(os.umask(0o022)),
        "JAX": (dict(jax.config.values), jax.config.jax_enable_x64),
        "pools": pools,
        "threads": {thread.name for thread in threading.enumerate() if not thread.daemon},
    }


@every
def test_a_fit_changes_nothing_of_the_process(entry, tmp_path):
    X, y = entry.data()
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.02, np.nan, X)
    entry.said(entry.make().fit(X, y), X)  # what is loaded at first use is there
    before = state_of_the_process()
    model = entry.make().fit(X, y)
    entry.said(model, X)
    nongauss.save(model, tmp_path / "m")
    nongauss.load(tmp_path / "m")
    with pytest.raises(ValueError, match=r"."):
        entry.make().fit(np.full_like(X, np.inf), y)
    after = state_of_the_process()
    new = {path: after["pools"].pop(path) for path in set(after["pools"]) - set(before["pools"])}
    assert after == before, new


@pytest.mark.gate
def test_threads_and_processes_say_the_same_bits(tmp_path):
    """All families at once, each in several threads, and in a process of its own."""
    alone = {}
    for entry in CATALOGUE:
        X, y = entry.data()
        alone[entry.name] = entry.said(entry.make().fit(X, y), X)

    def again(entry):
        X, y = entry.data()
        return entry.said(clone(entry.make()).fit(X, y), X)

    many = [entry for entry in CATALOGUE if not entry.name.startswith("Auto")] * 3
    with ThreadPoolExecutor(24) as pool:
        for entry, found in zip(many, pool.map(again, many), strict=True):
            assert_array_equal(found, alone[entry.name], err_msg=entry.name)
    code = (
        "import sys, warnings, numpy as np\n"
        "from catalogue import CATALOGUE\n"
        "warnings.simplefilter('ignore')\n"
        "for entry in CATALOGUE:\n"
        "    X, y = entry.data()\n"
        "    np.save(f'{sys.argv[1]}/{entry.name}.npy', entry.said(entry.make().fit(X, y), X))\n"
    )
    path = os.pathsep.join([os.path.dirname(os.path.dirname(__file__)), os.environ.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True, env={**os.environ, "PYTHONPATH": path})
    for entry in CATALOGUE:
        assert_array_equal(np.load(tmp_path / f"{entry.name}.npy"), alone[entry.name], err_msg=entry.name)

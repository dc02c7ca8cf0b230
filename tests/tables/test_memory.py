import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import nongauss
from nongauss.tables.dask_source import keep_freed_memory

CODE = """
import resource, sys
import numpy as np
from nongauss.tables.dask_source import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()
for _ in range(20):
    np.zeros(1_000_000).fill(1.0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


def faults(how):
    """Pages that the system maps to a process like a Dask worker while arrays come and go."""
    told = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536", "NUMPY_MADVISE_HUGEPAGE": "0"}
    done = subprocess.run([sys.executable, "-c", CODE, how], capture_output=True, text=True, env=told)
    return int(done.stdout)


@pytest.mark.gate
def test_freed_arrays_are_used_again():
    kept, as_it_is = faults("kept"), faults("as it is")
    assert kept < as_it_is - 10_000 or not keep_freed_memory()


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert keep_freed_memory() is False


def test_only_workers_of_dask_are_told_so():
    source = Path(nongauss.__file__).parent
    users = [p for p in source.rglob("*.py") if "keep_freed_memory" in p.read_text(encoding="utf-8")]
    assert {p.relative_to(source).as_posix() for p in users} == {"tables/dask_source.py"}


@pytest.mark.filterwarnings("ignore:.*largest number of iterations")
def test_a_fit_leaves_the_c_library_as_it_was(monkeypatch):
    asked = SimpleNamespace(CDLL=lambda name: pytest.fail("a fit asked for the C library"))
    monkeypatch.setattr("nongauss.tables.dask_source.ctypes", asked)
    X = np.random.default_rng(0).normal(size=(40, 2))
    nongauss.SparseGPRegressor(n_inducing=5, max_iter=2, random_state=0).fit(X, X[:, 0]).predict(X)

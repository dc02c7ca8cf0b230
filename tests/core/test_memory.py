import os
import subprocess
import sys

from nongauss.core.memory import keep_freed_memory

CODE = """
import resource, sys
import numpy as np
from nongauss.core.memory import keep_freed_memory

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


def test_freed_arrays_are_used_again():
    kept, as_it_is = faults("kept"), faults("as it is")
    assert kept < as_it_is - 10_000 or not keep_freed_memory()


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert keep_freed_memory() is False

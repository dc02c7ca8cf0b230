"""Settings that every test runs under: strict JAX, one thread a worker, no display, a compilation cache."""

from __future__ import annotations

import os

import hypothesis
import pytest

_SETTINGS = {
    "JAX_PLATFORMS": "cpu",
    "JAX_NUMPY_RANK_PROMOTION": "raise",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
}

# The same examples on every run and no time limit each: a first call compiles.
hypothesis.settings.register_profile("house", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("house")


def pytest_configure(config: pytest.Config) -> None:
    # Through the environment and before anything imports JAX, so that subprocesses get the same settings.
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    cache = getattr(config, "cache", None)
    if cache is not None:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache.mkdir("jax")))

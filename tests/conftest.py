"""Settings that every test runs under: strict JAX, one thread a worker, no display, a compilation cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import hypothesis
import jaxtyping
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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--budget", type=float, default=60.0, help="seconds of `pytest -m fuzz`")


def pytest_configure(config: pytest.Config) -> None:
    # Through the environment and before anything imports JAX, so that subprocesses get the same settings.
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    cache = getattr(config, "cache", None)
    if cache is not None:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache.mkdir("jax")))
    # Shapes in signatures are checked where they stand; the hook must be there before the first import.
    if os.environ.get("SHAPES"):
        jaxtyping.install_import_hook(SHAPED, "beartype.beartype")


FAMILIES = ("tggm", "sparse_gp", "rank_factor", "rectangle", "harmonium")
SHAPED = [
    "nongauss.prob",
    *(f"nongauss.{family}.{name}" for family in FAMILIES for name in ("objective", "updates")),
]
"""Modules whose array shapes are checked at each call."""

_NEEDED = ["distributed", "dask.dataframe", "nongauss.sparse_gp.estimator", "nongauss.rectangle.predict"]
"""What the workers of a cluster need, but for JAX, which is not to be forked."""


@pytest.fixture(scope="session")
def workers() -> Iterator[Any]:
    """A client of two real worker processes, that nobody finds who does not ask for it.

    They are forked from a process that has imported what they need, again where one was killed.
    """
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        distributed.utils.get_mp_context().set_forkserver_preload(_NEEDED)
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1"
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client


@pytest.fixture
def client(workers: Any) -> Iterator[Any]:
    """That client, where it is looked for."""
    workers.wait_for_workers(1)  # one that was killed may be on its way
    with workers.as_current():
        yield workers

"""Would two workers make mini-batches of a harmonium faster, and what share of a step do classes take?

A step of one worker takes the gradient of a batch. Two would take that of half a batch each, and pass
parameters and gradients through a pipe at every step. Both are measured, the pipe between two real processes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from nongauss.harmonium.exponential_families import UnitBlock
from nongauss.harmonium.objective import VoteLoss
from nongauss.harmonium.params import HarmoniumParams
from nongauss.harmonium.updates import Adam, contrast, vote_gradient

RESULTS = Path(__file__).parent / "results" / "harmonium_workers.json"
CASES = {
    "table": (30, 30, 1.0),
    "images": (784, 100, 1.0),
    "large images": (784, 500, 1.0),
    "texts": (5000, 50, 0.02),
}
BATCH, CLASSES, REPEATS = 256, 10, 150


def shortest(work: Callable[[], object]) -> float:
    """The shortest of some times of a piece of work, seconds."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def gradients(D: int, K: int, density: float, n_rows: int, only: str = "both") -> Callable[[], object]:
    """The gradients of a batch of so many rows, as a classifier takes them in a step.

    `only`: those of the "columns" (contrastive divergence), or of the "classes" (the hinge).
    """
    rng = np.random.default_rng(0)
    p = HarmoniumParams(
        0.01 * rng.standard_normal((D, K), dtype=np.float32),
        np.zeros(D, np.float32),
        np.zeros(K, np.float32),
        np.ones(D, np.float32),
        np.zeros((CLASSES, K), np.float32),
        np.zeros(CLASSES, np.float32),
        np.zeros((CLASSES, 0), np.float32),
    )
    X = (rng.random((n_rows, D)) < (density if density < 1.0 else 0.3)).astype(np.float32)
    rows = sp.csr_matrix(X) if density < 1.0 else X
    layout, odds = (UnitBlock("all", "binary", 0, D),), np.zeros(K, np.float32)
    weight = np.full(n_rows, 1.0 / n_rows, np.float32)
    y, quarter = rng.integers(0, CLASSES, n_rows), n_rows // 4

    def work() -> object:
        """Contrastive divergence of a quarter of the rows, and the hinge of all."""
        columns = classes = None
        if only != "classes":
            columns = contrast(p, "binary", layout, odds, rows[:quarter], weight[:quarter], rng=rng)
        if only != "columns":
            classes = vote_gradient(p, "binary", odds, rows, weight, y, VoteLoss())
        return columns, classes

    return work


def moving(D: int, K: int) -> Callable[[], object]:
    """What one process alone does with the gradients: a step of Adam."""
    arrays = tuple(np.zeros(shape, np.float32) for shape in ((D, K), (D,), (K,)))
    adam, gradient = Adam(arrays), tuple(np.ones_like(array) for array in arrays)
    return lambda: adam.step(arrays, gradient, (1e-9,) * 3)


def echo(end: Connection) -> None:
    """The other process: gives back as much as it gets, until it gets nothing."""
    while (got := end.recv()) is not None:
        end.send(got)


def passing(D: int, K: int) -> float:
    """Seconds to send parameters to a process and have gradients of their size back."""
    here, there = Pipe()
    other = Process(target=echo, args=(there,))
    other.start()
    parameters = np.zeros((D, K), np.float32), np.zeros(D + K + CLASSES * (K + 1), np.float32)

    def work() -> object:
        """There and back."""
        here.send(parameters)
        return here.recv()

    seconds = shortest(work)
    here.send(None)
    other.join()
    return seconds


def main() -> None:
    """Measure, keep and print."""
    found = {}
    with threadpool_limits(1):
        for name, (D, K, density) in CASES.items():
            whole, half = (shortest(gradients(D, K, density, n)) for n in (BATCH, BATCH // 2))
            through, adam = passing(D, K), shortest(moving(D, K))
            classes = shortest(gradients(D, K, density, BATCH, "classes"))
            faster = (whole + adam) / (half + through + adam)
            found[name] = {"batch": whole, "half": half, "pipe": through, "adam": adam, "faster": faster}
            found[name]["share"] = classes / (whole + adam)
            shown = {key: f"{1e3 * found[name][key]:.2f} ms" for key in ("batch", "half", "pipe", "adam")}
            print(name, shown, f"{faster:.2f} times as fast, classes {found[name]['share']:.2f}", flush=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

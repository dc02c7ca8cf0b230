"""Fits of every family in 24 threads and in 24 processes at once: are they the bits of a fit alone?

It goes on from the counts that `results/at_once.json` has.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
from common import RESULTS, write_results, write_table
from killed_fits import families, fitted, said

START: list[Any] = []
"""What the fits of a pool wait at until all of them are there."""


def begin(barrier: Any) -> None:
    """The first thing that a worker of a pool does."""
    warnings.simplefilter("ignore")  # fits of a few iterations say that they are short
    START[:] = [barrier]


def bits(name: str) -> list[np.ndarray]:
    """What a fit of this family says of its rows, and its course."""
    family = families()[name]
    for barrier in START:
        barrier.wait()
    return said(fitted(family), family.X)


def n_equal(pool: Executor, name: str, alone: Sequence[np.ndarray], n: int) -> int:
    """Of n fits of a family at once: how many say what one alone says, to the bit."""
    found = list(pool.map(bits, [name] * n))
    pairs = [zip(each, alone, strict=True) for each in found]
    return sum(all(np.array_equal(mine, its, equal_nan=True) for mine, its in each) for each in pairs)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--at-once", type=int, default=24)
    options.add_argument("--anew", action="store_true", help="forget what was counted")
    chosen = options.parse_args()
    n, file = chosen.at_once, RESULTS / "at_once.json"
    found = json.loads(file.read_text())["equal"] if file.exists() and not chosen.anew else {}
    warnings.simplefilter("ignore")
    spawn = multiprocessing.get_context("spawn")
    pools: dict[str, Callable[[], Executor]] = {
        "threads": lambda: ThreadPoolExecutor(n, initializer=begin, initargs=(threading.Barrier(n),)),
        "processes": lambda: ProcessPoolExecutor(n, spawn, initializer=begin, initargs=(spawn.Barrier(n),)),
    }
    for kind, name in [(kind, name) for kind in pools for name in families()]:
        own = found.setdefault(kind, {})
        if name not in own:
            START.clear()
            alone = bits(name)
            with pools[kind]() as pool:
                own[name] = n_equal(pool, name, alone, n)
            print(kind, name, own[name], flush=True)
            write_results("at_once", {"at_once": n, "equal": found})
            tell(found, n)


def tell(found: dict[str, dict[str, int]], n: int) -> None:
    """The table so far."""
    lines = [
        f"| family | {n} threads at once: equal to the bit | {n} processes at once: equal to the bit |",
        "|---|---|---|",
    ]
    names = dict.fromkeys(name for own in found.values() for name in own)
    kinds = ("threads", "processes")
    cells = [[name, *(str(found.get(kind, {}).get(name, "")) for kind in kinds)] for name in names]
    lines += [f"| {' | '.join(own)} |" for own in cells]
    write_table("at_once", lines)


if __name__ == "__main__":
    main()

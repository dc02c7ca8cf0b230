"""Fits of every family in 24 threads and in 24 processes at once: are they the bits of a fit alone?"""

from __future__ import annotations

import argparse
import multiprocessing
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
from common import write_results, write_table
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
    n = options.parse_args().at_once
    warnings.simplefilter("ignore")
    alone = {name: bits(name) for name in families()}
    with ThreadPoolExecutor(n, initializer=begin, initargs=(threading.Barrier(n),)) as pool:
        in_threads = {name: n_equal(pool, name, alone[name], n) for name in alone}
    print(in_threads, flush=True)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n, spawn, initializer=begin, initargs=(spawn.Barrier(n),)) as pool:
        in_processes = {name: n_equal(pool, name, alone[name], n) for name in alone}
    print(in_processes, flush=True)
    write_results("at_once", {"at_once": n, "threads": in_threads, "processes": in_processes})
    lines = [
        f"| family | {n} threads at once: equal to the bit | {n} processes at once: equal to the bit |",
        "|---|---|---|",
    ]
    lines += [f"| {name} | {in_threads[name]} | {in_processes[name]} |" for name in alone]
    write_table("at_once", lines)


if __name__ == "__main__":
    main()

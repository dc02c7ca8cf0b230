"""Ten fits of a Poisson Gaussian process on two worker processes, each of which loses one at a random moment.

Counted are the fits whose posterior has the bits of a fit that lost nobody.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from common import write_results, write_table

N_PARTS, ROWS = 20, 20_000


def rows(number: int) -> pd.DataFrame:
    """A part, made wherever it is wanted."""
    rng = np.random.default_rng(number)
    frame = pd.DataFrame(rng.normal(size=(ROWS, 4)), columns=list("abcd"))
    frame["count"] = rng.poisson(np.exp(0.5 * np.sin(2 * frame["a"]) + 0.3 * frame["b"]))
    return frame


def fitted(model: Any, frame: Any) -> tuple[np.ndarray, float]:
    """What a fit learned from all rows, and its seconds."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short course for the hyper-parameters is enough here
        model.fit(frame, "count")
    return model.posterior_.alpha, time.perf_counter() - began


def main() -> None:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from nongauss import SparseGPRegressor
    from nongauss.sparse_gp import fit as recipe

    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--kills", type=int, default=10)
    n_kills = options.parse_args().kills
    recipe.KEPT_NUMBERS = 50 * 2000  # hyper-parameters from 2,000 rows: what is tested are passes
    model = SparseGPRegressor("poisson", n_inducing=50, max_iter=20, random_state=0)
    fits = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        frame = dd.from_map(rows, range(N_PARTS), meta=rows(0)[:0])
        fitted(model, frame)  # workers import what they need
        expected, seconds = fitted(model, frame)
        rng = np.random.default_rng(0)
        for _ in range(n_kills):
            client.wait_for_workers(2)
            moment = float(rng.uniform(0.05, 0.95)) * seconds
            victim = list(client.run(os.getpid).values())[int(rng.integers(2))]
            timer = threading.Timer(moment, os.kill, (victim, signal.SIGKILL))
            timer.start()
            found, took = fitted(model, frame)
            timer.join()
            fits.append({"killed_after": moment, "seconds": took, "equal": bool((found == expected).all())})
            print(fits[-1], flush=True)
    write_results("kills", {"undisturbed": seconds, "fits": fits})
    equal, slowest = sum(fit["equal"] for fit in fits), max(fit["seconds"] for fit in fits)
    write_table(
        "kills",
        [
            f"{N_PARTS * ROWS:,} rows in {N_PARTS} parts; one of two workers was killed in each of "
            f"{len(fits)} fits: **{equal} of {len(fits)}** have the bits of the fit that lost nobody.",
            f"That one took {seconds:.1f} s, the slowest of the others {slowest:.1f} s.",
        ],
    )


if __name__ == "__main__":
    main()

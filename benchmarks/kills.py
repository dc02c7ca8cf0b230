"""Ten fits of a Poisson Gaussian process, each on two new workers, one of which is killed at a random moment.

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

import dask.dataframe as dd
import numpy as np
import pandas as pd
from common import write_results, write_table
from distributed import Client, LocalCluster

from nongauss import SparseGPRegressor
from nongauss.sparse_gp import params as gp_params

N_PARTS, ROWS = 20, 5_000


def rows(number: int) -> pd.DataFrame:
    """A part, made wherever it is wanted."""
    rng = np.random.default_rng(number)
    frame = pd.DataFrame(rng.normal(size=(ROWS, 4)), columns=list("abcd"))
    frame["count"] = rng.poisson(np.exp(0.5 * np.sin(2 * frame["a"]) + 0.3 * frame["b"]))
    return frame


def fitted(model: Any, victim: int = 0, moment: float | None = None) -> tuple[np.ndarray, float, bool]:
    """What a fit on two new workers learned from all rows, its seconds, and whether one was killed."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # a short course for the hyper-parameters is enough here
        frame = dd.from_map(rows, range(N_PARTS), meta=rows(0)[:0])
        pid = list(client.run(os.getpid).values())[victim]
        timer = threading.Timer(moment or 0.0, os.kill, (pid, signal.SIGKILL))
        if moment is not None:
            timer.start()
        began = time.perf_counter()
        model.fit(frame, "count")
        seconds = time.perf_counter() - began
        was_killed = moment is not None and not timer.is_alive()
        timer.cancel()
        return model.posterior_.alpha, seconds, was_killed


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--kills", type=int, default=10)
    n_kills = options.parse_args().kills
    gp_params.KEPT_NUMBERS = 50 * 2000  # hyper-parameters from 2,000 rows: what is tested are passes
    model = SparseGPRegressor("poisson", n_inducing=50, max_iter=20, random_state=0)
    expected, seconds, _ = fitted(model)
    rng = np.random.default_rng(0)
    fits: list[dict[str, Any]] = []
    while len(fits) < n_kills:
        moment = float(rng.uniform(0.05, 1.0)) * seconds
        found, took, was_killed = fitted(model, int(rng.integers(2)), moment)
        if was_killed:  # else it was over before
            fits.append({"after": moment, "seconds": took, "equal": bool((found == expected).all())})
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

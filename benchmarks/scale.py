"""Seconds, memory and bytes of a pass over made rows: in memory, from disk, on two devices, on Dask workers.

A pass is what a fit repeats: a step of q of a Poisson Gaussian process (M = 200), a full-batch gradient of a
TGGM, an epoch of a harmonium (K = 100; rows come to the learner), a judgement of a rectangle mixture's rules.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import RESULTS, write_results, write_table

MODELS = ("gp", "tggm", "harmonium", "rectangle")
ENGINES = ("memory", "stream", "devices 2", "dask 1", "dask 2")
COLUMNS = [f"x{j}" for j in range(20)]


def write_parts(folder: Path, n_rows: int) -> None:
    """Parquet files of 10 row groups each, four row groups in all at least, of 50,000 rows at most."""
    size = min(50_000, n_rows // 4)
    for number in range(-(-n_rows // (10 * size))):
        rng = np.random.default_rng(number)
        X = rng.normal(size=(min(10 * size, n_rows - 10 * size * number), 20))
        frame = pd.DataFrame(X, columns=COLUMNS)
        frame["count"] = rng.poisson(np.exp(0.5 * np.sin(2 * X[:, 0]) + 0.3 * X[:, 1])).astype(float)
        frame.to_parquet(folder / f"{number:04}.parquet", index=False, row_group_size=size)


@contextlib.contextmanager
def opened(folder: Path, engine: str) -> Iterator[tuple[Any, Any]]:
    """The raw parts where the engine has them, and its client."""
    from nongauss.tables.dask_source import Cluster
    from nongauss.tables.learn import as_source
    from nongauss.tables.parquet import loaded, parquet_parts
    from nongauss.tables.source import Stream

    if not engine.startswith("dask"):
        source = as_source(folder, "count")
        yield source if engine == "stream" else Stream(list(source.each(same))), None
        return
    from distributed import Client, LocalCluster

    workers = int(engine.split()[1])
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as local,
        Client(local) as client,
    ):
        from dataclasses import replace

        for core, worker in enumerate(client.scheduler_info()["workers"]):
            client.run(pin, core, workers=[worker])

        handles = [replace(part, target="count") for part in parquet_parts(folder)]
        yield Cluster(client, handles).map(loaded), client


def same(part: Any) -> Any:
    return part


def pin(core: int) -> None:
    """All threads of this process, and those to come, to one core: a compiled step would take more."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), [core])


def encoded(source: Any, engine: str, read: Any) -> Any:
    """Encoded rows: held by the engine, or read and encoded in each pass where it streams."""
    from nongauss.tables.learn import learn
    from nongauss.tables.source import Encode, Stream

    encoder = learn(source, "bench").encoder
    rows = source.map(Encode(encoder, read, "bench"))
    return Stream(list(rows.each(same))) if engine in ("memory", "devices 2") else rows


def two_outputs(part: Any, weight: Any) -> np.ndarray:
    return np.stack([np.asarray(part.y), np.zeros(len(weight))], axis=1)


def one_output(part: Any, weight: Any) -> np.ndarray:
    return np.asarray(part.y)[:, None] - 1.0


def gp_pass(source: Any, engine: str) -> tuple[Callable[[], Any], Any, Any]:
    from nongauss.sparse_gp import streamed_posterior as passes
    from nongauss.sparse_gp.data import as_rows
    from nongauss.sparse_gp.kernels import Space, parse
    from nongauss.sparse_gp.likelihoods import REGRESSION
    from nongauss.sparse_gp.params import GPModel, start

    rows = encoded(source, engine, two_outputs).map(as_rows)
    model = GPModel((parse("matern52"),), (0,), Space(tuple(COLUMNS), tuple(range(20))),
                  REGRESSION["poisson"](expectation="auto"), np.zeros(1))  # fmt: skip
    params = start(model, np.zeros(0), np.random.default_rng(0).normal(size=(200, 20)))
    alpha, W = np.zeros((1, 200)), np.zeros((1, 200, 200))
    arguments = (model, params, alpha, W)
    return partial(rows.sum, passes.next_sums, *arguments), arguments, rows


def tggm_pass(source: Any, engine: str) -> tuple[Callable[[], Any], Any, Any]:
    import jax

    from nongauss.optimise.minibatch import _on_devices, over_devices, pad_rows, statistics
    from nongauss.tggm import updates
    from nongauss.tggm.config import NetworkConfig
    from nongauss.tggm.data import HeldOutInputs, _batch_of
    from nongauss.tggm.params import start

    config = NetworkConfig((50,), "ml", "moments", 10, None, None)
    nobody = HeldOutInputs(np.zeros(0, np.uint64), np.zeros(0, np.int32))
    rows = encoded(source, engine, one_output).map(_batch_of, nobody, 1.0)
    params = start(np.random.default_rng(0), config, 5, 20, np.zeros((2, 1), np.float32))
    key = np.asarray(jax.random.key_data(jax.random.key(0)))
    arguments = (updates.GradientSums(config), key, params)
    if engine == "devices 2":
        from nongauss.tables.source import joined

        whole = joined(list(rows.each(same)))
        shared = over_devices(pad_rows(whole.data, whole.weight))
        local = jax.jit(partial(_on_devices, updates.GradientSums(config)))
        return lambda: jax.tree.map(np.asarray, local(jax.random.key(0), params, shared)), arguments, rows
    return partial(rows.sum, statistics, *arguments), arguments, rows


def harmonium_pass(source: Any, engine: str) -> tuple[Callable[[], Any], Any, Any]:
    from nongauss.harmonium.config import UNSUPERVISED, HarmoniumRecipe
    from nongauss.harmonium.contrastive_divergence import ContrastiveLearner
    from nongauss.harmonium.data import EncodeUnits, RowSource, as_visible_rows
    from nongauss.harmonium.visible_units import unit_coder
    from nongauss.tables.learn import learn
    from nongauss.tables.source import Stream, sample

    learned = learn(source, "bench")
    coder = unit_coder(learned, None)
    rows = source.map(EncodeUnits(coder, None, "bench"))
    rows = Stream(list(rows.each(same))) if engine == "memory" else rows
    first = as_visible_rows(sample(rows, 5000).rows, False)
    n_rows = int(learned.counted.rows)
    recipe = HarmoniumRecipe(100, "binary", "cd", 1, 256, False, 1.0, "accurate", 0.0, seed=0)
    all_rows = RowSource(rows.map(as_visible_rows, False), n_rows, float(n_rows))
    learner = ContrastiveLearner(coder.layout, first, recipe, UNSUPERVISED, 4, all_rows)
    return partial(learner.epoch, 0), None, rows


def rectangle_pass(source: Any, engine: str) -> tuple[Callable[[], Any], Any, Any]:
    from nongauss import RectangleMixture
    from nongauss.rectangle.params import RectangleParams, SoftBoxes
    from nongauss.rectangle.predict import tally_of
    from nongauss.tables.learn import learn
    from nongauss.tables.source import Encode, sample_table

    whole = learn(source, "bench").encoder
    first = sample_table(source, Encode(whole, None, "bench"), 1000).table
    model = RectangleMixture(5, n_init=1, max_iter=3, random_state=0).fit(first)
    shape = (1, model.n_clusters_, len(COLUMNS))
    boxes = SoftBoxes(np.full(shape, -1.0), np.full(shape, 1.0), np.zeros((*shape[:2], 0)))
    views, rules, structure, kind = model._fitted
    arguments = (views, whole, "bench", rules, RectangleParams(boxes, structure), kind)
    return partial(source.sum, tally_of, *arguments), arguments, source


PASSES = {"gp": gp_pass, "tggm": tggm_pass, "harmonium": harmonium_pass, "rectangle": rectangle_pass}


def processor_and_memory() -> tuple[float, float]:
    return time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(folder: str, engine: str, model: str, n_rows: int) -> dict[str, Any]:
    """One engine and model in this process."""
    if engine in ("memory", "stream"):
        pin(0)
    with opened(Path(folder), engine) as (source, client):
        run, arguments, _ = PASSES[model](source, engine)
        run()  # compiles, reads, brings parts to their workers
        before = client.run(processor_and_memory) if client else {}
        seconds = []
        began_cpu = time.process_time()
        repeats = 3 if n_rows < 5_000_000 else 1
        for _ in range(repeats):
            began = time.perf_counter()
            result = run()
            seconds.append(time.perf_counter() - began)
        after = client.run(processor_and_memory) if client else {}
        cpu = [(after[name][0] - before[name][0]) / repeats for name in after]
        return {
            "rows": n_rows,
            "model": model,
            "engine": engine,
            "seconds": float(np.median(seconds)),
            "cpu_here": (time.process_time() - began_cpu) / repeats,
            "cpu_workers": cpu,
            "peak_mib": processor_and_memory()[1],
            "peak_worker_mib": max((memory for _, memory in after.values()), default=None),
            "bytes_out": len(pickle.dumps(arguments)),
            "bytes_back": len(pickle.dumps(result)),
        }


def whole(folder: str, model: str, n_rows: int) -> dict[str, Any]:
    """A whole fit from disk, of one epoch where there are epochs, in this process on one core."""
    from nongauss import Harmonium, RectangleMixture, SparseGPRegressor, TGGMRegressor

    pin(0)
    estimator: Any = {
        "gp": SparseGPRegressor("poisson", n_inducing=200, max_iter=20, random_state=0),
        "tggm": TGGMRegressor(max_epochs=1, random_state=0),
        "harmonium": Harmonium(100, max_epochs=1, random_state=0),
        "rectangle": RectangleMixture(5, random_state=0),
    }[model]
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of short courses
        estimator.fit(folder, None if model in ("harmonium", "rectangle") else "count")
    seconds = time.perf_counter() - began
    cpu, peak = processor_and_memory()
    return {"rows": n_rows, "model": model, "seconds": seconds, "cpu": cpu, "peak_mib": peak}


def table(fits: list[dict[str, Any]], wholes: list[dict[str, Any]]) -> list[str]:
    lines = [
        "Median of three passes (one at 10,000,000 rows) in a fresh process. A process with rows, and each",
        "worker, has one core, two devices have two; client and scheduler run on either. Bytes: what a",
        "worker is sent and sends back.",
        "",
        "| rows | model | engine | s a pass | processor s in all | of them here | of the busiest worker "
        "| peak MiB: here / worker | bytes out / back |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for f in fits:
        workers = f["cpu_workers"]
        peak = f"{f['peak_mib']:.0f} / " + (f"{f['peak_worker_mib']:.0f}" if workers else "–")
        lines.append(
            f"| {f['rows']:,} | {f['model']} | {f['engine']} | {f['seconds']:.2f} "
            f"| {f['cpu_here'] + sum(workers):.2f} | {f['cpu_here']:.2f} "
            f"| {f'{max(workers):.2f}' if workers else '–'} "
            f"| {peak} | {f['bytes_out']:,} / {f['bytes_back']:,} |"
        )
    lines += [
        "",
        "Whole fits from disk on one core; of TGGM and harmonium one epoch, of the Gaussian process at",
        "most 20 iterations for the hyper-parameters.",
        "",
        "| rows | model | s | peak MiB |",
        "|---|---|---|---|",
    ]
    lines += [f"| {f['rows']:,} | {f['model']} | {f['seconds']:.0f} | {f['peak_mib']:.0f} |" for f in wholes]
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--one", nargs=4, help="folder, engine, model, rows: one line")
    options.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    options.add_argument("--models", nargs="+", default=MODELS)
    options.add_argument("--engines", nargs="+", default=ENGINES)
    options.add_argument("--whole", nargs=3, help="folder, model, rows: one whole fit")
    options.add_argument("--fits", action="store_true", help="whole fits instead of passes")
    chosen = options.parse_args()
    if chosen.one:
        print(json.dumps(one(*chosen.one[:3], int(chosen.one[3]))))
        return
    if chosen.whole:
        print(json.dumps(whole(*chosen.whole[:2], int(chosen.whole[2]))))
        return
    for n_rows in chosen.rows:
        with tempfile.TemporaryDirectory() as folder:
            write_parts(Path(folder), n_rows)
            for model in chosen.models:
                if chosen.fits:
                    measure("wholes", n_rows, ["--whole", folder, model, str(n_rows)])
                    continue
                for engine in chosen.engines:
                    if engine != "devices 2" or model == "tggm":
                        measure("fits", n_rows, ["--one", folder, engine, model, str(n_rows)])


def measure(kind: str, n_rows: int, arguments: list[str]) -> None:
    """One line in a process of its own, put in its place among those there are."""
    flags = "--xla_cpu_multi_thread_eigen=false"
    flags += " --xla_force_host_platform_device_count=2" * ("devices 2" in arguments)
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        capture_output=True, text=True, env={**os.environ, "XLA_FLAGS": flags},
    )  # fmt: skip
    if done.returncode:
        print(done.stderr[-2000:], flush=True)
        return
    found = json.loads(done.stdout.splitlines()[-1])
    print(found, flush=True)
    file = RESULTS / "scale.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    lines = [f for f in kept.get(kind, []) if place(f) != place(found)] + [found]
    kept = {"fits": [], "wholes": []} | kept | {kind: sorted(lines, key=place)}
    write_results("scale", {name: kept[name] for name in ("fits", "wholes")})
    write_table("scale", table(kept["fits"], kept["wholes"]))


def place(line: dict[str, Any]) -> tuple[int, int, int]:
    """Where a line stands in its table."""
    engine = ENGINES.index(line["engine"]) if "engine" in line else 0
    return line["rows"], MODELS.index(line["model"]), engine


if __name__ == "__main__":
    main()

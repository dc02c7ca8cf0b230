"""The steps behind `nongauss fit --engine stream | dask` and `nongauss predict` for tables past memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nongauss.cli.choose import closest
from nongauss.cli.judge import Outcome, outcome_of, rows_like, with_checkpoint
from nongauss.cli.predict import USUAL, Wanted, prediction_frame
from nongauss.cli.read import NOTHING, Declared, Table, prepare
from nongauss.cli.split import LAST, HeldOut
from nongauss.core.errors import InputError
from nongauss.core.files import atomic_path
from nongauss.report.evidence import Dependence
from nongauss.report.judgement import beside_usual
from nongauss.report.scoring import fit_timed
from nongauss.report.verdict import no_verdict
from nongauss.tables.files import PARQUET_SUFFIXES, read_table
from nongauss.tables.learn import as_source, learn
from nongauss.tables.parquet import ParquetParts, loaded, parquet_parts
from nongauss.tables.source import Encode, Stream, itself, naming, sample_table

ENGINES = ("memory", "stream", "dask")

_ONLY_IN_MEMORY = ("exposure", "censored", "missing", "group", "levels")

MOST_SAMPLED = 20_000
"""Rows from which a model is chosen, and rows by which it is judged."""


def check_engine(engine: str, scheduler: str | None, declared: Declared = NOTHING) -> None:
    """Raises InputError for an engine there is not, a scheduler without Dask, and what no part is told of."""
    if engine not in ENGINES:
        raise InputError(f"There is no engine {engine!r};{closest(engine, ENGINES)}")
    if scheduler is not None and engine != "dask":
        raise InputError(f"--scheduler goes with --engine dask, not {engine}; give both or neither.")

    unheard = [name for name in _ONLY_IN_MEMORY if getattr(declared, name)]
    if engine != "memory" and unheard:
        options = ", ".join(f"--{name}" for name in unheard)
        raise InputError(f"{options}: not known to --engine {engine}; leave it out, or fit in memory.")


@contextmanager
def dask_client(scheduler: str | None) -> Iterator[str]:
    """A Dask client for the block: of the cluster at an address, or of one of this machine's cores.

    Yields a line that says where it is. Raises InputError without the extra, OSError where nobody answers.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise InputError(
            "--engine dask needs Dask; pip install 'nongauss[dask]', or give --engine stream."
        ) from error
    if scheduler is not None:
        with distributed.Client(scheduler) as client:
            yield f"Dask cluster at {scheduler}, dashboard {client.dashboard_link}."
        return
    local_cluster = distributed.LocalCluster(threads_per_worker=1, dashboard_address=":0")
    with local_cluster as local, distributed.Client(local) as client:
        yield f"Dask cluster of {len(local.workers)} local workers, dashboard {client.dashboard_link}."


def sampled_table(
    path: str | Path,
    target: str,
    model: str = "auto",
    task: str = "auto",
    settings: Iterable[str] = (),
    declared: Declared = NOTHING,
    why_single: str = "",
) -> Table:
    """As `load_table`, from a sample of the rows that depends on their content alone."""
    source = as_source(path)
    encoder = learn(source, "this table").encoder
    found = sample_table(source, Encode(encoder, None, "this table"), MOST_SAMPLED)
    how: dict[str, Any] = {"source": Path(path).name, "codes_as_labels": False, "why_single": why_single}
    table = prepare(found.table, target, model, task, settings, declared, **how)
    if table.understood.scale != 1.0:
        raise InputError(
            f"The target {target!r} is in percent, which parts are not read as; divide it by 100, "
            "give --kind real, or fit in memory."
        )
    return table


def fit_parts(
    model: Any,
    table: Table,
    path: Path,
    engine: str,
    *,
    held_out: HeldOut,
    seed: int,
    checkpoint: Path | None,
) -> Outcome:
    """Fit on most parts of the table, judge on a sample of the others; the model that was judged is kept.

    The usual models beside it are fitted to a sample of the same parts. Rows without a target and columns of
    ids are left out. A table of one part, or a share of 0, leaves nothing to judge by.
    """
    ids = tuple(name for name, _ in table.ignored)
    parts = [replace(part, needs=table.target, without=ids) for part in parquet_parts(path)]
    held, fitted = _dealt(len(parts), held_out, seed)
    train = ParquetParts(parts[i] for i in fitted)
    X = train if engine == "stream" else _dask_frame(train)
    final, seconds = fit_timed(with_checkpoint(model, checkpoint), X, table.target)
    if held_out.test is not None:
        rows, where = read_table(held_out.test), f"of {held_out.test.name}"
    elif len(held):
        rows, where = _rows_of([parts[i] for i in held], seed), f"from {len(held)} of {len(parts)} parts"
    else:
        why = "No part of the table was held out."
        note = f"{why[:-1]}, so there are no scores on held-out rows."
        return Outcome(final, final, train.n_rows, verdict=no_verdict(why), notes=[note])
    test, groups = rows_like(table, rows, held_out.declared, path.name)
    sample, _ = rows_like(table, _rows_of(list(train), seed), held_out.declared, path.name)
    found = beside_usual(final, sample, test, seconds=seconds, seed=seed)
    notes = [f"Scores are on {len(test.y)} rows {where}, not fitted to."]
    if groups is not None:
        notes.append("Parts are held out whole: a group with rows in several can be on both sides.")
    if len(sample.y) < train.n_rows:
        notes.append(f"The standard models were fitted to {len(sample.y)} of the {train.n_rows} rows.")
    return outcome_of(found, final, table, train.n_rows, notes, Dependence(groups))


def _dealt(n_parts: int, held_out: HeldOut, seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Numbers of the parts to hold out and of those to fit: at random, or the last; none for a test file."""
    order = np.random.default_rng(seed).permutation(n_parts)
    if held_out.how == LAST:
        order = np.arange(n_parts)[::-1]
    none = held_out.test is not None or not held_out.share
    n_held = 0 if none else min(n_parts - 1, max(1, round(held_out.share * n_parts)))
    return order[:n_held], np.sort(order[n_held:])


def _rows_of(parts: list[Any], seed: int) -> pd.DataFrame:
    """Rows of these parts, a random `MOST_SAMPLED` of them at most."""
    share = max(1, MOST_SAMPLED // len(parts))
    rng = np.random.default_rng(seed)
    frames = []
    for part in parts:
        frame = part.load().X
        frames.append(frame.iloc[np.sort(rng.permutation(len(frame))[:share])])
    rows: pd.DataFrame = pd.concat(frames, ignore_index=True)
    return rows


def _dask_frame(parts: ParquetParts) -> Any:
    frames: Any = import_module("dask.dataframe")
    return frames.from_map(_frame_of, list(parts), meta=_frame_of(parts[0]).iloc[:0])


def _frame_of(part: Any) -> pd.DataFrame:
    frame: pd.DataFrame = part.load().X
    return frame


def is_past_memory(data: Path, out: Path) -> bool:
    """Are predictions to be made and written part by part: a folder or pattern, or Parquet to Parquet?"""
    if data.is_dir() or (not data.exists() and any(sign in str(data) for sign in "*?[")):
        if not out.name.endswith(PARQUET_SUFFIXES):
            raise InputError(
                f"Predictions of many parts are written as Parquet; end {out.name} with .parquet."
            )
        return True
    return data.exists() and all(path.name.endswith(PARQUET_SUFFIXES) for path in (data, out))


def predict_parts(model: Any, data: Path, out: Path, what: Wanted = USUAL) -> int:
    """Predict part after part, each a row group of `out`, which is written whole or not at all.

    Returns the number of rows. Row i of `out` belongs to row i of `data`, files in the order of their names.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = parquet_parts(data)
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(out) as temporary:
        writer = None
        try:
            for part in Stream(parts, loaded).each(itself):
                frame = naming(part, partial(prediction_frame, model, part.X, what))
                if writer is None:
                    schema = _schema_of(frame)
                    writer = pq.ParquetWriter(temporary, schema)
                writer.write_table(pa.Table.from_pandas(frame, schema=schema, preserve_index=False))
        finally:
            if writer is not None:
                writer.close()
    return parts.n_rows


def _schema_of(frame: pd.DataFrame) -> Any:
    """Types of the columns; those of objects are text, also where the first part has none."""
    import pyarrow as pa

    found = pa.Schema.from_pandas(frame, preserve_index=False).remove_metadata()
    fields = [field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in found]
    return pa.schema(fields)

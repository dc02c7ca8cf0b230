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
import pandas as pd

from nongauss.cli.choose import closest
from nongauss.cli.judge import Outcome, check_share, with_checkpoint
from nongauss.cli.predict import prediction_columns
from nongauss.cli.read import NOTHING, Declared, Table, prepare
from nongauss.core.errors import InputError
from nongauss.core.files import atomic_path
from nongauss.report.metrics import fit_and_score, raise_if_stopped
from nongauss.tables.files import PARQUET_SUFFIXES
from nongauss.tables.learn import as_source, learn
from nongauss.tables.parquet import ParquetParts, loaded, parquet_parts
from nongauss.tables.source import Encode, Stream, itself, naming, sample_table

ENGINES = ("memory", "stream", "dask")

MOST_SAMPLED = 20_000
"""Rows from which a model is chosen, and rows by which it is judged."""


def check_engine(engine: str, scheduler: str | None) -> None:
    """Raises InputError for an engine that there is not, and a scheduler without Dask."""
    if engine not in ENGINES:
        raise InputError(f"There is no engine {engine!r};{closest(engine, ENGINES)}")
    if scheduler is not None and engine != "dask":
        raise InputError(f"--scheduler goes with --engine dask, not {engine}; give both or neither.")


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
) -> Table:
    """As `load_table`, from a sample of the rows that depends on their content alone."""
    source = as_source(path)
    encoder = learn(source, "this table").encoder
    found = sample_table(source, Encode(encoder, None, "this table"), MOST_SAMPLED)
    return prepare(found.table, target, model, task, settings, declared, source=Path(path).name)


def fit_parts(
    model: Any, table: Table, path: Path, engine: str, *, test_size: float, seed: int, checkpoint: Path | None
) -> Outcome:
    """Fit on most parts of the table, judge on a sample of the others; the model that was judged is kept.

    Rows without a target and columns of ids are left out. A table of one part, or `test_size` 0, leaves
    nothing to judge by.
    """
    check_share(test_size)
    ids = tuple(name for name, _ in table.ignored)
    parts = [replace(part, needs=table.target, without=ids) for part in parquet_parts(path)]
    order = np.random.default_rng(seed).permutation(len(parts))
    n_held = min(len(parts) - 1, max(1, round(test_size * len(parts)))) if test_size else 0
    train = ParquetParts(parts[i] for i in np.sort(order[n_held:]))
    kept = with_checkpoint(model, checkpoint)
    X = train if engine == "stream" else _dask_frame(train)
    if not n_held:
        final = kept.fit(X, table.target)
        raise_if_stopped(final)
        notes = ["No part of the table was held out, so there are no held-out figures."]
        return Outcome(final, final, train.n_rows, notes=notes)
    rows = _rows_of([parts[i] for i in order[:n_held]], seed)
    held = prepare(rows, table.target, table.choice.model, table.choice.task, source=path.name)
    X_test, y_test = rows[list(table.X.columns)], held.y
    final, figures = fit_and_score(kept, X, table.target, X_test, y_test, levels=table.levels)
    note = f"Held-out figures are of {len(y_test)} rows from {n_held} of {len(parts)} parts, not fitted to."
    return Outcome(final, final, train.n_rows, {type(model).__name__: figures}, (X_test, y_test), [note])


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


def predict_parts(model: Any, data: Path, out: Path) -> int:
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
                frame = pd.DataFrame(naming(part, partial(prediction_columns, model, part.X)))
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

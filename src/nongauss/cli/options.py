"""The options of the commands, by name: each is said once, for every command that takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="Table: CSV (also gzipped) or Parquet; with --engine, a folder or pattern."
    ),
]
Target = Annotated[str, typer.Option(help="Column to predict.")]
Model = Annotated[str, typer.Option(help="auto (by the target's kind), tggm or sparse_gp.")]
Task = Annotated[
    str, typer.Option(help="auto (by the target's kind), regression, classification or ordinal.")
]
Out = Annotated[Path, typer.Option(help="Folder for the model file and the report.")]
Save = Annotated[Path | None, typer.Option(help="Model file; by default model.nongauss in --out.")]
Report = Annotated[Path | None, typer.Option(help="Report; by default report.html in --out.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the split and of the fit.")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Most epochs of a fit.")]
RuleColumns = Annotated[str | None, typer.Option(help="Columns of the rules, with commas; all by default.")]
LookColumns = Annotated[
    str | None,
    typer.Option(help="Columns in which rows of a cluster are alike, with commas; all by default."),
]
Clusters = Annotated[int | None, typer.Option(min=1, help="Number of clusters; chosen by default.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="A parameter of the model, name=value.")]
Engine = Annotated[
    str, typer.Option(help="memory, or for Parquet files past it: stream (from disk), dask (on a cluster).")
]
Scheduler = Annotated[str | None, typer.Option(help="Address of a Dask scheduler; a local one by default.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

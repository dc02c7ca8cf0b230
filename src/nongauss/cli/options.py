"""The options of the commands, by name: each is said once, for every command that takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Texts = list[str] | None

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="Table: CSV (also gzipped) or Parquet; with --engine, a folder or pattern."
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that `fit` saved.")]
Target = Annotated[str | None, typer.Option(help="Column to predict; without it, the columns are named.")]
Model = Annotated[
    str, typer.Option(help="auto (by the target's kind), tggm, sparse_gp, harmonium or rank_factor.")
]
Task = Annotated[
    str, typer.Option(help="auto (by the target's kind), regression, classification or ordinal.")
]

Kind = Annotated[
    str | None,
    typer.Option(help="What the target is, where its cells say otherwise: real, positive, count, ..."),
]
Levels = Annotated[
    Texts, typer.Option(help="Levels of the target from lowest to highest, with commas: poor,fair,good.")
]
Exposure = Annotated[str | None, typer.Option(help="Column of the time or size that each count is of.")]
Censored = Annotated[
    str | None,
    typer.Option(help="Column that says where the target is only a bound: COLUMN, or COLUMN=VALUE."),
]
Group = Annotated[str | None, typer.Option(help="Column of rows that belong together, held out together.")]
Ignore = Annotated[Texts, typer.Option(help="Columns to leave out, with commas.")]
Missing = Annotated[Texts, typer.Option(help="COLUMN=VALUE: cells that stand for a gap. Repeat for more.")]
Split = Annotated[
    str, typer.Option(help="Rows held out: random, last (of the file), or by COLUMN (its highest values).")
]
Test = Annotated[Path | None, typer.Option(help="Table of rows to judge by, in place of held-out ones.")]
TestSize = Annotated[float, typer.Option(help="Share of rows held out to judge the model.")]

Out = Annotated[Path, typer.Option(help="Folder for the model file and the report.")]
Save = Annotated[Path | None, typer.Option(help="Model file; by default model.nongauss in --out.")]
Report = Annotated[Path | None, typer.Option(help="Report; by default report.html in --out.")]
Checkpoint = Annotated[Path | None, typer.Option(help="File to go on from after an interruption.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]

Seed = Annotated[int, typer.Option(min=0, help="Seed of the split and of the fit.")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Most epochs of a fit.")]
Refit = Annotated[bool, typer.Option(help="Fit the saved model on all rows after judging.")]
Settings = Annotated[Texts, typer.Option("--set", help="A parameter of the model, name=value.")]
Engine = Annotated[
    str, typer.Option(help="memory, or for Parquet files past it: stream (from disk), dask (on a cluster).")
]
Scheduler = Annotated[str | None, typer.Option(help="Address of a Dask scheduler; a local one by default.")]

RuleColumns = Annotated[str | None, typer.Option(help="Columns of the rules, with commas; all by default.")]
LookColumns = Annotated[
    str | None,
    typer.Option(help="Columns in which rows of a cluster are alike, with commas; all by default."),
]
Clusters = Annotated[int | None, typer.Option(min=1, help="Number of clusters; chosen by default.")]
Folds = Annotated[int, typer.Option(help="Number of folds.")]

Predictions = Annotated[Path, typer.Option(help="Table to write: CSV (also .gz) or Parquet.")]
Id = Annotated[str | None, typer.Option(help="Column that names the rows, written first.")]
Keep = Annotated[Texts, typer.Option(help="Columns to write before the predictions, with commas.")]
Coverage = Annotated[Texts, typer.Option(help="Intervals, in per cent, with commas: 50,90. By default 90.")]
Quantiles = Annotated[Texts, typer.Option(help="Quantiles, with commas: .05,.5,.95.")]

Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

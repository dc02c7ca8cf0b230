"""The options of the commands, by name: each is said once, and those that go together make one value."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

Texts = list[str] | None

Data = Annotated[Path, typer.Argument(metavar="DATA", help="Table: CSV (also gzipped) or Parquet.")]
DataOrParts = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="Table: CSV (also gzipped) or Parquet; with --engine, a folder or pattern."
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file saved by `fit`.")]
Target = Annotated[
    str | None, typer.Option(help="Column to predict; if left out, the error lists the columns.")
]
ScoredTarget = Annotated[
    str | None, typer.Option("--target", help="Column of the target; by default the one in training.")
]
Model = Annotated[
    str, typer.Option(help="auto (tries all models that suit the target), tggm, sparse_gp, ...")
]
Task = Annotated[
    str, typer.Option(help="auto (by the kind of the target), regression, classification or ordinal.")
]

Kind = Annotated[
    str | None,
    typer.Option(help="Kind of the target, if it is not recognised: real, positive, count, ..."),
]
Levels = Annotated[
    Texts,
    typer.Option(help="Levels of the target from lowest to highest, separated by commas: poor,fair,good."),
]
Exposure = Annotated[str | None, typer.Option(help="Column with the exposure of each count (time or size).")]
Censored = Annotated[
    str | None,
    typer.Option(help="Column that marks rows with a censored target: COLUMN, or COLUMN=VALUE."),
]
ScoredCensored = Annotated[
    str | None,
    typer.Option(
        "--censored",
        help="Column that marks rows with a censored target, if it is not the one in training.",
    ),
]
Group = Annotated[str | None, typer.Option(help="Column of groups of rows, which are held out together.")]
Ignore = Annotated[Texts, typer.Option(help="Columns to leave out, separated by commas.")]
Use = Annotated[
    Texts, typer.Option(help="Columns that are inputs whatever they look like, separated by commas.")
]
Missing = Annotated[
    Texts, typer.Option(help="COLUMN=VALUE: a value that stands for a missing cell. May be repeated.")
]
Split = Annotated[
    str,
    typer.Option(
        help='Rows held out: random, last (in time, or else in the file), or "by COLUMN" (whole groups).'
    ),
]
Test = Annotated[
    Path | None,
    typer.Option(help="Table of rows for evaluation; all rows of DATA are then used for fitting."),
]
TestSize = Annotated[float, typer.Option(help="Share of rows held out for evaluation.")]

Out = Annotated[Path, typer.Option(help="Folder for the model file and the report.")]
Save = Annotated[Path | None, typer.Option(help="Model file; by default model.nongauss in --out.")]
Report = Annotated[Path | None, typer.Option(help="Report file; by default report.html in --out.")]
Checkpoint = Annotated[Path | None, typer.Option(help="File from which an interrupted fit resumes.")]
Raw = Annotated[
    bool, typer.Option("--raw", help="Write text cells as they are, without an apostrophe before = + - @.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]

Seed = Annotated[int, typer.Option(min=0, help="Seed of all that is random.")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Maximum number of epochs of a fit.")]
MostRows = Annotated[
    int | None,
    typer.Option(
        min=0,
        help=(
            "Maximum number of rows to fit, drawn at random; 0 for all. By default, as many as take minutes."
        ),
    ),
]
Refit = Annotated[bool, typer.Option(help="Fit the saved model to all rows after evaluation.")]
Settings = Annotated[
    Texts, typer.Option("--set", help="Parameter of the model, name=value. May be repeated.")
]
Engine = Annotated[
    str, typer.Option(help="memory; or, for larger Parquet files, stream (from disk) or dask (cluster).")
]
Scheduler = Annotated[str | None, typer.Option(help="Address of a Dask scheduler; a local one by default.")]

RuleColumns = Annotated[
    str | None, typer.Option(help="Columns that rules may use, separated by commas; all by default.")
]
LookColumns = Annotated[
    str | None,
    typer.Option(help="Columns in which rows of a cluster are similar, separated by commas; all by default."),
]
Clusters = Annotated[int | None, typer.Option(min=1, help="Number of clusters; chosen by default.")]
Folds = Annotated[int, typer.Option(min=2, help="Number of folds.")]

Predictions = Annotated[Path, typer.Option(help="Table to write: CSV (also .gz) or Parquet.")]
Id = Annotated[str | None, typer.Option("--id", help="Column that identifies the rows, written first.")]
Keep = Annotated[Texts, typer.Option(help="Columns to write before the predictions, separated by commas.")]
Coverage = Annotated[
    Texts, typer.Option(help="Coverage of intervals in percent, separated by commas: 50,90. By default 90.")
]
Quantiles = Annotated[Texts, typer.Option(help="Quantiles, separated by commas: .05,.5,.95.")]

FullTable = Annotated[Path, typer.Option(help="Imputed table to write: CSV (also .gz) or Parquet.")]
Draws = Annotated[
    int,
    typer.Option(
        min=0, help="Number of further tables to write, with missing cells drawn at random, for pooling."
    ),
]
Imputer = Annotated[
    str, typer.Option(help="auto (the one that predicts hidden cells best), rank_factor or harmonium.")
]

Quiet = Annotated[bool, typer.Option("--quiet", help="Do not show progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


class Outputs(NamedTuple):
    """Where the files of a command go, by the option that says so, and whether older ones are replaced."""

    paths: dict[str, Path]
    force: bool

    def __str__(self) -> str:
        return f"Saved the model to {self.paths['--save']} and the report to {self.paths['--report']}."

    def as_record(self) -> dict[str, Path]:
        """What JSON says of it."""
        return {"saved": self.paths["--save"], "report": self.paths["--report"]}


class Talk(NamedTuple):
    """How a command speaks."""

    quiet: bool
    as_json: bool


class Apart(NamedTuple):
    """The rows that a person asks to be judged by."""

    split: str
    test: Path | None
    share: float


class Choices(NamedTuple):
    """The model that a person asks for."""

    model: str
    task: str
    settings: Sequence[str]
    seed: int
    max_epochs: int | None
    most_rows: int | None


def outputs(out: Out = Path("."), save: Save = None, report: Report = None, force: Force = False) -> Outputs:
    """Of a command that writes a model and a report."""
    paths = {"--save": save or out / "model.nongauss", "--report": report or out / "report.html"}
    return Outputs(paths, force)


def choices(
    model: Model = "auto",
    task: Task = "auto",
    set_: Settings = None,
    seed: Seed = 0,
    max_epochs: Epochs = None,
    most_rows: MostRows = None,
) -> Choices:
    """Of a command that chooses a model by the target."""
    return Choices(model, task, set_ or (), seed, max_epochs, most_rows)


def apart(split: Split = "random", test: Test = None, test_size: TestSize = 0.2) -> Apart:
    """Of a command that judges a fit."""
    return Apart(split, test, test_size)


def declared(
    kind: Kind = None,
    levels: Levels = None,
    exposure: Exposure = None,
    censored: Censored = None,
    group: Group = None,
    ignore: Ignore = None,
    use: Use = None,
    missing: Missing = None,
) -> Any:
    """Of a command that reads a table with a target: what a person says of it, a `cli.read.Declared`."""
    from nongauss.cli.read import Declared

    return Declared(
        kind=kind,
        levels=listed(levels),
        exposure=exposure,
        censored=censored,
        group=group,
        ignore=listed(ignore),
        use=listed(use),
        missing=tuple(missing or ()),
    )


def talk(quiet: Quiet = False, as_json: Json = False) -> Talk:
    """Of every command that takes its time."""
    return Talk(quiet, as_json)


def listed(texts: Sequence[str] | None) -> tuple[str, ...]:
    """Names joined by commas, in one text or several; one with a comma in it stands in quotation marks."""
    rows = csv.reader(texts or (), skipinitialspace=True)
    return tuple(name.strip() for row in rows for name in row if name.strip())


def grouped(**groups: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator: the command's parameter of each of these names is made from the options of its group.

    A group is a function of options that returns one value. What `typer` sees is one flat list of options.
    """

    def decorate(run: Callable[..., None]) -> Callable[..., None]:
        own, hints = inspect.signature(run).parameters, get_type_hints(run, include_extras=True)
        flat: list[inspect.Parameter] = []
        for name, parameter in own.items():
            group = groups.get(name)
            named = {name: parameter} if group is None else inspect.signature(group).parameters
            kinds = hints if group is None else get_type_hints(group, include_extras=True)
            flat += [
                part.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kinds[part.name])
                for part in named.values()
            ]

        @wraps(run)
        def command(**given: Any) -> None:
            values = {
                name: group(**{part: given.pop(part) for part in inspect.signature(group).parameters})
                for name, group in groups.items()
            }
            run(**given, **values)

        command.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
        command.__annotations__ = {part.name: part.annotation for part in flat}
        return command

    return decorate

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

TABLE, MODEL, HELD_OUT = "What the table holds", "The model", "Held-out rows"
FILES, SIZE, SAYS = "Files", "Tables larger than memory", "What is printed"


def _option(
    metavar: str, help_: str, panel: str | None = None, *, name: str = "", low: int | None = None
) -> Any:
    """An option: what is typed after it ("" for a flag), what it does, the part of the help it stands in.

    `name`: with dashes, where it is not the parameter's; `low`: its smallest number.
    """
    names = [name] if name else []
    return typer.Option(*names, min=low, help=help_, metavar=metavar, rich_help_panel=panel)


Data = Annotated[Path, typer.Argument(metavar="DATA", help="Table: CSV (also gzipped) or Parquet.")]
DataOrParts = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="Table: CSV (also gzipped) or Parquet; with --engine, a folder or pattern."
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file saved by `fit`.")]
Target = Annotated[
    str | None,
    _option("COLUMN", "Column to predict; if left out, the error lists the columns."),
]
ScoredTarget = Annotated[
    str | None,
    _option("COLUMN", "Column of the target; by default the one in training.", name="--target"),
]
Model = Annotated[
    str,
    _option(
        "NAME",
        "auto (tries all models that suit the target), sparse_gp, tggm, harmonium, rank_factor.",
        MODEL,
    ),
]
Task = Annotated[
    str,
    _option("NAME", "auto (by the kind of the target), regression, classification or ordinal.", MODEL),
]

Kind = Annotated[
    str | None,
    _option(
        "WORD",
        "Kind of the target, if it is not recognised: real, positive, zeros (positive with zeros), "
        "count, share, grade, label, time (censored).",
        TABLE,
    ),
]
Levels = Annotated[
    Texts,
    _option(
        "A,B,C", "Levels of the target from lowest to highest, separated by commas: poor,fair,good.", TABLE
    ),
]
Exposure = Annotated[
    str | None,
    _option("COLUMN", "Column with the exposure of each count (time or size).", TABLE),
]
Censored = Annotated[
    str | None,
    _option(
        "COLUMN",
        "Column that marks rows whose true target is larger; COLUMN=VALUE names the value that does.",
        TABLE,
    ),
]
ScoredCensored = Annotated[
    str | None,
    _option(
        "COLUMN",
        "Column that marks rows with a censored target, if it is not the one in training.",
        name="--censored",
    ),
]
Group = Annotated[
    str | None,
    _option("COLUMN", "Column of groups of rows, which are held out together.", TABLE),
]
Ignore = Annotated[
    Texts,
    _option("A,B", "Columns to leave out, separated by commas.", TABLE),
]
Use = Annotated[
    Texts,
    _option("A,B", "Columns that are inputs whatever they look like, separated by commas.", TABLE),
]
Missing = Annotated[
    Texts,
    _option(
        "COLUMN=VALUE", "Value that stands for a missing cell, such as age=-999. May be repeated.", TABLE
    ),
]
Split = Annotated[
    str,
    _option(
        "WORD",
        'Rows held out: random, last (in time, or else in the file), or "by COLUMN" (whole groups).',
        HELD_OUT,
    ),
]
Test = Annotated[
    Path | None,
    _option("FILE", "Table of rows for evaluation; all rows of DATA are then used for fitting.", HELD_OUT),
]
TestSize = Annotated[
    float,
    _option("SHARE", "Share of rows held out for evaluation.", HELD_OUT),
]

Out = Annotated[
    Path,
    _option("FOLDER", "Folder for the model file and the report.", FILES),
]
Save = Annotated[
    Path | None,
    _option("FILE", "Model file; by default model.nongauss in --out.", FILES),
]
Report = Annotated[
    Path | None,
    _option("FILE", "Report file; by default report.html in --out.", FILES),
]
Checkpoint = Annotated[
    Path | None,
    _option("FILE", "File from which an interrupted fit resumes.", FILES),
]
Raw = Annotated[
    bool,
    _option("", "Write text cells as they are, without an apostrophe before = + - @.", FILES, name="--raw"),
]
Force = Annotated[bool, _option("", "Overwrite existing files.", FILES, name="--force")]

Seed = Annotated[int, _option("NUMBER", "Seed of all that is random.", MODEL, low=0)]
Epochs = Annotated[
    int | None,
    _option("NUMBER", "Maximum number of epochs of a fit.", MODEL, low=1),
]
MostRows = Annotated[
    int | None,
    _option(
        "NUMBER",
        "Maximum number of rows to fit, drawn at random; 0 for all. By default, as many as can be fitted "
        "in minutes.",
        MODEL,
        low=0,
    ),
]
Refit = Annotated[
    bool,
    _option("", "Fit the saved model to all rows after evaluation.", HELD_OUT),
]
Settings = Annotated[
    Texts,
    _option(
        "NAME=VALUE",
        "Parameter of the model: --set time_budget=60 ends the search after 60 seconds, --set "
        "likelihood=beta chooses a likelihood. May be repeated.",
        MODEL,
        name="--set",
    ),
]
Engine = Annotated[
    str,
    _option("NAME", "memory; or, for larger Parquet files, stream (from disk) or dask (cluster).", SIZE),
]
Scheduler = Annotated[
    str | None,
    _option("ADDRESS", "Address of a Dask scheduler; a local one by default.", SIZE),
]

RuleColumns = Annotated[
    str | None,
    _option("A,B", "Columns that rules may use, separated by commas; all but ids by default."),
]
LookColumns = Annotated[
    str | None,
    _option("A,B", "Columns in which rows of a cluster are similar; all but ids by default."),
]
Clusters = Annotated[int | None, _option("NUMBER", "Number of clusters; chosen by default.", low=1)]
Folds = Annotated[int, _option("NUMBER", "Number of folds.", HELD_OUT, low=2)]

Predictions = Annotated[
    Path,
    _option("FILE", "Table to write: CSV (also .gz) or Parquet.", FILES),
]
Id = Annotated[str | None, _option("COLUMN", "Column that identifies the rows, written first.", name="--id")]
Keep = Annotated[Texts, _option("A,B", "Columns to write before the predictions, separated by commas.")]
Coverage = Annotated[
    Texts,
    _option("50,90", "Coverage of intervals in percent, separated by commas: 50,90. By default 90."),
]
Quantiles = Annotated[Texts, _option(".05,.95", "Quantiles, separated by commas: .05,.5,.95.")]

FullTable = Annotated[
    Path,
    _option("FILE", "Imputed table to write: CSV (also .gz) or Parquet.", FILES),
]
LeftAsTheyAre = Annotated[
    Texts,
    _option("A,B", "Columns to leave as they are, separated by commas: comments whose gaps mean nothing."),
]
Draws = Annotated[
    int,
    _option(
        "NUMBER", "Number of further tables to write, with missing cells drawn at random, for pooling.", low=0
    ),
]
Imputer = Annotated[
    str,
    _option("NAME", "auto (the mixture that predicts hidden cells best), rank_factor or harmonium.", MODEL),
]

Quiet = Annotated[bool, _option("", "Do not show progress.", SAYS, name="--quiet")]
Json = Annotated[
    bool,
    _option("", "Print one JSON object and nothing else.", SAYS, name="--json"),
]


class Outputs(NamedTuple):
    """Where the files of a command go, by the option that says so, and whether older ones are replaced."""

    paths: dict[str, Path]
    force: bool

    def __str__(self) -> str:
        return f"Saved the model to {self.paths['--save']} and the report to {self.paths['--report']}."

    def as_record(self) -> dict[str, Path]:
        """The paths for `--json`."""
        return {"saved": self.paths["--save"], "report": self.paths["--report"]}


class Talk(NamedTuple):
    """What a command prints: `quiet` without progress, `as_json` as one JSON object."""

    quiet: bool
    as_json: bool


class Apart(NamedTuple):
    """Which rows the fit is evaluated on."""

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
    """The options of a command that writes a model and a report."""
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
    """The options of a command that chooses a model by the target."""
    return Choices(model, task, set_ or (), seed, max_epochs, most_rows)


def apart(split: Split = "random", test: Test = None, test_size: TestSize = 0.2) -> Apart:
    """The options of a command that evaluates a fit."""
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
    """The options of a command that reads a table with a target, as a `cli.read.Declared`."""
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
    """The options of every command that may take long."""
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

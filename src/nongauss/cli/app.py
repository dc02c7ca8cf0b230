"""The command line: `nongauss demo | fit | predict | compare | cluster | describe`. Wiring, imported late."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from nongauss.cli.fit_and_report import Outcome
    from nongauss.cli.read import Table
    from nongauss.optimise.course import Progress

app = typer.Typer(
    name="nongauss",
    help="Predictions with honest uncertainty for tables that are not Gaussian.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

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


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version.")] = False,
) -> None:
    """Predictions with honest uncertainty for tables that are not Gaussian."""
    if version:
        import nongauss

        typer.echo(f"nongauss {nongauss.__version__}")
        raise typer.Exit()


@app.command()
def demo(
    out: Out = Path("."),
    seed: Seed = 0,
    max_epochs: Epochs = None,
    set_: Settings = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Fit a regression on a real data set that ships with scikit-learn, next to ridge regression."""
    with _polite() as caught:
        from nongauss.cli import choose, fit_and_report, read
        from nongauss.report.baselines import baselines

        paths = _outputs(out, None, None)
        fit_and_report.check_outputs(paths, force=force)
        table = read.demo_table(set_ or ())
        ridge = {"ridge regression": baselines(table.X)["ridge regression"]}
        with fit_progress(enabled=False if as_json else None) as callbacks:
            model = choose.build_model(table.choice, seed=seed, max_epochs=max_epochs, callbacks=callbacks)
            fit_and_report.keep_compiled()
            outcome = fit_and_report.fit_and_judge(model, table, seed=seed, rivals=ridge)
        _finish(outcome, table, paths, "Diabetes progression after one year", caught, as_json)


@app.command()
def fit(
    data: Data,
    target: Target,
    model: Model = "auto",
    task: Task = "auto",
    out: Out = Path("."),
    save: Save = None,
    report: Report = None,
    test_size: Annotated[float, typer.Option(help="Share of rows held out to judge the model.")] = 0.2,
    refit: Annotated[bool, typer.Option(help="Fit the saved model on all rows after judging.")] = True,
    seed: Seed = 0,
    max_epochs: Epochs = None,
    set_: Settings = None,
    checkpoint: Annotated[Path | None, typer.Option(help="File to go on from after an interruption.")] = None,
    engine: Engine = "memory",
    scheduler: Scheduler = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Fit a model to a table, print how well it does on held-out rows, save it with a report."""
    with _polite() as caught, ExitStack() as stack:
        from nongauss.cli import choose, fit_and_report

        paths = _outputs(out, save, report)
        fit_and_report.check_outputs(paths, [data], force=force)
        fit_and_report.check_engine(engine, scheduler)
        load, fit_with = _engine(engine, scheduler, stack)
        table = load(data, target, model, task, set_ or ())
        callbacks = stack.enter_context(fit_progress(enabled=False if as_json else None))
        estimator = choose.build_model(table.choice, seed=seed, max_epochs=max_epochs, callbacks=callbacks)
        fit_and_report.keep_compiled()
        how: dict[str, Any] = {"test_size": test_size, "seed": seed, "checkpoint": checkpoint}
        outcome = fit_with(estimator, table, data, refit=refit, **how)
        _finish(outcome, table, paths, f"{target} in {data.name}", caught, as_json)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that `fit` saved.")],
    data: Data,
    out: Annotated[Path, typer.Option(help="Table to write: CSV (also .gz) or Parquet.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Predict each row of a table: mean, sd and 90 % interval, or the probability of each class."""
    with _polite() as caught:
        from nongauss.cli import fit_and_report, out_of_core
        from nongauss.report.text import to_json

        fit_and_report.check_outputs({"--out": out}, [model, data], force=force)
        predict_all = (
            out_of_core.predict_parts
            if out_of_core.is_past_memory(data, out)
            else fit_and_report.predict_table
        )
        n_rows = predict_all(fit_and_report.load_model(model), data, out)
        if as_json:
            typer.echo(to_json({"rows": n_rows, "out": out, "notes": _messages(caught)}))
        else:
            _echo_notes(_messages(caught))
            typer.echo(f"Wrote {n_rows} predictions to {out}.")


@app.command()
def compare(
    data: Data,
    target: Target,
    model: Model = "auto",
    task: Task = "auto",
    cv: Annotated[int, typer.Option(help="Number of folds.")] = 5,
    seed: Seed = 0,
    max_epochs: Epochs = None,
    set_: Settings = None,
    as_json: Json = False,
) -> None:
    """Cross-validate our models beside a linear model, boosted trees and a neural network."""
    with _polite() as caught:
        from nongauss.cli import choose, fit_and_report, read
        from nongauss.report.comparison import comparison_text
        from nongauss.report.text import to_json

        table = read.load_table(data, target, model, task, set_ or ())
        ours = choose.family(table.choice, table.kind, table.y) if model == "auto" else [table.choice]
        estimators = [choose.build_model(choice, seed=seed, max_epochs=max_epochs) for choice in ours]
        fit_and_report.keep_compiled()
        with count_progress(enabled=False if as_json else None) as progress:
            result = fit_and_report.compare_table(estimators, table, cv=cv, seed=seed, progress=progress)
        notes = [*table.notes, *_messages(caught)]
        if as_json:
            record: dict[str, Any] = {"target": target, "kind": table.kind.value, "task": table.choice.task}
            record |= {"rows": len(table.y), "folds": cv}
            typer.echo(
                to_json({**record, "sorted_by": result.attrs["sorted_by"], "models": result, "notes": notes})
            )
        else:
            _echo_notes(notes)
            typer.echo(comparison_text(result))


@app.command()
def cluster(
    data: Data,
    rules: RuleColumns = None,
    structure: LookColumns = None,
    clusters: Clusters = None,
    out: Out = Path("."),
    save: Save = None,
    report: Report = None,
    seed: Seed = 0,
    set_: Settings = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find clusters, each with a rule in words, print them, save the model with a report."""
    with _polite() as caught:
        from nongauss.cli import fit_and_report
        from nongauss.cli.cluster import cluster_record, fit_clusters, save_clusters
        from nongauss.report.text import to_json

        paths = _outputs(out, save, report)
        fit_and_report.check_outputs(paths, [data], force=force)
        how: dict[str, Any] = {"rules": rules, "structure": structure, "settings": set_ or (), "seed": seed}
        with fit_progress(enabled=False if as_json else None) as callbacks:
            model, frame = fit_clusters(data, n_clusters=clusters or "auto", callbacks=callbacks, **how)
        notes = _messages(caught)
        save_clusters(
            model, frame, data=data, model_path=paths["--save"], report_path=paths["--report"], notes=notes
        )
        if as_json:
            saved = {"notes": notes, "saved": paths["--save"], "report": paths["--report"]}
            typer.echo(to_json(cluster_record(model, frame, data) | saved))
        else:
            _echo_notes(notes)
            typer.echo(model.describe())
            typer.echo(f"\nSaved the model to {paths['--save']} and the report to {paths['--report']}.")


@app.command()
def describe(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that `fit` saved.")],
    as_json: Json = False,
) -> None:
    """Say what is in a saved model."""
    with _polite():
        from nongauss.cli import fit_and_report
        from nongauss.report.text import model_record, summary, to_json

        estimator = fit_and_report.load_model(model)
        record = model_record(estimator)
        if as_json:
            typer.echo(to_json({"file": model, **record}))
        else:
            typer.echo(summary(estimator))
            if hasattr(estimator, "describe"):
                typer.echo("\n" + estimator.describe())
            if record["columns"]:
                typer.echo("\nColumns: " + ", ".join(record["columns"]))


def _engine(
    engine: str, scheduler: str | None, stack: ExitStack
) -> tuple[Callable[..., Table], Callable[..., Outcome]]:
    """How the table is read and how a model is fitted to it and judged, in memory or past it.

    A cluster that `stack` ends is started where one is asked for.
    """
    if engine == "memory":
        from nongauss.cli import fit_and_report, read

        return read.load_table, lambda model, table, data, **how: fit_and_report.fit_and_judge(
            model, table, **how
        )
    from nongauss.cli import out_of_core

    if engine == "dask":
        typer.echo(stack.enter_context(out_of_core.dask_client(scheduler)), err=True)
    return out_of_core.sampled_table, lambda model, table, data, *, refit, **how: out_of_core.fit_parts(
        model, table, data, engine, **how
    )


def _outputs(out: Path, save: Path | None, report: Path | None) -> dict[str, Path]:
    return {"--save": save or out / "model.nongauss", "--report": report or out / "report.html"}


def _finish(
    outcome: Outcome, table: Table, paths: dict[str, Path], title: str, caught: list[Any], as_json: bool
) -> None:
    """Save, report and print."""
    from nongauss.cli import fit_and_report
    from nongauss.report.metrics import metric_table
    from nongauss.report.text import model_record, summary, text_table, to_json

    warned = _messages(caught, known=getattr(outcome.final, "stop_reason_", None))
    model_path, report_path = paths["--save"], paths["--report"]
    fit_and_report.save_and_report(
        outcome, table, model_path=model_path, report_path=report_path, title=title, notes=warned
    )
    notes = [*table.notes, *outcome.notes, *warned]
    if as_json:
        record: dict[str, Any] = {"data": table.source, "target": table.target, "kind": table.kind.value}
        record |= {"task": table.choice.task, "rows": len(table.y)}
        record |= {**model_record(outcome.final), "held_out": outcome.metrics, "notes": notes}
        typer.echo(to_json({**record, "saved": model_path, "report": report_path}))
        return
    _echo_notes(notes)
    typer.echo(summary(outcome.final, target=table.target, n_rows=outcome.n_rows))
    if outcome.metrics:
        typer.echo("\nHeld-out rows\n" + text_table(*metric_table(outcome.metrics)))
    typer.echo(f"\nSaved the model to {model_path} and the report to {report_path}.")


def _echo_notes(notes: list[str]) -> None:
    for note in notes:
        typer.echo(f"note: {note}")
    if notes:
        typer.echo()


def _messages(caught: list[Any], known: str | None = None) -> list[str]:
    """Each warning once, on one line, without those that only repeat what is `known`."""
    texts = dict.fromkeys(" ".join(str(item.message).split()) for item in caught)
    return [text for text in texts if known is None or known not in text]


@contextmanager
def _polite() -> Iterator[list[Any]]:
    """Collect warnings; turn bad input into one sentence on stderr and exit code 2."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)  # whatever filters the shell has set
        try:
            yield caught
        except OSError as error:
            named = error.filename is not None and error.strerror
            _refuse(f"{error.filename}: {error.strerror}." if named else str(error))
        except ValueError as error:
            _refuse(str(error))


def _refuse(message: str) -> None:
    typer.echo("Error: " + " ".join(message.split()), err=True)
    raise typer.Exit(2) from None


@contextmanager
def fit_progress(*, enabled: bool | None = None) -> Iterator[list[Callable[[Progress], None]]]:
    """Callbacks for an estimator that move a bar on stderr; none where stderr is no terminal.

    A fit that starts again from a lower iteration starts the bar again. Plain functions are given, since
    cloning an estimator copies its callbacks and a bar cannot be copied.
    """
    if not _wanted(enabled):
        yield []
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("fitting"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("bound {task.fields[bound]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("fit", total=None, bound="…")

        def move(progress: Progress) -> None:
            bar.update(
                task, completed=progress.iteration, total=progress.max_iter, bound=f"{progress.bound:.5g}"
            )

        yield [move]


@contextmanager
def count_progress(*, enabled: bool | None = None) -> Iterator[Callable[[int, int, str], None]]:
    """A function (done, total, name) that moves a bar on stderr; without a terminal it does nothing."""
    if not _wanted(enabled):
        yield lambda done, total, name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def move(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=name)

        yield move


def _wanted(enabled: bool | None) -> bool:
    return sys.stderr.isatty() if enabled is None else enabled

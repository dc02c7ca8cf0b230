"""The command line: `nongauss demo | fit | predict | compare | cluster | describe`. Wiring, imported late."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nongauss.cli import options
from nongauss.cli.conduct import check_outputs, echo_notes, messages, output_paths, polite
from nongauss.cli.progress import count_progress, fit_progress

if TYPE_CHECKING:
    from nongauss.cli.judge import Outcome
    from nongauss.cli.read import Table

app = typer.Typer(
    name="nongauss",
    help="Predictions with honest uncertainty for tables that are not Gaussian.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
    out: options.Out = Path("."),
    seed: options.Seed = 0,
    max_epochs: options.Epochs = None,
    set_: options.Settings = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Fit a regression on a real data set that ships with scikit-learn, next to ridge regression."""
    with polite() as caught:
        from nongauss.cli import choose, fit_and_report, judge, read

        paths = output_paths(out, None, None)
        check_outputs(paths, force=force)
        table = read.demo_table(set_ or ())
        with fit_progress(enabled=False if as_json else None) as callbacks:
            model = choose.build_model(table.choice, seed=seed, max_epochs=max_epochs, callbacks=callbacks)
            fit_and_report.keep_compiled()
            outcome = judge.fit_and_judge(model, table, seed=seed)
        _finish(outcome, table, paths, "Diabetes progression after one year", caught, as_json)


@app.command()
def fit(
    data: options.Data,
    target: options.Target,
    model: options.Model = "auto",
    task: options.Task = "auto",
    out: options.Out = Path("."),
    save: options.Save = None,
    report: options.Report = None,
    test_size: Annotated[float, typer.Option(help="Share of rows held out to judge the model.")] = 0.2,
    refit: Annotated[bool, typer.Option(help="Fit the saved model on all rows after judging.")] = True,
    seed: options.Seed = 0,
    max_epochs: options.Epochs = None,
    set_: options.Settings = None,
    checkpoint: Annotated[Path | None, typer.Option(help="File to go on from after an interruption.")] = None,
    engine: options.Engine = "memory",
    scheduler: options.Scheduler = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Fit a model to a table, print how well it does on held-out rows, save it with a report."""
    with polite() as caught, ExitStack() as stack:
        from nongauss.cli import choose, fit_and_report

        paths = output_paths(out, save, report)
        check_outputs(paths, [data], force=force)
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
    data: options.Data,
    out: Annotated[Path, typer.Option(help="Table to write: CSV (also .gz) or Parquet.")],
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Predict each row of a table: mean, sd and 90 % interval, or the probability of each class."""
    with polite() as caught:
        from nongauss.cli import out_of_core
        from nongauss.cli.predict import predict_table
        from nongauss.estimator.persistence import load
        from nongauss.report.text import to_json

        check_outputs({"--out": out}, [model, data], force=force)
        is_past_memory = out_of_core.is_past_memory(data, out)
        predict_all = out_of_core.predict_parts if is_past_memory else predict_table
        n_rows = predict_all(load(model), data, out)
        if as_json:
            typer.echo(to_json({"rows": n_rows, "out": out, "notes": messages(caught)}))
        else:
            echo_notes(messages(caught))
            typer.echo(f"Wrote {n_rows} predictions to {out}.")


@app.command()
def compare(
    data: options.Data,
    target: options.Target,
    model: options.Model = "auto",
    task: options.Task = "auto",
    cv: Annotated[int, typer.Option(help="Number of folds.")] = 5,
    seed: options.Seed = 0,
    max_epochs: options.Epochs = None,
    set_: options.Settings = None,
    as_json: options.Json = False,
) -> None:
    """Cross-validate our models beside a linear model, boosted trees and a neural network."""
    with polite() as caught:
        from nongauss.cli import choose, fit_and_report, read
        from nongauss.report.comparison import comparison_text
        from nongauss.report.text import to_json

        table = read.load_table(data, target, model, task, set_ or ())
        ours = choose.family(table.choice, table.kind, table.y) if model == "auto" else [table.choice]
        estimators = [choose.build_model(choice, seed=seed, max_epochs=max_epochs) for choice in ours]
        fit_and_report.keep_compiled()
        with count_progress(enabled=False if as_json else None) as progress:
            result = fit_and_report.compare_table(estimators, table, cv=cv, seed=seed, progress=progress)
        notes = [*table.notes, *messages(caught)]
        if as_json:
            record: dict[str, Any] = {"target": target, "kind": table.kind.value, "task": table.choice.task}
            record |= {"rows": len(table.y), "folds": cv}
            typer.echo(
                to_json({**record, "sorted_by": result.attrs["sorted_by"], "models": result, "notes": notes})
            )
        else:
            echo_notes(notes)
            typer.echo(comparison_text(result))


@app.command()
def cluster(
    data: options.Data,
    rules: options.RuleColumns = None,
    structure: options.LookColumns = None,
    clusters: options.Clusters = None,
    out: options.Out = Path("."),
    save: options.Save = None,
    report: options.Report = None,
    seed: options.Seed = 0,
    set_: options.Settings = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Find clusters, each with a rule in words, print them, save the model with a report."""
    with polite() as caught:
        from nongauss.cli.cluster import cluster_record, fit_clusters, save_clusters
        from nongauss.report.text import to_json

        paths = output_paths(out, save, report)
        check_outputs(paths, [data], force=force)
        how: dict[str, Any] = {"rules": rules, "structure": structure, "settings": set_ or (), "seed": seed}
        with fit_progress(enabled=False if as_json else None) as callbacks:
            model, frame = fit_clusters(data, n_clusters=clusters or "auto", callbacks=callbacks, **how)
        notes = messages(caught)
        save_clusters(
            model, frame, data=data, model_path=paths["--save"], report_path=paths["--report"], notes=notes
        )
        if as_json:
            saved = {"notes": notes, "saved": paths["--save"], "report": paths["--report"]}
            typer.echo(to_json(cluster_record(model, frame, data) | saved))
        else:
            echo_notes(notes)
            typer.echo(model.describe())
            typer.echo(f"\nSaved the model to {paths['--save']} and the report to {paths['--report']}.")


@app.command()
def describe(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that `fit` saved.")],
    as_json: options.Json = False,
) -> None:
    """Say what is in a saved model."""
    with polite():
        from nongauss.estimator.persistence import load
        from nongauss.report.text import model_record, summary, to_json

        estimator = load(model)
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
        from nongauss.cli import judge, read

        return read.load_table, lambda model, table, data, **how: judge.fit_and_judge(model, table, **how)
    from nongauss.cli import out_of_core

    if engine == "dask":
        typer.echo(stack.enter_context(out_of_core.dask_client(scheduler)), err=True)
    return out_of_core.sampled_table, lambda model, table, data, *, refit, **how: out_of_core.fit_parts(
        model, table, data, engine, **how
    )


def _finish(
    outcome: Outcome, table: Table, paths: dict[str, Path], title: str, caught: list[Any], as_json: bool
) -> None:
    """Save, report and print."""
    from nongauss.cli import fit_and_report
    from nongauss.report.metrics import metric_table
    from nongauss.report.text import model_record, summary, text_table, to_json

    warned = messages(caught, known=getattr(outcome.final, "stop_reason_", None))
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
    echo_notes(notes)
    typer.echo(summary(outcome.final, target=table.target, n_rows=outcome.n_rows))
    if outcome.metrics:
        typer.echo("\nHeld-out rows\n" + text_table(*metric_table(outcome.metrics)))
    typer.echo(f"\nSaved the model to {model_path} and the report to {report_path}.")

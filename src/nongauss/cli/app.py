"""The command line: `nongauss demo | fit | predict | compare | cluster | describe`. Wiring, imported late."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from nongauss.cli import options
from nongauss.cli.conduct import Commands, check_outputs, command, output_paths

app = typer.Typer(
    name="nongauss",
    help="Predictions with honest uncertainty for tables that are not Gaussian.",
    cls=Commands,
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
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Fit a regression on a real data set that ships with scikit-learn, next to ridge regression."""
    with command(as_json=as_json, quiet=quiet) as here:
        from nongauss.cli import choose, fit_and_report, judge, read
        from nongauss.report.baselines import baselines

        paths = output_paths(out, None, None)
        check_outputs(paths, force=force)
        table = read.demo_table(set_ or ())
        ridge = {"ridge regression": baselines(table.X)["ridge regression"]}
        model = choose.build_model(table.choice, seed=seed, max_epochs=max_epochs, callbacks=here.callbacks)
        fit_and_report.keep_compiled()
        outcome = judge.fit_and_judge(model, table, seed=seed, rivals=ridge)
        fit_and_report.finish(here, outcome, table, paths, "Diabetes progression after one year")


@app.command()
def fit(
    data: options.Data,
    target: options.Target = None,
    model: options.Model = "auto",
    task: options.Task = "auto",
    out: options.Out = Path("."),
    save: options.Save = None,
    report: options.Report = None,
    test_size: options.TestSize = 0.2,
    refit: options.Refit = True,
    seed: options.Seed = 0,
    max_epochs: options.Epochs = None,
    set_: options.Settings = None,
    checkpoint: options.Checkpoint = None,
    engine: options.Engine = "memory",
    scheduler: options.Scheduler = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Fit a model to a table, print how well it does on held-out rows, save it with a report."""
    with command(as_json=as_json, quiet=quiet) as here, ExitStack() as stack:
        from nongauss.cli import choose, fit_and_report, judge, out_of_core, read

        paths = output_paths(out, save, report)
        check_outputs(paths, [data], force=force)
        out_of_core.check_engine(engine, scheduler)
        here.step(f"reading {data.name}")
        if engine == "dask":
            here.say(stack.enter_context(out_of_core.dask_client(scheduler)))
        load = read.load_table if engine == "memory" else out_of_core.sampled_table
        table = load(data, target or "", model, task, set_ or ())
        estimator = choose.build_model(
            table.choice, seed=seed, max_epochs=max_epochs, callbacks=here.callbacks
        )
        fit_and_report.keep_compiled()
        here.goes_on_from(checkpoint)
        here.step("fitting")
        how: dict[str, Any] = {"test_size": test_size, "seed": seed, "checkpoint": checkpoint}
        if engine == "memory":
            outcome = judge.fit_and_judge(estimator, table, refit=refit, **how)
        else:
            outcome = out_of_core.fit_parts(estimator, table, data, engine, **how)
        fit_and_report.finish(here, outcome, table, paths, f"{target} in {data.name}")


@app.command()
def predict(
    model: options.ModelFile,
    data: options.Data,
    out: options.Predictions,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Predict each row of a table: mean, sd and 90 % interval, or the probability of each class."""
    with command(as_json=as_json, quiet=quiet) as here:
        from nongauss.cli import out_of_core
        from nongauss.cli.predict import predict_table
        from nongauss.estimator.persistence import load

        check_outputs({"--out": out}, [model, data], force=force)
        here.step(f"predicting the rows of {data.name}")
        is_past_memory = out_of_core.is_past_memory(data, out)
        predict_all = out_of_core.predict_parts if is_past_memory else predict_table
        n_rows = predict_all(load(model), data, out)
        here.finish({"rows": n_rows, "out": out}, lambda: f"Wrote {n_rows} predictions to {out}.")


@app.command()
def compare(
    data: options.Data,
    target: options.Target = None,
    model: options.Model = "auto",
    task: options.Task = "auto",
    cv: options.Folds = 5,
    seed: options.Seed = 0,
    max_epochs: options.Epochs = None,
    set_: options.Settings = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Cross-validate our models beside a linear model, boosted trees and a neural network."""
    with command(as_json=as_json, quiet=quiet) as here:
        from nongauss.cli import choose, fit_and_report, read
        from nongauss.report.comparison import comparison_text

        here.step(f"reading {data.name}")
        table = read.load_table(data, target or "", model, task, set_ or ())
        ours = choose.family(table.choice, table.kind, table.y) if model == "auto" else [table.choice]
        estimators = [choose.build_model(choice, seed=seed, max_epochs=max_epochs) for choice in ours]
        fit_and_report.keep_compiled()
        here.step("comparing")
        result = fit_and_report.compare_table(estimators, table, cv=cv, seed=seed, progress=here.counted)
        record: dict[str, Any] = {"target": target, "kind": table.kind.value, "task": table.choice.task}
        record |= {"rows": len(table.y), "folds": cv}
        record |= {"sorted_by": result.attrs["sorted_by"], "models": result}
        here.finish(record, lambda: comparison_text(result), before=table.notes)


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
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Find clusters, each with a rule in words, print them, save the model with a report."""
    with command(as_json=as_json, quiet=quiet) as here:
        from nongauss.cli.cluster import cluster_record, fit_clusters, save_clusters

        paths = output_paths(out, save, report)
        check_outputs(paths, [data], force=force)
        here.step(f"clustering the rows of {data.name}")
        how: dict[str, Any] = {"rules": rules, "structure": structure, "settings": set_ or (), "seed": seed}
        model, frame = fit_clusters(data, n_clusters=clusters or "auto", callbacks=here.callbacks, **how)
        here.step("drawing the report")
        save_clusters(model, frame, data=data, paths=paths, notes=here.notes())
        saved = {"saved": paths["--save"], "report": paths["--report"]}
        where = f"\n\nSaved the model to {paths['--save']} and the report to {paths['--report']}."
        here.finish(cluster_record(model, frame, data) | saved, lambda: model.describe() + where)


@app.command()
def describe(
    model: options.ModelFile,
    as_json: options.Json = False,
) -> None:
    """Say what is in a saved model."""
    with command(as_json=as_json, quiet=True) as here:
        from nongauss.estimator.persistence import load
        from nongauss.report.text import model_record, summary

        estimator = load(model)
        record = model_record(estimator)
        texts = [summary(estimator)]
        if hasattr(estimator, "describe"):
            texts.append(estimator.describe())
        if record["columns"]:
            texts.append("Columns: " + ", ".join(record["columns"]))
        here.finish({"file": model, **record}, lambda: "\n\n".join(texts))

"""The command line: demo, fit, predict, score, impute, compare, cluster, describe. Wiring only."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer

from nongauss.cli import options
from nongauss.cli.conduct import Commands, check_outputs, command

app = typer.Typer(
    name="nongauss",
    help="Predictions with honest uncertainty for tables whose columns are not Gaussian.",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version.")] = False,
) -> None:
    """Predictions with honest uncertainty for tables whose columns are not Gaussian."""
    if version:
        import nongauss

        typer.echo(f"nongauss {nongauss.__version__}")
        raise typer.Exit()


@app.command()
@options.grouped(outputs=options.outputs, talk=options.talk)
def demo(*, seed: options.Seed = 0, outputs: options.Outputs, talk: options.Talk) -> None:
    """Fit simulated counts of calls, and compare with a Gaussian model and the standard ones."""
    with command(*talk) as here:
        from nongauss.cli import choose, fit_and_report, judge
        from nongauss.cli.demo import CAPTION, TITLE, beside_gaussian, demo_table, picture
        from nongauss.cli.describe import about_of

        check_outputs(outputs)
        table = demo_table(seed)
        here.say(f"{table.before}\n")
        model = choose.build_model(table.choice, seed=seed, callbacks=here.callbacks)
        outcome = judge.fit_and_judge(model, table, seed=seed, step=here.step)
        outcome, rival = beside_gaussian(outcome, table, seed)
        outcome.final.about_ = about_of(outcome, table, "sparse_gp")
        pictures = [(CAPTION, picture(outcome.judged, rival, table))]
        fit_and_report.finish(here, outcome, table, outputs, TITLE, pictures)


@app.command()
@options.grouped(
    declared=options.declared,
    choices=options.choices,
    apart=options.apart,
    outputs=options.outputs,
    talk=options.talk,
)
def fit(
    data: options.DataOrParts,
    target: options.Target = None,
    *,
    declared: Any,
    choices: options.Choices,
    apart: options.Apart,
    refit: options.Refit = True,
    outputs: options.Outputs,
    checkpoint: options.Checkpoint = None,
    engine: options.Engine = "memory",
    scheduler: options.Scheduler = None,
    talk: options.Talk,
) -> None:
    """Fit a model to a table, evaluate it on held-out rows, and save it with a report.

    For example: nongauss fit houses.csv --target price
    """
    with command(*talk) as here, ExitStack() as stack:
        from nongauss.cli import choose, fit_and_report, judge, out_of_core, split
        from nongauss.cli.describe import about_of
        from nongauss.cli.large import load_rows

        out_of_core.check_engine(engine, scheduler, declared)
        here.step(f"reading {data.name}")
        if engine == "dask":
            here.aside(stack.enter_context(out_of_core.dask_client(scheduler)))
        held_out, declared = split.declared_split(*apart, declared)
        table = load_rows(engine, data, target or "", choices, declared)
        check_outputs(outputs, [data])
        how: dict[str, Any] = {"max_epochs": choices.max_epochs, "callbacks": here.callbacks_of(table.choice)}
        estimator = choose.build_model(table.choice, seed=choices.seed, **how)
        here.say(f"{table.before}\n")
        fit_and_report.keep_compiled(table)
        here.goes_on_from(checkpoint)
        how = {"held_out": held_out, "seed": choices.seed, "checkpoint": checkpoint}
        if engine == "memory":
            outcome = judge.fit_and_judge(estimator, table, refit=refit, step=here.step, **how)
        else:
            here.step("fitting")
            outcome = out_of_core.fit_parts(estimator, table, data, engine, **how)
        outcome.final.about_ = about_of(outcome, table, choices.model, declared)
        fit_and_report.finish(here, outcome, table, outputs, f"{target} in {data.name}")


@app.command()
@options.grouped(talk=options.talk)
def predict(
    model: options.ModelFile,
    data: options.Data,
    *,
    out: options.Predictions,
    id_: options.Id = None,
    keep: options.Keep = None,
    coverage: options.Coverage = None,
    quantiles: options.Quantiles = None,
    raw: options.Raw = False,
    force: options.Force = False,
    talk: options.Talk,
) -> None:
    """Predict each row of a table: mean, standard deviation and intervals, or class probabilities.

    For example: nongauss predict model.nongauss new.csv --out pred.csv
    """
    with command(*talk) as here:
        from nongauss.cli import out_of_core
        from nongauss.cli.predict import predict_table, wanted
        from nongauss.estimator.persistence import load

        check_outputs(options.Outputs({"--out": out}, force), [model, data])
        what = wanted(id_, *map(options.listed, (keep, coverage, quantiles)))
        here.step(f"predicting the rows of {data.name}")
        is_past_memory = out_of_core.is_past_memory(data, out)
        here.takes_whole_file = not is_past_memory
        predict_all = out_of_core.predict_parts if is_past_memory else partial(predict_table, raw=raw)
        n_rows = predict_all(load(model), data, out, what)
        here.finish({"rows": n_rows, "out": out}, lambda: f"Wrote {n_rows} predictions to {out}.")


@app.command()
@options.grouped(talk=options.talk)
def score(
    model: options.ModelFile,
    data: options.Data,
    *,
    target: options.ScoredTarget = None,
    censored: options.ScoredCensored = None,
    talk: options.Talk,
) -> None:
    """Evaluate a saved model on a table whose target is known.

    For example: nongauss score model.nongauss later.csv
    """
    with command(*talk) as here:
        from nongauss.cli.score import score_table
        from nongauss.estimator.persistence import load

        estimator = load(model)
        here.step(f"scoring the rows of {data.name}")
        sheet = score_table(estimator, data, target, censored)
        record = {"model": type(estimator).__name__, "file": model, "data": data.name, **sheet.record()}
        here.finish(record, sheet.text, before=sheet.notes)


@app.command()
@options.grouped(talk=options.talk)
def impute(
    data: options.Data,
    *,
    out: options.FullTable,
    draws: options.Draws = 0,
    ignore: options.LeftAsTheyAre = None,
    model: options.Imputer = "auto",
    seed: options.Seed = 0,
    raw: options.Raw = False,
    force: options.Force = False,
    talk: options.Talk,
) -> None:
    """Fill the missing cells of a table, say how certain each is, and draw tables for multiple imputation.

    For example: nongauss impute survey.csv --out full.csv
    """
    with command(*talk) as here:
        from nongauss.cli.impute import impute_table, paths_of

        paths = {f"--out ({path.name})": path for path in paths_of(out, draws)}
        check_outputs(options.Outputs(paths, force), [data])
        how: dict[str, Any] = {"raw": raw, "notes": here.notes, "ignore": options.listed(ignore)}
        filled = impute_table(data, out, draws, model, seed, here.step, **how)
        here.finish(filled.record(), filled.text)


@app.command()
@options.grouped(declared=options.declared, choices=options.choices, talk=options.talk)
def compare(
    data: options.Data,
    target: options.Target = None,
    *,
    declared: Any,
    choices: options.Choices,
    cv: options.Folds = 5,
    talk: options.Talk,
) -> None:
    """Cross-validate the models beside a linear model, boosted trees, a forest and a neural network.

    For example: nongauss compare houses.csv --target price
    """
    with command(*talk) as here:
        from nongauss.cli import choose, fit_and_report
        from nongauss.cli.large import load_rows
        from nongauss.report.comparison import comparison_text

        here.step(f"reading {data.name}")
        by_itself = "each is compared separately"
        declared = replace(declared, split="folds")  # of this command
        table = load_rows("memory", data, target or "", choices, declared, by_itself)
        here.say(f"{table.before}\n")
        is_open = choices.model == "auto"
        ours = choose.family(table.choice, table.kind, table.y) if is_open else [table.choice]
        how: dict[str, Any] = {"seed": choices.seed, "max_epochs": choices.max_epochs}
        estimators = [choose.build_model(choice, **how) for choice in ours]
        fit_and_report.keep_compiled(table)
        here.step("comparing")
        result = fit_and_report.compare_table(
            estimators, table, cv=cv, seed=choices.seed, progress=here.counted
        )
        record: dict[str, Any] = {"target": target, "kind": table.kind.value, "task": table.choice.task}
        record |= {"rows": len(table.y), "folds": cv}
        record |= {"sorted_by": result.attrs["sorted_by"], "models": result}
        record |= {"table": table.before.record()}
        here.finish(record, lambda: comparison_text(result), before=table.notes if here.as_json else ())


@app.command()
@options.grouped(outputs=options.outputs, talk=options.talk)
def cluster(
    data: options.Data,
    *,
    rules: options.RuleColumns = None,
    structure: options.LookColumns = None,
    clusters: options.Clusters = None,
    seed: options.Seed = 0,
    set_: options.Settings = None,
    outputs: options.Outputs,
    talk: options.Talk,
) -> None:
    """Find clusters, each described by a rule in words, and save the model with a report.

    For example: nongauss cluster customers.csv
    """
    with command(*talk) as here:
        from nongauss.cli.cluster import cluster_record, fit_clusters, save_clusters

        check_outputs(outputs, [data])
        here.step(f"clustering the rows of {data.name}")
        how: dict[str, Any] = {"rules": rules, "structure": structure, "settings": set_ or (), "seed": seed}
        model, frame = fit_clusters(data, n_clusters=clusters or "auto", callbacks=here.callbacks, **how)
        here.step("drawing the report")
        how = {"paths": outputs.paths, "notes": here.notes(), "check": here.raise_if_stopped}
        save_clusters(model, frame, data=data, **how)
        record = cluster_record(model, frame, data) | outputs.as_record()
        here.finish(record, lambda: f"{model.describe()}\n\n{outputs}")


@app.command()
def describe(model: options.ModelFile, as_json: options.Json = False) -> None:
    """Describe a saved model."""
    with command(quiet=True, as_json=as_json) as here:
        from nongauss.cli.describe import description_text, model_description
        from nongauss.estimator.persistence import load

        estimator = load(model)
        here.finish(model_description(estimator, model), lambda: description_text(estimator, model))

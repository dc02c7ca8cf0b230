"""The command line as a person meets it: real files, exit codes, what goes to which stream."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import nongauss
from nongauss.cli.app import app
from nongauss.report.baselines import baselines

QUICK = ["--max-epochs", "3", "--set", "hidden_layer_sizes=(4,)"]


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def refused(result):
    """The one sentence of a refusal."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    *progress, sentence = result.stderr.splitlines()  # a slow machine says how far it is, before the end
    assert all(re.match(r"\d+ s  ", line) for line in progress), result.stderr
    assert sentence.startswith("Error: ")
    return f"{sentence}\n"


@pytest.fixture(scope="module")
def table():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(60, 2))
    frame = pd.DataFrame(X, columns=["width", "height"])
    frame["colour"] = rng.choice(["red", "blue"], size=60)
    frame["serial"] = [f"s{i}" for i in range(60)]
    frame["price"] = X @ [2.0, -1.0] + (frame["colour"] == "red") + 0.1 * rng.normal(size=60)
    return frame


@pytest.fixture(scope="module")
def fitted(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit")
    data = folder / "data.csv"
    table.to_csv(data, index=False)
    result = run("fit", data, "--target", "price", "--model", "tggm", "--out", folder / "out", *QUICK)
    assert result.exit_code == 0, result.output
    return folder, data, result


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from nongauss.cli.app import app; "
        "heavy = {'jax', 'numpy', 'pandas', 'sklearn', 'matplotlib', 'scipy'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for command in ([], ["demo"], ["fit"], ["predict"], ["compare"], ["describe"]):
        assert run(*command, "--help").exit_code == 0


def test_version():
    assert run("--version").stdout.strip() == f"nongauss {nongauss.__version__}"


def test_fit_reports_saves_and_says_what_it_did(fitted):
    folder, _, result = fitted
    assert "Held-out rows" in result.stdout
    assert "RMSE" in result.stdout
    assert re.search(r"Left out +1 id: serial", result.stdout)
    assert "the saved model was then fitted to all 60" in result.stdout
    assert all(re.match(r"\d+ s  ", line) for line in result.stderr.splitlines())  # a log, and no bar
    assert sorted(p.name for p in (folder / "out").iterdir()) == ["model.nongauss", "report.html"]
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count("<figure><svg") >= 6


def test_predict_writes_one_row_for_each_row(fitted, table, tmp_path):
    folder, data, _ = fitted
    model, out = folder / "out" / "model.nongauss", tmp_path / "pred.csv"
    result = run("predict", model, data, "--out", out)
    assert result.exit_code == 0, result.output
    written = pd.read_csv(out)
    assert list(written.columns) == ["mean", "sd", "lower_90", "upper_90"]
    inputs = table[["width", "height", "colour"]]
    np.testing.assert_allclose(written["mean"], nongauss.load(model).predict(inputs), rtol=1e-12)
    assert (written["lower_90"] < written["mean"]).all()
    assert (written["mean"] < written["upper_90"]).all()
    assert "--force" in refused(run("predict", model, data, "--out", out))
    assert "write over the input" in refused(run("predict", model, data, "--out", data, "--force"))
    again = run("predict", model, data, "--out", out, "--force", "--json")
    assert json.loads(again.stdout)["rows"] == 60


def test_predict_names_the_missing_column(fitted, table, tmp_path):
    folder, _, _ = fitted
    data = tmp_path / "short.csv"
    table.drop(columns="height").to_csv(data, index=False)
    message = refused(run("predict", folder / "out" / "model.nongauss", data, "--out", tmp_path / "p.csv"))
    assert "height" in message
    assert not (tmp_path / "p.csv").exists()


def test_describe(fitted):
    folder, data, _ = fitted
    model = folder / "out" / "model.nongauss"
    text = run("describe", model).stdout
    assert "TGGMRegressor" in text
    assert re.search(r"number.* +width, height\n", text)
    assert re.search(r"left out +serial: ", text)
    assert re.search("Holds training rows +yes", text)  # those that stand in for gaps of new rows
    record = json.loads(run("describe", model, "--json").stdout)
    assert record["columns"] == ["width", "height", "colour"]
    refused(run("describe", data))
    refused(run("describe", folder / "nowhere"))


@pytest.mark.gate
def test_the_default_weighs_by_evidence_and_tells_what(fitted, tmp_path):
    _, data, _ = fitted
    few = ["--set", "candidates=['linear', 'constant']"]
    how = ["--target", "price", "--out", tmp_path, "--checkpoint", tmp_path / "state", *few]
    record = json.loads(run("fit", data, *how, "--json").stdout)
    assert record["model"] == "AutoRegressor"
    assert sum(record["weights"].values()) == pytest.approx(1.0)
    assert {row["candidate"] for row in record["leaderboard"]} >= {"linear", "constant", "linear, local law"}
    assert "AutoRegressor" in record["held_out"]
    text = run("fit", data, *how, "--force").stdout
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("state")] == []
    assert "every model that suits numbers, chosen by evidence" in text
    assert "Choice by evidence" in text
    said = run("describe", tmp_path / "model.nongauss").stdout
    assert "auto, which chose AutoRegressor" in said
    assert record["why"] in said


def test_json_is_one_object_and_nothing_else(fitted, tmp_path):
    _, data, _ = fitted
    paths = ["--save", tmp_path / "m.nongauss", "--report", tmp_path / "r.html"]
    result = run("fit", data, "--target", "price", "--json", "--no-refit", *paths, *QUICK)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    record = json.loads(result.stdout)
    assert record["kind"] == "real"
    assert record["held_out"]["TGGMRegressor"]["n_rows"] == 12
    unused = [column["name"] for column in record["table"]["columns"] if not column["used"]]
    assert unused == ["serial"]
    assert (tmp_path / "m.nongauss").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "nowhere.csv", "--target", "y"], "There is no file 'nowhere.csv'"),
        (["fit", "nowhere.csv", "--taget", "y"], "--target"),
        (["fit", "nowhere.csv", "--seed", "one"], "Invalid value for '--seed'"),
        (["fti", "nowhere.csv"], "Did you mean 'fit'?"),
        (["describe", "nowhere"], "There is no file 'nowhere'"),
    ],
)
def test_an_error_is_json_too_where_json_is_asked_for(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (2, "")
    record = json.loads(result.stdout)
    assert list(record) == ["error"]
    assert message in record["error"]


def test_without_a_target_the_columns_are_named(fitted):
    _, data, _ = fitted
    message = refused(run("fit", data, "--out", data.parent / "other"))
    assert "Give --target" in message
    assert "'width', 'height', 'colour', 'serial', 'price'" in message


def test_files_that_exist_are_kept(fitted):
    folder, data, _ = fitted
    report = folder / "out" / "report.html"
    before = report.read_bytes()
    message = refused(run("fit", data, "--target", "price", "--out", folder / "out", *QUICK))
    assert "--force" in message
    assert report.read_bytes() == before


@pytest.mark.gate
def test_compare_puts_our_model_beside_the_baselines(table, tmp_path, monkeypatch):
    def ridge_alone(**_):
        return {"ridge regression": baselines()["ridge regression"]}

    import_module("nongauss.report.judgement")  # what takes the name for good has to have it before
    monkeypatch.setattr("nongauss.report.baselines.baselines", ridge_alone)
    data = tmp_path / "small.csv"
    small = table[["width", "height", "price"]].iloc[:24]
    small = small.assign(pressure=[f"{110 + k}/{70 + k % 9}" for k in range(24)])
    small.to_csv(data, index=False)
    result = run("compare", data, "--target", "price", "--model", "tggm", "--cv", "2", "--json", *QUICK)
    assert result.exit_code == 0, result.output
    models = json.loads(result.stdout)["models"]
    assert {row["model"] for row in models} == {"TGGMRegressor", "ridge regression"}
    assert all(row["reason"] == "" for row in models)
    one_fold = run("compare", data, "--target", "price", "--cv", "1", *QUICK)
    assert (one_fold.exit_code, one_fold.stdout) == (2, "")
    assert "'--cv': Input should be greater than or equal to 2" in one_fold.stderr
    every = run("compare", data, "--target", "price", "--cv", "2", "--max-epochs", "2")
    assert every.exit_code == 0, every.output
    for name in ("TGGMRegressor", "SparseGPRegressor", "ridge regression"):
        assert name in every.stdout
    assert every.stdout.count("pairs of numbers") == 1  # of the whole table, not of each fold again


@pytest.mark.gate
@pytest.mark.parametrize(
    ("column", "kind", "task", "model"),
    [
        ("colour", "label", "classification", "SparseGPClassifier"),
        ("grade", "grade", "ordinal", "SparseGPOrdinalClassifier"),
    ],
)
def test_labels_go_all_the_way(tmp_path, column, kind, task, model):
    rng = np.random.RandomState(0)
    x = np.linspace(0, 3, 48)
    data = tmp_path / "data.csv"
    pd.DataFrame({"x": x, "noise": rng.normal(size=48)}).assign(
        colour=np.array(["red", "green", "blue"])[x.astype(int).clip(0, 2)],
        grade=1 + x.astype(int).clip(0, 2),
    ).drop(columns={"colour", "grade"} - {column}).to_csv(data, index=False)
    result = run("fit", data, "--target", column, "--out", tmp_path, "--json", "--max-epochs", "20")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert (record["kind"], record["task"], record["model"]) == (kind, task, model)
    assert record["held_out"][model]["log_loss"] < np.log(3)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<figure><svg") >= 5
    assert run("predict", tmp_path / "model.nongauss", data, "--out", tmp_path / "p.csv").exit_code == 0
    written = pd.read_csv(tmp_path / "p.csv")
    np.testing.assert_allclose(written.iloc[:, 1:].sum(axis=1), 1, atol=1e-9)
    assert (written["predicted"] == pd.read_csv(data)[column]).mean() > 0.8
    assert model in run("describe", tmp_path / "model.nongauss").stdout


def test_one_row_holds_nothing_to_predict(tmp_path):
    data = tmp_path / "one.csv"
    data.write_text("x,y\n1.5,2.5\n")
    result = run("fit", data, "--target", "y", "--out", tmp_path, *QUICK)
    assert result.exit_code == 2
    assert "holds only the value 2.5. Choose another column, or add rows" in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == [data]


def test_rows_too_few_to_hold_any_out_are_fitted_with_a_note(tmp_path):
    data = tmp_path / "two.csv"
    data.write_text("x,y\n1.5,2.5\n2.5,3.75\n")
    result = run("fit", data, "--target", "y", "--out", tmp_path, *QUICK)
    assert result.exit_code == 0, result.output
    assert "too few to hold any out" in result.stdout
    assert "No rows were held out" in (tmp_path / "report.html").read_text(encoding="utf-8")


ROWS = "".join(f"{i}.5,{2 * i}.25\n" for i in range(20))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"x,y\n", "no rows"),
        (b"x,y\n1,2\n1,2,3\n", "line 3"),
        (b"x y\n1.5 2.5\n", "separated by"),
        (b"x,y,x\n1,2,3\n4,5,6\n", "column named 'x'"),
        (b"x,Y\n1,2\n3,4\n", "did you mean 'Y'"),
        (b"x,y\n1,\n2,\n", "missing in every row"),
        (
            b"x,y\n" + b"".join(b"%d,text %d\n" % (i, i) for i in range(12)),
            "different texts in",
        ),
        (b"x,y\n1,2.5\n2,n/k\n3,3.5\n", "'n/k' in row 2 below the names"),
        (b"code,y\n" + b"".join(b"7,%d.5\n" % i for i in range(21)), "No column is left"),
        (b"\x00\x01\x02\x00", "not text"),
    ],
)
def test_a_faulty_file_gets_one_sentence(tmp_path, content, message):
    data = tmp_path / "data.csv"
    data.write_bytes(content)
    assert message in refused(run("fit", data, "--target", "y", "--out", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there(tmp_path):
    where = ("--target", "y", "--out", tmp_path / "out")  # a demo may have left its model in this folder
    assert "nowhere.csv" in refused(run("fit", tmp_path / "nowhere.csv", *where))
    assert "folder" in refused(run("fit", tmp_path, *where))


@pytest.mark.gate
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bom.csv", b"\xef\xbb\xbfx,y\n" + ROWS.encode()),
        ("decimal.csv", ("x;y\n" + ROWS.replace(",", ";").replace(".", ",")).encode()),
        ("latin.csv", ("x,y,größe\n" + ROWS.replace("\n", ",süß\n")).encode("latin-1")),
        ("packed.csv.gz", gzip.compress(b"x,y\n" + ROWS.encode())),
        ("gaps.csv", b"x,y\n" + ROWS.encode() + b"3.5,\n"),
    ],
)
def test_files_that_differ_in_dress_only(tmp_path, name, content):
    data = tmp_path / name
    data.write_bytes(content)
    result = run("fit", data, "--target", "y", "--out", tmp_path, "--test-size", "0", "--json", *QUICK)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert (record["rows"], record["target"]) == (20, "y")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "hidden=3"], "did you mean"),
        (["--set", "tol"], "name=value"),
        (["--model", "forest"], "no model 'forest'"),
        (["--task", "clasification"], "did you mean 'classification'"),
        (["--test-size", "1.5"], "held-out share"),
        (["--save", "same", "--report", "same"], "same file"),
    ],
)
def test_options_that_cannot_be(tmp_path, options, message):
    data = tmp_path / "data.csv"
    data.write_text("x,y\n" + ROWS)
    assert message in refused(run("fit", data, "--target", "y", "--out", tmp_path / "out", *options))


@pytest.mark.parametrize("name", sorted(typer.main.get_command(app).commands))
def test_the_help_of_a_command_names_its_own_options_alone(name):
    command = typer.main.get_command(app).commands[name]
    own = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    told = " ".join(filter(None, (command.help, *(getattr(each, "help", "") for each in command.params))))
    assert set(re.findall(r"--[a-z][a-z-]*", told)) <= own


@pytest.mark.parametrize(
    "options",
    [
        ["--model", "sparse_gp"],
        ["--model", "sparse_gp", "--kind", "label"],
        ["--model", "rank_factor", "--task", "classification"],
    ],
    ids=["grades", "labels", "task"],
)
def test_a_target_in_half_steps_is_fitted_evaluated_and_scored(tmp_path, options):
    x = np.random.RandomState(0).rand(80)
    table = tmp_path / "stars.csv"
    pd.DataFrame({"x": x, "stars": np.round(2 * (1 + 2 * x)) / 2}).to_csv(table, index=False)
    done = run("fit", table, "--target", "stars", "--json", "--out", tmp_path, *options)
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["held_out"]["logistic regression"]["accuracy"] > 0.5
    assert not any("could not be fitted" in note for note in answer["notes"])
    scored = json.loads(run("score", tmp_path / "model.nongauss", table, "--json").stdout)
    assert scored["figures"]["accuracy"] > 0.4


def test_models_of_a_target_in_half_steps_are_compared(tmp_path):
    x = np.random.RandomState(0).rand(80)
    table = tmp_path / "stars.csv"
    pd.DataFrame({"x": x, "stars": np.round(2 * (1 + 2 * x)) / 2}).to_csv(table, index=False)
    done = run("compare", table, "--target", "stars", "--model", "sparse_gp", "--cv", "2", "--json")
    assert done.exit_code == 0, done.output
    assert "continuous" not in done.output

"""`nongauss describe`: what is in a model file, those of older versions too."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load
from typer.testing import CliRunner

import nongauss
from fuzz.targets import SMALL, saved_model
from nongauss.cli.app import app

OLDER = sorted((Path(__file__).parents[1] / "estimator" / "models_of_0_1").glob("*.nongauss"))


def run(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("visits")
    rng = np.random.RandomState(0)
    table = pd.DataFrame({"age": 20 + 60 * rng.rand(60), "colour": rng.choice(["red", "blue"], 60), "one": 1})
    table["visits"] = rng.poisson(np.exp(table["age"] / 40))
    table.to_csv(folder / "visits.csv", index=False)
    run("fit", folder / "visits.csv", "--target", "visits", "--out", folder, "--quiet", "--set", "max_iter=8")
    return folder


def test_it_knows_target_rows_columns_figures_date_and_what_auto_became(visits, monkeypatch):
    text = run("describe", visits / "model.nongauss")
    for pattern in (
        r"format 3, nongauss \d",
        r"Target +visits \(count\), regression",
        r"Table +visits.csv, 60 rows, evaluated on \d+ held-out rows",
        r"Fitted at +20\d\d-\d\d-\d\dT.*\+00:00",
        r"Asked for +auto, which chose SparseGPRegressor",
        r"n_inducing +'auto', which became \d+",
        r"lengthscales +age [\d.]+, colour [\d.]+",
        r"\(1\) +age\n",
        r"left out +one: ",
        r"Held-out rows\nmodel ",
        r"90 % coverage",
    ):
        assert re.search(pattern, text), (pattern, text)
    record = json.loads(run("describe", visits / "model.nongauss", "--json"))
    assert (record["target"], record["kind"], record["task"], record["n_rows"]) == (
        "visits",
        "count",
        "regression",
        60,
    )
    assert record["figures"]["SparseGPRegressor"]["n_rows"] == record["n_held_out"]
    assert record["auto_became"]["n_inducing"] > 0
    assert record["fitted"]["lengthscales_"].keys() == {"age", "colour"}
    assert "marginal" not in record


def test_a_fit_can_be_repeated_to_the_same_bytes(visits, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    how = ["--target", "visits", "--quiet", "--no-refit", "--set", "max_iter=3", "--test-size", "0"]
    files = []
    for name in ("a", "b"):
        run("fit", visits / "visits.csv", *how, "--out", visits / name)
        files.append((visits / name / "model.nongauss").read_bytes())
    assert "2023-11-14T22:13:20" in run("describe", visits / "a" / "model.nongauss")
    one, other = map(load, files)
    differ = [name for name in one if not np.array_equal(one[name], other[name], equal_nan=True)]
    assert set(one) == set(other)
    assert len(differ) == 1, differ  # the seconds of the trace, which no file of a fit has twice


@pytest.mark.parametrize("path", OLDER, ids=lambda path: path.stem)
def test_files_of_0_1_are_still_described(path):
    text = run("describe", path)
    assert f"Model                {path.stem}" in text
    predicts = path.stem.endswith(("Regressor", "Classifier"))
    assert ("Target               not known" in text) == predicts
    record = json.loads(run("describe", path, "--json"))
    assert (record["model"], record["target"], record["format_version"]) == (path.stem, None, 1)
    assert record["columns"] == ["size", "colour", "rooms"]


def test_clusters_know_their_table(visits):
    run(
        "cluster",
        visits / "visits.csv",
        "--clusters",
        "2",
        "--out",
        visits / "c",
        "--quiet",
        "--set",
        "n_init=1",
    )
    text = run("describe", visits / "c" / "model.nongauss")
    assert re.search(r"Table +visits.csv, 60 rows\nFitted at +20", text)
    assert "Target" not in text


@pytest.mark.gate
@pytest.mark.parametrize("name", SMALL)
def test_a_file_of_any_estimator_is_described_with_its_version_and_checksum(name, tmp_path):
    stated = re.search(rb"[0-9a-f]{64}", saved_model(name).read_bytes())[0]
    blank = saved_model(name).read_bytes().replace(stated, b"0" * 64)
    assert hashlib.sha256(blank).hexdigest().encode() == stated
    said = CliRunner().invoke(app, ["describe", str(saved_model(name))]).stdout
    assert stated.decode() in said
    assert f"nongauss {nongauss.__version__}" in said
    assert name in said
    found = json.loads(CliRunner().invoke(app, ["describe", str(saved_model(name)), "--json"]).stdout)
    assert (found["sha256"], found["format_version"]) == (stated.decode(), 3)
    nongauss.save(getattr(nongauss, name)(), tmp_path / "unfitted")
    for options in ([], ["--json"]):
        outcome = CliRunner().invoke(app, ["describe", str(tmp_path / "unfitted"), *options])
        assert outcome.exit_code == 0, outcome.output
    assert "not fitted" in CliRunner().invoke(app, ["describe", str(tmp_path / "unfitted")]).stdout

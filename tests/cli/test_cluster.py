from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import nongauss
from nongauss.cli.app import app
from nongauss.cli.cluster import _without_ids, fit_clusters, left_out, rule_lines
from nongauss.core.errors import InputError, NongaussWarning


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "iris.csv"
    frame = load_iris(as_frame=True).frame.drop(columns="target")
    frame.columns = ["sepal length", "sepal width", "petal length", "petal width"]
    frame.to_csv(path, index=False)
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_clusters_are_printed_saved_reported_and_predicted(table, tmp_path):
    options = ["--rules", "petal length,petal width", "--clusters", 3, "--out", tmp_path]
    done = run("cluster", table, *options)
    assert done.exit_code == 0, done.output
    assert "petal width at most" in done.output
    report = (tmp_path / "report.html").read_text()
    assert report.count("<figure><svg") >= 3
    assert "petal width at most" in report
    assert "Held-out" not in report
    assert "sepal" not in "".join(nongauss.load(tmp_path / "model.nongauss").rule_text_.values())

    out = tmp_path / "new.csv"
    assert run("predict", tmp_path / "model.nongauss", table, "--out", out).exit_code == 0
    written = pd.read_csv(out)
    assert list(written) == ["cluster", "p_cluster 0", "p_cluster 1", "p_cluster 2"]
    assert set(written["cluster"]) == {"cluster 0", "cluster 1", "cluster 2"}
    told = run("describe", tmp_path / "model.nongauss")
    assert "petal width at most" in told.output


@pytest.mark.gate
def test_json_holds_the_rules(table, tmp_path):
    done = run("cluster", table, "--clusters", 2, "--set", "n_init=2", "--out", tmp_path, "--json")
    record = json.loads(done.stdout)
    assert len(record["clusters"]) == 2
    assert {"cluster", "column", "lower", "upper"} <= set(record["rules"][0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"rules": "petal width,petal lenth"},
            "no column 'petal lenth' for rule_columns; did you mean 'petal length'",
        ),
        ({"settings": ["n_inits=3"]}, "no parameter 'n_inits'; did you mean 'n_init'"),
    ],
)
def test_slips_are_named(table, options, message):
    with pytest.raises(InputError, match=message):
        fit_clusters(table, **options)


def test_lines_of_a_report(table):
    model, frame = fit_clusters(table, n_clusters=2, settings=["n_init=2"])
    lines = rule_lines(model, frame)
    assert [line[0] for line in lines] == model.cluster_names_
    assert all(line[2].endswith(" %") for line in lines)


def test_no_column_is_both_used_and_left_out():
    roles = {"joined": "", "joined (month)": "for rules", "joined (weekday)": "for rules", "id": "", "a": "x"}
    places = {"joined": 0, "joined (month)": 0, "joined (weekday)": 0, "id": 1, "a": 2}
    assert left_out(roles, places) == [
        ("joined (day)", "uninformative; its month and weekday are used"),
        ("id", "uninformative, or not requested"),
    ]


def test_row_numbers_make_no_rule_unless_they_are_asked_for(tmp_path):
    frame = load_iris(as_frame=True).frame.drop(columns="target").iloc[::3]
    frame.insert(0, "respondent", range(1, len(frame) + 1))
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    with pytest.warns(NongaussWarning, match="Left out: 'respondent' .the row numbers 1 to 50"):
        model, rows = fit_clusters(path, n_clusters=2, settings=["n_init=1"])
    assert "respondent" not in rows
    assert "respondent" not in set(model.rules_["column"])
    model, rows = fit_clusters(path, n_clusters=2, rules="respondent", settings=["n_init=1"])
    assert set(model.rules_["column"]) == {"respondent"}


def test_ids_among_columns_whose_names_are_numbers_are_left_out(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {0: [f"P{i:04d}" for i in range(60)], 1: rng.normal(size=60), 2: rng.normal(size=60)}
    )
    with pytest.warns(NongaussWarning, match="Left out: '0'"):
        assert list(_without_ids(table, [])) == [1, 2]
    with pytest.raises(InputError, match="Every column only numbers or names the rows; --rules"):
        _without_ids(table[[0]], [])

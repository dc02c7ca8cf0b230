"""`nongauss score`: figures with their errors, and a verdict against what training knew."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import nongauss
from nongauss.cli.app import app
from nongauss.cli.describe import about_of
from nongauss.cli.judge import Outcome, rows_like
from nongauss.cli.read import NOTHING, Declared, load_table, prepare
from nongauss.cli.score import in_units_of_table, score_table, standard_errors
from nongauss.cli.target import in_unit
from nongauss.core.errors import InputError
from nongauss.estimator.about import About, Marginal
from nongauss.report.metrics import format_figure
from nongauss.report.scoring import LabelScores, score


def table(n, seed):
    rng = np.random.RandomState(seed)
    x = rng.uniform(-2, 2, n)
    frame = pd.DataFrame({"x": x, "other": rng.rand(n)})
    frame["y"] = np.sin(2 * x) + 0.2 * rng.normal(size=n)
    frame["who"] = np.where(frame["y"] > 0, "me", "you")
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("score")
    old = table(80, 0)
    X = old[["x", "other"]]
    numbers = nongauss.SparseGPRegressor(n_inducing=8).fit(X, old["y"])
    nongauss.save(numbers, folder / "bare")
    marginal = Marginal.of(old["y"], labels=False)
    numbers.about_ = About(target="y", kind="real", source="old.csv", n_rows=80, marginal=marginal)
    nongauss.save(numbers, folder / "numbers")
    labels = nongauss.SparseGPClassifier(n_inducing=8).fit(X, old["who"])
    labels.about_ = About(target="who", marginal=Marginal.of(old["who"], labels=True), n_rows=80)
    nongauss.save(labels, folder / "labels")
    old.drop(columns="who").to_csv(folder / "old.csv", index=False)
    new = table(300, 1)
    new.drop(columns="who").to_csv(folder / "new.csv", index=False)
    new.drop(columns="y").to_csv(folder / "who.csv", index=False)
    return folder


def scored(folder, *arguments):
    result = CliRunner().invoke(app, ["score", *(str(a) for a in arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments):
    result = CliRunner().invoke(app, ["score", *(str(a) for a in arguments)])
    assert result.exit_code == 2, result.output
    return result.stderr


def test_figures_and_their_errors_are_those_of_the_rows(folder):
    record = scored(folder, folder / "numbers", folder / "new.csv")
    new, model = pd.read_csv(folder / "new.csv"), nongauss.load(folder / "numbers")
    law = model.predict_distribution(new[["x", "other"]])
    density = law.log_prob(new["y"])
    figures, errors = record["figures"], record["standard_errors"]
    assert figures["rmse"] == pytest.approx(np.sqrt(np.mean((law.mean - new["y"]) ** 2)))
    assert figures["log_density"] == pytest.approx(density.mean())
    assert errors["log_density"] == pytest.approx(density.std(ddof=1) / np.sqrt(300), rel=0.25)
    inside = ((law.interval(0.9).T[0] <= new["y"]) & (new["y"] <= law.interval(0.9).T[1])).astype(float)
    assert errors["coverage_90"] == pytest.approx(inside.std(ddof=1) / np.sqrt(300), rel=0.25)
    assert record["rows"] == 300
    assert record["notes"] == []


def test_the_baseline_is_what_training_knew_of_the_target(folder, tmp_path):
    record = scored(folder, folder / "numbers", folder / "new.csv")
    against = record["verdict"]["differences"][0]
    assert against["baseline"] == "mean of the target"
    assert record["verdict"]["worth"] == "better"
    # rows of another level: the mean of training is far off there, and their own mean would not be
    high = pd.read_csv(folder / "new.csv").query("y > 0.8")
    high.to_csv(tmp_path / "high.csv", index=False)
    other = scored(folder, folder / "numbers", tmp_path / "high.csv")["verdict"]["differences"][0]
    assert other["mean"] > against["mean"] + 0.2


def test_labels_are_scored_too_and_one_that_is_unknown_counts_as_wrong(folder, tmp_path):
    record = scored(folder, folder / "labels", folder / "who.csv")
    assert record["figures"]["accuracy"] > 0.8
    assert record["verdict"]["differences"][0]["baseline"] == "class shares"
    who = pd.read_csv(folder / "who.csv")
    who.loc[:29, "who"] = "stranger"
    who.to_csv(tmp_path / "strange.csv", index=False)
    strange = scored(folder, folder / "labels", tmp_path / "strange.csv")
    assert strange["figures"]["accuracy"] < record["figures"]["accuracy"] - 0.05


def test_rows_without_target_are_left_out_and_seen_tables_told_of(folder, tmp_path):
    new = pd.read_csv(folder / "old.csv")
    new.loc[:9, "y"] = np.nan
    new.to_csv(tmp_path / "old.csv", index=False)
    record = scored(folder, folder / "numbers", tmp_path / "old.csv")
    assert record["rows"] == 70
    assert "10 of 80 rows have no 'y'" in record["notes"][0]
    assert "scores on training rows are too good" in record["notes"][1]


def test_a_file_without_its_target_names_near_columns(folder, tmp_path):
    pd.read_csv(folder / "new.csv").rename(columns={"y": "Y"}).to_csv(tmp_path / "n.csv", index=False)
    assert "no column 'y', the target, so there is nothing to score; did you mean 'Y'?" in refused(
        folder / "numbers", tmp_path / "n.csv"
    )
    assert "give --target: in new.csv there are: 'x', 'other', 'y'" in refused(
        folder / "bare", folder / "new.csv"
    )
    record = scored(folder, folder / "bare", folder / "new.csv", "--target", "y")
    assert "distribution of the training target is not in the file" in record["notes"][0]
    assert record["verdict"]["worth"] == "better"


def test_a_model_without_a_target_has_nothing_to_score(folder, tmp_path):
    rows = pd.read_csv(folder / "old.csv")[["x", "other"]]
    nongauss.save(nongauss.RectangleMixture(2, n_init=1).fit(rows), tmp_path / "clusters")
    assert "predicts no target" in refused(tmp_path / "clusters", folder / "new.csv")


def test_scores_in_per_cent_are_those_of_shares_times_a_hundred(folder):
    new, model = pd.read_csv(folder / "new.csv"), nongauss.load(folder / "numbers")
    found = score(model, new[["x", "other"]], new["y"].to_numpy())
    figures = in_units_of_table(found, 100.0).figures()
    assert figures["rmse"] == pytest.approx(100 * found.figures()["rmse"])
    assert figures["log_density"] == pytest.approx(found.figures()["log_density"] - np.log(100))
    for name in ("mae", "crps", "width_90", "interval_score_90"):
        assert figures[name] == pytest.approx(100 * found.figures()[name]), name
    assert figures["coverage_90"] == found.figures()["coverage_90"]


def test_errors_of_labels_are_those_of_a_share():
    rng = np.random.RandomState(0)
    right = rng.rand(500) < 0.7
    p = np.where(right, 0.8, 0.2)
    y = np.repeat(["a"], 500)
    found = LabelScores(y, np.where(right, "a", "b"), np.stack([p, 1 - p], 1), np.array(["a", "b"]))
    assert standard_errors(found)["accuracy"] == pytest.approx(right.std(ddof=1) / np.sqrt(500), rel=0.25)
    assert standard_errors(LabelScores(y[:1], y[:1], np.array([[1.0, 0.0]]), found.classes)) == {}


def waits(n, seed):
    """Waiting times of a log-normal law whose middle depends on x, ended by a clock; and the whole truth."""
    rng = np.random.RandomState(seed)
    x = rng.uniform(-1, 1, n)
    whole = np.exp(1.0 + x + 0.3 * rng.normal(size=n))
    clock = rng.uniform(1.0, 8.0, n)
    status = np.where(whole > clock, "still waiting", "seen")
    return pd.DataFrame({"x": x, "wait": np.minimum(whole, clock).round(4), "status": status})


@pytest.fixture(scope="module", params=["status", "status=still waiting"])
def waiting(request, tmp_path_factory):
    folder, old = tmp_path_factory.mktemp("waits"), waits(90, 0)
    declared = Declared(censored=request.param)
    table = prepare(old, "wait", declared=declared)
    model = nongauss.SparseGPRegressor(n_inducing=5, likelihood="log_normal")
    model.fit(table.rows, table.y, **table.fit_params)
    model.about_ = about_of(Outcome(model, model, len(old)), table, "sparse_gp", declared)
    nongauss.save(model, folder / "m")
    waits(60, 1).to_csv(folder / "new.csv", index=False)
    return folder


def test_rows_still_waiting_count_by_the_chance_of_lasting(waiting):
    new, model = pd.read_csv(waiting / "new.csv"), nongauss.load(waiting / "m")
    sheet = score_table(model, waiting / "new.csv")
    law, y = model.predict_distribution(new[["x"]]), new["wait"].to_numpy()
    cut = (new["status"] == "still waiting").to_numpy()
    assert 10 < cut.sum() < 50
    each = np.where(cut, np.log1p(-law.cdf(y)), law.log_prob(y))
    assert sheet.figures["log_density"] == pytest.approx(each.mean(), abs=1e-6)
    errors = np.abs(np.asarray(law.mean).ravel() - y)[~cut]
    assert sheet.figures["mae"] == pytest.approx(errors.mean())
    lower, upper = np.asarray(law.interval(0.9)).reshape(60, 2)[~cut].T
    inside = ((lower <= y[~cut]) & (y[~cut] <= upper)).sum()
    assert inside <= 60 * sheet.figures["coverage_90"] + 1e-9 <= inside + cut.sum() + 1e-6
    assert any(f"{cut.sum()} rows have a true target above" in note for note in sheet.notes)
    again = score_table(model, waiting / "new.csv", censored="status=still waiting")
    assert again.figures == sheet.figures


def test_the_baseline_of_waiting_times_is_that_of_the_training_rows(waiting):
    model = nongauss.load(waiting / "m")
    kept = model.about_.marginal
    assert set(kept.beside) == {"censoring"}
    share = (waits(90, 0)["status"] == "still waiting").mean()
    assert kept.beside["censoring"].mean() == pytest.approx(share, abs=0.1)
    assert not any("baseline was fitted" in note for note in score_table(model, waiting / "new.csv").notes)


def test_one_kind_of_row_alone_reads_as_at_the_fit(waiting, tmp_path):
    model, new = nongauss.load(waiting / "m"), pd.read_csv(waiting / "new.csv")
    for word in ("seen", "still waiting", "Still Waiting"):
        new[new["status"] == word.lower()].assign(status=word).to_csv(tmp_path / "part.csv", index=False)
        figures = score_table(model, tmp_path / "part.csv").figures
        assert ("rmse" in figures) == (word == "seen")
    new.assign(status="sent home").to_csv(tmp_path / "part.csv", index=False)
    with pytest.raises(InputError, match="holds 'sent home', which it did not in training"):
        score_table(model, tmp_path / "part.csv")
    new.drop(columns="status").to_csv(tmp_path / "part.csv", index=False)
    assert any("treated as exact" in note for note in score_table(model, tmp_path / "part.csv").notes)


def test_a_model_that_knows_of_no_censoring_is_told_of_it(waiting, folder):
    model = nongauss.load(waiting / "m")
    known = score_table(model, waiting / "new.csv").figures["log_density"]
    model.about_ = None
    sheet = score_table(model, waiting / "new.csv", "wait", "status")
    assert sheet.figures["log_density"] == known
    assert any("baseline was fitted to the rows" in note for note in sheet.notes)
    assert "omit --censored" in refused(folder / "labels", folder / "who.csv", "--censored", "other")


def test_the_column_of_censoring_is_not_called_unknown(waiting, tmp_path):
    result = CliRunner().invoke(
        app,
        ["predict", str(waiting / "m"), str(waiting / "new.csv"), "--out", str(tmp_path / "p.csv")],
    )
    assert result.exit_code == 0, result.output
    assert "did not exist in training" not in result.output


@pytest.fixture(scope="module")
def germinated(tmp_path_factory):
    """A model of whole per cents, none of them 0 or 100, and rows that hold such."""
    folder, rng = tmp_path_factory.mktemp("percent"), np.random.RandomState(0)
    x = rng.uniform(-1, 1, 80)
    share = np.clip(np.round(100 / (1 + np.exp(-4 * x - 0.5 * rng.normal(size=80)))), 1, 98)
    frame = pd.DataFrame({"x": x.round(3), "germinated %": share})
    table = prepare(frame, "germinated %")
    model = nongauss.SparseGPRegressor(n_inducing=5, likelihood="beta").fit(table.rows, table.y)
    model.about_ = about_of(Outcome(model, model, len(frame)), table, "sparse_gp")
    nongauss.save(model, folder / "m")
    frame.to_csv(folder / "inside.csv", index=False)
    frame["germinated %"] = frame["germinated %"].where(frame.index > 2, 100)
    frame.to_csv(folder / "ends.csv", index=False)
    return folder, table


def test_the_verdict_is_in_the_units_of_the_figures(germinated):
    sheet = score_table(nongauss.load(germinated[0] / "m"), germinated[0] / "inside.csv")
    assert sheet.figures["rmse"] > 1.0
    said = " ".join(sheet.verdict.sentences)
    assert f"RMSE {format_figure('rmse', sheet.figures['rmse'])} against" in said
    assert f"mean CRPS {format_figure('crps', sheet.figures['crps'])}" in said


def test_values_without_any_probability_are_told_with_a_remedy(germinated):
    folder, table = germinated
    assert any("0 and 100 may still come by rounding" in note for note in table.notes)
    sheet = score_table(nongauss.load(folder / "m"), folder / "ends.csv")
    assert sheet.figures["log_density"] == -np.inf
    told = next(note for note in sheet.notes if "no probability" in note)
    assert "of 3 rows (100)" in told
    assert "--set likelihood=zero_one_beta" in told


def test_percent_with_digits_or_far_from_the_ends_are_not_said_to_be_rounded():
    for cells in (np.linspace(0.6, 98.3, 40), np.arange(20.0, 60.0), np.arange(0.0, 101.0)):
        table = prepare(pd.DataFrame({"x": np.arange(len(cells)) % 7, "y %": cells}), "y %")
        assert table.kind.value == "share"
        assert not any("rounding" in note for note in table.notes)


@pytest.mark.parametrize("kind", ["score", "--test"])
def test_targets_in_another_unit_are_scored_in_that_of_the_fit(tmp_path, kind):
    data = table(60, 0).rename(columns={"y": "wait"})
    data["wait"] = [f"{1000 + 50 * value:.0f} ms" for value in data["wait"] - data["wait"].min()]
    seconds = data.assign(wait=[f"{float(cell[:-3]) / 1000:.3f} s" for cell in data["wait"]])
    data.to_csv(tmp_path / "t.csv", index=False)
    for name, rows in (("ms", data), ("s", seconds)):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    ready = load_table(tmp_path / "t.csv", "wait")
    assert ready.unit == ".# ms"
    if kind == "score":
        model = nongauss.SparseGPRegressor(n_inducing=4).fit(ready.X, ready.y)
        model.about_ = About(target="wait", unit=ready.unit)
        figures = [score_table(model, tmp_path / f"{name}.csv").figures for name in ("ms", "s")]
        assert figures[0] == pytest.approx(figures[1], rel=1e-9)
    else:
        frames = [pd.read_csv(tmp_path / f"{name}.csv") for name in ("ms", "s")]
        both = [rows_like(ready, frame, NOTHING, "t")[0].y for frame in frames]
        np.testing.assert_allclose(both[0], both[1], rtol=1e-12)
    with pytest.raises(InputError, match="'# ms' when the model was fitted, but has '# kg' now"):
        in_unit(pd.Series(["3 kg", "4 kg"]), "wait", ready.unit)

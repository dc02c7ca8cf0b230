"""Predictions, scores and descriptions of saved models."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import nongauss
from nongauss.cli.app import app
from nongauss.cli.predict import predict_table, prediction_frame
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.estimator.about import About
from report.stand_in import small_data


def labelled(n=60, text=True):
    X, y = small_data(n)
    grade = np.digitize(y, [1.5, 4.0])
    labels = np.array(["low", "mid", "top"])[grade] if text else grade + 1
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=labels)


@pytest.mark.parametrize("text", [False, True])
def test_predictions_of_a_classifier_have_a_column_for_each_class(tmp_path, text):
    table = labelled(text=text)
    model = LogisticRegression().fit(table[["a", "b", "c"]], table["y"])
    data, out = tmp_path / "data.csv", tmp_path / "new" / "pred.csv"
    table[["a", "b", "c"]].to_csv(data, index=False)
    assert predict_table(model, data, out) == 60
    written = pd.read_csv(out)
    assert list(written) == [
        "predicted",
        *(f"p_{name}" for name in (["low", "mid", "top"] if text else [1, 2, 3])),
    ]
    np.testing.assert_allclose(written.iloc[:, 1:], model.predict_proba(table[["a", "b", "c"]]))
    assert (written["predicted"] == model.predict(table[["a", "b", "c"]])).all()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with a model of counts, one of labels and their table."""
    folder = tmp_path_factory.mktemp("saved")
    rng = np.random.RandomState(0)
    table = pd.DataFrame({"key": [f"{i:03d}x" for i in range(60)], "mean": rng.rand(60), "a": rng.rand(60)})
    table["n"] = rng.poisson(np.exp(1 + table["a"]))
    table["who"] = np.where(table["a"] + 0.1 * rng.rand(60) > 0.5, "me", "you")
    table.to_csv(folder / "t.csv", index=False)
    table.to_parquet(folder / "t.parquet", row_group_size=17)
    X = table[["mean", "a"]]
    model = nongauss.SparseGPRegressor(likelihood="poisson", n_inducing=6).fit(X, table["n"])
    labels = nongauss.SparseGPClassifier(n_inducing=6).fit(X, table["who"])
    for each, target, other, name in ((model, "n", "who", "counts"), (labels, "who", "n", "labels")):
        each.about_ = About(target=target, ignored=[("key", "an id"), (other, "left out")])
        nongauss.save(each, folder / name)
    return folder


def predicted(folder, *arguments, data="t.csv", out="p.csv", model="counts"):
    command = ["predict", folder / model, folder / data, "--out", folder / out, "--force", *arguments]
    result = CliRunner().invoke(app, [str(a) for a in command])
    assert result.exit_code == 0, result.output
    return pd.read_parquet(folder / out) if out.endswith("parquet") else pd.read_csv(folder / out)


def refused(folder, *arguments, model="counts"):
    command = ["predict", folder / model, folder / "t.csv", "--out", folder / "no.csv", *arguments]
    result = CliRunner().invoke(app, [str(a) for a in command])
    assert result.exit_code == 2, result.output
    assert not (folder / "no.csv").exists()
    return result.stderr


@pytest.mark.parametrize(("data", "out"), [("t.csv", "p.csv"), ("t.parquet", "p.parquet")])
def test_keys_come_first_and_intervals_and_quantiles_are_those_asked_for(saved, data, out):
    how = ["--id", "key", "--keep", "n,a", "--coverage", "50,90", "--quantiles", ".05,.5,.95"]
    found = predicted(saved, *how, data=data, out=out)
    assert list(found) == [
        *("key", "n", "a", "mean", "sd", "lower_50", "upper_50", "lower_90", "upper_90"),
        *("q_0.05", "q_0.5", "q_0.95"),
    ]
    table = pd.read_csv(saved / "t.csv")
    pd.testing.assert_frame_equal(found[["key", "n", "a"]], table[["key", "n", "a"]], check_dtype=False)
    law = nongauss.load(saved / "counts").predict_distribution(table[["mean", "a"]])
    np.testing.assert_allclose(found["mean"], law.mean)
    np.testing.assert_allclose(found[["lower_50", "upper_50"]], law.interval(0.5))
    np.testing.assert_allclose(found["q_0.5"], law.quantile(0.5))
    assert (found["q_0.05"] == found["lower_90"]).all()


def test_the_usual_columns_without_options(saved):
    assert list(predicted(saved)) == ["mean", "sd", "lower_90", "upper_90"]
    labels = predicted(saved, "--id", "key", model="labels")
    assert list(labels) == ["key", "predicted", "p_me", "p_you"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--keep", "mean"], "Column 'mean' cannot be kept"),
        (["--id", "kez"], "did you mean 'key'?"),
        (["--coverage", "0.9"], "intervals of 50 and 90 %; got '0.9'"),
        (["--coverage", "many"], "got 'many'"),
        (["--quantiles", "5"], "above 0 and below 1"),
    ],
)
def test_what_cannot_be_written_gets_a_sentence(saved, arguments, message):
    assert message in refused(saved, *arguments)


def test_labels_have_no_intervals(saved):
    assert "gives no intervals" in refused(saved, "--coverage", "50", model="labels")


def test_predictions_are_in_the_units_of_the_table(saved):
    model = nongauss.load(saved / "counts")
    model.about_ = About(scale=100.0, beside={"exposure": "time"})
    frame = pd.read_csv(saved / "t.csv").assign(time=3.0)
    frame = frame[["mean", "a", "time"]]
    plain = model.predict_distribution(frame[["mean", "a"]], 3.0 * np.ones(60))
    found = prediction_frame(model, frame)
    np.testing.assert_allclose(found["mean"], 100 * plain.mean)
    np.testing.assert_allclose(found["upper_90"], 100 * plain.interval(0.9)[:, 1])
    with pytest.raises(InputError, match="exposure in column 'time'"):
        prediction_frame(model, frame.drop(columns="time"))


def test_a_label_new_to_the_model_is_told_with_its_row_in_the_file(tmp_path):
    frame = pd.DataFrame({"kind": ["a", "b"] * 20, "x": np.arange(40) % 9, "y": np.arange(40) % 7 * 1.5})
    model = nongauss.SparseGPRegressor(n_inducing=4).fit(frame[["kind", "x"]], frame["y"])
    nongauss.save(model, tmp_path / "m")
    frame[["kind", "x"]].replace({"kind": {"b": "c"}}).to_csv(tmp_path / "new.csv", index=False)
    asked = ["predict", str(tmp_path / "m"), str(tmp_path / "new.csv"), "--out", str(tmp_path / "p.csv")]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert "(first in row 2 below the names)" in result.output


def test_a_column_that_is_not_there_is_told_with_the_file(saved, tmp_path):
    pd.DataFrame({"mean": [0.1], "b": [0.2]}).to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(InputError, match=r"^new.csv lacks column 'a', .* new.csv has"):
        predict_table(nongauss.load(saved / "counts"), tmp_path / "new.csv", tmp_path / "p.csv")


def test_rows_far_outside_the_training_rows_are_counted_once(saved, tmp_path):
    model, table = nongauss.load(saved / "counts"), pd.read_csv(saved / "t.csv").head(10)
    table.to_csv(tmp_path / "near.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predict_table(model, tmp_path / "near.csv", tmp_path / "out.csv")
    table.loc[[1, 4, 5], "a"] = [5.0, -3.0, 9.0]
    table.loc[[4, 7], "mean"] = [7.0, 1.2]  # 1.2 is not far from 0 to 1
    table.to_csv(tmp_path / "far.csv", index=False)
    with pytest.warns(NongaussWarning) as told:
        predict_table(model, tmp_path / "far.csv", tmp_path / "out2.csv")
    (said,) = [str(item.message) for item in told]
    assert said.startswith("3 of 10 rows lie far outside the range of the training rows")
    assert "most often in column 'a' (3)" in said

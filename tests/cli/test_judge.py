from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from nongauss.cli import fit_and_report, judge
from nongauss.cli.read import Declared, prepare
from nongauss.cli.split import HeldOut, split_rows
from nongauss.core.errors import InputError
from nongauss.report import judgement
from report.stand_in import StandIn, small_data


def frame(n=60):
    X, y = small_data(n)
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)


def test_held_out_rows_are_not_seen_and_the_kept_model_has_seen_all():
    ready = prepare(frame(), "y", "tggm")
    outcome = judge.fit_and_judge(StandIn(), ready, seed=3)
    errors = []
    for train, test in split_rows(ready, HeldOut(), 3).folds:
        fitted = StandIn().fit(ready.X.iloc[train], ready.y[train])
        errors.append(fitted.predict(ready.X.iloc[test]) - ready.y[test])
    assert outcome.n_held_out == 60
    assert outcome.metrics["StandIn"]["rmse"] == pytest.approx(np.sqrt(np.mean(np.concatenate(errors) ** 2)))
    np.testing.assert_allclose(
        outcome.final.predict(ready.X), StandIn().fit(ready.X, ready.y).predict(ready.X)
    )
    assert set(outcome.metrics) == {"StandIn", "mean of the target", "ridge regression"}
    assert "from 5 fits" in outcome.notes[0]
    assert "fitted to all 60" in outcome.notes[0]
    assert outcome.verdict.worth == "better"


def test_without_refit_the_judged_model_is_kept():
    outcome = judge.fit_and_judge(StandIn(), prepare(frame(), "y", "tggm"), refit=False)
    assert outcome.final is outcome.judged
    assert (outcome.n_rows, outcome.n_held_out) == (48, 12)


def test_a_large_table_is_judged_by_one_part_and_no_clock_decides(monkeypatch):
    ready = prepare(frame(), "y", "tggm")
    fit_timed = judgement.fit_timed
    monkeypatch.setattr(judgement, "fit_timed", lambda *given: (fit_timed(*given)[0], 1e6))
    assert judge.fit_and_judge(StandIn(), ready).n_held_out == 60
    monkeypatch.setitem(judge.MOST_CELLS_FOR_FOLDS, ready.choice.model, 60 * 3 - 1)
    outcome = judge.fit_and_judge(StandIn(), ready)
    assert outcome.n_held_out == 12
    assert "a fit to 48 rows" in outcome.notes[0]


@pytest.mark.parametrize(("rows", "share"), [(9, 0.2), (60, 0)])
def test_nothing_is_held_out_of_few_rows_or_on_request(rows, share):
    outcome = judge.fit_and_judge(StandIn(), prepare(frame(rows), "y", "tggm"), held_out=HeldOut(share=share))
    assert outcome.metrics == {}
    assert outcome.n_held_out == 0
    assert "no scores on held-out rows" in outcome.notes[0]
    assert outcome.verdict.worth == "unknown"
    assert "--test" in outcome.verdict.advice[0]


def test_rows_of_a_file_judge_a_fit_on_all(tmp_path):
    table, other = prepare(frame(60), "y", "tggm"), frame(90).iloc[60:]
    path = tmp_path / "other.csv"
    other[["y", "c", "b", "a"]].to_csv(path, index=False)
    outcome = judge.fit_and_judge(StandIn(), table, held_out=HeldOut(test=path))
    expected = StandIn().fit(table.X, table.y).predict(other[["a", "b", "c"]])
    assert outcome.metrics["StandIn"]["rmse"] == pytest.approx(np.sqrt(np.mean((expected - other["y"]) ** 2)))
    assert outcome.n_rows == 60
    assert "30 rows of other.csv" in outcome.notes[0]
    other.drop(columns="b").to_csv(path, index=False)
    with pytest.raises(InputError, match=r"other\.csv lacks column 'b'"):
        judge.fit_and_judge(StandIn(), table, held_out=HeldOut(test=path))


def test_rows_in_time_order_are_warned_of_with_the_figure_of_the_last_fifth():
    rng = np.random.RandomState(0)
    table = pd.DataFrame({"day": pd.date_range("2026-01-01", periods=120), "a": rng.normal(size=120)})
    table["y"] = np.cumsum(rng.normal(size=120))

    class Days(StandIn):
        """Takes the nearest day's value, which knows all of its neighbours and nothing of the future."""

        def fit(self, X, y):
            self.days_, self.y_ = X["day"].to_numpy(), y
            return self

        def predict_distribution(self, X):
            from report.stand_in import NormalRows

            near = np.abs(X["day"].to_numpy()[:, None] - self.days_).argmin(axis=1)
            return NormalRows(self.y_[near], np.ones(len(X)))

    outcome = judge.fit_and_judge(Days(), prepare(table, "y", "tggm"))
    forward = outcome.metrics["Days, last fifth"]
    assert forward["rmse"] > 1.5 * outcome.metrics["Days"]["rmse"]
    assert forward["n_rows"] == 24
    warning = outcome.verdict.sentences[-1]
    assert "'day'" in warning
    assert "--split last" in warning
    assert f"{forward['rmse']:.4g}" in warning
    asked = judge.fit_and_judge(Days(), prepare(table, "y", "tggm"), held_out=HeldOut("last"))
    assert asked.metrics["Days"]["rmse"] == pytest.approx(forward["rmse"])
    assert len(asked.notes) == 1


def test_exposure_goes_with_the_rows_to_fits_and_predictions():
    rng = np.random.RandomState(0)
    table = pd.DataFrame({"a": rng.normal(size=80), "time": rng.uniform(0.5, 20, 80)})
    table["y"] = rng.poisson(table["time"])

    class Rates(StandIn):
        def fit(self, X, y, exposure=None):
            assert len(exposure) == len(y)
            self.rate_ = float(y.sum() / exposure.sum())
            return self

        def predict_distribution(self, X, exposure=None):
            from nongauss.report.residual_law import LawRows, NegativeBinomialLaw

            return LawRows(NegativeBinomialLaw(1e8), self.rate_ * exposure)

    ready = prepare(table, "y", "sparse_gp", declared=Declared(kind="count", exposure="time"))
    outcome = judge.fit_and_judge(Rates(), ready)
    assert set(outcome.metrics) == {"Rates", "mean of the target", "log-linear regression"}
    # The constant rate times the exposure is the truth, for the model as for the constant baseline.
    assert outcome.metrics["mean of the target"]["rmse"] == pytest.approx(
        outcome.metrics["Rates"]["rmse"], rel=0.02
    )
    assert outcome.verdict.worth == "no better"


def labelled(n=60, text=True):
    table = frame(n)
    grade = np.digitize(table["y"], [1.5, 4.0])
    return table.assign(y=np.array(["low", "mid", "top"])[grade] if text else grade + 1)


def test_labels_of_which_none_occurs_twice_are_all_fitted():
    table = frame(10).assign(y=list("abcdefghij"))
    outcome = judge.fit_and_judge(DummyClassifier(), prepare(table, "y", "sparse_gp", task="classification"))
    assert outcome.n_held_out == 0
    assert "no label occurring twice" in outcome.notes[0]


def test_a_classifier_is_judged_by_its_probabilities():
    outcome = judge.fit_and_judge(LogisticRegression(), prepare(labelled(), "y", "sparse_gp"))
    assert list(outcome.metrics) == ["LogisticRegression", "class shares", "logistic regression"]
    ours, theirs = outcome.metrics["LogisticRegression"], outcome.metrics["class shares"]
    assert ours["log_loss"] < theirs["log_loss"]
    assert "level_error" not in ours
    assert outcome.verdict.worth == "better"


@pytest.mark.parametrize("category", [False, True])
def test_ordered_classes_are_also_judged_by_their_distance(category):
    table = labelled(text=category)
    if category:
        table["y"] = pd.Categorical(table["y"], ["top", "spare", "mid", "low"], ordered=True)
    ready = prepare(table, "y", "sparse_gp", task="ordinal")
    assert ready.levels.tolist() == (["top", "spare", "mid", "low"] if category else [1, 2, 3])
    outcome = judge.fit_and_judge(LogisticRegression(), ready)
    scores = outcome.scores
    place = {level: number for number, level in enumerate(ready.levels.tolist())}
    steps = [abs(place[p] - place[t]) for p, t in zip(scores.predicted, scores.y, strict=True)]
    assert outcome.metrics["LogisticRegression"]["level_error"] == pytest.approx(np.mean(steps))
    result = fit_and_report.compare_table([LogisticRegression()], ready, cv=2, seed=0)
    assert {"LogisticRegression", "class shares", "logistic regression"} <= set(result.index)
    assert (result["reason"] == "").all()
    assert "level_error" in result


def test_figures_of_percent_are_in_percent():
    plain = frame(60)
    plain["y"] = 1.0 / (1.0 + np.exp(-plain["y"]))
    percent = plain.assign(y=100.0 * plain["y"])
    as_shares, as_percent = (
        judge.fit_and_judge(StandIn(), prepare(table, "y", "tggm", declared=Declared(kind="share")))
        for table in (plain, percent)
    )
    assert as_percent.metrics["StandIn"]["rmse"] == pytest.approx(100 * as_shares.metrics["StandIn"]["rmse"])
    assert as_percent.scores.y == pytest.approx(100 * as_shares.scores.y)
    mean = "mean of the target"
    assert as_percent.metrics[mean]["log_density"] == pytest.approx(
        as_shares.metrics[mean]["log_density"] - np.log(100), abs=1e-6
    )
    assert as_percent.verdict.worth == as_shares.verdict.worth


def test_a_file_to_judge_by_has_its_censoring_read_as_the_table():
    times = pd.DataFrame({"a": np.arange(40) % 7, "t": np.arange(1, 41) * 0.7, "event": np.arange(40) % 2})
    declared = Declared(censored="event")
    ready = prepare(times, "t", declared=declared)
    waiting, _ = judge.rows_like(ready, times[times["event"] == 0], declared, "later.csv")
    assert waiting.beside["censoring"].tolist() == [1] * 20
    ended, _ = judge.rows_like(ready, times[times["event"] == 1], declared, "later.csv")
    assert ended.beside["censoring"].tolist() == [0] * 20

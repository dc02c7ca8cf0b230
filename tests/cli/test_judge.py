from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from nongauss.cli import fit_and_report, judge
from nongauss.cli.read import prepare
from nongauss.core.errors import InputError
from report.stand_in import StandIn, small_data


def frame(n=60):
    X, y = small_data(n)
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)


def test_held_out_rows_are_not_seen_and_the_kept_model_has_seen_all():
    ready = prepare(frame(), "y")
    outcome = judge.fit_and_judge(StandIn(), ready, test_size=0.25, seed=3, rivals={"other": StandIn()})
    X, y = outcome.held_out
    assert len(y) == 15
    seen = ready.X.index.difference(X.index)
    expected = StandIn().fit(ready.X.loc[seen], ready.y[seen]).predict(X)
    np.testing.assert_allclose(outcome.judged.predict(X), expected)
    np.testing.assert_allclose(outcome.final.predict(X), StandIn().fit(ready.X, ready.y).predict(X))
    assert outcome.metrics["StandIn"]["rmse"] == pytest.approx(np.sqrt(np.mean((expected - y) ** 2)))
    assert set(outcome.metrics) == {"StandIn", "other"}
    assert "fitted on all 60" in outcome.notes[0]


def test_without_refit_the_judged_model_is_kept():
    outcome = judge.fit_and_judge(StandIn(), prepare(frame(), "y"), refit=False)
    assert outcome.final is outcome.judged
    assert outcome.n_rows == 48


@pytest.mark.parametrize(("rows", "test_size"), [(9, 0.2), (60, 0)])
def test_nothing_is_held_out_of_few_rows_or_on_request(rows, test_size):
    outcome = judge.fit_and_judge(StandIn(), prepare(frame(rows), "y", "tggm"), test_size=test_size)
    assert outcome.metrics == {}
    assert outcome.held_out is None
    assert "no held-out figures" in outcome.notes[0]


@pytest.mark.parametrize("test_size", [-0.1, 1, 1.5, float("nan")])
def test_share_held_out_must_make_sense(test_size):
    with pytest.raises(InputError, match="held-out share"):
        judge.fit_and_judge(StandIn(), prepare(frame(), "y"), test_size=test_size)


def labelled(n=60, text=True):
    table = frame(n)
    grade = np.digitize(table["y"], [1.5, 4.0])
    return table.assign(y=np.array(["low", "mid", "top"])[grade] if text else grade + 1)


def test_labels_are_held_out_in_proportion_and_never_all_of_one():
    table = labelled(100)
    table["y"] = ["a"] * 80 + ["b"] * 19 + ["c"]
    outcome = judge.fit_and_judge(DummyClassifier(), prepare(table, "y"), seed=1)
    assert pd.Series(outcome.held_out[1]).value_counts().to_dict() == {"a": 16, "b": 4}
    assert list(outcome.judged.classes_) == ["a", "b", "c"]
    again = judge.fit_and_judge(DummyClassifier(), prepare(table, "y"), seed=2)
    assert not again.held_out[0].index.equals(outcome.held_out[0].index)


def test_labels_of_which_none_occurs_twice_are_all_fitted():
    table = frame(10).assign(y=list("abcdefghij"))
    outcome = judge.fit_and_judge(DummyClassifier(), prepare(table, "y", task="classification"))
    assert outcome.held_out is None
    assert "no label twice" in outcome.notes[0]


def test_a_classifier_is_judged_by_its_probabilities():
    outcome = judge.fit_and_judge(
        LogisticRegression(), prepare(labelled(), "y"), rivals={"shares": DummyClassifier()}
    )
    ours, theirs = outcome.metrics["LogisticRegression"], outcome.metrics["shares"]
    assert ours["log_loss"] < theirs["log_loss"]
    assert "level_error" not in ours
    assert not any("width" in note for note in outcome.notes)


@pytest.mark.parametrize("category", [False, True])
def test_ordered_classes_are_also_judged_by_their_distance(category):
    table = labelled(text=category)
    if category:
        table["y"] = pd.Categorical(table["y"], ["top", "spare", "mid", "low"], ordered=True)
    ready = prepare(table, "y")
    assert ready.levels.tolist() == (["top", "spare", "mid", "low"] if category else [1, 2, 3])
    outcome = judge.fit_and_judge(LogisticRegression(), ready)
    X, y = outcome.held_out
    place = {level: number for number, level in enumerate(ready.levels.tolist())}
    steps = [abs(place[p] - place[t]) for p, t in zip(outcome.judged.predict(X), y, strict=True)]
    assert outcome.metrics["LogisticRegression"]["level_error"] == pytest.approx(np.mean(steps))
    result = fit_and_report.compare_table([LogisticRegression()], ready, cv=2, seed=0)
    assert {"LogisticRegression", "class shares", "logistic regression"} <= set(result.index)
    assert (result["reason"] == "").all()
    assert "level_error" in result

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import nongauss
from nongauss.cli import choose as models
from nongauss.cli.choose import Choice, build_model, choose, family, parse_settings
from nongauss.core.errors import InputError
from nongauss.tables.column import ColumnKind

NUMBERS = pd.Series([0.0, 1.0, 2.0, 9.0])


def test_every_model_is_public_and_every_kind_but_text_and_date_has_one():
    for tasks in models.MODELS.values():
        for task, (module, name) in tasks.items():
            assert task in models.TASKS
            assert getattr(nongauss, name).__module__ == module
    assert set(ColumnKind) - set(models.AUTO) == {ColumnKind.TEXT, ColumnKind.DATE}
    for model, task in [*models.AUTO.values(), *((m, t) for t, m in models.FOR_TASK.items())]:
        assert task in models.MODELS[model]


@pytest.mark.parametrize(
    ("kind", "asked", "model", "task", "settings"),
    [
        (ColumnKind.REAL, {}, "tggm", "regression", {}),
        (ColumnKind.POSITIVE, {}, "sparse_gp", "regression", {"likelihood": "gamma"}),
        (ColumnKind.COUNT, {}, "sparse_gp", "regression", {"likelihood": "negative_binomial"}),
        (ColumnKind.GRADE, {}, "sparse_gp", "ordinal", {}),
        (ColumnKind.BINARY, {}, "sparse_gp", "classification", {}),
        (ColumnKind.LABEL, {}, "sparse_gp", "classification", {}),
        (ColumnKind.REAL, {"model": "sparse_gp"}, "sparse_gp", "regression", {}),
        (ColumnKind.COUNT, {"model": "tggm"}, "tggm", "regression", {}),
        (ColumnKind.COUNT, {"task": "ordinal"}, "sparse_gp", "ordinal", {}),
        (ColumnKind.GRADE, {"model": "tggm"}, "tggm", "regression", {}),
        (ColumnKind.GRADE, {"task": "classification"}, "sparse_gp", "classification", {}),
        (ColumnKind.BINARY, {"task": "regression"}, "tggm", "regression", {}),
        (ColumnKind.TEXT, {"task": "classification"}, "sparse_gp", "classification", {}),
        (ColumnKind.COUNT, {"settings": {"likelihood": "poisson"}}, "sparse_gp", "regression",
         {"likelihood": "poisson"}),
        (ColumnKind.POSITIVE, {"settings": {"tol": 1}}, "sparse_gp", "regression",
         {"likelihood": "gamma", "tol": 1}),
    ],
)  # fmt: skip
def test_what_is_asked_for_goes_before_what_the_kind_says(kind, asked, model, task, settings):
    assert choose(NUMBERS, kind, **asked) == Choice(model, task, settings)


def test_counts_that_vary_little_are_poisson():
    choice = choose(pd.Series([3, 4, 5, 4], dtype="Int64"), ColumnKind.COUNT)
    assert choice.settings == {"likelihood": "poisson"}


@pytest.mark.parametrize(
    ("kind", "asked", "message"),
    [
        (ColumnKind.REAL, {"model": "tgm"}, "no model 'tgm'; did you mean 'tggm'"),
        (ColumnKind.REAL, {"task": "regresion"}, "no task 'regresion'; did you mean 'regression'"),
        (ColumnKind.TEXT, {}, "no model for a target of kind text"),
        (
            ColumnKind.REAL,
            {"model": "tggm", "task": "ordinal"},
            "'tggm' has no ordinal; give --model sparse_gp",
        ),
    ],
)
def test_what_cannot_be_chosen(kind, asked, message):
    with pytest.raises(InputError, match=message):
        choose(NUMBERS, kind, **asked)


def test_the_family_of_a_choice_has_its_task_with_the_likelihood_of_the_kind():
    chosen = choose(NUMBERS, ColumnKind.COUNT, settings={"tol": 1.0})
    assert family(chosen, ColumnKind.COUNT, NUMBERS) == [chosen, Choice("tggm"), Choice("harmonium")]
    plain = family(Choice("tggm", settings={"tol": 1.0}), ColumnKind.COUNT, NUMBERS)
    assert plain[1].settings == {"likelihood": "negative_binomial"}
    labels = np.array(["a", "b"])
    classifier = Choice("sparse_gp", "classification")
    others = family(classifier, ColumnKind.BINARY, labels)
    assert others[:2] == [classifier, Choice("tggm", "classification")]
    assert {choice.model for choice in others} == {
        name for name, tasks in models.MODELS.items() if "classification" in tasks
    }


@pytest.fixture
def stand_in_model(monkeypatch):
    monkeypatch.setitem(models.MODELS, "tggm", {"regression": ("report.stand_in", "StandIn")})


@pytest.mark.usefixtures("stand_in_model")
def test_settings_reach_the_model():
    settings = parse_settings(["n_sweeps=(3, 4)", "callbacks=none"])
    model = build_model(Choice("tggm", settings=settings), seed=5)
    assert model.get_params() == {"n_sweeps": (3, 4), "callbacks": None, "random_state": 5}


def test_the_number_of_epochs_goes_by_the_name_that_the_model_has():
    assert build_model(Choice("tggm"), max_epochs=7).max_epochs == 7
    classifier = build_model(Choice("sparse_gp", "classification"), max_epochs=7, seed=3)
    assert (classifier.max_iter, classifier.random_state) == (7, 3)


@pytest.mark.usefixtures("stand_in_model")
def test_settings_that_are_none():
    with pytest.raises(InputError, match="StandIn has no parameter 'n_sweep'; did you mean 'n_sweeps'"):
        build_model(Choice("tggm", settings={"n_sweep": 3}))
    with pytest.raises(InputError, match="name=value"):
        parse_settings(["n_sweeps"])


def test_values_are_python_literals_or_text():
    assert parse_settings(["a = 1e-3", "b=relu", "c=True", "d=false", "e=x=y", "f=[1, 2]"]) == {
        "a": 1e-3, "b": "relu", "c": True, "d": False, "e": "x=y", "f": [1, 2]
    }  # fmt: skip

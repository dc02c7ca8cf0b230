"""The number of units, where held-out rows choose it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import nongauss
from nongauss import TGGMRegressor
from nongauss.core.errors import InputError
from nongauss.tggm import fit
from nongauss.tggm.config import NetworkConfig, layers_of

SMALL = {"n_members": 2, "max_epochs": 150, "random_state": 0}


def table(turns, noise, n_rows=400):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n_rows, 2))
    return X, np.sin(turns * (X[:, 0] + X[:, 1])) + noise * rng.normal(size=n_rows)


@pytest.fixture
def few_units(monkeypatch):
    """Two units, or from 300 rows on two layers of eight; layers and epochs that further fits would have."""
    asked = []

    def further(attempt, first, plain, epochs, tries_heads):
        asked.append((plain.layers, epochs))
        return first

    monkeypatch.setattr(fit, "_further", further)
    monkeypatch.setattr(fit, "PLAIN", (2,))
    monkeypatch.setattr(fit, "DEEP", (8, 8))
    monkeypatch.setattr(fit, "ROWS_OF_DEEP", 300)
    monkeypatch.setattr(fit, "SHORTER", 0.4)
    monkeypatch.setattr(fit, "STEPS_OF_DEEP", 0)
    return asked


@pytest.mark.gate
def test_a_mean_that_bends_often_gets_more_units(few_units, tmp_path):
    X, y = table(2.5, 0.1)
    chosen = TGGMRegressor(**SMALL).fit(X, y)
    assert chosen.hidden_layer_sizes_ == (8, 8)
    few = TGGMRegressor((2,), **SMALL).fit(X, y)
    assert few_units == [((8, 8), 60), ((2,), 75)]  # as many as these layers had, half of the usual
    assert chosen.n_iter_ <= 60 + 60  # 150 times the share of two layers, for both
    truth = np.sin(2.5 * (X[:, 0] + X[:, 1]))
    errors = [np.mean((model.predict(X) - truth) ** 2) for model in (chosen, few)]
    assert errors[0] < 0.5 * errors[1]
    nongauss.save(chosen, tmp_path / "chosen.nongauss")
    again = nongauss.load(tmp_path / "chosen.nongauss")
    assert again.hidden_layer_sizes_ == (8, 8)
    assert again.partial_fit(X, y).hidden_layer_sizes_ == (8, 8)


@pytest.mark.parametrize(("steps", "epochs"), [(0, 4), (91, 7), (1_000, 10)])
def test_a_short_schedule_gives_two_layers_the_steps_they_need(few_units, monkeypatch, steps, epochs):
    """Of ten epochs of 13 steps two fifths, so many that they make the steps, or all."""
    monkeypatch.setattr(fit, "STEPS_OF_DEEP", steps)
    monkeypatch.setattr(fit.Attempt, "still_learns", False)
    for name in ("LEAST_GAIN", "LEAST_NATS"):
        monkeypatch.setattr(fit, name, -1e9)  # two layers are taken whatever held-out rows say
    X, y = table(2.5, 0.1)
    model = TGGMRegressor(n_members=2, max_epochs=10, random_state=0).fit(X, y)
    assert model.hidden_layer_sizes_ == (8, 8)
    assert len(model.trace_) == 2 * epochs  # one layer is tried for as many


@pytest.mark.parametrize(("still_learns", "epochs"), [(False, [4, 4, 6]), (True, [4, 10, 4])])
def test_one_layer_that_still_learns_is_compared_after_a_whole_schedule_more(
    few_units, monkeypatch, still_learns, epochs
):
    rules = []
    run = fit.loop.run

    def watched(step, state, run_, rule, **rest):
        rules.append(rule.max_iter)
        return run(step, state, run_, rule, **rest)

    monkeypatch.setattr(fit.loop, "run", watched)
    monkeypatch.setattr(fit.Attempt, "still_learns", still_learns)
    monkeypatch.setattr(fit, "LEAST_GAIN", 1e9)  # one layer is kept whatever held-out rows say
    X, y = table(2.5, 0.1)
    model = TGGMRegressor(n_members=2, max_epochs=10, random_state=0).fit(X, y)
    assert rules == epochs
    assert model.hidden_layer_sizes_ == (2,)


@pytest.mark.gate
def test_a_line_keeps_few_units(few_units):
    X, y = table(0.1, 0.3)
    tried = {**SMALL, "n_iter_no_change": 150}
    chosen, plain = (TGGMRegressor(*sizes, **tried).fit(X, y) for sizes in ((), ((2,),)))
    assert chosen.hidden_layer_sizes_ == (2,)
    assert chosen.n_iter_ == plain.n_iter_ == 150  # as many as are tried beside two layers, and the rest
    assert_allclose(chosen.predict(X), plain.predict(X), atol=0.05)


@pytest.mark.gate
@pytest.mark.parametrize(
    ("n_rows", "settings"),
    [
        (299, {}),
        (400, {"early_stopping": False, "learning_rate": 0.05}),
        (400, {"monotone": {0: 1}}),
    ],
)
def test_where_nothing_can_choose_there_are_few(few_units, n_rows, settings):
    X, y = table(2.5, 0.1, n_rows)
    model = TGGMRegressor(**{**SMALL, "max_epochs": 2, **settings}).fit(X, y)
    assert model.hidden_layer_sizes_ == (2,)
    assert model.n_iter_ == 2


def test_mean_field_keeps_one_layer_and_asked_layers_stay():
    config = NetworkConfig((), "ml", "auto", 1, None, None)
    assert fit.may_be_deep(config, fit.ROWS_OF_DEEP)
    assert not fit.may_be_deep(config, fit.ROWS_OF_DEEP - 1)
    assert not fit.may_be_deep(replace(config, posterior="mean_field"), fit.ROWS_OF_DEEP)
    assert not fit.may_be_deep(replace(config, layers=(50,)), fit.ROWS_OF_DEEP)


def test_the_default_of_few_rows_is_fifty_units():
    X, y = table(2.5, 0.1, 60)
    default, fifty = (TGGMRegressor(*sizes, max_epochs=3, random_state=0) for sizes in ((), ((50,),)))
    assert_array_equal(default.fit(X, y).predict(X), fifty.fit(X, y).predict(X))
    assert default.hidden_layer_sizes_ == (50,)


def test_another_word_is_refused():
    with pytest.raises(InputError, match="hidden_layer_sizes must hold a whole number"):
        layers_of("wide")
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        TGGMRegressor("wide").fit(np.zeros((5, 1)), np.arange(5.0))

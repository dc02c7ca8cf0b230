"""The number of units, where held-out rows choose it."""

from __future__ import annotations

import numpy as np
import pytest

import nongauss
from nongauss import TGGMRegressor
from nongauss.core.errors import InputError
from nongauss.tggm import fit
from nongauss.tggm.config import layers_of

SMALL = {"hidden_layer_sizes": "auto", "n_members": 2, "max_epochs": 60, "random_state": 0}


def table(turns, noise, n_rows=400):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n_rows, 2))
    return X, np.sin(turns * (X[:, 0] + X[:, 1])) + noise * rng.normal(size=n_rows)


@pytest.fixture
def few_units(monkeypatch):
    """Two units, or twenty."""
    monkeypatch.setattr(fit, "PLAIN", (2,))
    monkeypatch.setattr(fit, "WIDE", (20,))


@pytest.mark.gate
def test_a_mean_that_bends_often_gets_more_units(few_units, tmp_path):
    X, y = table(2.5, 0.1)
    chosen = TGGMRegressor(**SMALL).fit(X, y)
    assert chosen.hidden_layer_sizes_ == (20,)
    wide = TGGMRegressor(**{**SMALL, "hidden_layer_sizes": (20,)}).fit(X, y)
    assert chosen.score(X, y) == pytest.approx(wide.score(X, y), abs=0.02)  # batches are dealt anew
    assert chosen.n_iter_ > wide.n_iter_
    nongauss.save(chosen, tmp_path / "chosen.nongauss")
    again = nongauss.load(tmp_path / "chosen.nongauss")
    assert again.hidden_layer_sizes_ == (20,)
    assert again.partial_fit(X, y).hidden_layer_sizes_ == (20,)


@pytest.mark.gate
def test_without_held_out_rows_there_is_no_choice(few_units):
    X, y = table(5.0, 0.1, 19)
    model = TGGMRegressor(**{**SMALL, "max_epochs": 2}).fit(X, y)
    assert model.hidden_layer_sizes_ == (2,)
    assert model.n_iter_ == 2


def test_another_word_is_refused():
    with pytest.raises(InputError, match="hidden_layer_sizes must hold a whole number"):
        layers_of("wide")
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        TGGMRegressor("wide").fit(np.zeros((5, 1)), np.arange(5.0))

"""Explanations of rows with missing cells beside sums over all orders that are written out here."""

from __future__ import annotations

import warnings
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import nongauss
from nongauss.estimator import shapley
from nongauss.estimator.gaps import completed_often
from nongauss.tables.completion import N_COMPLETIONS

pytestmark = pytest.mark.filterwarnings("ignore")


def made(n=160):
    """Three columns, two of which go together and act through one another; a fifth of the cells missing."""
    rng = np.random.default_rng(0)
    a, c = rng.normal(size=(2, n))
    frame = pd.DataFrame({"a": a, "b": 0.8 * a + 0.6 * rng.normal(size=n), "c": c})
    y = frame["a"] * frame["b"] + np.sin(2 * frame["c"]) + 0.2 * rng.normal(size=n)
    return frame.mask(rng.random(frame.shape) < 0.2), np.asarray(y)


FRAME, Y = made()
HAS_GAPS = FRAME.isna().any(axis=1)


@pytest.fixture(scope="module")
def model():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nongauss.SparseGPRegressor(n_inducing=40, max_iter=25, random_state=0).fit(FRAME, Y)


def by_hand(model, rows, background):
    """What each column adds to mean and sd (N, D, 2): the average over all orders and background rows."""
    names = list(rows.columns)
    orders = list(permutations(names))
    out = np.zeros((len(rows), len(names), 2))
    for i in range(len(rows)):
        for b in range(len(background)):
            for order in orders:
                row = background.iloc[[b]].copy()
                steps = [row]
                for name in order:
                    row = row.copy()
                    row[name] = rows[name].iloc[i]
                    steps.append(row)
                law = model.predict_distribution(pd.concat(steps, ignore_index=True))
                rises = np.diff(np.column_stack([law.mean, law.std]), axis=0)
                for name, rise in zip(order, rises, strict=True):
                    out[i, names.index(name)] += rise / len(orders) / len(background)
    return out


def of(frame):
    """Contributions (N, D, 2) of a frame, without the base."""
    return np.stack([frame[figure].iloc[:, :-1].to_numpy() for figure in ("mean", "sd")], axis=2)


def test_rows_and_background_with_gaps_are_explained_as_by_hand(model):
    rows, background = FRAME[HAS_GAPS].iloc[:3], FRAME.iloc[[1, 3, 5, 8]]
    assert background.isna().to_numpy().any()
    found = model.explain(rows, background)
    assert found.attrs["method"].startswith("exact")
    assert_allclose(of(found), by_hand(model, rows, background), atol=1e-9)


@pytest.mark.parametrize("asked", [2, None])
def test_orders_by_few_completions_are_right_on_average(model, asked, monkeypatch):
    rows = FRAME[HAS_GAPS].iloc[:40]
    exact = of(model.explain(rows))
    monkeypatch.setattr(shapley, "MOST_PREDICTIONS", 10)
    monkeypatch.setattr(shapley, "MOST_IN_ORDERS", 40 * 2 * 2 * 4)
    found, error = model.explain(rows, n_permutations=asked, return_error=True)
    law = model.predict_distribution(rows)
    assert_allclose(found["mean"].sum(axis=1), law.mean, rtol=1e-9)
    assert_allclose(found["sd"].sum(axis=1), law.std, rtol=1e-9)
    off, stated = of(found) - exact, of(error)
    assert np.sqrt(np.mean(off**2)) < 1.3 * np.sqrt(np.mean(stated**2))
    noise = off.std(axis=0) / np.sqrt(len(rows))
    assert (np.abs(off.mean(axis=0)) < 4.0 * noise + 0.01 * law.std.mean()).all()


def test_labels_with_gaps_sum_to_their_probabilities(monkeypatch):
    model = nongauss.SparseGPClassifier(n_inducing=20, max_iter=8, random_state=0).fit(FRAME, Y > 0)
    monkeypatch.setattr(shapley, "MOST_PREDICTIONS", 10)
    rows = FRAME[HAS_GAPS].iloc[:5]
    found = model.explain(rows)
    assert "orders" in found.attrs["method"]
    assert_allclose(found[True].sum(axis=1), model.predict_proba(rows)[:, 1], atol=1e-12)


def test_rows_are_completed_as_often_as_is_asked_and_only_then(model):
    asked = []
    former = type(model._donors).completions

    def watched(donors, X, missing, n=N_COMPLETIONS):
        asked.append(n)
        return former(donors, X, missing, n)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model._donors), "completions", watched)
        before = model.predict(FRAME)
        with completed_often(3):
            few = model.predict(FRAME)
        with pytest.raises(ZeroDivisionError), completed_often(3):
            raise ZeroDivisionError
        assert_allclose(model.predict(FRAME), before)
    assert asked == [N_COMPLETIONS, 3, N_COMPLETIONS]
    assert_allclose(few[~HAS_GAPS], before[~HAS_GAPS])
    assert np.abs(few - before)[HAS_GAPS].max() > 0
    off = (few - before)[HAS_GAPS]
    assert abs(off.mean()) < 4 * off.std() / np.sqrt(len(off))


@pytest.mark.parametrize("gaps", [True, False])
def test_an_automatic_choice_visits_all_sets_of_fewer_columns(gaps):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(60, 8))).add_prefix("x")
    frame = frame.mask(rng.random(frame.shape) < 0.1) if gaps else frame
    y = rng.normal(size=60)
    for kind, target, names in (
        (nongauss.AutoRegressor, y, ["constant", "linear"]),
        (nongauss.AutoClassifier, y > 0, ["linear labels"]),
    ):
        model = kind(candidates=names, random_state=0).fit(frame, target)
        found = [model.explain(frame[:n]).attrs["method"].split(":")[0] for n in (1, 8)]
        assert found == ["exact", "2 orders of 8 columns for each of 16 rows of background"]

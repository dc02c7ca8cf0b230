"""What an ensemble says of a row by the member that has not trained on it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from catalogue import diabetes_part, wine_part
from nongauss import TGGMClassifier, TGGMRegressor
from nongauss.core.errors import InputError
from nongauss.estimator.gaps import over_gaps
from nongauss.tggm.data import held_out
from nongauss.tggm.exact_law import law_of
from nongauss.tggm.left_out import gain_of_average, left_out_law, left_out_probabilities

SMALL = {"hidden_layer_sizes": (6,), "max_epochs": 15, "n_members": 5, "random_state": 0}


def test_each_row_is_told_by_one_member():
    X, y = diabetes_part()
    model = TGGMRegressor(validation_fraction=0.2, **SMALL).fit(X, y)
    law = left_out_law(model, X, y, np.ones(len(y)))
    assert len(law) == len(y)
    ensemble, encoded = model.ensemble_, model._encode(X)
    members = np.stack(
        [
            ensemble._replace(
                params=type(ensemble.params)(
                    *(
                        tuple(np.asarray(own)[e : e + 1] for own in leaf)
                        if isinstance(leaf, tuple)
                        else np.asarray(leaf)[e : e + 1]
                        for leaf in ensemble.params
                    )
                )
            ).moments(encoded)[0][:, 0]
            for e in range(5)
        ]
    )
    is_member = np.isclose(members, law.mean, rtol=1e-9, atol=0)
    assert is_member.any(axis=0).all()
    assert_allclose(np.bincount(is_member.argmax(axis=0)), 18, atol=1)


def test_what_an_average_gains_on_a_member():
    """By rows, over the four members that have trained on each."""
    X, y = diabetes_part()
    model = TGGMRegressor(validation_fraction=0.2, **SMALL).fit(X, y)
    one = np.ones(len(y))
    laws = [law_of(model.ensemble_.alone(e), model._encode(X), squeeze=True) for e in range(5)]
    density = np.exp([law.log_prob(y) for law in laws])
    own = np.argmin([np.abs(law.mean - left_out_law(model, X, y, one).mean) for law in laws], axis=0)
    gains = []
    for n in range(len(y)):
        others = np.delete(density[:, n], own[n])
        gains.append(np.log(others.mean()) - np.log(others).mean())
    assert_allclose(gain_of_average(model, X, y, one), np.mean(gains))
    assert np.mean(gains) > 0.01
    weight = np.where(np.arange(len(y)) < 45, 3.0, 1.0)
    assert_allclose(gain_of_average(model, X, y, weight), np.average(gains, weights=weight))


def test_probabilities_of_labels():
    X, y = wine_part()
    model = TGGMClassifier(validation_fraction=0.2, **SMALL).fit(X, y)
    found = left_out_probabilities(model, X, np.searchsorted(model.classes_, y), np.ones(len(y)))
    assert_allclose(found.sum(axis=1), 1.0)
    assert not np.allclose(found, model.predict_proba(X))


def test_rows_that_no_member_leaves_out_are_refused():
    X, y = diabetes_part()
    model = TGGMRegressor(validation_fraction=0.1, **SMALL).fit(X, y)
    with pytest.raises(InputError, match="held out by no member"):
        left_out_law(model, X, y, np.ones(len(y)))


@pytest.mark.parametrize("is_label", [True, False])
def test_rows_with_gaps_are_told_by_the_member_that_has_not_trained_on_them(monkeypatch, is_label):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[:, 1:][rng.random((60, 2)) < 0.3] = np.nan  # the first column is whole, and tells the rows apart
    y = rng.choice(3, 60) if is_label else rng.normal(size=60)
    dealt = {}

    def seen(data, fold, n_members):
        dealt.update(zip(np.asarray(data.X)[:, 0].tolist(), fold.tolist(), strict=True))
        return held_out(data, fold, n_members)

    monkeypatch.setattr("nongauss.tggm.data.held_out", seen)
    made = TGGMClassifier if is_label else TGGMRegressor
    model = made(validation_fraction=0.2, **SMALL).fit(X, y)
    encoded, missing = model._with_gaps(model._new_rows(X))
    rows = model._as_rows(encoded)
    member = np.array([dealt[value] for value in rows[:, 0].astype(np.float32).tolist()])

    def alone(own, e):
        ensemble = model.ensemble_.alone(e)
        of_rows = (
            (lambda part: ensemble.classes(part)[0]) if is_label else (lambda part: ensemble.moments(part)[0])
        )
        return over_gaps(model._donors, rows[own], missing[own], of_rows)

    expected = np.concatenate([alone(np.array([n]), int(e)) for n, e in enumerate(member)])
    if is_label:
        found = left_out_probabilities(model, X, y.astype(float), np.ones(60))
    else:
        found = left_out_law(model, X, y, np.ones(60)).mean[:, None]
    assert missing.any(axis=1).sum() > 20
    assert_allclose(found, expected, rtol=1e-4, atol=1e-6)

"""A mean that may only rise or fall with a column does so, whatever the rows say; the rest is as without."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nongauss import TGGMRegressor
from nongauss.core.errors import InputError

SMALL = {"hidden_layer_sizes": (12,), "max_epochs": 80, "n_members": 2, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    """y falls with `a` on its upper half, and falls and rises with `b`."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(-2, 2, 300), "b": rng.uniform(-2, 2, 300)})
    X["colour"] = rng.choice(["red", "green"], 300)
    y = 2.0 - X["a"] ** 2 + X["b"] ** 2 + 0.1 * rng.normal(size=300)
    return X, y


def curves(model, X, column):
    """Predictions over a grid of one column for some rows of the others: (rows, grid)."""
    grid = np.linspace(-4.0, 4.0, 81)
    rows = X.iloc[:12].loc[np.repeat(np.arange(12), 81)].assign(**{column: np.tile(grid, 12)})
    return model.predict(rows).reshape(12, 81)


@pytest.mark.parametrize("direction", [1, pytest.param(-1, marks=pytest.mark.gate)])
@pytest.mark.parametrize(
    "how", [{"posterior": "moments"}, pytest.param({"method": "bp"}, marks=pytest.mark.gate)]
)
def test_the_mean_goes_one_way_where_the_rows_do_not(table, direction, how):
    X, y = table
    model = TGGMRegressor(monotone={"a": direction}, **SMALL, **how).fit(X, y)
    step = direction * np.diff(curves(model, X, "a"), axis=1)
    assert step.min() >= -1e-9
    assert step.max() > 0.01  # it still follows what it may
    assert np.diff(curves(model, X, "b"), axis=1).min() < -0.01


@pytest.mark.gate
def test_without_it_the_mean_falls_where_the_rows_do(table):
    X, y = table
    model = TGGMRegressor(posterior="moments", **SMALL).fit(X, y)
    assert np.diff(curves(model, X, "a"), axis=1).min() < -0.01


@pytest.mark.gate
def test_the_direction_that_is_true_costs_nothing():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    y = np.logaddexp(0.0, 3.0 * X[:, 0]) - X[:, 1] + 0.2 * rng.normal(size=400)
    train, test = slice(0, 200), slice(200, None)
    free = TGGMRegressor(posterior="moments", **SMALL).fit(X[train], y[train])
    bound = TGGMRegressor(posterior="moments", monotone={0: 1, 1: -1}, **SMALL).fit(X[train], y[train])
    scores = [m.predict_distribution(X[test]).log_prob(y[test]).mean() for m in (free, bound)]
    assert scores[1] > scores[0] - 0.05


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"monotone": {"age": 1}}, "monotone names 'age', which is no column of X; X has a, b, colour."),
        ({"monotone": {"colour": 1}}, "monotone names 'colour', whose cells have no order; leave it out."),
        ({"monotone": {"a": "up"}}, r"monotone\['a'\] must be 1 \(rises\), -1 \(falls\) or 0, got 'up'."),
        ({"monotone": {"a": 1}, "hidden_layer_sizes": (4, 4)}, "needs one hidden layer and one output"),
    ],
)
def test_what_cannot_be_kept_is_refused(table, changes, said):
    with pytest.raises(InputError, match=said):
        TGGMRegressor(**{**SMALL, **changes}).fit(*table)


def test_several_outputs_are_refused_whatever_the_layers(table):
    X, y = table
    with pytest.raises(InputError, match="one hidden layer and one output, got 1 and 2; pass"):
        TGGMRegressor(monotone={"a": 1}).fit(X, np.column_stack([y, y]))

"""What the other rows get of tables in which a few cells or targets are far from all others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nongauss import HarmoniumClassifier, HarmoniumRegressor
from nongauss.core.errors import NongaussWarning
from nongauss.harmonium.clipped_scale import few_far
from nongauss.harmonium.data import read_table
from nongauss.tables.clipped_scale import reaches_beyond
from nongauss.tables.kinds.number import Moments


@pytest.fixture(scope="module")
def near():
    return 10.0 + 3.0 * np.random.default_rng(0).standard_normal(199)


def test_columns_without_far_cells_keep_their_scale(near):
    assert not reaches_beyond(Moments.of(near, np.ones(199)))
    assert reaches_beyond(Moments.of(np.append(near, 1e9), np.ones(200)))
    X = np.column_stack([near, near**2])
    units = read_table(
        X, None, None, views=None, labels="none", in_memory=True, estimator_name="test"
    ).coder.units
    for unit, column in zip(units, X.T, strict=True):
        assert_allclose(unit.unit * unit.mean, column.mean(), rtol=1e-12)
        assert_allclose(abs(unit.unit * unit.sd), column.std(), rtol=1e-12)


def table(seed, n):
    rng = np.random.default_rng(seed)
    f = rng.standard_normal(n)
    return f[:, None] + rng.standard_normal((n, 4)), f + 0.3 * rng.standard_normal(n)


@pytest.mark.filterwarnings("ignore:.*so far from all other values")
def test_other_rows_are_told_as_well_beside_far_cells():
    X, f = table(0, 200)
    new, g = table(1, 400)
    dirty = X.copy()
    dirty[[0, 1, 2, 3], [0, 1, 2, 3]] = [1e9, -1e9, 1e6, 1e12]
    clean = HarmoniumClassifier(random_state=0).fit(X, f > 0).score(new, g > 0)
    assert HarmoniumClassifier(random_state=0).fit(dirty, f > 0).score(new, g > 0) > clean - 0.03


@pytest.mark.filterwarnings("ignore:.*so far from all other values", "ignore:1 of the targets")
def test_a_far_target_leaves_the_others_as_they_are():
    X, f = table(0, 200)
    new, g = table(1, 400)
    far = np.append(1e9, f[1:])
    errors = []
    for y in (f, far):
        law = HarmoniumRegressor(2, random_state=0).fit(X, y).predict_distribution(new)
        low, high = law.interval(0.9).T
        sizes = [
            np.sqrt(np.mean((law.mean - g) ** 2)),
            np.mean(high - low),
            law.std.mean(),
            law.crps(g).mean(),
        ]
        errors.append([*sizes, np.exp(law.log_prob(g).mean())])
    assert_allclose(errors[1], errors[0], rtol=0.15)
    assert law.log_prob(np.full(400, 1e9)).min() > -100.0


@pytest.mark.filterwarnings("ignore:.*so far from all other values")
def test_far_targets_that_are_left_out_are_said():
    X, f = table(0, 60)
    model = HarmoniumRegressor(2, max_epochs=3, random_state=0)
    with pytest.warns(NongaussWarning, match=r"2 of the targets, such as -1e.06, are so far"):
        model.fit(X, np.append([1e6, -1e6], f[2:]))
    assert_allclose(model.errors_.shares.sum(), 1.0)


@pytest.mark.parametrize(("share", "n"), [(0.03, 400), pytest.param(0.01, 2000, marks=pytest.mark.gate)])
def test_a_rare_second_mode_keeps_its_part_of_the_law(share, n):
    """Only a few rows are errors: three are a part of the law."""
    rng = np.random.default_rng(1)
    f = rng.standard_normal(n + 200)
    X = f[:, None] + 0.3 * rng.standard_normal((n + 200, 4))
    y = np.where(f > np.quantile(f, 1.0 - share), 1000.0, 0.0) + f + 0.3 * rng.standard_normal(n + 200)
    law = HarmoniumRegressor(2, random_state=0).fit(X[:n], y[:n]).predict_distribution(X[n:])
    assert law.log_prob(y[n:]).mean() > -6.0
    assert law.mean.max() > 15.0


def test_three_rows_are_not_few_and_a_row_of_weight_three_is_three():
    z = np.array([0.0, 25.0, -30.0])
    assert_array_equal(few_far(z, np.ones(3)), [False, True, True])
    assert not few_far(np.append(z, 21.0), np.ones(4)).any()
    assert not few_far(z, np.array([1.0, 1.0, 2.0])).any()

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nongauss import SparseGPRegressor
from nongauss.core.errors import NongaussWarning
from nongauss.sparse_gp.data import (
    MOST_VALUES,
    ScaleTarget,
    SummariseTarget,
    space_of,
    target_scaler,
    thinned,
    with_a_column,
)
from nongauss.sparse_gp.likelihoods import Gaussian, Laplace, StudentT
from nongauss.sparse_gp.likelihoods.base import weighted_median
from nongauss.tables.learn import as_source, learn
from nongauss.tables.source import Part


def test_encoded_columns_know_where_they_came_from():
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan], "c": pd.Categorical(["a", "b", "c"])})
    space = space_of(learn(as_source(frame)).encoder)
    assert space.names == ("x", "c")
    assert space.group == (0, 0, 1, 1, 1)


def test_a_table_that_says_nothing_gets_a_column():
    learned = learn(as_source(np.ones((3, 1))), warn=False)
    assert with_a_column(learned.encoder.as_scaled(np.ones((3, 1)))).shape == (3, 1)
    assert len(space_of(learned.encoder).group) == 1


@pytest.mark.parametrize("absurd", [1e4, 1e9])
@pytest.mark.parametrize("name", ["student_t", "laplace"])
@pytest.mark.filterwarnings("ignore:y holds values as far out:nongauss.core.errors.NongaussWarning")
def test_one_absurd_target_does_no_harm_to_the_others(name, absurd):
    rng = np.random.default_rng(0)
    X = np.linspace(0, 6, 150)[:, None]
    f = np.sin(X[:, 0])
    y = f + 0.1 * rng.normal(size=150)
    spoiled = y.copy()
    spoiled[50] = absurd
    clean, law = (
        SparseGPRegressor(name, n_inducing=30, random_state=0).fit(X, target).predict_distribution(X)
        for target in (y, spoiled)
    )
    error, was = (np.sqrt(np.mean((it.quantile(0.5) - f) ** 2)) for it in (law, clean))
    width, wide = (np.mean(it.quantile(0.95) - it.quantile(0.05)) for it in (law, clean))
    assert error < 1.6 * was
    assert width < 1.4 * wide


def test_an_absurd_target_of_laplace_noise_is_told_of():
    X, y = np.linspace(0, 6, 50)[:, None], np.sin(np.linspace(0, 6, 50))
    y[[3, 30]] = -1e5, 3e6
    model = SparseGPRegressor("laplace", n_inducing=10, random_state=0)
    with pytest.warns(
        NongaussWarning, match=r"as far out as -1e\+05 and 3e\+06, .* outside -0.9982 to 0.9998"
    ):
        model.fit(X, y)
    weight = np.ones(50)
    weight[[3, 30]] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, sample_weight=weight)


def test_a_scale_is_that_of_the_moments_unless_values_are_absurd():
    rng = np.random.default_rng(0)
    skewed = np.exp(rng.normal(size=500))
    absurd = np.append(skewed, 1e12)
    reads = SummariseTarget(StudentT(), "it")
    one, other = (reads(Part("", None, y), np.ones(len(y))) for y in (skewed, absurd))
    standard = target_scaler(one, Gaussian())
    for robust in (StudentT(), Laplace()):
        assert_array_equal(target_scaler(one, robust).scale, standard.scale)
    assert_allclose(target_scaler(other, StudentT()).scale, standard.scale, rtol=0.5)
    assert target_scaler(other, Gaussian()).scale[0] > 1e10
    parts = [reads(Part("", None, y), np.ones(len(y))) for y in np.array_split(absurd, 3)]
    whole = target_scaler(sum(parts[1:], parts[0]), StudentT())
    assert_allclose(whole.scale, target_scaler(other, StudentT()).scale)


def test_half_of_the_values_at_the_median_still_have_a_scale():
    y = np.concatenate([np.zeros(60), np.random.default_rng(0).normal(size=40), [1e9]])
    found = target_scaler(SummariseTarget(StudentT(), "it")(Part("", None, y), np.ones(101)), StudentT())
    assert 0.2 < found.scale[0] < 10.0


def test_many_values_are_thinned_to_their_order_statistics():
    values, weights = np.random.default_rng(0).permutation(50_001).astype(float), np.ones(50_001)
    few, shares = thinned(values, weights)
    assert len(few) == MOST_VALUES
    assert_allclose(shares.sum(), 50_001)
    assert_allclose(weighted_median(few, shares), 25_000, atol=5)


def test_limits_move_targets_alone_and_are_known_where_values_are_thinned():
    rng = np.random.default_rng(0)
    y = rng.normal(size=50_000)
    found = SummariseTarget(Laplace(), "it")(Part("", None, np.append(y, 1e9)), np.ones(50_001))
    low, high = found.usual_range()
    assert low == y.min()
    assert 3.5 < high <= y.max()
    target = Part("", None, np.array([1.0, 1e9]), {"truncation": np.array([0.0, 0.0])})
    scaler = target_scaler(found, Laplace())
    read = ScaleTarget(scaler, Laplace(), "it", 4, (low, high))
    known = scaler.inverse_mean(read(target, np.ones(2))[:, :-1])
    assert_allclose(known[:, :2], [[1.0, 1.0], [high, high]], rtol=1e-6)
    assert_allclose(known[:, 2:][np.isfinite(known[:, 2:])], 0.0, atol=1e-6)  # the other end is infinite

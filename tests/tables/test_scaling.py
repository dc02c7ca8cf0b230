import numpy as np
import pandas as pd
import pytest

from encoding import encoder_of
from nongauss.core.errors import NongaussWarning
from nongauss.tables.kinds.number import Moments, fit_scale


def test_weighted_moments_equal_those_of_repeated_values():
    x = np.array([1.0, 4.0, 9.0, 2.0])
    count = np.array([1, 3, 2, 1])
    repeated = np.repeat(x, count)
    scale = fit_scale(x, count.astype(float))
    assert scale.centre == pytest.approx(repeated.mean(), rel=1e-14)
    assert abs(scale.step) == pytest.approx(repeated.std(), rel=1e-14)


@pytest.mark.parametrize(("a", "b"), [(3.7, -2.0), (-3.7, 5.0), (1e300, 0.0), (-1e-300, 0.0), (1e6, 1e6)])
def test_standardised_values_do_not_depend_on_units_or_sign(a, b):
    x = np.random.RandomState(0).gamma(2.0, size=50)
    weight = np.ones(50)
    z = fit_scale(x, weight).apply(x)
    moved = a * x + b
    np.testing.assert_allclose(fit_scale(moved, weight).apply(moved), z, atol=1e-12)
    assert (z**3).mean() > 0


@pytest.mark.parametrize("x", [[3.0, 3.0], [0.3, 0.1 + 0.2], [0.0, 0.0], [7.0], [5e-324, 5e-324], [1.7e308]])
def test_rounding_noise_counts_as_constant(x):
    scale = fit_scale(np.array(x), np.ones(len(x)))
    assert scale.sd == 0
    assert scale.centre == pytest.approx(x[0])


def test_a_small_step_on_a_large_offset_is_not_constant():
    assert fit_scale(1.7e18 + 1e9 * np.arange(5.0), np.ones(5)).sd != 0


def test_moments_of_parts_in_any_units_add_up():
    rng = np.random.default_rng(0)
    x, weight = np.concatenate([rng.gamma(2.0, size=30), 1e5 * rng.random(20), [-7.0]]), rng.uniform(1, 2, 51)
    parts = [Moments.of(x[a:b], weight[a:b]) for a, b in ((0, 7), (7, 30), (30, 51))]
    total = parts[0] + (parts[1] + parts[2])
    scale, whole = total.scale(), fit_scale(x, weight)
    assert (scale.unit, scale.mean, scale.sd) == pytest.approx((whole.unit, whole.mean, whole.sd), rel=1e-13)
    assert total.positive == pytest.approx(weight[x > 0].sum())
    assert not total.whole
    assert total.few == ()
    ones = Moments.of(np.ones(3), np.ones(3))
    assert set((ones + Moments.of(np.zeros(2), np.ones(2)) + ones).few) == {0.0, 1.0}
    assert (ones + ones).whole


@pytest.mark.parametrize("far", [1e9, -1e5, 4e3])
def test_one_value_that_hides_all_others_is_named(far):
    x = np.random.RandomState(0).normal(3.0, 1.0, 60)
    x[7] = far
    assert Moments.of(x, np.ones(60)).hides == far
    with pytest.warns(NongaussWarning, match="'a' holds .*, so far from all other values"):
        encoder_of(pd.DataFrame({"a": x}))


@pytest.mark.parametrize(
    "x",
    [
        np.random.RandomState(0).standard_cauchy(200),
        np.exp(3 * np.random.RandomState(1).normal(size=200)),
        np.r_[np.zeros(99), 1.0],
        np.r_[np.arange(10.0), 1e9],
        np.r_[np.arange(90.0), np.full(3, -999.0)],
    ],
    ids=["cauchy", "lognormal", "rare", "few", "repeated"],
)
def test_values_that_hide_no_others(x):
    assert np.isnan(Moments.of(x, np.ones(len(x))).hides)

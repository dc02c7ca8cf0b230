"""`TGGMRegressor` as a user meets it: fits that improve, honest spreads, shapes, going on, clear refusals."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

import nongauss
from nongauss import TGGMRegressor
from nongauss.core.errors import InputError, NongaussWarning
from nongauss.tables.source import sample
from nongauss.tggm import predict
from nongauss.tggm.params import SMALLEST_LOG_SD
from nongauss.tggm.tails import MODEL_TAILS

HALF_HELD_OUT = {"n_members": 1, "validation_fraction": 0.9}
SMALL = {"hidden_layer_sizes": (6,), "n_members": 2, "max_epochs": 25, "random_state": 0}


def made(n_rows, seed=0):
    """Noise that grows with x1 and is skewed to the right, about a bent mean."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n_rows, 2))
    spread = np.where(X[:, 1] > 0, 1.0, 0.2)
    y = 10.0 + 3.0 * np.abs(X[:, 0]) + spread * (rng.gamma(2.0, 1.0, size=n_rows) - 2.0)
    return X, y


@pytest.fixture(scope="module")
def skewed():
    X, y = made(700)
    return TGGMRegressor((20,), n_members=3, max_epochs=120, posterior="moments", random_state=0).fit(X, y)


@pytest.mark.gate
def test_spread_follows_the_noise_and_intervals_cover(skewed):
    X, y = made(2000, seed=1)
    mean, sd = skewed.predict(X, return_std=True)
    wide = X[:, 1] > 0
    assert np.median(sd[wide]) > 2.0 * np.median(sd[~wide])
    assert np.sqrt(np.mean((y - mean) ** 2)) < 1.1 * np.sqrt(np.mean(np.where(wide, 1.0, 0.2) ** 2 * 2.0))
    interval = skewed.predict_interval(X, coverage=0.9)
    inside = (interval[:, 0] < y) & (y < interval[:, 1])
    for part in (wide, ~wide):
        assert 0.8 < inside[part].mean() < 0.97
    assert skewed.log_density(X, y).mean() > -2.0


@pytest.fixture(scope="module")
def quick():
    return TGGMRegressor(**SMALL).fit(*made(60))


def test_the_distribution_agrees_with_predict(quick):
    X, y = made(40, seed=2)
    mean, sd = quick.predict(X, return_std=True)
    distribution = quick.predict_distribution(X)
    assert_array_equal(distribution.mean, mean)
    assert_array_equal(distribution.std, sd)
    draws = quick.sample_y(X, 4000, random_state=0)
    assert draws.shape == (40, 4000)
    assert_allclose(draws.mean(axis=1), mean, atol=6 * sd.max() / np.sqrt(4000))
    assert_allclose(distribution.cdf(quick.predict_quantiles(X, 0.3)), 0.3, rtol=1e-9)
    assert np.isfinite(quick.log_density(X, y)).all()
    assert 0.0 < quick.noise_variance_[0] < np.var(y)


def test_saved_and_loaded_it_predicts_the_same_bits(quick, tmp_path):
    X, _ = made(20, seed=3)
    nongauss.save(quick, tmp_path / "model")
    back = nongauss.load(tmp_path / "model")
    for one, other in zip(back.predict(X, return_std=True), quick.predict(X, return_std=True), strict=True):
        assert_array_equal(one, other)
    assert_array_equal(back.predict_interval(X), quick.predict_interval(X))
    pd.testing.assert_frame_equal(back.trace_, quick.trace_)


@pytest.mark.gate
def test_the_distribution_function_of_a_fitted_model_is_near_its_limit_of_many_points(skewed, monkeypatch):
    X, y = made(60, seed=4)
    ensemble = skewed.ensemble_._replace(skewness=1.0, tails=MODEL_TAILS)
    monkeypatch.setattr(skewed, "ensemble_", ensemble)
    few = skewed.predict_distribution(X).cdf(y)
    encoded = skewed._encode(X)
    monkeypatch.setattr(predict, "N_POINTS", 4096)
    monkeypatch.setattr(predict, "N_SKEWED", 20)  # all units
    predict._points.cache_clear()
    wide = predict.decomposed(ensemble.params, ensemble.config, encoded)
    predict._points.cache_clear()
    means, variances = predict.mixture(wide, ensemble.inflation, 1.0)
    z = (y[None, :, None] - ensemble.centre - ensemble.scale * means[..., 0]) / np.sqrt(variances[..., 0])
    many = ndtr(z / np.abs(ensemble.scale)).mean(axis=(0, 2))
    assert np.abs(few - many).max() < 0.035  # what a single unit that varies most may cost: `components`
    assert np.abs(few - many).mean() < 0.01


METHODS = {
    "moments": {"posterior": "moments"},
    "mean_field": {"posterior": "mean_field", "n_sweeps": 15},
    "bp": {"method": "bp", "hidden_variance": 0.5, "noise_variance": 0.2},
    "deep": {"hidden_layer_sizes": (6, 5)},
}


def two_outputs():
    X, y = made(60)
    return X, np.column_stack([y, -2.0 * y + X[:, 0]])


@cache
def fitted_by(method):
    return TGGMRegressor(**{**SMALL, "learning_rate": 0.05, **METHODS[method]}).fit(*two_outputs())


HEAVY = ("moments", "mean_field", "deep")


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=pytest.mark.gate) if name in HEAVY else name for name in METHODS]
)
def test_the_objective_rises_and_two_outputs_have_their_shapes(method):
    X, Y = two_outputs()
    model = fitted_by(method)
    bound = model.trace_["bound"].to_numpy()
    assert bound[-1] > bound[0]
    assert (np.diff(bound[-5:]) > -0.02 * abs(bound[-1] - bound[0])).all()
    mean, sd = model.predict(X[:7], return_std=True)
    assert mean.shape == sd.shape == (7, 2)
    assert (sd > 0).all()
    distribution = model.predict_distribution(X[:7])
    assert distribution.interval(0.8).shape == (7, 2, 2)
    assert distribution.log_prob(Y[:7]).shape == (7,)
    assert distribution.sample(3, 0).shape == (7, 3, 2)
    assert model.noise_variance_.shape == (2,)
    assert np.mean((model.predict(X) - Y) ** 2 / Y.var(axis=0)) < 0.95


def test_one_fit_twice_is_the_same_fit_and_other_seeds_are_others():
    X, y = made(60)
    first, second = (TGGMRegressor(**SMALL).fit(X, y).predict(X[:5]) for _ in range(2))
    assert_array_equal(first, second)
    seeds = [np.random.default_rng(7), np.random.default_rng(7), 8]
    answers = [TGGMRegressor(**{**SMALL, "random_state": seed}).fit(X, y).predict(X[:5]) for seed in seeds]
    assert_array_equal(answers[0], answers[1])
    assert not np.array_equal(answers[0], answers[2])
    again = int(np.random.default_rng(7).integers(0, 2**32 - 1, dtype=np.uint32))
    as_integer = TGGMRegressor(**{**SMALL, "random_state": again}).fit(X, y).predict(X[:5])
    assert_array_equal(as_integer, answers[0])


def test_a_table_in_single_precision_is_the_same_table():
    X, y = (part.round(5) for part in made(60))
    frame, narrow = pd.DataFrame(X, columns=["a", "b"]), X.astype(np.float32)
    expected = TGGMRegressor(**SMALL).fit(X, y).predict(X)
    for table, target in (
        (narrow, y.astype(np.float32)),
        (frame.astype(np.float32), pd.Series(y, dtype="f4")),
    ):
        assert_array_equal(TGGMRegressor(**SMALL).fit(table, target).predict(table), expected)


def test_intervals_from_few_rows_are_not_far_too_narrow():
    """Without held-out rows they hold a quarter of new rows."""
    held = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(510, 3))
        y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=510)
        low, high = TGGMRegressor(random_state=0).fit(X[:10], y[:10]).predict_interval(X[10:], 0.9).T
        held.append(np.mean((low <= y[10:]) & (y[10:] <= high)))
    assert 0.7 < np.mean(held) < 0.97


def test_fixed_variances_stay():
    _, Y = two_outputs()
    model = fitted_by("bp")
    assert_allclose(np.exp(2 * model.params_.log_sd0), 0.5, rtol=1e-5)
    assert_allclose(np.exp(2 * model.params_.log_sd1), 0.2, rtol=1e-5)
    assert_allclose(model.noise_variance_, 0.2 * Y.var(axis=0) * model.ensemble_.inflation, rtol=1e-5)


def test_partial_fit_improves_and_goes_on_after_loading(tmp_path):
    X, y = made(180)
    model = TGGMRegressor(**{**SMALL, "learning_rate": 0.03})
    errors = []
    for _ in range(4):
        for first in range(0, 180, 60):
            model.partial_fit(X[first : first + 60], y[first : first + 60])
        errors.append(np.mean((model.predict(X) - y) ** 2))
    assert errors[-1] < 0.9 * errors[0]
    assert errors[-1] < 0.8 * np.var(y)
    assert model.n_iter_ == len(model.trace_) == 12
    nongauss.save(model, tmp_path / "model")
    back = nongauss.load(tmp_path / "model")
    for one in (model, back):
        one.partial_fit(X[:60], y[:60])
    assert back.n_iter_ == 13
    assert_array_equal(back.predict(X), model.predict(X))
    with pytest.raises(InputError, match=r"y has 2 outputs, but the first call of partial_fit had 1"):
        model.partial_fit(X, np.column_stack([y, y]))
    X, y = X[:60], y[:60]
    model.fit(X, y)
    assert model.n_iter_ == 25  # a fit starts anew
    fitted = np.mean((model.predict(X) - y) ** 2)
    inflation = model.ensemble_.inflation
    model.partial_fit(X, y)  # and is gone on with
    assert model.n_iter_ == 26
    assert np.mean((model.predict(X) - y) ** 2) < 1.5 * fitted
    assert model.ensemble_.inflation == inflation
    model.set_params(hidden_layer_sizes=(9,))
    with pytest.raises(InputError, match=r"parameters have changed since the last call; call fit first"):
        model.partial_fit(X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("method", "em"),
        ("hidden_layer_sizes", 0),
        ("hidden_layer_sizes", (5, 0)),
        ("noise_variance", 0.0),
        ("validation_fraction", 1.0),
    ],
)
def test_other_settings_are_named_when_wrong(name, value):
    with pytest.raises(ValueError, match=name):
        TGGMRegressor(**{name: value}).fit(*made(30))


def test_a_number_of_units_needs_no_tuple():
    X, y = made(40)
    number = TGGMRegressor(**{**SMALL, "hidden_layer_sizes": 6}).fit(X, y)
    assert_array_equal(number.predict(X), TGGMRegressor(**SMALL).fit(X, y).predict(X))


def test_a_constant_target_is_warned_about():
    X, _ = made(40)
    with pytest.warns(NongaussWarning, match="The target is constant"):
        model = TGGMRegressor(**SMALL).fit(X, np.full(40, 7.0))
    assert_allclose(model.predict(X), 7.0, rtol=1e-9)


def test_a_noise_floor_is_news_only_where_the_hidden_units_are_certain_too():
    X, y = made(60)
    model = TGGMRegressor(**{**SMALL, **HALF_HELD_OUT}, n_heads=1).fit(X, y)
    reading, rows = model._read_table(X, y, None, "all")
    data = reading.rows(sample(rows, None).rows)
    at_floor = model.params_._replace(log_sd1=np.full_like(model.params_.log_sd1, SMALLEST_LOG_SD))
    certain = at_floor._replace(log_sd0=np.full_like(model.params_.log_sd0, SMALLEST_LOG_SD))
    for params, n_warnings in ((model.params_, 0), (at_floor, 0), (certain, 1)):
        model.ensemble_ = model.ensemble_._replace(params=params)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model._note_a_noise_floor(data)
        assert ["noise has reached its floor" in str(w.message) for w in said] == [True] * n_warnings


def test_a_callback_can_stop_and_the_model_is_usable():
    X, y = made(60)
    seen = []

    def enough(progress):
        seen.append(progress.iteration)
        return progress.iteration >= 2

    with pytest.warns(NongaussWarning, match="Stopped on request"):
        model = TGGMRegressor(**{**SMALL, "callbacks": [enough]}).fit(X, y)
    assert model.n_iter_ == seen[-1] < 25
    assert not model.converged_
    assert np.isfinite(model.predict_interval(X)).all()


def test_ctrl_c_keeps_what_was_fitted():
    X, y = made(60)

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.warns(NongaussWarning, match="Stopped on request"):
        model = TGGMRegressor(**{**SMALL, "callbacks": [interrupt]}).fit(X, y)
    assert model.n_iter_ >= 1
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    "settings", [pytest.param({"n_members": 70}, marks=pytest.mark.gate), HALF_HELD_OUT], ids=str
)
def test_odd_shares_of_held_out_rows_still_train(settings):
    X, y = made(60)
    model = TGGMRegressor(**{**SMALL, "max_epochs": 5, "n_heads": 1, **settings}).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.n_iter_ == 5


@pytest.mark.gate
def test_equal_outputs_are_fitted_in_single_precision():
    """Two equal outputs make a covariance that is singular but for the noise, which goes to its floor."""
    X, y = made(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TGGMRegressor(**{**SMALL, "max_epochs": 60, "learning_rate": 0.1}).fit(
            X, np.column_stack([y, y])
        )
    assert np.isfinite(model.predict(X)).all()


def test_a_refit_that_fails_leaves_the_former_model_whole(tmp_path):
    X, y = made(60)
    model = TGGMRegressor(**SMALL).fit(X, y)
    before = model.predict(X)
    (tmp_path / "bad").write_text("no checkpoint")
    model.set_params(checkpoint=tmp_path / "bad")
    with pytest.raises(InputError, match="cannot be read"):
        model.fit(X * 100.0 + 5.0, y * 1000.0)
    assert_array_equal(model.predict(X), before)
    with pytest.raises(InputError, match="folder does not exist"):
        model.set_params(checkpoint=tmp_path / "none" / "c").fit(X, y)
    nongauss.save(model, tmp_path / "saved")  # a path as a parameter is no obstacle
    assert_array_equal(nongauss.load(tmp_path / "saved").predict(X), before)


@pytest.mark.parametrize("size", [1e-50, 1.0 / 64, 1e40])
def test_the_unit_of_weights_is_irrelevant(size):
    X, y = made(60)
    expected = TGGMRegressor(**SMALL).fit(X, y).predict(X)
    weighted = TGGMRegressor(**SMALL).fit(X, y, sample_weight=np.full(60, size)).predict(X)
    assert_allclose(weighted, expected, rtol=2e-3, atol=2e-3)


@pytest.mark.gate
def test_each_output_has_a_calibration_of_its_own():
    X, y = made(60)
    other = 3.0 * np.random.default_rng(0).standard_t(3, 60)
    model = TGGMRegressor(**SMALL).fit(X, np.column_stack([y, other]))
    assert model.ensemble_.inflation.shape == (2,)
    assert model.ensemble_.inflation[0] != model.ensemble_.inflation[1]
    with pytest.warns(NongaussWarning, match="constant"):
        model.fit(X, np.column_stack([y, np.full(60, 4.0)]))
    assert model.ensemble_.inflation[0] != 1.0
    assert model.ensemble_.inflation[1] == 1.0


def test_a_single_far_target_is_named():
    X, y = made(60)
    far = y.copy()
    far[7] = -1e6
    with pytest.warns(NongaussWarning, match="The target holds -1e[+]06, so far from all other values that"):
        TGGMRegressor(**SMALL).fit(X, far)
    far[7] = y.mean() + 8.0 * y.std()  # far, but the others still tell themselves apart
    TGGMRegressor(**SMALL).fit(X, far)

"""The recipe of a fit: folds, batches, calibration, going on, also from a checkpoint."""

from __future__ import annotations

import shutil

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from nongauss import TGGMRegressor
from nongauss.core.device import replace
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.course import Status
from nongauss.tggm import calibration, fit
from nongauss.tggm.exact_law import law_of
from nongauss.tggm.params import first_state
from nongauss.tggm.updates import few_held_out
from tggm.small import CONFIG, RECIPE, ensemble_of, made_rows, one_unit


def test_a_batch_of_all_rows_is_not_shuffled_for_devices_hold_their_own_rows():
    assert fit.epoch_of(CONFIG, 100, 100).batch_size is None
    assert fit.epoch_of(CONFIG, 99, 100).batch_size == 99


def held_for(params, Y):
    """All rows at x = 1, the same number for each member."""
    n_members, n_rows = len(params.b1), Y.shape[1]
    return np.ones((n_members, n_rows, 1)), Y[..., None], np.ones((n_members, n_rows))


def skewed_unit():
    """Members alike: c = -1 gives a strongly skewed y, its noise is small."""
    return ensemble_of(*[one_unit(-1.0, 1.0, 1.0, 0.2) for _ in range(2)])


def draws(seed, shape):
    rng = np.random.default_rng(seed)
    normal = rng.normal(-1.0, 1.0, size=(shape[0], 20 * shape[1]))
    hidden = np.stack([line[line > 0][: shape[1]] for line in normal])
    return hidden + 0.2 * rng.normal(size=shape)


def test_calibration_keeps_a_model_that_is_right():
    made = fit.calibrated(skewed_unit(), CONFIG, held_for(skewed_unit(), draws(0, (2, 1500)))).ensemble
    assert abs(made.inflation - 1.0) < 0.1
    assert made.skewness == 1.0


def test_calibration_widens_and_drops_skewness_that_is_not_there():
    params = skewed_unit()
    exact = fit.calibrated(params, CONFIG, None).ensemble
    assert (exact.inflation.tolist(), exact.skewness) == ([1.0], 1.0)
    mean, variance = (part[0, 0] for part in exact.moments(np.ones((1, 1))))
    normal = np.random.default_rng(0).normal(mean, np.sqrt(2.0 * variance), size=(2, 1500))
    made = fit.calibrated(params, CONFIG, held_for(params, normal)).ensemble
    assert_allclose(made.inflation, 2.0, rtol=0.1)
    assert made.skewness == 0.0
    for factor, limit in ((100.0, 3.0), (0.01, 0.5)):
        far = mean + np.sqrt(factor) * (normal - mean)
        assert fit.calibrated(params, CONFIG, held_for(params, far)).ensemble.inflation == limit
    bp = fit.calibrated(params, replace(CONFIG, method="bp"), held_for(params, normal)).ensemble
    assert bp.skewness == 1.0


def test_an_average_of_members_that_disagree_is_no_wider_than_its_errors():
    """Members off by as much as the noise, each its own way: intervals of 90 % beside all of the spread's."""
    rng = np.random.default_rng(0)
    n_members, n_inputs = 5, 20
    off = rng.normal(size=(n_members, n_inputs)) / np.sqrt(n_inputs)
    params = ensemble_of(*[_far_from_the_cut(way) for way in off])
    X = rng.normal(size=(n_members, 600, n_inputs))
    held = X, rng.normal(size=(n_members, 600, 1)), np.ones((n_members, 600))
    made = fit.calibrated(params, CONFIG, held)
    new, y = rng.normal(size=(4000, n_inputs)), rng.normal(size=4000)

    def covered(ensemble):
        low, high = law_of(ensemble, new, squeeze=True).interval(0.9).T
        return float(np.mean((low <= y) & (y <= high)))

    found = [
        covered(made.ensemble._replace(spread_kept=kept)) for kept in (made.ensemble.spread_kept, 0.5, 1.0)
    ]
    assert 0.89 < found[0] < 0.912 < found[1] < 0.94 < found[2]


def test_intervals_of_a_hundred_rows_cover_new_ones():
    """Ten held-out rows of a member choose its epoch, and fifty the rest: their errors are smaller than those
    of new rows."""
    covered = []
    for seed in (0, 7):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1100, 2))
        y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.4 * rng.normal(size=1100)
        model = TGGMRegressor(posterior="moments", max_epochs=200, random_state=0).fit(X[:100], y[:100])
        low, high = model.predict_interval(X[100:], coverage=0.9).T
        covered.append(np.mean((low <= y[100:]) & (y[100:] <= high)))
    assert 0.86 < np.mean(covered) < 0.94


def test_members_of_few_held_out_rows_have_one_best_epoch():
    table = fit.table_of(made_rows(60), None, RECIPE, False)
    for config in (CONFIG, replace(CONFIG, method="bp")):  # on the host, and compiled
        result, _ = fit.fit(0, made_rows(60), config, RECIPE)
        assert len(np.unique(result.state.best_epoch)) == len(np.unique(result.state.best_score)) == 1
    assert few_held_out(table.held[2])
    assert not few_held_out(fit.table_of(made_rows(400), None, RECIPE, False).held[2])


def test_squared_errors_of_few_rows_are_taken_as_larger():
    """The members are right: of a factor 1 + s the part 1 - s, and of 1 the part s = 12 / (n + 12)."""
    params = ensemble_of(*[_far_from_the_cut(np.zeros(1)) for _ in range(5)])
    normal = norm.ppf((np.arange(200) + 0.5) / 200)
    for few in (normal[10::20], normal):
        found = fit.calibrated(
            params, CONFIG, held_for(params, np.tile(few / np.sqrt(np.mean(few**2)), (5, 1)))
        ).ensemble
        share = 12.0 / (5 * len(few) + 12.0)
        assert found.inflation[0] == pytest.approx((1.0 - share) * (1.0 + share) + share, rel=1e-3)


def _far_from_the_cut(way):
    """A member that says y ~ N(way @ x, 1): one unit 100 sd above its cut."""
    one = one_unit(100.0, 1e-3, 1.0, 1.0, b1=-100.0)
    return one._replace(W0=way[None], b0=np.array([100.0]))


def test_a_few_far_rows_widen_the_tails_and_not_everything():
    params = skewed_unit()
    near = draws(0, (2, 600))
    far = near.copy()
    far[:, ::100] += 12.0
    right, found = (fit.calibrated(params, CONFIG, held_for(params, y)).ensemble for y in (near, far))
    mean, variance = (part[0, 0] for part in right.moments(np.ones((1, 1))))
    assert ((far - mean) ** 2).mean() > 2.5 * variance  # by squares everything would be so much wider
    assert found.inflation < 2.0
    assert found.tails.degrees < 10.0


def test_fit_records_and_finishes():
    result, made = fit.fit(0, made_rows(60), CONFIG, RECIPE)
    assert result.status is Status.COMPLETED
    assert result.n_iter == len(result.trace) == 3
    assert set(result.trace[0]) == {"iteration", "bound", "objective", "seconds", "held_out"}
    assert made.params.W0.shape == (3, 2, 2)
    assert 0.5 <= made.inflation <= 3.0
    assert made.skewness in calibration.SKEWNESSES


def test_a_further_fit_has_half_of_the_epochs_and_half_of_the_patience(monkeypatch):
    patience = []

    def watched(params, total, n_steps, recipe, *rest):
        patience.append(recipe.n_iter_no_change)
        return first_state(params, total, n_steps, recipe, *rest)

    monkeypatch.setattr(fit, "first_state", watched)
    data = made_rows(60)
    config = replace(CONFIG, posterior="auto", n_heads=None)
    fit.fit(0, data, config, replace(RECIPE, n_iter_no_change=5, max_epochs=4))
    assert patience[:2] == [5, 3]


def test_weights_do_not_change_who_is_held_out():
    data = made_rows(60)
    plain, _ = fit.fit(0, data, CONFIG, RECIPE)
    scaled, _ = fit.fit(0, data._replace(weight=np.full(60, 4.0)), CONFIG, RECIPE)
    bounds = [[row["bound"] for row in result.trace] for result in (plain, scaled)]
    assert bounds[1] == bounds[0]  # only ratios of weights matter


@pytest.mark.gate
def test_go_on_continues_from_the_best_parameters_and_the_momenta():
    data = made_rows(60)
    trace = []
    former = None
    for _ in range(4):
        result, made = fit.go_on(0, data, CONFIG, RECIPE, former)
        state = fit.former_state(made.params, fit.momenta_of(result.state))
        former = replace(result, state=state)
        trace.append(result.trace[-1]["bound"])
    assert result.n_iter == len(result.trace) == 4
    assert result.status is Status.COMPLETED
    assert trace[-1] > trace[0]
    assert int(result.state.step) == 4 * 4  # sixty rows are four batches
    assert (made.inflation.tolist(), made.skewness) == ([1.0], 1.0)
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(state))
    assert_array_equal(made.params.W0, np.asarray(jax.tree.leaves(result.state.params)[0]))


def test_a_fit_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path, monkeypatch):
    """What a killed process leaves is its last checkpoint; `tests/optimise/test_checkpoint.py` kills one."""
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    data, made = made_rows(60), {"random_state": 3, "max_epochs": 25, "n_members": 2}
    written, left, first = tmp_path / "written", tmp_path / "left", []

    def keep_one(progress):
        if progress.iteration < 12 and written.exists():
            shutil.copy(written, left)

    def fitted(**settings):
        return TGGMRegressor((6,), **made, **settings).fit(data.X, data.Y[:, 0])

    whole = fitted(checkpoint=written, callbacks=[keep_one])
    assert not written.exists()
    resumed = fitted(checkpoint=left, callbacks=[lambda progress: first.append(progress.iteration)])
    assert first[0] > 1  # a fit from the start would report its first epoch
    assert_array_equal(resumed.trace_["bound"], whole.trace_["bound"])
    for one, other in zip(resumed.params_[:6], whole.params_[:6], strict=True):
        assert_array_equal(one, other)
    assert_array_equal(fitted().params_.W0, whole.params_.W0)

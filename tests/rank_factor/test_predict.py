import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from nongauss import RankFactorClassifier
from nongauss.rank_factor import calibration, predict
from nongauss.rank_factor.fit import drawn, summary
from nongauss.rank_factor.inference import VariationalBayes
from nongauss.rank_factor.params import point
from nongauss.rank_factor.predict import decisions, factors, rotated, rotation_to
from nongauss.rank_factor.updates import sweep
from rank_factor.small import problem


def settled():
    state, rows, labels, config = problem(n_outputs=1)
    for _ in range(15):
        state, _ = sweep(state, rows, labels, config, VariationalBayes())
    return state, rows, labels, config


def test_rows_seen_as_new_have_about_the_factors_of_the_fit():
    state, rows, labels, config = settled()
    z = predict.factors(summary(state), rows, config, np.float64)
    for k in range(2):
        assert np.corrcoef(z.mean[:, k], state.z.mean[:, k])[0, 1] > 0.98
    f = predict.decisions(summary(state), z)
    assert (np.sign(f) == labels.y).mean() > 0.85


def test_factors_of_a_row_do_not_depend_on_the_rows_beside_it():
    state, rows, _, config = settled()
    for draw in (summary(state), drawn(state)):
        whole = predict.factors(draw, rows, config, np.float64)
        part = predict.factors(draw, rows.take(slice(7, 9)), config, np.float64)
        assert_allclose(part.mean, whole.mean[7:9], atol=1e-12)


def test_a_turned_draw_says_the_same_and_is_turned_back():
    state, rows, _, config = problem(n_outputs=1)
    draw = summary(state)
    turned = predict.turned(draw, np.array([1, 0]), np.array([-1.0, 1.0]))
    assert all(part.flags.c_contiguous for part in turned if isinstance(part, np.ndarray))
    plain, other = (predict.factors(d, rows, config, np.float64) for d in (draw, turned))
    assert_allclose(other.mean, plain.mean[:, [1, 0]] * [-1.0, 1.0], atol=1e-12)
    assert_allclose(predict.decisions(turned, other), predict.decisions(draw, plain), atol=1e-12)
    first, second = predict.in_order(draw), predict.in_order(turned)
    assert_allclose(first.A, second.A)
    sizes = (first.A**2).sum(axis=0)
    assert (np.diff(sizes) <= 0).all()
    assert (first.A[np.abs(first.A).argmax(axis=0), [0, 1]] > 0).all()


def test_the_curve_of_several_classes_recovers_a_multinomial_law():
    rng = np.random.default_rng(3)
    f, slope, offset = (
        2.0 * rng.standard_normal((8000, 3)),
        np.array([1.5, 0.4, 1.0]),
        np.array([0.5, -1.0, 0.5]),
    )
    gumbel = slope * f + offset + rng.gumbel(size=f.shape)
    y = np.where(np.arange(3) == gumbel.argmax(axis=1)[:, None], 1.0, -1.0)
    found = calibration.calibrate(f, y, np.ones(8000))
    assert_allclose(found.slope, slope, rtol=0.1)
    assert_allclose(found.offset - found.offset.mean(), offset, atol=0.1)
    P = found.probabilities(f)
    assert_allclose(P.mean(axis=0), (y > 0).mean(axis=0), atol=1e-3)  # as its score equations say
    heavy = calibration.calibrate(f[:50], y[:50], np.r_[np.full(25, 2.0), np.ones(25)])
    twice = np.r_[np.arange(25), np.arange(50)]
    assert_allclose(heavy.slope, calibration.calibrate(f[twice], y[twice], np.ones(75)).slope, rtol=1e-3)
    certain = calibration.calibrate(5.0 * np.eye(3), 2.0 * np.eye(3) - 1.0, np.ones(3))
    assert certain.probabilities(5.0 * np.eye(3)).max() < 0.95


def test_the_curve_recovers_a_logistic_law():
    rng = np.random.default_rng(0)
    f = rng.standard_normal(20_000)
    y = np.where(rng.random(20_000) < 1 / (1 + np.exp(-(2.0 * f - 0.7))), 1.0, -1.0)
    slope, offset = calibration._platt(f, y, np.ones(20_000))
    assert abs(slope - 2.0) < 0.1
    assert abs(offset + 0.7) < 0.1


def test_separable_rows_give_a_finite_slope():
    slope, _ = calibration._platt(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([-1.0, -1, 1, 1]), np.ones(4))
    assert 0 < slope < 100


def test_rows_held_out_are_judged_more_cautiously_than_rows_that_were_fitted():
    state, rows, labels, config = problem(n_outputs=1)
    for _ in range(10):
        state, _ = sweep(state, rows, labels, config, VariationalBayes())
    draw = summary(state)
    chosen = np.arange(60)
    held = calibration.judged(state, [draw], rows, labels, config, np.float64, chosen)
    agree = np.sign(held[:, 0]) == labels.y[:, 0]
    assert agree.mean() > 0.75
    made = calibration.calibrate(held, labels.y, labels.weight)
    assert made.slope[0] > 0
    assert ((made.probabilities(held) > 0) & (made.probabilities(held) < 1)).all()


def test_turned_draws_say_the_same_of_new_rows():
    state, rows, _, config = problem(n_outputs=1)
    draw = drawn(state._replace(experts=state.experts._replace(beta=point(np.array([[[1.0, -2.0, 0.3]]])))))
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))[0]
    turned = rotated(draw, rotation)
    before, after = (factors(one, rows, config, np.float64) for one in (draw, turned))
    assert_allclose(after.mean @ turned.A.T, before.mean @ draw.A.T, atol=1e-4)
    assert_allclose(decisions(turned, after), decisions(draw, before), atol=1e-4)


def test_turned_loadings_lie_next_to_the_reference():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 3))
    mixed = A @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    assert_allclose(mixed @ rotation_to(mixed, A), A, atol=1e-12)


@pytest.mark.parametrize(("n_rows", "n_folds", "size"), [(3, 3, 1), (40, 5, 8), (300, 4, 60), (1000, 1, 200)])
def test_training_for_prediction_holds_out_enough_rows_a_fifth_at_a_time(n_rows, n_folds, size):
    folds = calibration.folds_of(calibration.chosen_rows(n_rows, 0), n_rows)
    assert [len(fold) for fold in folds] == [size] * n_folds
    assert len(np.unique(np.concatenate(folds))) == n_folds * size
    assert len(calibration.folds_of(calibration.chosen_rows(9000, 0), 9000)[0]) == calibration.MOST


def test_a_draw_with_large_coefficients_decides_as_one_with_small_ones_of_the_same_direction():
    """Of separable classes: their hinges, all past their margin, do not tell the coefficients' size."""
    state, _, _, _ = problem(n_outputs=1)
    draw = drawn(state)
    small, large = (draw._replace(beta=size * np.array([[[3.0, 4.0, 1.0]]])) for size in (1e3, 1e6))
    f = decisions(small, state.z)
    assert_allclose(f[:, 0], state.z.mean @ [0.6, 0.8] + 0.2, rtol=1e-6)
    assert_allclose(decisions(large, state.z), f, rtol=1e-6)


def test_probabilities_of_classes_far_apart_hold_though_the_draws_sizes_differ():
    rng = np.random.default_rng(1)
    y, new = np.repeat([0, 1], [20, 10]), np.repeat([0, 1], 100)
    X, X_new = (1.5 * known[:, None] + rng.standard_normal((len(known), 20)) for known in (y, new))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RankFactorClassifier(
            2, inference="gibbs", n_chains=1, max_iter=60, n_draws=20, random_state=2
        ).fit(X, y)
    sizes = [np.linalg.norm(draw.beta[..., :-1]) for draw in model.draws_]
    assert max(sizes) > 10 * min(sizes)
    p = model.predict_proba(X_new)
    assert (p.argmax(axis=1) == new).mean() > 0.95
    assert -np.log(p[np.arange(200), new]).mean() < 0.25

import numpy as np

from nongauss.rank_factor import calibration
from nongauss.rank_factor.fit import summary
from nongauss.rank_factor.updates import sweep
from nongauss.rank_factor.vb_and_gibbs import Expect
from rank_factor.small import problem


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
        state, _ = sweep(state, rows, labels, config, Expect())
    draw = summary(state)
    chosen = np.arange(60)
    held = calibration.judged(state, [draw], rows, labels, config, np.float64, chosen)
    agree = np.sign(held[:, 0]) == labels.y[:, 0]
    assert agree.mean() > 0.75
    made = calibration.calibrate(held, labels.y, labels.weight)
    assert made.slope[0] > 0
    assert ((made.probabilities(held) > 0) & (made.probabilities(held) < 1)).all()

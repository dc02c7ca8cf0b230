import numpy as np
import pytest
from numpy.testing import assert_allclose

from nongauss.prob.logistic import expected_log1pexp
from nongauss.prob.piecewise import bound, evaluate, expected_bound

X = np.linspace(-40, 40, 40_001)

# Largest errors and positive breakpoints, computed apart from this package's script.
ERRORS = {
    2: (0.693147, 0.693147), 3: (0.0510015, 0.223144), 4: (0.0329538, 0.109361), 5: (0.00947637, 0.0648133),
    6: (0.00742186, 0.0428532), 7: (0.00326733, 0.0304290), 8: (0.00275530, 0.0227207),
    9: (0.00149374, 0.0176108),
    10: (0.00131024, 0.0140499), 15: (0.000310610, 0.00597188), 20: (0.000142143, 0.00328669),
}  # fmt: skip
BREAKS = {
    3: [2.95029], 5: [1.75986, 4.65421], 7: [1.31016, 2.92120, 5.72215], 8: [0, 1.52247, 3.09916, 5.89285],
    15: [0.70749, 1.39529, 2.09071, 2.88205, 3.87888, 5.31696, 8.07682],
}  # fmt: skip


@pytest.mark.parametrize("n_pieces", ERRORS)
def test_errors_are_minimax_to_five_digits(n_pieces):
    quadratic, linear = ERRORS[n_pieces]
    assert_allclose(bound(n_pieces).error, quadratic, rtol=6e-6)
    assert_allclose(bound(n_pieces, 1).error, linear, rtol=6e-6)


@pytest.mark.parametrize("n_pieces", BREAKS)
def test_breakpoints(n_pieces):
    inner = bound(n_pieces).high[:-1]
    assert_allclose(inner[inner > -1e-12], BREAKS[n_pieces], atol=6e-6)
    assert_allclose(inner, -inner[::-1], atol=1e-12)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("n_pieces", range(2, 21))
def test_never_below_and_never_further_above_than_it_says(n_pieces, degree):
    gap = evaluate(X, n_pieces, degree) - np.logaddexp(0, X)
    assert gap.min() > -1e-13
    assert gap.max() < bound(n_pieces, degree).error + 1e-12


def test_more_pieces_are_closer():
    for degree in (1, 2):
        assert (np.diff([bound(r, degree).error for r in range(2, 21)]) < 0).all()


def test_the_one_of_three_linear_pieces_is_known():
    assert_allclose(bound(3, 1).error, np.log(1.25), rtol=1e-9)
    assert_allclose(bound(3, 1).high[1], np.log(4), rtol=1e-9)


@pytest.mark.parametrize("v", [1e-10, 1e-3, 0.5, 4.0, 100.0, 1e4])
def test_expectation_lies_above_by_at_most_the_error(v):
    m = np.linspace(-50, 50, 401)
    gap = expected_bound(m, v)[0] - expected_log1pexp(m, v)[0]
    assert gap.min() > -2e-9
    assert gap.max() < bound(20).error + 2e-9


@pytest.mark.parametrize("n_pieces", [3, 6, 20])
def test_derivatives(n_pieces):
    m, v = np.linspace(-7, 7, 23)[:, None], np.array([0.3, 2.0, 30.0])
    step = 1e-5
    by_mean = (expected_bound(m + step, v, n_pieces)[0] - expected_bound(m - step, v, n_pieces)[0]) / (
        2 * step
    )
    up, down = (expected_bound(m, v * (1 + sign * step), n_pieces)[0] for sign in (1, -1))
    assert_allclose(expected_bound(m, v, n_pieces)[1], by_mean, atol=1e-7)
    assert_allclose(expected_bound(m, v, n_pieces)[2], (up - down) / (2 * step * v), atol=1e-7)


def test_other_sizes_are_refused():
    with pytest.raises(ValueError, match="2 to 20"):
        bound(21)

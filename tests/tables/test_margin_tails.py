"""Tails of columns beside the laws that they were drawn from, and limits that they keep."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from nongauss import RankFactorAnalysis
from nongauss.tables.margin_tails import with_tails

N = 400
PLACE = (np.arange(N) + 0.5) / N


def value(line, place):
    return np.interp(place, line.below, line.edge)


@pytest.mark.parametrize(
    "quantile",
    [ndtri, lambda p: 50 + 10 * ndtri(p), lambda p: np.exp(ndtri(p)), lambda p: -np.exp(-ndtri(p))],
)
@pytest.mark.parametrize("place", [1e-5, 1e-4, 1 - 1e-4, 1 - 1e-5])
def test_normal_and_log_normal_columns_go_on_as_they_do(quantile, place):
    found = value(with_tails(quantile(PLACE), PLACE, True), place)
    spread = quantile(0.84) - quantile(0.5)
    assert found == pytest.approx(quantile(place), rel=0.15, abs=0.3 * spread)


def test_limits_are_approached_and_not_passed():
    share = with_tails(ndtr(0.7 * ndtri(PLACE)), PLACE, True).edge
    assert 0.0 <= share[0] < share[9]
    assert share[-10] < share[-1] <= 1.0
    assert with_tails(50 + 20 * ndtri(PLACE), PLACE, True).edge[0] < 0.0
    positive = np.abs(50 + 20 * ndtri(PLACE))
    assert with_tails(np.sort(positive), PLACE, True).edge[0] >= 0.0


def test_a_lone_far_value_does_not_make_a_tail_longer():
    x = 10.0 + ndtri(PLACE)
    x[-1] = 1e9
    assert with_tails(x, PLACE, True).edge[-1] - 1e9 < 10.0


def test_ends_that_pile_up_and_dates_have_no_far_tail():
    line = with_tails(np.append(ndtri(PLACE[:-40]), [2.0, 2.0]), np.append(PLACE[:-40], [0.9, 1.0]), True)
    assert line.edge[-1] == 2.0
    assert line.tails[1] == 0
    assert with_tails(ndtri(PLACE), PLACE, False).tails == (1, 1)


def test_units_do_not_matter():
    x = np.exp(ndtri(PLACE))
    assert with_tails(1000.0 * x, PLACE, True).edge == pytest.approx(1000.0 * with_tails(x, PLACE, True).edge)


def test_draws_leave_the_range_that_was_seen():
    """Of y = x + noise only rows with x < .5 are known: draws of the others follow the line."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(300)
    y = x + 0.3 * rng.standard_normal(300)
    gaps = np.column_stack([x, np.where(x < 0.5, y, np.nan)])
    drawn = (
        RankFactorAnalysis(n_factors=1, max_iter=2, tol=1e9, random_state=0).fit(gaps).sample_missing(gaps, 5)
    )
    own = np.concatenate([each[x > 0.5, 1] for each in drawn])
    assert own.max() > np.nanmax(gaps[:, 1]) + 0.3

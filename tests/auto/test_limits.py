"""Targets that are cut off at an end: the limit gets a probability, and only where there is one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import nongauss
from nongauss import AutoRegressor
from nongauss.auto.limits import limits_of, no_limits


def test_ends_with_many_rows_are_limits_and_rounded_targets_have_none():
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    one = np.ones(400)
    assert limits_of(y, one) == no_limits()
    assert limits_of(np.minimum(y, 1.0), one) == (-np.inf, 1.0)
    assert limits_of(np.clip(y, -1.0, 1.0), one) == (-1.0, 1.0)
    assert limits_of(np.minimum(y, 2.5), one) == no_limits()  # a row or two
    assert limits_of(np.clip(np.round(y), -1, 1), one) == no_limits()
    assert limits_of(np.zeros(50), np.ones(50)) == no_limits()


@pytest.mark.gate
def test_a_target_cut_off_at_the_top_is_predicted_with_its_limit(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(260, 2))
    y = np.minimum(2.0 * X[:, 0] + 0.4 * rng.normal(size=260), 1.0)
    model = AutoRegressor(candidates=["gp", "gp, to its limit"], random_state=0).fit(X[:200], y[:200])
    assert "1, the largest target, that it is treated as a limit" in model.why_
    law = model.predict_distribution(X[200:])
    at_top, f = y[200:] == 1.0, 2.0 * X[200:, 0]
    truth = np.where(at_top, norm.logsf(1.0, f, 0.4), norm.logpdf(y[200:], f, 0.4)).mean()
    assert truth - 0.1 < law.log_prob(y[200:]).mean() < truth + 0.1
    assert (law.quantile(0.999) <= 1.0).all()
    assert law.atoms == (1.0,)
    assert "gp, to its limit" in str(model.weights_)
    plain = AutoRegressor(candidates=["gp, to its limit", "constant"], random_state=0).fit(X[:60], X[:60, 0])
    board = plain.leaderboard_.set_index("candidate")
    assert "no value at an end" in board.loc["gp, to its limit", "why_left_out"]
    nongauss.save(model, tmp_path / "m")
    assert_allclose(nongauss.load(tmp_path / "m").log_density(X, y), model.log_density(X, y))

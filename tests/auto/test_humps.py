"""Targets with two humps: found where they are, near the truth, and refused where there is one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import nongauss
from nongauss.auto.humps import TwoHumps, _two_sides
from nongauss.core.errors import InputError


def test_residuals_with_one_hump_are_refused():
    rng = np.random.default_rng(0)
    one = np.ones(300)
    for z in (rng.normal(size=300), rng.standard_t(3, size=300), rng.exponential(size=300)):
        with pytest.raises(InputError, match="one hump"):
            _two_sides((z - z.mean()) / z.std(), one)
    side = np.where(rng.random(300) < 0.3, 1.0, -1.0)
    assert (_two_sides(side + 0.3 * rng.normal(size=300), one) == side).mean() > 0.97


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of its hasty fits
def test_each_hump_follows_the_columns(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(500, 2))
    upper = rng.random(500) < 0.5 + 0.25 * X[:, 1]
    f = np.sin(2 * X[:, 0])
    y = f + np.where(upper, 1.0, -1.0) + 0.2 * rng.normal(size=500)
    train, new = slice(0, 200), slice(200, 500)
    model = TwoHumps(random_state=0).fit(X[train], y[train], np.ones(200))
    law = model.predict_distribution(X[new])
    share = 0.5 + 0.25 * X[new, 1]
    truth = np.log(
        share * norm.pdf(y[new], f[new] + 1, 0.2) + (1 - share) * norm.pdf(y[new], f[new] - 1, 0.2)
    )
    assert truth.mean() - 0.12 < law.log_prob(y[new]).mean() < truth.mean() + 0.02
    own = model.left_out(X[train], y[train], np.ones(200)).log_prob(y[train]).mean()
    assert abs(own - model.predict_distribution(X[train]).log_prob(y[train]).mean()) < 0.25
    nongauss.save(model, tmp_path / "m")
    again = nongauss.load(tmp_path / "m").predict_distribution(X[new])
    assert_allclose(again.log_prob(y[new]), law.log_prob(y[new]))

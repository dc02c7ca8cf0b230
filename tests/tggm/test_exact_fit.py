"""The default chooses the exact likelihood where held-out rows are skewed, and leaves Gaussian ones alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import nongauss
from nongauss import TGGMRegressor
from nongauss.core.errors import NongaussWarning
from nongauss.tggm.predict import member_moments_of

SMALL = {"n_members": 2, "max_epochs": 60, "random_state": 0}


def table(noise, n_rows=600):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(n_rows, 2))
    return X, X[:, 0] + 0.5 * np.exp(0.5 * X[:, 1]) * noise(rng, n_rows)


@pytest.mark.gate
def test_skewed_noise_is_fitted_by_the_exact_likelihood(tmp_path):
    X, y = table(lambda rng, n: rng.gamma(1.0, size=n))
    chosen = TGGMRegressor((6,), n_heads=1, **SMALL).fit(X[:400], y[:400])
    moments = TGGMRegressor((6,), posterior="moments", **SMALL).fit(X[:400], y[:400])
    assert chosen.posterior_ == "exact"
    assert chosen.n_iter_ > moments.n_iter_
    assert len(chosen.trace_) == chosen.n_iter_
    gain = chosen.predict_distribution(X[400:]).log_prob(y[400:]).mean()
    gain -= moments.predict_distribution(X[400:]).log_prob(y[400:]).mean()
    assert gain > 0.02
    nongauss.save(chosen, tmp_path / "model")
    again = nongauss.load(tmp_path / "model")
    for ask in (lambda law: law.quantile([0.1, 0.9]), lambda law: law.cdf(1.0), lambda law: law.sample(2, 0)):
        law, same = chosen.predict_distribution(X[:5]), again.predict_distribution(X[:5])
        assert_array_equal(ask(law), ask(same))
    assert again.partial_fit(X, y).ensemble_.config.posterior == "exact"
    narrow = TGGMRegressor((6,), n_heads=1, **SMALL).fit(
        X[:400].astype(np.float32), y[:400].astype(np.float32)
    )
    assert narrow.posterior_ == "exact"


@pytest.mark.gate
def test_an_edge_is_known_no_better_than_the_mean():
    """Else each member draws the edge of exponential noise up to its lowest rows, and new ones lie below."""
    X, y = table(lambda rng, n: rng.exponential(size=n), 400)
    settings = {"n_heads": 1, "random_state": 0}
    chosen = TGGMRegressor(**settings).fit(X, y)
    assert chosen.posterior_ == "exact"
    moments = TGGMRegressor(posterior="moments", **settings).fit(X, y)
    inside = (X - X.mean(axis=0)) / X.std(axis=0)
    means, _ = member_moments_of(moments.params_, moments.ensemble_.config, inside)
    spread, noise = np.sqrt(means.var(axis=0).mean()), np.exp(chosen.params_.log_sd1)
    assert 0.4 * spread < noise.min() <= noise.max() < 4.0 * spread


@pytest.mark.gate
def test_gaussian_noise_stays_with_moments_to_the_bit():
    X, y = table(lambda rng, n: rng.normal(size=n), 300)
    chosen = TGGMRegressor((6,), n_heads=1, **SMALL).fit(X, y)
    moments = TGGMRegressor((6,), n_heads=1, posterior="moments", **SMALL).fit(X, y)
    assert chosen.posterior_ == "moments"
    assert_array_equal(chosen.predict(X), moments.predict(X))
    assert chosen.partial_fit(X, y).posterior_ == "moments"


@pytest.mark.gate
def test_heavy_tails_alone_are_no_reason_to_try_the_exact_likelihood():
    """Its laws are skewed, not heavy-tailed: held-out rows would not choose it, after most of the time."""
    X, y = table(lambda rng, n: rng.standard_t(3, size=n), 300)
    seen = []
    settings = {"n_heads": 1, **SMALL, "callbacks": [lambda progress: seen.append(progress.iteration)]}
    chosen = TGGMRegressor((6,), **settings).fit(X, y)
    assert chosen.posterior_ == "moments"
    assert max(seen) <= chosen.n_iter_


@pytest.mark.gate
def test_a_fit_that_is_stopped_while_it_tries_more_says_so_and_tries_no_more():
    X, y = table(lambda rng, n: rng.gamma(1.0, size=n), 300)
    seen = []

    def enough(progress):
        seen.append(progress.iteration)
        return progress.iteration > 60

    with pytest.warns(NongaussWarning, match="Stopped on request"):
        model = TGGMRegressor((6,), **SMALL, n_heads="auto", callbacks=[enough]).fit(X, y)
    assert not model.converged_
    assert model.n_heads_ == 1
    assert max(seen) <= 90


@pytest.mark.gate
def test_several_outputs_are_fitted_by_their_joint_likelihood_on_request():
    X, y = table(lambda rng, n: rng.gamma(1.0, size=n), 200)
    settings = {**SMALL, "max_epochs": 5, "posterior": "exact"}
    both = TGGMRegressor((4,), **settings).fit(X, np.column_stack([y, X[:, 0] - y]))
    law = both.predict_distribution(X[:3])
    assert law.mean.shape == (3, 2)
    assert np.isfinite(law.log_prob(law.mean)).all()


@pytest.mark.gate
@pytest.mark.parametrize("far", [1e15, 1e200])
def test_rows_however_far_have_a_whole_law(far):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    model = TGGMRegressor((5,), posterior="exact", max_epochs=30, random_state=0)
    law = model.fit(X, X[:, 0] + rng.gamma(1.5, size=120)).predict_distribution([[far, 0.0], [0.0, -far]])
    quantiles = law.quantile([0.05, 0.5, 0.95])
    assert np.isfinite(quantiles).all()
    assert (np.diff(quantiles, axis=1) > 0).all()
    assert np.isfinite(law.mean).all()
    assert np.isfinite(law.log_prob(np.zeros(2))).all()

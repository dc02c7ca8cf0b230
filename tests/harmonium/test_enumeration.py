"""Features of rows with gaps, and of the chain graph, against sums over all features and missing cells."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logsumexp

from harmonium.small import D, K, params, states
from nongauss import Harmonium
from nongauss.harmonium.data import unlabelled
from nongauss.harmonium.enumeration import feature_sets
from nongauss.harmonium.exponential_families import UnitBlock
from nongauss.harmonium.feature_law import FeatureLaw, law_of_features
from nongauss.harmonium.objective import chain_log_joint
from nongauss.harmonium.params import FeaturePrior
from nongauss.harmonium.predict import NO_FILLER, Machine

ODDS = np.array([0.4, -0.7, 0.0])
MIXED = (UnitBlock("a", "binary", 0, 2), UnitBlock("b", "real", 2, D))
GRID = np.linspace(-12.0, 12.0, 241)


def machine(reading, layout):
    """Weights below 1 in norm: real cells of either normalisation can be summed on a grid."""
    prior = FeaturePrior(ODDS, np.zeros((0, 2)))
    return Machine(params(size=0.7), prior, layout, "binary", reading, np.zeros(0), NO_FILLER)


def summed_by_hand(m, x, missing):
    """E[z given seen cells] of one row, missing cells summed over 0 and 1, or over a grid of numbers."""
    log_p = []
    for z in states(K):
        a = m.params.weights @ z + m.params.visible_bias
        own = z @ ODDS + (z @ m.params.hidden_bias if m.reading == "global" else 0.0)
        for d in range(D):
            values = np.array([x[d]]) if not missing[d] else np.array([0.0, 1.0]) if d < 2 else GRID
            base = -0.5 * values**2 if d >= 2 else 0.0
            log_a = np.logaddexp(0, a[d]) if d < 2 else 0.5 * a[d] ** 2 + 0.5 * np.log(2 * np.pi)
            own += logsumexp(values * a[d] + base) + (np.log(0.1) if missing[d] and d >= 2 else 0.0)
            own -= log_a if m.reading == "chain" else 0.0
        log_p.append(own)
    p = np.exp(np.array(log_p) - logsumexp(log_p))
    return p @ states(K), p


@pytest.mark.parametrize("reading", ["global", "chain"])
def test_features_of_rows_with_gaps_are_those_of_a_sum_over_what_is_missing(reading):
    m = machine(reading, MIXED)
    x = np.array([[1.0, 0.0, 1.5, -2.0], [0.0, 1.0, -0.5, 0.3], [1.0, 1.0, 0.0, 2.5]], np.float32)
    missing = np.array([[0, 1, 1, 0], [1, 0, 0, 1], [1, 1, 1, 1]], dtype=bool)
    x[missing] = 0.0
    by_hand = [summed_by_hand(m, *row) for row in zip(x, missing, strict=True)]
    assert_allclose(m.hidden(x, missing), [mean for mean, _ in by_hand], atol=1e-6)
    law = law_of_features(m, unlabelled(x, missing))
    assert_allclose(law.shares, [p for _, p in by_hand], atol=1e-6)


@pytest.mark.parametrize("reading", ["global", "chain"])
def test_missing_cells_are_expected_to_be_what_they_are_over_all_sets(reading):
    m = machine(reading, MIXED)
    x, missing = np.array([[1.0, 0.0, 1.5, 0.0]], np.float32), np.array([[False, True, False, True]])
    _, p = summed_by_hand(m, x[0], missing[0])
    a = states(K) @ m.params.weights.T + m.params.visible_bias
    told = m.expected(x, missing)[0]
    assert_allclose(told[[1, 3]], [p @ expit(a[:, 1]), p @ a[:, 3]], atol=1e-6)


def test_sets_of_the_chain_graph_have_the_chances_of_its_joint_law():
    m = machine("chain", (UnitBlock("a", "counts", 0, D),))
    x, z = np.array([[2.0, 0.0, 1.0, 4.0], [0.0, 1.0, 0.0, 0.0]], np.float32), feature_sets(K)
    totals = x.sum(axis=1, keepdims=True)
    each = [chain_log_joint(m.params, m.layout, ODDS, x, totals, np.tile(s, (2, 1))) for s in z]
    assert_allclose(m.log_joint(unlabelled(x)), np.stack(each, axis=1), atol=1e-6)


def test_draws_and_variances_are_those_of_the_chances_of_sets():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(2**K, 0.5), 2)
    law = FeatureLaw(shares @ feature_sets(K), shares)
    at = (np.arange(4000) + 0.5) / 4000
    drawn = np.stack([law.draw(np.full((2, K), place)) for place in at])
    assert_allclose(drawn.mean(axis=0), law.mean, atol=1e-3)
    slope = np.array([1.0, -2.0, 0.5])
    assert_allclose((drawn @ slope).var(axis=0), law.variance(slope), rtol=5e-3)
    together = FeatureLaw(law.mean)
    assert_allclose(together.variance(slope), (law.mean * (1 - law.mean)) @ slope**2)


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_many_features_that_compete_are_near_the_sum_over_all_sets(monkeypatch, kind):
    """Mean field of single units is off by .2 and more in the root mean square."""
    rng = np.random.default_rng(0)
    p = params()._replace(
        weights=2.0 * rng.normal(size=(12, 10)),
        visible_bias=rng.normal(size=12),
        hidden_bias=np.zeros(10),
        scale=np.ones(12),
    )
    m = machine("chain", (UnitBlock("a", kind, 0, 12),))
    m = m._replace(params=p, prior=FeaturePrior(np.full(10, -1.0), np.zeros((0, 2))))
    a = (rng.random((200, 10)) < 0.3) @ p.weights.T + p.visible_bias
    x = rng.random(a.shape) < expit(a) if kind == "binary" else a + 0.3 * rng.standard_normal(a.shape)
    missing = rng.random(a.shape) < 0.1
    x = np.where(missing, 0, x).astype(np.float32)
    exact = m.hidden(x, missing)
    monkeypatch.setattr("nongauss.harmonium.predict.MOST_ENUMERATED", 0)
    assert np.sqrt(np.mean((m.hidden(x, missing) - exact) ** 2)) < 0.1


def test_a_row_has_the_features_that_explain_it_best():
    """Overlapping features compete: mean field took the wrong ones in half of such rows."""
    rng = np.random.default_rng(0)
    W, Z = rng.normal(size=(6, 8)), rng.random((300, 6)) < 0.4
    X = Z @ W + 0.05 * rng.standard_normal((300, 8))
    model = Harmonium(6, reading="chain", random_state=0).fit(X)
    m = model.machine_
    encoded, _ = model._encoded(X)
    best = feature_sets(m.params.n_components)[m.log_joint(unlabelled(encoded)).argmax(axis=1)]
    assert ((model.transform(X) > 0.5) == (best > 0.5)).all(axis=1).mean() > 0.97

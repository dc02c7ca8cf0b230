import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from harmonium.small import BINARY, D, K, params, states
from nongauss.harmonium.chain_graph import _row_sums
from nongauss.harmonium.data import VisibleRows
from nongauss.harmonium.exponential_families import UnitBlock, totals_of
from nongauss.harmonium.objective import chain_log_joint
from nongauss.harmonium.params import FeaturePrior
from nongauss.harmonium.posterior import infer_features, surrogate

ODDS = np.array([0.4, -0.7, 0.0])
KINDS = {
    "binary": BINARY,
    "mixed": (UnitBlock("a", "binary", 0, 2), UnitBlock("b", "real", 2, 4)),
    "counts": (UnitBlock("a", "counts", 0, 4),),
}


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_over_the_exact_posterior_are_the_gradient_of_the_chain_likelihood(kind):
    """The negative phase keeps z: E[x' | z], not everything free. Settled by enumeration of z."""
    p, layout, z = params(), KINDS[kind], states(K)
    x = np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 2.0, 1.0]])
    totals = totals_of(layout, x)

    def each(q):
        return np.array([chain_log_joint(q, layout, ODDS, x, totals, np.tile(s, (2, 1))) for s in z])

    posterior = np.exp(each(p) - np.logaddexp.reduce(each(p), axis=0))
    exact = np.zeros((D, K))
    for s, share in zip(z, posterior, strict=True):
        a = np.tile(p.weights @ s + p.visible_bias, (2, 1))
        at = surrogate(layout, x, a, np.zeros_like(a), totals, None)
        # With certain z the quadratic touches: its slope at a, minus curvature times a, is kept.
        exact += (share[:, None] * at.slope).T @ np.tile(s, (2, 1))
    numeric, step = np.empty((D, K)), 1e-6
    for at_ in np.ndindex(D, K):
        e = np.zeros((D, K))
        e[at_] = step
        up, down = (
            np.logaddexp.reduce(each(p._replace(weights=p.weights + s * e)), axis=0).sum() for s in (1, -1)
        )
        numeric[at_] = (up - down) / (2 * step)
    assert_allclose(exact, numeric, atol=1e-5)


def test_new_rows_are_explained_jointly_not_feature_by_feature():
    """Two features with the same columns: a row that one explains does not have the other."""
    layout = (UnitBlock("all", "real", 0, 6),)
    p = params()._replace(
        weights=np.column_stack([np.full(6, 2.0), np.full(6, 1.9)]),
        visible_bias=np.zeros(6),
        hidden_bias=np.zeros(2),
        scale=np.ones(6),
        votes=np.zeros((0, 2)),
    )
    prior = FeaturePrior(np.array([-1.0, -1.0]), np.zeros((0, 2)))
    rows = VisibleRows(np.full((1, 6), 2.0, np.float32), None, np.ones(1), None)
    on = infer_features(p, layout, prior, rows)
    assert_allclose(on.sum(), 1.0, atol=0.05)


def test_a_missing_cell_says_nothing():
    layout = (UnitBlock("all", "binary", 0, D),)
    prior, p = FeaturePrior(ODDS, np.zeros((0, 2))), params()
    hidden = np.array([[True] * D])
    on = infer_features(p, layout, prior, VisibleRows(np.zeros((1, D), np.float32), hidden, np.ones(1), None))
    assert_allclose(on[0], expit(ODDS), atol=1e-6)


def test_the_seen_counts_share_what_was_counted():
    """A row without one of the counts is a row of a model without that column."""
    p, prior = params(), FeaturePrior(ODDS, np.zeros((0, 2)))
    X, missing = np.array([[2.0, 0.0, 3.0, 0.0]], np.float32), np.array([[False, False, False, True]])
    wide, narrow = ((UnitBlock("a", "counts", 0, n),) for n in (4, 3))
    rows = VisibleRows(X, missing, np.ones(1), None), VisibleRows(X[:, :3], None, np.ones(1), None)
    less = p._replace(weights=p.weights[:3], visible_bias=p.visible_bias[:3], scale=np.ones(3))
    on = infer_features(p, wide, prior, rows[0])
    assert_allclose(on, infer_features(less, narrow, prior, rows[1]), atol=1e-5)
    whole, part = (
        _row_sums(q, layout, r, on).likelihood
        for q, layout, r in ((p, wide, rows[0]), (less, narrow, rows[1]))
    )
    assert_allclose(whole, part, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_has_its_features_whatever_rows_are_beside_it(kind):
    p, prior, rng = params(size=2.0), FeaturePrior(ODDS, np.zeros((0, 2))), np.random.default_rng(0)
    X = rng.poisson(4.0, (30, D)) if kind == "counts" else rng.random((30, D)) < 0.5
    rows = VisibleRows(X.astype(np.float32), None, np.ones(30), None)
    together = infer_features(p, KINDS[kind], prior, rows)
    alone = [infer_features(p, KINDS[kind], prior, rows.take(np.array([i])))[0] for i in range(30)]
    assert_allclose(together, alone, atol=1e-5)


def test_features_that_multiply_counts_are_weighed_by_what_they_do_and_not_by_a_quadratic():
    """One unit: its logit is exact, however large its weights."""
    p, layout = params(), KINDS["counts"]
    W = np.array([[3.0], [-1.0], [0.0], [0.5]])
    p = p._replace(weights=W, hidden_bias=np.zeros(1), votes=np.zeros((0, 1)))
    X = np.array([[1.0, 2.0, 3.0, 0.0], [4.0, 0.0, 0.0, 1.0]], np.float32)
    rows, odds, totals = (
        VisibleRows(X, None, np.ones(2), None),
        np.array([-0.4]),
        X.sum(axis=1, keepdims=True),
    )
    joint = [chain_log_joint(p, layout, odds, X, totals, np.full((2, 1), z)) for z in (0.0, 1.0)]
    on = infer_features(p, layout, FeaturePrior(odds, np.zeros((0, 2))), rows)
    assert_allclose(on[:, 0], expit(joint[1] - joint[0]), atol=0.02)

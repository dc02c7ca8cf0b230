import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from harmonium.small import BINARY, D, K, params, states, table
from nongauss.harmonium import chain
from nongauss.harmonium.objective import chain_log_joint
from nongauss.harmonium.params import Prior, Rows, start
from nongauss.harmonium.units import Block, totals_of

ODDS = np.array([0.4, -0.7, 0.0])
KINDS = {
    "binary": BINARY,
    "mixed": (Block("a", "binary", 0, 2), Block("b", "real", 2, 4)),
    "counts": (Block("a", "counts", 0, 4),),
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
        at = chain.surrogate(layout, x, a, np.zeros_like(a), totals, None)
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


def fitted(kind, n_features=4, n_rows=300, prunes=False, steps=25, missing=None):
    X, Z = table(n_features, n_rows, kind)
    layout = (Block("all", kind, 0, X.shape[1]),)
    rows = Rows(X.astype(np.float32), missing, np.ones(n_rows), None)
    p = start(np.random.default_rng(0), layout, rows, n_features + 2, 0.9, 0.0, 0)
    on = np.random.default_rng(1).random((n_rows, n_features + 2))
    fit = chain.ChainFit(layout, rows, chain.begin(layout, rows, p, on, 1.0), 1.0, int(prunes))
    return fit, [fit.step(number)["bound"] for number in range(steps)], Z


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_the_bound_rises(kind):
    _, bounds, _ = fitted(kind)
    gains = np.diff(bounds)
    # Units of a sweep share one curvature, and the sticks' own bound is left out: small falls are possible.
    assert (gains > -2e-3 * abs(bounds[-1])).all()
    assert bounds[-1] > bounds[0] + 100


def test_removed_units_have_reasons_and_the_rest_explains_the_rows():
    fit, _, _ = fitted("real", prunes=True, steps=60)
    state = fit.state
    assert state.on.shape[1] < 6
    assert state.reasons.count(chain.ACTIVE) == state.on.shape[1]
    assert set(state.reasons) <= {chain.ACTIVE, chain.UNUSED, chain.DUPLICATE, chain.IDLE}
    again = chain.infer(state.params, fit.layout, state.prior, fit.rows)
    assert np.mean(np.abs(again - state.on) < 0.01) > 0.97


def test_new_rows_are_explained_jointly_not_feature_by_feature():
    """Two features with the same columns: a row that one explains does not have the other."""
    layout = (Block("all", "real", 0, 6),)
    p = params()._replace(
        weights=np.column_stack([np.full(6, 2.0), np.full(6, 1.9)]),
        visible_bias=np.zeros(6), hidden_bias=np.zeros(2), scale=np.ones(6), votes=np.zeros((0, 2)),
    )  # fmt: skip
    prior = Prior(np.array([-1.0, -1.0]), np.zeros((0, 2)))
    rows = Rows(np.full((1, 6), 2.0, np.float32), None, np.ones(1), None)
    on = chain.infer(p, layout, prior, rows)
    assert_allclose(on.sum(), 1.0, atol=0.05)


def test_a_missing_cell_says_nothing():
    layout = (Block("all", "binary", 0, D),)
    prior, p = Prior(ODDS, np.zeros((0, 2))), params()
    hidden = np.array([[True] * D])
    on = chain.infer(p, layout, prior, Rows(np.zeros((1, D), np.float32), hidden, np.ones(1), None))
    assert_allclose(on[0], expit(ODDS), atol=1e-6)


def test_the_seen_counts_share_what_was_counted():
    """A row without one of the counts is a row of a model without that column."""
    p, prior = params(), Prior(ODDS, np.zeros((0, 2)))
    X, missing = np.array([[2.0, 0.0, 3.0, 0.0]], np.float32), np.array([[False, False, False, True]])
    wide, narrow = ((Block("a", "counts", 0, n),) for n in (4, 3))
    rows = Rows(X, missing, np.ones(1), None), Rows(X[:, :3], None, np.ones(1), None)
    less = p._replace(weights=p.weights[:3], visible_bias=p.visible_bias[:3], scale=np.ones(3))
    on = chain.infer(p, wide, prior, rows[0])
    assert_allclose(on, chain.infer(less, narrow, prior, rows[1]), atol=1e-5)
    whole, part = (
        chain._sums(q, layout, r, on).likelihood
        for q, layout, r in ((p, wide, rows[0]), (less, narrow, rows[1]))
    )
    assert_allclose(whole, part, rtol=1e-6)

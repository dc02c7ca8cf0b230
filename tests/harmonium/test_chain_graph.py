import numpy as np
import pytest

from harmonium.small import table
from nongauss.harmonium.chain_graph import ACTIVE, DUPLICATE, IDLE, UNUSED, ChainLearner, start_chain
from nongauss.harmonium.data import VisibleRows
from nongauss.harmonium.exponential_families import UnitBlock
from nongauss.harmonium.params import start
from nongauss.harmonium.posterior import infer_features


def fitted(kind, n_features=4, n_rows=300, prunes=False, steps=25, missing=None):
    X, Z = table(n_features, n_rows, kind)
    layout = (UnitBlock("all", kind, 0, X.shape[1]),)
    rows = VisibleRows(X.astype(np.float32), missing, np.ones(n_rows), None)
    p = start(np.random.default_rng(0), layout, rows, n_features + 2, 0.9, 0.0, 0)
    on = np.random.default_rng(1).random((n_rows, n_features + 2))
    fit = ChainLearner(layout, rows, start_chain(layout, rows, p, on, 1.0), 1.0, int(prunes))
    bounds = []
    for number in range(steps):
        info = fit.epoch(number)
        bounds.append(info["bound"])
        if info["stop"]:
            break
    return fit, bounds, Z


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
    assert state.reasons.count(ACTIVE) == state.on.shape[1]
    assert set(state.reasons) <= {ACTIVE, UNUSED, DUPLICATE, IDLE}
    again = infer_features(state.params, fit.layout, state.prior, fit.rows)
    assert np.mean(np.abs(again - state.on) < 0.01) > 0.97


def test_the_features_of_counts_are_found_and_their_bound_rises():
    rng = np.random.default_rng(0)
    Z = rng.random((400, 2)) < 0.3
    X = rng.poisson(np.exp(rng.normal(0.0, 0.5, 20) + 1.5 * Z @ rng.normal(size=(2, 20)))).astype(np.float32)
    layout, rows = (UnitBlock("all", "counts", 0, 20),), VisibleRows(X, None, np.ones(400), None)
    on = rng.random((400, 8))
    state = start_chain(layout, rows, start(rng, layout, rows, 8, 0.9, 0.0, 0), on, 1.0)
    fit = ChainLearner(layout, rows, state, 1.0, 0)
    bounds = [fit.epoch(number)["bound"] for number in range(40)]
    assert (np.diff(bounds)[3:] > -1e-3 * abs(bounds[-1])).all()
    alike = np.abs(np.corrcoef(fit.state.on.T, Z.T)[:8, 8:])
    assert (alike.max(axis=0) > 0.7).all()

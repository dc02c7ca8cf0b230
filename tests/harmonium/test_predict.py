import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from harmonium.small import BINARY, params, states
from nongauss.harmonium.exponential_families import UnitBlock
from nongauss.harmonium.params import FeaturePrior
from nongauss.harmonium.predict import NO_FILLER, Filler, Machine

PRIOR = FeaturePrior(np.zeros(3), np.zeros((0, 2)))


def machine(**changes) -> Machine:
    return Machine(params(), PRIOR, BINARY, "binary", "global", np.zeros(0), NO_FILLER)._replace(**changes)


def test_rows_without_gaps_have_the_exact_posterior_beside_rows_with_gaps():
    m, X = machine(), states(4)
    missing = np.zeros(X.shape, bool)
    missing[3:] = True
    mixed = m.hidden(X, missing)
    assert_allclose(mixed[:3], expit(X @ m.params.weights + m.params.hidden_bias)[:3])
    assert_allclose(mixed[3:], np.tile(mixed[3], (13, 1)))  # nothing is seen: all alike


def test_missing_cells_are_filled_where_there_is_a_filler():
    means, missing = np.array([0.1, 0.9, 0.4, 0.3]), states(4) == 1
    m = machine(filler=Filler(means, np.ones(4), np.zeros((4, 1)), 1.0))
    filled = m.hidden(np.where(missing, means, states(4)))
    assert_allclose(m.hidden(states(4), missing), filled, atol=1e-6)


@pytest.mark.parametrize("reading", ["global", "chain"])
def test_a_view_of_counts_that_is_wholly_missing_is_no_empty_text(reading):
    layout = (UnitBlock("a", "binary", 0, 1), UnitBlock("b", "counts", 1, 4))
    m = machine(layout=layout, totals=np.array([6.0]), reading=reading)
    X, missing = np.array([[1.0, 0, 0, 0], [1.0, 3, 2, 1]], np.float32), np.zeros((2, 4), bool)
    missing[0, 1:] = True
    alone, beside = m.hidden(X[:1], missing[:1]), m.hidden(X, missing)
    assert_allclose(alone[0], beside[0], atol=1e-5)
    assert_allclose(m.visible(alone)[0, 1:].sum(), 6.0)
    if reading == "global":  # there the sum of a row's counts is part of what it says
        assert np.abs(alone[0] - m.hidden(X[:1])[0]).max() > 0.05


def test_one_seen_cell_moves_the_missing_ones_the_right_way():
    m = machine(params=params()._replace(weights=np.full((4, 3), 1.0), visible_bias=np.full(4, -1.5)))
    missing = np.array([[False, True, True, True]] * 2)
    X = np.array([[1.0, 0, 0, 0], [0.0, 0, 0, 0]])
    with_, without = m.visible(m.hidden(X, missing))
    assert (with_[1:] > without[1:]).all()


def test_reconstructions_are_in_encoded_units_for_both_readings():
    layout = (UnitBlock("all", "real", 0, 4),)
    scale = np.array([1.0, 2.0, 4.0, 1.0])
    p = params()._replace(scale=scale)
    h = np.array([[1.0, 0.0, 1.0]])
    expected = (h @ p.weights.T + p.visible_bias) / scale
    for reading in ("global", "chain"):
        m = machine(params=p, layout=layout, reading=reading)
        assert_allclose(m.visible(h), expected)
        assert m.hidden(np.zeros((2, 4), np.float32)).shape == (2, 3)

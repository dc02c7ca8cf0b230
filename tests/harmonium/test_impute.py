import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from nongauss.harmonium.data import VisibleRows
from nongauss.harmonium.exponential_families import UnitBlock
from nongauss.harmonium.predict import LEAST_NOISE, learn_filler

LAYOUT = (UnitBlock("a", "real", 0, 6), UnitBlock("b", "binary", 6, 8))


def made(n_rows: int = 300) -> np.ndarray:
    """Six real columns of two factors, and two of 0 and 1 that follow the first one."""
    rng = np.random.default_rng(0)
    real = rng.normal(size=(n_rows, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(n_rows, 6))
    real = (real - real.mean(axis=0)) / real.std(axis=0)
    return np.column_stack([real, real[:, :1] > 0, real[:, :1] < 0.5]).astype(np.float32)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_missing_cells_are_what_the_seen_ones_let_expect(make):
    """The conditional mean of a normal law with the columns' correlations, none explained to the last bit."""
    X, missing = made(), np.zeros((300, 8), bool)
    missing[:100, :2], missing[100:200, 4:] = True, True
    filler = learn_filler(LAYOUT, VisibleRows(make(X), None, np.ones(300), None), 0)
    out = filler.fill(LAYOUT, X, missing)
    assert_array_equal(out[~missing], X[~missing])
    real = missing[:, :6]
    assert np.mean((out[:, :6] - X[:, :6])[real] ** 2) < 0.1  # the columns have variance 1
    values, axes = np.linalg.eigh(np.corrcoef(X.T))
    S = (axes * np.maximum(values, LEAST_NOISE)) @ axes.T
    z = (X[:100] - X.mean(axis=0)) / X.std(axis=0)
    expected = z[:, 2:] @ np.linalg.solve(S[2:, 2:], S[2:, :2])
    assert_allclose(out[:100, :2], X.mean(axis=0)[:2] + X.std(axis=0)[:2] * expected, atol=1e-3)
    assert 0.0 <= out[:, 6:].min() < 0.2 < 0.8 < out[:, 6:].max() <= 1.0


def test_rows_with_gaps_are_learned_from_as_well():
    X, missing = made(), np.random.default_rng(1).random((300, 8)) < 0.3
    rows = VisibleRows(np.where(missing, np.float32(0), X), missing, np.ones(300), None)
    whole = learn_filler(LAYOUT, rows, 0).filled(LAYOUT, rows)
    assert whole.missing is None
    real = missing[:, :6]
    assert np.mean((whole.X[:, :6] - X[:, :6])[real] ** 2) < 0.2

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose

from nongauss.harmonium.data import VisibleRows, column_means, mean_square, mean_totals
from nongauss.harmonium.exponential_families import UnitBlock, mean_of
from nongauss.harmonium.params import start, start_biases

LAYOUT = (UnitBlock("a", "binary", 0, 3), UnitBlock("b", "counts", 3, 6))


def rows(sparse: bool) -> VisibleRows:
    rng = np.random.default_rng(0)
    X = np.hstack([rng.random((50, 3)) < 0.4, rng.poisson(2, (50, 3))]).astype(np.float32)
    return VisibleRows(sp.csr_matrix(X) if sparse else X, None, rng.integers(1, 3, 50).astype(float), None)


def test_biases_start_at_the_means_of_the_data_dense_or_sparse():
    dense = rows(False)
    bias = start_biases(LAYOUT, dense)
    total = np.array([[column_means(dense)[3:].sum()]])
    assert_allclose(mean_of(LAYOUT, bias[None], total)[0], np.average(dense.X, axis=0, weights=dense.weight))
    assert_allclose(start_biases(LAYOUT, rows(True)), bias)
    assert_allclose(mean_square(rows(True)), mean_square(dense))


def test_missing_cells_do_not_count_in_means():
    X = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]], np.float32)
    missing = np.array([[False, True], [True, False], [False, False]])
    with_gaps = VisibleRows(X * ~missing, missing, np.ones(3), None)
    assert_allclose(column_means(with_gaps), [1.0, 0.5])
    assert_allclose(mean_totals((UnitBlock("a", "counts", 0, 2),), with_gaps), [1.5])


def test_weights_start_so_that_units_are_driven_equally_and_units_can_be_kept():
    p = start(np.random.default_rng(0), LAYOUT, rows(False), 500, 0.9, -2.0, 3)
    assert 0.6 < (rows(False).X @ p.weights).std() < 1.2
    kept = p.keep(np.array([4, 1]))
    assert_allclose(kept.weights, p.weights[:, [4, 1]])
    assert kept.votes.shape == (3, 2)
    assert p.n_components == 500

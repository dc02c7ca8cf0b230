"""Sparse matrices: one scale, rows of equal length, nothing lost."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from nongauss.core.errors import InputError
from nongauss.tables.sparse import SparseEncoder, SparseRows, as_one_array, from_one_array


def counts(seed=0, shape=(30, 8)):
    rng = np.random.default_rng(seed)
    return sparse.csr_array(rng.poisson(0.4, shape).astype(float))


def filled(rows: SparseRows, n_columns: int) -> np.ndarray:
    out = np.zeros((len(rows), n_columns))
    np.add.at(out, (np.arange(len(rows))[:, None], rows.index), rows.value)
    return out


def test_rows_hold_the_matrix_over_the_root_mean_square_of_what_is_filled():
    dense = counts().toarray()
    dense[4] = 0.0  # a row without words
    X = sparse.csr_array(dense)
    encoder = SparseEncoder.fit(X, np.ones(30))
    rows = encoder.as_scaled(X)
    assert_allclose(encoder.scale, np.sqrt((dense[dense > 0] ** 2).mean()), rtol=1e-12)
    assert_allclose(filled(rows, 8), dense / encoder.scale, rtol=1e-12)
    assert_array_equal(from_one_array(as_one_array(rows)).index, rows.index)
    assert_allclose(filled(encoder.as_scaled(dense), 8), dense / encoder.scale, rtol=1e-12)
    assert len(encoder.encoded_names) == 8


def test_weights_count_rows():
    X = counts()
    weight = np.random.default_rng(1).integers(0, 3, 30).astype(float)
    repeated = sparse.csr_array(np.repeat(X.toarray(), weight.astype(int), axis=0))
    expected = SparseEncoder.fit(repeated, np.ones(repeated.shape[0])).scale
    assert_allclose(SparseEncoder.fit(X, weight).scale, expected, rtol=1e-12)


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e200])
def test_extreme_matrices(size):
    X = counts() * size
    rows = SparseEncoder.fit(X, np.ones(30)).as_scaled(X)
    assert np.isfinite(rows.value).all()
    assert np.abs(rows.value).max() == 0.0 if size == 0.0 else np.abs(rows.value).max() < 20.0


def test_what_is_refused():
    X = counts()
    encoder = SparseEncoder.fit(X, np.ones(30))
    with pytest.raises(InputError, match="expecting 8 features"):
        encoder.as_scaled(counts(shape=(3, 7)))
    bad = X.copy()
    bad.data[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        encoder.as_scaled(bad)

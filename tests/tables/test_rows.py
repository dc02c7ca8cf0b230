import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from nongauss.tables import rows as rows_module
from nongauss.tables.rows import canonical_rows, canonical_sparse, validate_weight, widened


def table(n=60, d=3, seed=0):
    rng = np.random.RandomState(seed)
    return rng.randn(n, d), rng.randn(n, 2), rng.randint(0, 4, n).astype(float)


def assert_same_bits(a, b):
    assert a.X.tobytes() == b.X.tobytes()
    assert a.Y.tobytes() == b.Y.tobytes()
    assert a.weight.tobytes() == b.weight.tobytes()


@pytest.mark.parametrize("d", [3, 0])
def test_integer_weights_equal_repetition_and_zero_equals_removal(d):
    X, Y, weight = table(d=d)
    take = np.repeat(np.arange(len(X)), weight.astype(int))
    weighted, repeated = canonical_rows(X, Y, weight), canonical_rows(X[take], Y[take], np.ones(len(take)))
    assert_same_bits(weighted, repeated)
    assert (weighted.order[weight == 0] == -1).all()
    assert weighted.weight.sum() == len(take)


def test_order_of_rows_is_irrelevant_and_order_maps_back():
    X, Y, _ = table()
    X[5], Y[5] = X[4], Y[4]
    weight = np.random.RandomState(1).rand(60)
    shuffle = np.random.RandomState(2).permutation(60)
    a, b = canonical_rows(X, Y, weight), canonical_rows(X[shuffle], Y[shuffle], weight[shuffle])
    assert_same_bits(a, b)
    assert len(a.X) == 59
    assert a.order[4] == a.order[5]
    np.testing.assert_array_equal(a.X[a.order], X.astype(np.float32))
    np.testing.assert_array_equal(a.Y[a.order], Y.astype(np.float32))


def test_rounding_noise_and_negative_zero_are_removed():
    X, Y, weight = np.array([[1.0], [0.0]]), np.array([[2.0], [-0.0]]), np.ones(2)
    assert_same_bits(canonical_rows(X, Y, weight), canonical_rows(X * (1 + 2e-16), -Y * -1 + 0.0, weight))


def test_rows_that_share_a_hash_are_kept_apart(monkeypatch):
    X, Y, weight = table()
    X[7], Y[7] = X[3], Y[3]
    weight[[3, 7]] = 1.0
    honest = canonical_rows(X, Y, weight)
    monkeypatch.setattr(rows_module, "content_hash", lambda x, y: np.zeros(len(x), dtype=np.uint64))
    shuffle = np.random.RandomState(2).permutation(60)
    a, b = canonical_rows(X, Y, weight), canonical_rows(X[shuffle], Y[shuffle], weight[shuffle])
    assert_same_bits(a, b)
    assert len(a.X) == len(honest.X)
    assert a.order[3] == a.order[7]
    kept = a.order >= 0
    np.testing.assert_array_equal(a.X[a.order[kept]], X[kept].astype(np.float32))


def test_hash_has_no_accidental_ties_across_columns_or_chunks():
    X = np.arange(20_000, dtype=float).reshape(-1, 2)
    result = canonical_rows(np.vstack([X, X[:, ::-1]]), np.zeros((20_000, 1)), np.ones(20_000))
    assert len(result.X) == 20_000


def test_weights_are_checked():
    assert validate_weight(None, 3).tolist() == [1, 1, 1]
    assert validate_weight(2, 3).tolist() == [2, 2, 2]
    given = np.array([0.0, 1.0, 2.0])
    assert validate_weight(given, 3) is not given
    for bad, message in [
        ([1, 1], r"sample_weight.shape == \(2,\), expected \(3,\)!"),
        ([[1], [1], [1]], "1D array or scalar, got 2D"),
        ([1, np.nan, 1], "NaN or infinite in row 1"),
        ([1, 1, np.inf], "NaN or infinite in row 2"),
        ([1, -2, -3], r"negative in row 1 \(-2"),
        ([0, 0, 0], "weight.*zero"),
        (["a", "b", "c"], "must be numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            validate_weight(bad, 3)


def test_sparse_rows_are_merged_and_ordered_by_content_as_dense_ones_are():
    rng = np.random.default_rng(0)
    X = (rng.integers(0, 3, (40, 4)) * (rng.random((40, 4)) < 0.4)).astype(np.float32)
    labels, weight = rng.integers(0, 2, (40, 1)), rng.integers(0, 3, 40).astype(float)
    cells, Y, merged, order = canonical_sparse(sp.csr_matrix(X), labels, weight)
    dense = canonical_rows(X, labels, weight)
    assert len(merged) == len(dense.weight)
    assert merged.sum() == weight.sum()
    kept = weight > 0
    assert (order[~kept] == -1).all()
    assert_array_equal(cells.toarray()[order[kept]], X[kept])
    assert_array_equal(Y[order[kept]], labels[kept])
    moved = rng.permutation(40)
    again = canonical_sparse(sp.csr_matrix(X[moved]), labels[moved], weight[moved])
    assert_array_equal(again[0].toarray(), cells.toarray())
    assert_array_equal(again[2], merged)


def test_single_precision_is_the_decimals_that_it_stands_for():
    rng = np.random.default_rng(0)
    narrow = np.concatenate([rng.normal(size=500), rng.uniform(-1e4, 1e4, 500), [0.0, np.inf, -7.0]])
    narrow = narrow.astype(np.float32)
    assert_array_equal(widened(narrow), [float(str(cell)) for cell in narrow])
    assert np.isnan(widened(np.array([np.nan], np.float32)))[0]
    assert_array_equal(widened(np.array([3, 4], np.int8)), [3.0, 4.0])

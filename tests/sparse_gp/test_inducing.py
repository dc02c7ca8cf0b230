import numpy as np
from numpy.testing import assert_array_equal

from nongauss.sparse_gp import inducing as module
from nongauss.sparse_gp.inducing import inducing_inputs


def test_distinct_rows_of_the_data():
    X = np.random.default_rng(0).normal(size=(50, 2))
    Z = inducing_inputs(X, 10, 0)
    assert Z.shape == (10, 2)
    assert all((row == X).all(axis=1).any() for row in Z)
    assert_array_equal(Z, inducing_inputs(X, 10, 0))


def test_all_distinct_rows_where_they_are_few():
    X = np.repeat(np.arange(4.0), 5)[:, None]
    assert_array_equal(inducing_inputs(X, 10, 0), [[0], [1], [2], [3]])


def test_of_many_rows_a_part_is_looked_at(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 30)
    assert len(inducing_inputs(np.arange(500.0)[:, None], 20, 0)) == 20

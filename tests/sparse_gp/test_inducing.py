import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nongauss.sparse_gp import inducing as module
from nongauss.sparse_gp.inducing import are_all_rows, inducing_inputs


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


@pytest.mark.parametrize("most", [3, 100])
def test_knows_whether_it_has_every_row(monkeypatch, most):
    monkeypatch.setattr(module, "MOST_ROWS", most)
    X = np.repeat(np.arange(4.0), 5)[:, None]
    assert are_all_rows(np.unique(X, axis=0), X)
    assert not are_all_rows(X[[0, 5, 10]], X)
    assert not are_all_rows(X[:1], np.arange(9.0)[:, None])

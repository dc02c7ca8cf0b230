import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nongauss.sparse_gp import params as module
from nongauss.sparse_gp.likelihoods import Gaussian, Poisson
from nongauss.sparse_gp.params import KernelBlocks, are_all_rows, inducing_inputs
from nongauss.sparse_gp.updates import HyperObjective
from sparse_gp.small import model, params, rows


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


@pytest.fixture
def few(monkeypatch):
    """As if hardly anything could be kept in memory."""
    monkeypatch.setattr(module, "KEPT_NUMBERS", 10)
    monkeypatch.setattr(module, "BLOCK_NUMBERS", 35)


def test_blocks_cover_the_rows_once(few):
    data, own = rows(40), model()
    made = KernelBlocks(own, params(own, [-2.0], data.X[:5]), data)
    assert not made.kept
    covered = [i for part, _ in made for i in range(*part.indices(40))]
    assert covered == list(range(40))
    assert all(bases[0].K.shape[1] <= 7 for _, bases in made)


@pytest.mark.parametrize(
    "sizes",
    [
        {"KEPT_NUMBERS": 10, "BLOCK_NUMBERS": 35},
        {"BLOCK_NUMBERS": 35},
        {"BLOCK_NUMBERS": 35, "PRODUCT_NUMBERS": 10},
    ],
)
@pytest.mark.parametrize(("likelihood", "psi"), [(Gaussian(), [-2.0]), (Poisson(), [])])
def test_bound_and_gradient_do_not_depend_on_the_blocks(likelihood, psi, sizes, monkeypatch):
    data, own = rows(40), model(likelihood)
    data = data._replace(y=np.abs(np.round(data.y)))
    at = params(own, psi, data.X[:5])
    whole = HyperObjective(own, data, at, True, False)(at.flat(True))
    for name, size in sizes.items():
        monkeypatch.setattr(module, name, size)
    parts = HyperObjective(own, data, at, True, False)(at.flat(True))
    assert_allclose(parts[0], whole[0], rtol=1e-12)
    assert_allclose(parts[1], whole[1], rtol=1e-8, atol=1e-8)


def test_kept_matrices_are_made_once():
    data, own = rows(20), model()
    made = KernelBlocks(own, params(own, [-2.0], data.X[:5]), data)
    first, second = (next(iter(made))[1][0].K for _ in range(2))
    assert first is second
    assert np.isfinite(first).all()
